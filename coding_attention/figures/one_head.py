"""One head from x to z, as the look lab draws it: rows are words, columns stages."""

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from coding_attention.figures.base import (
    BLUE,
    INK,
    LIGHT,
    SMALL,
    WEIGHTS,
    canvas,
    cell,
    check,
    number,
    styled,
)
from coding_attention.figures.palette import BARS

# All sizes are as wide as a bar, of which an inch has 60; a phone is 3.6 inches wide.
INCH, WIDTH, ROW, HEAD = 60, 216, 12, 11
DRAWN = 16  # numbers of each vector
LEFT = {"x": 35, "q": 52, "k": 69, "v": 86, "score": 104, "scale": 125,
        "weight": 146, "mix": 171, "z": 200}  # fmt: skip
BOXES = {"score": 19, "scale": 19, "weight": 23}  # how wide
LETTERS = 8  # of a word


@styled
def one_head(words, asked, vectors, scores, scaled, weights):
    """Draw what a head computes for one word, from left to right.

    Args:
        words: t labels.
        asked: index of the word that asks.
        vectors: x, q, k and v by name, (t, d) each; 16 numbers of each are drawn.
        scores: of the word that asks with each word, (t,).
        scaled: the same, divided by the root of a key's width, (t,).
        weights: softmax of those, (t,).

    Returns:
        Axes with a row for each word: its vectors as bars, the three numbers between
        them, and curves as thick as the weights to z.
    """
    height = HEAD + ROW * check(words=(words, "t"), weights=(weights, "t"))["t"]
    ax = canvas(WIDTH / INCH, height / INCH)
    ax.set_xlim(0, WIDTH)
    ax.set_ylim(height, 0)
    for name, left in LEFT.items():
        _write(ax, left + BOXES.get(name, DRAWN) / 2, HEAD / 2, name, "center")
    for i, word in enumerate(words):
        label = word[:LETTERS].replace("$", r"\$")  # two would make a formula
        _write(ax, 32, _middle(i), label, "right")
        for name, row, decimals in (
            ("score", scores, 1), ("scale", scaled, 2), ("weight", weights, 2),
        ):  # fmt: skip
            color = WEIGHTS(round(row[i].item(), 3)) if name == "weight" else LIGHT
            place = LEFT[name], HEAD + ROW * i, BOXES[name], ROW
            cell(ax, *place, color, number(row[i], decimals))
    # As lines, all these bars would weigh more than the page around them.
    bars = _paint_bars(asked, vectors, weights, height)
    where = {"extent": (0, WIDTH, height, 0), "aspect": "auto", "clip_on": False}
    ax.imshow(bars, interpolation="none", **where)
    _lead_to_z(ax, asked, weights)
    frame = (0.5, HEAD + ROW * asked + 0.5), 33, ROW - 1
    ax.add_patch(Rectangle(*frame, fill=False, lw=1.5, edgecolor=BARS["q"].light))
    return ax


def _middle(row):
    return HEAD + ROW * (row + 0.5)


def _write(ax, x, y, text, align):
    ax.text(x, y, text, ha=align, va="center_baseline", fontsize=SMALL, color=INK)


def _paint_bars(asked, vectors, weights, height):
    """Give all vectors as an image (height, WIDTH, 4), clear between them."""
    image = np.zeros((height, WIDTH, 4))
    mix = weights[:, None] * vectors["v"]  # (t, d)
    for name, rows in {**vectors, "mix": mix, "z": mix.sum(dim=0)[None]}.items():
        kind = name if name in vectors else "v"
        # Half a row is as high as this share of the largest: few are that large.
        shares = rows[:, :DRAWN] / (0.6 * vectors[kind].abs().max())
        lengths = (shares.clamp(-1, 1) * ROW / 2).round().int().tolist()
        for i, row in enumerate(lengths, start=asked if name == "z" else 0):
            top = HEAD + ROW * i
            strip = image[top : top + ROW, LEFT[name] : LEFT[name] + DRAWN]
            strip[:] = (*to_rgb(BARS[kind].light), 0.13)
            for j, length in enumerate(row):
                low, high = sorted((ROW // 2, ROW // 2 - length))
                # Of the queries, only the one of the word that asks counts.
                strip[low:high, j, 3] = 0.4 if name == "q" and i != asked else 1
    return image


def _lead_to_z(ax, asked, weights):
    """Draw a curve from each share of a value to z, as thick as its weight."""
    start, end, goal = LEFT["mix"] + DRAWN, LEFT["z"], _middle(asked)
    half = (start + end) / 2
    for i, weight in enumerate(weights.tolist()):
        corners = [(start, _middle(i)), (half, _middle(i)), (half, goal), (end, goal)]
        curve = Path(corners, [Path.MOVETO, *3 * [Path.CURVE4]])
        if weight >= 0.02:
            width = round(0.75 + 8 * weight, 2)
            ax.add_patch(PathPatch(curve, fill=False, edgecolor=BLUE, lw=width))
