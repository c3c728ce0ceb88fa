"""Weights, weighted sum and causal mask, against PyTorch's kernel and small sums."""

import math

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from attention.functional import attend, attention_weights, causal_mask

pytestmark = pytest.mark.package

CLOSE = {"atol": 1e-12, "rtol": 1e-12}


def drawn(seed):
    """Draw queries, keys and values of two sequences with three heads."""
    torch.manual_seed(seed)
    t_q, t_k, d_k, d_out = (int(n) for n in torch.randint(1, 9, (4,)))
    shapes = [(t_q, d_k), (t_k, d_k), (t_k, d_out)]
    return [torch.randn(2, 3, *shape, dtype=torch.float64) for shape in shapes]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scale", [None, 1.0, 0.3])
@pytest.mark.parametrize("masked", [False, True])
def test_attend_computes_what_the_kernel_computes(seed, scale, masked):
    queries, keys, values = drawn(seed)
    hidden = None
    if masked:  # at random, but every query sees the first key
        hidden = torch.rand(2, 1, queries.shape[2], keys.shape[2]) < 0.5
        hidden[..., 0] = False
    expected = scaled_dot_product_attention(
        queries, keys, values, None if hidden is None else ~hidden, scale=scale
    )
    result = attend(queries, keys, values, hidden, scale)
    torch.testing.assert_close(result, expected, **CLOSE)


def test_weights_by_hand():
    # Scores 0 and 2 · ln 3, divided by √4: ln 3, so one key counts three times.
    query = torch.tensor([1.0, 0.0, 0.0, 0.0])
    keys = torch.tensor([[0.0, 1.0, 0.0, 0.0], [2 * math.log(3), 0.0, 0.0, 0.0]])
    weights = attention_weights(query, keys)
    torch.testing.assert_close(weights, torch.tensor([0.25, 0.75]))


def test_one_query_is_a_row_of_many():
    queries, keys, _ = (part[0, 0] for part in drawn(3))
    for query, row in zip(queries, attention_weights(queries, keys), strict=True):
        torch.testing.assert_close(attention_weights(query, keys), row, **CLOSE)


def test_a_query_with_nothing_to_see_gets_nan():
    hidden = torch.tensor([[True, True], [True, False]])
    weights = attention_weights(torch.randn(2, 4), torch.randn(2, 4), hidden)
    assert weights[0].isnan().all()
    assert weights[1].tolist() == [0.0, 1.0]


@pytest.mark.parametrize(("t_q", "t_k"), [(1, 1), (4, 4), (1, 5), (3, 5)])
def test_the_last_queries_see_themselves_and_their_past(t_q, t_k):
    past = t_k - t_q
    expected = [[key > past + query for key in range(t_k)] for query in range(t_q)]
    assert causal_mask(t_q, t_k).tolist() == expected
    if not past:
        assert causal_mask(t_q).tolist() == expected
