"""What readers install, each in an environment of its own: the extras, and Binder's."""

import os
import subprocess
import sys

import pytest

from tests.book.pages import ROOT

pytestmark = [pytest.mark.weekly, pytest.mark.timeout(1800)]
PINS = ["-c", str(ROOT / "constraints.txt")]
KIT = """
import importlib, pkgutil
import attncheck, coding_attention
for module in pkgutil.iter_modules(coding_attention.__path__, "coding_attention."):
    if module.ispkg:
        importlib.import_module(module.name)
"""
# Extra: what a reader imports with it.
EXTRAS = {
    "": "import attention; attention.check(attention.SelfAttention_v2)",
    "[pages]": KIT,
    "[notebooks]": KIT + "import jupyterlab",
    "[book]": "import jupyter_book, jupytext, latex2mathml, nbclient",
    "[test]": "import nbval, pytest, playwright, attncheck.pytest_plugin",
}


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.fixture
def python(tmp_path):
    """The interpreter of an empty environment."""
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    return tmp_path / "venv" / "bin" / "python"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out, cwd=ROOT)
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_wheel_has_what_each_extra_promises(extra, wheel, python, tmp_path):
    run(python, "-m", "pip", "install", "-q", *PINS, f"{wheel}{extra}")
    run(python, "-c", EXTRAS[extra], cwd=tmp_path)
    run(python, "-m", "pip", "check", cwd=tmp_path)


def test_binders_recipe_builds_and_runs_a_page(python, tmp_path):
    """As repo2docker does it: the requirements, then the script."""
    folder = ROOT / "binder"
    run(python, "-m", "pip", "install", "-q", "-r", folder / "requirements.txt",
        cwd=ROOT)  # fmt: skip
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    prefix = {"NB_PYTHON_PREFIX": str(python.parents[1]), "HOME": str(tmp_path)}
    run(folder / "postBuild", cwd=ROOT, env={**os.environ, "PATH": path, **prefix})
    run(python.parent / "jupyter-lab", "--version", cwd=tmp_path)
    page = ROOT / "book" / "02_simple_self_attention.ipynb"
    run(python, "-m", "nbconvert", "--execute", "--to", "notebook",
        "--output-dir", tmp_path, page, cwd=tmp_path)  # fmt: skip
