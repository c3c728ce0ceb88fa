"""The package against references that it did not write.

``scaled_dot_product_attention`` and ``nn.MultiheadAttention`` get our weights and
must give our outputs. Then come properties that need no reference: the past does
not feel the future, sequences of a batch do not feel each other, and two classes
with the same weights are the same function.
"""

import random
from functools import partial
from typing import NamedTuple

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

import attention
from tests.attention import public
from tests.attention.public import CAUSAL, LAYERS

pytestmark = pytest.mark.package

# Ours rounds in another order than the reference. bfloat16 has 8 bits of mantissa.
TOLERANCE = {
    torch.float64: {"atol": 1e-12, "rtol": 1e-12},
    torch.float32: {"atol": 2e-6, "rtol": 1e-5},
    torch.bfloat16: {"atol": 3e-2, "rtol": 3e-2},
}
DTYPES = pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
BIASES = pytest.mark.parametrize("bias", [False, True], ids=["no-bias", "bias"])


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


def tokens(sizes, dtype, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shape = (sizes.b, sizes.t, sizes.d_in)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def spread(layer, dtype, seed=1):
    """Draw all weights, wide enough for the softmax to be far from even."""
    generator = torch.Generator().manual_seed(seed)
    layer_width = max(max(parameter.shape) for parameter in layer.parameters())
    for parameter in layer.parameters():
        drawn = torch.randn(parameter.shape, generator=generator)
        parameter.data = (drawn * 1.2 / layer_width**0.5).to(dtype)
    return layer.to(dtype)


def project(layer, x):
    return layer.W_query(x), layer.W_key(x), layer.W_value(x)


def layer_of(name, sizes, dtype, bias):
    context_length = sizes.t + sizes.spare
    layer = public.build(
        name, sizes.d_in, sizes.d_head, context_length, 0.0, sizes.h, bias
    )
    return spread(layer, dtype)


causal_layer = partial(layer_of, "CausalAttention")
wrapper_layer = partial(layer_of, "MultiHeadAttentionWrapper")
multi_head_layer = partial(layer_of, "MultiHeadAttention")
EVERY_CAUSAL = pytest.mark.parametrize("name", CAUSAL)


# References ---------------------------------------------------------------------


@DTYPES
@pytest.mark.parametrize("shape", [(1,), (7,), (6, 3), (2, 5, 4)], ids=str)
def test_softmax_naive_is_softmax_along_dimension_0(shape, dtype):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(3)).to(dtype) * 3
    close(attention.softmax_naive(x), torch.softmax(x, dim=0))


def test_softmax_naive_overflows_where_its_docstring_says():
    assert attention.softmax_naive(torch.tensor([88.0, 0.0])).isfinite().all()
    overflown = attention.softmax_naive(torch.tensor([89.0, 0.0]))
    assert overflown.isnan().tolist() == [True, False]
    stable = torch.softmax(torch.tensor([89.0, 0.0]), dim=0)
    torch.testing.assert_close(stable, torch.tensor([1.0, 0.0]))


@DTYPES
@SIZES
def test_simple_self_attention(sizes, dtype):
    x = tokens(sizes, dtype)
    close(
        attention.simple_self_attention(x),
        scaled_dot_product_attention(x, x, x, scale=1.0),
    )
    close(
        attention.simple_self_attention(x[0]),
        scaled_dot_product_attention(x[:1], x[:1], x[:1], scale=1.0)[0],
    )


@DTYPES
@SIZES
def test_self_attention_v1(sizes, dtype):
    layer = spread(attention.SelfAttention_v1(sizes.d_in, sizes.d_head), dtype)
    x = tokens(sizes, dtype)
    weights = (layer.W_query, layer.W_key, layer.W_value)
    reference = scaled_dot_product_attention(*(x @ w for w in weights))
    close(layer(x), reference)
    close(layer(x[0]), reference[0])


@DTYPES
@BIASES
@SIZES
def test_self_attention_v2(sizes, bias, dtype):
    layer = spread(attention.SelfAttention_v2(sizes.d_in, sizes.d_head, bias), dtype)
    x = tokens(sizes, dtype)
    reference = scaled_dot_product_attention(*project(layer, x))
    close(layer(x), reference)
    close(layer(x[0]), reference[0])


@DTYPES
@BIASES
@SIZES
def test_causal_attention(sizes, bias, dtype):
    layer = causal_layer(sizes, dtype, bias)
    x = tokens(sizes, dtype)
    reference = scaled_dot_product_attention(*project(layer, x), is_causal=True)
    close(layer(x), reference)


@DTYPES
@BIASES
@SIZES
def test_wrapper_is_its_heads_side_by_side(sizes, bias, dtype):
    layer = wrapper_layer(sizes, dtype, bias)
    x = tokens(sizes, dtype)
    heads = [
        scaled_dot_product_attention(*project(head, x), is_causal=True)
        for head in layer.heads
    ]
    out = layer(x)
    close(out, torch.cat(heads, dim=-1))
    assert out.shape == (sizes.b, sizes.t, sizes.h * sizes.d_head)


@DTYPES
@BIASES
@SIZES
def test_multi_head_attention_against_sdpa(sizes, bias, dtype):
    layer = multi_head_layer(sizes, dtype, bias)
    x = tokens(sizes, dtype)
    # Split by slicing, head by head, not by the view and transpose of the class.
    q, k, v = project(layer, x)
    heads = []
    for i in range(sizes.h):
        part = slice(i * sizes.d_head, (i + 1) * sizes.d_head)
        sliced = (z[:, :, part] for z in (q, k, v))
        heads.append(scaled_dot_product_attention(*sliced, is_causal=True))
    close(layer(x), layer.out_proj(torch.cat(heads, dim=-1)))


def torch_multi_head(layer):
    """Build the ``nn.MultiheadAttention`` that holds our weights."""
    reference = nn.MultiheadAttention(
        layer.d_out,
        layer.num_heads,
        batch_first=True,
        dtype=layer.out_proj.weight.dtype,
    )
    layers = (layer.W_query, layer.W_key, layer.W_value)
    reference.in_proj_weight.data = torch.cat([part.weight for part in layers])
    if layer.W_query.bias is None:
        reference.in_proj_bias.data.zero_()
    else:
        reference.in_proj_bias.data = torch.cat([part.bias for part in layers])
    reference.out_proj.load_state_dict(layer.out_proj.state_dict())
    return reference.eval()


@DTYPES
@BIASES
@SIZES
def test_multi_head_attention_against_torch(sizes, bias, dtype):
    # nn.MultiheadAttention takes tokens as wide as its output.
    sizes = sizes._replace(d_in=sizes.h * sizes.d_head)
    layer = multi_head_layer(sizes, dtype, bias)
    x = tokens(sizes, dtype)
    future = torch.ones(sizes.t, sizes.t).triu(diagonal=1).bool()
    with torch.no_grad():
        reference, _ = torch_multi_head(layer)(
            x, x, x, attn_mask=future, need_weights=False
        )
        close(layer(x), reference)


# Who may feel whom --------------------------------------------------------------

SEVEN = Sizes(b=2, t=7, d_in=4, h=2, d_head=3, spare=2)


@DTYPES
@EVERY_CAUSAL
def test_no_output_moves_before_the_token_that_changed(name, dtype):
    layer = layer_of(name, SEVEN, dtype, bias=True)
    x = tokens(SEVEN, dtype)
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
    for part in public.parts_of(layer):
        # Keys against queries: each token's score with itself is far below -1e9, so
        # that a large finite number in place of -inf would win the softmax.
        part.W_key.weight.data = -part.W_query.weight.data
    x = tokens(SEVEN, dtype) * 1e6
    for j in range(1, SEVEN.t):
        changed = x.clone()
        changed[:, j:] *= 2
        assert torch.equal(layer(changed)[:, :j], layer(x)[:, :j])


@pytest.mark.parametrize(
    "layer",
    [
        attention.simple_self_attention,
        *(
            layer_of(name, SEVEN, torch.float64, bias=False)
            for name in LAYERS
            if name not in CAUSAL
        ),
    ],
    ids=["simple_self_attention", *(name for name in LAYERS if name not in CAUSAL)],
)
def test_without_a_mask_every_output_moves(layer):
    x = tokens(SEVEN, torch.float64)
    for j in range(SEVEN.t):
        changed = x.clone()
        changed[:, j] += 1
        assert (layer(changed) != layer(x)).any(dim=-1).all()


@EVERY_CAUSAL
def test_a_sequence_does_not_feel_the_others_of_its_batch(name):
    layer = layer_of(name, SEVEN, torch.float64, bias=True)
    x = tokens(SEVEN, torch.float64)
    changed = x.clone()
    changed[0] += 1
    assert torch.equal(layer(changed)[1], layer(x)[1])
    close(layer(x[1:]), layer(x)[1:])


@EVERY_CAUSAL
def test_a_longer_sequence_begins_with_the_outputs_of_a_shorter(name):
    layer = layer_of(name, SEVEN, torch.float64, bias=True)
    x = tokens(SEVEN, torch.float64)
    for t in range(1, SEVEN.t + 1):
        close(layer(x[:, :t]), layer(x)[:, :t])


@EVERY_CAUSAL
def test_first_token_gets_its_own_value(name):
    layer = layer_of(name, SEVEN, torch.float64, bias=False)
    x = tokens(SEVEN, torch.float64)
    if isinstance(layer, attention.MultiHeadAttentionWrapper):
        value = torch.cat([head.W_value(x[:, 0]) for head in layer.heads], dim=-1)
    else:
        value = layer.W_value(x[:, 0])
    out_proj = getattr(layer, "out_proj", nn.Identity())
    close(layer(x)[:, 0], out_proj(value))


# The same function twice --------------------------------------------------------


@DTYPES
@SIZES
def test_v1_with_transposed_weights_is_v2(sizes, dtype):
    v2 = spread(attention.SelfAttention_v2(sizes.d_in, sizes.d_head), dtype)
    v1 = attention.SelfAttention_v1(sizes.d_in, sizes.d_head).to(dtype)
    for name in ("W_query", "W_key", "W_value"):
        getattr(v1, name).data = getattr(v2, name).weight.data.T
    x = tokens(sizes, dtype)
    close(v1(x), v2(x))


@BIASES
@SIZES
def test_split_class_with_the_weights_of_the_wrapper_is_the_wrapper(sizes, bias):
    wrapper = wrapper_layer(sizes, torch.float64, bias)
    split = multi_head_layer(sizes, torch.float64, bias)
    for name in ("W_query", "W_key", "W_value"):
        parts = [getattr(head, name) for head in wrapper.heads]
        getattr(split, name).weight.data = torch.cat([part.weight for part in parts])
        if bias:
            getattr(split, name).bias.data = torch.cat([part.bias for part in parts])
    split.out_proj.weight.data = torch.eye(split.d_out, dtype=torch.float64)
    split.out_proj.bias.data.zero_()
    x = tokens(sizes, torch.float64)
    difference = (split(x) - wrapper(x)).abs().max()
    assert difference <= 1e-12


def test_causal_attention_without_its_mask_is_v2():
    layer = causal_layer(SEVEN, torch.float64, bias=True)
    v2 = attention.SelfAttention_v2(SEVEN.d_in, SEVEN.d_head, qkv_bias=True).double()
    x = tokens(SEVEN, torch.float64)
    weights = {k: w for k, w in layer.state_dict().items() if k != "mask"}
    v2.load_state_dict(weights)
    assert not torch.allclose(layer(x), v2(x))
    layer.mask.zero_()
    close(layer(x), v2(x))
