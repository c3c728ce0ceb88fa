"""The labs show weights on the figures' one scale."""

import re

import pytest

from coding_attention.figures.palette import BOOK
from coding_attention.labs import base

ENDS = {"--al-nothing": "WEIGHT_0", "--al-weight": "WEIGHT_1", "--al-cell-ink": "DARK"}


@pytest.mark.parametrize("name", ENDS)
def test_a_weight_has_the_color_of_the_figures_on_light_and_dark_pages(name):
    # Light; dark by the page's switch; dark by the reader's system; forced colors.
    set_to = re.findall(rf"{name}: (#[0-9a-f]{{6}});", base.STYLES)
    color = BOOK[ENDS[name]]
    assert set_to == [color.light, color.dark, color.dark]
