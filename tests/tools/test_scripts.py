"""What the scripts of the tools do beside their libraries: arguments, limits, exits."""

import sys

import pytest

from tools import notebooks, pdf, repository


@pytest.mark.parametrize("tool", [notebooks, pdf, repository])
def test_a_tool_says_what_it_is_for(tool, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tool", "--help"])
    with pytest.raises(SystemExit) as ended:
        tool.main()
    assert ended.value.code == 0
    told = " ".join(capsys.readouterr().out.split())
    assert tool.__doc__.splitlines()[0] in told
    assert len(told) > 100
