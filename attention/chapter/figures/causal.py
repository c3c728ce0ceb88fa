"""Figures of section 3.5: what a token may see, masks, and dropout."""

import torch
from matplotlib.patches import Rectangle

from attention.chapter.figures import checks
from attention.chapter.figures.base import (
    BLUE,
    DARK,
    INK,
    LIGHT,
    SKY,
    VERMILION,
    matrix,
    new_axes,
    number,
    styled,
)


@styled
def sight(tokens, title=None):
    """Draw which tokens each token may see: itself and its past.

    Args:
        tokens: t labels, short enough for a cell.
        title: short text above the cells.

    Returns:
        Axes with t rows. A row holds the tokens that its last one sees; the last one
        is framed, and what comes later is an empty cell with a dashed edge.

    Raises:
        TypeError, ValueError: the tokens are no list, or there is none.
    """
    t = checks.entries("tokens", tokens)
    height = 0.31 * t + 0.3
    ax = _bare_axes(3.5, height, t)
    ax.set_ylim(t + 0.05, -0.9)
    if title is not None:
        ax.text(t / 2, -0.4, title, fontsize=9, ha="center", va="center", color=INK)
    for i in range(t):
        for j, token in enumerate(tokens):
            box = (j + 0.04, i + 0.06), 0.92, 0.88
            if j > i:
                ax.add_patch(Rectangle(*box, fill=False, edgecolor=INK, ls=":", lw=0.8))
                continue
            color = BLUE if j == i else SKY
            edge = VERMILION if j == i else color
            ax.add_patch(Rectangle(*box, facecolor=color, edgecolor=edge, lw=1.5))
            _write(ax, j + 0.5, i + 0.5, token, DARK)
    return ax


@styled
def steps(rows, tokens, title=None):
    """Draw one row of a matrix as it changes from step to step.

    Args:
        rows: dict of name -> vector (t,), in the order of the steps.
        tokens: t labels above the first row.
        title: short text above all.

    Returns:
        Axes with one named row of t cells for each step, and arrows between them.

    Raises:
        TypeError, ValueError: no token or no row, or one without a number a token.
    """
    t, step = checks.entries("tokens", tokens), 1.9
    checks.named("rows", rows)
    for name, row in rows.items():
        checks.shape(f"rows[{name!r}]", row, "t", t=t)
    n = len(rows)
    ax = _bare_axes(3.4, 0.27 * (n * step + 1.4), t)
    ax.set_ylim(n * step - 0.8, -2.2)
    if title is not None:
        ax.text(t / 2, -1.85, title, fontsize=9, ha="center", va="center", color=INK)
    for j, token in enumerate(tokens):
        _write(ax, j + 0.5, -1.1, token, INK)
    for i, (name, row) in enumerate(rows.items()):
        top = i * step
        if i:
            arrow = {"arrowstyle": "->", "color": INK}
            ax.annotate("", (0.3, top - 0.02), (0.3, top - 0.85), arrowprops=arrow)
        left = 0.5 if i else 0.05
        ax.text(left, top - 0.35, name, fontsize=8, va="center", color=INK)
        _cells(ax, top, row)
    return ax


def _cells(ax, top, row):
    for j, value in enumerate(row.tolist()):
        # What is hidden or gone takes the pale color, what counts the blue one.
        color = LIGHT if value in (0.0, -float("inf")) else SKY
        ax.add_patch(Rectangle((j, top), 1, 1, facecolor=color, edgecolor="white"))
        _write(ax, j + 0.5, top + 0.5, number(value), DARK)


@styled
def dropped(weights, keep, tokens, rate, title=None):
    """Draw causal weights after dropout with a given mask, and the sum of each row.

    Args:
        weights: causal attention weights (t, t), zero above the diagonal.
        keep: boolean (t, t), False where a weight is dropped.
        tokens: t labels.
        rate: share that dropout drops; what stays is divided by 1 - rate.
        title: short text above the cells.

    Returns:
        Axes with t columns of weights, dropped ones crossed out, and one of sums.

    Raises:
        TypeError, ValueError: the shapes and the tokens do not fit each other, the
            mask is not boolean, or the rate is outside [0, 1).
    """
    t = checks.entries("tokens", tokens)
    checks.shape("weights", weights, "t t", t=t)
    checks.shape("keep", keep, "t t", t=t)
    checks.boolean("keep", keep)
    advice = "Pass the share that dropout drops, such as 0.5; 1 would leave nothing."
    checks.number("rate", rate, 0, 1, advice)
    seen = torch.ones(t, t).tril().bool()
    result = weights * keep / (1 - rate)  # (t, t)
    margin, width, height = 0.62, 3.6, 0.31 * t + 0.44
    ax = new_axes(width, height)
    ax.set_position([margin / width, 0.05 / height, 0.82, 0.31 * t / height])
    matrix(
        result, tokens, [*tokens, "sum"], title, blank=~(seen & keep), signed=False,
        ax=ax,
    )  # fmt: skip
    ax.set_xticks([*(j + 0.5 for j in range(t)), t + 0.6], [*tokens, "sum"], fontsize=7)
    for i, j in (seen & ~keep).nonzero().tolist():
        ax.add_patch(Rectangle((j, i), 1, 1, facecolor=LIGHT, edgecolor="white"))
        for ends in ((i + 0.2, i + 0.8), (i + 0.8, i + 0.2)):
            ax.plot((j + 0.2, j + 0.8), ends, color=VERMILION, lw=1.2)
    for i, total in enumerate(result.sum(dim=-1).tolist()):
        _write(ax, t + 0.6, i + 0.5, number(total), INK)
    ax.set_xlim(-0.03, t + 1.15)
    ax.set_ylim(t + 0.03, -0.03)
    return ax


def cropped_mask(mask, num_tokens, title=None):
    """Draw a mask and frame the corner that a shorter input uses.

    Args:
        mask: (context_length, context_length), 1 where a score is hidden.
        num_tokens: tokens of the input, at most context_length.
        title: short text above the cells.

    Returns:
        Axes with the mask's cells and one frame of num_tokens rows and columns.

    Raises:
        TypeError, ValueError: the mask is not square, or smaller than the input.
    """
    mask = checks.tensor("mask", mask)
    size, _ = checks.shape("mask", mask, "context_length context_length")
    checks.count("num_tokens", num_tokens, 1, size, "the tokens that the mask covers")
    ax = matrix(mask, title=title, decimals=0)
    frame = Rectangle(
        (0, 0), num_tokens, num_tokens, fill=False, edgecolor=VERMILION, lw=2.2,
        clip_on=False,
    )  # fmt: skip
    ax.add_patch(frame)
    return ax


def _bare_axes(width, height, columns):
    ax = new_axes(width, height)
    ax.set_position([0.01, 0.01, 0.98, 0.98])
    ax.set_axis_off()
    ax.set_xlim(0, columns)
    return ax


def _write(ax, x, y, text, color):
    ax.text(
        x, y, text, color=color, ha="center", va="center_baseline", fontsize=7.5
    )  # fmt: skip
