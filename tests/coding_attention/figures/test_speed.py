"""Figures of speed: what is kept, amounts, growth, cut weights, the roofline, rings."""

import pytest
from matplotlib.colors import to_hex

from coding_attention import figures
from coding_attention.figures import base, speed
from tests.coding_attention.figures.artists import (
    cells,
    legend,
    place,
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


def test_by_tokens_draws_each_line():
    lines = {"one": [1.0, 4.0, 16.0], "other": [2.0, 2.5, 3.0]}
    ax = figures.by_tokens([256, 1024, 4096], lines, "MiB")
    for drawn, (name, values) in zip(ax.lines, lines.items(), strict=True):
        assert drawn.get_label() == name
        assert list(drawn.get_xdata()) == [256, 1024, 4096]
        assert list(drawn.get_ydata()) == values
    assert len({line.get_marker() for line in ax.lines}) == 2
    assert legend(ax) == [("one", base.VERMILION), ("other", base.BLUE)]


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


PREFILL = {"projections": 139.6, "scores": 28.4, "mask": 0.13, "softmax": 0.62}
DECODE = {"12 key heads": 0.51, "4 key heads": 1.54, "1 key head": 6.1}


@pytest.mark.parametrize(("peak", "bandwidth"), [(150, 12), (60, 20), (2000, 30)])
def test_every_step_lies_on_the_roof(peak, bandwidth):
    ax = figures.roofline(peak, bandwidth, {"prefill": PREFILL, "token": DECODE})
    roof, *marks = ax.lines
    ridge = peak / bandwidth
    assert list(roof.get_xdata())[1] == pytest.approx(ridge)
    for line, steps in zip(marks, (PREFILL, DECODE), strict=True):
        assert list(line.get_xdata()) == list(steps.values())
        reached = [peak if x > ridge else x * bandwidth for x in steps.values()]
        assert list(line.get_ydata()) == pytest.approx(reached)
    start, corner, end = roof.get_ydata()
    goes = "rises" if start < corner else "falls"
    flat = "is flat" if corner == end else "goes on"
    assert f"which {goes} and {flat} from {ridge:.1f}" in ax.figure.words[1]


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_blocks_go_round_the_ring_and_the_future_is_skipped(ranks):
    ax = figures.ring(ranks)
    found = list(zip(ax.patches, ax.texts, strict=True))
    assert len(found) == ranks**2
    for index, (patch, text) in enumerate(found):
        rank, step = divmod(index, ranks)
        block = (rank - step) % ranks
        used = block <= rank
        assert text.get_text() == (f"block {block}" if used else "skipped")
        assert patch.get_fill() == used
        if used:
            assert to_hex(patch.get_facecolor()) == speed.RANKS[block].lower()
