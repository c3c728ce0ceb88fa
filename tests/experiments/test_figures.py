"""The figures of both pages draw the numbers that they are given."""

import pytest
import torch
from matplotlib.colors import to_hex

from attention.chapter import figures
from attention.chapter.figures.base import BLUE, LIGHT, VERMILION


def filled(ax):
    return [p for p in ax.patches if p.get_fill()]


def test_pattern_is_darker_for_larger_weights_and_frames_what_is_marked():
    weights = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    ax = figures.pattern(weights, ["a", "b"], ["x", "y", "z"], marked=[(1, 2)])
    colors = {p.get_xy(): to_hex(p.get_facecolor()) for p in filled(ax)}
    assert len(colors) == 6
    assert colors[(0, 0)] == BLUE
    assert colors[(2, 0)] == LIGHT
    assert colors[(0, 1)] == colors[(1, 1)] not in (BLUE, LIGHT)
    (frame,) = (p for p in ax.patches if not p.get_fill())
    assert frame.get_xy() == (2, 1)  # column, row
    assert [t.get_text() for t in ax.get_xticklabels()] == ["x", "y", "z"]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["a", "b"]
    assert ax.get_ylim() == (2, 0)  # the first query on top


def test_against_length_shows_mean_and_spread():
    ax = figures.against_length([3, 6], {"with": [[1.0, 0.8], [0.6, 0.2]]}, "share")
    (line,) = ax.lines
    assert line.get_xdata() == pytest.approx([3, 6])
    assert line.get_ydata() == pytest.approx([0.8, 0.5])
    corners = ax.collections[0].get_paths()[0].vertices
    at_six = corners[corners[:, 0] == 6, 1]
    assert (at_six.min(), at_six.max()) == pytest.approx((0.2, 0.8))


def test_curves_draws_every_series_and_level():
    ax = figures.curves(
        [0, 10], {"a": [[1, 2], [3, 4]], "b": [[5, 6]]}, "x", "y", {"level": 2.5}
    )
    drawn = [list(line.get_ydata()) for line in ax.lines]
    assert drawn == [[1, 2], [3, 4], [5, 6], [2.5, 2.5]]
    assert ax.lines[0].get_color() == ax.lines[1].get_color()
    assert ax.lines[0].get_color() != ax.lines[2].get_color()
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["a", "b"]


def test_alignment_joins_the_words():
    ax = figures.alignment(["a", "b"], ["x", "y"], [(0, 1), (1, 0)], [(1, 0)])
    places = {t.get_text(): t.get_position()[0] for t in ax.texts}
    lines = [tuple(line.get_xdata()) for line in ax.lines]
    assert lines == [(places["a"], places["y"]), (places["b"], places["x"])]
    assert [line.get_color() for line in ax.lines] == [BLUE, VERMILION]


def test_look_back_is_thicker_for_larger_weights():
    ax = figures.look_back(["a", "b", "c"], ["x", "y"], 1, [0.1, 0.7, 0.2])
    words = {t.get_text(): t.get_position()[0] for t in ax.texts}
    ends = [line.get_xdata() for line in ax.lines]
    assert [e[0] for e in ends] == [words["y"]] * 3
    assert [e[1] for e in ends] == [words[w] for w in "abc"]
    widths = [line.get_linewidth() for line in ax.lines]
    assert widths[0] < widths[2] < widths[1]


def test_everyone_joins_each_word_to_each():
    ax = figures.everyone(["a", "b", "c"])
    assert len({tuple(line.get_xdata()) for line in ax.lines}) == 9


def test_circuit_names_what_each_token_has_seen():
    ax = figures.circuit(["A", "B", "C"])
    found = {t.get_text() for t in ax.texts}
    assert {"A", "B", "C", "B, after A", "C, after B", "next: B"} <= found


def test_bottleneck_and_stages_hold_their_words():
    ax = figures.bottleneck(["a", "b"], ["x", "y", "z"])
    found = [t.get_text() for t in ax.texts]
    assert found.count("state") == 5
    assert {"a", "b", "x", "y", "z"} <= set(found)
    ax = figures.stages(
        ["one", "two", "three"], [["here", "there"], ["later"], ["at last"]]
    )
    assert {"one", "two", "here", "there", "later"} <= {t.get_text() for t in ax.texts}
    edges = [to_hex(p.get_edgecolor()) for p in filled(ax)]
    assert edges.count(VERMILION) == 1
