"""The figure of what a model wrote."""

from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle

from attention.chapter import figures
from attention.chapter.figures.base import EDGE, VERMILION
from tests.chapter.figures.test_artists import texts

WORDS = [("your", True), ("journey", False), ("starts", True)] * 5


def drawn(ax):
    return [t.get_text() for t in texts(ax)]


def test_words_are_written_in_their_order_below_the_name():
    ax = figures.writing({"masked": WORDS})
    assert drawn(ax) == ["masked", *(word for word, _ in WORDS)]


def test_only_what_may_not_follow_is_framed_and_crossed_out():
    ax = figures.writing({"one": WORDS, "other": [("a", False), ("b", True)]})
    boxes = [p for p in ax.patches if isinstance(p, Rectangle)]
    framed = [p.get_edgecolor() for p in boxes]
    wanted = [allowed for _, allowed in WORDS] + [False, True]
    colors = {True: EDGE, False: VERMILION}
    assert framed == [to_rgba(colors[allowed]) for allowed in wanted]
    assert len(ax.lines) == wanted.count(False)


def test_lines_break_before_they_leave_the_figure():
    ax = figures.writing({"long": [("journey", True)] * 40})
    rights = [p.get_x() + p.get_width() for p in ax.patches]
    assert max(rights) <= 3.6
    assert len({round(p.get_y(), 3) for p in ax.patches}) > 5
