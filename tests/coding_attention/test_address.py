"""The cell that installs the package where a page is run, and its address."""

import os
import re
import subprocess
import sys
import tomllib
from importlib import util

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from coding_attention import address
from tests.book.pages import ROOT

URL = "https://github.com/some-org/some-name"


def ran(code, monkeypatch, folder, missing=()):
    """What an install cell does in a folder: the lines of %pip, and its error."""
    calls, find = [], util.find_spec
    monkeypatch.setattr(
        util, "find_spec", lambda name: None if name in missing else find(name)
    )
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)

    class Shell:
        def run_line_magic(self, name, line):
            calls.append(f"{name} {line}")

    python = TransformerManager().transform_cell(code)
    try:
        exec(python, {"get_ipython": Shell})
    except ImportError as error:
        calls.append(str(error))
    return calls


def test_install_cell_leaves_an_installed_package_alone(monkeypatch, tmp_path):
    assert ran(address.source(URL), monkeypatch, tmp_path) == []
    assert ran(address.source(""), monkeypatch, tmp_path) == []


@pytest.mark.parametrize("missing", ["attncheck", "safetensors", "ipywidgets"])
def test_install_cell_installs_what_is_missing(missing, monkeypatch, tmp_path):
    (call,) = ran(address.source(URL, "1a2b"), monkeypatch, tmp_path, {missing})
    assert call == f'pip install --quiet "coding-attention[pages] @ git+{URL}@1a2b"'
    (said,) = ran(address.source(""), monkeypatch, tmp_path, {missing})
    assert "in a copy of the book's repository, run pip install '.[pages]'" in said


def test_install_cell_takes_a_release_once_there_is_one(monkeypatch, tmp_path):
    monkeypatch.setattr(address, "RELEASED", "0.1.0")
    for url in ("", URL):
        (call,) = ran(address.source(url), monkeypatch, tmp_path, {"attncheck"})
        assert call == 'pip install --quiet "coding-attention[pages]==0.1.0"'


OTHERS = {
    "a file of the reader's": ("attention.py", []),
    "the index's": (
        "attention/__init__.py", ["pip uninstall --quiet --yes attention"]
    ),
}  # fmt: skip


@pytest.mark.parametrize("whose", OTHERS)
def test_install_cell_knows_another_attention_without_importing_it(
    whose, monkeypatch, tmp_path
):
    name, first = OTHERS[whose]
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("raise SystemExit('imported')")
    if first:
        (tmp_path / "attention-5.0.0.dist-info").mkdir()
        info = tmp_path / "attention-5.0.0.dist-info" / "METADATA"
        info.write_text("Metadata-Version: 2.1\nName: attention\nVersion: 5.0.0\n")
    monkeypatch.delitem(sys.modules, "attention", raising=False)
    *before, install, said = ran(address.source(URL), monkeypatch, tmp_path)
    assert before == first
    assert install.startswith("pip install")
    # Here, that changed nothing.
    assert said.startswith(f"{tmp_path / name} hides the book's package")


@pytest.mark.parametrize("name", ["attention.py", "attention/__init__.py"])
def test_a_file_of_that_name_is_named_outside_of_the_pages_too(name, tmp_path):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    code = "import sys; sys.path[0] = sys.argv[1]; import coding_attention"
    ran = subprocess.run(
        [sys.executable, "-c", code, tmp_path], env=os.environ | {"PYTHONPATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = ran.stderr.splitlines()[-1]
    assert re.search(f"ImportError.*{tmp_path}/attention.* hides the book's", said)


def test_install_cell_looks_for_all_that_the_pages_need():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = re.search('needed = "(.*)"', address.SOURCE)[1].split()
    extra = [r.partition(">")[0] for r in project["optional-dependencies"]["pages"]]
    # PyYAML's module has another name, and comes with the install of the others.
    extra.remove("pyyaml")
    assert needed == ["attncheck", "coding_attention", *extra]


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        (URL, (URL, "some-org", "some-name")),
        (URL + ".git", (URL, "some-org", "some-name")),
        (URL + "/", (URL, "some-org", "some-name")),
    ],
)
def test_addresses_are_understood(text, parsed):
    assert address.parse_url(text) == parsed


@pytest.mark.parametrize(
    "text", ["", "github.com/a/b", "https://gitlab.com/a/b", URL + "/x"]
)
def test_other_addresses_are_refused(text):
    with pytest.raises(ValueError, match="such as https"):
        address.parse_url(text)


def test_site_of_a_repository():
    assert address.pages_site("Org", "book") == "https://org.github.io/book"
    assert address.pages_site("Org", "org.github.io") == "https://org.github.io"
