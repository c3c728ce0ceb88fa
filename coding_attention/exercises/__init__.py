"""The checks behind the exercises: right, or the mistake by name, with a hint.

``check_exercise("3.1", answer)`` looks at what an answer does. Each page of the book
has a module here; :mod:`coding_attention.exercises.core` holds what they share.
"""

import difflib
import inspect
import textwrap
from dataclasses import dataclass

import torch

from attncheck.build import first_line
from coding_attention.exercises import (
    averaging,
    causal,
    cost,
    devices,
    heads,
    looking_back,
    multi_head,
    open_ended,
    other_uses,
    simple,
    trainable,
    watching,
)
from coding_attention.exercises.core import OURS, NothingYet, NotRight, is_ours
from coding_attention.exercises.places import PAGES

WIDTH = 60

# In the order of the book: each exercise knows its page.
EXERCISES = {
    exercise.name: exercise
    for module in (
        looking_back,
        simple,
        trainable,
        causal,
        multi_head,
        heads,
        other_uses,
        averaging,
        cost,
        devices,
        watching,
        open_ended,
    )
    for exercise in module.EXERCISES
}


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
    exercise = EXERCISES.get(name)
    if exercise is None:
        return Verdict(name, "unusable", _unknown(name))
    label = f"Exercise {name}: "
    if answer is None:
        return Verdict(name, "nothing yet", f"{label}nothing to check yet.")
    try:
        # Answers such as those of the exercises on dropout may draw numbers.
        with torch.random.fork_rng(devices=[]):
            praise = exercise.check(answer)
            _refuse_ours(answer)
    except NothingYet as error:
        text = f"{label}nothing to check yet. {error}".strip()
        return Verdict(name, "nothing yet", text)
    except NotRight as error:
        text = f"{label}not right yet. {error} To read: {_place(exercise, error)}."
        return Verdict(name, "not right", text)
    # An object may raise even when it is compared or printed.
    except Exception as error:
        text = (
            f"{label}this answer could not be checked. {exercise.wanted} is asked for, "
            f"but using {type(answer).__name__} raised {type(error).__name__}: "
            f"{first_line(error)}."
        )
        return Verdict(name, "unusable", text)
    return Verdict(name, "right", f"{label}right. {praise}")


def _refuse_ours(answer):
    # A class is looked at by its own check; a layer may be what the exercise asks for.
    if inspect.isfunction(answer) and (name := is_ours(answer)):
        raise NotRight(OURS.format(name=name))


def _place(exercise, error):
    page, section = exercise.reads
    if error.page not in (None, page):
        return PAGES[error.page]
    return f'{PAGES[page]}, section "{section}"'


def _unknown(name):
    close = difflib.get_close_matches(name, EXERCISES, n=1, cutoff=0.5)
    meant = f" Did you mean {close[0]!r}?" if close else ""
    return (
        f"There is no exercise {name[:40]!r}.{meant} The exercises are "
        f"{', '.join(EXERCISES)}."
    )


__all__ = ["EXERCISES", "Verdict", "check_exercise"]
