"""The drawings of one idea each: their cells, lines and words come from the tensors."""

import pytest
import torch
from matplotlib.colors import to_hex

from coding_attention import example, figures
from coding_attention.figures import base, tiles
from tests.coding_attention.figures.artists import (
    arrows,
    cells,
    frames,
    place,
    random,
    written,
)

X = example.inputs()
TOKENS = list(example.TOKENS)
WEIGHTS = (X @ X.T).softmax(dim=-1)


def words(ax):
    return ax.figure.words


def numbers_of(ax, color):
    """The texts of all cells of one color, in the order in which they were drawn."""
    return [cell.text for cell in cells(ax) if cell.color == to_hex(color)]


def two(tensor):
    return [f"{value:.2f}" for value in tensor.flatten().tolist()]


def test_one_path_holds_each_number_of_the_way():
    ax = figures.one_path(X, TOKENS, 1)
    assert numbers_of(ax, base.TOKEN) == two(X)
    assert numbers_of(ax, base.VALUE) == two(WEIGHTS[1] @ X)
    drawn = [cell.text for cell in cells(ax)]
    for row in range(6):
        score, weight = float(X[row] @ X[1]), float(WEIGHTS[1, row])
        assert f"{score:.2f}" in drawn
        colored = to_hex(base.WEIGHTS(round(weight, 3)))
        assert f"{weight:.2f}" in numbers_of(ax, colored)


def test_one_path_draws_lines_as_thick_as_the_weights():
    ax = figures.one_path(X, TOKENS, 3)
    widths = torch.tensor([line.get_linewidth() for line in ax.lines])
    torch.testing.assert_close(widths, 12 * WEIGHTS[3], atol=0.006, rtol=0)
    ends = {(line.get_xdata()[1], line.get_ydata()[1]) for line in ax.lines}
    assert len(ends) == 1  # all of them meet at z


def test_one_path_frames_the_query_and_tells_of_it():
    ax = figures.one_path(X, TOKENS, 4)
    ((_, y, _, height),) = frames(ax)
    assert place(ax, "one")[1] == pytest.approx(y + height / 2)
    caption, alt = words(ax)
    assert "context vector z of one" in caption
    best = TOKENS[int(WEIGHTS[4].argmax())]
    assert f"the thickest comes from {best}." in alt
    assert f"({', '.join(two(WEIGHTS[4] @ X))})" in alt


def test_stacked_projection_cuts_the_queries_that_it_multiplies():
    heads = [random(3, 2, seed=s) for s in (1, 2)]
    ax = figures.stacked_projection(X, heads)
    for head, W in enumerate(heads):
        # Drawn alone, stacked, in the product, and cut from it: twice each.
        expected = two(W) * 2 + two(X @ W) * 2
        assert sorted(numbers_of(ax, base.HEADS[head])) == sorted(expected)
    assert written(ax).count("(3, 2)") == 2
    assert "(3, 4)" in written(ax)
    assert written(ax).count("(6, 2)") == 2
    assert "(6, 4)" in written(ax)
    assert "2 heads, (3, 2) each" in words(ax)[0]
    assert words(ax)[0].endswith("computes alone, up to rounding.")


@pytest.mark.parametrize("block", [1, 2, 3, 4, 6])
def test_running_softmax_ends_at_the_sum_of_the_whole_row(block):
    row = random(6, seed=block, scale=3.0).double()
    *_, (_, _, largest, total) = tiles.running(row, block)
    assert largest == float(row.max())
    assert total == pytest.approx(float((row - row.max()).exp().sum()))


def test_a_grown_maximum_rescales_the_sum():
    (_, first, _, _), (_, second, most, total) = tiles.running(
        torch.tensor([1.0, 0.0, 3.0, 0.0]), 2
    )
    e = torch.e
    assert (first, second, most) == (0.0, pytest.approx(e**-2), 3.0)
    assert total == pytest.approx((1 + e**-1) * e**-2 + 1 + e**-3)


def test_tiles_show_the_row_that_they_follow():
    scores = random(6, 6, seed=3)
    ax = figures.online_softmax_tiles(scores, 2, query=4)
    texts = [cell.text for cell in cells(ax) if cell.text]
    for part, factor, largest, total in tiles.running(scores[4], 2):
        expected = [*two(part), f"{factor:.2f}", f"{largest:.2f}", f"{total:.2f}"]
        assert texts[: len(expected)] == expected
        texts = texts[len(expected) :]
    assert not texts
    assert f"tiles the sum is {total:.4f}" in words(ax)[0]
    squares = [cell for cell in cells(ax) if cell.text is None]
    assert len(squares) == 36
    (_, y, _, height) = frames(ax)[0]
    row = [cell for cell in squares if y <= cell.y + cell.height / 2 <= y + height]
    assert [cell.color for cell in row] == base.shade(scores, "numbers")[4]


def test_flow_holds_the_matrices():
    W = [random(3, 2, seed=s) for s in (1, 2, 3)]
    q, k, v = (X @ each for each in W)
    weights = (q @ k.T / 2**0.5).softmax(dim=-1)
    ax = figures.flow(X, *W)
    drawn = [cell.color for cell in cells(ax)]
    for matrix in (X, q, k, v, q @ k.T / 2**0.5, weights, weights @ v):
        colors = [color for row in base.shade(matrix.double()) for color in row]
        runs = [drawn[i : i + len(colors)] for i in range(len(drawn))]
        assert colors in runs
    assert [written(ax).count(f"(6, {n})") for n in (2, 3, 6)] == [4, 1, 2]
    i, j = divmod(int(weights.argmax()), 6)
    assert f"up to {weights.max():.2f}, in row {i} and column {j}" in words(ax)[1]


POINTS = torch.tensor([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])
MOVED = torch.tensor([[0.8, 0.2], [0.7, 0.3], [0.2, 0.8]])


def test_plane_leads_each_word_to_its_context_vector():
    ax = figures.plane(POINTS, ["river", "bank", "loan"], ("nature", "money"), MOVED)
    found = arrows(ax)
    assert [start for start, _, _ in found] == [tuple(p) for p in POINTS.tolist()]
    assert [end for _, end, _ in found] == [tuple(p) for p in MOVED.tolist()]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("nature", "money")
    assert "loan from (0.10, 0.90) to (0.20, 0.80)" in words(ax)[1]
    dots = [(*line.get_xdata(), *line.get_ydata()) for line in ax.lines]
    assert [dot for dot in dots if len(dot) == 2] == [tuple(p) for p in POINTS.tolist()]


def test_runs_show_every_seed_and_name_those_that_fail():
    series = {0: [3.0, 1.0, 0.2], 1: [3.0, 2.5, 2.3], 2: [3.1, 1.2, 0.4]}
    ax = figures.runs(
        [0, 5, 10], series, "step", "loss", highlight=[0], failed=[1],
        level=("guessing", 3.2),
    )  # fmt: skip
    drawn = {line.get_label(): line for line in ax.lines}
    for seed, values in series.items():
        assert drawn[f"seed {seed}"].get_ydata().tolist() == values
    colors = [drawn[f"seed {seed}"].get_color() for seed in series]
    assert colors == [base.BLUE, base.VERMILION, base.GRAY]
    assert {"seed 0", "seed 1", "the other 1", "guessing"} <= set(written(ax))
    thick, dashed, _ = (drawn[f"seed {seed}"] for seed in series)
    assert thick.get_linewidth() > dashed.get_linewidth()
    assert dashed.get_linestyle() == "--" != thick.get_linestyle()


def test_show_takes_the_words_of_what_it_shows():
    ax = figures.one_path(X, TOKENS, 1)
    shown = figures.show(ax)
    assert (shown.caption, shown.alt) == words(ax)
    assert figures.show(ax, caption="Mine.").caption == "Mine."


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: figures.one_path(X, TOKENS[:5], 1),
         ["tokens must have the shape (t,) with t=6 as in x, but got (5,)"]),
        (lambda: figures.one_path(X[None], TOKENS, 1),
         ["x must have the shape (t, d_in), but got (1, 6, 3)", "such as x[0]"]),
        (lambda: figures.plane(X, TOKENS, ("a", "b"), X),
         ["vectors must have the shape (t, 2), but got (6, 3)"]),
        (lambda: figures.flow(X, X, X, X),
         ["W_query must have the shape (d_in, d_k) with d_in=3 as in x, but got"]),
        (lambda: figures.runs([1, 2], {"a": [1.0]}, "x", "y"),
         ["series['a'] must have the shape (n,) with n=2 as in steps, but got (1,)"]),
    ],
)  # fmt: skip
def test_a_changed_tensor_gets_a_message_with_its_name_and_shapes(call, parts):
    with pytest.raises(ValueError, match="must have the shape") as raised:
        call()
    for part in parts:
        assert part in str(raised.value)
