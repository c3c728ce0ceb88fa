"""What the package's own classes print with the chapter's seeds, against the source.

That the pages print every published value is held where the pages are tested.
"""

import json
from pathlib import Path

import pytest
import torch
from torch import nn

import attention
from coding_attention import example

pytestmark = pytest.mark.package

REFERENCE = Path(__file__).parents[2] / "book/reference/printed_values.json"
ENTRIES = {entry["id"]: entry for entry in json.loads(REFERENCE.read_text("utf-8"))}


def published(entry):
    """Give the printed values of an entry as a tensor."""

    def convert(printed):
        if isinstance(printed, str):
            return float(printed)
        return [convert(part) for part in printed]

    return torch.tensor(convert(ENTRIES[entry]["values"]))


def prints(value, entry):
    """Tell whether a tensor has the four decimals of an entry."""
    printed = published(entry)
    same = value.shape == printed.shape
    return same and torch.allclose(value, printed, atol=5.1e-5, rtol=0)


INPUTS = published("inputs")  # (6, 3)
BATCH = torch.stack((INPUTS, INPUTS))  # (2, 6, 3)


def seeded(seed, layer, *arguments):
    torch.manual_seed(seed)
    return getattr(attention, layer)(*arguments)


def v1():
    return seeded(123, "SelfAttention_v1", 3, 2)


def v2():
    return seeded(789, "SelfAttention_v2", 3, 2)


def v1_from_v2():
    """Answer exercise 3.1: v1 with the transposed weights of v2."""
    layer, source = v1(), v2()
    for name in ("W_query", "W_key", "W_value"):
        getattr(layer, name).data = getattr(source, name).weight.T
    return layer


def causal_from_v2(dropout=0.0):
    """Build the causal layer that has the seed-789 weights."""
    layer = attention.CausalAttention(3, 2, 6, dropout)
    layer.load_state_dict(v2().state_dict(), strict=False)
    return layer


def causal():
    return seeded(123, "CausalAttention", 3, 2, 6, 0.0)


def wrapper():
    return seeded(123, "MultiHeadAttentionWrapper", 3, 2, 6, 0.0, 2)


def multi_head():
    return seeded(123, "MultiHeadAttention", 3, 2, 6, 0.0, 2)


def weights_in(layer, x):
    """Read the attention weights out of a layer: with values = I, weights @ I."""
    identity = torch.eye(x.shape[-2])
    with_identity = layer.W_value.register_forward_hook(lambda *_: identity)
    weights = layer(x)
    with_identity.remove()
    return weights


# An id, and how a function or class of the package computes it.
COMPUTED = [
    ("weights_journey_softmax", lambda: attention.softmax_naive(INPUTS @ INPUTS[1])),
    ("weights_all", lambda: attention.softmax_naive(INPUTS @ INPUTS.T).T),
    ("context_journey", lambda: attention.simple_self_attention(INPUTS)[1]),
    ("context_all", lambda: attention.simple_self_attention(INPUTS)),
    ("context_all", lambda: attention.simple_self_attention(BATCH)[1]),
    ("query_2", lambda: INPUTS[1] @ v1().W_query),
    ("context_2", lambda: v1()(INPUTS)[1]),
    ("self_attention_v1", lambda: v1()(INPUTS)),
    ("self_attention_v1", lambda: v1()(BATCH)[1]),
    ("self_attention_v2_W_query", lambda: v2().W_query.weight),
    ("self_attention_v2", lambda: v2()(INPUTS)),
    ("self_attention_v2", lambda: v2()(BATCH)[1]),
    ("self_attention_v2", lambda: v1_from_v2()(INPUTS)),
    ("causal_weights_unmasked", lambda: weights_in(v2(), INPUTS)),
    ("causal_weights", lambda: weights_in(causal_from_v2(), BATCH)[0]),
    ("triu_ones_above", lambda: causal().mask),
    ("causal_attention", lambda: causal()(BATCH)),
    ("multi_head_wrapper", lambda: wrapper()(BATCH)),
    ("multi_head", lambda: multi_head()(BATCH)),
]


@pytest.mark.parametrize(("entry", "compute"), COMPUTED, ids=[e for e, _ in COMPUTED])
def test_the_package_prints_the_published_digits(entry, compute):
    value = compute()
    assert prints(value, entry), value


def test_dropout_prints_one_of_the_two_results_consistently():
    """Which of the two depends on the processor; both are right."""
    torch.manual_seed(123)
    ones = nn.Dropout(0.5)(torch.ones(6, 6))
    layer = causal_from_v2(dropout=0.5)
    torch.manual_seed(123)
    weights = weights_in(layer, BATCH[:1])[0]
    assert [
        letter
        for letter in "ab"
        if prints(ones, f"dropout_ones@{letter}")
        and prints(weights, f"dropout_weights@{letter}")
    ]


def test_the_running_example_is_the_published_one():
    assert example.inputs().dtype == torch.float32
    assert torch.equal(example.inputs(), INPUTS)
    assert " ".join(example.TOKENS) == "Your journey starts with one step"
    example.inputs().zero_()
    assert torch.equal(example.inputs(), INPUTS), "each call gives one of its own"
