"""What `make` installs, and with what."""

import subprocess
import sys
import tomllib

import pytest

from tests.book.pages import ROOT
from tools import install


@pytest.fixture
def commands(monkeypatch):
    """Every command that would run, in order; uv is there."""
    ran = []
    monkeypatch.setattr(install, "_runs", lambda command: not ran.append(command))
    return ran


def test_the_site_needs_no_pytorch():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert install.wanted("site") == project["project"]["optional-dependencies"]["book"]
    assert not [line for line in install.wanted("site") if "torch" in line]


def test_uv_installs_with_every_version_pinned(commands):
    install.install(["some-package"], install.PINNED)
    pip, uv = commands
    assert pip[1:4] == ["-m", "pip", "install"]
    assert pip[-3:] == ["-c", "constraints.txt", "uv"]
    assert uv[0].endswith("uv")
    assert uv[-3:] == ["-c", "constraints.txt", "some-package"]


def test_pip_installs_where_uv_does_not(monkeypatch, capfd):
    ran = []
    monkeypatch.setattr(install, "_runs", lambda command: "uv" in command[-1])
    monkeypatch.setattr(install.subprocess, "run", lambda c, **_: ran.append(c))
    install.install(["some-package"], install.PINNED)
    (command,) = ran
    assert command[1:4] == ["-m", "pip", "install"]
    assert command[-3:] == ["-c", "constraints.txt", "some-package"]
    assert "using pip" in capfd.readouterr().out


def test_what_pip_cannot_install_stops(monkeypatch):
    monkeypatch.setattr(install, "_runs", lambda command: False)
    monkeypatch.setattr(install, "PIP", [sys.executable, "-c", "raise SystemExit(3)"])
    with pytest.raises(subprocess.CalledProcessError):
        install.install(["some-package"], install.PINNED)


def test_a_missing_or_failing_program_does_not_run():
    assert not install._runs(["no-such-program"])
    assert not install._runs([sys.executable, "-c", "raise SystemExit(1)"])
    assert install._runs([sys.executable, "-c", ""])


@pytest.mark.parametrize("words", [[], ["pages"], ["site", "all"]])
def test_what_cannot_be_installed_is_told(words, monkeypatch, commands):
    monkeypatch.setattr(sys, "argv", ["install", *words])
    with pytest.raises(SystemExit, match="site"):
        install.main()
    assert commands == []


def test_newest_pins_pytorch_alone():
    assert install.pins("all", newest="") == ["-c", "constraints.txt"]
    assert install.pins("site", newest="1") == []
    (torch,) = install.pins("all", newest="1")
    assert torch.startswith("torch==2.")
