"""Exercises on attention to another sequence, and on one token at a time."""

import torch

from coding_attention.exercises.core import (
    Exercise,
    FunctionCheck,
    seeded,
)

PAGE = "05_multi_head_attention"


def _cross(x, memory, W_query, W_key, W_value, hide=None, scale=None, dim=-1):
    queries, keys, values = x @ W_query, memory @ W_key, memory @ W_value
    scores = queries @ keys.transpose(1, 2)
    if hide is not None:
        scores = scores.masked_fill(hide(scores), -torch.inf)
    scale = keys.shape[-1] ** 0.5 if scale is None else scale
    return torch.softmax(scores / scale, dim=dim) @ values


def _cross_cases():
    weights = [seeded(3, 2, seed=s) for s in (2, 3, 4)]
    equal = seeded(2, 4, 3, seed=5), seeded(2, 4, 3, seed=6)
    return [(*equal, *weights), (seeded(2, 2, 3), seeded(2, 5, 3, seed=1), *weights)]


_CROSS_MISTAKES = (
    (
        lambda x, m, q, k, v: _cross(m, x, q, k, v),
        "x and memory have changed places. The tokens that ask are those of x.",
    ),
    (
        lambda x, m, q, k, v: _cross(x, x, q, k, v),
        "Keys and values come from x: this is self-attention. memory is not used.",
    ),
    (
        lambda x, m, q, k, v: _cross(m, m, q, k, v),
        "x is not used. Its tokens are those that ask.",
    ),
    (
        lambda x, m, q, k, v: (
            torch.softmax((x @ q) @ (m @ k).mT / 2**0.5, dim=-1) @ (x @ v)
        ),
        "The values come from x. What is asked about is memory: keys and values both.",
    ),
    (
        lambda x, m, q, k, v: (
            torch.softmax((x @ q) @ (x @ k).mT / 2**0.5, dim=-1) @ (m @ v)
        ),
        "The keys come from x. What is asked about is memory: keys and values both.",
    ),
    (
        lambda x, m, q, k, v: _cross(
            x, m, q, k, v, hide=lambda s: torch.ones_like(s).triu(1).bool()
        ),
        "A causal mask hides part of memory. All of memory exists already, for every "
        "token of x.",
    ),
    (
        lambda x, m, q, k, v: _cross(x, m, q, k, v, scale=1.0),
        "The scores are not divided by the root of the keys' width.",
    ),
    (
        lambda x, m, q, k, v: _cross(x, m, q, k, v, scale=2.0),
        "The scores are divided by the width of a key. Its root is meant.",
    ),
    (
        lambda x, m, q, k, v: _cross(x, m, q, k, v, scale=3**0.5),
        "The scores are divided by the root of d_in. The width of a key is meant.",
    ),
    (
        lambda x, m, q, k, v: _cross(x, m, q, k, v, dim=-2),
        "Softmax runs over the queries. The weights of each query must sum to one.",
    ),
)


def _step(query, key, value, past_keys, past_values, order=1, hide=False, scale=None):
    keys = torch.cat([past_keys, key][::order], dim=2)
    values = torch.cat([past_values, value][::order], dim=2)
    scores = query @ keys.transpose(2, 3)
    if hide:
        future = torch.ones_like(scores).triu(1).bool()
        scores = scores.masked_fill(future, -torch.inf)
    scale = query.shape[-1] ** 0.5 if scale is None else scale
    return torch.softmax(scores / scale, dim=-1) @ values, keys, values


def _past_only(q, k, v, past_k, past_v):
    scores = q @ past_k.transpose(2, 3) / q.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1) @ past_v


def _itself_only(q, k, v, past_k, past_v):
    return v, *_step(q, k, v, past_k, past_v)[1:]


def _step_cases():
    new = [seeded(2, 3, 1, 4, seed=s) for s in range(3)]
    second = [seeded(1, 2, 1, 4, seed=s) for s in (5, 6, 7)]
    past = [seeded(2, 3, 5, 4, seed=s) for s in (3, 4)]
    none = [torch.empty(1, 2, 0, 4) for _ in range(2)]
    return [(*new, *past), (*second, *none)]


_STEP_MISTAKES = (
    (
        lambda *a: (_step(*a)[0], *a[3:]),
        "The result is right, but the keys and values that it returns are the old "
        "ones. The next step needs those of this token too.",
    ),
    (
        lambda *a: (_past_only(*a), *_step(*a)[1:]),
        "The token does not see itself: attend after appending its key and value.",
    ),
    (
        lambda *a: (_past_only(*a), *a[3:]),
        "The new key and value are not used. Append them to those of the past first.",
    ),
    (
        _itself_only,
        "The token sees itself only: a softmax over one key is one. Attend to all "
        "keys, those of the past included.",
    ),
    (
        lambda *a: (a[2], *a[1:3]),
        "The past is not used. Append the new key and value to it.",
    ),
    (
        lambda *a: _step(*a, order=-1),
        "The new token stands before the past. It comes after it: the order of the "
        "tokens is the order of the rows.",
    ),
    (
        lambda *a: _step(*a, hide=True),
        "A causal mask for one row of scores hides all but the first key. The one "
        "query is the newest token, and nothing is to be hidden from it.",
    ),
    (
        lambda *a: _step(*a, scale=1.0),
        "The scores are not divided by the root of d_head.",
    ),
    (
        lambda *a: _step(*a, scale=a[0].shape[-1]),
        "The scores are divided by d_head. Its root is meant.",
    ),
    (
        lambda *a: _step(*a)[0],
        "This is the context vector alone. Return three: context, keys, values.",
    ),
    (
        lambda *a: (_step(*a)[0], *_step(*a)[:0:-1]),
        "keys and values are returned in the wrong order.",
    ),
    (
        lambda q, k, v, pk, pv: _step(
            q, torch.cat([pk, k], 1), v, pk, torch.cat([pv, v], 1)
        ),
        "The new key is joined along the heads. The tokens are axis 2.",
    ),
)


EXERCISES = [
    Exercise(
        "cross-attention",
        PAGE,
        "A function cross_attention(x, memory, W_query, W_key, W_value)",
        FunctionCheck(
            "cross_attention(x, memory, W_query, W_key, W_value)",
            _cross,
            _cross_cases,
            _CROSS_MISTAKES,
            "The weights have one row for each token of x and one column for each of "
            "memory. Decoders read a source text in this way.",
        ),
    ),
    Exercise(
        "cache-step",
        PAGE,
        "A function step(query, key, value, past_keys, past_values)",
        FunctionCheck(
            "step(query, key, value, past_keys, past_values)",
            _step,
            _step_cases,
            _STEP_MISTAKES,
            "One row of scores for the new token, and nothing of the past is computed "
            "again. This is what a key-value cache saves.",
        ),
    ),
]
