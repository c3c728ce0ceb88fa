"""What the scripts of the tools do beside their libraries: arguments, limits, exits."""

import sys

import pytest

from tools import install, notebooks, pdf, repository


@pytest.mark.parametrize("tool", [notebooks, pdf, repository])
def test_a_tool_says_what_it_is_for(tool, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tool", "--help"])
    with pytest.raises(SystemExit) as ended:
        tool.main()
    assert ended.value.code == 0
    told = " ".join(capsys.readouterr().out.split())
    assert tool.__doc__.splitlines()[0] in told
    assert len(told) > 100


@pytest.mark.parametrize(("what", "torch"), [("site", False), ("all", True)])
def test_pytorch_comes_first_and_only_where_it_is_needed(what, torch, monkeypatch):
    ran, given = [], []
    monkeypatch.setattr(sys, "argv", ["install", what])
    monkeypatch.delenv("NEWEST", raising=False)
    monkeypatch.setattr(install.subprocess, "run", lambda c, **_: ran.append(c))
    monkeypatch.setattr(install, "install", lambda *words: given.append(words))
    install.main()
    assert [command[-3:] for command in ran] == [["-c", "constraints.txt", "torch"]][
        : int(torch)
    ]
    assert given == [(install.wanted(what), install.PINNED)]
