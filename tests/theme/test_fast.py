"""What makes a build fast."""

from types import SimpleNamespace

from theme import fast


def test_environments_are_left_out_before_the_contents_are_read(tmp_path):
    for folder in ("env", "my-venv", "deep/.tox"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "pyvenv.cfg").touch()
    (tmp_path / "book").mkdir()
    config = SimpleNamespace(exclude_patterns=["README.md"])
    fast.speed_up(SimpleNamespace(srcdir=tmp_path, extensions={}), config)
    assert config.exclude_patterns == ["README.md", "deep/.tox", "env", "my-venv"]
