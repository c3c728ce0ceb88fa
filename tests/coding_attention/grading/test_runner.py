"""Submissions in kernels: what they say arrives, and what they try gets no further."""

import os
import select
import socket
from types import SimpleNamespace

import pytest
import torch

from coding_attention.grading import Assignment, grade, inside, runner, sandbox
from coding_attention.grading.runner import Limits, run
from tests.coding_attention.grading.the_class import SETUP, notebook

FIRST = SETUP.format(student="it")
CHECK = 'check_exercise("which-dim", {})'


def outcomes(done):
    return [(v["exercise"], v["outcome"]) for v in done.verdicts]


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """One notebook that tries a lot, as few kernels are to start; with what it left."""
    folder = tmp_path_factory.mktemp("outside")
    os.mkfifo(folder / "held")  # open for as long as somebody lives who opened it
    reading = os.open(folder / "held", os.O_RDONLY | os.O_NONBLOCK)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("SECRET_OF_THE_TEACHER", "x")
        port = server.getsockname()[1]
        done = run(
            [
                FIRST,
                "%matplotlib inline\nx = 0\nx?",
                CHECK.format("x"),
                "import torch",
                "def causal_mask(n):\n    return torch.zeros(n, n).bool()",
                'check_exercise("causal-mask", causal_mask)',
                CHECK.format("(1, 2)"),
                f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 5)",
                "import os\nassert 'SECRET_OF_THE_TEACHER' not in os.environ",
                f"assert os.getcwd() not in {os.getcwd()!r}\nopen('mine', 'w').close()",
                "input()",
                "with open('big', 'wb') as f:\n    f.write(b'x' * 10**7)",
                "print('loud')\nos.system('echo loud')\nos.write(1, b'loud')",
                "if os.fork() == 0:\n"
                f"    file = open({str(folder / 'held')!r}, 'wb', 0)\n"
                "    file.write(b'x')\n    import time\n    time.sleep(600)",
                "more = bytearray(2**34)",
                "import sys\nsys.exit(1)",
                CHECK.format(-1),
            ],
            "autumn-26/it",
            Limits(files=1),
        )
        server.settimeout(0)
        try:
            reached = server.accept()
        except BlockingIOError:
            reached = None
    yield SimpleNamespace(done=done, reached=reached, reading=reading)
    os.close(reading)


def test_what_the_checks_said_arrives(busy):
    assert outcomes(busy.done) == [
        ("which-dim", "not right"), ("causal-mask", "not right"),
        ("which-dim", "not right"), ("which-dim", "right"),
    ]  # fmt: skip
    assert [v["answer"] for v in busy.done.verdicts] == [0, None, [1, 2], -1]
    assert busy.done.ended == ""
    assert busy.done.seconds > 0


def test_what_it_must_not_do_raises_in_its_own_cell(busy):
    raised = {number: text.partition(":")[0] for number, text in busy.done.raised}
    assert busy.reached is None
    assert busy.done.network in ("none", "blocked")
    assert raised.pop(8) in ("OSError", "ConnectionRefusedError")
    assert raised == {
        11: "StdinNotImplementedError", 12: "OSError", 15: "MemoryError",
        16: "SystemExit",
    }  # fmt: skip


def test_nothing_of_it_is_left_running(busy):
    ended = select.poll()
    ended.register(busy.reading, select.POLLHUP)
    while (seen := ended.poll(60_000)) and seen[0][1] & select.POLLIN:
        os.read(busy.reading, 1)
    assert [event & select.POLLHUP for _, event in seen] == [select.POLLHUP]


@pytest.mark.parametrize(
    ("code", "limits", "how"),
    [
        ("while True:\n    pass", {"processor": 1}, "used more than 1 s of processor"),
        ("import time\ntime.sleep(3600)", {"seconds": 4}, "did not finish within 4 s"),
        ("import os\nos._exit(3)", {}, "its process ended with status 3"),
    ],
)
def test_what_ends_a_notebook_is_said_and_what_was_checked_counts(code, limits, how):
    done = run([FIRST, CHECK.format(-1), code, "1 / 0"], "", Limits(**limits))
    assert how in done.ended
    assert done.cell == 3
    assert outcomes(done) == [("which-dim", "right")]
    assert done.raised == []


@pytest.mark.parametrize(
    ("status", "how"),
    [(139, "was ended by the signal SIGSEGV"), (1, "ended with status 1"),
     (200, "ended with status 200")],
)  # fmt: skip
def test_a_crash_is_named(status, how):
    assert how in runner._describe_end(status, Limits())


def test_where_the_system_keeps_the_network_sockets_are_blocked(monkeypatch):
    for name in ("connect", "connect_ex", "sendto", "bind"):
        monkeypatch.setattr(socket.socket, name, getattr(socket.socket, name))
    monkeypatch.setattr(socket, "create_connection", None)
    monkeypatch.setattr(socket, "getaddrinfo", None)
    inside._block_sockets()
    with socket.socket() as one, pytest.raises(OSError, match="there is no network"):
        one.connect(("127.0.0.1", 9))
    with pytest.raises(OSError, match="there is no network"):
        socket.create_connection(("127.0.0.1", 9))


def test_a_system_without_namespaces_is_noticed(monkeypatch):
    refuse = SimpleNamespace(unshare=lambda flags: -1)
    monkeypatch.setattr(sandbox.ctypes, "CDLL", lambda name: refuse)
    assert not sandbox.leave_namespaces()


@pytest.mark.parametrize(
    ("highest", "soft", "hard"), [(-1, 5, 20), (10, 5, 10), (3, 3, 3)]
)
def test_no_limit_is_above_what_the_system_allows(monkeypatch, highest, soft, hard):
    resource, found = pytest.importorskip("resource"), []
    highest = resource.RLIM_INFINITY if highest < 0 else highest
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (1, highest))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, both: found.append(both))
    inside._set(resource.RLIMIT_CORE, 5, 20)
    assert found == [(soft, hard)]


def test_answers_that_can_be_compared_are_small():
    small = torch.arange(16.0).view(4, 4)
    assert inside._simplify(small) == small.tolist()
    assert inside._simplify(torch.arange(17.0)) is None
    assert inside._simplify("w" * 10_000) is None


def test_a_folder_is_graded_in_order_with_several_at_a_time(tmp_path):
    own = "def check_exercise(name, answer):\n    return 'right'"
    cells = [FIRST, CHECK.format(-1), own, 'check_exercise("scale", 3)']
    (tmp_path / "a.ipynb").write_text(notebook(*cells))
    (tmp_path / "b.ipynb").write_text("")
    seen = []
    report = grade(
        [tmp_path],
        Assignment("", {"which-dim": 1, "scale": 1}),
        tell=seen.append,
        jobs=2,
    )
    assert [row.status for row in report.rows] == ["graded", "not run"]
    assert {row.file.name for row in seen} == {"a.ipynb", "b.ipynb"}
    # A check of its own gives no points.
    assert report.points_of(report.rows[0]) == 1
    assert report.exit_status == 1
    assert report.rows[0].notes == []
