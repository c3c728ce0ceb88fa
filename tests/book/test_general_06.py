"""The head of the averaging notes is our causal attention, at other sizes and seeds."""

import pytest
import torch
from torch import nn

from attention import CausalAttention

SIZES = [(1, 4, 2), (8, 32, 16), (13, 5, 9)]  # t, d_in, d_head


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
