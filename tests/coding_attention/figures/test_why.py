"""Figures of sections 3.1 and 3.2: translation, the bottleneck and the look-back."""

import pytest
from matplotlib.colors import to_hex

from coding_attention.figures import base, why
from tests.coding_attention.figures.artists import (
    arrows,
    cells,
    random,
    random_weights,
    ticks,
)

TOP, BOTTOM = ["Can", "you", "help", "me"], ["Kannst", "du", "mir", "helfen"]


def middles(found):
    return [cell.x + cell.width / 2 for cell in found]


def lines(ax):
    """((x, x), (y, y), width, color) of every line."""
    return [
        (
            tuple(line.get_xdata()), tuple(line.get_ydata()), line.get_linewidth(),
            to_hex(line.get_color()),
        )
        for line in ax.lines
    ]  # fmt: skip


def test_alignment_links_the_words_of_the_pairs():
    links = [(0, 0), (1, 1), (2, 3), (3, 2)]
    ax = why.alignment(TOP, BOTTOM, links, [(2, 3)])
    found = cells(ax)
    assert [cell.text for cell in found] == [*TOP, *BOTTOM]
    top, bottom = middles(found[:4]), middles(found[4:])
    assert [x for x, *_ in lines(ax)] == [
        pytest.approx((top[i], bottom[j])) for i, j in links
    ]
    colors = [color for *_, color in lines(ax)]
    assert colors == [base.BLUE, base.BLUE, base.VERMILION, base.BLUE]


def test_bottleneck_leads_through_one_state():
    ax = why.bottleneck(["du", "mir", "helfen"], ["you", "help"])
    texts = [cell.text for cell in cells(ax)]
    assert texts[:5] == ["state"] * 5
    (bottle,) = cells(ax)[5:]
    through = [(s, e) for s, e, color in arrows(ax) if color == base.VERMILION]
    (into, arrived), (left, out) = through
    assert into[1] > arrived[1] > bottle.y + bottle.height - 0.05
    assert bottle.y + 0.05 > left[1] > out[1]
    read, write = middles(cells(ax)[:3]), middles(cells(ax)[3:5])
    assert (into[0], left[0]) == pytest.approx((read[-1], write[0]))


@pytest.mark.parametrize("step", [0, 1])
def test_look_back_is_as_thick_as_the_weights(step):
    weights = random_weights(4)
    ax = why.look_back(TOP, ["du", "mir"], step, weights)
    read, write = middles(cells(ax)[:4]), middles(cells(ax)[4:])
    for (x, _, width, _), state, weight in zip(lines(ax), read, weights, strict=True):
        assert x == pytest.approx((write[step], state))
        assert width == pytest.approx(0.6 + 10 * float(weight), abs=0.006)


def test_against_length_draws_mean_and_spread():
    series = random(3, 4).sigmoid()
    ax = why.against_length([2, 4, 8, 16], {"a": series.tolist()}, "share")
    (line,) = ax.lines
    assert list(line.get_xdata()) == [2, 4, 8, 16]
    assert list(line.get_ydata()) == pytest.approx(series.mean(dim=0).tolist())
    (area,) = ax.collections
    corners = area.get_paths()[0].vertices.tolist()
    for length, column in zip([2, 4, 8, 16], series.T.tolist(), strict=True):
        heights = {y for x, y in corners if x == length}
        assert (min(heights), max(heights)) == pytest.approx((min(column), max(column)))
    assert [label for _, label in ticks(ax.xaxis)] == ["2", "4", "8", "16"]
    assert ax.get_ylabel() == "share"
