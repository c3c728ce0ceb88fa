"""Every printed value of the chapter, computed again and compared digit for digit.

``RECOMPUTED`` holds the entries that a run must print again, ``HELD`` those that a
run can only hold to a rule. ``test_every_entry_is_covered`` fails for an entry that
stands in neither.
"""

import json
from pathlib import Path

import pytest
import torch
from torch import nn

import attention

pytestmark = pytest.mark.package

REFERENCE = Path(__file__).parents[1] / "reference" / "printed_values.json"
ENTRIES = {entry["id"]: entry for entry in json.loads(REFERENCE.read_text("utf-8"))}


# Comparing ----------------------------------------------------------------------


def as_printed(value, like):
    """Write a number with as many decimals as ``like`` has, as PyTorch prints it."""
    if isinstance(value, int):
        return str(value)
    if value in (float("inf"), float("-inf")):
        return str(value)
    if "." not in like:
        return f"{value} is no integer"
    decimals = len(like.partition(".")[2])
    if decimals == 0:
        # PyTorch prints "1." for whole numbers only.
        whole = abs(value - round(value)) < 1e-6
        return f"{round(value)}." if whole else f"{value} is not whole"
    return f"{value:.{decimals}f}"


def unsigned_zero(text):
    """Drop the sign of a zero, which says only from which side it was rounded."""
    return text.removeprefix("-") if text.strip("-0.") == "" else text


def plain(value):
    """Turn a tensor or shape into nested lists of numbers."""
    return value.tolist() if isinstance(value, torch.Tensor) else value


def differences(value, printed, place=""):
    """List where ``value`` is not what was printed; empty if it is."""
    if isinstance(printed, str):
        if isinstance(value, (list, tuple)):
            return [f"{place}: expected the number {printed}, got a list"]
        got = as_printed(value, like=printed)
        same = unsigned_zero(got) == unsigned_zero(printed)
        return [] if same else [f"{place}: got {got}, printed {printed}"]
    if not isinstance(value, (list, tuple)) or len(value) != len(printed):
        return [f"{place}: expected {len(printed)} entries, got {value}"]
    pairs = enumerate(zip(value, printed, strict=True))
    return [d for i, (v, p) in pairs for d in differences(v, p, f"{place}[{i}]")]


def numbers(entry_id):
    """Give the printed values of an entry as a tensor."""

    def convert(printed):
        if isinstance(printed, str):
            return float(printed)
        return [convert(part) for part in printed]

    return torch.tensor(convert(ENTRIES[entry_id]["values"]))


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (0.95444, "0.9544"),
        (-0.00001, "0.0000"),
        (0.00001, "-0.0000"),
        (2, "2"),
        (2.0, "2."),
        (float("-inf"), "-inf"),
        ([[1.0], [0.5]], [["1."], ["0.5000"]]),
    ],
)
def test_comparison_accepts_what_prints_the_same(value, printed):
    assert differences(value, printed) == []


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (0.95446, "0.9544"),
        (-0.95440, "0.9544"),
        (0.0001, "0.0000"),
        (1.4, "1."),
        (2.0, "2"),
        (3, "2"),
        (float("-inf"), "0.0000"),
        (float("nan"), "0.0000"),
        (0.0, "-inf"),
        ([1.0, 1.0], ["1."]),
        ([1.0], "1."),
        (1.0, ["1."]),
        ([[1.0]], ["1."]),
    ],
)
def test_comparison_refuses_what_prints_otherwise(value, printed):
    assert differences(value, printed) != []


# Recomputing --------------------------------------------------------------------


def inputs():
    return numbers("inputs")  # (6, 3)


def batch():
    return torch.stack((inputs(), inputs()))  # (2, 6, 3)


def v1():
    torch.manual_seed(123)
    return attention.SelfAttention_v1(3, 2)


def v2():
    torch.manual_seed(789)
    return attention.SelfAttention_v2(3, 2)


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
    torch.manual_seed(123)
    return attention.CausalAttention(3, 2, 6, 0.0)


def wrapper():
    torch.manual_seed(123)
    return attention.MultiHeadAttentionWrapper(3, 2, 6, 0.0, num_heads=2)


def multi_head():
    torch.manual_seed(123)
    return attention.MultiHeadAttention(3, 2, 6, 0.0, num_heads=2)


def weights_in(layer, x):
    """Read the attention weights out of a layer: with values = I, weights @ I."""
    identity = torch.eye(x.shape[-2])
    with_identity = layer.W_value.register_forward_hook(lambda *_: identity)
    weights = layer(x)
    with_identity.remove()
    return weights


def journey_scores():
    return inputs() @ inputs()[1]


def dot_step_by_step(a, b):
    total = torch.tensor(0.0)
    for product in a * b:
        total = total + product
    return total.item()


def journey_weights():
    return attention.softmax_naive(journey_scores())


def all_scores():
    return inputs() @ inputs().T


def all_weights():
    # softmax_naive normalises columns; transposed twice, it normalises rows.
    return attention.softmax_naive(all_scores().T).T


def all_scores_by_loops():
    scores = torch.empty(6, 6)
    for i, x_i in enumerate(inputs()):
        for j, x_j in enumerate(inputs()):
            scores[i, j] = torch.dot(x_i, x_j)
    return scores


def query_2():
    return inputs()[1] @ v1().W_query


def keys():
    return inputs() @ v1().W_key


def values():
    return inputs() @ v1().W_value


def weights_2():
    return attention.softmax_naive(query_2() @ keys().T / 2**0.5)


def causal_scores():
    layer = v2()
    return layer.W_query(inputs()) @ layer.W_key(inputs()).T


def tril():
    return torch.tril(torch.ones(6, 6))


def hide_future(scores):
    future = torch.triu(torch.ones_like(scores), diagonal=1).bool()
    return scores.masked_fill(future, -torch.inf)


def renormalized(weights):
    return weights / weights.sum(dim=-1, keepdim=True)


def causal_weights():
    return weights_in(causal_from_v2(), inputs().unsqueeze(0))[0]


def running_means(n):
    return renormalized(torch.tril(torch.ones(n, n)))


def masked_zeros():
    return hide_future(torch.zeros(8, 8))


def heads():
    return numbers("heads_example")  # (1, 2, 3, 4)


def arange():
    return torch.arange(24).view(2, 3, 4)


def split_arange():
    return arange().view(2, 3, 2, 2).transpose(1, 2)


# id -> the ways to compute it; every one of them must print the same digits.
RECOMPUTED = {
    "scores_journey": [
        journey_scores,
        lambda: [float(torch.dot(x, inputs()[1])) for x in inputs()],
    ],
    # The last digits depend on the order of rounding, and matrix products choose
    # their own. One product and one sum at a time is the same on every machine.
    "scores_journey_full_precision": [
        lambda: [dot_step_by_step(x, inputs()[1]) for x in inputs()]
    ],
    "weights_journey_by_sum": [lambda: journey_scores() / journey_scores().sum()],
    "weights_journey_by_sum_total": [
        lambda: (journey_scores() / journey_scores().sum()).sum()
    ],
    "weights_journey_softmax": [
        journey_weights,
        lambda: torch.softmax(journey_scores(), dim=0),
    ],
    "weights_journey_softmax_total": [
        lambda: journey_weights().sum(),
        lambda: torch.softmax(journey_scores(), dim=0).sum(),
    ],
    "context_journey": [
        lambda: attention.simple_self_attention(inputs())[1],
        lambda: journey_weights() @ inputs(),
    ],
    "scores_all": [all_scores, all_scores_by_loops],
    "weights_all": [all_weights, lambda: torch.softmax(all_scores(), dim=-1)],
    "weights_row2_total": [
        lambda: sum(float(w) for w in ENTRIES["weights_all"]["values"][1])
    ],
    "weights_all_row_totals": [lambda: all_weights().sum(dim=-1)],
    "context_all": [
        lambda: attention.simple_self_attention(inputs()),
        lambda: attention.simple_self_attention(batch())[1],
        lambda: all_weights() @ inputs(),
    ],
    "x_2": [lambda: inputs()[1]],
    "query_2": [query_2],
    "keys_shape": [lambda: keys().shape],
    "values_shape": [lambda: values().shape],
    "score_22": [lambda: query_2().dot(keys()[1])],
    "scores_2": [lambda: query_2() @ keys().T],
    "weights_2": [weights_2],
    "context_2": [lambda: v1()(inputs())[1], lambda: weights_2() @ values()],
    "self_attention_v1": [lambda: v1()(inputs()), lambda: v1()(batch())[1]],
    "self_attention_v2": [
        lambda: v2()(inputs()),
        lambda: v2()(batch())[1],
        lambda: v1_from_v2()(inputs()),
    ],
    "self_attention_v2_W_query": [lambda: v2().W_query.weight],
    "causal_weights_unmasked": [
        lambda: weights_in(v2(), inputs()),
        lambda: torch.softmax(causal_scores() / 2**0.5, dim=-1),
    ],
    "causal_scores_unmasked": [causal_scores],
    "tril_ones": [tril, lambda: 1 - causal().mask],
    "causal_weights_zeroed": [lambda: weights_in(v2(), inputs()) * tril()],
    "causal_weights": [
        causal_weights,
        lambda: renormalized(weights_in(v2(), inputs()) * tril()),
        lambda: torch.softmax(hide_future(causal_scores()) / 2**0.5, dim=-1),
    ],
    "triu_ones": [lambda: torch.triu(torch.ones(6, 6))],
    "triu_ones_above": [
        lambda: causal().mask,
        lambda: torch.triu(torch.ones(6, 6), diagonal=1),
    ],
    "causal_scores_masked": [
        lambda: causal_scores().masked_fill(causal().mask.bool(), -torch.inf)
    ],
    "ones_6x6": [lambda: torch.ones(6, 6)],
    "batch_shape": [lambda: batch().shape],
    "causal_attention_shape": [lambda: causal()(batch()).shape],
    "causal_attention": [lambda: causal()(batch())],
    "multi_head_wrapper": [lambda: wrapper()(batch())],
    "multi_head_wrapper_shape": [lambda: wrapper()(batch()).shape],
    "heads_example_scores": [lambda: heads() @ heads().transpose(2, 3)],
    "heads_example_first": [lambda: heads()[0, 0] @ heads()[0, 0].T],
    "heads_example_second": [lambda: heads()[0, 1] @ heads()[0, 1].T],
    "multi_head": [lambda: multi_head()(batch())],
    "multi_head_shape": [lambda: multi_head()(batch()).shape],
    "averaging_weights_3": [lambda: running_means(3)],
    "averaging_c": [lambda: running_means(3) @ numbers("averaging_b")],
    "averaging_weights_8": [
        lambda: running_means(8),
        lambda: torch.softmax(masked_zeros(), dim=-1),
        lambda: attention.softmax_naive(masked_zeros().T).T,
    ],
    "averaging_masked_zeros": [masked_zeros],
    "arange_2_3_4": [
        arange,
        lambda: split_arange().transpose(1, 2).contiguous().view(2, 3, 4),
    ],
    "arange_split_heads": [split_arange],
    # The page's own numbers for the erratum; that they differ is tested below.
    "mixed_masked_scores": [lambda: hide_future(all_scores())],
    "mixed_renormalised": [lambda: renormalized(all_weights() * tril())],
    "mixed_scaled_softmax": [
        lambda: torch.softmax(hide_future(all_scores()) / 2**0.5, dim=-1)
    ],
}
WAYS = [(entry, way) for entry, ways in RECOMPUTED.items() for way in range(len(ways))]


@pytest.mark.parametrize(("entry", "way"), WAYS)
def test_prints_the_same_digits(entry, way):
    value = plain(RECOMPUTED[entry][way]())
    assert differences(value, ENTRIES[entry]["values"]) == []


# Dropout: two results are right -------------------------------------------------


def dropout_of_ones():
    torch.manual_seed(123)
    return nn.Dropout(0.5)(torch.ones(6, 6))


def dropout_of_weights():
    layer = causal_from_v2(dropout=0.5)
    torch.manual_seed(123)
    return weights_in(layer, inputs().unsqueeze(0))[0]


def printed_letter(step, value):
    """Say which of the two published results a dropout step printed."""
    published = {letter: ENTRIES[f"{step}@{letter}"]["values"] for letter in "ab"}
    found = [k for k, printed in published.items() if not differences(value, printed)]
    assert found, f"{step}: neither @a nor @b was printed, but {value}"
    return found[0]


def test_dropout_prints_one_of_the_two_results_consistently():
    ones = printed_letter("dropout_ones", plain(dropout_of_ones()))
    assert printed_letter("dropout_weights", plain(dropout_of_weights())) == ones


@pytest.mark.parametrize("letter", ["a", "b"])
def test_dropout_prints_keep_a_weight_doubled_or_drop_it(letter):
    ones = numbers(f"dropout_ones@{letter}")
    weights = numbers(f"dropout_weights@{letter}")
    assert set(ones.flatten().tolist()) == {0.0, 2.0}
    # What was kept of the ones was kept of the weights: the stream is the same.
    expected = causal_weights() * ones
    torch.testing.assert_close(weights, expected, atol=1e-4, rtol=0)
    assert torch.equal(weights == 0, expected == 0)


# Entries that hold by a rule ----------------------------------------------------


def hold_running_mean():
    x0, means = numbers("averaging_x0"), numbers("averaging_x0_mean")
    by_loop = torch.stack([x0[: t + 1].mean(dim=0) for t in range(8)])
    torch.testing.assert_close(by_loop, means, atol=1e-4, rtol=0)
    torch.testing.assert_close(running_means(8) @ x0, means, atol=1e-4, rtol=0)


def hold_batch_mean():
    printed = ENTRIES["averaging_batch_mean"]["values"]
    assert printed[0] == ENTRIES["averaging_x0_mean"]["values"]
    # Each mean times its count is a running total, whose steps are the inputs.
    totals = numbers("averaging_batch_mean") * torch.arange(1.0, 9.0).unsqueeze(-1)
    x = totals.diff(dim=1, prepend=torch.zeros(4, 1, 2))
    torch.testing.assert_close(x[0], numbers("averaging_x0"), atol=1e-3, rtol=0)
    # 64 draws from a standard normal: mean within 5/√64, standard deviation near 1.
    assert x.mean().abs() < 5 / 8
    assert 0.6 < x.std() < 1.4


def hold_single_head_weights():
    weights = numbers("single_head_weights")
    torch.testing.assert_close(weights.sum(-1), torch.ones(8), atol=3e-4, rtol=0)
    assert torch.equal(weights > 0, torch.tril(torch.ones(8, 8)).bool())
    # A head of ours obeys the same rule with its own draws.
    torch.manual_seed(0)
    layer = attention.CausalAttention(32, 8, 8, 0.0)
    ours = weights_in(layer, torch.randn(4, 8, 32))
    torch.testing.assert_close(ours.sum(-1), torch.ones(4, 8))
    assert torch.equal(ours[0] > 0, weights > 0)


def hold_single_head_values():
    # nn.Linear draws within ±1/√32, variance 1/96; 32 normal inputs make √(32/96).
    torch.manual_seed(0)
    layer = attention.CausalAttention(32, 16, 8, 0.0)
    ours = layer.W_value(torch.randn(1000, 8, 32))
    torch.testing.assert_close(ours.std(), torch.tensor(3**-0.5), atol=0.05, rtol=0)
    printed = numbers("single_head_values")
    assert printed.shape == (8, 2)
    assert 0.5 < printed.square().mean().sqrt() / ours.std() < 2


def normalized(seed):
    torch.manual_seed(seed)
    return nn.LayerNorm(100)(torch.randn(32, 100))


def hold_row(statistic, entry):
    for row in normalized(seed=0):
        assert differences(plain(statistic(row)), ENTRIES[entry]["values"]) == []


def hold_column(statistic, entry, if_normalized):
    printed = numbers(entry)
    draws = torch.stack([statistic(normalized(seed)[:, 0]) for seed in range(300)])
    assert draws.min() < printed < draws.max()
    # Columns are not normalised: neither the printed one nor ours come out even.
    assert (printed - if_normalized).abs() > 0.05
    assert (draws - if_normalized).abs().mean() > 0.05


HELD = {
    "averaging_x0_mean": hold_running_mean,
    "averaging_batch_mean": hold_batch_mean,
    "single_head_weights": hold_single_head_weights,
    "single_head_values": hold_single_head_values,
    "layer_norm_row_mean": lambda: hold_row(torch.mean, "layer_norm_row_mean"),
    "layer_norm_row_std": lambda: hold_row(torch.std, "layer_norm_row_std"),
    "layer_norm_column_mean": lambda: hold_column(
        torch.mean, "layer_norm_column_mean", 0.0
    ),
    "layer_norm_column_std": lambda: hold_column(
        torch.std, "layer_norm_column_std", 1.0
    ),
}


@pytest.mark.parametrize("entry", HELD)
def test_holds_as_its_note_says(entry):
    with torch.no_grad():
        HELD[entry]()


def test_erratum_the_two_ways_differ():
    renormalised = numbers("mixed_renormalised")
    scaled = numbers("mixed_scaled_softmax")
    assert (renormalised - scaled).abs().max() > 0.03
    # Row 1 has one weight and agrees; every other row differs.
    differs = ((renormalised - scaled).abs() > 1e-3).any(dim=-1)
    assert differs.tolist() == [False, True, True, True, True, True]


def test_erratum_comes_from_the_scale_alone():
    # With one scale for both, masking first and renormalising after agree.
    for scale in (1.0, 2**0.5):
        scores = all_scores() / scale
        after = renormalized(torch.softmax(scores, dim=-1) * tril())
        torch.testing.assert_close(torch.softmax(hide_future(scores), -1), after)


# Coverage -----------------------------------------------------------------------


def ids(*kinds):
    return {name for name, entry in ENTRIES.items() if entry["kind"] in kinds}


def test_every_output_is_recomputed():
    dropout = {name for name in ENTRIES if name.startswith("dropout_")}
    assert dropout == {f"dropout_{of}@{k}" for of in ("ones", "weights") for k in "ab"}
    assert set(RECOMPUTED) | dropout == ids("output", "erratum")
    assert all(RECOMPUTED.values())


def test_every_entry_is_covered():
    assert set(HELD) == ids("approximate", "example")
    assert ids("input") == {"inputs", "heads_example", "averaging_x0", "averaging_b"}
    known = ids("input", "output", "approximate", "example", "erratum")
    assert known == set(ENTRIES)


def test_ids_are_unique():
    assert len(ENTRIES) == len(json.loads(REFERENCE.read_text("utf-8")))
