"""Marks notebooks that a class has handed in: ``python -m coding_attention.grading``.

Each notebook runs in a process of its own (:mod:`.sandbox`), its answers are checked as
on the page about exercises, and over a class the mistakes are counted.
"""

import contextlib
import json
import tempfile
import time
from pathlib import Path

from coding_attention.grading.assignments import ASSIGNMENTS, Assignment
from coding_attention.grading.report import ClassReport, Row
from coding_attention.grading.sandbox import Limits, can_fork, run
from coding_attention.grading.submissions import found, read
from coding_attention.grading.variants import VARIED, check_exercise_of

__all__ = [
    "ASSIGNMENTS",
    "VARIED",
    "Assignment",
    "ClassReport",
    "Limits",
    "can_fork",
    "check_exercise_of",
    "grade",
]


def grade(places, course="", assignment=None, limits=None, tell=None):
    """Run and mark notebooks.

    Args:
        places: files, and folders of files. Whatever they hold, each gets its row.
        course: the name with which variants were handed out. Each student's sizes are
            then those of "COURSE/STUDENT", whatever the notebook itself says.
        assignment: an :class:`Assignment`. Without one, the exercises are those that
            any of the notebooks checks, and each gives one point.
        limits: a :class:`Limits`.
        tell: function of a :class:`Row`, called when it is done.

    Returns:
        :class:`ClassReport`.
    """
    _load_figures()
    rows = []
    for file in found(places):
        rows.append(_row(read(file), course, limits or Limits()))
        if tell:
            tell(rows[-1])
    return ClassReport(rows, course, assignment)


def _load_figures():
    # Once here, or every notebook's process would load it anew.
    with contextlib.suppress(ImportError):
        import coding_attention.figures  # noqa: F401


def _count_answers(hand_in):
    """Take the place of `check_exercise_of` in the process of one notebook."""
    globals()["check_exercise_of"] = lambda variant: hand_in


def _row(submission, course, limits):
    student = submission.student(course)
    row = Row(submission.file, student, submission.variant, submission.cells)
    if submission.problem:
        row.status, row.reason = "not run", submission.problem
        return row
    whose = f"{course}/{student}" if course else submission.variant
    from coding_attention.grading import worker

    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryFile(buffering=0) as events,
    ):
        ended = run(
            lambda network: worker.run(
                submission,
                check_exercise_of(whose),
                limits,
                network,
                events.fileno(),
                _count_answers,
            ),
            limits,
            Path(folder),
        )
        events.seek(0)
        lines = events.read().splitlines()
    row.seconds = time.monotonic() - started
    for line in lines:
        # Code that shares its process with the writer may have written, too.
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
            row.take(json.loads(line))
    row.close(ended)
    return row
