"""The exercises and their checks: right, or the mistake by name, with a hint.

``check_exercise("3.1", answer)`` looks at what an answer does. Each exercise is one
Markdown file in ``tasks/``, read by :mod:`coding_attention.exercises.files`; what
checks an answer is made from it by :mod:`coding_attention.exercises.build`. Importing
this brings no PyTorch: the pages are made from the same files.
"""

import difflib
import textwrap
from dataclasses import dataclass

from coding_attention.exercises.files import PAGES, exercises

WIDTH = 60
EXERCISES = exercises()  # in the order of the book


@dataclass(frozen=True)
class Verdict:
    """What a check says about an answer. Prints as text.

    Attributes:
        exercise: its name.
        outcome: "right", "not right", "nothing yet" or "unusable".
        text: the whole message.
    """

    exercise: str
    outcome: str
    text: str

    @property
    def right(self):
        """Whether the answer is right."""
        return self.outcome == "right"

    def __repr__(self):
        return textwrap.fill(
            self.text, WIDTH, break_on_hyphens=False, break_long_words=False
        )


def check_exercise(name, answer=None):
    """Say whether the answer to an exercise is right, or what the mistake is.

    Answers are tried out, so there are many ways to write a right one. A function
    gets copies of its arguments and ten seconds for each call. Whatever the answer
    does, this function does not raise, and the global random state stays as it is.

    Args:
        name: of the exercise, such as "3.1" or "causal-mask".
        answer: what the exercise asks for: a number, a shape, a function, a class.

    Returns:
        :class:`Verdict`, which prints as text.
    """
    name = str(name)
    if name not in EXERCISES:
        return Verdict(name, "unusable", _unknown(name))
    from coding_attention.exercises.build import check_of

    return judge(EXERCISES[name], check_of(name), answer)


def judge(exercise, check, answer):
    """Return the :class:`Verdict` of one check about one answer."""
    from coding_attention.exercises import core

    name = exercise.name
    label = f"Exercise {name}: "
    if answer is None:
        return Verdict(name, "nothing yet", f"{label}nothing to check yet.")
    try:
        praise = core.run_check(check, answer)
    except core.NothingYet as error:
        text = f"{label}nothing to check yet. {error}".strip()
        return Verdict(name, "nothing yet", text)
    except core.NotRight as error:
        there = PAGES.get(error.page) if error.page != exercise.reads[0] else None
        text = f"{label}not right yet. {error} To read: {there or exercise.place}."
        return Verdict(name, "not right", text)
    # An object may raise even when it is compared or printed.
    except Exception as error:
        text = (
            f"{label}this answer can't be checked. Expected {exercise.wanted}, "
            f"but using {type(answer).__name__} raised {type(error).__name__}: "
            f"{core.first_line(error)}."
        )
        return Verdict(name, "unusable", text)
    return Verdict(name, "right", f"{label}right. {praise}")


def _unknown(name):
    close = difflib.get_close_matches(name, EXERCISES, n=1, cutoff=0.5)
    meant = f" Did you mean {close[0]!r}?" if close else ""
    return (
        f"There is no exercise {name[:40]!r}.{meant} The exercises are "
        f"{', '.join(EXERCISES)}."
    )
