"""Weights from and to other layouts: the same outputs, exact round trips."""

import pytest
import torch
from torch import nn

from attention import (
    FusedMultiHeadAttention,
    MultiHeadAttention,
    MultiHeadAttentionWrapper,
    convert,
)

pytestmark = pytest.mark.package

CLOSE = {"atol": 2e-6, "rtol": 1e-5}
T, CONTEXT = 7, 9
# d, h: widths and heads, all different, so that no two axes can be mistaken.
SIZES = [(8, 2), (12, 3), (20, 4), (6, 1), (5, 5)]


def our_layer(d, h, qkv_bias=True, d_in=None, seed=0):
    torch.manual_seed(seed)
    layer = MultiHeadAttention(d_in or d, d, CONTEXT, 0.0, h, qkv_bias)
    for name, parameter in layer.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter)
    return layer.eval()


def load(state, d, h, qkv_bias=True, d_in=None):
    layer = MultiHeadAttention(d_in or d, d, CONTEXT, 0.0, h, qkv_bias)
    layer.load_state_dict(state, strict=True)
    return layer.eval()


def same(a, b):
    """Require two state dicts to hold the same names and exactly the same numbers."""
    assert set(a) == set(b)
    for name in a:
        assert torch.equal(a[name], b[name]), name


def in_torch(layer, x):
    mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
    return layer(x, x, x, attn_mask=mask, need_weights=False)[0]


@pytest.mark.parametrize(("d", "h"), SIZES)
@pytest.mark.parametrize("bias", [True, False])
def test_torch(d, h, bias):
    torch.manual_seed(1)
    theirs = nn.MultiheadAttention(d, h, bias=bias, batch_first=True).eval()
    if bias:
        nn.init.normal_(theirs.in_proj_bias)
        nn.init.normal_(theirs.out_proj.bias)
    x = torch.randn(2, T, d)
    ours = load(convert.from_torch(theirs.state_dict(), CONTEXT), d, h, bias)
    torch.testing.assert_close(ours(x), in_torch(theirs, x), **CLOSE)
    back = convert.to_torch(ours.state_dict())
    if bias:
        same(back, theirs.state_dict())
    again = nn.MultiheadAttention(d, h, batch_first=True).eval()
    again.load_state_dict(back, strict=True)
    torch.testing.assert_close(in_torch(again, x), ours(x), **CLOSE)


@pytest.mark.parametrize(("d", "h"), SIZES)
@pytest.mark.parametrize("qkv_bias", [True, False])
def test_round_trips_from_our_layout_are_exact(d, h, qkv_bias):
    state = our_layer(d, h, qkv_bias).state_dict()
    keep = None if qkv_bias else False
    same(convert.from_torch(convert.to_torch(state), CONTEXT, keep), state)
    same(convert.from_gpt2(convert.to_gpt2(state), CONTEXT, keep), state)
    same(convert.from_combined(convert.to_combined(state), CONTEXT), state)
    by_head = convert.to_combined(state, num_heads=h)
    same(convert.from_combined(by_head, CONTEXT, num_heads=h), state)


def gpt2_attention(x, state, h):
    """Compute GPT-2's attention from its own formulas: x @ weight + bias, split."""
    qkv = x @ state["c_attn.weight"] + state["c_attn.bias"]  # (b, t, 3 · d)
    q, k, v = (part.unflatten(-1, (h, -1)).transpose(1, 2) for part in qkv.chunk(3, -1))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
    weights = scores.masked_fill(future, -torch.inf).softmax(dim=-1)
    context = (weights @ v).transpose(1, 2).flatten(2)
    return context @ state["c_proj.weight"] + state["c_proj.bias"]


@pytest.mark.parametrize(("d", "h"), SIZES)
def test_gpt2(d, h):
    torch.manual_seed(2)
    theirs = {
        "c_attn.weight": torch.randn(d, 3 * d) / d**0.5,
        "c_attn.bias": torch.randn(3 * d),
        "c_proj.weight": torch.randn(d, d) / d**0.5,
        "c_proj.bias": torch.randn(d),
    }
    x = torch.randn(2, T, d)
    model = {f"h.0.attn.{name}": tensor for name, tensor in theirs.items()}
    model |= {"h.0.attn.bias": torch.ones(1, 1, 4, 4).tril(), "wte.weight": x}
    model["h.0.attn.masked_bias"] = torch.tensor(-1e4)
    state = convert.from_gpt2(model, CONTEXT, prefix="h.0.attn.")
    ours = load(state, d, h)
    torch.testing.assert_close(ours(x), gpt2_attention(x, theirs, h), **CLOSE)
    same(convert.to_gpt2(state), theirs)


def combined_attention(x, state, h, by_head):
    """Compute attention from one combined linear layer."""
    qkv = nn.functional.linear(x, state["Wqkv.weight"], state["Wqkv.bias"])
    if by_head:  # (b, t, h · 3 · d_head) -> (b, h, t, 3 · d_head)
        q, k, v = qkv.unflatten(-1, (h, -1)).transpose(1, 2).chunk(3, dim=-1)
    else:
        parts = qkv.chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (h, -1)).transpose(1, 2) for part in parts)
    context = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    context = context.transpose(1, 2).flatten(2)
    return nn.functional.linear(context, state["proj.weight"], state["proj.bias"])


@pytest.mark.parametrize(("d", "h"), SIZES)
@pytest.mark.parametrize("by_head", [True, False])
def test_combined(d, h, by_head):
    torch.manual_seed(3)
    d_in = d + 1
    theirs = {
        "Wqkv.weight": torch.randn(3 * d, d_in) / d**0.5,
        "Wqkv.bias": torch.randn(3 * d),
        "proj.weight": torch.randn(d, d) / d**0.5,
        "proj.bias": torch.randn(d),
    }
    x = torch.randn(2, T, d_in)
    options = {"names": ("Wqkv", "proj"), "num_heads": h if by_head else None}
    state = convert.from_combined(theirs, CONTEXT, **options)
    ours = load(state, d, h, d_in=d_in)
    expected = combined_attention(x, theirs, h, by_head)
    torch.testing.assert_close(ours(x), expected, **CLOSE)
    same(convert.to_combined(state, **options), theirs)


@pytest.mark.parametrize("qkv_bias", [True, False])
def test_combined_keeps_grouped_heads(qkv_bias):
    layer = FusedMultiHeadAttention(5, 12, CONTEXT, 0.0, 6, qkv_bias, num_kv_heads=2)
    combined = convert.to_combined(layer.state_dict())
    assert combined["qkv.weight"].shape == (12 + 4 + 4, 5)
    same(convert.from_combined(combined, CONTEXT), layer.state_dict())


@pytest.mark.parametrize(("d", "h"), SIZES)
@pytest.mark.parametrize("qkv_bias", [True, False])
def test_wrapper(d, h, qkv_bias):
    torch.manual_seed(4)
    wrapper = MultiHeadAttentionWrapper(d + 2, d // h, CONTEXT, 0.0, h, qkv_bias)
    x = torch.randn(2, T, d + 2)
    state = convert.from_wrapper(wrapper.state_dict())
    ours = load(state, d, h, qkv_bias, d_in=d + 2)
    torch.testing.assert_close(ours(x), wrapper(x), **CLOSE)
    same(convert.to_wrapper(state, h), wrapper.state_dict())
    model = {f"attn.{name}": t for name, t in wrapper.state_dict().items()}
    same(convert.from_wrapper(model, prefix="attn."), state)


def test_more_than_ten_heads_keep_their_order():
    wrapper = MultiHeadAttentionWrapper(3, 2, CONTEXT, 0.0, 12)
    state = convert.from_wrapper(wrapper.state_dict())
    for i, head in enumerate(wrapper.heads):
        rows = state["W_key.weight"][2 * i : 2 * i + 2]
        assert torch.equal(rows, head.W_key.weight)


def test_grouping_takes_means_and_ungrouping_repeats():
    state = our_layer(16, 8).state_dict()  # 8 heads, 2 wide
    grouped = convert.group_heads(state, 8, 2)
    key = state["W_key.weight"]
    means = [(key[i : i + 2] + key[i + 2 : i + 4]) / 2 for i in (0, 4, 8, 12)]
    expected = torch.cat([(means[0] + means[1]) / 2, (means[2] + means[3]) / 2])
    torch.testing.assert_close(grouped["W_key.weight"], expected)
    assert torch.equal(grouped["W_query.weight"], state["W_query.weight"])
    layer = FusedMultiHeadAttention(16, 16, CONTEXT, 0.0, 8, True, num_kv_heads=2)
    layer.load_state_dict(grouped, strict=True)
    ungrouped = convert.ungroup_heads(grouped, 8)
    rows = [0, 1] * 4 + [2, 3] * 4
    assert torch.equal(ungrouped["W_value.bias"], grouped["W_value.bias"][rows])
    same(convert.group_heads(ungrouped, 8, 2), grouped)


@pytest.mark.parametrize("to", [convert.to_torch, convert.to_gpt2, convert.to_combined])
def test_results_are_copies(to):
    layer = our_layer(8, 2)
    before = {name: t.clone() for name, t in layer.state_dict().items()}
    for tensor in to(dict(layer.named_parameters())).values():
        assert not tensor.requires_grad
        tensor.zero_()
    same(layer.state_dict(), before)


def test_results_do_not_share_memory_with_the_source():
    theirs = convert.to_torch(our_layer(8, 2).state_dict())
    before = {name: t.clone() for name, t in theirs.items()}
    for tensor in convert.from_torch(theirs, CONTEXT).values():
        tensor.zero_()
    same(theirs, before)


def test_dtype_is_kept():
    state = convert.to_gpt2(our_layer(8, 2).double().state_dict())
    assert {t.dtype for t in convert.from_gpt2(state, CONTEXT).values()} == {
        torch.float64
    }


# Wrong shapes and names.

OURS = our_layer(8, 2).state_dict()
NO_BIAS = our_layer(8, 2, qkv_bias=False).state_dict()
GROUPED = FusedMultiHeadAttention(8, 8, CONTEXT, 0.0, 4, num_kv_heads=2).state_dict()
TORCH = convert.to_torch(OURS)
GPT2 = convert.to_gpt2(OURS)
COMBINED = convert.to_combined(OURS)
WRAPPER = MultiHeadAttentionWrapper(3, 2, CONTEXT, 0.0, 2).state_dict()


def without(state, name):
    return {key: tensor for key, tensor in state.items() if key != name}


def changed(state, name, shape):
    return state | {name: torch.zeros(shape)}


REFUSED = {
    "a missing weight": (
        lambda: convert.from_torch(without(TORCH, "in_proj_weight"), CONTEXT),
        KeyError,
        ["Missing: in_proj_weight", "Unknown: none"],
    ),
    "an unknown weight": (
        lambda: convert.from_torch(TORCH | {"bias_k": torch.zeros(1)}, CONTEXT),
        KeyError,
        ["Unknown: bias_k", "in_proj_weight"],
    ),
    "a wrong prefix": (
        lambda: convert.from_gpt2(GPT2, CONTEXT, prefix="h.0."),
        KeyError,
        ["Missing: h.0.c_attn.weight", "prefix"],
    ),
    "no state dict": (
        lambda: convert.to_torch(our_layer(8, 2)),
        TypeError,
        ["MultiHeadAttention", "layer.state_dict()"],
    ),
    "no tensor": (
        lambda: convert.to_torch(OURS | {"W_key.weight": [1.0]}),
        TypeError,
        ["W_key.weight must be a Tensor", "list"],
    ),
    "torch: rows": (
        lambda: convert.from_torch(changed(TORCH, "in_proj_weight", (23, 8)), CONTEXT),
        ValueError,
        ["in_proj_weight", "(24, 8)", "(23, 8)"],
    ),
    "torch: grouped rows": (
        lambda: convert.from_torch(changed(TORCH, "in_proj_weight", (16, 8)), CONTEXT),
        ValueError,
        ["in_proj_weight", "(24, 8)", "(16, 8)"],
    ),
    "torch: bias": (
        lambda: convert.from_torch(changed(TORCH, "in_proj_bias", (8,)), CONTEXT),
        ValueError,
        ["in_proj_bias", "(24,)", "(8,)"],
    ),
    "torch: output": (
        lambda: convert.from_torch(changed(TORCH, "out_proj.weight", (8,)), CONTEXT),
        ValueError,
        ["out_proj.weight must be a matrix", "(8,)"],
    ),
    "torch: other width": (
        lambda: convert.to_torch(our_layer(8, 2, d_in=5).state_dict()),
        ValueError,
        ["d_in=5", "d_out=8"],
    ),
    "torch: grouped heads": (
        lambda: convert.to_torch(GROUPED),
        ValueError,
        ["nn.MultiheadAttention", "d_out=8", "4 wide", "ungroup_heads"],
    ),
    "GPT-2: not transposed": (
        lambda: convert.from_gpt2(changed(GPT2, "c_attn.weight", (24, 8)), CONTEXT),
        ValueError,
        ["c_attn.weight", "(24, 24)", "(24, 8)"],
    ),
    "GPT-2: output bias": (
        lambda: convert.from_gpt2(changed(GPT2, "c_proj.bias", (9,)), CONTEXT),
        ValueError,
        ["c_proj.bias", "(8,)", "(9,)"],
    ),
    "a bias to drop": (
        lambda: convert.from_gpt2(GPT2, CONTEXT, qkv_bias=False),
        ValueError,
        ["c_attn.bias", "not zero", "qkv_bias=True"],
    ),
    "combined: rows": (
        lambda: convert.from_combined(changed(COMBINED, "qkv.weight", (25, 8)), 9),
        ValueError,
        ["qkv.weight", "25", "d_out=8", "24 would"],
    ),
    "combined: heads": (
        lambda: convert.from_combined(COMBINED, CONTEXT, num_heads=3),
        ValueError,
        ["qkv.weight", "3 · 3 blocks", "(24, 8)", "num_heads"],
    ),
    "combined: grouped heads one by one": (
        lambda: convert.to_combined(GROUPED, num_heads=4),
        ValueError,
        ["head by head", "ungroup_heads"],
    ),
    "our layout: one bias only": (
        lambda: convert.to_gpt2(without(OURS, "W_key.bias")),
        KeyError,
        ["Missing: W_key.bias"],
    ),
    "our layout: key": (
        lambda: convert.to_gpt2(changed(OURS, "W_value.weight", (8, 7))),
        ValueError,
        ["W_value.weight", "(8, 8)", "(8, 7)"],
    ),
    "our layout: output": (
        lambda: convert.to_gpt2(changed(OURS, "out_proj.weight", (8, 7))),
        ValueError,
        ["out_proj.weight", "(8, 8)", "(8, 7)"],
    ),
    "wrapper: a head is missing": (
        lambda: convert.from_wrapper(without(WRAPPER, "heads.0.W_query.weight")),
        KeyError,
        ["Missing: heads.0.W_query.weight"],
    ),
    "wrapper: no state dict": (
        lambda: convert.from_wrapper(our_layer(8, 2)),
        TypeError,
        ["MultiHeadAttention", "layer.state_dict()"],
    ),
    "wrapper: unequal heads": (
        lambda: convert.from_wrapper(changed(WRAPPER, "heads.1.W_key.weight", (3, 3))),
        ValueError,
        ["heads.1.W_key.weight", "(2, 3)", "(3, 3)"],
    ),
    "wrapper: an output projection": (
        lambda: convert.to_wrapper(OURS, 2),
        ValueError,
        ["no output projection", "identity", "MultiHeadAttention"],
    ),
    "wrapper: heads": (
        lambda: convert.to_wrapper(convert.from_wrapper(WRAPPER), 3),
        ValueError,
        ["d_out=4", "num_heads=3"],
    ),
    "context_length": (
        lambda: convert.from_torch(TORCH, 0),
        ValueError,
        ["context_length must be a positive integer"],
    ),
    "grouping": (
        lambda: convert.group_heads(OURS, 2, 3),
        ValueError,
        ["num_kv_heads=3", "num_heads=2"],
    ),
    "ungrouping": (
        lambda: convert.ungroup_heads(GROUPED, 3),
        ValueError,
        ["d_out=8", "num_heads=3"],
    ),
    "ungrouping with too few heads": (
        lambda: convert.ungroup_heads(GROUPED, 1),
        ValueError,
        ["W_key.weight", "8", "(4, 8)"],
    ),
}


# Eight queries and these many keys and values: none, an odd number, groups that do not
# divide the queries, more than the queries.
@pytest.mark.parametrize("rows", [8, 11, 14, 26])
def test_a_combined_matrix_that_does_not_split_is_refused(rows):
    given = changed(COMBINED, "qkv.weight", (rows, 8))
    with pytest.raises(ValueError, match=f"{rows} outputs do not split for d_out=8"):
        convert.from_combined(given, CONTEXT)


@pytest.mark.parametrize(("call", "error", "parts"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_is_refused(call, error, parts):
    with pytest.raises(error) as caught:
        call()
    for part in parts:
        assert part in str(caught.value)
