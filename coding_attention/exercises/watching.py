"""Exercises on watching heads learn."""

import math

from coding_attention.exercises.core import Exercise
from coding_attention.exercises.table import Field, Table, hints, right, wrong

PAGE = "09_watch_heads_learn"

# k p m x k: places 0 to 4; the last one is to be continued.
_INDUCTION = Table(
    "A pair of places, of the previous-token head and of the induction head,",
    (
        Field("previous", "number", "Place that the previous-token head looks at"),
        Field("induction", "number", "Place that the induction head looks at"),
    ),
    (
        right(
            "The induction head looks at what followed the earlier copy. It finds that "
            "place since a previous-token head wrote there which token came before.",
            previous=(3,),
            induction=(1,),
        ),
        wrong("The other way round.", previous=(1,), induction=(3,)),
        wrong(
            "Places are counted from zero, so each of yours is one too high.",
            previous=(4,),
            induction=(2,),
        ),
        wrong(
            "That is the last token itself. The one before it is asked for.",
            previous=(4,),
        ),
        wrong(
            "The previous-token head looks one place back from the last token.",
            previous=(0, 1, 2),
        ),
        *(
            wrong(say, previous=(3,), induction=(place,))
            for place, say in (
                (
                    0,
                    "That is the earlier copy itself. What followed it is to be said, "
                    "so that is where to look.",
                ),
                (4, "That is the last token itself, which tells nothing new."),
                (3, "That is where the previous-token head looks."),
                (2, "One too far: that is the second token behind the earlier copy."),
            )
        ),
        wrong("There are five places, counted from zero."),
    ),
)

_GUESSING = Table(
    "One number, a loss,",
    (Field("loss", "number", "Loss"),),
    (
        right(
            "The loss of an even guess is the logarithm of the number of choices. A "
            "model whose loss lies below it knows more than which tokens can come.",
            loss=(math.log(8),),
        ),
        *hints(
            "loss",
            [
                (
                    3.0,
                    "This is the logarithm to base two, in bits. PyTorch takes the "
                    "natural one.",
                ),
                (math.log10(8), "This is the logarithm to base ten. Take the natural."),
                (0.125, "This is the probability. The loss is its negative logarithm."),
                (
                    -math.log(8),
                    "This is the logarithm of the probability. The loss is the "
                    "negative of it.",
                ),
                (8.0, "This is the number of choices. Take its logarithm."),
                (0.875, "This is how often the guess is wrong. That is no loss yet."),
                (
                    math.log(32),
                    "This guesses among all 32 tokens. Only eight can come.",
                ),
                (
                    math.log(7),
                    "This guesses among seven. All eight count here.",
                ),
            ],
        ),
        wrong("The loss is minus the logarithm of the probability of the right token."),
    ),
)

EXERCISES = [
    Exercise("guessing", PAGE, "One number", _GUESSING),
    Exercise("induction", PAGE, "A pair of places", _INDUCTION),
]
