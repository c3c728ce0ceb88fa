"""Exercises on trainable self-attention."""

import math

import torch

from attention.trainable import SelfAttention_v1, SelfAttention_v2
from coding_attention.exercises.core import (
    Exercise,
    Failed,
    FunctionCheck,
    NothingYet,
    NotRight,
    attempt,
    require_function,
    seeded,
)
from coding_attention.exercises.table import Field, Table, hints, right, wrong

PAGE = "03_trainable_self_attention"
NAMES = ("W_query", "W_key", "W_value")


def _pair(d_in, d_out):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        return SelfAttention_v1(d_in, d_out), SelfAttention_v2(d_in, d_out)


def _move(answer):
    require_function(answer, "move_v2_to_v1(v2, v1)")
    # Square matrices fit transposed or not; those that are not square refuse.
    for d_in, d_out in ((4, 4), (3, 2)):
        v1, v2 = _pair(d_in, d_out)
        old = {name: getattr(v1, name).detach().clone() for name in NAMES}
        source = {n: getattr(v2, n).weight.detach().clone() for n in NAMES}
        result = attempt(answer, v2, v1)
        if isinstance(result, SelfAttention_v1):
            v1 = result
        _look_at_weights(v1, v2, old, source, result)
    return (
        "nn.Linear stores its weight transposed, (d_out, d_in), so a .T turns one "
        "class into the other. Square weights fit either way, which is why only the "
        "values can tell."
    )


def _look_at_weights(v1, v2, old, source, result):
    if any(not torch.equal(getattr(v2, n).weight, source[n]) for n in NAMES):
        raise NotRight(
            "The weights of v2 have changed. They are to go from v2 into v1, not the "
            "other way."
        )
    now = {name: getattr(v1, name) for name in NAMES}
    for name, weight in now.items():
        if not isinstance(weight, torch.nn.Parameter):
            raise NotRight(
                f"v1.{name} is no nn.Parameter any more, so an optimizer will not find "
                f"it. Wrap the tensor in nn.Parameter, or copy into the old one."
            )
    if all(_equal(now[name], source[name].T) for name in NAMES):
        return
    if any(_equal(now[name], source[name]) for name in NAMES):
        raise NotRight(
            "A weight was moved as it is. nn.Linear stores it as (d_out, d_in), and "
            "v1 multiplies by (d_in, d_out). Square matrices fit either way and give "
            "a wrong output without an error."
        )
    for name in NAMES:
        other = [n for n in NAMES if n != name and _equal(now[name], source[n].T)]
        if other:
            raise NotRight(f"v1.{name} got the weights of v2.{other[0]}.")
    if isinstance(result, Failed):
        raise NotRight(f"It raised {result.kind}: {result.text}. {_advice(result)}")
    left = [name for name in NAMES if _equal(now[name], old[name])]
    if len(left) == 3 and result is None:
        raise NothingYet("The function leaves v1 as it is.")
    if left:
        raise NotRight(f"Not moved: v1 still has its old {' and '.join(left)}.")
    wrong = next(name for name in NAMES if not _equal(now[name], source[name].T))
    raise NotRight(
        f"v1.{wrong} does not hold the numbers of v2.{wrong}.weight, transposed: it "
        f"has the shape {tuple(now[wrong].shape)}."
    )


def _advice(failed):
    if "cannot assign" in failed.text and "Linear" in failed.text:
        return "Not the whole layer is to be moved, but its .weight, transposed."
    if "cannot assign" in failed.text:
        return "Wrap the tensor in nn.Parameter."
    if "leaf Variable" in failed.text:
        return "Copy under torch.no_grad(): autograd must not record this."
    if "state_dict" in failed.text:
        return (
            "The names differ, W_query.weight here and W_query there, and so do the "
            "shapes. Move the three weights one by one."
        )
    if "size" in failed.text or "shape" in failed.text:
        return "Compare the shapes of both weights: one is the other transposed."
    return "It was called with a SelfAttention_v2 and a SelfAttention_v1."


def _equal(a, b):
    return a.shape == b.shape and torch.allclose(a.detach(), b.detach())


_SCALE = Table(
    "One number, what the scores are divided by,",
    (Field("divisor", "number", "The divisor"),),
    (
        right(
            "A score is a sum of 16 products, one for each number of a key. The root "
            "of that width brings its spread back to about one.",
            divisor=(4.0,),
        ),
        *hints(
            "divisor",
            [
                (16.0, "This is the width of a key. Divide by its root."),
                (
                    math.sqrt(5),
                    "This is the root of d_in. The sum in a score runs over the "
                    "numbers of a key, not over those of an input.",
                ),
                (
                    3.0,
                    "This is the root of the number of tokens. The weights of a token "
                    "would then depend on how long the sequence is.",
                ),
                (
                    0.25,
                    "This is what the scores are multiplied by. Asked for is the "
                    "divisor.",
                ),
                (8.0, "Half of the width is not its root."),
                (2.0, "The root was taken twice."),
            ],
        ),
        wrong("Which sizes has a key, and over which does a score sum?"),
    ),
)

_TOKENS = "The number of tokens does not enter: all tokens share the weights."
_COUNT = Table(
    "One whole number, a count of parameters,",
    (Field("count", "number", "Number of parameters"),),
    (
        right("Three layers, each with six weights and two biases.", count=(24,)),
        *hints(
            "count",
            [
                (18, "The weights are counted, the biases are not: qkv_bias=True."),
                (8, "This is one of the three layers."),
                (27, "A bias has one number for each output, not for each input."),
                (20, "Each of the three layers has biases of its own."),
                (48, _TOKENS),
                (144, _TOKENS),
                (6, "This is the weight matrix of one layer, without its bias."),
            ],
        ),
        wrong("Count one nn.Linear first: its weight and its bias."),
    ),
)


def _attend(
    queries,
    keys,
    values,
    scale=lambda q, t: q.shape[-1] ** 0.5,
    dim=-1,
    transpose=False,
):
    scores = queries @ keys.transpose(-2, -1)
    weights = torch.softmax(scores / scale(queries, keys.shape[-2]), dim=dim)
    return (weights.transpose(-2, -1) if transpose else weights) @ values


def _attention_cases():
    # Sizes that all differ, and one case in which the tokens do not.
    different = seeded(2, 3, 4), seeded(2, 5, 4, seed=1), seeded(2, 5, 6, seed=2)
    square = (seeded(3, 4, 4, seed=i) for i in (3, 4, 5))
    return [different, tuple(square)]


def _attend_masked(queries, keys, values):
    scores = queries @ keys.transpose(-2, -1)
    future = torch.ones_like(scores).triu(1).bool()
    scores = scores.masked_fill(future, -torch.inf) / queries.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1) @ values


def _variant(**changes):
    return lambda q, k, v: _attend(q, k, v, **changes)


_EINSUM_MISTAKES = (
    (
        _variant(scale=lambda q, t: 1.0),
        "The scores are not divided by the root of the keys' width.",
    ),
    (
        _variant(scale=lambda q, t: q.shape[-1]),
        "The scores are divided by the width of the keys. Its root is meant.",
    ),
    (
        _variant(scale=lambda q, t: q.shape[-1] ** -0.5),
        "The scores are multiplied by the root of the width, not divided.",
    ),
    (
        _variant(scale=lambda q, t: t**0.5),
        "The scores are divided by the root of the number of keys. The width of a key "
        "is meant: its last axis.",
    ),
    (
        lambda q, k, v: _attend(q, k, v, scale=lambda *_: v.shape[-1] ** 0.5),
        "The scores are divided by the root of the values' width. A score sums over "
        "the numbers of a key: that width is meant.",
    ),
    (
        _attend_masked,
        "A causal mask hides some of the keys. There is no mask in this exercise: "
        "every query sees all keys.",
    ),
    (
        _variant(dim=-2),
        "Softmax runs over the queries. In bqk the keys are the last axis.",
    ),
    (
        _variant(dim=0),
        "Softmax runs over the batch: sequences influence each other.",
    ),
    (
        _variant(transpose=True),
        "The weights are transposed in the second product. A query's weights sum the "
        "values of the keys, so k is the letter that goes: bqk,bkv->bqv.",
    ),
    (
        lambda q, k, v: torch.einsum("bqd,bkd->bqk", q, k) / q.shape[-1] ** 0.5,
        "These are the scores. Softmax and the values are still to come.",
    ),
    (
        lambda q, k, v: torch.softmax(
            torch.einsum("bqd,bkd->bqk", q, k) / q.shape[-1] ** 0.5, dim=-1
        ),
        "These are the weights. The product with the values is still to come.",
    ),
    (
        lambda q, k, v: torch.einsum(
            "bqk,bkv->bqv", torch.einsum("bqd,bkd->bqk", q, k), v
        ),
        "Softmax is missing: scores are used as weights.",
    ),
)

EXERCISES = [
    Exercise("3.1", PAGE, "A function move_v2_to_v1(v2, v1)", _move),
    Exercise("scale", PAGE, "One number", _SCALE),
    Exercise("count-weights", PAGE, "One whole number", _COUNT),
    Exercise(
        "einsum",
        PAGE,
        "A function attention_by_einsum(queries, keys, values)",
        FunctionCheck(
            "attention_by_einsum(queries, keys, values)",
            _attend,
            _attention_cases,
            _EINSUM_MISTAKES,
            "A letter that stands on both sides stays, one that goes missing is summed "
            "over. So einsum needs no transpose.",
            uses="einsum",
        ),
    ),
]
