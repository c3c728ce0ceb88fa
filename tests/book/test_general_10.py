"""What the page on today's models says in general, over other sizes and numbers."""

import io
from contextlib import redirect_stdout

import pytest
import torch
from torch.nn import functional as F

from attention import FusedMultiHeadAttention
from attention.functional import attend, causal_mask, rotary_angles, rotate
from tests.book.pages import Page

CELLS = {c.metadata.name: c.source for c in Page("10_attention_in_models").code_cells}
SEEDS = pytest.mark.parametrize("seed", range(5))


@pytest.fixture(autouse=True)
def exact():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def functions_of(*cells):
    """Run the functions of some cells, and none of what shows them."""
    names = {"torch": torch, "F": F, "attend": attend}
    for cell in cells:
        with redirect_stdout(io.StringIO()):
            source = CELLS[cell].rpartition("    return")
            exec(source[0] + source[1] + source[2].partition("\n\n\n")[0], names)
    return names


def drawn(seed):
    """Draw sizes (b, h, t, d_head) and queries, keys and values of that shape."""
    g = torch.Generator().manual_seed(seed)
    b, h, t, half = torch.randint(1, 7, (4,), generator=g).tolist()
    shape = b, h, t, 2 * half
    return shape, torch.randn(3, *shape, generator=g)


@SEEDS
@pytest.mark.parametrize("further", [1, 1000])
def test_scores_of_turned_queries_and_keys_see_only_the_distance(seed, further):
    (_, _, t, d_head), (q, k, _) = drawn(seed)
    turn, place = functions_of("turn")["turn"], torch.arange(t)
    near = turn(q, place) @ turn(k, place).mT
    far = turn(q, place + further) @ turn(k, place + further).mT
    torch.testing.assert_close(near, far, atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(turn(q, place).norm(dim=-1), q.norm(dim=-1))
    angles = rotary_angles(place.double(), d_head)
    torch.testing.assert_close(turn(q, place), rotate(q, angles))


@SEEDS
@pytest.mark.parametrize("window", [1, 2, 4, 10])
def test_a_bounded_cache_gives_what_the_window_gives(seed, window):
    (_, _, t, _), (q, k, v) = drawn(seed)
    step, kept, results = functions_of("bounded-cache")["step"], None, []
    for i in range(t):
        z, kept = step(*(part[:, :, i : i + 1] for part in (q, k, v)), kept, window)
        results.append(z)
    assert kept[0].shape[2] == min(t, window)
    masked = attend(q, k, v, causal_mask(t, window=window))
    torch.testing.assert_close(torch.cat(results, dim=2), masked)


@SEEDS
def test_a_sink_shortens_each_context_vector_and_keeps_its_direction(seed):
    (_, h, t, d_head), (q, k, v) = drawn(seed)
    sink, hidden = 3 * torch.randn(h), causal_mask(t)
    z = functions_of("sink-logit")["attend_with_sink"](q, k, v, hidden, sink)
    without = attend(q, k, v, hidden)
    scores = (q @ k.mT / d_head**0.5).masked_fill(hidden, -torch.inf).exp().sum(-1)
    left = scores / (scores + sink.exp().view(-1, 1))  # of the weights
    assert (left < 1).all()
    torch.testing.assert_close(z, left.unsqueeze(-1) * without)
    none = functions_of("sink-logit")["attend_with_sink"](
        q, k, v, hidden, torch.full((h,), -torch.inf)
    )
    torch.testing.assert_close(none, without)


@SEEDS
def test_latent_attention_is_attention_with_keys_and_values_of_low_rank(seed):
    (b, h, t, d_head), (q, _, _) = drawn(seed)
    r, d_v, hidden = 1 + seed, 3, causal_mask(t)
    c, up_k, up_v = (
        torch.randn(b, t, r),
        torch.randn(h, d_head, r),
        torch.randn(h, d_v, r),
    )
    page = functions_of("latent", "decoupled-key")
    keys, values = c[:, None] @ up_k.mT, c[:, None] @ up_v.mT
    z = page["latent_attention"](q, c, up_k, up_v, hidden)
    torch.testing.assert_close(z, attend(q, keys, values, hidden))
    # With positions: a second query and one more key that all heads share.
    q_turned, k_turned = torch.randn(b, h, t, 4), torch.randn(b, t, 4)
    z = page["latent_with_positions"](q, q_turned, c, k_turned, up_k, up_v, hidden)
    keys = torch.cat([keys, k_turned[:, None].expand(-1, h, -1, -1)], dim=-1)
    queries = torch.cat([q, q_turned], dim=-1)
    torch.testing.assert_close(z, attend(queries, keys, values, hidden))


@pytest.mark.parametrize(("layers", "window"), [(1, 3), (2, 3), (3, 2), (3, 4)])
def test_each_layer_reaches_back_by_up_to_one_more_window(layers, window):
    torch.manual_seed(layers)
    stack = [
        FusedMultiHeadAttention(4, 4, 16, 0.0, 2, window=window).eval()
        for _ in range(layers)
    ]
    x = torch.randn(1, 16, 4, requires_grad=True)
    z = x
    for layer in stack:
        z = layer(z)
    (felt,) = torch.autograd.grad(z[0, -1].sum(), x)
    reach = 1 + layers * (window - 1)  # of the last token, itself included
    assert felt[0].any(dim=-1).tolist() == [False] * (16 - reach) + [True] * reach
