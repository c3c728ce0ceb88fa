"""General claims of the pages on multi-head attention, over random cases."""

import contextlib
import io
import re

import pytest
import torch

from attention import MultiHeadAttention, MultiHeadAttentionWrapper
from coding_attention.models import stored
from coding_attention.published_values import text_of
from tests.book.pages import Page
from tests.book.run_cells import run_cells

SIZES = [(1, 4, 2, 1), (2, 3, 5, 4), (3, 8, 4, 7), (8, 16, 4, 12)]  # h, d_in, d_head, t
sizes = pytest.mark.parametrize(("h", "d_in", "d_head", "t"), SIZES)


@sizes
@torch.no_grad()
def test_both_classes_are_the_same_function(h, d_in, d_head, t):
    with contextlib.redirect_stdout(io.StringIO()):
        move = run_cells("05_multi_head_attention", "batch", "move-weights")["move"]
    torch.manual_seed(0)
    wrapper = MultiHeadAttentionWrapper(d_in, d_head, t, 0.0, h).double()
    layer = MultiHeadAttention(d_in, h * d_head, t, 0.0, h).double()
    move(wrapper, layer)
    x = torch.randn(3, t, d_in).double()
    torch.testing.assert_close(wrapper(x), layer(x))


@sizes
@torch.no_grad()
def test_before_out_proj_each_number_comes_from_one_head(h, d_in, d_head, t):
    torch.manual_seed(0)
    layer = MultiHeadAttention(d_in, h * d_head, t, 0.0, h).double()
    x = torch.randn(2, t, d_in).double()
    mixed = layer(x)
    drawn = layer.out_proj.weight.clone()
    torch.nn.init.eye_(layer.out_proj.weight)
    apart = layer(x)
    layer.W_value.weight[:d_head] = 0  # silences the first head
    touched = (layer(x) != apart).any(dim=0).any(dim=0)
    assert touched.tolist() == [i < d_head for i in range(h * d_head)]
    layer.out_proj.weight.copy_(drawn)
    assert (layer(x) != mixed).any(dim=0).any(dim=0).all()


def test_the_page_trains_what_the_stored_seeds_were_trained_by():
    shown = {c.metadata.name: c for c in Page("05_multi_head_attention").code_cells}
    lines = text_of(shown["one-head-or-two"]).splitlines()
    runs = stored.load_results("halves")["runs"]
    errors = {run["kind"]: run["error"] for run in runs if run["seed"] == 0}
    for kind, line in zip(errors, lines, strict=True):
        assert line.startswith(kind)
        # Both draw a thousand examples, but not the same.
        printed = float(re.search(r"error: (\S+)", line)[1])
        assert printed == pytest.approx(errors[kind], abs=0.03)


def test_memory_decides_which_class_is_faster_on_a_long_text():
    measured = stored.load_results("wrapper_or_split")
    *short, long = measured["fresh"]
    for row in (*short, *measured["kept"]):
        assert row["forward"]["ratio_interval"][0] > 1
    assert long["forward"]["ratio_interval"][1] < 1


def attend(x, h, straight_split, straight_join):
    """Causal attention of x with itself, in h heads that are split and joined so."""
    b, t, d = x.shape
    heads = x.view(b, h, t, d // h)
    if not straight_split:
        heads = x.view(b, t, h, d // h).transpose(1, 2)
    hidden = torch.ones(t, t).triu(1).bool()
    scores = (heads @ heads.transpose(2, 3)).masked_fill(hidden, -torch.inf)
    context = torch.softmax(scores, dim=-1) @ heads
    return (context if straight_join else context.transpose(1, 2)).reshape(b, t, d)


@pytest.mark.parametrize(
    ("h", "d_head", "t"), [(1, 4, 3), (2, 3, 1), (2, 2, 2), (2, 3, 6), (3, 4, 5)]
)
def test_one_straight_view_leaks_and_two_do_not(h, d_head, t):
    torch.manual_seed(0)
    x = torch.randn(1, t, h * d_head).double()
    right, can_mix = attend(x, h, False, False), min(h, t) > 1
    for straight_split, straight_join in ((0, 0), (0, 1), (1, 0), (1, 1)):
        output = attend(x, h, straight_split, straight_join)
        leaks = False
        for i in range(1, t):
            changed = x.clone()
            changed[:, i] += 1
            again = attend(changed, h, straight_split, straight_join)
            leaks |= not torch.allclose(again[:, :i], output[:, :i])
        assert leaks == (can_mix and straight_split != straight_join)
        wrong = can_mix and (straight_split or straight_join)
        assert torch.allclose(output, right) != wrong


def test_the_page_attends_as_the_test_does():
    page = run_cells("05_questions", "setup", "four-combinations")["attend"]
    x = torch.randn(2, 6, 4)
    for split, join in ((0, 0), (0, 1), (1, 0), (1, 1)):
        torch.testing.assert_close(page(x, split, join), attend(x, 2, split, join))


@pytest.mark.parametrize("t", [1, 3])
@pytest.mark.parametrize("h", [1, 2])
@pytest.mark.parametrize("d_head", [1, 5])
def test_contiguous_is_needed_for_several_tokens_and_several_heads_wider_than_one(
    t, h, d_head
):
    context = (torch.eye(t) @ torch.randn(2, h, t, d_head)).transpose(1, 2)
    if min(t, h, d_head) > 1:
        with pytest.raises(RuntimeError):
            context.view(2, t, h * d_head)
    else:
        context.view(2, t, h * d_head)


def test_a_list_hides_its_heads_from_the_optimizer_and_from_a_move():
    plain = run_cells("05_questions", "setup", "plain-list")["ListOfHeads"]()
    for layer, device in (
        (plain, "cpu"),
        (MultiHeadAttentionWrapper(3, 2, 6, 0.0, 2), "meta"),
    ):
        moved = {head.W_query.weight.device.type for head in layer.to("meta").heads}
        assert moved == {device}
    with pytest.raises(ValueError, match="empty parameter list"):
        torch.optim.Adam(plain.parameters())
