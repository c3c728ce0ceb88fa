"""The labs and their static figures show weights on the figures' one scale."""

import re

import pytest

from coding_attention.figures.palette import BOOK, WEIGHTS
from coding_attention.labs import base, compose

ENDS = {"--al-nothing": "WEIGHT_0", "--al-weight": "WEIGHT_1", "--al-cell-ink": "DARK"}


@pytest.mark.parametrize("name", ENDS)
def test_a_weight_has_the_color_of_the_figures_on_light_and_dark_pages(name):
    # Light; dark by the page's switch; dark by the reader's system; forced colors.
    set_to = re.findall(rf"{name}: (#[0-9a-f]{{6}});", compose.styles("mask.js"))
    color = BOOK[ENDS[name]]
    assert set_to == [color.light, color.dark, color.dark]


@pytest.mark.parametrize("weight", [0.0, 0.25, 0.485, 1.0])
def test_a_static_figure_mixes_as_figures_do(weight):
    svg = base.heat_map("Weights of one query.", ["a"], ["b"], [[weight]])
    (share,) = re.findall(r"color-mix\(in srgb,var\(--al-weight.*? ([\d.]+)%", svg)
    low, high = (
        [int(BOOK[end].light[i : i + 2], 16) for i in (1, 3, 5)]
        for end in ("WEIGHT_0", "WEIGHT_1")
    )
    mixed = [a + (b - a) * float(share) / 100 for a, b in zip(low, high, strict=True)]
    figures = [255 * part for part in WEIGHTS(weight)[:3]]
    assert mixed == pytest.approx(figures, abs=1)
    assert "#fff" not in svg
    # The same where no style sheet sets the two ends.
    assert f"var(--al-weight,{BOOK['WEIGHT_1'].light})" in svg
    assert f"var(--al-nothing,{BOOK['WEIGHT_0'].light})" in svg
