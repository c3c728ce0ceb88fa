"""What is built for the index: the wheel and the source distribution, file by file."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def hatch_build():
    spec = importlib.util.spec_from_file_location("hook", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The tracked files as they are now, and what hatchling makes of them."""
    pytest.importorskip("hatchling")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout: nothing says which files belong to it")
    tracked = {name for name in listed.stdout.split("\0") if (ROOT / name).is_file()}
    # A copy: this folder may hold what is not yet, or no longer, to be published.
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in tracked:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    # What lies about in a checkout and must not be published.
    for stray in (".git", ".venv/lib/a.py", ".venv-newest/b.py", "_build/c.html"):
        (source / stray).parent.mkdir(parents=True, exist_ok=True)
        (source / stray).write_text("")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    return tracked - {""}, out


def test_the_source_distribution_is_what_git_has_but_the_weights(built):
    tracked, out = built
    with tarfile.open(next(out.glob("*.tar.gz"))) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert names == tracked - {"theme/sentence/weights.js"} | {"PKG-INFO"}


def test_the_wheel_is_the_three_packages_and_their_notices(built):
    tracked, out = built
    with zipfile.ZipFile(next(out.glob("*.whl"))) as file:
        names = set(file.namelist())
    info = {name for name in names if ".dist-info/" in name}
    folders = ("attention/", "attncheck/", "coding_attention/")
    package = {name for name in tracked if name.startswith(folders)}
    assert names - info == package
    assert "attention/py.typed" in package
    assert {name.rpartition("/")[2] for name in info} == {
        "METADATA", "WHEEL", "RECORD", "entry_points.txt",
        "LICENSE", "LICENSE-TEXT", "NOTICE",
    }  # fmt: skip


def test_the_index_shows_what_it_is(built):
    """Hatchling refuses a classifier that the index does not know."""
    _, out = built
    with zipfile.ZipFile(next(out.glob("*.whl"))) as file:
        name = next(n for n in file.namelist() if n.endswith("/METADATA"))
        metadata = message_from_string(file.read(name).decode())
    classifiers = metadata.get_all("Classifier")
    pythons = [c.split()[-1] for c in classifiers if "Python :: 3." in c]
    tried = set()
    for name in ("ci", "systems"):  # which run make test
        text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text("utf-8")
        for line in re.findall(r"python(?:-version)?: (.*)", text):
            tried |= set(re.findall(r'"(3[.]\d+)"', line))
    assert pythons == sorted(tried)
    readme = metadata.get_payload()
    assert readme.startswith("# Coding attention")
    # Nothing leads to a file that the index does not have, address or not.
    assert [to for to in LINK.findall(readme) if not to.startswith(("http", "#"))] == []


def test_the_index_links_to_the_repository_once_it_has_an_address():
    url = "https://github.com/some-org/some-name"
    text = (ROOT / "README.md").read_text("utf-8")
    ours = {to for to in LINK.findall(text) if not to.startswith(("http", "#"))}
    linked = LINK.findall(hatch_build().complete_links(text, url))
    assert {to.partition("/main/")[2] for to in linked if url in to} == ours
    assert f"{url}/raw/main/docs/lab.png" in linked
    assert f"{url}/blob/main/docs/running.md#at-full-speed" in linked
