"""Figures of trained heads: patterns, curves and the copying circuit."""

import pytest
from matplotlib.colors import to_hex

from coding_attention.figures import base, heads
from tests.coding_attention.figures.artists import (
    arrows,
    cells,
    grid,
    legend,
    luminance,
    random,
    random_weights,
)

WORDS = [f"w{i}" for i in range(9)]


@pytest.mark.parametrize("size", [(1, 1), (3, 5), (6, 6)], ids=str)
def test_pattern_darkens_with_the_weight(size):
    weights = random_weights(*size, seed=sum(size))
    found = grid(heads.pattern(weights, WORDS[: size[0]], WORDS[: size[1]]))
    assert len(found) == weights.numel()
    pairs = sorted((float(weights[at]), luminance(c.color)) for at, c in found.items())
    bright = [luminance for _, luminance in pairs]
    assert bright == sorted(bright, reverse=True)
    for at, cell in found.items():
        assert cell.color == to_hex(base.WEIGHTS(round(float(weights[at]), 3)))


def test_curves_draw_every_series_in_the_color_of_its_group():
    groups = {"a": random(2, 4).abs().tolist(), "b": random(1, 4).abs().tolist()}
    ax = heads.curves([0, 5, 10, 20], groups, "step", "loss", {"chance": 0.7})
    *found, level = ax.lines
    expected = [series for group in groups.values() for series in group]
    for line, series in zip(found, expected, strict=True):
        assert list(line.get_xdata()) == [0, 5, 10, 20]
        assert list(line.get_ydata()) == series
    colors = [to_hex(line.get_color()) for line in found]
    assert colors == [base.BLUE, base.BLUE, base.VERMILION]
    assert legend(ax) == [("a", base.BLUE), ("b", base.VERMILION)]
    assert set(level.get_ydata()) == {0.7}
    (name,) = [text for text in ax.texts if text.get_text() == "chance"]
    assert name.xy == (20, 0.7)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step", "loss")


def test_circuit_looks_one_back_then_for_the_same():
    ax = heads.circuit(["A", "B", "C"])
    found = cells(ax)
    assert [cell.text for cell in found] == [
        "A", "B", "C", "A", "A", "B\nafter A", "C\nafter B", "A", "next: B"
    ]  # fmt: skip
    middles = [cell.x + cell.width / 2 for cell in found]
    joined = [(start[0], end[0]) for start, end, _ in arrows(ax)]
    expected = [(0, 5), (1, 6), (5, 8)]
    assert joined == [pytest.approx((middles[i], middles[j])) for i, j in expected]
