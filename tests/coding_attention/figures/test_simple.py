"""Arrows and bars equal their tensors."""

import pytest
import torch

from coding_attention import figures
from coding_attention.figures import base
from tests.coding_attention.figures.artists import (
    arrows,
    bounds,
    place,
    random,
    rectangles,
    written,
)

WORDS = [f"word{i}" for i in range(9)]
sizes = pytest.mark.parametrize("t", [1, 3, 6])


@pytest.mark.parametrize("seed", range(4))
@sizes
def test_arrows_go_from_the_origin_to_the_vectors(t, seed):
    vectors = random(t, 2, seed=seed)
    found = arrows(figures.arrows(vectors, WORDS[:t], "x", "y"))
    assert [start for start, _, _ in found] == [(0, 0)] * t
    assert [list(end) for _, end, _ in found] == vectors.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_every_arrow_is_in_view(seed):
    """Also where all numbers are negative, or all are zero."""
    for vectors in (random(5, 2, seed=seed), -random(5, 2, seed=seed).abs()):
        ax = figures.arrows(vectors, WORDS[:5], "x", "y")
        for column, limits in enumerate((ax.get_xlim(), ax.get_ylim())):
            assert limits[0] <= min(0, float(vectors[:, column].min()))
            assert limits[1] > max(0, float(vectors[:, column].max()))
    low, high = figures.arrows(torch.zeros(1, 2), ["a"], "x", "y").get_xlim()
    assert low <= 0 < high


def test_arrows_are_labeled_at_their_tips_and_highlighted():
    vectors = torch.tensor([[1.0, 2.0], [3.0, 0.5]])
    ax = figures.arrows(vectors, ["a", "b"], "first", "second", ["b"])
    assert [color for _, _, color in arrows(ax)] == [base.BLUE, base.VERMILION]
    assert written(ax) == ["a", "b"]
    for (x, y), text in zip(vectors.tolist(), written(ax), strict=True):
        assert place(ax, text) == pytest.approx((x, y), abs=0.3)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("first", "second")


@sizes
@pytest.mark.parametrize("n", [1, 2, 3])
def test_bars_are_as_long_as_their_values(t, n):
    groups = {name: random(t, seed=i) for i, name in enumerate("abc"[:n])}
    ax = figures.bars(groups, WORDS[:t])
    found = [bounds(patch) for patch in rectangles(ax)]
    expected = [value for values in groups.values() for value in values.tolist()]
    assert [x for x, _, _, _ in found] == [0] * (n * t)
    assert [width for _, _, width, _ in found] == pytest.approx(expected)
    assert written(ax) == [f"{value:.4f}" for value in expected]


@pytest.mark.parametrize("seed", range(3))
def test_all_bars_are_in_view_and_start_at_zero(seed):
    for values in (random(4, seed=seed), random(4, seed=seed).abs()):
        low, high = figures.bars({"a": values}, WORDS[:4]).get_xlim()
        assert low <= min(0, float(values.min()))
        assert high > max(0, float(values.max()))
