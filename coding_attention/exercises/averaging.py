"""Exercises on the averaging route."""

import torch

from coding_attention.exercises.core import (
    Exercise,
    FunctionCheck,
    NotRight,
    described,
    seeded,
)
from coding_attention.exercises.table import Field, Table, right, wrong

PAGE = "06_averaging"
WEIGHTS = torch.tensor([0.5, 0.25, 0.125, 0.125])


def _right_mean(x):
    counts = torch.arange(1, x.shape[1] + 1)[:, None]  # (t, 1)
    return x.cumsum(dim=1) / counts


def _mean_of_earlier(x):
    sums = x.cumsum(dim=1) - x
    return sums / torch.arange(x.shape[1])[:, None]


def _first_row_zero(x):
    return _mean_of_earlier(x).nan_to_num()


def _first_row_kept(x):
    return torch.cat([x[:, :1], _right_mean(x)[:, :-1]], dim=1)


_NOT_ITSELF = (
    "A token does not count itself: each row is the mean of the rows before it. Up to "
    "itself means with itself, so the first token gets what it is."
)


def _by_softmax(x, scores, dim=-1):
    return torch.softmax(scores, dim=dim) @ x


def _tril(x):
    return torch.ones(x.shape[1], x.shape[1]).tril()


_MEAN_MISTAKES = (
    (
        lambda x: x.mean(dim=1, keepdim=True).expand_as(x),
        "Each token gets the mean of the whole sequence, the future included.",
    ),
    (lambda x: x.mean(dim=1), "One mean a sequence. One for each token is asked for."),
    (
        lambda x: x.cumsum(dim=1),
        "These are the sums of the past. Divide each by how many tokens it holds.",
    ),
    (
        lambda x: x.cumsum(dim=1) / x.shape[1],
        "Every sum is divided by the number of all tokens. The first token has only "
        "itself to share with.",
    ),
    (
        _mean_of_earlier,
        "A token does not count itself, so the first one divides zero by zero.",
    ),
    (_first_row_zero, _NOT_ITSELF),
    (_first_row_kept, _NOT_ITSELF),
    (
        lambda x: (x.cumsum(dim=1) - x) / torch.arange(1, x.shape[1] + 1)[:, None],
        f"{_NOT_ITSELF} And the sums are divided by one token more than they hold.",
    ),
    (
        lambda x: (
            x.flip(1).cumsum(dim=1).flip(1) / torch.arange(x.shape[1], 0, -1)[:, None]
        ),
        "It averages over what is still to come. The triangle is upside down.",
    ),
    (
        lambda x: x.cumsum(dim=0) / torch.arange(1, len(x) + 1)[:, None, None],
        "It runs over the sequences of the batch. The tokens are axis 1.",
    ),
    (
        lambda x: x.cumsum(dim=2) / torch.arange(1, x.shape[2] + 1),
        "It runs over the numbers of each token. The tokens are axis 1.",
    ),
    (
        lambda x: _by_softmax(x, _tril(x)),
        "Softmax over ones and zeros gives the future weight too, since exp of zero is "
        "one. Hide it with minus infinity.",
    ),
    (
        lambda x: _by_softmax(
            x, torch.zeros_like(_tril(x)).masked_fill(_tril(x) == 0, -torch.inf), -2
        ),
        "Softmax runs down the columns. Each row must sum to one.",
    ),
)


_WANTED = "A row of four scores"


def _read_scores(answer):
    if isinstance(answer, tuple | list):
        try:
            answer = torch.tensor(answer, dtype=torch.float32)
        except (TypeError, ValueError):
            raise NotRight(
                f"{_WANTED} is asked for, but got {described(answer)}."
            ) from None
    if not isinstance(answer, torch.Tensor) or answer.shape != (4,):
        raise NotRight(f"{_WANTED} is asked for, but got {described(answer)}.")
    answer = answer.detach().double()
    return {
        "scores": tuple(answer.tolist()),
        "weights": tuple(torch.softmax(answer, dim=0).tolist()),
        "finite": "yes" if answer.isfinite().all() else "no",
    }


def _after_softmax(scores):
    # Softmax does not see a shift, so a shifted mistake is the same mistake.
    return (tuple(torch.softmax(scores.double(), dim=0).tolist()),)


_POWERS_OF_E = (
    "Softmax takes powers of e, so take the logarithm to that base: torch.log."
)
_SCORES_FOR = Table(
    _WANTED,
    (Field("scores", "numbers", "Four scores", length=4),),
    (
        right(
            "The logarithms of the weights do it, plus any number. So softmax can give "
            "any positive weights that sum to one, and equal scores give the mean.",
            weights=_after_softmax(torch.log(WEIGHTS)),
        ),
        *(
            wrong(say, weights=_after_softmax(scores))
            for scores, say in (
                (
                    WEIGHTS,
                    "These are the weights. Which scores does softmax turn into them?",
                ),
                (
                    torch.exp(WEIGHTS),
                    "exp goes the same way as softmax. Undo it instead.",
                ),
                (
                    -torch.log(WEIGHTS),
                    "The sign is wrong: the largest weight needs the largest score.",
                ),
                (torch.log2(WEIGHTS), _POWERS_OF_E),
                (torch.log10(WEIGHTS), _POWERS_OF_E),
                (
                    torch.softmax(WEIGHTS, dim=0),
                    "This is softmax of the weights. The other direction is asked for.",
                ),
                (1 / WEIGHTS, "The largest weight needs the largest score."),
            )
        ),
        wrong(
            "Only minus infinity is hidden; all four weights are above 0.",
            finite=("no",),
        ),
        wrong(
            "Softmax of these gives {weights}, asked for is "
            + ", ".join(f"{w:.3f}" for w in WEIGHTS.tolist())
            + "."
        ),
    ),
    read=_read_scores,
    derived=(Field("weights", "numbers", length=4), Field("finite", "text")),
)

EXERCISES = [
    Exercise(
        "mean-of-the-past",
        PAGE,
        "A function mean_of_past(x)",
        FunctionCheck(
            "mean_of_past(x)",
            _right_mean,
            lambda: [(seeded(2, 5, 3),), (seeded(3, 4, 4, seed=1),)],
            _MEAN_MISTAKES,
            "It is attention in which every score is the same.",
        ),
    ),
    Exercise("scores-for-weights", PAGE, _WANTED, _SCORES_FOR),
]
