"""``python -m attncheck`` and the fixture for other test suites."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import attention
from attncheck import CheckFailed
from attncheck.commandline import main
from attncheck.loading import load
from attncheck.pytest_plugin import check_attention  # noqa: F401 (a fixture)
from coding_attention.gallery.planted import BASES, HEADER, PLANTED

ROOT = Path(__file__).parents[2]
RIGHT = HEADER + BASES["multi_head"][0]


@pytest.fixture
def write(tmp_path):
    def write(text, name="mine.py"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def test_a_right_class_ends_with_status_0(write, capsys):
    sizes = ["--d-in", "12", "--d-out", "24", "--num-heads", "6"]
    sizes += ["--set", "dropout=0.1"]
    assert main([f"{write(RIGHT)}:Attention", *sizes, "--context-length", "10"]) == 0
    out = capsys.readouterr().out
    assert "d_in=12, d_out=24, context_length=10, dropout=0.1, num_heads=6" in out
    assert "causal, 6 heads of 4, weights by names" in " ".join(out.split())


def test_of_several_classes_each_is_told_and_the_worst_counts(write, capsys):
    one, other = write(RIGHT), write(PLANTED["scale_missing"].source(), "other.py")
    assert main([one, other]) == 1
    assert "2 classes: 1 passed, 1 failed" in capsys.readouterr().out
    assert main([str(Path(one).parent)]) == 1
    assert "2 classes: 1 passed, 1 failed" in capsys.readouterr().out


def test_with_v_it_tells_all_tests_and_what_each_did(write, capsys):
    assert main([write(PLANTED["scale_missing"].source()), "-v"]) == 1
    out = capsys.readouterr().out
    for words in ("   Means  ", "   Test  ", "   Done  ", "expected weights", "Tests",
                  "   passed      state between calls"):  # fmt: skip
        assert words in out


def test_the_help_fits_on_a_screen(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 30
    for option in ("--rope", "--window", "--reference", "--weights", "--call",
                   "--causal", "--no-causal", "--json", "-v"):  # fmt: skip
        assert any(option in line for line in lines), option


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        (["--format", "sarif"], "--json"),
        (["--softcap=30"], "--reference"),
        (["--alibi"], "--bias"),
        (["--select", "ATT2"], "--json"),
    ],
)
def test_an_option_that_is_gone_says_what_replaces_it(write, capsys, words, instead):
    with pytest.raises(SystemExit) as ended:
        main([write(RIGHT), *words])
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert f"{words[0].partition('=')[0]} is no option any more" in told
    assert instead in told.splitlines()[-1]


def test_declared_options_reach_the_check(write, capsys):
    rope = HEADER + BASES["rope"][0]
    path = write(rope, "rope.py")
    assert main([path, "--rope", "halves,10000"]) == 0
    assert main([path, "--rope", "halves,500000"]) == 1
    assert "wrong frequencies" in capsys.readouterr().out
    assert main([path, "--rope", "halves,x"]) == 2
    assert main([write(RIGHT), "--window", "3"]) == 1
    assert "The window has no effect" in capsys.readouterr().out
    code = "lambda module, x: module(x)"
    assert main([write(RIGHT), "--call", code]) == 0
    assert main([write(RIGHT), "--reference", f"{write(RIGHT)}:Attention"]) == 0
    assert main([write(RIGHT), "--reference", "none"]) == 3
    assert main([write(RIGHT), "--causal"]) == 0


def test_a_code_is_explained_by_number_or_name(capsys):
    for word in ("ATT307", "att307", "scale_missing"):
        assert main(["--explain", word]) == 0
        out = capsys.readouterr().out
        assert "- weights = torch.softmax(scores, dim=-1)" in out
    assert main(["--explain", "ATT399"]) == 2
    assert "Similar: ATT301" in capsys.readouterr().err


def test_a_wrong_class_ends_with_status_1(write, capsys):
    planted = PLANTED["scale_missing"]
    assert main([write(planted.source())]) == 1
    assert "1. The scores aren't scaled" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "target", "words"),
    [
        (RIGHT, "{}:Attentoin", "has no Attentoin. Its classes derived from"),
        (RIGHT, "{}:Attentoin", "nn.Module: Attention."),
        ("class A(:\n", "{}:A", "syntax error in line 1"),
        ("import no_such_module_here\n", "{}:A", "ModuleNotFoundError"),
        ("x = 1\n", "{}", "say which class"),
        ("x = 1\n", "{}:x", "got 1 (int)"),
        ("while True:\n    pass\n", "{}:A", "didn't finish within 0.3 s"),
        ("raise SystemExit(0)\n", "{}:A", "raised SystemExit"),
        (RIGHT, "{}_not_there.py:Attention", "there is no file"),
        (RIGHT, "no_such_module_here:Attention", "No module named"),
    ],
)
def test_unusable_input_ends_with_status_2(write, capsys, text, target, words):
    target = target.format(write(text))
    assert main([target, "--time-limit", "0.3"]) == 2
    captured = capsys.readouterr()
    assert " ".join(words.split()) in " ".join(captured.err.split())
    assert captured.out == ""


def test_other_arguments_and_no_causal(write, capsys):
    text = RIGHT.replace("dropout, num_heads", "rate, num_heads").replace(
        "nn.Dropout(dropout)", "nn.Dropout(rate)"
    )
    path = write(text)
    assert main([path]) == 2
    assert "it needs rate" in capsys.readouterr().err
    assert main([path, "--set", "rate=0.0"]) == 0
    assert main([path, "--set", "rate=0.0", "--no-causal"]) == 1
    capsys.readouterr()
    assert main([path, "--set", "rate"]) == 2
    assert "--set takes NAME=VALUE" in capsys.readouterr().err


def test_modules_can_be_named_by_their_import_path():
    assert load("attention.causal:CausalAttention") is attention.CausalAttention


def test_a_file_may_import_its_neighbors(write):
    write("WIDTH = 3\n", "neighbor_of_mine.py")
    cls = load(write("from neighbor_of_mine import WIDTH\n" + RIGHT) + ":Attention")
    assert cls.__name__ == "Attention"


def test_a_class_of_a_notebook_and_what_a_factory_returns_are_checked(write):
    cells = [{"cell_type": "code", "source": ["%matplotlib inline\n", RIGHT]},
             {"cell_type": "markdown", "source": ["Attention"]}]  # fmt: skip
    notebook = write(json.dumps({"cells": cells}), "mine.ipynb")
    assert main([f"{notebook}:Attention"]) == 0
    assert main([notebook, "--no-causal"]) == 1
    made = "\ndef make(heads):\n    return Attention(16, 16, 8, 0.0, heads)\n"
    assert main([f"{write(RIGHT + made)}:make(heads=2)"]) == 0


def test_as_a_program_it_runs_without_a_warning(write):
    command = [sys.executable, "-W", "error::RuntimeWarning", "-m", "attncheck"]
    done = subprocess.run(
        [*command, f"{write(RIGHT)}:Attention"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.startswith("PASSED")


def test_every_way_to_import_it_can_be_called():
    code = (
        "import attention\n"
        "assert attention.check(3).exit_status == 2\n"
        "from attncheck import check\n"
        "from attention import check as other\n"
        "assert check(3).exit_status == other(3).exit_status == 2\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_fixture_passes_and_fails(check_attention):  # noqa: F811
    assert check_attention(attention.CausalAttention).ok
    with pytest.raises(CheckFailed, match="no causal mask"):
        check_attention(attention.SelfAttention_v2)
