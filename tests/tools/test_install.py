"""What `make` installs, with what, and on which Pythons."""

import subprocess
import sys
import tomllib
from importlib import metadata

import pytest
from packaging.specifiers import SpecifierSet

from tests.book.pages import ROOT
from tools import install

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.fixture
def run(monkeypatch):
    """A function that installs, with the commands that fail and pip's settings.

    It gives every command run, without the interpreter that runs it.
    """

    def run_main(what, fails=(), settings=b"global.cert='/etc/cert.pem'\n"):
        ran = []

        def fake_run(command, capture_output=False, **_):
            ran.append(" ".join(command[2:]))
            status = int(any(word in ran[-1] for word in fails))
            if not capture_output:
                sys.stderr.write("WARNING: no network")
            return subprocess.CompletedProcess(command, status, settings, b"no network")

        monkeypatch.setattr(install.subprocess, "run", fake_run)
        monkeypatch.setattr(sys, "argv", ["install", *what.split()])
        monkeypatch.delenv("NEWEST", raising=False)
        install.main()
        return [c for c in ran if "config" not in c]

    return run_main


def test_the_site_is_installed_by_uv_without_pytorch(run, capsys):
    get_uv, site = run("site")
    assert get_uv.endswith("install -c constraints.txt uv")
    assert site.startswith("uv pip install --system-certs")
    book = " ".join(PROJECT["optional-dependencies"]["book"])
    assert site.endswith(f"--python {sys.executable} -c constraints.txt {book}")
    assert "torch" not in site
    assert capsys.readouterr().out == ""


def test_all_begins_with_pytorch_by_pip(run):
    torch, _, everything = run("all")
    assert torch.startswith("pip")
    assert torch.endswith("install -q -c constraints.txt torch")
    assert everything.endswith("-c constraints.txt -e .[test]")


@pytest.mark.parametrize("fails", [("uv pip",), ("txt uv",)])
def test_pip_installs_where_uv_fails_or_is_not_to_be_had(run, fails, capsys):
    *_, last = run("site", fails)
    assert last.startswith("pip")
    assert "install -q -c constraints.txt jupyter-book" in last
    said = capsys.readouterr()
    assert "pip" in said.out
    assert said.err == "", "it was installed, so there's nothing to warn of"


@pytest.mark.parametrize(
    ("setting", "installer"),
    [
        ("global.index-url='https://a.example'", "pip"),  # uv would not read these
        (":env:.no-index='1'", "pip"),
        # As in the workflows, whose second index has PyTorch's CPU builds alone.
        (":env:.extra-index-url='https://a.example'", "uv"),
    ],
)
def test_an_index_of_pips_own_is_obeyed(run, setting, installer):
    *_, last = run("site", settings=setting.encode())
    assert last.startswith(installer)


def test_what_pip_cannot_install_either_stops(run):
    with pytest.raises(SystemExit, match="no network"):
        run("site", fails=("jupyter-book",))


def pinned():
    """The installed distributions whose version is that of constraints.txt."""
    for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines():
        name, _, version = line.partition("==")
        try:
            found = metadata.distribution(name) if version else None
        except metadata.PackageNotFoundError:
            continue
        if found and found.version.partition("+")[0] == version:
            yield found


def test_every_pin_installs_on_every_python_we_promise():
    newest = max(c.split()[-1] for c in PROJECT["classifiers"] if ":: 3." in c)
    for found in pinned():
        allowed = SpecifierSet(found.metadata.get("Requires-Python") or "")
        for python in ("3.11.0", f"{newest}.0"):
            assert python in allowed, f"{found.name} {found.version}: not on {python}"
    assert SpecifierSet(PROJECT["requires-python"]) == SpecifierSet(">=3.11")
    assert "torch" in {found.name for found in pinned()}
