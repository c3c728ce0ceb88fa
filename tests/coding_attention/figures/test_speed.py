"""Figures of speed: what is kept, amounts, growth with tokens, cut weights."""

import pytest
from matplotlib.colors import to_hex

from coding_attention import figures
from coding_attention.figures import base, speed
from tests.coding_attention.figures.artists import (
    cells,
    legend,
    place,
    ticks,
    written,
)

TOKENS = [[4], [2, 8], [256, 1024, 4096]]


@pytest.mark.parametrize("tokens", TOKENS, ids=str)
@pytest.mark.parametrize("d_head", [1, 64])
def test_kept_draws_squares_and_strips_to_one_scale(tokens, d_head):
    ax = figures.kept(tokens, d_head)
    found = cells(ax)
    squares, strips = found[::2], found[1::2]
    assert [(c.width, c.height) for c in squares] == [(t, t) for t in tokens]
    assert [(c.width, c.height) for c in strips] == [(d_head, t) for t in tokens]
    assert {c.color for c in squares} == {base.VERMILION}
    assert {c.color for c in strips} == {base.BLUE}
    assert {c.y for c in found} == {0}  # all stand on one line
    # One scale: a number is as wide as it is high.
    width, height = ax.figure.get_size_inches()
    across = width / (ax.get_xlim()[1] - ax.get_xlim()[0])
    assert across == pytest.approx(
        height * ax.get_position().height / (ax.get_ylim()[1] - ax.get_ylim()[0])
    )


def test_kept_names_colors_and_sizes():
    ax = figures.kept([2, 8], 3)
    assert legend(ax) == [
        ("t × t scores", base.VERMILION), ("t × d_head context", base.BLUE)
    ]  # fmt: skip
    # The page draws both: the listing keeps the scores, the fused form the context.
    lines = figures.by_tokens([2, 4], {"listing": [1, 2], "fused": [1, 1]}, "MiB")
    assert [color for _, color in legend(lines)] == [color for _, color in legend(ax)]
    assert written(ax) == ["t = 2", "t = 8"]
    lefts = [cell.x for cell in cells(ax)[::2]]
    assert [place(ax, f"t = {t}")[0] for t in (2, 8)] == lefts


def test_amounts_draws_and_writes_each_value():
    values = {"first": 0.25, "second one": 3.0, "none": 0.0}
    ax = figures.amounts(values, "title")
    found = cells(ax)
    assert [(c.x, c.width) for c in found] == [(0, v) for v in values.values()]
    assert written(ax) == [text for n, v in values.items() for text in (n, f"{v:.2f}")]
    assert ax.get_title("left") == "title"


def test_amounts_puts_each_name_above_its_bar():
    ax = figures.amounts({"first": 1.0, "second": 2.0}, "title")
    for name, cell in zip(("first", "second"), cells(ax), strict=True):
        # The vertical axis points down.
        assert cell.y - 0.36 < place(ax, name)[1] < cell.y
    assert ax.get_ylim() == (2, 0)
    assert ax.get_xlim()[0] == 0


def test_by_tokens_draws_each_line():
    lines = {"one": [1.0, 4.0, 16.0], "other": [2.0, 2.5, 3.0]}
    ax = figures.by_tokens([256, 1024, 4096], lines, "MiB")
    for drawn, (name, values) in zip(ax.lines, lines.items(), strict=True):
        assert drawn.get_label() == name
        assert list(drawn.get_xdata()) == [256, 1024, 4096]
        assert list(drawn.get_ydata()) == values
    assert len({line.get_marker() for line in ax.lines}) == 2
    assert legend(ax) == [("one", base.VERMILION), ("other", base.BLUE)]


def test_by_tokens_names_its_axes():
    ax = figures.by_tokens([2, 8], {"one": [1.0, 3.0]}, "MiB")
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ticks(ax.xaxis) == [(2, "2"), (8, "8")]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("tokens t", "MiB")


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_shards_cuts_rows_and_columns(ranks):
    ax = figures.shards({"W_query": "rows", "out_proj": "columns"}, ranks)
    found = cells(ax)
    rows, columns = found[:ranks], found[ranks:]
    side = 0.78
    for rank, cell in enumerate(rows):
        assert (cell.x, cell.width) == pytest.approx((0, side))
        assert (cell.y, cell.height) == pytest.approx(
            (rank * side / ranks, side / ranks)
        )
    left = columns[0].x
    assert left > side
    for rank, cell in enumerate(columns):
        assert (cell.y, cell.height) == pytest.approx((0, side))
        assert (cell.x - left, cell.width) == pytest.approx(
            (rank * side / ranks, side / ranks)
        )
    for part in (rows, columns):
        assert [cell.text for cell in part] == [str(rank) for rank in range(ranks)]
        expected = [to_hex(color) for color in speed.RANKS[:ranks]]
        assert [cell.color for cell in part] == expected
    assert place(ax, "W_query")[0] == pytest.approx(side / 2)
    assert place(ax, "out_proj")[0] == pytest.approx(left + side / 2)
