"""Exercises whose sizes differ from student to student.

Where the answer is a number, it could be copied. Here the sizes come from a name,
"COURSE/STUDENT", by a hash: the same name always gives the same sizes, and nothing has
to be stored. How they are thrown, the file of the exercise says under "Sizes"; its
rules are written in terms of them, so the mistakes are those of the book. A function or
a class that is asked for needs no variants.
"""

import functools
import hashlib
import random

from coding_attention.exercises import EXERCISES, check_exercise, judge
from coding_attention.exercises.build import build

VARIED = [name for name, exercise in EXERCISES.items() if exercise.varied]


def sizes_of(name, variant):
    """Return the sizes of an exercise for "COURSE/STUDENT".

    Args:
        name: an entry of :data:`VARIED`.
        variant: whose sizes.
    """
    seed = hashlib.sha256(f"{variant}\n{name}".encode()).digest()
    return EXERCISES[name].sizes(random.Random(seed))


@functools.lru_cache(maxsize=256)
def _check(name, variant):
    return build(EXERCISES[name], sizes_of(name, variant))


def check_exercise_of(variant):
    """Return ``check_exercise`` for the sizes of "COURSE/STUDENT".

    A notebook that was handed out calls this in its first cell. Without a name it is
    the check of the book.
    """
    if not variant:
        return check_exercise

    def check(name, answer=None):
        if str(name) not in VARIED:
            return check_exercise(name, answer)
        return judge(EXERCISES[str(name)], _check(str(name), variant), answer)

    return check
