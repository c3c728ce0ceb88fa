"""The look of page 02, and the map of the landing page."""

import pytest
from matplotlib.colors import to_hex

from coding_attention import figures
from coding_attention.figures import base
from tests.coding_attention.figures.artists import (
    bounds,
    cells,
    random_weights,
    rectangles,
    written,
)

WORDS = [f"w{i}" for i in range(9)]


def step(name, *weights):
    texts = {key: f"{key} of {name}" for key in ("section", "adds", "computes")}
    return {"name": name, "weights": list(weights), **texts}


@pytest.mark.parametrize(("t", "query"), [(1, 0), (4, 3), (6, 1)])
def test_look_draws_lines_as_thick_as_the_weights(t, query):
    weights = random_weights(t, seed=t)
    ax = figures.look(weights, WORDS[:t], query)
    for i, (line, weight) in enumerate(zip(ax.lines, weights.tolist(), strict=True)):
        centers = [(query + 0.5) * 3.6 / t, (i + 0.5) * 3.6 / t]
        assert list(line.get_xdata()) == pytest.approx(centers)
        assert line.get_linewidth() == pytest.approx(16 * weight, abs=0.01)


@pytest.mark.parametrize(("t", "query"), [(1, 0), (4, 3), (6, 1)])
def test_look_writes_tokens_and_weights_in_their_columns(t, query):
    weights = random_weights(t, seed=t)
    ax = figures.look(weights, WORDS[:t], query)
    *below, above = cells(ax)
    assert [cell.text for cell in below] == WORDS[:t]
    middles = [cell.x + cell.width / 2 for cell in below]
    centers = [(i + 0.5) * 3.6 / t for i in range(t)]
    assert middles == pytest.approx(centers)
    numbers = {text.get_text(): text.get_position()[0] for text in ax.texts}
    for i, weight in enumerate(weights.tolist()):
        assert numbers[f"{weight:.3f}"] == pytest.approx(centers[i])
    assert (above.text, above.edge) == (WORDS[query], base.VERMILION)
    assert above.x + above.width / 2 == pytest.approx(centers[query])


def small(ax):
    """Cells of the grids: those without a text that are no whole box."""
    return [cell for cell in cells(ax) if cell.width < 1]


@pytest.mark.parametrize("t", [1, 3, 6])
def test_map_draws_each_matrix_by_its_weights(t):
    weights = random_weights(t, t).tril()
    found = small(figures.mechanisms([step("one", weights)]))
    assert len(found) == t * t
    left, top = min(c.x for c in found), min(c.y for c in found)
    by_place = {
        (round((c.y - top) / c.height), round((c.x - left) / c.width)): c for c in found
    }
    for i in range(t):
        for j in range(t):
            color, weight = by_place[i, j].color, float(weights[i, j])
            assert color == to_hex(base.WEIGHTS(round(weight, 3)))


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_map_has_a_grid_for_each_head(heads):
    matrices = [random_weights(3, 3, seed=i) for i in range(heads)]
    ax = figures.mechanisms([step("one", *matrices)])
    borders = [bounds(p) for p in rectangles(ax) if not p.get_fill()]
    assert len(borders) == heads
    rights = [x + width for x, _, width, _ in borders]
    assert rights == sorted(rights)
    assert rights[-1] < 3.57  # inside the box
    for (x, y, width, height), matrix in zip(borders, matrices, strict=True):
        own = [
            c for c in small(ax)
            if x - 1e-6 <= c.x < x + width - 1e-6 and y - 1e-6 <= c.y < y + height
        ]  # fmt: skip
        assert len(own) == 9
        expected = [color for row in base.shade(matrix) for color in row]
        assert [cell.color for cell in own] == expected
    assert written(ax)[0] == "adds of one"
