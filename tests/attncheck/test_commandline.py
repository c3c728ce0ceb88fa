"""``python -m attncheck`` and the fixture for other test suites."""

import subprocess
import sys
from pathlib import Path

import pytest

import attention
from attncheck import CheckFailed
from attncheck.commandline import main
from attncheck.loading import load
from attncheck.mistakes import BASES, HEADER, PLANTED
from attncheck.probes import storage
from attncheck.pytest_plugin import check_attention  # noqa: F401 (a fixture)

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
    sizes = ["--d-in", "12", "--d-out", "24", "--num-heads", "6", "--dropout", "0.1"]
    assert main([f"{write(RIGHT)}:Attention", *sizes, "--context-length", "10"]) == 0
    out = capsys.readouterr().out
    assert "d_in=12, d_out=24, context_length=10, dropout=0.1, num_heads=6" in out
    assert "26 of 26 tests passed" in " ".join(out.split())


def test_what_each_of_several_classes_needs_is_loaded_once(write, monkeypatch, capsys):
    loaded = []  # of this process; each class has one of its own
    monkeypatch.setattr(storage, "load", lambda: loaded.append("here"))
    one, other = write(RIGHT), write(RIGHT, "other.py")
    assert main([one]) == 0
    assert loaded == []
    assert main([one, other]) == 0
    assert loaded == ["here"]
    assert "2 classes: 2 passed" in capsys.readouterr().out


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
    assert "26 of 26 tests passed" in " ".join(done.stdout.split())


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
