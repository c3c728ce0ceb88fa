"""What the page on multi-head attention says, at other sizes and over its results."""

import re

import pytest
import torch

from attention import MultiHeadAttention, MultiHeadAttentionWrapper
from coding_attention.models import stored
from coding_attention.published_values import text_of
from tests.book.pages import Page
from tests.book.run_cells import run_cells

SIZES = [(1, 4, 2, 1), (2, 3, 5, 4), (3, 8, 4, 7), (8, 16, 4, 12)]  # h, d_in, d_head, t


@pytest.mark.parametrize(("h", "d_in", "d_head", "t"), SIZES)
@torch.no_grad()
def test_both_classes_are_the_same_function(h, d_in, d_head, t):
    move = run_cells("05_multi_head_attention", "batch", "move-weights")["move"]
    torch.manual_seed(0)
    wrapper = MultiHeadAttentionWrapper(d_in, d_head, t, 0.0, h).double()
    layer = MultiHeadAttention(d_in, h * d_head, t, 0.0, h).double()
    move(wrapper, layer)
    x = torch.randn(3, t, d_in).double()
    torch.testing.assert_close(wrapper(x), layer(x))


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
