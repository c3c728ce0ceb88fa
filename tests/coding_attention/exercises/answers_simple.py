"""Exercises on simple self-attention: right answers and named mistakes."""

import torch
from torch import nn

from attention import simple_self_attention, softmax_naive


def by_row_maximum(scores):
    exp = (scores - scores.max(dim=-1, keepdim=True).values).exp()
    return exp / exp.sum(dim=-1, keepdim=True)


def by_logarithm(scores):
    top = scores.amax(-1, True)
    return (scores - top - (scores - top).exp().sum(-1, True).log()).exp()


def naive(scores):
    return scores.exp() / scores.exp().sum(dim=-1, keepdim=True)


def naive_sum(scores):
    return (scores - scores.amax(-1, True)).exp().sum(-1)


def common_maximum(scores):
    return naive(scores - scores.max())


def along_rows(scores):
    exp = (scores - scores.amax(0, keepdim=True)).exp()
    return exp / exp.sum(0, keepdim=True)


def keepdim_forgotten(scores):
    exp = (scores - scores.max(dim=-1).values).exp()
    return exp / exp.sum(dim=-1)


def over_the_total(scores):
    exp = (scores - scores.amax(-1, keepdim=True)).exp()
    return exp / exp.sum()


def values_forgotten(scores):
    return naive(scores - scores.max(-1, keepdim=True))


def in_double(scores):
    return naive(scores.double()).to(scores.dtype)


def in_place(scores):
    scores -= scores.amax(-1, keepdim=True)
    return naive(scores)


def pair(x):
    weights = torch.softmax(x @ x.mT, dim=-1)
    return weights @ x, weights


def pair_scaled(x, power=0.5):
    weights = torch.softmax(x @ x.mT / x.shape[-1] ** power, dim=-1)
    return weights @ x, weights


def pair_by_einsum(x):
    weights = nn.Softmax(dim=-1)(torch.einsum("...id,...jd->...ij", x, x))
    return [torch.einsum("...ij,...jd->...id", weights, x), weights]


RIGHT = {
    "shapes": {
        "tuples": ((2, 6, 6), (2, 6, 3)),
        "lists": [[2, 6, 6], [2, 6, 3]],
        "sizes": (torch.Size([2, 6, 6]), torch.empty(2, 6, 3).shape),
    },
    "which-dim": {"last": -1, "three": 3, "tensor": torch.tensor(-1)},
    "safe-softmax": {"row maximum": by_row_maximum, "logarithm": by_logarithm},
    "weights-too": {
        "function": pair,
        "einsum": pair_by_einsum,
        "through the package": lambda x: (
            simple_self_attention(x),
            (x @ x.transpose(-1, -2)).softmax(-1),
        ),
    },
}
WRONG = {
    "shapes": {
        "features": (((2, 3, 3), (2, 6, 3)), "compares features"),
        "no batch": (((6, 6), (6, 3)), "There are two"),
        "exchanged": (((2, 6, 3), (2, 6, 6)), "the other way round"),
        "context as weights": (((2, 6, 6), (2, 6, 6)), "multiplied with x"),
        "one vector a sequence": (((2, 6, 6), (2, 3)), "One vector for each token"),
        "batch joined": (((12, 12), (12, 3)), "do not see each other"),
        "unknown": (((1, 2), (3, 4)), "one query and one key"),
        "one shape": ((2, 6, 6), "A pair of shapes"),
        "tensors": ((torch.empty(2, 6, 6), torch.empty(2, 6, 3)), "pass the .shape"),
    },
    "which-dim": {
        "batch": (0, "Axis 0 counts sequences"),
        "heads": (1, "Axis 1 counts heads"),
        "queries": (-2, "Axis 2 counts queries"),
        "no axis": (4, "has the axes 0 to 3"),
        "half": (0.5, "has the axes 0 to 3"),
        "bool": (True, "One whole number, an axis, is asked for"),
        "two": ((2, 3), "One whole number, an axis, is asked for"),
    },
    "safe-softmax": {
        "naive": (naive, "exp overflows to infinity"),
        "the page's": (softmax_naive, "It also sums over axis 0"),
        "common maximum": (common_maximum, "its own largest score"),
        "axis 0": (along_rows, "It works along axis 0"),
        "not divided": (
            lambda s: (s - s.amax(-1, True)).exp(), "division by the sum is missing"
        ),
        "scores by sum": (
            lambda s: s / s.sum(-1, keepdim=True), "negative scores give negative"
        ),
        "logarithm": (
            lambda s: s - s.amax(-1, True)
            - (s - s.amax(-1, True)).exp().sum(-1, True).log(),
            "The last step back is exp",
        ),
        "mean": (lambda s: naive(s - s.mean(-1, keepdim=True)), "Take the largest"),
        "keepdim": (keepdim_forgotten, "with keepdim=True it stays"),
        "keepdim of the sum": (
            lambda s: by_row_maximum(s) * naive_sum(s)[..., None] / naive_sum(s),
            "with keepdim=True it stays",
        ),
        "total": (over_the_total, "divides by the sum over all rows"),
        "naive, by the total": (
            lambda s: s.exp() / s.exp().sum(), "divides by the sum over all rows"
        ),
        "no values": (values_forgotten, ".values"),
        "float64": (in_double, "float64 only moves the limit"),
        "float64, kept": (lambda s: naive(s.double()), "float64 only moves the limit"),
        "torch": (lambda s: torch.softmax(s, -1), "PyTorch's own softmax"),
        "module": (nn.Softmax(dim=-1), "PyTorch's own softmax"),
        "in place": (in_place, "changes its input in place"),
        "raises": (lambda s: s.no_such_thing(), "It raised AttributeError"),
        "a number": (lambda s: 3, "A tensor is asked for, but it returns 3 (int)"),
        "shape": (lambda s: torch.zeros(1), "The shape is (1,), but (4, 4)"),
        "zeros": (torch.zeros_like, "The shape is right, the numbers are not"),
        "the class": (nn.Softmax, "but got the class Softmax"),
    },
    "weights-too": {
        "exchanged": (lambda x: pair(x)[::-1], "in the wrong order"),
        "context alone": (simple_self_attention, "These are the context vectors alone"),
        "weights alone": (lambda x: pair(x)[1], "These are the weights alone"),
        "scores": (lambda x: (pair(x)[0], x @ x.mT), "The second result holds the"),
        "columns": (
            lambda x: ((x @ x.mT).softmax(-2) @ x, (x @ x.mT).softmax(-2)),
            "Softmax runs along the columns",
        ),
        "no softmax": (lambda x: (x @ x.mT @ x, x @ x.mT), "Softmax is missing"),
        "averaged": (
            lambda x: (pair(x)[0], pair(x)[1].mean(-2)), "averaged over the queries"
        ),
        "scaled": (pair_scaled, "Nothing is divided here"),
        "scaled by d": (lambda x: pair_scaled(x, 1.0), "Nothing is divided here"),
        "scaled, weights alone": (
            lambda x: (pair(x)[0], pair_scaled(x)[1]), "Only the weights are scaled"
        ),
        "three": (lambda x: (*pair(x), x), "2 results are asked for"),
        "second wrong": (
            lambda x: (pair(x)[0], pair(x)[1] * 2), "In result 2 of 2: The shape is"
        ),
    },
}  # fmt: skip
