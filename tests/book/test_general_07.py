"""What the page on time says in general, over other sizes and numbers."""

import io
from contextlib import redirect_stdout

import pytest
import torch
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from attention import FusedMultiHeadAttention, KeyValueCache, MultiHeadAttention
from tests.book.pages import Page

CELLS = {c.metadata.name: c.source for c in Page("07_where_the_time_goes").code_cells}


def names_of(*cells, **given):
    """Run cells of the page with other numbers in place of the page's own."""
    names = {"torch": torch, **given}
    with redirect_stdout(io.StringIO()):
        for cell in cells:
            exec(CELLS[cell], names)
    return names


@pytest.mark.parametrize(("h", "d_head", "t"), [(1, 4, 3), (3, 8, 17), (12, 64, 40)])
def test_formulas_count_what_pytorch_counts(h, d_head, t):
    page = names_of("flops-by-step", h=h, d_head=d_head, d=h * d_head)
    layer = MultiHeadAttention(h * d_head, h * d_head, t, 0.0, h)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        layer(torch.randn(1, t, h * d_head))
    products = ("projections", "scores", "weighted sum", "output")
    counted = sum(page["flops"](t)[name] for name in products)
    assert counted == counter.get_total_flops()


@pytest.mark.parametrize("t", [16, 256, 1000])
def test_projections_grow_with_t_and_the_others_with_its_square(t):
    page = names_of("flops-by-step", h=12, d_head=64, d=768)
    growth = {
        n: page["flops"](2 * t)[n] / page["flops"](t)[n] for n in page["flops"](1)
    }
    assert growth.pop("projections") == growth.pop("output") == 2
    assert set(growth.values()) == {4}


@pytest.mark.parametrize("key_heads", [1, 2, 3, 4, 6, 12])
@pytest.mark.parametrize("t", [1, 100, 10**6])
def test_one_more_token_does_few_flops_a_byte_at_any_length(t, key_heads):
    page = names_of("decode-intensity", h=12, d_head=64)
    few = page["decode_intensity"](t, key_heads)
    assert few == pytest.approx(page["decode_intensity"](1, 12) * 12 / key_heads)
    assert few < 7  # a machine that waits for memory there waits at every length


@pytest.mark.parametrize("seed", range(6))
def test_softmax_in_tiles_is_softmax_for_any_size_of_tile(seed):
    g = torch.Generator().manual_seed(seed)
    t, d_head = torch.randint(1, 40, (2,), generator=g).tolist()
    page = names_of("softmax-in-tiles", d_head=d_head)
    q, k, v = 10**seed * torch.randn(3, t, d_head, generator=g)  # large scores, too
    q, k, v = q.double(), k.double(), v.double()
    whole = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
    torch.set_default_dtype(torch.float64)
    try:
        for size in (1, 3, t, t + 5):
            torch.testing.assert_close(page["tiled"](q, k, v, size), whole)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("seed", range(4))
def test_dividing_queries_and_adding_the_mask_change_nothing(seed):
    g = torch.Generator().manual_seed(seed)
    h, t, d_head = torch.randint(1, 9, (3,), generator=g).tolist()
    q, k = torch.randn(2, h, t, d_head, generator=g, dtype=torch.float64)
    scores = q @ k.mT / d_head**0.5
    torch.testing.assert_close((q / d_head**0.5) @ k.mT, scores)
    future = torch.ones(t, t, dtype=torch.bool).triu(diagonal=1)
    added = scores + torch.where(future, -torch.inf, 0.0)
    assert torch.equal(added, scores.masked_fill(future, -torch.inf))


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
@pytest.mark.parametrize("prompt", [1, 5])
def test_a_cache_gives_the_same_and_fewer_key_heads_a_smaller_one(prompt, kv_heads):
    torch.manual_seed(prompt)
    layer = FusedMultiHeadAttention(8, 8, 12, 0.0, 4, num_kv_heads=kv_heads).eval()
    x, cache = torch.randn(3, 12, 8), KeyValueCache()
    with torch.no_grad():
        parts = [layer(x[:, :prompt], cache=cache)]
        parts += [layer(token, cache=cache) for token in x[:, prompt:].split(1, dim=1)]
        torch.testing.assert_close(torch.cat(parts, dim=1), layer(x))
    assert cache.num_bytes == 2 * 3 * 12 * kv_heads * 2 * 4
