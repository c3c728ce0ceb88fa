"""Every comment that tells a shape tells that of the tensor on its line."""

import re

import pytest
import torch

import attention
from tests.book.claims import prose
from tests.book.pages import pages
from tests.book.running import ran
from tests.shape_comments import Reader, run


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_shape_comments_are_true(page):
    wrong = list(ran(page.name)[1].wrong())
    assert not wrong, "\n".join(wrong)


def test_shapes_and_results_on_one_sheet():
    """The sheet's program runs, and its last line is the package's last class."""
    t, heads, d_head = 7, 3, 11
    wide = heads * d_head
    sizes = {"b": 2, "t": t, "h": heads, "d_in": 5, "d_out": wide, "d_head": d_head}
    layer = attention.MultiHeadAttention(5, wide, t, 0.0, heads)
    names = {"torch": torch, "x": torch.randn(2, t, 5), "dropout": layer.dropout}
    parts = ("W_query", "W_key", "W_value", "out_proj")
    names |= sizes | {name: getattr(layer, name) for name in parts}
    fence = re.search(r"```\{code-block\} python\n(.*?)```", prose("summary"), re.S)
    reader = Reader("summary", sizes)
    run(fence[1], "sheet", names, reader)
    wrong = list(reader.wrong())
    assert not wrong, "\n".join(wrong)
    torch.testing.assert_close(names["result"], layer(names["x"]))
