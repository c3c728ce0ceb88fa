"""What happens in the kernel of a submission: limits, and a check that reports.

The first cell that a submission's kernel runs calls :func:`begin`. What a check says
goes out as an output of a type of our own, which the grader reads from the cells.
"""

import contextlib
import json
import os
import signal
import socket
import sys

import torch
from IPython.display import display

from coding_attention import exercises, grading
from coding_attention.grading.sandbox import NETWORK, VERDICT
from coding_attention.grading.variants import check_exercise_of

LONGEST = 1000  # letters of a message in the report


def begin(variant, limits):
    """Limit the kernel, and let its notebook's checks report.

    Args:
        variant: whose sizes the exercises have, "COURSE/STUDENT", or nothing.
        limits: a :class:`~coding_attention.grading.runner.Limits` as a dictionary.
    """
    torch.set_num_threads(1)
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    network = os.environ.pop(NETWORK)
    check = _report_verdicts(check_exercise_of(variant))
    # The two names under which a notebook imports its check.
    exercises.check_exercise = check
    grading.check_exercise_of = lambda variant: check
    _report(network=network)
    _limit(limits)
    if network == "blocked":
        _block_sockets()


def _report(**event):
    display({VERDICT: event}, raw=True)


def _report_verdicts(check):
    """Return what takes the place of ``check_exercise``: it reports, too."""

    def check_and_report(name, answer=None):
        name = str(name)[:LONGEST]
        verdict = check(name, answer)
        _report(
            exercise=name,
            outcome=verdict.outcome,
            text=verdict.text[:LONGEST],
            answer=_simplify(answer),
        )
        return verdict

    return check_and_report


def _simplify(answer):
    """Return an answer of numbers and words alone, to be compared with others'."""
    if isinstance(answer, torch.Tensor) and answer.numel() <= 16:
        answer = answer.tolist()
    with contextlib.suppress(Exception):
        text = json.dumps(answer, allow_nan=False)
        if answer is not None and len(text) <= LONGEST:
            return json.loads(text)
    return None


def _limit(limits):
    """Limit what the submission may use beyond what the kernel has used so far."""
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = round(used.ru_utime + used.ru_stime + max(1, limits["processor"]))
    _set(resource.RLIMIT_CPU, seconds, seconds + 5)
    # The first process of a namespace would ignore the signal.
    signal.signal(signal.SIGXCPU, lambda *_: os._exit(128 + signal.SIGXCPU))
    size = int(limits["files"] * 1e6)
    _set(resource.RLIMIT_FSIZE, size, size)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # an OSError instead
    _set(resource.RLIMIT_CORE, 0, 0)
    with contextlib.suppress(OSError), open("/proc/self/statm") as statm:
        in_use = int(statm.read().split()[0]) * resource.getpagesize()
        allowed = in_use + int(limits["memory"] * 2**30)
        _set(resource.RLIMIT_AS, allowed, allowed)


def _set(kind, soft, hard):
    import resource

    highest = resource.getrlimit(kind)[1]
    if highest != resource.RLIM_INFINITY:
        soft, hard = min(soft, highest), min(hard, highest)
    resource.setrlimit(kind, (soft, hard))


def _block_sockets():
    def refuse(*arguments, **named):
        raise OSError("there is no network while a submission is graded")

    for name in ("connect", "connect_ex", "sendto", "bind"):
        # The class of C cannot be changed, so Python's own gets the methods.
        setattr(socket.socket, name, refuse)
    socket.create_connection = socket.getaddrinfo = refuse
