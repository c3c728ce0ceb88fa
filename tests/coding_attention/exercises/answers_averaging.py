"""Exercises on the averaging route: right answers and named mistakes."""

import torch

WEIGHTS = torch.tensor([0.5, 0.25, 0.125, 0.125])


def tril(x):
    return torch.ones(x.shape[1], x.shape[1]).tril()


def by_loop(x):
    means = [x[:, : i + 1].mean(dim=1) for i in range(x.shape[1])]
    return torch.stack(means, dim=1)


def by_matrix(x):
    return tril(x) / tril(x).sum(dim=1, keepdim=True) @ x


def by_softmax(x):
    scores = torch.zeros_like(tril(x)).masked_fill(tril(x) == 0, -torch.inf)
    return scores.softmax(-1) @ x


def by_sums(x):
    return x.cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None]


RIGHT = {
    "mean-of-the-past": {
        "loop": by_loop,
        "matrix": by_matrix,
        "softmax": by_softmax,
        "sums": by_sums,
    },
    "scores-for-weights": {
        "logarithm": torch.log(WEIGHTS),
        "shifted": torch.log(WEIGHTS) + 5,
        "list": [1.38629, 0.693147, 0, 0],
    },
}
WRONG = {
    "mean-of-the-past": {
        "all": (
            lambda x: x.mean(1, keepdim=True).expand_as(x), "the future included"
        ),
        "one": (lambda x: x.mean(1), "One mean a sequence"),
        "sums": (lambda x: x.cumsum(1), "These are the sums of the past"),
        "tril alone": (lambda x: tril(x) @ x, "These are the sums of the past"),
        "by t": (lambda x: tril(x) @ x / x.shape[1], "by the number of all tokens"),
        "without itself": (
            lambda x: tril(x).tril(-1) / tril(x).tril(-1).sum(1, keepdim=True) @ x,
            "does not count itself",
        ),
        "without itself, the first one zero": (
            lambda x: (x.cumsum(1) - x)
            / torch.arange(x.shape[1]).clamp(min=1)[:, None],
            "does not count itself",
        ),
        "without itself, the first one kept": (
            lambda x: torch.cat(
                [x[:, :1], by_sums(x)[:, :-1]], dim=1
            ),
            "does not count itself",
        ),
        "without itself, by one too many": (
            lambda x: (x.cumsum(1) - x) / torch.arange(1, x.shape[1] + 1)[:, None],
            "does not count itself",
        ),
        "upside down": (
            lambda x: tril(x).T / tril(x).T.sum(1, keepdim=True) @ x,
            "what is still to come",
        ),
        "batch": (
            lambda x: x.cumsum(0) / torch.arange(1, len(x) + 1)[:, None, None],
            "sequences of the batch",
        ),
        "features": (
            lambda x: x.cumsum(2) / torch.arange(1, x.shape[2] + 1),
            "runs over the numbers of each token",
        ),
        "softmax of tril": (lambda x: tril(x).softmax(-1) @ x, "exp of zero is one"),
        "columns": (
            lambda x: torch.zeros_like(tril(x)).masked_fill(tril(x) == 0, -torch.inf)
            .softmax(0) @ x,
            "runs down the columns",
        ),
    },
    "scores-for-weights": {
        "weights": (WEIGHTS, "These are the weights"),
        "exp": (WEIGHTS.exp(), "exp goes the same way"),
        "sign": (-WEIGHTS.log(), "The sign is wrong"),
        "log2": ([-1, -2, -3, -3], "powers of e"),
        "softmax": (WEIGHTS.softmax(0), "This is softmax of the weights"),
        "inverse": ([2, 4, 8, 8], "needs the largest score"),
        "equal": ([0, 0, 0, 0], "Softmax of these gives 0.250"),
        "hidden": (
            torch.tensor([0.0, 0.0, -torch.inf, -torch.inf]), "Only minus infinity"
        ),
        "three": ([1.0, 2.0, 3.0], "A row of four scores is asked for"),
        "words": (["a", "b", "c", "d"], "A row of four scores is asked for"),
    },
}  # fmt: skip
