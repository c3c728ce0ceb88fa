"""Figures of section 3.5: steps, dropout and the cropped mask."""

import pytest
import torch
from matplotlib.colors import to_hex

from coding_attention import figures
from coding_attention.figures import base
from tests.coding_attention.figures.artists import (
    arrows,
    cells,
    grid,
    place,
    random,
    random_weights,
    ticks,
)

WORDS = [f"w{i}" for i in range(9)]
sizes = pytest.mark.parametrize("t", [1, 3, 6])


@sizes
def test_steps_write_every_row_under_its_name(t):
    rows = {f"step {i}": random(t, seed=i) for i in range(3)}
    rows["masked"] = rows["step 0"].clone().fill_(-float("inf"))
    ax = figures.steps(rows, WORDS[:t], "a title")
    found = cells(ax)
    for i, (name, row) in enumerate(rows.items()):
        own = found[i * t : (i + 1) * t]
        assert [c.text for c in own] == [figures.number(v) for v in row]
        assert [c.x for c in own] == list(range(t))
        (top,) = {c.y for c in own}
        assert top - 0.9 < place(ax, name)[1] < top
    tops = sorted({c.y for c in found})
    assert [c.y for c in found] == [top for top in tops for _ in range(t)]
    between = [(start[1], end[1]) for start, end, _ in arrows(ax)]
    for (start, end), above, below in zip(between, tops, tops[1:], strict=False):
        assert above + 1 < start < end < below
    assert len(between) == len(rows) - 1
    assert [place(ax, word)[0] for word in WORDS[:t]] == [j + 0.5 for j in range(t)]


def test_steps_color_scores_and_weights_by_their_scales():
    scores = torch.tensor([0.0, -float("inf"), 0.5, -0.5, float("nan")])
    weights = torch.tensor([0.0, 0.25, 0.25, 0.5, 0.0])
    found = cells(figures.steps({"ω": scores, "α": weights}, WORDS[:5]))
    assert [c.color for c in found[:2]] == [base.LIGHT] * 2  # nothing, and hidden
    assert found[4].text == "nan"
    expected = [to_hex(base.WEIGHTS(w)) for w in weights.tolist()]
    assert [c.color for c in found[5:]] == expected


@sizes
@pytest.mark.parametrize("rate", [0.0, 0.5, 0.1])
def test_dropped_scales_what_stays(t, rate):
    weights, keep = random_weights(t, t, seed=t).tril(), random(t, t, seed=1) > 0
    ax = figures.dropped(weights, keep, WORDS[:t], rate, "a title")
    found = grid(ax)
    sums = [0.0] * t
    for i in range(t):
        for j in range(t):
            if j > i:
                assert (i, j) not in found
            elif keep[i, j]:
                expected = float(weights[i, j]) / (1 - rate)
                sums[i] += expected
                assert float(found[i, j].text) == pytest.approx(expected, abs=6e-4)
            else:
                assert found[i, j].text is None
    # The sums stand right of the cells.
    right = {
        t_.get_position(): t_.get_text() for t_ in ax.texts if t_.get_position()[0] > t
    }
    for i in range(t):
        assert float(right[t + 0.62, i + 0.5]) == pytest.approx(sums[i], abs=6e-4)
    assert len(right) == t


def test_dropped_crosses_out_what_went():
    weights = random_weights(3, 3).tril()
    keep = torch.tensor([[1, 0, 1], [0, 1, 1], [1, 0, 0]]).bool()
    ax = figures.dropped(weights, keep, WORDS[:3], 0.5)
    crosses = {}
    for line in ax.lines:
        at = int(min(line.get_ydata())), int(min(line.get_xdata()))
        crosses[at] = crosses.get(at, 0) + 1
        assert to_hex(line.get_color()) == base.VERMILION
    assert crosses == {(1, 0): 2, (2, 1): 2, (2, 2): 2}
    assert [label for _, label in ticks(ax.xaxis)] == [*WORDS[:3], "sum"]
    assert [label for _, label in ticks(ax.yaxis)] == WORDS[:3]
