"""Exercises on where the time goes: bytes of a cache, a softmax in tiles."""

import math

from coding_attention.exercises.core import Exercise
from coding_attention.exercises.table import Field, Table, hints, right, wrong

PAGE = "07_where_the_time_goes"
LAYERS, HEADS, KV_HEADS, D_HEAD, BYTES = 12, 12, 4, 64, 4
_PER_TOKEN = 2 * LAYERS * KV_HEADS * D_HEAD * BYTES

_CACHE_BYTES = Table(
    "One whole number, bytes for each token,",
    (Field("bytes", "count", "Bytes for each token"),),
    (
        right(
            "A key and a value, in each layer, for each key head. The number of query "
            "heads does not enter, and that is the point of grouping them.",
            bytes=(_PER_TOKEN,),
        ),
        *hints(
            "bytes",
            [
                (_PER_TOKEN // 2, "Only the keys are counted, or only the values."),
                (
                    _PER_TOKEN * HEADS // KV_HEADS,
                    "This counts a key and a value for each query head. They share: "
                    "count the key heads.",
                ),
                (
                    _PER_TOKEN * HEADS // KV_HEADS // 2,
                    "This counts the query heads, and only the keys or the values.",
                ),
                (_PER_TOKEN // LAYERS, "This is one layer. The model has more."),
                (
                    _PER_TOKEN // BYTES,
                    "These are numbers. How many bytes has one of them?",
                ),
                (
                    _PER_TOKEN // D_HEAD,
                    "A key is a vector: its width is missing.",
                ),
                (
                    _PER_TOKEN * KV_HEADS,
                    "The key heads are counted twice. The width is that of one head.",
                ),
                (8 * _PER_TOKEN, "These are bits. A byte has eight of them."),
            ],
        ),
        wrong("Count one token in one layer first: a key and a value a key head."),
    ),
)

# A first tile that left (largest, total) = (1, 1.5), and the scores 3 and 3 to come.
_SHRINK = math.exp(1 - 3)
_TOTAL = 1.5 * _SHRINK + 2
_RUNNING = Table(
    "A pair of numbers, the largest score and the total,",
    (
        Field("largest", "number", "Largest score so far"),
        Field("total", "number", "Sum of the exponentials so far"),
    ),
    (
        right(
            "What was summed before is scaled down to the new largest score, and the "
            "two new scores count one each. So no exponential is above one.",
            largest=(3,),
            total=(_TOTAL,),
        ),
        wrong("The largest score so far is the larger one of both.", largest=(1,)),
        wrong("Largest scores do not add up. One of the two stays.", largest=(4,)),
        *(
            wrong(say, largest=(3,), total=(total,))
            for total, say in (
                (
                    1.5 + 2,
                    "The old total is added as it is. It was taken with another "
                    "largest score: scale it down first.",
                ),
                (
                    1.5 / _SHRINK + 2,
                    "The old total grows here. Its terms had less taken away from "
                    "their scores than now, so it must shrink.",
                ),
                (2.0, "The first tile is forgotten: its total counts too."),
                (1.5 * _SHRINK, "The second tile is forgotten: its scores count too."),
                (
                    1.5 + 2 * math.exp(2),
                    "The new scores are taken with the old largest one. Take the new.",
                ),
                (
                    1.5 * _SHRINK + 1,
                    "There are two new scores, and each counts one.",
                ),
                (
                    1.5 * math.exp(1) + 2 * math.exp(3),
                    "Nothing is taken away before the exponential. That overflows as "
                    "soon as scores are large.",
                ),
                (
                    _SHRINK + 2,
                    "The old total is not one: it was 1.5 before it shrinks.",
                ),
                (
                    (1.5 + 2) * _SHRINK,
                    "The new scores shrink too. They are taken with the new largest "
                    "score already.",
                ),
            )
        ),
        wrong(
            "total = total · shrink + sum of e, with shrink = exp(old largest − new "
            "largest).",
            largest=(3,),
        ),
        wrong("Which score of both tiles is the largest?"),
    ),
)

EXERCISES = [
    Exercise("cache-bytes", PAGE, "One whole number", _CACHE_BYTES),
    Exercise("running-softmax", PAGE, "A pair of numbers", _RUNNING),
]
