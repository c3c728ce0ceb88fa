"""Exercises on trainable self-attention: right answers and named mistakes."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from attention import SelfAttention_v1

NAMES = ("W_query", "W_key", "W_value")


def by_parameter(v2, v1):
    for name in NAMES:
        setattr(v1, name, nn.Parameter(getattr(v2, name).weight.T))
    return v1


def by_copy(v2, v1):
    with torch.no_grad():
        for name in NAMES:
            getattr(v1, name).copy_(getattr(v2, name).weight.T)


def by_data(v2, v1):
    for name in NAMES:
        getattr(v1, name).data = getattr(v2, name).weight.data.t()
    return v1


def by_state_dict(v2, v1):
    v1.load_state_dict({n: v2.state_dict()[f"{n}.weight"].T for n in NAMES})
    return v1


def new_instance(v2, v1):
    fresh = SelfAttention_v1(*v1.W_query.shape)
    return by_parameter(v2, fresh)


def not_transposed(v2, v1):
    for name in NAMES:
        setattr(v1, name, nn.Parameter(getattr(v2, name).weight))


def copied_as_it_is(v2, v1):
    for name in NAMES:
        getattr(v1, name).data.copy_(getattr(v2, name).weight)


def value_forgotten(v2, v1):
    v1.W_query = nn.Parameter(v2.W_query.weight.T)
    v1.W_key = nn.Parameter(v2.W_key.weight.T)


def key_from_query(v2, v1):
    by_parameter(v2, v1)
    v1.W_key = nn.Parameter(v2.W_query.weight.T)


def other_direction(v2, v1):
    for name in NAMES:
        getattr(v2, name).weight.data = getattr(v1, name).data.T


def plain_tensor(v2, v1):
    v1.W_query = v2.W_query.weight.T


def whole_layer(v2, v1):
    v1.W_query = v2.W_query


def recorded(v2, v1):
    v1.W_query.copy_(v2.W_query.weight.T)


def scaled(v2, v1):
    for name in NAMES:
        setattr(v1, name, nn.Parameter(2 * getattr(v2, name).weight.T))


def no_parameter(v2, v1):
    by_parameter(v2, v1)
    del v1.W_query
    v1.W_query = v2.W_query.weight.T.detach()


def einsum(q, k, v, scale=None, dim=-1):
    scores = torch.einsum("bqd,bkd->bqk", q, k) / (scale or q.shape[-1] ** 0.5)
    return torch.einsum("bqk,bkv->bqv", torch.softmax(scores, dim=dim), v)


def einsum_masked(q, k, v):
    scores = torch.einsum("bqd,bkd->bqk", q, k)
    future = torch.ones_like(scores).triu(1).bool()
    scores = scores.masked_fill(future, -torch.inf) / q.shape[-1] ** 0.5
    return torch.einsum("bqk,bkv->bqv", scores.softmax(-1), v)


def einsum_other_letters(q, k, v):
    scores = torch.einsum("nid,njd->nij", q / q.shape[-1] ** 0.5, k)
    return torch.einsum("nij,nje->nie", scores.softmax(2), v)


def weights(q, k):
    return torch.softmax(torch.einsum("bqd,bkd->bqk", q, k) / 2.0, dim=-1)


RIGHT = {
    "3.1": {
        "parameter": by_parameter,
        "copy": by_copy,
        "data": by_data,
        "state dict": by_state_dict,
        "new instance": new_instance,
    },
    "scale": {"number": 4, "root": 16**0.5, "tensor": torch.tensor(4.0),
              "numpy": np.float64(4)},
    "count-weights": {"number": 24, "sum": 3 * (2 * 3 + 2), "float": 24.0},
    "einsum": {"einsum": einsum, "other letters": einsum_other_letters},
}  # fmt: skip
WRONG = {
    "3.1": {
        "not transposed": (not_transposed, "A weight was moved as it is"),
        "copied as it is": (copied_as_it_is, "A weight was moved as it is"),
        "one forgotten": (value_forgotten, "v1 still has its old W_value"),
        "mixed up": (key_from_query, "v1.W_key got the weights of v2.W_query"),
        "other direction": (other_direction, "They are to go from v2 into v1"),
        "plain tensor": (plain_tensor, "Wrap the tensor in nn.Parameter"),
        "no parameter": (no_parameter, "v1.W_query is no nn.Parameter any more"),
        "whole layer": (whole_layer, "Not the whole layer"),
        "recorded": (recorded, "Copy under torch.no_grad()"),
        "state dict": (
            lambda v2, v1: v1.load_state_dict(v2.state_dict()), "The names differ"
        ),
        "scaled": (scaled, "does not hold the numbers of v2.W_query.weight"),
        "raises": (lambda v2, v1: v2.weight, "It raised AttributeError"),
        "an instance": (SelfAttention_v1(3, 2), "It raised TypeError"),
    },
    "scale": {
        "no root": (16, "Divide by its root"),
        "d_in": (5**0.5, "This is the root of d_in"),
        "rounded": (2.236, "This is the root of d_in"),
        "tokens": (3, "the root of the number of tokens"),
        "factor": (0.25, "Asked for is the divisor"),
        "half": (8, "Half of the width is not its root"),
        "unknown": (7, "Which sizes has a key"),
        "nan": (float("nan"), "nan is not finite"),
    },
    "count-weights": {
        "no biases": (18, "the biases are not"),
        "one layer": (8, "This is one of the three layers"),
        "bias d_in": (27, "one number for each output"),
        "one bias": (20, "has biases of its own"),
        "times tokens": (144, "The number of tokens does not enter"),
        "unknown": (25, "Count one nn.Linear first"),
    },
    "einsum": {
        "not scaled": (
            lambda q, k, v: einsum(q, k, v, scale=1.0), "are not divided by the root"
        ),
        "no root": (
            lambda q, k, v: einsum(q, k, v, scale=4.0), "Its root is meant"
        ),
        "multiplied": (
            lambda q, k, v: einsum(q, k, v, scale=0.5), "multiplied by the root"
        ),
        "tokens": (
            lambda q, k, v: einsum(q, k, v, scale=k.shape[1] ** 0.5),
            "the root of the number of keys",
        ),
        "d_v": (
            lambda q, k, v: einsum(q, k, v, scale=v.shape[-1] ** 0.5),
            "the root of the values' width",
        ),
        "masked": (einsum_masked, "A causal mask hides some of the keys"),
        "queries": (lambda q, k, v: einsum(q, k, v, dim=1), "runs over the queries"),
        "batch": (lambda q, k, v: einsum(q, k, v, dim=0), "runs over the batch"),
        "transposed": (
            lambda q, k, v: torch.einsum("bqk,bqv->bkv", weights(q, k), v),
            "The weights are transposed",
        ),
        "scores": (
            lambda q, k, v: torch.einsum("bqd,bkd->bqk", q, k) / 2.0,
            "These are the scores",
        ),
        "weights": (lambda q, k, v: weights(q, k), "These are the weights"),
        "no softmax": (
            lambda q, k, v: torch.einsum("bqd,bkd,bkv->bqv", q, k, v),
            "Softmax is missing",
        ),
        "no einsum": (
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
            "Now write it with torch.einsum",
        ),
        "bad letters": (
            lambda q, k, v: torch.einsum("bqd,bkd->bqk", q, v), "It raised RuntimeError"
        ),
    },
}  # fmt: skip
