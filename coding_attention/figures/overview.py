"""One look, of page 02, and the map of the mechanisms, of the landing page."""

from matplotlib.patches import Rectangle

from coding_attention.figures import words
from coding_attention.figures.base import (
    BLUE,
    DARK,
    INK,
    LIGHT,
    SMALL,
    TITLE,
    TOKEN,
    VERMILION,
    WEIGHTS,
    arrow,
    canvas,
    cell,
    check,
    describe,
    number,
    shade,
    styled,
)


@styled
def look(weights, tokens, query):
    """Draw how one token looks at all: the thicker a line, the larger its weight.

    Args:
        weights: attention weights of the query, (t,).
        tokens: t labels.
        query: index of the token that looks.

    Returns:
        Axes with one line a token, its label and its weight below it.
    """
    t = check(weights=(weights, "t"), tokens=(tokens, "t"))["t"]
    ax = canvas(3.6, 1.75)
    step = 3.6 / t
    for i, (token, weight) in enumerate(zip(tokens, weights.tolist(), strict=True)):
        # Rounded, so that the last bit of a sum does not change a line.
        weight, x = round(weight, 3), (i + 0.5) * step
        ends = [(query + 0.5) * step, x], [0.42, 1.08]
        ax.plot(*ends, color=BLUE, lw=16 * weight, zorder=0.5)
        cell(ax, x - 0.47 * step, 1.08, 0.94 * step, 0.3, WEIGHTS(weight), token)
        digits = number(weights[i], 3 if t < 8 else 2)
        ax.text(x, 1.55, digits, color=INK, ha="center", fontsize=SMALL)
    cell(
        ax, (query + 0.03) * step, 0.12, 0.94 * step, 0.3, TOKEN, tokens[query],
        edge=VERMILION,
    )  # fmt: skip
    shares = ", ".join(
        f"{token} {number(weight, 2)}"
        for token, weight in zip(tokens, weights, strict=True)
    )
    alt = f"Lines from {tokens[query]} to {words.count(t, 'word')}: {shares}."
    return describe(ax, "", alt)


@styled
def mechanisms(steps):
    """Draw the map of the book: one box a mechanism, joined by what each one adds.

    Args:
        steps: a dict for each mechanism, from top to bottom, with the texts ``name``,
            ``section``, ``computes`` and ``adds``, and ``weights``: a list of one
            matrix (t, t) for each head, drawn as small grids.

    Returns:
        Axes with a box for each step.
    """
    box, gap = 0.62, 0.36
    ax = canvas(3.6, len(steps) * (box + gap) + 0.04)
    for i, step in enumerate(steps):
        top = i * (box + gap) + gap
        if i > 0:
            arrow(ax, (0.3, top - gap), (0.3, top), gap=1)
        side = {"ha": "left" if i > 0 else "center", "va": "center_baseline"}
        x = 0.44 if i > 0 else 1.8
        ax.text(x, top - gap / 2, step["adds"], color=INK, fontsize=SMALL, **side)
        cell(ax, 0.03, top, 3.54, box, LIGHT)
        dark = {"color": DARK, "va": "center_baseline"}
        ax.text(0.14, top + 0.19, step["name"], fontsize=TITLE, weight="bold", **dark)
        ax.text(0.14, top + 0.44, step["computes"], fontsize=SMALL, **dark)
        left = 3.49 - len(step["weights"]) * 0.48
        ax.text(
            left - 0.04, top + 0.19, step["section"], fontsize=SMALL, ha="right", **dark
        )
        for k, weights in enumerate(step["weights"]):
            check(weights=(weights, "t t"))
            _grid(ax, left + k * 0.48 + 0.02, top + 0.09, weights.detach(), 0.44)
    return ax


def _grid(ax, x, y, weights, size):
    side = size / len(weights)
    for i, line in enumerate(shade(weights, "weights")):
        for j, color in enumerate(line):
            cell(ax, x + j * side, y + i * side, side, side, color)
    ax.add_patch(Rectangle((x, y), size, size, fill=False, edgecolor=DARK, lw=0.6))
