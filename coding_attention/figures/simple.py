"""Vectors as arrows, as in section 3.3, and numbers as bars."""

import torch

from coding_attention.figures import words
from coding_attention.figures.base import (
    BLUE,
    GREEN,
    INK,
    SMALL,
    VERMILION,
    arrow,
    check,
    describe,
    legend,
    new_axes,
    styled,
)
from coding_attention.figures.labels import beside


@styled
def arrows(vectors, tokens, xlabel, ylabel, highlight=()):
    """Draw vectors of two numbers as arrows from the origin.

    Args:
        vectors: (t, 2).
        tokens: t labels, written beside the tips.
        xlabel: what the first number is.
        ylabel: what the second number is.
        highlight: labels whose arrows stand out.

    Returns:
        Axes with one arrow a token.
    """
    check(vectors=(vectors, "t 2"), tokens=(tokens, "t"))
    ax = new_axes(3.6, 3.2)
    points = vectors.tolist()
    # The limits hold the origin and every tip, and leave room for the labels.
    lows = [min(0, *column) for column in zip(*points, strict=True)]
    highs = [max(0, *column) for column in zip(*points, strict=True)]
    spans = [high - low or 1 for low, high in zip(lows, highs, strict=True)]
    left = 0.14 if lows[1] == 0 else 0.2  # a minus sign takes room
    ax.set_position([left, 0.15, 0.95 - left, 0.82])
    for point, token in zip(points, tokens, strict=True):
        color = VERMILION if token in highlight else BLUE
        arrow(ax, (0, 0), tuple(point), color, 2, gap=0)
    ax.set_xlim(1.1 * lows[0], highs[0] + 0.25 * spans[0])
    ax.set_ylim(1.1 * lows[1], highs[1] + 0.1 * spans[1])
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    beside(ax, tokens, points, [((0, 0), point) for point in points])
    return ax


@styled
def bars(groups, labels):
    """Draw vectors of weights as bars, one group a label, with their values.

    Args:
        groups: dict of name -> vector (t,), one to three of them.
        labels: t labels.

    Returns:
        Axes with horizontal bars.
    """
    looks = (BLUE, VERMILION, GREEN)
    for name, values in groups.items():
        check(labels=(labels, "t"), **{f"groups[{name!r}]": (values, "t")})
    groups = {name: values.detach() for name, values in groups.items()}
    colors = dict(zip(groups, looks, strict=False))
    figure_height = 0.5 + 0.21 * len(labels) * len(groups)
    # Of that, 0.82 are bars; few of them leave little room above for the legend.
    more = max(0, 0.21 - 0.15 * figure_height)
    ax = new_axes(3.6, figure_height + more)
    height = 0.8 / len(groups)
    for i, (name, values) in enumerate(groups.items()):
        for row, value in enumerate(values.tolist()):
            y = row + (i - (len(groups) - 1) / 2) * height
            ax.barh(
                y, value, height, color=colors[name], label=name if row == 0 else ""
            )
            ax.annotate(
                f"{value:.4f}", (max(value, 0), y), xytext=(3, 0),
                textcoords="offset points", va="center_baseline", fontsize=SMALL,
            )  # fmt: skip
    smallest = min(float(v.min()) for v in groups.values())
    largest = max(float(v.max()) for v in groups.values())
    # Zero stays in view, and right of it there is room for the numbers.
    left = min(0, smallest * 1.1)
    right = largest * 1.2 if largest > 0 else -0.2 * smallest or 1
    for value in torch.cat(list(groups.values())).tolist():
        # The share of the axes, 2.844 inches wide, that the number takes.
        text = f" {value:.4f}"
        digits = sum(sign.isdigit() for sign in text)
        share = (0.075 * digits + 0.0376 * (len(text) - digits)) / 2.844
        right = max(right, (max(value, 0) - share * left) / (1 - share))
    ax.set_xlim(left, right)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    ax.set_yticks(range(len(labels)), labels, fontsize=SMALL)
    ax.set_xticks([])
    ax.spines["bottom"].set_visible(False)
    ax.axvline(0, color=INK, lw=0.8)
    share = figure_height / (figure_height + more)
    ax.set_position([0.215, 0.03 * share, 0.75, 0.82 * share])
    legend(ax, len(groups))
    return describe(ax, "", words.bars(groups, labels))
