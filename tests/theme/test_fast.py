"""What makes a build fast, and that it changes nothing else."""

import os
from types import SimpleNamespace

from tests.theme.conftest import ROOT  # theme/ becomes importable
from theme import fast


def test_environments_are_left_out_before_the_contents_are_read(tmp_path):
    for folder in ("env", "my-venv", "deep/.tox"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "pyvenv.cfg").touch()
    (tmp_path / "book").mkdir()
    config = SimpleNamespace(exclude_patterns=["README.md"])
    fast.speed_up(SimpleNamespace(srcdir=tmp_path, extensions={}), config)
    assert config.exclude_patterns == ["README.md", "deep/.tox", "env", "my-venv"]


def test_all_cores_read_and_write(site_log):
    """A serial extension would make Sphinx warn, and a warning stop the build."""
    assert "doing serial" not in site_log
    app = SimpleNamespace(parallel=1)
    fast.use_all_cores(app)
    assert app.parallel == os.cpu_count()
    read = [line for line in site_log.splitlines() if "reading sources" in line]
    # With fewer processes than pages, each reads several, and says the first and last.
    if 1 < app.parallel < len(list((ROOT / "book").glob("*.md"))) // 2:
        assert " .. " in read[0]
