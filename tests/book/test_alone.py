"""A finished notebook alone in an empty folder, as in Colab: it installs and runs."""

import copy
import os
import shutil
import subprocess
import sys
import sysconfig

import nbformat
import pytest

from coding_attention import address
from coding_attention.stored import restore
from tests.book.pages import ROOT, pages

URL = "https://github.com/some-org/some-name"
QUICK = "02_simple_self_attention"  # tried with the site; the others take a while
PAGES = {page.name: page for page in pages()}


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """This repository as it stands, as one commit; its folder and the commit."""
    folder = tmp_path_factory.mktemp("repository")
    for name in run("git", "ls-files", "-z", cwd=ROOT).split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    run("git", "init", "-q", cwd=folder)
    run("git", "add", "-A", cwd=folder)
    who = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
    run("git", *who, "commit", "-q", "-m", "All", cwd=folder)
    return folder, run("git", "rev-parse", "HEAD", cwd=folder).strip()


@pytest.fixture
def python(tmp_path):
    """An environment with all that is installed here but the book's package."""
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    find = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = run(python, "-c", find).strip()
    # What a .pth file leads to is imported from, but its own .pth files aren't read:
    # so the package, installed from its sources, isn't seen.
    with open(os.path.join(own, "others.pth"), "w") as file:
        file.write(sysconfig.get_path("purelib"))
    run(python, "-c", "import torch, ipywidgets; import importlib.util as u\n"
        "assert not u.find_spec('attention')", cwd=tmp_path)  # fmt: skip
    return python


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name == QUICK else pytest.mark.weekly)
        for name in PAGES
    ],
)
@pytest.mark.site
def test_a_finished_notebook_needs_nothing_beside_it(
    name, repository, python, tmp_path
):
    folder, commit = repository
    notebook = address.with_cell(copy.deepcopy(PAGES[name].notebook), URL, commit)
    for cell in notebook.cells:
        restore(cell.get("outputs", []))
    installs = next(c for c in notebook.cells if address.is_install(c))
    installs.metadata.tags.append("nbval-ignore-output")  # pip's words
    alone = tmp_path / "alone"
    alone.mkdir()
    nbformat.write(notebook, alone / "page.ipynb")
    run(
        python, "-m", "pytest", "-q", "-p", "nbval.plugin", "-c", "/dev/null",
        "--rootdir", alone, "--nbval", "--nbval-current-env",
        "--nbval-sanitize-with", ROOT / "tests" / "nbval.cfg", "page.ipynb",
        cwd=alone, env={
            **os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PIP_NO_BUILD_ISOLATION": "0",  # that is, none: hatchling is here
            "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_VALUE_0": URL,
            "GIT_CONFIG_KEY_0": f"url.file://{folder}.insteadOf",
        },
    )  # fmt: skip
    said = run(python, "-c", "import attention; print(attention.__file__)", cwd=alone)
    assert said.startswith(str(tmp_path / "venv"))
