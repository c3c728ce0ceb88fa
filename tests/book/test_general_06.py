"""General sentences of the averaging route, on random cases."""

import pytest
import torch
from torch import nn

from attention import CausalAttention

SIZES = [(1, 4, 2), (8, 32, 16), (13, 5, 9)]  # t, d_in, d_head


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("t", [1, 2, 6, 31])
def test_three_ways_give_the_mean_of_the_past(t, seed):
    torch.manual_seed(seed)
    x = torch.randn(t, 5).double()
    by_loop = torch.stack([x[: i + 1].mean(dim=0) for i in range(t)])
    triangle = torch.ones(t, t).tril().double()
    by_product = triangle / triangle.sum(dim=-1, keepdim=True) @ x
    zeros = torch.zeros(t, t).double().masked_fill(triangle == 0, -torch.inf)
    torch.testing.assert_close(by_product, by_loop)
    torch.testing.assert_close(torch.softmax(zeros, dim=-1) @ x, by_loop)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("t", "d_in", "d_head"), SIZES)
@torch.no_grad()
def test_the_head_of_the_notes_is_causal_attention(t, d_in, d_head, seed):
    torch.manual_seed(seed)
    query, key, value = (nn.Linear(d_in, d_head, bias=False) for _ in range(3))
    torch.manual_seed(seed)
    head = CausalAttention(d_in, d_head, t, 0.0).double()
    x = torch.randn(3, t, d_in).double()
    q, k, v = (layer.double()(x) for layer in (query, key, value))
    tril = torch.tril(torch.ones(t, t))
    scores = (q @ k.transpose(1, 2) / d_head**0.5).masked_fill(tril == 0, -torch.inf)
    torch.testing.assert_close(head(x), torch.softmax(scores, dim=-1) @ v)
    head.W_query.weight.zero_()
    means = torch.stack([v[:, : i + 1].mean(dim=1) for i in range(t)], dim=1)
    torch.testing.assert_close(head(x), means)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n", "d"), [(4, 10), (32, 100), (7, 33)])
@torch.no_grad()
def test_layer_norm_normalizes_rows_and_not_columns(n, d, seed):
    torch.manual_seed(seed)
    x = 3 * torch.randn(n, d).double() + 2
    normed = nn.LayerNorm(d).double()(x)
    zeros, ones = torch.zeros(n).double(), torch.ones(n).double()
    torch.testing.assert_close(normed.mean(dim=1), zeros)
    torch.testing.assert_close(normed.std(dim=1, correction=0), ones, rtol=1e-4, atol=0)
    by_less = normed.std(dim=1)
    ratio = torch.full((n,), (d / (d - 1)) ** 0.5).double()
    torch.testing.assert_close(by_less, ratio, rtol=1e-4, atol=0)
    assert normed.mean(dim=0).abs().max() > 0.01
    # Each token by itself: the others keep what they have.
    x[-1] = torch.arange(d)
    assert torch.equal(nn.LayerNorm(d).double()(x)[:-1], normed[:-1])


def test_layer_norm_does_not_stretch_what_is_nearly_equal():
    """Epsilon is added to the variance, so a small spread stays small."""
    x = torch.randn(32, 100, generator=torch.Generator().manual_seed(0)).double()
    norm = nn.LayerNorm(100).double()
    for spread, deviation in ((1, 1), (1e-3, 0.3), (0, 0)):
        found = norm(spread * x + 5).std(dim=1, correction=0).mean().item()
        assert found == pytest.approx(deviation, abs=0.02)
