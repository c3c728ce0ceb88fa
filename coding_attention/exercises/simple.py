"""Exercises on simple self-attention."""

import torch

from attention.simple import simple_self_attention, softmax_naive
from coding_attention.exercises.core import (
    Exercise,
    FunctionCheck,
    seeded,
)
from coding_attention.exercises.table import Field, Table, hints, right, wrong

PAGE = "02_simple_self_attention"


_SCORES, _CONTEXT = (2, 6, 6), (2, 6, 3)
_NOT_THESE_SCORES = "The scores do not have the shape {scores}."
_NOT_THIS_CONTEXT = "The context vectors do not have the shape {context}."

_TWO_SHAPES = Table(
    "A pair of shapes, of the scores and of the context vectors,",
    (
        Field("scores", "shape", "Shape of the scores"),
        Field("context", "shape", "Shape of the context vectors"),
    ),
    (
        right(
            "Each sequence has a score for each pair of tokens. The context vectors "
            "are averages of the inputs, so they have the shape of the inputs.",
            scores=(_SCORES,),
            context=(_CONTEXT,),
        ),
        wrong(
            "These are the right shapes the other way round: scores first.",
            scores=(_CONTEXT,),
            context=(_SCORES,),
        ),
        *hints(
            "scores",
            [
                (shape, f"{_NOT_THESE_SCORES} {words}")
                for shape, words in (
                    (
                        (2, 3, 3),
                        "That is the shape of x.transpose(1, 2) @ x, which compares "
                        "features. Scores compare tokens.",
                    ),
                    (
                        (6, 6),
                        "One matrix of scores would do for one sequence. There are "
                        "two.",
                    ),
                    (
                        (2, 6, 3),
                        "That is the shape of x. A score belongs to a pair of tokens.",
                    ),
                    (
                        (12, 12),
                        "So tokens of one sequence would attend to those of the other. "
                        "Sequences of a batch do not see each other.",
                    ),
                    (
                        (2, 2, 6, 6),
                        "A sequence attends to itself only, so the batch counts once.",
                    ),
                )
            ],
        ),
        *(
            wrong(f"{_NOT_THIS_CONTEXT} {words}", scores=(_SCORES,), context=(shape,))
            for shape, words in (
                (
                    (2, 6, 6),
                    "That is the shape of the weights. They are still multiplied with "
                    "x.",
                ),
                ((6, 3), "There are two sequences."),
                (
                    (2, 3),
                    "One vector for each token is asked for, not one for each "
                    "sequence.",
                ),
                ((2, 3, 6), "The tokens stay on the axis on which they are in x."),
            )
        ),
        wrong(
            f"{_NOT_THIS_CONTEXT} Multiply the shapes of weights and x: which axes "
            f"meet?",
            scores=(_SCORES,),
        ),
        wrong(f"{_NOT_THESE_SCORES} A score belongs to one query and one key: which?"),
    ),
)

_WHICH_DIM = Table(
    "One whole number, an axis,",
    (Field("dim", "number", "dim"),),
    (
        right(
            "A row holds the scores of one query with all keys, and the last axis runs "
            "along it. So the weights of each query sum to one.",
            dim=(-1, 3),
        ),
        wrong(
            "Axis 0 counts sequences. The weights of the first sequence would depend "
            "on what the second one says.",
            dim=(0, -4),
        ),
        wrong(
            "Axis 1 counts heads. The heads would compete for each pair of tokens.",
            dim=(1, -3),
        ),
        wrong(
            "Axis 2 counts queries. The weights that a key gets would sum to one, not "
            "those that a query gives.",
            dim=(2, -2),
        ),
        wrong("A tensor of four axes has the axes 0 to 3, or -4 to -1."),
    ),
)


def _right_softmax(scores):
    return torch.softmax(scores, dim=-1)


def _softmax_cases():
    return [
        (seeded(4, 4),),
        (seeded(2, 3, 5, seed=1),),
        (torch.tensor([100.0, 99.0, 98.0]),),
        # Rows that lie far apart: one common maximum is not enough.
        (torch.tensor([[0.0, 1.0, 2.0], [500.0, 501.0, 499.0]]),),
        (torch.tensor([[-200.0, -201.0], [0.3, 0.1]]),),
        (torch.tensor([-300.0, -300.0, -300.0, 0.0]),),
        # Too large for exp in double precision as well.
        (torch.tensor([800.0, 801.0]),),
    ]


def _naive_in_double(scores):
    exp = torch.exp(scores.double())
    return exp / exp.sum(dim=-1, keepdim=True)


def _over_the_total(shift):
    def function(scores):
        exp = torch.exp(scores - shift(scores))
        return exp / exp.sum()

    return function


def _exp_share(dim, shift):
    def function(scores):
        exp = torch.exp(scores - shift(scores))
        return exp / exp.sum(dim=dim, keepdim=True)

    return function


def _row_maximum(scores):
    return scores.max(dim=-1, keepdim=True).values


def _without_keepdim(scores):
    exp = torch.exp(scores - scores.max(dim=-1).values)
    return exp / exp.sum(dim=-1)


def _sum_without_keepdim(scores):
    exp = torch.exp(scores - _row_maximum(scores))
    return exp / exp.sum(dim=-1)


_OVERFLOW = (
    "For small scores it is right. For large ones exp overflows to infinity, and "
    "infinity divided by infinity is no number. Softmax stays the same if the same "
    "number is taken from all scores of a row: which one keeps exp small?"
)
_TOTAL = (
    "It divides by the sum over all rows, so only all weights together sum to one. "
    "Each row is divided by its own sum: sum(dim=-1, keepdim=True)."
)
_KEEPDIM = (
    "The division pairs rows with columns. max and sum drop the axis that they work "
    "along; with keepdim=True it stays, and each row meets its own value."
)

_SOFTMAX_MISTAKES = (
    (_exp_share(-1, lambda s: 0.0), _OVERFLOW),
    (softmax_naive, _OVERFLOW + " It also sums over axis 0, not over the last one."),
    (
        _exp_share(-1, lambda s: s.max()),
        "It takes the largest score of the whole tensor from every row. A row far "
        "below it then has nothing but zeros left, and zero by zero is no number. "
        "Take from each row its own largest score.",
    ),
    (
        _exp_share(0, lambda s: s.amax(0, keepdim=True)),
        "It works along axis 0. The scores of one query stand on the last axis.",
    ),
    (
        _exp_share(-1, lambda s: s.mean(dim=-1, keepdim=True)),
        "It takes the mean from each row. Half of the scores stay above it, and a "
        "score far above still overflows. Take the largest.",
    ),
    (
        lambda s: torch.exp(s - _row_maximum(s)),
        "The largest weight of each row is one: the division by the sum is missing.",
    ),
    (
        lambda s: s / s.sum(dim=-1, keepdim=True),
        "It divides the scores by their sum, so negative scores give negative "
        "weights. Softmax takes the exponential first.",
    ),
    (
        lambda s: torch.log_softmax(s, dim=-1),
        "These are the logarithms of the weights. The last step back is exp.",
    ),
    (_over_the_total(_row_maximum), _TOTAL),
    (_over_the_total(lambda s: 0.0), f"{_TOTAL} And large scores overflow in exp."),
    (_over_the_total(lambda s: s.max()), _TOTAL),
    (
        _naive_in_double,
        "float64 only moves the limit: exp overflows at 710 instead of 89. No row is "
        "shifted. Softmax stays the same if the same number is taken from all scores "
        "of a row: which one keeps exp small, however large the scores are?",
    ),
    (_without_keepdim, _KEEPDIM),
    (_sum_without_keepdim, _KEEPDIM),
)


def _both(x):
    scores = x @ x.transpose(-2, -1)
    return scores, torch.softmax(scores, dim=-1)


def _right_pair(x):
    weights = _both(x)[1]
    return weights @ x, weights


def _scaled_pair(x, power):
    weights = torch.softmax(_both(x)[0] / x.shape[-1] ** power, dim=-1)
    return weights @ x, weights


_NOT_SCALED = (
    "Nothing is divided here: simple self-attention takes the scores as they are. The "
    "division comes with trainable weights, on the next page."
)

_PAIR_MISTAKES = (
    (lambda x: _right_pair(x)[::-1], "Both are right, in the wrong order: z, then α."),
    (simple_self_attention, "These are the context vectors alone. Return a pair."),
    (lambda x: _both(x)[1], "These are the weights alone. Return a pair: z, α."),
    (
        lambda x: (_right_pair(x)[0], _both(x)[0]),
        "The second result holds the scores. The weights are what softmax makes of "
        "them.",
    ),
    (
        lambda x: (_both(x)[0] @ x, _both(x)[0]),
        "Softmax is missing: scores are used as weights.",
    ),
    (
        lambda x: (_both(x)[0].softmax(-2) @ x, _both(x)[0].softmax(-2)),
        "Softmax runs along the columns. The weights of each query must sum to one.",
    ),
    (lambda x: _scaled_pair(x, 0.5), f"The scores are divided by √d. {_NOT_SCALED}"),
    (lambda x: _scaled_pair(x, 1.0), f"The scores are divided by d. {_NOT_SCALED}"),
    (
        lambda x: (_right_pair(x)[0], _scaled_pair(x, 0.5)[1]),
        "Only the weights are scaled, and the context vectors come from others. Return "
        "the weights that made them.",
    ),
    (
        lambda x: (_right_pair(x)[0], _both(x)[1].mean(dim=-2)),
        "The weights are averaged over the queries. Return them all, one row a query.",
    ),
)

EXERCISES = [
    Exercise("shapes", PAGE, "A pair of shapes", _TWO_SHAPES),
    Exercise("which-dim", PAGE, "One whole number, an axis,", _WHICH_DIM),
    Exercise(
        "safe-softmax",
        PAGE,
        "A function safe_softmax(scores)",
        FunctionCheck(
            "safe_softmax(scores)",
            _right_softmax,
            _softmax_cases,
            _SOFTMAX_MISTAKES,
            "Each row is shifted by its own largest score, so the largest exponential "
            "is one and nothing overflows.",
            without=("softmax", "log_softmax", "logsumexp"),
        ),
    ),
    Exercise(
        "weights-too",
        PAGE,
        "A function attend(x)",
        FunctionCheck(
            "attend(x)",
            _right_pair,
            lambda: [(seeded(6, 3),), (seeded(2, 5, 4, seed=1),)],
            _PAIR_MISTAKES,
            "With the weights at hand you can plot who attends to whom.",
        ),
    ),
]
