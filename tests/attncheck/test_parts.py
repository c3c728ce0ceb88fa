"""Small functions that the checker is made of, without checking a whole class."""

import ast
import inspect
import io
import json
import os
import queue
import re
import signal
import sys
import threading
from argparse import Namespace
from dataclasses import MISSING, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attncheck import (
    changes,
    checking,
    commandline,
    config,
    formats,
    isolated,
    limits,
    loading,
    recorded,
)
from attncheck.build import UnusableError
from attncheck.changes import base_recipe, pairs, recipes, table, triples
from attncheck.collector import Collector, NotCompared, SkipTest
from attncheck.commandline import _colored, _flags, _painted, _parser, main
from attncheck.given_reference import reference_from
from attncheck.layer import (
    Layer,
    Rope,
    described,
    document_of,
    memory_tokens,
    normalize,
    rotate,
)
from attncheck.limits import Worker, is_out_of_memory
from attncheck.loading import attention_classes, parts, unfinished
from attncheck.mistakes import MISTAKES
from attncheck.numbers import changed
from attncheck.parity import distance
from attncheck.reference import RIGHT
from attncheck.report import Finding, Report, Result, chosen, worst
from attncheck.source import Source
from attncheck.subject import CallFailed, Failure
from attncheck.surroundings import quiet, settings_kept

NAN, INF = float("nan"), float("inf")
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a second process")


def found(mistake, **changes):
    """Return a finding with the words of its mistake."""
    one = MISTAKES[mistake]
    words = {"title": one.title, "test": "t", "done": "d", "seen": "s", "means": "m",
             "line": "l", "page": one.page, "code": one.code}  # fmt: skip
    return Finding(mistake, **words | changes)


# Numbers


@pytest.mark.parametrize("close", [lambda *both: not changed(*both), recorded._close])
@pytest.mark.parametrize("odd", [0.0, NAN, INF, -INF])
def test_numbers_are_the_same_up_to_rounding_of_the_largest(close, odd):
    given = torch.tensor([odd, 0.0, 100.0])
    assert close(given, given.clone())
    assert close(given, given + torch.tensor([0, 5e-4, 0]))
    assert not close(given, given + torch.tensor([0, 0.1, 0]))
    assert not close(given, given + torch.tensor([0, 0, 1.0]))
    assert not close(given, given * -1)
    assert not close(given, torch.tensor([0.5, 0.0, 100.0]))
    assert not close(given, given[:2])
    assert close(given[:0], given[:0])


def test_a_distance_is_a_share_of_the_largest_number():
    expected = torch.tensor([[4.0, 1.0, NAN]])
    assert distance(expected + torch.tensor([0, 1.0, 0]), expected) == 0.25
    assert distance(expected.nan_to_num(), expected) == INF


# Processes and threads


@forks
def test_a_function_runs_in_a_process_that_is_gone_afterwards(capfd):
    child = isolated.isolated(os.getpid, 60)
    assert child != os.getpid()
    with pytest.raises(ChildProcessError):
        os.waitpid(child, os.WNOHANG)
    text = "x" * 3 * 2**16  # more than a pipe gives at once
    assert isolated.isolated(lambda: text, 60) == text
    assert isolated.isolated(torch.get_num_threads, 60) == 1
    isolated.isolated(lambda: os.write(1, b"out") + os.write(2, b"err"), 60)
    assert capfd.readouterr() == ("", "")


@forks
def test_a_process_without_a_result_says_how_it_ended():
    with pytest.raises(isolated.EndedError, match="status 7"):
        isolated.isolated(lambda: os._exit(7), 60)
    with pytest.raises(isolated.EndedError, match="signal SIGKILL"):
        isolated.isolated(lambda: os.kill(os.getpid(), signal.SIGKILL), 60)
    with pytest.raises(isolated.EndedError, match="status 0"):
        isolated.isolated(lambda: lambda: None, 60)  # which can't be sent


@forks
def test_only_a_process_that_takes_too_long_is_ended(monkeypatch):
    killed, kill = [], os.kill
    monkeypatch.setattr(
        isolated.os, "kill", lambda child, how: killed.append(how) or kill(child, how)
    )
    assert isolated.isolated(lambda: 3, 60) == 3
    assert killed == []

    def waits():
        signal.alarm(5)
        signal.pause()

    with pytest.raises(isolated.EndedError, match=r"no result after 0\.01 s"):
        isolated.isolated(waits, 0.01)
    assert killed == [signal.SIGKILL]


def test_in_a_kernel_and_without_fork_there_is_no_other_process(monkeypatch):
    shell = Namespace(kernel=None)
    ipython = Namespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    if hasattr(os, "fork"):  # a shell in a terminal has no kernel
        assert isolated.isolated(os.getpid, 60) != os.getpid()
    shell.kernel = "here"
    assert isolated.isolated(os.getpid, 60) == os.getpid()
    shell.kernel = None
    monkeypatch.delattr(os, "fork", raising=False)
    assert isolated.isolated(os.getpid, 60) == os.getpid()


def test_a_class_has_more_time_in_all_than_one_call(monkeypatch):
    def ended(job, seconds):
        raise isolated.EndedError(f"{seconds:g}")

    monkeypatch.setattr(checking, "isolated", ended)

    def given(limit, spare):
        report = checking.report_on(Namespace(time_limit=limit, target="mine"), spare)
        assert (report.usable, report.subject) == (False, "mine")
        return float(report.problem)

    assert given(10.0, 0.0) > 10
    assert given(10.0, 60.0) == given(10.0, 0.0) + 60
    assert given(20.0, 0.0) == 2 * given(10.0, 0.0)


def test_of_a_call_the_processors_seconds_count_or_a_third_of_the_clocks(monkeypatch):
    clock, own = iter([10, 40, 50, 53, 60, 61.5]), iter([1, 3, 3, 8, 8])
    times = Namespace(monotonic=lambda: next(clock), thread_time=lambda: next(own))
    monkeypatch.setattr(limits, "time", times)
    worker = Worker(60)
    assert worker.spent == 0
    assert worker.call(lambda: 3) == 3
    assert worker.spent == 10  # of the 30 s that went by, 2 of the processor
    worker.call(lambda: None)
    assert worker.spent == 10 + 5
    with pytest.raises(ZeroDivisionError):
        worker.call(lambda: 1 / 0)
    assert worker.spent == 15 + 0.5
    worker.close()
    assert not worker._thread.is_alive()


def test_a_call_that_hangs_is_left_behind_and_asked_to_stop():
    worker, begun = Worker(60), threading.Event()
    assert worker._thread.daemon  # it keeps no program from ending
    joined, worker._thread.join = worker._thread.join, pytest.fail

    def loop():
        begun.set()
        while True:
            pass

    worker._jobs.put((loop, queue.SimpleQueue()))
    assert begun.wait(60)
    worker._interrupt()  # as behind the limit of time
    joined(60)
    assert not worker._thread.is_alive()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory")
def test_memory_may_grow_by_four_gib():
    def take(gib):
        torch.empty(gib * 2**30, dtype=torch.uint8)

    with limits.memory():
        take(3)
        with pytest.raises(RuntimeError) as caught:
            take(5)
    assert is_out_of_memory(caught.value)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory")
@pytest.mark.parametrize(("soft", "kept"), [(-1, False), (2**62, False), (9, True)])
def test_a_lower_limit_of_memory_stays(monkeypatch, soft, kept):
    import resource

    told = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (soft, soft))
    monkeypatch.setattr(resource, "setrlimit", lambda which, pair: told.append(pair))
    with limits.memory(2**40):
        inside = list(told)
    if kept:
        assert told == []
    else:
        ((limit, hard),) = inside
        assert 2**40 < limit < 2**41
        assert (hard, told[1:]) == (soft, [(soft, soft)])


@pytest.mark.parametrize(
    ("error", "out"),
    [
        (MemoryError(), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: 8 bytes"), True),
        (RuntimeError("Storage size calculation overflowed with sizes=[9]"), True),
        (RuntimeError("CUDA out of memory. Tried to allocate 8 GiB"), True),
        (RuntimeError("shape '[1]' is invalid"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_out_of_memory_is_told_from_other_errors(error, out):
    assert is_out_of_memory(error) is out


# The surroundings


def test_nothing_printed_goes_to_a_terminal():
    with quiet():
        print("never seen")
        assert not sys.stdout.isatty()


def test_what_a_class_puts_in_the_place_of_pytorch_is_named_and_taken_back():
    softmax, relu = torch.softmax, F.relu

    def wrapper(inner):
        def other(*given):
            return inner(*given)

        other.__wrapped__ = inner  # as functools.wraps does
        return other

    # PyTorch itself wraps a function where it first needs its compiler.
    theirs = wrapper(relu)
    theirs.__code__ = theirs.__code__.replace(co_filename=torch.__file__)
    with settings_kept() as told:
        assert told() == []
        torch.softmax, F.relu = wrapper(softmax), theirs
        sys.path.append("there")
        assert told() == ["the path of imports", "torch.softmax"]
    assert torch.softmax is softmax
    assert "there" not in sys.path
    assert F.relu is theirs
    F.relu = relu


# Building


class Width(nn.Module):
    def __init__(self, d_in, causal=False):
        super().__init__()
        self.linear, self.causal = nn.Linear(d_in, d_in), causal

    def forward(self, x):
        return self.linear(x) * (1 if self.causal else 2), "weights"


class Renamed(Width):
    def __init__(self, d_in):
        super().__init__(d_in)
        self.other, self.linear = self.linear, None


def test_a_reference_is_built_like_the_class_and_takes_its_parameters():
    worker = Worker(60)
    source = Source(Width, {"d_in": 3}, True, worker)
    x, module = torch.ones(1, 2, 3), Width(3)
    right = reference_from(Width, source)
    assert torch.equal(right(module, x), module.linear(x))
    module.new = nn.Parameter(torch.ones(1))
    with pytest.raises(UnusableError, match="Missing: none; unexpected: new"):
        right(module, x)
    renamed = "Missing: linear.weight, linear.bias; unexpected: other.bias, other"
    with pytest.raises(UnusableError, match=renamed):
        right(Renamed(3), x)
    worker.close()


# The command line


def options_of(*words):
    return _parser().parse_args(words, Namespace(target="mine.py"))


LAYERS = [
    ({}, ""),
    ({"rope": True}, "--rope on"),
    ({"rope": {"pairing": "halves"}}, "--rope halves"),
    ({"rope": {"pairing": "neighbors", "way": "other"}}, "--rope neighbors,other-way"),
    (
        {"rope": {"pairing": "halves", "base": 500, "share": 0.5}},
        "--rope halves --rope-base 500 --rope-share 0.5",
    ),
    ({"window": 3, "first": 2}, "--window 3 --first 2"),
    ({"qk_norm": "rms", "norm_over": "all"}, "--qk-norm rms --norm-over all"),
    ({"residual": True}, "--residual"),
    ({"residual": "late"}, "--residual late"),
    ({"scale": "none"}, "--scale none"),
    ({"alibi": True, "softcap": 0.5}, "--alibi --softcap 0.5"),
]


@pytest.mark.parametrize(("layer", "words"), LAYERS)
def test_what_is_proposed_is_what_the_command_line_takes(layer, words):
    made = [word for name, value in layer.items() for word in _flags(name, value)]
    assert made == words.split()
    assert checking._layer(options_of(*made)) == layer


def test_words_of_the_command_line_for_layers():
    assert checking._layer(options_of("--qk-norm")) == {"qk_norm": True}
    assert checking._layer(options_of("--rope-base", "9")) == {"rope": {"base": 9}}
    assert checking._layer(options_of("--rope-share", "1")) == {"rope": {"share": 1}}
    assert _flags("scale", "1/d_head") == ["--scale", "1/d"]
    assert _flags("scale", "1") == ["--scale", "none"]
    with pytest.raises(SystemExit):
        options_of("--rope", "on,quarters")


def test_what_the_command_line_says_reaches_the_check(monkeypatch):
    taken = {}
    monkeypatch.setattr(checking, "load", lambda target, *rest: target)
    monkeypatch.setattr(
        checking, "checked", lambda cls, **given: taken.update(given) or Report(cls)
    )

    def given(*words):
        taken.clear()
        report = checking._checked(options_of(*words))
        assert report.usable, report.problem
        return dict(taken)

    assert given()["causal"]
    assert given("--set", "causal=True")["causal"]
    assert not given("--set", "causal=False")["causal"]
    assert not given("--no-causal")["causal"]
    sized = given("--d-in", "12")
    assert sized["d_in"] == 12
    assert "d_out" not in sized
    assert given("--reference", "none")["reference"] is False
    assert given("--reference", "mine.py:Right")["reference"] == "mine.py:Right"
    assert given("--call", "3 + 4")["call"] == 7
    assert "call" not in given()
    own = given("--set", "dtype=torch.float64", "--set", "n=2", "--set", "how=float64")
    assert own["own"] == {"dtype": torch.float64, "n": 2, "how": "float64"}


@pytest.mark.parametrize("wrong", ["rate", "rate 2=3", "=3"])
def test_a_setting_has_a_name_and_a_value(wrong):
    report = checking._checked(options_of("--set", wrong))
    assert report.exit_status == 2
    assert "NAME=VALUE" in report.problem


def test_the_targets_of_files_and_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "class Attention(Module): pass\nclass Attn(Module): pass\nclass B: pass\n"
    for name in ("src/mine.py", "src/.kept/mine.py", "mine.txt", "src/empty.py"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("" if "empty" in name else text)
    Path("bare").mkdir()
    both = ["src/mine.py:Attention", "src/mine.py:Attn"]
    assert checking.classes_of("src") == checking.classes_of("src/mine.py") == both
    for itself in ("src/mine.py:B", "nowhere.py", "src/empty.py", "bare", "mine.txt"):
        assert checking.classes_of(itself) == [itself]


@pytest.mark.parametrize(
    ("target", "both"),
    [
        ("mine.py:A", ("mine.py", "A")),
        ("mine.py", ("mine.py", "")),
        ("mine.py:", ("mine.py", "")),
        ("a.b:A.B", ("a.b", "A.B")),
        ("my:own/mine.py:A", ("my:own/mine.py", "A")),
        ("mine.py:make(h={2: 3})", ("mine.py", "make(h={2: 3})")),
        (r"C:\mine.py", (r"C:\mine.py", "")),
        (r"C:\mine.py:A", (r"C:\mine.py", "A")),
        (r"C:\mine.py:make(h={2: 3})", (r"C:\mine.py", "make(h={2: 3})")),
        ("a(1):b.ipynb", ("a(1):b.ipynb", "")),
        ("mine.py:3", ("mine.py:3", "")),
    ],
)
def test_the_parts_of_a_target(target, both):
    assert parts(target) == both


@pytest.mark.parametrize(
    ("classes", "found"),
    [
        ("A(Module)", ["A"]),
        ("A(nn.Module)", ["A"]),
        ("A(Module) B(A)", []),
        ("A(Module) MyAttn(A)", ["MyAttn"]),
        ("A(SelfAttention, Mixin)", ["A"]),
        ("Attention", []),
        ("Attention(Base)", []),
    ],
)
def test_the_classes_of_attention_in_a_file(tmp_path, classes, found):
    (tmp_path / "mine.py").write_text(
        "".join(f"class {one}: pass\n" for one in classes.replace(", ", ",").split())
    )
    assert attention_classes(tmp_path / "mine.py") == found


def test_a_file_knows_its_package(tmp_path):
    for name in ("pkg/__init__.py", "pkg/sub/__init__.py", "pkg/sub/mine.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    dotted = (tmp_path, ["pkg", "sub", "mine"])
    assert loading._package(tmp_path / "pkg/sub/mine.py") == dotted
    assert loading._package(tmp_path / "pkg/sub/__init__.py") == (
        tmp_path,
        dotted[1][:2],
    )
    assert loading._package(tmp_path / "mine.py") == (tmp_path, ["mine"])


def test_a_module_of_the_same_name_from_elsewhere_is_forgotten(tmp_path, monkeypatch):
    def known(name, file):
        monkeypatch.setitem(sys.modules, name, Namespace(__file__=file))
        loading._forget_namesakes(name.partition(".")[0], tmp_path)
        return name in sys.modules

    assert not known("made", "/elsewhere/made.py")
    assert known("made", str(tmp_path / "made.py"))
    assert known("made", None)
    assert known("json", "/elsewhere/json.py")
    assert known("torch", "/elsewhere/torch.py")
    for name in ("made.part", "madeleine"):
        monkeypatch.setitem(sys.modules, name, Namespace())
    assert not known("made", "/elsewhere/made.py")
    assert "made.part" not in sys.modules
    assert "madeleine" in sys.modules


@pytest.mark.parametrize(
    ("text", "defines"),
    [
        ("x = 3", True), ("x: int = 3", True), ("x = f()", False), ("f()", False),
        ("import a", True), ("def f(): g()", True), ("class A: x = f()", True),
        ("try:\n import a\nexcept ImportError: f()", True),
        ("try:\n import a\n f()\nfinally: pass", False),
    ],
)  # fmt: skip
def test_what_a_file_defines_is_no_call(text, defines):
    assert loading._defines(ast.parse(text).body[0]) is defines


def test_a_missing_name_is_no_mistake_of_a_class_whose_file_could_not_be_run():
    def told(seen, *notes, mistake="forward_raises"):
        report = Report("Mine", [found(mistake, seen=seen)], [Result("t", "failed")])
        unfinished(report, list(notes))
        return report

    report = told("It raised NameError: d.", "No data.")
    assert (report.exit_status, report.findings, report.results) == (2, [], [])
    assert report.problem.startswith("No data.")
    assert told("It raised NameError: d.").usable
    assert told("It raised TypeError: d.", "No data.").usable
    assert told("NameError", "No data.", mistake="mask_missing").usable
    unfinished(empty := Report("Mine"), ["No data."])
    assert empty.usable


class Screen(io.StringIO):
    def isatty(self):
        return True


def test_headlines_and_titles_are_colored_on_a_screen(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert _colored(Screen())
    assert not _colored(io.StringIO())
    long = Report(f"Mine({'d_in=16, ' * 12})", [found("mask_missing", title="Leaks")])
    reports = [(Report("Right"), "a.py"), (long, "b.py")]
    plain = "\n\n".join(str(report) for report, _ in reports)
    painted = _painted(plain, reports)
    assert "\x1b[32mRight: nothing wrong found" in painted
    assert "\x1b[31mMine(d_in=16" in painted
    assert "\x1b[1m1. Leaks" in painted
    assert painted.count("\x1b[0m") == 3
    assert re.sub(r"\x1b\[\d*m", "", painted) == plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert not _colored(Screen())


def test_where_a_report_goes(tmp_path, monkeypatch, capsys):
    passed, unusable = Report("Right"), Report("Bad", usable=False, problem="no class")

    def printed(*reports, output=None, form="text"):
        given = [(report, "mine.py") for report in reports]
        status = commandline._tell(given, Namespace(format=form, output=output))
        return status, *capsys.readouterr()

    line = "Right: nothing wrong found, 0 of 0 tests passed\n"
    assert printed(passed) == (0, line, "")
    assert printed(unusable)[:2] == (2, "")
    assert printed(passed, unusable)[2] == ""
    assert printed(unusable, form="json")[2] == ""
    file = tmp_path / "told.json"
    told = (2, "", "Bad: couldn't be tested\n")
    assert printed(unusable, output=file, form="json") == told
    assert json.loads(file.read_text())["problem"] == "no class"
    assert file.read_text().endswith("}\n")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for form, colored in (("text", True), ("json", False)):
        monkeypatch.setattr(sys, "stdout", Screen())
        commandline._tell([(passed, "")], Namespace(format=form, output=None))
        assert ("\x1b[" in sys.stdout.getvalue()) is colored


def test_an_interrupted_run_and_a_closed_pipe_end_as_in_a_shell(monkeypatch, capsys):
    def raising(error):
        def instead(arguments):
            raise error

        monkeypatch.setattr(commandline, "_main", instead)

    raising(KeyboardInterrupt())
    assert main([]) == 128 + signal.SIGINT
    assert "no report" in capsys.readouterr().err
    taken = []
    monkeypatch.setattr(commandline, "_main", taken.append)
    monkeypatch.setattr(sys, "argv", ["attention-check", "mine.py", "--strict"])
    main()
    assert taken == [["mine.py", "--strict"]]
    raising(BrokenPipeError())
    monkeypatch.setattr(sys, "stdout", io.StringIO())  # it has no descriptor
    assert (main([]), main()) == (1, 0)


@pytest.mark.parametrize("wanted", ["ATT307", "att307", "scale_missing", " ATT307 "])
def test_a_code_and_a_name_are_explained(wanted, capsys):
    assert main(["--explain", wanted]) == 0
    assert capsys.readouterr().out.startswith("ATT307 scale_missing [error]")


def test_of_an_unknown_code_the_similar_ones_are_told(capsys):
    assert main(["--explain", "att300"]) == 2
    told = capsys.readouterr().err
    assert "ATT307 scale_missing" in told
    assert "ATT201" not in told
    assert main(["--explain", "nothing"]) == 2
    assert "Similar: none." in capsys.readouterr().err


def test_the_settings_of_a_project_are_options(tmp_path, monkeypatch):
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path / "src")
    parser = _parser()

    def read(text, *words):
        (tmp_path / "pyproject.toml").write_text(text)
        options = parser.parse_args(list(words))
        return commandline._with_settings(parser, options, list(words))

    options, classes = read("[project]\nname = 'mine'\n", "mine.py")
    assert (options.targets, options.strict, classes) == (["mine.py"], False, {})
    table = "[tool.attncheck]\nrope = true\nqk_norm = 'rms'\nselect = ['A', 'B']\n"
    table += "d-in = 12\nset = {a = 1, b = 'c'}\nignore = 'ATT9'\nresidual = true\n"
    table += "config = ['e=5']\nstrict = true\n"
    options, classes = read(table, "--d-in", "14")
    assert (options.rope, options.qk_norm, options.select) == ("on", "rms", "A,B")
    assert (options.d_in, options.ignore, options.residual) == (14, "ATT9", True)
    assert options.set == ["a=1", "b='c'"]
    assert (options.config, options.strict) == (["e=5"], True)
    assert classes == {}
    options, classes = read("[tool.attncheck.classes.'a.py:A']\nnum_heads = 2\n")
    assert (options.num_heads, classes["a.py:A"].num_heads) == (None, 2)
    for wrong in ("no_such", "targets", "explain"):
        with pytest.raises(ValueError, match=wrong):
            read(f"[tool.attncheck]\n{wrong} = 3\n")


# Reports


LEAKS = {"seen": "50 % more:\nit √ leaks.", "title": "Leaks, all"}


@pytest.fixture
def reports(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    results = [
        Result("a", "failed", mistakes=("mask_missing", "scale_missing", "gone")),
        Result("b", "failed", mistakes=("init_too_large",)),
        Result("c", "not run", "no mask"),
        Result("d", "broken", "no device"),
        Result("e", "passed"),
    ]
    findings = [
        found("mask_missing", **LEAKS),
        found("scale_missing", place=(str(tmp_path / "mine.py"), 7, "scores = 1")),
        found("init_too_large", severity="warning", title="Large"),
        found("keeps_state", severity="note"),
    ]
    return {
        "failed": (Report("Mine", findings, results), "mine.py:Mine"),
        "unusable": (Report("Bad: 1", usable=False, problem="100 %"), "bad.py:Bad"),
        "judged": (Report("Other", not_compared="a gate", needed="write it"), "o.py:O"),
        "passed": (Report("Right", results=results[2:3] + results[4:]), "r.py:R"),
    }


def test_as_json_one_report_is_an_object_and_several_are_a_list(reports):
    failed = json.loads(formats.as_json([reports["failed"]]))
    assert [one["code"] for one in failed["findings"][:2]] == ["ATT201", "ATT307"]
    assert failed["findings"][1]["place"]["file"] == "mine.py"
    assert "place" not in failed["findings"][0]
    assert "expected_weights" not in failed["findings"][0]
    assert "√" in formats.as_json([reports["failed"]])  # as it is read
    both = json.loads(formats.as_json([reports["passed"], reports["unusable"]]))
    assert both["exit_status"] == 2
    assert [one["verdict"] for one in both["reports"]] == ["passed", "not usable"]


def test_as_sarif_runs_that_tell_nothing_are_notified(reports):
    def run(*names):
        (one,) = json.loads(formats.as_sarif([reports[name] for name in names]))["runs"]
        return one

    levels = [one["level"] for one in run("failed")["results"]]
    assert levels == ["error", "error", "warning", "note"]
    first, second = (one["locations"][0]["physicalLocation"]
                     for one in run("failed")["results"][:2])  # fmt: skip
    assert first == {"artifactLocation": {"uri": "mine.py"}, "region": {"startLine": 1}}
    assert second["region"] == {"startLine": 7, "snippet": {"text": "scores = 1"}}
    (ended,) = run("passed", "failed")["invocations"]
    assert ended == {"executionSuccessful": True}
    (ended,) = run("passed", "unusable", "judged")["invocations"]
    assert not ended["executionSuccessful"]
    told = [(one["level"], one["message"]["text"])
            for one in ended["toolExecutionNotifications"]]  # fmt: skip
    judged = "Other was not judged: a gate. write it"
    assert told == [("error", "100 %"), ("warning", judged)]


def test_what_broke_in_the_checker_is_not_judged():
    report = Report("Mine", results=[Result("d", "broken", "no device")])
    assert "a test broke inside the checker." in formats.as_github([(report, "m.py")])
    report.command, report.needed = "attention-check", "write it"
    assert formats.as_github([(report, "m.py")]).count("checker. attention-check") == 1


def test_as_github_each_finding_is_one_line_with_its_place(reports):
    lines = formats.as_github([reports["failed"]]).split("\n")
    assert [line.partition(" ")[0] for line in lines[:4]] == [
        "::error", "::error", "::warning", "::notice"]  # fmt: skip
    where = "file=mine.py,line=1,title=ATT201 Leaks%2C all::50 %25 more:%0Ait √ leaks."
    assert lines[0].startswith(f"::error {where}%0A")
    assert "file=mine.py,line=7,title=ATT307 " in lines[1]
    assert lines[4:] == [reports["failed"][0].headline()]
    assert formats.as_github([reports["passed"]]).startswith("Right: nothing wrong")
    told = formats.as_github([reports["unusable"]])
    assert told == "::error title=Bad%3A 1::100 %25"
    place = "::error file=o.py,line=1,title=Not judged::Other was not judged: a gate."
    assert formats.as_github([reports["judged"]]).startswith(place)
    odd = formats.as_github([(reports["judged"][0], "a,b.py:O")])
    assert odd.startswith("::error file=a%2Cb.py,line=1,")


def test_as_junit_counts_are_those_of_the_cases(reports):
    whole = ElementTree.fromstring(formats.as_junit(list(reports.values())))
    counts = [
        [int(suite.get(name)) for name in ("tests", "failures", "errors", "skipped")]
        for suite in whole
    ]
    assert counts == [[5, 1, 1, 1], [1, 0, 1, 0], [1, 0, 1, 0], [2, 0, 0, 1]]
    assert [whole.get(name) for name in ("tests", "failures", "errors")] == list("913")
    inside = [[child.tag for child in case] for case in whole[0]]
    assert inside == [["failure"], [], ["skipped"], ["error"], []]
    failure = whole[0].find(".//failure")
    assert failure.get("type") == "ATT201"
    assert failure.get("message").startswith("ATT201 Leaks, all; ATT307 ")
    assert whole[1].find(".//error").get("message") == "100 %"
    assert "not judged: a gate" in whole[2].find(".//error").get("message")
    reports["failed"][0].strict = True
    strict = ElementTree.fromstring(formats.as_junit([reports["failed"]]))
    assert strict.get("failures") == "2"


def test_the_address_of_a_code_is_on_the_homepage(monkeypatch):
    def given(*entries):
        held = Namespace(get_all=lambda name: list(entries) or None)
        monkeypatch.setattr(formats.metadata, "metadata", lambda name: held)
        return formats.address("ATT201")

    home = given("Source, https://git.test", "Homepage, https://book.test/")
    assert home == "https://book.test/book/codes.html#att201"
    assert given("Source, https://git.test") == given() == ""


def test_a_report_counts_in_its_headline(reports):
    failed, judged, passed = (reports[n][0] for n in ("failed", "judged", "passed"))
    told = "Mine: 4 findings, 1 of 4 tests passed, 1 not run, 1 broken inside the"
    assert failed.headline().startswith(told)
    assert judged.headline().startswith("Other: NOT JUDGED, 0 of 0 tests passed")
    assert (
        passed.headline()
        == "Right: nothing wrong found, 1 of 1 tests passed, 1 not run"
    )
    failed.not_compared = "a gate"
    assert "4 findings, not compared with attention" in failed.headline()
    warned = replace(judged, findings=[found("init_too_large", severity="warning")])
    assert "NOT JUDGED, 1 finding" in warned.headline()


def test_a_report_says_how_to_get_a_verdict_only_where_there_is_none(reports):
    judged, passed = reports["judged"][0], reports["passed"][0]
    assert "To get a verdict: write it." in str(judged)
    assert "To get a verdict, write it" in judged._repr_html_()
    judged.command = "attention-check --rope"
    assert "To get a verdict, run:\n   attention-check --rope" in str(judged)
    assert "run: <code>attention-check --rope" in judged._repr_html_()
    passed.needed = "write it"
    assert "verdict" not in str(passed) + passed._repr_html_()
    bare = replace(judged, command="", needed="")
    assert "verdict" not in str(bare) + bare._repr_html_()


def test_findings_are_numbered_from_one_and_each_test_says_why(reports):
    failed = reports["failed"][0]
    assert "\n1. Leaks, all [error ATT201]" in str(failed)
    assert "1. Leaks, all (error ATT201)" in failed._repr_html_()
    assert "   broken      d: no device" in str(failed)
    assert "<pre>" not in failed._repr_html_()
    long = replace(failed, notes=["one-long-word " * 9], problem='say "what"')
    assert "one-\n" not in str(long)
    assert "&quot;what&quot;" in long._repr_html_()
    assert str(replace(failed, subject=" ", results=[], findings=[])).strip()


@pytest.mark.parametrize(
    ("names", "status"),
    [("", 0), ("p", 0), ("pj", 3), ("puj", 2), ("pufj", 1), ("pj u", 2)],
)
def test_the_worst_of_several_counts(reports, names, status):
    held = {name[0]: report for name, (report, _) in reports.items()}
    assert worst([held[name] for name in names if name != " "]) == status


def test_findings_are_chosen_by_codes_and_names():
    one = found("scale_missing")
    for given in ("ATT307", "att3", "ATT2 ATT3", ["scale_missing"], "ATT3,ATT9"):
        assert chosen(one, select=given)
        assert not chosen(one, ignore=given)
    assert chosen(one)
    assert not chosen(one, select="ATT2")
    assert chosen(one, ignore="ATT2")
    assert not chosen(one, select="ATT3", ignore="scale_missing")


# Findings


def gathered(*names, **known):
    collector = Collector()
    collector.start("t")
    for name in names:
        collector.add(name, "done", f"{name} seen")
    vars(collector).update(known)
    return collector


def told(*names, **known):
    return [one.mistake for one in gathered(*names, **known).findings()]


def ended(error, *names):
    """Return how a test ends that tells names and then raises an error."""

    def probe(subject, collector):
        for name in names:
            collector.add(name, "done", "seen")
        if error:
            raise error

    collector = gathered("hangs")
    collector.run("test", probe, None)
    (result,) = collector.results
    return result.outcome, result.why, sorted({*collector.found} - {"hangs"})


RAISED = CallFailed("forward_raises", "it raised")
MANY = CallFailed("forward_raises", "no room")
MANY.many = True
LACKING = Failure("environment", "x")
BROKEN = "the checker itself failed (KeyError: 'x')"
ONE_TOKEN = CallFailed("forward_raises", "Expected more than 1 value per channel")


@pytest.mark.parametrize(
    ("error", "names", "expected"),
    [
        (None, (), ("passed", "", [])),
        (None, ("slow",), ("failed", "", ["slow"])),
        (SkipTest("no mask"), (), ("not run", "no mask", [])),
        (SkipTest("no mask"), ("slow",), ("failed", "", ["slow"])),
        (LACKING, (), ("not run", "this PyTorch can't run it: x", [])),
        (Failure("slow", "it waits"), (), ("failed", "", ["slow"])),
        (Failure("hangs", "again"), (), ("not run", "again", [])),
        (RAISED, (), ("failed", "", ["some_sizes_raise"])),
        (MANY, (), ("not run", "no room", [])),
        (ONE_TOKEN, (), ("not run", str(ONE_TOKEN), [])),
        (KeyError("x"), ("slow",), ("broken", BROKEN, ["slow"])),
    ],
)  # fmt: skip
def test_how_a_test_ends(error, names, expected):
    assert ended(error, *names) == expected


def test_why_it_was_not_compared_is_kept():
    def probe(subject, collector):
        raise NotCompared("a window", window=3)

    collector = Collector()
    collector.run("test", probe, None)
    assert (collector.not_compared, collector.proposal) == ("a window", {"window": 3})
    with pytest.raises(UnusableError):
        collector.run("test", reference_from, 3)


def test_what_is_worse_takes_the_place_of_a_warning():
    collector = gathered()
    collector.add("mask_missing", "d", "warned", "warning")
    (one,) = collector.findings()
    assert (one.severity, one.seen) == ("warning", "warned")
    collector.add("mask_missing", "d", "worse")
    collector.add("mask_missing", "d", "again", "warning")
    (one,) = collector.findings()
    assert (one.severity, one.seen) == ("error", "worse")
    collector._end("t", "passed")
    assert collector.results[0].mistakes == ("mask_missing",)


def test_of_a_class_built_otherwise_the_errors_count():
    other, collector = gathered("slow", "scale_missing", "init_missing"), gathered()
    other.add("mask_missing", "d", "s", stage="elsewhere")
    collector.take(other, "Built anew.", but=["slow"])
    assert [*collector.found] == ["scale_missing", "mask_missing"]
    assert collector.found["scale_missing"] == ("t", "Built anew. done",
                                                "scale_missing seen")  # fmt: skip
    assert collector.stages == {"mask_missing": "elsewhere"}


def test_signs_of_what_nobody_described_are_warnings():
    def severity(name, said=None, **known):
        collector = gathered(**known)
        collector.add(name, "d", "s", said)
        return collector.findings()[0].severity

    assert severity("past_unused") == "error"
    assert severity("past_unused", undeclared=True) == "warning"
    assert severity("past_unused", undeclared=True, compared=True) == "error"
    assert severity("past_unused", "note", undeclared=True) == "note"
    assert severity("mask_missing", undeclared=True) == "error"
    assert not Collector().rounded


def test_findings_come_in_the_order_in_which_to_mend_them():
    assert told("scale_missing", "mask_missing") == ["mask_missing", "scale_missing"]
    matched = told("scale_missing", "mask_missing", causes=("scale_missing",))
    assert matched == ["scale_missing", "mask_missing"]
    assert told("mask_missing", "slow") == ["slow", "mask_missing"]
    assert told("batch_first", "mask_missing") == ["mask_missing", "batch_first"]
    refused = ("some_sizes_raise", "mask_missing")
    assert told(*refused) == ["mask_missing", "some_sizes_raise"]
    early = ["some_sizes_raise", "changes_input", "mask_missing"]
    assert told(*reversed(early)) == early
    late = ["gradient_missing", "differs"]
    assert told(*late) == late
    assert told(*late, stage="scores") == late[::-1]
    assert told(*late[:1], "scale_missing", stage="scores")[0] == "scale_missing"


def test_what_follows_from_a_finding_is_not_told_again():
    assert told("differs", "scale_missing", "stays_behind") == [
        "scale_missing", "stays_behind"]  # fmt: skip
    assert told("differs", "stays_behind") == ["stays_behind", "differs"]
    assert told("mask_after_softmax", "mask_missing") == ["mask_after_softmax"]
    assert told("tokens_not_mixed", "projection_mixed_up") == ["tokens_not_mixed"]
    assert told("projection_mixed_up") == ["projection_mixed_up"]
    causes = ("scale_missing", "mask_missing", "slow")
    both = gathered(*causes[:2], "future_leaks", "stays_behind", causes=causes)
    first, second, third = both.findings()
    assert first.seen == "mask_missing seen future_leaks seen"
    assert (second.seen, third.mistake) == ("scale_missing seen", "stays_behind")


def test_what_gives_the_same_output_is_told_where_something_is_wrong():
    likely = {"mask_missing": ("compared", "It equals that.")}
    assert told("init_missing", likely=likely) == ["init_missing"]
    (one,) = gathered("future_leaks", likely=likely).findings()
    assert one.mistake == "mask_missing"
    assert one.seen == "It equals that. future_leaks seen"


def test_a_finding_names_its_stage():
    names = ("differs", "stays_behind", "slow")
    collector = gathered(*names, stage="scores", stages={"slow": "time"})
    stages = {one.mistake: one.stage for one in collector.findings()}
    usual = MISTAKES["stays_behind"].stage
    assert stages == {"differs": "scores", "stays_behind": usual, "slow": "time"}
    assert usual


# Mistakes as changes of a recipe


def rows_of(causal=True, **layer):
    return table(causal, Layer(**layer))


def values_of(field, **layer):
    return {row[1].get(field) for row in rows_of(**layer)}


def test_the_changes_that_are_tried_are_those_that_the_layer_can_have():
    plain = rows_of()
    assert {"mask_missing", "scale_missing", "input_added"} <= {row[0] for row in plain}
    assert not {"rotated", "bias", "window", "norm"} & {k for r in plain for k in r[1]}
    open_rows = rows_of(causal=False)
    assert open_rows
    assert not changes.MASKING & {key for row in open_rows for key in row[1]}
    assert values_of("add_input", residual=True) == {None}
    assert True in values_of("add_input")
    assert {"1", "1/d_head"} <= values_of("scale")
    assert "1/d_head" not in values_of("scale", scale="1/d_head")
    assert "1" in values_of("scale", scale="1/d_head")
    rotated = values_of("rotated", rope=Rope("halves"))
    assert not {"halves", "base 10000"} & rotated
    assert {"neighbors", "base 100"} <= rotated
    assert "width" in values_of("norm", qk_norm="rms")
    over_all = values_of("norm", qk_norm="rms", norm_over="all")
    assert "width" not in over_all
    assert len(over_all) > 1
    assert {"q", "qk"} <= values_of("prenormed", prenorm="rms")
    assert "qk" in values_of("prenormed", prenorm="rms", memory=6)
    assert "q" not in values_of("prenormed", prenorm="rms", memory=6)
    late = {"residual": "late", "postnorm": "layer"}
    added = values_of("residual", residual=True, postnorm="layer")
    assert "behind the norm" in added
    assert "input" not in added
    assert "input" in values_of("residual", **late)
    assert "behind the norm" not in values_of("residual", **late)


def changed_fields(recipe, base):
    return {name for name, value in vars(recipe).items() if value != vars(base)[name]}


def test_each_single_mistake_is_one_recipe():
    singles = recipes(True, 16, Layer())
    assert all(changed_fields(recipe, RIGHT) for _, recipe, _ in singles)
    fills = [one.fill for names, one, words in singles
             if "hidden scores set to -" in words]  # fmt: skip
    # Before the scores are divided by √d_head, or behind that.
    assert {-1, -2, -3, -5, -8, -10, -20} <= {*fills}
    assert {-0.25, -0.5, -0.75, -1.25, -2, -2.5, -5} <= {*fills}
    axes = {(name, one.softmax) for (name,), one, _ in singles if one.fill == -1e9}
    assert {("softmax_over_heads", 1), ("softmax_over_batch", 0)} <= axes
    unmasked = recipes(False, 16, Layer())
    ((unwanted, masked, _),) = [one for one in unmasked if one[1].mask != "none"]
    assert (unwanted, masked) == (("mask_unwanted",), RIGHT)


@pytest.mark.parametrize("many", [pairs, triples])
@pytest.mark.parametrize("layer", [Layer(), Layer(rope=Rope())])
def test_several_mistakes_change_all_that_each_of_them_changes(many, layer):
    first = {}
    for name, change, words in table(True, layer):
        first.setdefault(name, (change, words))
    base, seen = base_recipe(True, layer), set()
    for names, recipe, words in islice(many(True, layer), 3000):
        fields = [key for name in names for key in first[name][0]]
        assert len(fields) == len({*fields}), names
        assert {*fields} >= changed_fields(recipe, base), names
        assert all(vars(recipe)[k] == v for n in names for k, v in first[n][0].items())
        assert words == " and ".join(first[name][1] for name in names)
        # Nothing of attention would be left.
        assert not {"attend", "one_head"} <= {*fields}
        assert not {"one_head", "softmax"} <= {*fields} or recipe.softmax != 1
        seen.add(frozenset(names))
    tried = {frozenset(first[name][0]) for names in seen for name in names}
    assert {frozenset(["mask"]), frozenset(["scale"]), frozenset(["one_head"])} <= tried
    assert (frozenset(["rotated"]) in tried) == bool(layer.rope)


# Arguments that nobody gave


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vis", False), ("decoder", False), ("use_bias", False), ("scale_scores", True),
        ("initializer_range", 0.02), ("logit_cap", 50.0), ("lora_alpha", 1),
        ("lora_rank", 0), ("sr_ratio", 1), ("attn_drop", 0.0), ("rope_theta", 1e4),
        ("layer_idx", 0), ("n_layers", 2), ("partial_rotary_factor", 1.0),
        ("gamma", 1.0), ("num_things", 1), ("num_kv_heads", 3), ("num_heads", 6),
        ("head_dim", 7), ("embed_dim", 42), ("max_len", 9), ("dtype", torch.float32),
    ],
)  # fmt: skip
def test_an_argument_is_guessed_by_its_name_so_that_it_does_nothing_else(name, value):
    sizes = {"num_heads": 6, "d_in": 42, "context_length": 9}
    assert config.guess(name, sizes) == (True, value)
    assert config.is_head_width(name) == (name == "head_dim")
    assert config.is_kv_heads(name) == (name == "num_kv_heads")
    assert config.is_unsure(name) == (name == "num_things")


def test_where_sizes_are_unknown_there_is_one_head():
    sizes = {"num_heads": None, "d_in": None}
    assert config.guess("num_kv_heads", sizes) == (True, 1)
    assert config.guess("head_dim", sizes) == (True, 16)
    assert config.guess("vocab_size", sizes)[1] > 8  # ids of a few tokens
    assert config.guess("zzz", sizes) == (False, None)


class Plain:
    width, heads = 8, 2
    _hidden = 3

    def method(self):
        """It is no setting."""

    @property
    def half(self):
        """It is none, either."""


class More(Plain):
    heads = 4


@dataclass
class Data:
    width: int
    heads: int = 2
    names: list = field(default_factory=list)
    made: int = field(init=False, default=3)


class Named(NamedTuple):
    width: int = 8


def settings_of(kind):
    return config.fields_of(config._settable(kind))


def test_the_settings_of_a_config_are_read_from_its_class():
    assert settings_of(More) == {"width": 8, "heads": 4}
    assert settings_of(Data) == {"width": MISSING, "heads": 2}
    assert settings_of(Named) == {"width": 8}
    assert config._settable(More)(heads=1).heads == 1
    assert config._settable(Data) is Data
    assert config._settable(None) is None
    assert config.fields_of(dict) is None  # nothing is told

    def open_end(width=3, **rest): ...

    assert config.fields_of(open_end) == {"width": 3}
    assert config.fields_of(lambda **rest: None) is None


def test_a_config_is_found_by_name_or_by_its_class():
    def found(**annotated):
        def construct(self, **given): ...

        construct.__signature__ = inspect.Signature(
            [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, **how)
             for name, how in annotated.items()]
        )  # fmt: skip
        parameters = construct.__signature__.parameters
        return config.parameter_of(type("A", (), {"__init__": construct}), parameters)

    assert found(dim={"annotation": int}, cfg={"annotation": Data}) == ("cfg", Data)
    assert found(given={"annotation": Data}) == ("given", Data)
    assert found(given={"annotation": Data, "default": None}) == (None, None)
    assert found(config={"default": None}) == (None, None)
    assert found(dim={}) == (None, None)
    assert found(settings={"annotation": dict}) == ("settings", None)


@pytest.mark.parametrize(
    ("known", "kind"),
    [
        ({"Config": Data, "Data": Plain}, Data),
        ({"Config": Data, "OtherConfig": Plain}, Data),
        ({"Args": Named, "parse_args": len}, Named),
        ({"ModelCfg": Plain, "ConfigError": KeyError}, Plain),
        ({"Config": Data, "OtherConfig": dataclass(type("B", (), {}))}, None),
        ({"Other": Data}, None),
    ],
)
def test_the_one_class_of_a_file_that_is_named_like_a_config_is_its_config(known, kind):
    exec("def __init__(self, config): ...", known)
    assert config._kind_of(type("A", (), {"__init__": known["__init__"]})) is kind


def test_what_a_constructor_reads_of_its_settings_is_given_to_it():
    def build(settings):
        one = config.Config(**settings)
        assert [*one] == [*one.keys()] == [*settings]
        return one.num_heads, one["width"], one.unknown_flag, "other" in one

    known = {"num_heads": 4}
    made, unknown = config.asked_for(
        build, {"dropout": 0.5}, lambda name: (name in known, known.get(name)),
        {"num_heads": 4, "d_in": 24},
    )  # fmt: skip
    assert made == {"dropout": 0.5, "num_heads": 4, "width": 24, "unknown_flag": False}
    assert unknown == ["unknown_flag"]
    tried = []

    def raising(settings):
        tried.append(1)
        raise KeyError("dropout")  # though it is there

    made, _ = config.asked_for(raising, {"dropout": 0.5}, lambda name: (True, 1), {})
    assert (made, len(tried)) == ({"dropout": 0.5}, 1)


@pytest.mark.parametrize(
    ("name", "how", "may"),
    [("zzz", {}, True), ("zzz", {"annotation": int}, True), ("mask_zzz", {}, False),
     ("zzz", {"annotation": str}, False)],
)  # fmt: skip
def test_a_number_whose_name_says_nothing_may_be_a_width(name, how, may):
    one = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, **how)
    assert config.may_be_width(name, one) == may


def test_a_default_config_is_an_object():
    assert config.is_default("config", Plain())
    assert not config.is_default("config", Plain)
    assert not config.is_default("config", 3)
    assert not config.is_default("width", Plain())


# What a layer does besides attention


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "nothing else"),
        ({"rope": True}, "rotary positions (pairs of halves, base 10000)"),
        ({"rope": {"share": 0.5, "way": "other", "pairing": "neighbors", "base": 9}},
         "rotary positions (pairs of neighbors, base 9, 0.5 of each head, "
         "in the other direction)"),
        ({"rope": "neighbors other-way"},
         "rotary positions (pairs of neighbors, base 10000, in the other direction)"),
        ({"window": 1}, "a window of 1"),
        ({"memory": 1}, "a memory of 1 tokens"),
        ({"qk_norm": True}, "a norm of queries and keys (layer)"),
        ({"qk_norm": "rms", "norm_over": "all"},
         "a norm of queries and keys over all heads (rms)"),
        ({"prenorm": "l2", "residual": True},
         "a norm of the input (l2), the input added"),
        ({"postnorm": "rms", "residual": "late"},
         "a norm of the output (rms), the input added behind it"),
        ({"postnorm": "rms"}, "a norm of the output (rms)"),
        ({"sink": True}, "a learned sink for each head"),
        ({"sink": "zero"}, "a zero sink for each head"),
        ({"scale": "none"}, "scores multiplied by 1"),
        ({"scale": 0.5}, "scores multiplied by 0.5"),
        ({"scale": "1/sqrt(d)"}, "nothing else"),
        ({"bias": torch.ones}, "a bias on the scores"),
    ],
)  # fmt: skip
def test_a_layer_is_told_in_words(options, words):
    layer = described(**options)
    assert layer.words() == words
    assert layer.plain == (words == "nothing else")
    ordered = {"rope", "alibi", "window", "documents"}
    assert layer.ordered == bool(ordered & {*options})


@pytest.mark.parametrize("option", ["rope", "alibi", "window", "documents"])
def test_each_of_these_makes_order_matter(option):
    assert Layer(**{option: 3}).ordered


@pytest.mark.parametrize(
    "wrong",
    [
        {"qk_norm": "batch"}, {"window": 0}, {"window": 2.0}, {"memory": -1},
        {"residual": "early"}, {"residual": "late"}, {"sink": "deep"},
        {"scale": "1/t"}, {"norm_over": "some"}, {"norm_late": True},
        {"norm_late": True, "rope": True}, {"norm_late": True, "qk_norm": True},
        {"norm_late": True, "rope": True, "qk_norm": True, "norm_over": "all"},
        {"rope": "quarters"}, {"rope": {"way": 3}}, {"rope": {"step": 3}}, {"rope": 3},
    ],
)  # fmt: skip
def test_an_option_that_means_nothing_is_refused(wrong):
    with pytest.raises(UnusableError):
        described(**wrong)


def test_what_nobody_said_is_left_open():
    assert described(norm_over="heads").open == ()
    assert described(qk_norm="rms").open == ("norm_over",)
    assert "qk_norm" in described(qk_norm=True).open
    assert described(norm_late=True, rope=True, qk_norm="rms").norm_late
    left = described(rope={"base": 9}, norm_over="all").open
    assert left == ("rope.pairing", "rope.share", "rope.way")
    assert described(rope=Rope(), norm_over="all").open == ()


@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("way", [1, -1])
@pytest.mark.parametrize("pairing", ["halves", "neighbors"])
def test_a_rotation_turns_each_pair_by_its_angle(pairing, way, share):
    x = torch.arange(1, 9.0).view(1, 1, 1, 8)
    rope = Rope(pairing, base=100.0, share=share, way=way)
    y = rotate(x, rope, torch.tensor([3.0]))[0, 0, 0]
    d, x = int(8 * share), x[0, 0, 0]
    for i in range(d // 2):
        a, b = (i, i + d // 2) if pairing == "halves" else (2 * i, 2 * i + 1)
        angle = way * 3 * 100 ** (-2 * i / d)
        turned = torch.complex(x[a], x[b]) * torch.polar(
            torch.tensor(1.0), torch.tensor(angle)
        )
        torch.testing.assert_close(
            torch.stack([y[a], y[b]]), torch.view_as_real(turned)
        )
    assert torch.equal(y[d:], x[d:])
    with pytest.raises(RuntimeError, match="odd number"):
        rotate(torch.ones(1, 1, 1, 3), Rope(), torch.ones(1))


@pytest.mark.parametrize(
    ("pairing", "halves", "table_of_halves", "minus"),
    [
        ("halves", True, True, -1),
        ("halves without the minus", True, True, 1),
        ("neighbors without the minus", False, False, 1),
        ("halves with a table of neighbors", True, False, -1),
        ("neighbors with a table of halves", False, True, -1),
    ],
)
def test_a_wrong_rotation_is_wrong_in_one_thing(
    pairing, halves, table_of_halves, minus
):
    x = torch.arange(1, 9.0)
    y = rotate(x.view(1, 1, 1, 8), Rope(pairing, 100.0), torch.tensor([3.0])).flatten()
    for n in range(8):
        first, other = (n < 4, (n + 4) % 8) if halves else (n % 2 == 0, n ^ 1)
        angle = torch.tensor(3 * 100 ** (-(n % 4 if table_of_halves else n // 2) / 4))
        turned = x[n] * angle.cos() + (minus if first else 1) * x[other] * angle.sin()
        torch.testing.assert_close(y[n], turned)


def test_norms_are_those_of_pytorch():
    x = torch.randn(2, 5, generator=torch.Generator().manual_seed(1)).double()
    weight, bias = torch.arange(5.0), torch.arange(5.0) + 1
    pair, close = (weight, bias), torch.testing.assert_close
    layer = F.layer_norm(x, (5,), weight.double(), bias.double())
    close(normalize(x, "layer", pair), layer)
    close(normalize(x, "rms", (None, None, 0.1)), F.rms_norm(x, (5,), eps=0.1))
    close(normalize(x, "l2", (None, None)), F.normalize(x, dim=-1))
    narrow = normalize(x, "l2", (weight[:2], bias[:2]))  # it belongs to something else
    close(narrow, F.normalize(x, dim=-1))


def test_every_sequence_sees_the_same_memory_and_two_documents():
    memory = memory_tokens(3, torch.ones(2, 4, 5))
    assert memory.shape == (2, 3, 5)
    assert torch.equal(memory[0], memory[1])
    assert memory_tokens(3, torch.ones(2, 4, 5), 7).shape == (2, 3, 7)
    assert document_of(6).tolist() == [0, 0, 0, 0, 1, 1]
