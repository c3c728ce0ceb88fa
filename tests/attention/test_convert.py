"""Weights from and to other layouts: the same numbers, and the same outputs.

Each layout is written down twice here, independent of the package: how it stores a
layer, and how a layer computes from it.
"""

import types

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attention import (
    FusedMultiHeadAttention,
    MultiHeadAttention,
    MultiHeadAttentionWrapper,
    convert,
)
from tests.attention.public import message_of

pytestmark = pytest.mark.package

CLOSE = {"atol": 2e-6, "rtol": 1e-5}
T, CONTEXT = 7, 9
# d, h: widths and heads, all different, so that no two axes can be mistaken.
SIZES = [(12, 3), (6, 1), (5, 5)]


# How each layout stores a layer, and computes with it ---------------------------------


def layer_of_random_numbers(d, d_in, seed=0, bias=True):
    """Draw a layer in our layout, biases too."""
    torch.manual_seed(seed)
    ours = {
        f"W_{part}.weight": torch.randn(d, d_in) for part in ("query", "key", "value")
    }
    if bias:
        ours |= {f"W_{p}.bias": torch.randn(d) for p in ("query", "key", "value")}
    return ours | {
        "out_proj.weight": torch.randn(d, d),
        "out_proj.bias": torch.randn(d),
    }


def rows(ours, kind):
    return [ours[f"W_{part}.{kind}"] for part in ("query", "key", "value")]


def kinds(ours):
    return [kind for kind in ("weight", "bias") if f"W_key.{kind}" in ours]


def named(ours, qkv, out, pack):
    """Store the parts, joined by ``pack``, under the names of two linear layers."""
    theirs = {f"{qkv}{kind}": pack(rows(ours, kind)) for kind in kinds(ours)}
    return theirs | {
        f"{out}{kind}": ours[f"out_proj.{kind}"] for kind in ("weight", "bias")
    }


def by_head(parts, h):
    """Stack q, k and v of head 0, then of head 1."""
    heads = [part.chunk(h) for part in parts]
    return torch.cat([heads[part][i] for i in range(h) for part in range(3)])


def store_torch(ours, h):
    return named(ours, "in_proj_", "out_proj.", torch.cat)


def store_gpt2(ours, h):
    theirs = named(ours, "c_attn.", "c_proj.", torch.cat)
    return {name: t.t() if t.dim() == 2 else t for name, t in theirs.items()}


def store_combined(ours, h):
    return named(ours, "Wqkv.", "proj.", torch.cat)


def store_by_head(ours, h):
    return named(ours, "qkv.", "out_proj.", lambda parts: by_head(parts, h))


NAMES = ("att.query", "att.key", "att.value", "dense")


def store_separate(ours, h):
    old = ("W_query", "W_key", "W_value", "out_proj")
    return {
        f"{new}.{kind}": ours[f"{name}.{kind}"]
        for name, new in zip(old, NAMES, strict=True)
        for kind in ("weight", "bias")
        if f"{name}.{kind}" in ours
    }


def store_wrapper(ours, h):
    return {
        f"heads.{i}.{name}": tensor.chunk(h)[i]
        for i in range(h)
        for name, tensor in ours.items()
        if name.startswith("W_")
    }


def attend(q, k, v, h):
    """Split into heads, attend causally, and join."""
    q, k, v = (part.unflatten(-1, (h, -1)).transpose(1, 2) for part in (q, k, v))
    context = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return context.transpose(1, 2).flatten(2)


def linear(x, state, name):
    return F.linear(x, state[f"{name}.weight"], state.get(f"{name}.bias"))


def compute_torch(x, state, h):
    layer = nn.MultiheadAttention(x.shape[-1], h, batch_first=True).eval()
    layer.load_state_dict(state)
    mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
    return layer(x, x, x, attn_mask=mask, need_weights=False)[0]


def compute_gpt2(x, state, h):
    qkv = x @ state["c_attn.weight"] + state["c_attn.bias"]  # (b, t, 3 · d)
    context = attend(*qkv.chunk(3, dim=-1), h)
    return context @ state["c_proj.weight"] + state["c_proj.bias"]


def compute_combined(x, state, h):
    context = attend(*linear(x, state, "Wqkv").chunk(3, dim=-1), h)
    return linear(context, state, "proj")


def compute_by_head(x, state, h):
    qkv = linear(x, state, "qkv").unflatten(-1, (h, 3, -1))  # (b, t, h, 3, d_head)
    context = attend(*(qkv[:, :, :, part].flatten(2) for part in range(3)), h)
    return linear(context, state, "out_proj")


def compute_separate(x, state, h):
    context = attend(*(linear(x, state, name) for name in NAMES[:3]), h)
    return linear(context, state, NAMES[3])


def compute_wrapper(x, state, h):
    heads = [
        attend(
            *(linear(x, state, f"heads.{i}.W_{n}") for n in ("query", "key", "value")),
            1,
        )
        for i in range(h)
    ]
    return torch.cat(heads, dim=-1)


# The layout for h heads, how it stores and computes, and whether d_in may differ.
LAYOUTS = {
    "torch": (lambda h: convert.TORCH, store_torch, compute_torch, False),
    "GPT-2": (lambda h: convert.GPT2, store_gpt2, compute_gpt2, True),
    "combined": (
        lambda h: convert.combined(("Wqkv", "proj")),
        store_combined, compute_combined, True,
    ),
    "by head": (
        lambda h: convert.combined(num_heads=h), store_by_head, compute_by_head, True,
    ),
    "separate": (
        lambda h: convert.separate(NAMES), store_separate, compute_separate, True,
    ),
    "wrapper": (convert.wrapper, store_wrapper, compute_wrapper, True),
}  # fmt: skip
EVERY_LAYOUT = pytest.mark.parametrize("name", LAYOUTS)


def drawn(name, d, h, bias=True):
    """Give a layer in our layout, the same in another, and that layout."""
    layout, store, _, free = LAYOUTS[name]
    ours = layer_of_random_numbers(d, d + 2 if free else d, bias=bias)
    if name == "wrapper":
        ours |= {"out_proj.weight": torch.eye(d), "out_proj.bias": torch.zeros(d)}
    return ours, store(ours, h), layout(h)


def same(a, b):
    """Require two state dicts to hold the same names, dtypes and numbers."""
    assert set(a) == set(b)
    for name in a:
        assert a[name].dtype == b[name].dtype, name
        assert torch.equal(a[name], b[name]), name


def output(ours, x, h):
    d, bias = len(ours["out_proj.weight"]), "W_key.bias" in ours
    layer = MultiHeadAttention(x.shape[-1], d, CONTEXT, 0.0, h, bias)
    layer.load_state_dict(ours, strict=True)
    return layer(x)


@EVERY_LAYOUT
@pytest.mark.parametrize(("d", "h"), SIZES)
def test_there_and_back_every_number_is_in_its_place(name, d, h):
    ours, theirs, layout = drawn(name, d, h)
    ours, theirs = ({n: t.double() for n, t in s.items()} for s in (ours, theirs))
    same(convert.to_ours(theirs, layout), ours)
    same(convert.from_ours(ours, layout), theirs)


@EVERY_LAYOUT
@pytest.mark.parametrize(("d", "h"), SIZES)
def test_both_layers_compute_the_same(name, d, h):
    ours, theirs, layout = drawn(name, d, h)
    x = torch.randn(2, T, ours["W_key.weight"].shape[1])
    expected = LAYOUTS[name][2](x, theirs, h)
    result = output(convert.to_ours(theirs, layout), x, h)
    torch.testing.assert_close(result, expected, atol=2e-5, rtol=1e-4)


@EVERY_LAYOUT
def test_without_biases(name):
    """Layouts that always have biases get zeros, which are dropped on the way back."""
    ours, theirs, layout = drawn(name, 12, 3, bias=False)
    given = convert.from_ours(ours, layout)
    zeros = {n for n in given if n not in theirs}
    assert bool(zeros) == (name in ("torch", "GPT-2"))
    assert not any(given[n].any() for n in zeros)
    same({n: t for n, t in given.items() if n not in zeros}, theirs)
    same(convert.to_ours(given, layout, qkv_bias=False), ours)
    same(convert.to_ours(theirs, layout), ours)


def test_an_output_without_a_bias_gets_zeros():
    theirs = nn.MultiheadAttention(8, 2, bias=False).state_dict()
    ours = convert.to_ours(theirs, convert.TORCH)
    assert torch.equal(ours["out_proj.bias"], torch.zeros(8))
    assert "W_key.bias" not in ours


def test_one_of_three_projections_may_have_a_bias():
    ours, theirs, layout = drawn("separate", 8, 2)
    del theirs["att.key.bias"]
    expected = ours | {"W_key.bias": torch.zeros(8)}
    same(convert.to_ours(theirs, layout), expected)


@EVERY_LAYOUT
def test_a_layer_is_found_in_a_model_by_its_prefix(name):
    ours, theirs, layout = drawn(name, 8, 2)
    prefix = "transformer.h.0.attn."
    model = {prefix + key: tensor for key, tensor in theirs.items()}
    same(convert.from_ours(ours, layout, prefix), model)
    same(
        convert.to_ours(model | {"wte.weight": torch.ones(1)}, layout, prefix=prefix),
        ours,
    )


def test_the_masks_of_gpt2_are_no_weights():
    ours, theirs, layout = drawn("GPT-2", 8, 2)
    theirs |= {"bias": torch.ones(1, 1, 4, 4).tril(), "masked_bias": torch.tensor(-1e4)}
    same(convert.to_ours(theirs, layout), ours)


@EVERY_LAYOUT
def test_the_chapters_own_classes_get_the_mask_that_they_ask_for(name):
    _, theirs, layout = drawn(name, 8, 2)
    mask = convert.to_ours(theirs, layout, context_length=3)["mask"]
    assert mask.tolist() == [[0.0, 1.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize("bias", [True, False])
def test_combined_and_separate_layers_keep_grouped_heads(bias):
    layer = FusedMultiHeadAttention(5, 12, CONTEXT, 0.0, 6, bias, num_kv_heads=2)
    for layout in (convert.combined(), convert.separate()):
        theirs = convert.from_ours(layer, layout)
        same(convert.to_ours(theirs, layout), layer.state_dict())
    assert convert.from_ours(layer, convert.combined())["qkv.weight"].shape == (20, 5)


def test_rotary_weights_are_taken_by_those_who_say_that_they_turn_them():
    layer = rotary_layer({"rope_theta": 1e4, "rope_type": "default"})
    ours = convert.to_ours(layer, convert.separate(), rotary=True)
    assert torch.equal(ours["W_key.weight"], layer["k_proj"].weight)
    assert torch.equal(ours["W_value.bias"], layer["v_proj"].bias)


def test_more_than_ten_heads_keep_their_order():
    wrapper = MultiHeadAttentionWrapper(3, 2, CONTEXT, 0.0, 12)
    state = convert.to_ours(wrapper, convert.wrapper(12))
    for i, head in enumerate(wrapper.heads):
        part = state["W_key.weight"][2 * i : 2 * i + 2]
        assert torch.equal(part, head.W_key.weight)


def test_grouping_takes_means_and_ungrouping_repeats():
    state = layer_of_random_numbers(16, 16)  # 8 heads, 2 wide
    grouped = convert.group_heads(state, 8, 2)
    key = state["W_key.weight"]
    means = [(key[i : i + 2] + key[i + 2 : i + 4]) / 2 for i in (0, 4, 8, 12)]
    expected = torch.cat([(means[0] + means[1]) / 2, (means[2] + means[3]) / 2])
    torch.testing.assert_close(grouped["W_key.weight"], expected)
    assert torch.equal(grouped["W_query.weight"], state["W_query.weight"])
    layer = FusedMultiHeadAttention(16, 16, CONTEXT, 0.0, 8, True, num_kv_heads=2)
    layer.load_state_dict(grouped, strict=True)
    ungrouped = convert.ungroup_heads(grouped, 8)
    repeated = [0, 1] * 4 + [2, 3] * 4
    assert torch.equal(ungrouped["W_value.bias"], grouped["W_value.bias"][repeated])
    same(convert.group_heads(ungrouped, 8, 2), grouped)


@EVERY_LAYOUT
def test_results_are_copies(name):
    ours, theirs, layout = drawn(name, 8, 2)
    given = {n: nn.Parameter(t) for n, t in ours.items()}
    for tensor in convert.from_ours(given, layout).values():
        assert not tensor.requires_grad
        tensor.zero_()
    same(given, ours)
    before = {n: t.clone() for n, t in theirs.items()}
    for tensor in convert.to_ours(theirs, layout).values():
        tensor.zero_()
    same(theirs, before)


# What is refused ----------------------------------------------------------------------

OURS = layer_of_random_numbers(8, 8)
GROUPED = FusedMultiHeadAttention(8, 8, CONTEXT, 0.0, 4, num_kv_heads=2).state_dict()
TORCH, GPT2 = store_torch(OURS, 2), store_gpt2(OURS, 2)
COMBINED = convert.from_ours(OURS, convert.combined())
SEPARATE = convert.from_ours(OURS, convert.separate())
WRAPPER = MultiHeadAttentionWrapper(3, 2, CONTEXT, 0.0, 2).state_dict()


def without(state, name):
    return {key: tensor for key, tensor in state.items() if key != name}


def shaped(state, name, *shape):
    return state | {name: torch.zeros(shape)}


def read(state, layout, **options):
    return lambda: convert.to_ours(state, layout, **options)


def write(state, layout):
    return lambda: convert.from_ours(state, layout)


def rotary_layer(parameters):
    """A layer with a config like those of ``transformers``."""
    names = ("q_proj", "k_proj", "v_proj", "o_proj")
    layer = nn.ModuleDict({name: nn.Linear(8, 8) for name in names})
    layer.config = types.SimpleNamespace(rope_parameters=parameters, rope_scaling=None)
    return layer


HEADS = convert.combined(num_heads=3)
REFUSED = [
    (read(without(TORCH, "in_proj_weight"), convert.TORCH), KeyError,
     ["Missing: in_proj_weight", "Unknown: none"]),
    (read(TORCH | {"bias_k": torch.zeros(1)}, convert.TORCH), KeyError,
     ["Unknown: bias_k", "in_proj_weight"]),
    (read(GPT2, convert.GPT2, prefix="h.0."), KeyError,
     ["Missing: h.0.c_attn.weight", "prefix"]),
    (read([1.0], convert.TORCH), TypeError, ["got list", "layer.state_dict()"]),
    (write([1.0], convert.TORCH), TypeError, ["got list", "layer.state_dict()"]),
    (write(OURS | {"W_key.weight": [1.0]}, convert.TORCH), TypeError,
     ["W_key.weight must be a Tensor", "list"]),
    (read(shaped(TORCH, "in_proj_weight", 23, 8), convert.TORCH), ValueError,
     ["in_proj_weight", "23 outputs", "d_out=8", "24 would."]),
    (read(shaped(TORCH, "in_proj_weight", 16, 8),
          convert.TORCH), ValueError, ["in_proj_weight", "16 outputs", "24 would."]),
    (read(shaped(TORCH, "in_proj_weight", 24, 7),
          convert.TORCH), ValueError, ["d_in=7", "d_out=8"]),
    (read(shaped(TORCH, "in_proj_bias", 8), convert.TORCH), ValueError,
     ["in_proj_bias", "(24,)", "(8,)"]),
    (read(shaped(TORCH, "out_proj.weight", 8), convert.TORCH), ValueError,
     ["out_proj.weight must be a matrix", "(8,)"]),
    (write(layer_of_random_numbers(8, 5), convert.TORCH), ValueError,
     ["nn.MultiheadAttention", "d_in=5", "d_out=8"]),
    (write(GROUPED, convert.TORCH), ValueError,
     ["nn.MultiheadAttention", "d_out=8", "4 wide", "ungroup_heads"]),
    (read(shaped(GPT2, "c_attn.weight", 24, 8), convert.GPT2),
     ValueError, ["c_attn.weight", "8 outputs", "24 would", "transposed"]),
    (read(shaped(GPT2, "c_proj.bias", 9), convert.GPT2), ValueError,
     ["c_proj.bias", "(8,)", "(9,)"]),
    (read(without(GPT2, "c_proj.bias"), convert.GPT2), KeyError,
     ["Missing: c_proj.bias"]),
    (read(TORCH, "gpt2"), TypeError, ["got 'gpt2'", "convert.OURS, TORCH or GPT2"]),
    (write(OURS, "gpt2"), TypeError, ["got 'gpt2'"]),
    (read({f"attn.{name}": w for name, w in TORCH.items()}, convert.TORCH,
          prefix="attn"), KeyError, ["prefix='attn.'"]),
    (read(GPT2, convert.GPT2, qkv_bias=False), ValueError,
     ["c_attn.bias", "must be zero", "qkv_bias=True"]),
    (read(COMBINED, HEADS), ValueError,
     ["qkv.weight", "3 for each of 3 heads", "(24, 8)", "num_heads"]),
    (write(GROUPED, convert.combined(num_heads=4)), ValueError,
     ["head by head", "ungroup_heads"]),
    (lambda: convert.combined(num_heads=0), ValueError,
     ["num_heads must be a positive integer"]),
    (write(without(OURS, "W_key.bias"), convert.GPT2), KeyError,
     ["Missing: W_key.bias"]),
    (write(shaped(OURS, "W_value.weight", 8, 7), convert.GPT2), ValueError,
     ["W_value.weight", "(8, 8)", "(8, 7)"]),
    (write(shaped(OURS, "out_proj.weight", 8, 7), convert.GPT2), ValueError,
     ["out_proj.weight", "(8, 8)", "(8, 7)"]),
    (read(shaped(SEPARATE, "v_proj.weight", 8, 7), convert.separate()), ValueError,
     ["v_proj.weight", "(8, 8)", "(8, 7)"]),
    (read(SEPARATE | {"q_norm.weight": torch.ones(8)}, convert.separate()), KeyError,
     ["Unknown: q_norm.weight"]),
    (read(SEPARATE | {"rotary_emb.inv_freq": torch.ones(2)}, convert.separate()),
     ValueError, ["rotary positions", "rotary_emb.inv_freq", "rotary=True"]),
    (read(rotary_layer({"rope_theta": 1e4, "rope_type": "linear"}),
          convert.separate(), rotary=True), ValueError,
     ["of another kind", "config.rope_type = 'linear'", "rope_theta"]),
    (read(rotary_layer({"partial_rotary_factor": 0.25}), convert.separate()),
     ValueError, ["of another kind", "partial_rotary_factor = 0.25"]),
    (read(rotary_layer({"rope_theta": 1e4, "rope_type": "default"}),
          convert.separate()), ValueError,
     ["config.rope_parameters", "rope_theta=...", "rotary=True"]),
    (read(without(WRAPPER, "heads.0.W_query.weight"), convert.wrapper(2)), KeyError,
     ["Missing: heads.0.W_query.weight"]),
    (read(shaped(WRAPPER, "heads.1.W_key.weight", 3, 3), convert.wrapper(2)),
     ValueError, ["heads.1.W_key.weight", "(2, 3)", "(3, 3)"]),
    (read(WRAPPER, convert.wrapper(1)), KeyError, ["Unknown: heads.1."]),
    (write(OURS, convert.wrapper(2)), ValueError,
     ["no output projection", "identity", "MultiHeadAttention"]),
    (read(TORCH, convert.TORCH, context_length=0), ValueError,
     ["context_length must be a positive integer"]),
    (lambda: convert.group_heads(OURS, 2, 3), ValueError,
     ["num_kv_heads=3", "key_heads=2"]),
    (lambda: convert.ungroup_heads(GROUPED, 3), ValueError,
     ["d_out=8", "num_heads=3"]),
    (lambda: convert.ungroup_heads(GROUPED, 1), ValueError,
     ["W_key.weight", "8 in each", "(4, 8)"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "error", "parts"), REFUSED, ids=[" ".join(row[2]) for row in REFUSED]
)
def test_what_does_not_fit_is_refused(call, error, parts):
    message = message_of(call, error)
    missing = [part for part in parts if part not in message]
    assert not missing, message


@pytest.mark.parametrize("changed", ["out_proj.weight", "out_proj.bias"])
def test_an_output_projection_that_does_something_does_not_get_lost(changed):
    state = convert.to_ours(WRAPPER, convert.wrapper(2))
    convert.from_ours(state, convert.wrapper(2))
    state[changed] += 1
    with pytest.raises(ValueError, match="must be the identity"):
        convert.from_ours(state, convert.wrapper(2))


# Eight queries and these many keys and values: none, an odd number, groups that do not
# divide the queries, more than the queries.
@pytest.mark.parametrize("count", [8, 11, 14, 26])
def test_a_combined_matrix_that_does_not_split_is_refused(count):
    given = shaped(COMBINED, "qkv.weight", count, 8)
    with pytest.raises(ValueError, match=f"{count} outputs do not split for d_out=8"):
        convert.to_ours(given, convert.combined())
