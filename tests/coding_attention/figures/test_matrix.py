"""The number matrix: right number, right cell, right color."""

import pytest
import torch
from matplotlib.colors import to_hex

from coding_attention import figures
from coding_attention.figures import base
from tests.coding_attention.figures.artists import (
    frames,
    grid,
    luminance,
    random,
    random_weights,
    ticks,
)

CAUSAL = random_weights(3, 3).tril()
INF, NAN = float("inf"), float("nan")
SIZES = [(1, 1), (2, 3), (6, 6), (5, 1), (8, 8)]
sizes = pytest.mark.parametrize("size", SIZES, ids=str)


@pytest.mark.parametrize("value", [*random(5, seed=3).tolist(), INF, -INF, NAN])
def test_number_is_written_as_pytorch_prints_it(value):
    printed = str(torch.tensor([value, 0.5]))[len("tensor([") :].split(",")[0].strip()
    assert figures.number(torch.tensor(value)) == printed


@sizes
@pytest.mark.parametrize("decimals", [0, 2, 4])
def test_every_cell_holds_its_number(size, decimals):
    values = random(*size, seed=sum(size), scale=3)
    found = {
        at: cell.text
        for at, cell in grid(figures.matrix(values, decimals=decimals)).items()
    }
    assert found == {
        (i, j): f"{values[i, j].item():.{decimals}f}"
        for i in range(size[0])
        for j in range(size[1])
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_weights_have_one_scale_in_all_matrices(seed):
    """From 0 to 1, whatever the largest weight is: no matrix stretches it."""
    weights = random_weights(5, 5, seed=seed)
    drawn = [grid(figures.matrix(rows)) for rows in (weights, weights.mean(0))]
    drawn.append(grid(figures.matrix(0.3 * weights, kind="weights")))
    expected = (weights, weights.mean(0, keepdim=True), 0.3 * weights)
    for found, values in zip(drawn, expected, strict=True):
        for at, cell in found.items():
            share = round(float(values[at]), 3)
            assert cell.color == to_hex(base.WEIGHTS(share))
    bright = [luminance(to_hex(base.WEIGHTS(i / 100))) for i in range(101)]
    assert bright == sorted(bright, reverse=True)
    assert len(set(bright)) > 90


@pytest.mark.parametrize(
    "values",
    [[[0.5, 0.6]], [[1.5, -0.5]], [[1.0], [1.0]], [[0.0, 1.0], [1.0, 1.0]]],
    ids=str,
)
def test_other_numbers_take_the_other_scale(values):
    """Rows with another sum, a negative number, or one number alone are no weights."""
    found = grid(figures.matrix(torch.tensor(values)))
    largest = max(abs(v) for row in values for v in row)
    for (i, j), cell in found.items():
        share = round(values[i][j] / largest, 3)
        assert cell.color == to_hex(base.SIGNED((share + 1) / 2))


@pytest.mark.parametrize("seed", range(3))
def test_signed_colors_keep_zero_in_the_middle(seed):
    values = random(4, 4, seed=seed)
    values[0, 0] = 0
    found = grid(figures.matrix(values, kind="numbers"))
    largest = values.abs().max()
    for at, cell in found.items():
        share = round(float(values[at] / largest), 3)
        assert cell.color == to_hex(base.SIGNED((share + 1) / 2))
    middle = torch.tensor([int(found[0, 0].color[i : i + 2], 16) for i in (1, 3, 5)])
    light = torch.tensor([int(base.LIGHT[i : i + 2], 16) for i in (1, 3, 5)])
    assert (middle - light).abs().max() <= 1  # the map has 256 steps


def test_infinite_and_missing_numbers_are_written_on_a_neutral_cell():
    values = torch.tensor([[-INF, INF, NAN, 0.0], [1.0, 2.0, 3.0, 4.0]])
    found = grid(figures.matrix(values))
    assert [found[0, j].text for j in range(4)] == ["-inf", "inf", "nan", "0.0000"]
    assert {found[0, j].color for j in range(4)} == {base.LIGHT}
    # The largest finite number sets the scale.
    assert found[1, 3].color == to_hex(base.SIGNED(1.0))


@pytest.mark.parametrize(
    "draw",
    [
        lambda: figures.matrix(random(3, 4)),
        lambda: figures.pattern(random_weights(3, 3), list("abc"), list("abc")),
        lambda: figures.bars({"a": random(3)}, list("abc")),
        lambda: figures.dropped(CAUSAL, CAUSAL > 0, list("abc"), 0.5),
    ],
)
def test_the_first_row_is_on_top(draw):
    bottom, top = draw().get_ylim()
    assert top < bottom


@sizes
def test_blank_cells_are_empty(size):
    values, blank = random(*size), random(*size, seed=1) > 0
    found = grid(figures.matrix(values, blank=blank))
    assert set(found) == {tuple(at) for at in (~blank).nonzero().tolist()}
    assert all(found[at].text == f"{values[at].item():.4f}" for at in found)


def test_outline_frames_the_named_cells():
    ax = figures.matrix(random(3, 4), outline=[(0, 2), (2, 1)])
    assert frames(ax) == [(2, 0, 1, 1), (1, 2, 1, 1)]
    edges = {to_hex(p.get_edgecolor()) for p in ax.patches if not p.get_fill()}
    assert edges == {base.VERMILION}
    assert frames(figures.matrix(random(3, 4))) == []


def test_labels_stand_at_their_rows_and_columns():
    rows, columns = ["a", "b"], ["x", "y", "z"]
    ax = figures.matrix(random(2, 3), rows, columns, "a title")
    assert ticks(ax.yaxis) == [(0.5, "a"), (1.5, "b")]
    assert ticks(ax.xaxis) == [(0.5, "x"), (1.5, "y"), (2.5, "z")]
    assert ax.get_title() == "a title"
    bare = figures.matrix(random(2, 3))
    assert (ticks(bare.xaxis), ticks(bare.yaxis), bare.get_title()) == ([], [], "")
