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

from attention import MultiHeadAttention
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
