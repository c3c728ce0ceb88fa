"""What the page on time says in general, over other sizes and numbers."""

import pytest
import torch
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from attention import MultiHeadAttention
from tests.book.run_cells import run_cells

PAGE = "07_where_the_time_goes"


@pytest.mark.parametrize(("h", "d_head", "t"), [(1, 4, 3), (3, 8, 17), (12, 64, 40)])
def test_formulas_count_what_pytorch_counts(h, d_head, t):
    page = run_cells(PAGE, "flops-by-step", h=h, d_head=d_head, d=h * d_head)
    layer = MultiHeadAttention(h * d_head, h * d_head, t, 0.0, h)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        layer(torch.randn(1, t, h * d_head))
    products = ("projections", "scores", "weighted sum", "output")
    counted = sum(page["flops"](t)[name] for name in products)
    assert counted == counter.get_total_flops()


@pytest.mark.parametrize("seed", range(6))
def test_softmax_in_tiles_is_softmax_for_any_size_of_tile(seed):
    g = torch.Generator().manual_seed(seed)
    t, d_head = torch.randint(1, 40, (2,), generator=g).tolist()
    page = run_cells(PAGE, "softmax-in-tiles", d_head=d_head)
    q, k, v = 10**seed * torch.randn(3, t, d_head, generator=g)  # large scores, too
    q, k, v = q.double(), k.double(), v.double()
    whole = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
    torch.set_default_dtype(torch.float64)
    try:
        for size in (1, 3, t, t + 5):
            torch.testing.assert_close(page["tiled"](q, k, v, size), whole)
    finally:
        torch.set_default_dtype(torch.float32)
