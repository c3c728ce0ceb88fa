"""Figures of the landing page: one look, the map of the mechanisms."""

from matplotlib.patches import Rectangle

from attention import validate
from attention.chapter.figures import checks
from attention.chapter.figures.base import (
    BLUE,
    DARK,
    INK,
    LIGHT,
    SKY,
    VERMILION,
    WEIGHTS,
    new_axes,
    number,
    styled,
)

# What the map needs to know of each mechanism.
MECHANISM = ("name", "section", "adds", "computes", "weights")


@styled
def look(weights, tokens, query):
    """Draw how one token looks at all: the thicker a line, the larger its weight.

    Args:
        weights: attention weights of the query, (t,).
        tokens: t labels.
        query: index of the token that looks.

    Returns:
        Axes with one line a token, its label and its weight below it.

    Raises:
        TypeError, ValueError: the weights are no weights or not one a label, or the
            query is none of the tokens.
    """
    (t,) = checks.shape("weights", weights, "t")
    checks.labels("tokens", tokens, t, "weights")
    checks.index("query", query, t, "tokens")
    checks.finite("weights", weights)
    if weights.min() < 0 or weights.max() == 0:
        raise ValueError(
            f"weights must not be negative, and one must be above 0, but they go from "
            f"{weights.min():.4g} to {weights.max():.4g}. Pass them after softmax."
        )
    weights = weights.detach()
    ax = new_axes(3.6, 1.75)
    ax.set_position([0, 0, 1, 1])
    ax.set_axis_off()
    ax.set_xlim(-0.5, len(tokens) - 0.5)
    ax.set_ylim(1.75, 0)
    largest = float(weights.max())
    for i, (token, weight) in enumerate(zip(tokens, weights.tolist(), strict=True)):
        # Rounded, so that the last bit of a sum does not change a line.
        share = round(weight / largest, 3)
        ax.plot([query, i], [0.42, 1.08], color=BLUE, lw=7 * share, zorder=1)
        _name(ax, i, 1.23, token, WEIGHTS(share))
        ax.text(i, 1.52, number(weight), color=INK, ha="center", fontsize=8)
    _name(ax, query, 0.27, tokens[query], SKY, VERMILION)
    return ax


def _name(ax, x, y, text, color, edge=INK):
    ax.add_patch(
        Rectangle((x - 0.46, y - 0.15), 0.92, 0.3, facecolor=color, edgecolor=edge)
    )
    ax.text(x, y, text, color=DARK, ha="center", va="center_baseline", fontsize=8)


@styled
def mechanisms(steps):
    """Draw the map of the book: one box a mechanism, joined by what each one adds.

    Args:
        steps: a dict for each mechanism, from top to bottom, with the texts ``name``,
            ``section``, ``computes`` and ``adds``, and ``weights``: a list of one
            matrix (t, t) for each head, drawn as small grids.

    Returns:
        Axes with a box for each step.

    Raises:
        TypeError, ValueError: no step, a step without one of its entries, or weights
            that are no square matrix of finite numbers.
    """
    checks.entries("steps", steps)
    for i, step in enumerate(steps):
        _check_mechanism(f"steps[{i}]", step)
    box, gap = 0.62, 0.34
    height = len(steps) * (box + gap) + 0.04
    ax = new_axes(3.6, height)
    ax.set_position([0, 0, 1, 1])
    ax.set_axis_off()
    ax.set_xlim(0, 3.6)
    ax.set_ylim(height, 0)
    for i, step in enumerate(steps):
        top = i * (box + gap) + gap
        if i > 0:
            arrow = {"arrowstyle": "->", "color": INK}
            ax.annotate("", (0.3, top), (0.3, top - gap), arrowprops=arrow)
        side = "left" if i > 0 else "center"
        x = 0.42 if i > 0 else 1.8
        ax.text(x, top - 0.12, step["adds"], color=INK, fontsize=8, ha=side)
        ax.add_patch(
            Rectangle((0.03, top), 3.54, box, facecolor=LIGHT, edgecolor=INK, lw=0.8)
        )
        ax.text(
            0.14, top + 0.24, step["name"], color=DARK, fontsize=9, fontweight="bold"
        )
        ax.text(0.14, top + 0.48, step["computes"], color=DARK, fontsize=8)
        count = len(step["weights"])
        left = 3.49 - count * 0.48
        ax.text(
            left - 0.04, top + 0.24, step["section"], color=DARK, fontsize=8, ha="right"
        )
        for k, weights in enumerate(step["weights"]):
            _grid(ax, left + k * 0.48 + 0.02, top + 0.09, weights, 0.44)
    return ax


def _check_mechanism(name, step):
    validate.instance(name, step, dict, f"Pass the entries {', '.join(MECHANISM)}.")
    missing = [key for key in MECHANISM if key not in step]
    if missing:
        raise ValueError(
            f"{name} must hold the entries {', '.join(MECHANISM)}, but got only "
            f"{', '.join(step) or 'none'}. Add {', '.join(missing)}."
        )
    name = f"weights of {step['name']!r}"
    checks.entries(name, step["weights"], 4)
    for weights in step["weights"]:
        checks.shape(name, weights, "t t")
        checks.finite(name, weights)


def _grid(ax, x, y, weights, size):
    cell = size / len(weights)
    largest = float(weights.detach().max())
    for i, line in enumerate(weights.tolist()):
        for j, weight in enumerate(line):
            color = WEIGHTS(round(weight / largest, 3)) if weight > 0 else "white"
            corner = (x + j * cell, y + i * cell)
            patch = Rectangle(corner, cell, cell, facecolor=color, edgecolor="white")
            patch.set_linewidth(0.4)
            ax.add_patch(patch)
    ax.add_patch(
        Rectangle((x, y), size, size, fill=False, edgecolor=DARK, linewidth=0.6)
    )
