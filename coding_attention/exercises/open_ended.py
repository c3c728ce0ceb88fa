"""Open-ended exercises: a class to write, which the package's checker grades."""

import torch

from attncheck import check_cache
from coding_attention.exercises.classes import (
    check_class,
    refuse_findings,
)
from coding_attention.exercises.core import Exercise, Failed, NotRight, attempt, seeded

PAGE = "07_where_the_time_goes"
SIZES = {"d_in": 8, "d_out": 8, "context_length": 8}
GROUPED = SIZES | {"num_heads": 4, "num_kv_heads": 2}


def _window(answer):
    praise = (
        "Each token sees itself and the few before it, and the checker compares that "
        "with attention for two windows. A cache need not keep more."
    )
    sizes = SIZES | {"dropout": 0.0}
    check_class(answer, praise, window=3, **sizes)
    if not isinstance(answer, type):
        raise NotRight(
            "It is right for its one window. Hand in the class itself, so that another "
            "window can be tried."
        )
    # One alone could stand in the class as a number.
    try:
        return check_class(answer, praise, window=5, **sizes)
    except NotRight as error:
        raise NotRight(
            f"It is right for a window of 3, but not for one of 5: does the mask come "
            f"from the argument? The checker says: {error}"
        ) from None


def _rope(answer):
    return check_class(
        answer,
        "A score now depends on how far apart two tokens are, and the values carry no "
        "place at all.",
        dropout=0.0,
        num_heads=2,
        rope="halves",
        **SIZES,
    )


def _grouped_cache(answer):
    praise = check_class(
        answer,
        "In chunks it computes what it computes at once, and it keeps one key and one "
        "value a group.",
        call=_first_of_two,
        **GROUPED,
    )
    refuse_findings(check_cache(answer, **GROUPED))
    _look_at_what_is_kept(answer)
    return praise


def _first_of_two(module, x):
    result = module(x)
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise TypeError("a pair (context, past) is to be returned")
    return result[0]


def _look_at_what_is_kept(answer):
    module = answer(**GROUPED) if isinstance(answer, type) else answer
    result = attempt(module, seeded(3, 5, GROUPED["d_in"]))
    past = None if isinstance(result, Failed) else result[1]
    if not isinstance(past, tuple | list) or not all(
        isinstance(part, torch.Tensor) for part in past
    ):
        raise NotRight(
            "A pair (context, past) is asked for, in which past is a pair of tensors, "
            "keys and values."
        )
    numbers = sum(part.numel() for part in past)
    d_head = GROUPED["d_out"] // GROUPED["num_heads"]
    least = 2 * 3 * 5 * GROUPED["num_kv_heads"] * d_head
    if numbers > least:
        raise NotRight(
            f"It computes the right thing, but its cache holds {numbers // least} times"
            f" what is needed: keys and values were repeated before they were kept. "
            f"Keep one a group, and repeat afterwards."
        )


EXERCISES = [
    Exercise("window", PAGE, "A class derived from nn.Module", _window),
    Exercise("rope", PAGE, "A class derived from nn.Module", _rope),
    Exercise("grouped-cache", PAGE, "A class derived from nn.Module", _grouped_cache),
]
