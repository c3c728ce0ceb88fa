"""Whatever a class or a file does, the answer is clear, and never green."""

import json

import pytest

from attncheck.commandline import main
from tests.attncheck.hostile import HOSTILE, LAYER


def test_there_are_enough():
    assert len(HOSTILE) >= 52
    assert len(set(HOSTILE.values())) == len(HOSTILE)


def test_the_layer_that_they_break_is_right(tmp_path, capsys):
    path = tmp_path / "mine.py"
    path.write_text(LAYER)
    assert main([f"{path}:Attention"]) == 0
    assert "PASSED" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "source"), HOSTILE.items(), ids=HOSTILE)
def test_the_answer_is_clear_and_not_green(tmp_path, capsys, monkeypatch, name, source):
    # A lock that is held in C can only be ended from outside: soon, as it never ends.
    locked = name == "holds_the_lock"
    monkeypatch.setattr("attncheck.commandline.SPARE", 1 if locked else 14)
    path = tmp_path / "mine.py"
    path.write_text(source)
    limit = "0.3" if locked else "1"
    status = main([f"{path}:Attention", "--time-limit", limit])
    captured = capsys.readouterr()
    text = " ".join((captured.out + captured.err).split())
    assert status in (1, 2, 3), text
    assert "os._exit, os.kill" not in text
    assert "Traceback" not in text
    assert "the checker itself failed" not in text, text
    # A finding with its line, or a sentence that says why nothing can be tested.
    not_judged = ("Seen", "To get a verdict", "Not compared")
    told = {1: ("Seen",), 2: ("NOT USABLE",), 3: not_judged}
    assert any(words in text for words in told[status]), text


def test_what_is_written_to_descriptor_1_is_no_part_of_the_report(tmp_path, capfd):
    path = tmp_path / "mine.py"
    path.write_text(HOSTILE["writes_to_descriptor_1"])
    assert main([f"{path}:Attention", "--json"]) == 3
    assert json.loads(capfd.readouterr().out)["verdict"] == "not judged"
