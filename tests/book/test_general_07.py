"""What the page on time says in general, over other sizes and numbers."""

import io
import re
from contextlib import redirect_stdout

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
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


MACHINES = names_of("two-ridges", peak=90, bandwidth=25)["machines"]


@pytest.mark.parametrize("t", [1, 64, 1024, 10**5])
def test_scores_wait_for_memory_on_the_gpu_at_any_length(t):
    """Prefill in bfloat16: fewer FLOPs a byte than a head is wide."""
    page = names_of("flops-by-step", h=12, d_head=64, d=768)
    page |= names_of("bytes-by-step", h=12, d=768)
    fast, wide, size = MACHINES["GPU"]
    assert round(fast / wide) == 295
    for name in ("scores", "weighted sum", "mask", "softmax"):
        intensity = page["flops"](t)[name] / page["moved"](t, size)[name]
        assert intensity < 64 < fast / wide


@pytest.mark.parametrize("b", [2, 8, 1000])
@pytest.mark.parametrize("t", [1024, 4096])
def test_a_batch_lifts_the_projections_over_the_ridge_of_the_gpu(b, t):
    """One text of 1024 tokens stays below it; b texts share the parameters."""
    page = names_of("flops-by-step", h=12, d_head=64, d=768)
    page |= names_of("bytes-by-step", h=12, d=768)
    fast, wide, size = MACHINES["GPU"]

    def intensity(tokens):
        one = "projections"
        return page["flops"](tokens)[one] / page["moved"](tokens, size)[one]

    assert intensity(1024) < fast / wide < intensity(b * t)


@pytest.mark.parametrize("size", [2, 4])
def test_a_batch_shares_parameters_and_not_caches(size):
    """Counted once more: a step of b texts on the smallest layer there is."""
    page = names_of("decode-intensity", h=12, d_head=64, machines=MACHINES)
    page |= names_of("decode-with-a-batch", **page)
    for b in (1, 3, 100):
        layer, x = nn.Linear(5, 7, bias=False), torch.randn(b, 1, 5)
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            layer(x)
        intensity = counter.get_total_flops() / (size * layer.weight.numel())
        assert page["parameters_intensity"](b, size) == intensity


class Operations(TorchDispatchMode):
    """Notes the names of the operations that run."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.add(function.name())
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("fast_path", "gradients", "need_weights", "kernel"),
    [
        (True, False, False, "native_multi_head"),
        (False, False, False, "scaled_dot_product"),
        (True, True, False, "scaled_dot_product"),
        (False, False, True, "softmax"),
    ],
)
def test_which_way_pytorch_s_own_layer_takes(
    fast_path, gradients, need_weights, kernel
):
    layer = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x, mask = torch.randn(1, 5, 8), torch.ones(5, 5, dtype=torch.bool).triu(1)
    torch.backends.mha.set_fastpath_enabled(fast_path)
    try:
        with torch.set_grad_enabled(gradients), Operations() as operations:
            layer(x, x, x, attn_mask=mask, is_causal=not need_weights,
                  need_weights=need_weights)  # fmt: skip
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    ways = ("native_multi_head", "scaled_dot_product", "softmax")
    taken = [way for way in ways if any(way in name for name in operations.names)]
    assert taken == [kernel]


def test_faster_is_said_only_of_intervals_below_one():
    source = CELLS["steps-measured"].partition("\n\n\n")[0]
    page = {}
    exec(source, page)
    assert page["verdict"](0.90, 0.99) == "faster"
    assert page["verdict"](0.90, 0.9951) == "no gain seen"  # printed as 1.00
    assert page["verdict"](0.99, 1.2) == page["verdict"](1.0, 1.2) == "no gain seen"
    assert page["verdict"](1.01, 1.2) == "slower"


def test_pytorch_says_which_kernels_take_grouped_heads():
    told = " ".join(
        re.sub(r"[`_]", " ", F.scaled_dot_product_attention.__doc__).split()
    )
    assert "works only for Flash attention and math kernel on CUDA tensor" in told


@pytest.mark.parametrize("key_heads", [1, 2, 3, 4, 6, 12])
@pytest.mark.parametrize("t", [1, 100, 10**6])
def test_one_more_token_does_few_flops_a_byte_at_any_length(t, key_heads):
    page = names_of("decode-intensity", h=12, d_head=64, machines=MACHINES)
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
