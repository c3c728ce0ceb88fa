"""Figures of the averaging route: products, running means, spread."""

import pytest
import torch
from matplotlib.colors import to_hex

from coding_attention import figures
from coding_attention.figures import base
from tests.coding_attention.figures.artists import (
    cells,
    frames,
    random,
    rectangles,
)

NAMES = ["left one", "right one", "result"]
SHAPES = [(1, 1, 1), (2, 3, 2), (3, 3, 2), (2, 3, 1), (5, 2, 2)]
shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)


def blocks(ax, *sizes):
    """The cells of each block by row and column, from its top left corner."""
    found, given = [], cells(ax)
    for rows, columns in sizes:
        block, given = given[: rows * columns], given[rows * columns :]
        left, top = min(c.x for c in block), min(c.y for c in block)
        found.append(
            {
                (round((c.y - top) / c.height), round((c.x - left) / c.width)): c
                for c in block
            }
        )
        assert set(found[-1]) == {(i, j) for i in range(rows) for j in range(columns)}
    assert not given
    return found


@shapes
def test_product_holds_all_numbers(shape):
    n, m, k = shape
    left, right = random(n, m, seed=n), random(m, k, seed=k)
    ax = figures.product(left, right, NAMES)
    found = blocks(ax, (n, m), (m, k), (n, k))
    tensors = left.double(), right.double(), left.double() @ right.double()
    for block, tensor in zip(found, tensors, strict=True):
        for at, cell in block.items():
            decimals = 2 if m + 2 * k > 6 else 4  # as many as a phone shows
            assert cell.text == f"{tensor[at]:.{decimals}f}"


@pytest.mark.parametrize("row", [0, 1, 2])
def test_product_frames_a_row_of_the_result_and_where_it_comes_from(row):
    ax = figures.product(random(3, 3), random(3, 2), NAMES, row=row)
    first, _, third = blocks(ax, (3, 3), (3, 2), (3, 2))
    for frame, block, columns in zip(frames(ax), (first, third), (3, 2), strict=True):
        cell = block[row, 0]
        expected = (cell.x, cell.y, columns * cell.width, cell.height)
        assert frame == pytest.approx(expected)
    edges = {to_hex(p.get_edgecolor()) for p in rectangles(ax) if not p.get_fill()}
    assert edges == {base.VERMILION}
    assert frames(figures.product(random(3, 3), random(3, 2), NAMES)) == []


@pytest.mark.parametrize("t", [1, 4, 8])
def test_running_mean_draws_both_sequences(t):
    x, means = random(t), random(t, seed=1)
    ax = figures.running_mean(x, means, "a number")
    lines = {line.get_label(): line for line in ax.lines}
    dots, line = lines["its own"], lines["mean of it and its past"]
    for drawn, values in ((dots, x), (line, means)):
        assert list(drawn.get_xdata()) == list(range(1, t + 1))
        assert list(drawn.get_ydata()) == values.tolist()
    assert (dots.get_linestyle(), line.get_linestyle()) == ("None", "-")
    assert dots.get_marker() != line.get_marker()  # apart without their colors


def test_spread_draws_mean_and_deviation_of_each_row():
    groups = {"one": random(5, 8), "other": random(3, 4, seed=1)}
    ax = figures.spread(groups)
    for line, (name, vectors) in zip(ax.lines, groups.items(), strict=True):
        assert line.get_label() == name
        numbers = [torch.tensor(row).double() for row in vectors.tolist()]
        means = [float(row.sum() / len(row)) for row in numbers]
        # The sample's deviation, with n - 1, which Tensor.std gives.
        variances = [
            float(((row - row.mean()) ** 2).sum()) / (len(row) - 1) for row in numbers
        ]
        assert list(line.get_xdata()) == pytest.approx(means, abs=6e-5)
        assert list(line.get_ydata()) == pytest.approx(
            [variance**0.5 for variance in variances], abs=6e-5
        )
