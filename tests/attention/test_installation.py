"""Another distribution has the import name `attention`: what happens beside it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import attention

pytestmark = [pytest.mark.package, pytest.mark.weekly]

OURS = Path(attention.__file__).parent


@pytest.fixture
def site(tmp_path):
    """A folder of installed packages with ours in it."""
    (tmp_path / "site" / "attention").mkdir(parents=True)
    for file in OURS.glob("*.py"):
        shutil.copy(file, tmp_path / "site" / "attention")
    return tmp_path / "site"


def install_the_other(folder):
    info = folder / "attention-5.0.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: attention\nVersion: 5.0.0\n"
    )
    (folder / "attention").mkdir(exist_ok=True)
    (folder / "attention" / "attention.py").write_text("")


def import_with(*folders):
    path = os.pathsep.join(map(str, folders))
    return subprocess.run(
        [sys.executable, "-c", "import attention; print(attention.__file__)"],
        env=os.environ | {"PYTHONPATH": path}, cwd=folders[0].parent,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_folder_that_two_packages_share_is_refused(site):
    install_the_other(site)
    ran = import_with(site)
    assert ran.returncode == 1
    (said,) = [
        line for line in ran.stderr.splitlines() if line.startswith("ImportError")
    ]
    assert f"two packages are installed in {site / 'attention'}" in said
    assert "coding-attention and attention 5.0.0, another project" in said
    assert "pip uninstall -y attention coding-attention" in said


def test_ours_alone_is_imported(site):
    ran = import_with(site)
    assert ran.stdout.strip() == str(site / "attention" / "__init__.py"), ran.stderr


def test_the_other_in_a_folder_of_its_own_disturbs_nobody(site, tmp_path):
    install_the_other(tmp_path / "elsewhere")
    ran = import_with(site, tmp_path / "elsewhere")
    assert ran.stdout.strip() == str(site / "attention" / "__init__.py"), ran.stderr
