"""The package against a reference that it did not write.

``scaled_dot_product_attention`` gets our weights, head by head, and must give our
outputs. Then come two properties that need no reference: the past does not feel the
future, and no score is so low that the future gets in.
"""

import random
from typing import NamedTuple

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

import attention
from tests.attention.public import BIASES, CAUSAL, build, parts_of, tokens

pytestmark = pytest.mark.package

# Ours rounds in another order than the reference. bfloat16 has 8 bits of mantissa.
TOLERANCE = {
    torch.float64: {"atol": 1e-12, "rtol": 1e-12},
    torch.float32: {"atol": 2e-6, "rtol": 1e-5},
    torch.bfloat16: {"atol": 3e-2, "rtol": 3e-2},
}
DTYPES = pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
EVERY_CAUSAL = pytest.mark.parametrize("name", CAUSAL)


class Sizes(NamedTuple):
    b: int
    t: int
    d_in: int
    h: int
    d_head: int
    spare: int  # how much longer context_length is than t


def random_sizes(count):
    draw = random.Random(2017)
    some = [
        Sizes(
            b=draw.randint(1, 5),
            t=draw.randint(2, 12),
            d_in=draw.randint(1, 9),
            h=draw.randint(2, 4),
            d_head=draw.randint(2, 7),
            spare=draw.randint(0, 3),
        )
        for _ in range(count)
    ]
    return [*some, Sizes(b=1, t=1, d_in=1, h=1, d_head=1, spare=0)]


SIZES = pytest.mark.parametrize(
    "sizes", random_sizes(6), ids=lambda s: "-".join(map(str, s))
)


def close(ours, reference):
    torch.testing.assert_close(ours, reference, **TOLERANCE[ours.dtype])


def tokens_of(sizes, dtype):
    return tokens(sizes.b, sizes.t, sizes.d_in, dtype=dtype)


def layer_of(name, sizes, dtype, bias):
    """Build a layer with weights wide enough for the softmax to be far from even."""
    context_length = sizes.t + sizes.spare
    layer = build(name, sizes.d_in, sizes.d_head, context_length, 0.0, sizes.h, bias)
    width = max(max(parameter.shape) for parameter in layer.parameters())
    for seed, parameter in enumerate(layer.parameters()):
        parameter.data = tokens(*parameter.shape, seed=seed) * 1.2 / width**0.5
    return layer.to(dtype)


# References ---------------------------------------------------------------------


def project(projection, x):
    """Apply a plain matrix (d_in, d_out), or a linear layer."""
    return x @ projection if isinstance(projection, nn.Parameter) else projection(x)


def in_torch(layer, x, causal):
    """Compute head by head with PyTorch's kernel.

    Heads are sliced out, not by the view and transpose of the class.
    """
    done = []
    for part in parts_of(layer):
        projected = [project(w, x) for w in (part.W_query, part.W_key, part.W_value)]
        heads = [z.chunk(getattr(part, "num_heads", 1), dim=-1) for z in projected]
        for q, k, v in zip(*heads, strict=True):
            done.append(scaled_dot_product_attention(q, k, v, is_causal=causal))
    return getattr(layer, "out_proj", nn.Identity())(torch.cat(done, dim=-1))


@DTYPES
@BIASES
@SIZES
def test_a_layer_computes_what_the_kernel_computes(name, sizes, bias, dtype):
    layer, x = layer_of(name, sizes, dtype, bias), tokens_of(sizes, dtype)
    expected = in_torch(layer, x, causal=name in CAUSAL)
    close(layer(x), expected)
    if name not in CAUSAL:
        close(layer(x[0]), expected[0])


@DTYPES
@SIZES
def test_simple_self_attention(sizes, dtype):
    x = tokens_of(sizes, dtype)
    expected = scaled_dot_product_attention(x, x, x, scale=1.0)
    close(attention.simple_self_attention(x), expected)
    close(attention.simple_self_attention(x[0]), expected[0])


@DTYPES
@pytest.mark.parametrize("shape", [(1,), (7,), (6, 3), (2, 5, 4)], ids=str)
def test_softmax_naive_is_softmax_along_dimension_0(shape, dtype):
    x = tokens(*shape, dtype=dtype) * 3
    close(attention.softmax_naive(x), torch.softmax(x, dim=0))


def test_softmax_naive_overflows_where_its_docstring_says():
    assert attention.softmax_naive(torch.tensor([88.0, 0.0])).isfinite().all()
    overflown = attention.softmax_naive(torch.tensor([89.0, 0.0]))
    assert overflown.isnan().tolist() == [True, False]


# Who may feel whom --------------------------------------------------------------

SEVEN = Sizes(b=2, t=7, d_in=4, h=2, d_head=3, spare=2)


@DTYPES
@EVERY_CAUSAL
def test_no_output_moves_before_the_token_that_changed(name, dtype):
    layer, x = layer_of(name, SEVEN, dtype, bias=True), tokens_of(SEVEN, dtype)
    before, reach = layer(x), getattr(layer, "window", None) or SEVEN.t
    for j in range(SEVEN.t):
        changed = x.clone()
        changed[:, j] += 1
        moved = (layer(changed) != before).any(dim=-1)  # (b, t)
        assert not moved[:, :j].any()
        assert moved[:, j : j + reach].all(), (
            "a token is seen by itself and those after it; a class that sees fewer "
            "says how many in an attribute `window`"
        )


@DTYPES
@EVERY_CAUSAL
def test_no_score_is_low_enough_to_let_the_future_in(name, dtype):
    layer = layer_of(name, SEVEN, dtype, bias=True)
    for part in parts_of(layer):
        # Keys against queries: each token's score with itself is far below -1e9, so
        # that a large finite number in place of -inf would win the softmax.
        part.W_key.weight.data = -part.W_query.weight.data
    x = tokens_of(SEVEN, dtype) * 1e6
    for j in range(1, SEVEN.t):
        changed = x.clone()
        changed[:, j:] *= 2
        assert torch.equal(layer(changed)[:, :j], layer(x)[:, :j])
