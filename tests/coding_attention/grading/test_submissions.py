"""Whatever is handed in gets a row, and code that tries something gets no further."""

import json
import os
import select
import socket
import time
from types import SimpleNamespace

import pytest
import torch

from coding_attention.grading import Limits, grade, worker
from coding_attention.grading.submissions import MEGABYTES, found, read
from tests.coding_attention.grading.the_class import SETUP, notebook

NONSENSE = {
    "a list": ("[]", "it has no list of cells"),
    "a number": ("3", "it has no list of cells"),
    "cells that are none": ('{"cells": 3}', "it has no list of cells"),
    "old": ('{"worksheets": []}', "a format from before 2015"),
    "no cells": ('{"cells": []}', "without any code"),
    "cells of nothing": ('{"cells": [3, null]}', "without any code"),
    "text alone": (
        '{"cells": [{"cell_type": "markdown", "source": "x"}]}', "without any code"
    ),
    "a number for a source": (
        '{"cells": [{"cell_type": "code", "source": 3}]}', "has no readable text"
    ),
    "deep": ("[" * 100_000, "it isn't JSON"),
    "blanks": (" \n ", "an empty file"),
    "half": ('{"cells": [', "it isn't JSON"),
}  # fmt: skip


@pytest.mark.parametrize("how", NONSENSE)
def test_nonsense_is_named(tmp_path, how):
    text, reason = NONSENSE[how]
    (tmp_path / "it.ipynb").write_text(text)
    (row,) = grade([tmp_path]).rows
    assert row.status == "not run"
    assert reason in row.reason


def test_what_an_old_format_left_in_a_new_notebook_is_no_problem(tmp_path):
    cell = {"cell_type": "code", "source": "x = 1"}
    text = json.dumps({"cells": [cell], "worksheets": []})
    (tmp_path / "it.ipynb").write_text(text)
    submission = read(tmp_path / "it.ipynb")
    assert (submission.problem, submission.cells) == ("", ["x = 1"])


def test_what_is_no_file_of_text(tmp_path):
    (tmp_path / "bytes.ipynb").write_bytes(b"\xff\xfe\x00\x01")
    assert "isn't UTF-8 text" in read(tmp_path / "bytes.ipynb").problem
    assert read(tmp_path / "missing.ipynb").problem == "no such file"
    os.mkfifo(tmp_path / "pipe.ipynb")
    assert read(tmp_path / "pipe.ipynb").problem == "no such file"


def test_a_huge_file_is_not_read(tmp_path):
    with (tmp_path / "huge.ipynb").open("wb") as file:
        file.truncate(2 * MEGABYTES * 10**6)
    assert "40 MB, over the limit of 20" in read(tmp_path / "huge.ipynb").problem


def test_a_folder_gives_its_notebooks_and_no_copies(tmp_path):
    for name in ("b/two.ipynb", "a/one.ipynb", ".ipynb_checkpoints/one.ipynb", "x.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert [file.name for file in found([tmp_path])] == ["one.ipynb", "two.ipynb"]


def graded(folder, *codes, name="it.ipynb", **limits):
    (folder / name).write_text(notebook(SETUP.format(student="it"), *codes))
    (row,) = grade([folder / name], limits=Limits(**limits)).rows
    return row


CHECK = 'check_exercise("which-dim", {})'


def test_a_cell_that_only_ipython_understands_is_left_out(tmp_path):
    row = graded(
        tmp_path, "%matplotlib inline\n!ls\nx = -1\nx?", "%%bash\nls", CHECK.format("x")
    )
    assert row.verdicts["which-dim"]["outcome"] == "right"
    assert row.notes == []


def test_the_last_check_counts(tmp_path):
    row = graded(tmp_path, CHECK.format(0), CHECK.format(-1))
    assert row.verdicts["which-dim"]["outcome"] == "right"
    row = graded(tmp_path, CHECK.format(-1), CHECK.format(0))
    assert row.verdicts["which-dim"]["outcome"] == "not right"


def test_the_network_is_out_of_reach(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 5)"
        row = graded(tmp_path, code, CHECK.format(-1))
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert row.network in ("none", "blocked")
    assert "cell 2 raised" in row.notes[0]
    assert row.verdicts["which-dim"]["outcome"] == "right"


@pytest.mark.parametrize(
    ("highest", "soft", "hard"), [(-1, 5, 20), (10, 5, 10), (3, 3, 3)]
)
def test_no_limit_is_above_what_the_system_allows(monkeypatch, highest, soft, hard):
    from coding_attention.grading import sandbox

    resource, found = pytest.importorskip("resource"), []
    highest = resource.RLIM_INFINITY if highest < 0 else highest
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (1, highest))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, both: found.append(both))
    sandbox._set(resource.RLIMIT_CORE, 5, 20)
    assert found == [(soft, hard)]


def test_a_limit_below_a_second_is_one_second(monkeypatch):
    """Of zero seconds, a process would not even begin."""
    from coding_attention.grading import sandbox

    resource, found = pytest.importorskip("resource"), {}
    monkeypatch.setattr(sandbox, "_set", lambda kind, *both: found.update({kind: both}))
    monkeypatch.setattr(sandbox.signal, "signal", lambda *_: None)
    for processor, seconds in ((0.2, 1), (7.0, 7)):
        sandbox._limit(sandbox.Limits(processor=processor))
        soft, hard = found[resource.RLIMIT_CPU]
        assert soft == seconds < hard


def test_who_waits_for_the_one_who_waits_is_more_patient(monkeypatch):
    """Else nobody would be left to say which limit ended the submission."""
    from coding_attention.grading import sandbox

    found, limits = [], sandbox.Limits(seconds=9)
    monkeypatch.setattr(sandbox, "_ended", lambda *given: found.append(given))
    monkeypatch.setattr(sandbox, "_leave_namespaces", lambda: True)
    monkeypatch.setattr(sandbox.os, "setsid", lambda: None)
    sandbox.run(print, limits, None)
    found[0][0]()
    (_, outer), (_, inner) = found
    assert outer > inner > limits.seconds


def test_where_the_system_keeps_the_network_sockets_are_blocked(tmp_path, monkeypatch):
    from coding_attention.grading import sandbox

    monkeypatch.setattr(sandbox, "_leave_namespaces", lambda: False)
    row = graded(
        tmp_path, "import socket\nsocket.create_connection(('127.0.0.1', 9), 5)",
        CHECK.format(-1),
    )  # fmt: skip
    assert row.network == "blocked"
    assert "there is no network while a submission is graded" in row.notes[0]
    assert row.verdicts["which-dim"]["outcome"] == "right"


def test_nothing_of_it_is_left_running(tmp_path):
    held = tmp_path / "held"  # open for as long as somebody lives who opened it
    os.mkfifo(held)
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        f"    file = open({str(held)!r}, 'wb', 0)\n"
        "    file.write(b'x')\n"
        "    time.sleep(600)"
    )
    reading = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
    row = graded(tmp_path, code, CHECK.format(-1))
    assert row.status == "graded"
    # Where the system has no namespaces to give, the group is asked to end.
    ended = select.poll()
    ended.register(reading, select.POLLHUP)
    while (seen := ended.poll(60_000)) and seen[0][1] & select.POLLIN:
        os.read(reading, 1)
    os.close(reading)
    assert [event & select.POLLHUP for _, event in seen] == [select.POLLHUP]


def test_the_folder_the_settings_and_the_terminal_are_not_the_teachers(
    tmp_path, monkeypatch, capfd
):
    monkeypatch.setenv("SECRET_OF_THE_TEACHER", "x")
    monkeypatch.chdir(tmp_path)
    row = graded(
        tmp_path, "import os\nopen('mine.txt', 'w').write('x')\nprint('loud')\n"
        "os.write(1, b'loud')\nos.write(2, b'loud')\n"
        "import sys\nprint('loud', file=sys.stderr, flush=True)\n"
        "streams = sys.stdin, sys.stdout, sys.stderr\n"
        "assert [stream.fileno() for stream in streams] == [0, 1, 2]",
        "assert 'SECRET_OF_THE_TEACHER' not in os.environ",
        "os.system('echo loud')", "input()", CHECK.format(-1),
    )  # fmt: skip
    assert row.notes == ["cell 5 raised EOFError: EOF when reading a line"]
    assert not (tmp_path / "mine.txt").exists()
    assert capfd.readouterr() == ("", "")


def test_a_file_cannot_grow_without_end(tmp_path):
    code = "with open('big', 'wb') as f:\n    f.write(b'x' * 10**7)"
    row = graded(tmp_path, code, CHECK.format(-1), files=1)
    assert "cell 2 raised OSError" in row.notes[0]
    assert row.verdicts["which-dim"]["outcome"] == "right"


def test_an_answer_that_never_ends_leaves_time_for_others(monkeypatch):
    granted = []
    ended = (worker.Verdict("x", "right", ""), [])
    monkeypatch.setattr(worker, "isolated", lambda _, s: (granted.append(s), ended)[1])
    check = worker._Counter(None, Limits(seconds=40), lambda **_: None)
    check("first"), check("second")
    assert sum(granted) <= 40


@pytest.mark.parametrize(
    ("now", "named"), [(torch.nn.Linear, []), (print, ["place.sum"]), (sum, [])]
)
def test_what_pytorch_wraps_for_itself_was_not_replaced(now, named):
    place = SimpleNamespace(__name__="place", sum=now)
    assert worker._put_back([(place, "sum", sum)]) == named
    assert place.sum is (sum if named else now)


def test_functions_that_a_notebook_replaces_are_put_back(tmp_path):
    code = "import torch\ntorch.allclose = lambda *a, **k: True"
    mask = "def causal_mask(n):\n    return torch.zeros(n, n).bool()"
    row = graded(tmp_path, code, mask, 'check_exercise("causal-mask", causal_mask)')
    assert row.verdicts["causal-mask"]["outcome"] == "not right"
    assert row.notes == ["replaces torch.allclose: take a look"]


def test_a_check_of_its_own_gives_no_points(tmp_path):
    own = "def check_exercise(name, answer):\n    print('right')"
    row = graded(tmp_path, own, CHECK.format(0))
    assert (row.status, row.verdicts) == ("no answers", {})


def test_answers_that_can_be_compared_are_small():
    small = torch.arange(16.0).view(4, 4)
    assert worker._plain(small) == small.tolist()
    assert worker._plain(torch.arange(17.0)) is None  # and long texts are none, too
    assert worker._plain("w" * 10_000) is None


def test_the_same_code_is_noted(tmp_path):
    for name in ("anna", "ben"):
        text = notebook(SETUP.format(student="x"), CHECK.format(-1))
        (tmp_path / f"{name}.ipynb").write_text(text)
    anna, ben = grade([tmp_path]).rows
    assert anna.notes == []
    assert ben.notes == ["exactly the same code as anna.ipynb"]


def test_two_notebooks_of_one_student_are_noted(tmp_path):
    for name in ("anna", "ben"):
        text = notebook(SETUP.format(student="anna"), CHECK.format(-1))
        (tmp_path / f"{name}.ipynb").write_text(text)
    rows = grade([tmp_path], "autumn-26").rows
    assert all("2 notebooks are anna's" in row.notes for row in rows)
    assert "handed out to anna: look at the name" in rows[1].notes


def test_without_an_assignment_what_is_checked_counts(tmp_path):
    (tmp_path / "it.ipynb").write_text(
        notebook(SETUP.format(student="it"), CHECK.format(-1))
    )
    before = time.monotonic()
    report = grade([tmp_path])
    assert report.points == {"which-dim": 1}
    assert report.exit_status == 0
    (row,) = report.rows
    assert 0 < row.seconds < time.monotonic() - before  # some of the time that passed


def test_a_spreadsheet_gets_no_formulas(tmp_path):
    (tmp_path / "=1+2.ipynb").write_text("")
    line = grade([tmp_path]).csv().splitlines()[1]
    assert line.startswith("'=1+2,")


def test_a_student_writes_no_lines_into_the_report(tmp_path):
    row = graded(tmp_path, "raise ValueError('a\\nstudent-00  10/10')")
    assert json.dumps(row.notes).count("\\n") == 0
