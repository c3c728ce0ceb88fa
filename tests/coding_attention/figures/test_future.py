"""The figure of what a model wrote."""

import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from coding_attention import figures
from coding_attention.figures.base import VERMILION
from tests.coding_attention.figures.artists import written

WORDS = [("your", True), ("journey", False), ("starts", True)] * 5


def test_words_are_written_in_their_order_below_the_name():
    ax = figures.writing({"masked": [WORDS, WORDS[:2]]})
    assert written(ax) == ["masked", *(word for word, _ in WORDS + WORDS[:2])]


def test_only_what_may_not_follow_is_framed_and_crossed_out():
    ax = figures.writing({"one": [WORDS], "other": [[("a", False), ("b", True)]]})
    boxes = [p for p in ax.patches if isinstance(p, Rectangle)]
    framed = [to_hex(p.get_edgecolor()) == VERMILION for p in boxes]
    allowed = [allowed for _, allowed in WORDS] + [False, True]
    assert framed == [not fine for fine in allowed]
    # A line lies within the box of each word that it crosses out, and of no other.
    struck = [p for p, wrong in zip(boxes, framed, strict=True) if wrong]
    assert len(ax.lines) == len(struck)
    for line, box in zip(ax.lines, struck, strict=True):
        start, end = line.get_xdata()
        assert box.get_x() < start < end < box.get_x() + box.get_width()
        assert box.get_y() < line.get_ydata()[0] < box.get_y() + box.get_height()


@pytest.mark.parametrize("given", [{}, {"one": []}])
def test_empty_input_is_refused(given):
    with pytest.raises(ValueError, match="must have the shape"):
        figures.writing(given)
