"""The labs have the colors of the figures, on light pages and on dark ones."""

import re

import pytest

from coding_attention.figures.palette import BARS, BOOK
from coding_attention.labs import base
from theme import own_sentence

LABS = {
    "al-nothing": BOOK["WEIGHT_0"],
    "al-weight": BOOK["WEIGHT_1"],
    "al-cell-ink": BOOK["DARK"],
    "al-bar": BOOK["BLUE"],
    "al-second": BOOK["VERMILION"],
    **{color.name: color for color in BARS.values()},
}
SENTENCE = {
    "os-0": BOOK["WEIGHT_0"],
    "os-1": BOOK["WEIGHT_1"],
    "os-ink": BOOK["DARK"],
    "os-query": BARS["q"],
    "os-weight": BOOK["BLUE"],
}


def read_colors(name, sheet):
    return re.findall(rf"--{name}: (#[0-9a-f]{{6}});", sheet)


@pytest.mark.parametrize("name", LABS)
def test_labs_have_the_colors_of_the_figures(name):
    # Light; dark by the page's switch; dark by the reader's system.
    color = LABS[name]
    assert read_colors(name, base.STYLES) == [color.light, color.dark, color.dark]


@pytest.mark.parametrize("name", SENTENCE)
def test_a_typed_sentence_has_the_colors_of_the_figures(name):
    sheet = (own_sentence.FOLDER / "sentence.css").read_text("utf-8")
    color = SENTENCE[name]
    assert read_colors(name, sheet) == [color.light, color.dark]
