"""The colors of the book: what each one means, on a light page and on a dark one.

One color means one thing on all pages. Each is written down here once, with its light
and its dark form; drawings use the light form, and :func:`for_any_page` turns it into
a CSS variable that a dark page sets anew (``theme/static/book.css``, held by a test).
"""

import re
from typing import NamedTuple

from matplotlib.colors import LinearSegmentedColormap, to_hex


class Color(NamedTuple):
    """What a color stands for, its name in CSS, and its two forms."""

    meaning: str
    name: str
    light: str
    dark: str


# Stands for the page's own text color; it becomes CSS's currentColor.
INK = "#010203"

BOOK = {
    # Grounds that carry text.
    "DARK": Color("text on any ground below", "text", "#14202b", "#eef4f9"),
    "LIGHT": Color("a ground without a meaning", "paper", "#f1f5f8", "#232e38"),
    "EDGE": Color("the line between two cells", "edge", "#fefefe", "#12161b"),
    "TOKEN": Color("a token and its embedding x", "token", "#d9e1e8", "#3a4853"),
    "QUERY": Color("a query q", "query", "#fbdfa6", "#6a4a06"),
    "KEY": Color("a key k", "key", "#bfe6d3", "#135644"),
    "VALUE": Color("a value v, a context vector z", "value", "#e3b9cd", "#5f2145"),
    "HEAD_0": Color("head 0, and the process that has it", "h0", "#b0c5f8", "#41459f"),
    "HEAD_1": Color("head 1, and the process that has it", "h1", "#e8e87f", "#575c09"),
    "HEAD_2": Color("head 2, and the process that has it", "h2", "#d0ffdd", "#1b6d80"),
    "HEAD_3": Color("head 3, and the process that has it", "h3", "#dcbda2", "#654325"),
    # The ends of the two scales.
    "WEIGHT_0": Color("an attention weight of 0", "w0", "#f0f7fc", "#1b2833"),
    "WEIGHT_1": Color("an attention weight of 1", "w1", "#56b4e9", "#1c6ba8"),
    "BELOW": Color("the smallest number below zero", "below", "#f2b8a0", "#84402a"),
    "ABOVE": Color("the largest number above zero", "above", "#b3bfca", "#566675"),
    # Lines, bars and frames, which carry no text.
    "VERMILION": Color("what the text speaks of", "focus", "#b54400", "#f58344"),
    "BLUE": Color("attention weights; our way", "blue", "#0072b2", "#53aee4"),
    "GREEN": Color("in a chart, a third way", "green", "#009e73", "#43d9a8"),
    "ORANGE": Color("in a chart, a fourth way", "orange", "#b58900", "#f3c043"),
    "PURPLE": Color("in a chart, a fifth way", "purple", "#b04a86", "#e1afd6"),
    "GRAY": Color("what stays in the background", "gray", "#8795a1", "#7f8d99"),
}  # fmt: skip

DARK, LIGHT, EDGE = (BOOK[name].light for name in ("DARK", "LIGHT", "EDGE"))
TOKEN, QUERY, KEY, VALUE = (
    BOOK[name].light for name in ("TOKEN", "QUERY", "KEY", "VALUE")
)
HEADS = tuple(BOOK[f"HEAD_{head}"].light for head in range(4))
BLUE, GREEN, ORANGE, PURPLE, GRAY = (
    BOOK[name].light for name in ("BLUE", "GREEN", "ORANGE", "PURPLE", "GRAY")
)
VERMILION = BOOK["VERMILION"].light
SKY, WARM = TOKEN, VALUE


def _scale(name, *ends):
    colors = [BOOK[end].light for end in ends]
    return LinearSegmentedColormap.from_list(name, colors, N=201)


# An attention weight from 0 to 1, in all panels, figures and labs of the book.
WEIGHTS = _scale("weights", "WEIGHT_0", "WEIGHT_1")
# Any other number, from -1 to 1 as a share of the largest: below zero, zero, above.
SIGNED = _scale("signed", "BELOW", "LIGHT", "ABOVE")


def _variable(color):
    return f"var(--af-{color.name},{color.light})"


def _mixtures():
    """For each color of a scale, the CSS that mixes it from the ends."""
    found = {}
    low, high = BOOK["WEIGHT_0"], BOOK["WEIGHT_1"]
    middle = BOOK["LIGHT"]
    for i in range(201):
        for scale, start, end, share in (
            (WEIGHTS, low, high, i / 2),
            (SIGNED, middle, BOOK["BELOW" if i < 100 else "ABOVE"], abs(i - 100)),
        ):
            found[to_hex(scale(i))] = (
                f"color-mix(in srgb,{_variable(end)} {share:g}%,{_variable(start)})"
            )
    return found


FOR_CSS = (
    _mixtures()
    | {color.light: _variable(color) for color in BOOK.values()}
    | {INK: "currentColor"}
)


def for_any_page(svg):
    """Replace each color of the book in an SVG text by its CSS variable."""
    return re.sub("#[0-9a-f]{6}", lambda match: FOR_CSS.get(match[0], match[0]), svg)
