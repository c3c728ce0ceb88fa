"""Bad input: what is raised, and that its message names the way out.

One row of ``TABLE`` is a name, a call, the exception, and every part that the
message must hold: the argument, what was given, what is right, what to do.
"""

import warnings
from typing import NamedTuple

import pytest
import torch

from attention import (
    CausalAttention,
    MultiHeadAttention,
    MultiHeadAttentionWrapper,
    SelfAttention_v1,
    SelfAttention_v2,
    simple_self_attention,
    softmax_naive,
)
from tests.attention import test_fused
from tests.attention.public import FUNCTIONS, LAYERS, PUBLIC, arguments

pytestmark = pytest.mark.package

NAN = float("nan")
SIZE = "must be a positive integer"
WHOLE = "Pass a whole number"
RATE = "dropout must be a number in [0, 1)"
SHARE = "Pass the share of weights to drop: 0.0 drops none"
FLOATS = "x must hold floating-point numbers"
WRAP = "Wrap the numbers in torch.tensor(...)"
BATCHED = "x must have the shape (b, t, d_in)"
EITHER = "x must have the shape (t, d_in) or (b, t, d_in)"
ADD_BATCH = "x.unsqueeze(0) makes a batch of one"
ADD_SEQUENCE = "x.unsqueeze(0) makes a sequence of one"
EMBED = "Token ids go through an embedding first"
EMPTY = "at least one token"


def causal(d_in=3, d_out=4, context_length=6, dropout=0.0):
    return CausalAttention(d_in, d_out, context_length, dropout)


def wrapper(d_in=3, d_out=4, context_length=6, dropout=0.0, num_heads=2):
    return MultiHeadAttentionWrapper(d_in, d_out, context_length, dropout, num_heads)


def multi_head(d_in=3, d_out=4, context_length=6, dropout=0.0, num_heads=2):
    return MultiHeadAttention(d_in, d_out, context_length, dropout, num_heads)


def v1():
    return SelfAttention_v1(3, 4)


def v2():
    return SelfAttention_v2(3, 4)


def zeros(*shape):
    return torch.zeros(shape)


def ids(*shape):
    return torch.zeros(shape, dtype=torch.long)


class Row(NamedTuple):
    name: str
    call: object
    error: type
    parts: tuple


TABLE = [
    # Sizes that are not positive integers.
    Row(
        "v1 d_in zero",
        lambda: SelfAttention_v1(0, 2),
        ValueError,
        ("d_in", SIZE, "got 0", WHOLE, "at least 1"),
    ),
    Row(
        "v1 d_out negative",
        lambda: SelfAttention_v1(3, -1),
        ValueError,
        ("d_out", SIZE, "got -1", WHOLE, "at least 1"),
    ),
    Row(
        "v1 d_in float",
        lambda: SelfAttention_v1(2.0, 2),
        TypeError,
        ("d_in", SIZE, "got 2.0 (float)", WHOLE, "d_in=2"),
    ),
    Row(
        "v1 d_out text",
        lambda: SelfAttention_v1(3, "2"),
        TypeError,
        ("d_out", SIZE, "got '2' (str)", WHOLE, "d_out=2"),
    ),
    Row(
        "v2 d_in true",
        lambda: SelfAttention_v2(True, 2),
        TypeError,
        ("d_in", SIZE, "got True (bool)", WHOLE, "d_in=2"),
    ),
    Row(
        "v2 d_out none",
        lambda: SelfAttention_v2(3, None),
        TypeError,
        ("d_out", SIZE, "got None (NoneType)", WHOLE, "d_out=2"),
    ),
    Row(
        "v2 d_in negative",
        lambda: SelfAttention_v2(-1, 2),
        ValueError,
        ("d_in", SIZE, "got -1", WHOLE, "at least 1"),
    ),
    Row(
        "v2 d_out float",
        lambda: SelfAttention_v2(3, 2.0),
        TypeError,
        ("d_out", SIZE, "got 2.0 (float)", WHOLE, "d_out=2"),
    ),
    Row(
        "causal d_in text",
        lambda: causal(d_in="2"),
        TypeError,
        ("d_in", SIZE, "got '2' (str)", WHOLE, "d_in=2"),
    ),
    Row(
        "causal d_out zero",
        lambda: causal(d_out=0),
        ValueError,
        ("d_out", SIZE, "got 0", WHOLE, "at least 1"),
    ),
    Row(
        "causal context_length zero",
        lambda: causal(context_length=0),
        ValueError,
        ("context_length", SIZE, "got 0", WHOLE, "at least 1"),
    ),
    Row(
        "causal context_length float",
        lambda: causal(context_length=2.0),
        TypeError,
        ("context_length", SIZE, "got 2.0 (float)", WHOLE, "context_length=2"),
    ),
    Row(
        "causal context_length true",
        lambda: causal(context_length=True),
        TypeError,
        ("context_length", SIZE, "got True (bool)", WHOLE, "context_length=2"),
    ),
    Row(
        "wrapper d_in none",
        lambda: wrapper(d_in=None),
        TypeError,
        ("d_in", SIZE, "got None (NoneType)", WHOLE, "d_in=2"),
    ),
    Row(
        "wrapper d_out negative",
        lambda: wrapper(d_out=-1),
        ValueError,
        ("d_out", SIZE, "got -1", WHOLE, "at least 1"),
    ),
    Row(
        "wrapper context_length text",
        lambda: wrapper(context_length="2"),
        TypeError,
        ("context_length", SIZE, "got '2' (str)", WHOLE, "context_length=2"),
    ),
    Row(
        "wrapper num_heads zero",
        lambda: wrapper(num_heads=0),
        ValueError,
        ("num_heads", SIZE, "got 0", WHOLE, "at least 1"),
    ),
    Row(
        "wrapper num_heads float",
        lambda: wrapper(num_heads=2.0),
        TypeError,
        ("num_heads", SIZE, "got 2.0 (float)", WHOLE, "num_heads=2"),
    ),
    Row(
        "multi-head d_in zero",
        lambda: multi_head(d_in=0),
        ValueError,
        ("d_in", SIZE, "got 0", WHOLE, "at least 1"),
    ),
    Row(
        "multi-head d_out true",
        lambda: multi_head(d_out=True, num_heads=1),
        TypeError,
        ("d_out", SIZE, "got True (bool)", WHOLE, "d_out=2"),
    ),
    Row(
        "multi-head context_length none",
        lambda: multi_head(context_length=None),
        TypeError,
        ("context_length", SIZE, "got None (NoneType)", WHOLE, "context_length=2"),
    ),
    Row(
        "multi-head num_heads zero",
        lambda: multi_head(num_heads=0),
        ValueError,
        ("num_heads", SIZE, "got 0", WHOLE, "at least 1"),
    ),
    Row(
        "multi-head num_heads negative",
        lambda: multi_head(num_heads=-1),
        ValueError,
        ("num_heads", SIZE, "got -1", WHOLE, "at least 1"),
    ),
    Row(
        "multi-head num_heads text",
        lambda: multi_head(num_heads="2"),
        TypeError,
        ("num_heads", SIZE, "got '2' (str)", WHOLE, "num_heads=2"),
    ),
    Row(
        "multi-head num_heads a tensor",
        lambda: multi_head(num_heads=torch.tensor(2)),
        TypeError,
        ("num_heads", SIZE, "got tensor(2) (Tensor)", WHOLE, "num_heads=2"),
    ),
    # Heads that do not share the width evenly.
    Row(
        "multi-head 6 by 4",
        lambda: multi_head(d_out=6, num_heads=4),
        ValueError,
        (
            "d_out must be divisible by num_heads",
            "got d_out=6 and num_heads=4",
            "leaves 2 over",
            "num_heads can be 1, 2, 3, 6.",
        ),
    ),
    Row(
        "multi-head more heads than width",
        lambda: multi_head(d_out=2, num_heads=3),
        ValueError,
        (
            "d_out must be divisible by num_heads",
            "got d_out=2 and num_heads=3",
            "leaves 2 over",
            "num_heads can be 1, 2.",
        ),
    ),
    # Dropout outside [0, 1).
    Row(
        "causal dropout one",
        lambda: causal(dropout=1.0),
        ValueError,
        (RATE, "got 1.0", SHARE),
    ),
    Row(
        "causal dropout negative",
        lambda: causal(dropout=-0.1),
        ValueError,
        (RATE, "got -0.1", SHARE),
    ),
    Row(
        "causal dropout nan",
        lambda: causal(dropout=NAN),
        ValueError,
        (RATE, "got nan", SHARE),
    ),
    Row(
        "causal dropout text",
        lambda: causal(dropout="0.1"),
        TypeError,
        (RATE, "got '0.1' (str)", "Pass 0.0 for no dropout"),
    ),
    Row(
        "wrapper dropout one",
        lambda: wrapper(dropout=1.0),
        ValueError,
        (RATE, "got 1.0", SHARE),
    ),
    Row(
        "wrapper dropout true",
        lambda: wrapper(dropout=True),
        TypeError,
        (RATE, "got True (bool)", "Pass 0.0 for no dropout"),
    ),
    Row(
        "multi-head dropout a whole number",
        lambda: multi_head(dropout=2),
        ValueError,
        (RATE, "got 2", SHARE),
    ),
    Row(
        "multi-head dropout negative",
        lambda: multi_head(dropout=-0.1),
        ValueError,
        (RATE, "got -0.1", SHARE),
    ),
    Row(
        "multi-head dropout nan",
        lambda: multi_head(dropout=NAN),
        ValueError,
        (RATE, "got nan", SHARE),
    ),
    Row(
        "multi-head dropout none",
        lambda: multi_head(dropout=None),
        TypeError,
        (RATE, "got None (NoneType)", "Pass 0.0 for no dropout"),
    ),
    # Not a tensor.
    Row(
        "softmax_naive list",
        lambda: softmax_naive([0.5, 1.0]),
        TypeError,
        ("x must be a tensor", "got list", WRAP),
    ),
    Row(
        "simple list",
        lambda: simple_self_attention([[0.5, 1.0]]),
        TypeError,
        ("x must be a tensor of shape (t, d_in) or (b, t, d_in)", "got list", WRAP),
    ),
    Row(
        "v1 none",
        lambda: v1()(None),
        TypeError,
        ("x must be a tensor", "got NoneType", WRAP),
    ),
    Row(
        "v2 text",
        lambda: v2()("Your journey"),
        TypeError,
        ("x must be a tensor", "got str", WRAP),
    ),
    Row(
        "causal tuple",
        lambda: causal()((1.0, 2.0)),
        TypeError,
        ("x must be a tensor of shape (b, t, d_in)", "got tuple", WRAP),
    ),
    Row(
        "wrapper list",
        lambda: wrapper()([1.0]),
        TypeError,
        ("x must be a tensor of shape (b, t, d_in)", "got list", WRAP),
    ),
    Row(
        "multi-head list",
        lambda: multi_head()([1.0]),
        TypeError,
        ("x must be a tensor of shape (b, t, d_in)", "got list", WRAP),
    ),
    # Tensors that hold no floating-point numbers.
    Row(
        "softmax_naive integers",
        lambda: softmax_naive(ids(3)),
        TypeError,
        (FLOATS, "torch.int64", "x.float()"),
    ),
    Row(
        "simple integers",
        lambda: simple_self_attention(ids(6, 3)),
        TypeError,
        (FLOATS, "torch.int64", EMBED, "x.float()"),
    ),
    Row(
        "v1 booleans",
        lambda: v1()(zeros(6, 3).bool()),
        TypeError,
        (FLOATS, "torch.bool", EMBED, "x.float()"),
    ),
    Row(
        "v2 integers",
        lambda: v2()(ids(6, 3)),
        TypeError,
        (FLOATS, "torch.int64", EMBED, "x.float()"),
    ),
    Row(
        "causal token ids",
        lambda: causal()(ids(2, 6)),
        TypeError,
        (FLOATS, "torch.int64", EMBED),
    ),
    Row(
        "wrapper integers",
        lambda: wrapper()(ids(2, 6, 3)),
        TypeError,
        (FLOATS, "torch.int64", EMBED, "x.float()"),
    ),
    Row(
        "multi-head complex",
        lambda: multi_head()(zeros(2, 6, 3).to(torch.complex64)),
        TypeError,
        (FLOATS, "torch.complex64", EMBED, "x.float()"),
    ),
    # Wrong number of dimensions.
    Row(
        "softmax_naive no dimension",
        lambda: softmax_naive(torch.tensor(1.0)),
        ValueError,
        ("x must hold at least one score", "dimension 0", "()", "Pass a vector"),
    ),
    Row(
        "simple 1 dimension",
        lambda: simple_self_attention(zeros(3)),
        ValueError,
        (EITHER, "(3,)", "1 dimensions", ADD_SEQUENCE),
    ),
    Row(
        "simple 4 dimensions",
        lambda: simple_self_attention(zeros(1, 2, 6, 3)),
        ValueError,
        (EITHER, "(1, 2, 6, 3)", "4 dimensions", "batch, tokens and features"),
    ),
    Row(
        "v1 1 dimension",
        lambda: v1()(zeros(3)),
        ValueError,
        (EITHER, "(3,)", "1 dimensions", ADD_SEQUENCE),
    ),
    Row(
        "v2 4 dimensions",
        lambda: v2()(zeros(1, 2, 6, 3)),
        ValueError,
        (EITHER, "(1, 2, 6, 3)", "4 dimensions", "batch, tokens and features"),
    ),
    Row(
        "causal 2 dimensions",
        lambda: causal()(zeros(6, 3)),
        ValueError,
        (BATCHED, "(6, 3)", "2 dimensions", ADD_BATCH),
    ),
    Row(
        "causal 4 dimensions",
        lambda: causal()(zeros(1, 2, 6, 3)),
        ValueError,
        (BATCHED, "(1, 2, 6, 3)", "4 dimensions", "batch, tokens and features"),
    ),
    Row(
        "wrapper 2 dimensions",
        lambda: wrapper()(zeros(6, 3)),
        ValueError,
        (BATCHED, "(6, 3)", "2 dimensions", ADD_BATCH),
    ),
    Row(
        "multi-head 2 dimensions",
        lambda: multi_head()(zeros(6, 3)),
        ValueError,
        (BATCHED, "(6, 3)", "2 dimensions", ADD_BATCH),
    ),
    Row(
        "multi-head no dimension",
        lambda: multi_head()(torch.tensor(1.0)),
        ValueError,
        (BATCHED, "()", "0 dimensions", "batch, tokens and features"),
    ),
    # Wrong last dimension.
    Row(
        "v1 wrong width",
        lambda: v1()(zeros(6, 4)),
        ValueError,
        ("last dimension of x", "d_in=3", "got 4", "(6, 4)", "3 wide", "d_in=4"),
    ),
    Row(
        "v2 wrong width",
        lambda: v2()(zeros(2, 6, 2)),
        ValueError,
        ("last dimension of x", "d_in=3", "got 2", "(2, 6, 2)", "3 wide", "d_in=2"),
    ),
    Row(
        "causal tokens and features swapped",
        lambda: causal()(zeros(2, 3, 6)),
        ValueError,
        ("last dimension of x", "d_in=3", "got 6", "(2, 3, 6)", "3 wide", "d_in=6"),
    ),
    Row(
        "wrapper wrong width",
        lambda: wrapper()(zeros(2, 6, 1)),
        ValueError,
        ("last dimension of x", "d_in=3", "got 1", "(2, 6, 1)", "3 wide", "d_in=1"),
    ),
    Row(
        "multi-head wrong width",
        lambda: multi_head()(zeros(2, 6, 4)),
        ValueError,
        ("last dimension of x", "d_in=3", "got 4", "(2, 6, 4)", "3 wide", "d_in=4"),
    ),
    # More tokens than the mask covers.
    Row(
        "causal too many tokens",
        lambda: causal()(zeros(2, 7, 3)),
        ValueError,
        ("x holds 7 tokens", "context_length=6", "x[:, -6:]", "context_length=7"),
    ),
    Row(
        "wrapper too many tokens",
        lambda: wrapper()(zeros(2, 8, 3)),
        ValueError,
        ("x holds 8 tokens", "context_length=6", "x[:, -6:]", "context_length=8"),
    ),
    Row(
        "multi-head too many tokens",
        lambda: multi_head(context_length=2)(zeros(1, 3, 3)),
        ValueError,
        ("x holds 3 tokens", "context_length=2", "x[:, -2:]", "context_length=3"),
    ),
    # Nothing to attend to.
    Row(
        "softmax_naive empty",
        lambda: softmax_naive(zeros(0)),
        ValueError,
        ("x must hold at least one score", "(0,)", "Pass a vector"),
    ),
    Row(
        "simple no token",
        lambda: simple_self_attention(zeros(0, 3)),
        ValueError,
        ("x must hold", EMPTY, "(0, 3)"),
    ),
    Row(
        "simple no feature",
        lambda: simple_self_attention(zeros(6, 0)),
        ValueError,
        ("x must hold", "one number for each", "(6, 0)"),
    ),
    Row(
        "v1 no token",
        lambda: v1()(zeros(0, 3)),
        ValueError,
        ("x must hold", EMPTY, "(0, 3)"),
    ),
    Row(
        "v2 no token in a batch",
        lambda: v2()(zeros(2, 0, 3)),
        ValueError,
        ("x must hold", EMPTY, "(2, 0, 3)"),
    ),
    Row(
        "causal no token",
        lambda: causal()(zeros(2, 0, 3)),
        ValueError,
        ("x must hold", EMPTY, "(2, 0, 3)"),
    ),
    Row(
        "wrapper no token",
        lambda: wrapper()(zeros(2, 0, 3)),
        ValueError,
        ("x must hold", EMPTY, "(2, 0, 3)"),
    ),
    Row(
        "multi-head no token",
        lambda: multi_head()(zeros(2, 0, 3)),
        ValueError,
        ("x must hold", EMPTY, "(2, 0, 3)"),
    ),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name.replace(" ", "-"))
def test_message_names_what_was_given_and_what_to_do(row):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((TypeError, ValueError)) as caught:
            row.call()
    assert caught.type is row.error
    message = str(caught.value)
    missing = [part for part in row.parts if part not in message]
    assert not missing, f"{missing} not in: {message}"
    # A sentence to a person: no trace of the code that found the mistake.
    assert message[-1] in ".)"
    assert "\n" not in message


# What the first word of a row's name stands for.
PREFIXES = {
    "softmax_naive": "softmax_naive",
    "simple": "simple_self_attention",
    "v1": "SelfAttention_v1",
    "v2": "SelfAttention_v2",
    "causal": "CausalAttention",
    "wrapper": "MultiHeadAttentionWrapper",
    "multi-head": "MultiHeadAttention",
}
IN_A_TABLE_OF_ITS_OWN = {"FusedMultiHeadAttention": test_fused.REFUSED}


def test_the_table_covers_the_package():
    assert len(TABLE) >= 45
    assert len({row.name for row in TABLE}) == len(TABLE)
    assert {row.name.split()[0] for row in TABLE} == set(PREFIXES)
    held = {*PREFIXES.values(), *IN_A_TABLE_OF_ITS_OWN}
    assert held == {*FUNCTIONS, *LAYERS}, "every public name has rows of bad input"
    assert all(len(table) >= 10 for table in IN_A_TABLE_OF_ITS_OWN.values())


# Every size of every class, so that no argument goes unchecked.
SIZES = {"d_in": 3, "d_out": 4, "context_length": 6, "num_heads": 2}
SIZE_ARGUMENTS = [(n, size) for n in LAYERS for size in SIZES if size in arguments(n)]


@pytest.mark.parametrize(("layer", "name"), SIZE_ARGUMENTS)
@pytest.mark.parametrize("value", [0, -1, 2.0, "2", True, None])
def test_every_size_is_checked(layer, name, value):
    given = {**SIZES, "dropout": 0.0, name: value}
    error = ValueError if value in (0, -1) else TypeError
    with pytest.raises(error) as caught:
        PUBLIC[layer](**{n: v for n, v in given.items() if n in arguments(layer)})
    assert str(caught.value).startswith(f"{name} {SIZE}, but got {value!r}")


@pytest.mark.parametrize("dropout", [0, 0.0, 0.999])
def test_the_ends_of_the_allowed_range_are_allowed(dropout):
    x = zeros(1, 1, 3)
    for build in (causal, wrapper, multi_head):
        build(dropout=dropout)(x)
    multi_head(d_out=4, num_heads=4)(x)
    multi_head(context_length=1)(x)
    SelfAttention_v1(1, 1)(zeros(1, 1))
    assert causal()(zeros(2, 6, 3)).shape == (2, 6, 4)


def test_an_error_leaves_the_layer_as_it_was():
    layer, x = causal(), torch.rand(2, 6, 3)
    before = layer(x)
    with pytest.raises(ValueError, match="context_length"):
        layer(zeros(2, 7, 3))
    assert torch.equal(layer(x), before)
