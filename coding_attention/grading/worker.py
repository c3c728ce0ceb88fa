"""Runs the cells of one notebook and checks its answers, as they are handed in.

This is plain ``exec`` of the code cells, not a Jupyter kernel: a kernel talks over
sockets, which a process without a network has not; it needs packages that come with
Jupyter alone; and it starts in seconds where a fork starts in milliseconds. What only
IPython understands, lines that begin with % or !, is left out.
"""

import builtins
import contextlib
import json
import linecache
import os
import sys
import types

import torch

from attncheck.errors import first_line
from attncheck.isolated import EndedError, isolated
from coding_attention import exercises
from coding_attention.exercises import Verdict
from coding_attention.exercises.core import PACKAGES

LONGEST = 1000  # letters of a message in the report


def run(submission, check, limits, network, out, hand_over):
    """Execute the cells; write what happens to the file descriptor ``out``.

    Args:
        submission: a :class:`Submission`.
        check: function of an exercise's name and the answer, which returns a verdict.
        limits: a :class:`~coding_attention.grading.sandbox.Limits`.
        network: what the sandbox says about it.
        out: gets a line of JSON for each event.
        hand_over: told what counts the answers of checks made for one student.
    """

    def say(**event):
        os.write(out, (json.dumps(event) + "\n").encode())

    hand_in = _Counter(check, limits, say)
    # The two names under which a notebook imports its check.
    exercises.check_exercise = hand_in
    hand_over(hand_in)
    say(event="started", network=network)
    # Classes look up their module by its name, so it has to be there.
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    names = vars(module)
    names |= {"display": _nothing, "get_ipython": _nothing}
    for number, source in enumerate(submission.cells, 1):
        say(event="cell", number=number)
        problem = _execute(source, f"cell {number}", names)
        if problem:
            say(event="raised", number=number, text=problem[:LONGEST])
    say(event="ended")


def _nothing(*arguments, **named):
    return None


def _execute(source, name, names):
    """Run one cell as Jupyter does: what it raises ends the cell, not the notebook."""
    lines = source.splitlines()
    if lines and lines[0].lstrip().startswith("%%"):
        return ""
    text = "\n".join(_python(line) for line in lines) + "\n"
    # Findings of the checker name the line in which they are.
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    try:
        exec(compile(text, name, "exec"), names)
    except BaseException as error:
        return f"{type(error).__name__}: {first_line(error)}"
    return ""


def _python(line):
    bare = line.lstrip()
    if bare.startswith(("%", "!", "?")) or bare.endswith("?"):
        return line[: len(line) - len(bare)] + "pass"
    return line


class _Counter:
    """What stands in for ``check_exercise``: it checks and notes the verdict.

    Each check runs in a process of its own, so an answer that ends its process costs
    no other answer. Functions that the notebook has replaced are put back first.
    """

    def __init__(self, check, limits, say):
        self.check, self.limits, self.say = check, limits, say
        self.originals = _originals()

    def __call__(self, name, answer=None):
        name = str(name)[:LONGEST]
        try:
            verdict, replaced = isolated(
                lambda: self._judged(name, answer), self.limits.seconds / 2
            )
        except EndedError as error:
            how = str(error).partition(" before there was a report")[0]
            verdict = Verdict(
                name, "unusable", f"Exercise {name}: could not be checked: {how}."
            )
            replaced = []
        self.say(
            event="verdict",
            exercise=name,
            outcome=verdict.outcome,
            text=verdict.text[:LONGEST],
            credit=verdict.credit,
            replaced=replaced,
            answer=_plain(answer),
        )
        return verdict

    def _judged(self, name, answer):
        replaced = _put_back(self.originals)
        return self.check(name, answer), replaced


def _plain(answer):
    """Return an answer that is numbers and words alone, to be compared with others'."""
    if isinstance(answer, torch.Tensor) and answer.numel() <= 16:
        answer = answer.tolist()
    with contextlib.suppress(Exception):
        text = json.dumps(answer, allow_nan=False)
        if answer is not None and len(text) <= LONGEST:
            return json.loads(text)
    return None


def _places():
    """The modules and classes whose functions decide about an answer."""
    ours = [m for n, m in sys.modules.items() if n.split(".")[0] in PACKAGES]
    return [builtins, torch, torch.nn.functional, torch.Tensor, torch.nn.Module, *ours]


def _originals():
    # The two that the grader itself has put there are no matter of the notebook.
    own = {"check_exercise", "check_exercise_of"}
    return [
        (place, name, value)
        for place in _places()
        for name, value in list(vars(place).items())
        if callable(value) and name not in own
    ]


def _put_back(originals):
    replaced = []
    for place, name, value in originals:
        now = vars(place).get(name)
        # PyTorch wraps some of its own, when a part of it is loaded.
        if now is not value and not _is_of_torch(now):
            replaced.append(f"{getattr(place, '__name__', place)}.{name}")
            with contextlib.suppress(Exception):
                setattr(place, name, value)
    return replaced


def _is_of_torch(value):
    return str(getattr(value, "__module__", "")).partition(".")[0] == "torch"
