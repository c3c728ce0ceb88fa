"""What the page on several devices says in general, over other sizes and numbers."""

import pytest
import torch
from torch.nn import functional as F

from attention import MultiHeadAttention
from coding_attention.ranks import launch
from tests.book.run_cells import run_cells

PAGE = "08_past_one_device"
# (ranks, heads, width of a head, tokens, seed)
SIZES = [(1, 3, 2, 4, 0), (2, 4, 3, 1, 1), (3, 6, 5, 7, 2), (4, 8, 1, 9, 3)]


@pytest.mark.parametrize(("ranks", "h", "width", "t", "seed"), SIZES)
def test_rows_make_heads_and_columns_read_them(ranks, h, width, t, seed):
    torch.manual_seed(seed)
    d = h * width
    layer = MultiHeadAttention(d, d, t, 0.0, h).eval()
    x = torch.randn(1, t, d)
    page = run_cells(
        PAGE, "rows-of-a-rank", "heads-of-a-rank",
        layer=layer, x=x, ranks=ranks, h=h, d=d, t=t,
    )  # fmt: skip
    with torch.no_grad():
        contexts = [page["context"](rank) for rank in range(ranks)]
        columns = layer.out_proj.weight.chunk(ranks, dim=1)
        parts = [z @ c.T for z, c in zip(contexts, columns, strict=True)]
        torch.testing.assert_close(sum(parts) + layer.out_proj.bias, layer(x))


MERGE = run_cells(PAGE, "attend-and-merge")


@pytest.mark.parametrize("scale", [0.1, 1, 1000])
@pytest.mark.parametrize("seed", range(8))
def test_blocks_of_keys_merge_into_the_whole_however_large_the_scores(scale, seed):
    g = torch.Generator().manual_seed(seed)
    t = int(torch.randint(2, 30, (), generator=g))
    q, k, v = scale * torch.randn(3, 2, t, 4, generator=g, dtype=torch.float64)
    cuts = torch.randint(1, t, (3,), generator=g).unique().tolist()
    edges = list(zip([0, *cuts], [*cuts, t], strict=True))
    # In any order: blocks come around the ring in another one on each rank.
    order = torch.randperm(len(edges), generator=g).tolist()
    blocks = [MERGE["attend"](q, k[:, a:b], v[:, a:b]) for a, b in edges]
    result = blocks[order[0]]
    for i in order[1:]:
        result = MERGE["merge"](result, blocks[i])
    whole = F.scaled_dot_product_attention(q, k, v)
    assert result[0].isfinite().all()
    torch.testing.assert_close(result[0], whole)


OWNERS = run_cells(PAGE, "work-per-rank")


def test_zigzag_is_the_head_tail_balancer_of_pytorch():
    balancers = pytest.importorskip(
        "torch.distributed.tensor.experimental._context_parallel._load_balancer"
    )
    for n, t in ((2, 8), (3, 24), (4, 64)):
        order = balancers._HeadTailLoadBalancer(t, n, "cpu")._generate_indices()[0]
        owner = OWNERS["owners"](n, t)["zigzag"]
        assert owner[order.long()].tolist() == sorted(owner.tolist())


@pytest.mark.site  # starts processes
def test_a_rank_that_fails_is_heard():
    with pytest.raises(RuntimeError, match=r"1 of 2 ranks failed(.|\n)*no such luck"):
        launch("if rank == 1: raise ValueError('no such luck')")
