"""The colors of the book: what each one means, on a light page and on a dark one.

One color means one thing on all pages. Each is written down here once, with its light
and its dark form; drawings use the light form, and :func:`for_any_page` turns it into
a CSS variable that a dark page sets anew (``theme/static/book.css``, held by a test).
"""

import re
from typing import NamedTuple

from matplotlib.colors import LinearSegmentedColormap, to_hex


class Color(NamedTuple):
    """A color's name in CSS, and its two forms."""

    name: str
    light: str
    dark: str


# Stands for the page's own text color; it becomes CSS's currentColor.
INK = "#010203"

BOOK = {
    # Grounds that carry text.
    "DARK": Color("text", "#14202b", "#eef4f9"),  # text on any ground below
    "LIGHT": Color("paper", "#f1f5f8", "#232e38"),  # a ground without a meaning
    "EDGE": Color("edge", "#fefefe", "#12161b"),  # the line between two cells
    "TOKEN": Color("token", "#d9e1e8", "#3a4853"),  # a token and its embedding x
    "QUERY": Color("query", "#fbdfa6", "#6a4a06"),  # a query q
    "KEY": Color("key", "#bfe6d3", "#135644"),  # a key k
    "VALUE": Color("value", "#e3b9cd", "#5f2145"),  # a value v, a context vector z
    "HEAD_0": Color("h0", "#b0c5f8", "#41459f"),  # head 0, and the process that has it
    "HEAD_1": Color("h1", "#e8e87f", "#575c09"),  # head 1, and the process that has it
    "HEAD_2": Color("h2", "#d0ffdd", "#1b6d80"),  # head 2, and the process that has it
    "HEAD_3": Color("h3", "#dcbda2", "#654325"),  # head 3, and the process that has it
    # The ends of the two scales.
    "WEIGHT_0": Color("w0", "#f0f7fc", "#1b2833"),  # an attention weight of 0
    "WEIGHT_1": Color("w1", "#56b4e9", "#1c6ba8"),  # an attention weight of 1
    "BELOW": Color("below", "#f2b8a0", "#84402a"),  # the smallest number below zero
    "ABOVE": Color("above", "#b3bfca", "#566675"),  # the largest number above zero
    # Lines, bars and frames, which carry no text.
    "VERMILION": Color("focus", "#b54400", "#f58344"),  # what the text speaks of
    "BLUE": Color("blue", "#0072b2", "#53aee4"),  # attention weights; our way
    "GREEN": Color("green", "#009e73", "#43d9a8"),  # in a chart, a third way
    "ORANGE": Color("orange", "#b58900", "#f3c043"),  # in a chart, a fourth way
    "PURPLE": Color("purple", "#b04a86", "#e1afd6"),  # in a chart, a fifth way
    "GRAY": Color("gray", "#8795a1", "#7f8d99"),  # what stays in the background
}  # fmt: skip

# Thin bars and lines of a vector, in the labs and in the picture of one head: the hues
# of TOKEN, QUERY, KEY and VALUE, strong enough to stand on the page itself. The names
# are those of the labs' sheet, which a test holds to them.
BARS = {
    "x": Color("al-token", "#5d7081", "#9fb2c2"),
    "q": Color("al-query", "#b5790a", "#f3c043"),
    "k": Color("al-k", "#17805f", "#43d9a8"),
    "v": Color("al-v", "#a33c77", "#e1afd6"),
}

DARK, LIGHT, EDGE = (BOOK[name].light for name in ("DARK", "LIGHT", "EDGE"))
TOKEN, QUERY, KEY, VALUE = (
    BOOK[name].light for name in ("TOKEN", "QUERY", "KEY", "VALUE")
)
HEADS = tuple(BOOK[f"HEAD_{head}"].light for head in range(4))
BLUE, GREEN, ORANGE, PURPLE, GRAY = (
    BOOK[name].light for name in ("BLUE", "GREEN", "ORANGE", "PURPLE", "GRAY")
)
VERMILION = BOOK["VERMILION"].light


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
