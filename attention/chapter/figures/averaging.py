"""Figures of the averaging route: the mean as a matrix product, and layer norm."""

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
    new_axes,
    number,
    styled,
)


@styled
def product(left, right, names, row=None):
    """Draw a matrix product with all its numbers: left times right gives the third.

    Args:
        left: (n, m).
        right: (m, k).
        names: three texts, written above the matrices.
        row: a row of the result to frame, with the row of ``left`` it comes from.

    Returns:
        Axes with three blocks of cells.

    Raises:
        TypeError, ValueError: the matrices do not fit each other or the page, or the
            names or the row do not fit the matrices.
    """
    n, m = checks.shape("left", left, "n m")
    checks.shape("right", right, "m k", m=m)
    checks.labels("names", names, 3, "matrices")
    if row is not None:
        checks.index("row", row, n, "rows of the result")
    result = left @ right  # (n, m) @ (m, k) -> (n, k)
    gap, cell = 0.6, 0.42
    second = left.shape[1] + gap
    third = second + right.shape[1] + gap
    columns = third + result.shape[1]
    rows = max(len(left), len(right))
    width = cell * columns + 0.12
    checks.fits_page("the product", width)
    ax = new_axes(width, 0.31 * rows + 0.36)
    ax.set_position([0, 0, 1, 1])
    ax.set_axis_off()
    ax.set_xlim(-0.06 / cell, columns + 0.06 / cell)
    ax.set_ylim(rows + 0.2, -0.95)
    starts = (0, second, third)
    blocks = zip(starts, (left, right, result), names, (SKY, LIGHT, SKY), strict=True)
    for start, block, name, color in blocks:
        _block(ax, start, block, color)
        middle = start + block.shape[1] / 2
        ax.text(middle, -0.3, name, color=INK, ha="center", va="bottom", fontsize=8)
    for start, sign in ((second, "@"), (third, "=")):
        middle = (start - gap / 2, rows / 2)
        ax.text(*middle, sign, color=INK, ha="center", va="center", fontsize=9)
    if row is not None:
        _frame(ax, 0, row, left.shape[1])
        _frame(ax, third, row, result.shape[1])
    return ax


def _block(ax, start, block, color):
    for i, line in enumerate(block.tolist()):
        for j, value in enumerate(line):
            corner = (start + j, i)
            ax.add_patch(Rectangle(corner, 1, 1, facecolor=color, edgecolor="white"))
            ax.text(
                start + j + 0.5, i + 0.5, number(value), color=DARK, ha="center",
                va="center_baseline", fontsize=7,
            )  # fmt: skip


def _frame(ax, start, row, width):
    ax.add_patch(
        Rectangle((start, row), width, 1, fill=False, edgecolor=VERMILION, lw=1.8)
    )


@styled
def running_mean(x, means, ylabel):
    """Draw a sequence of numbers and the mean of each with all before it.

    Args:
        x: one number a token, (t,).
        means: the running means, (t,).
        ylabel: what the numbers are.

    Returns:
        Axes with dots for ``x`` and a line for ``means``.

    Raises:
        TypeError, ValueError: not two vectors of one length with finite numbers.
    """
    (t,) = checks.shape("x", x, "t")
    checks.shape("means", means, "t", t=t)
    for name, numbers in (("x", x), ("means", means)):
        checks.finite(name, numbers)
    ax = new_axes(3.5, 2.2)
    ax.set_position([0.14, 0.19, 0.84, 0.66])
    positions = range(1, t + 1)
    ax.axhline(0, color=INK, lw=0.6)
    ax.vlines(positions, means.tolist(), x.tolist(), color=VERMILION, lw=0.8)
    ax.plot(positions, x.tolist(), "o", color=VERMILION, ms=5, label="the token's own")
    ax.plot(
        positions, means.tolist(), "s-", color=BLUE, ms=4, lw=2,
        label="mean of it and its past",
    )  # fmt: skip
    ax.set_xticks(positions, [str(i) for i in positions])
    ax.tick_params(labelsize=8)
    ax.set_xlabel("token", fontsize=8)
    ax.set_ylabel(ylabel, fontsize=8)
    _legend_above(ax)
    return ax


@styled
def spread(groups):
    """Draw the mean of each vector against its standard deviation.

    Args:
        groups: dict of name -> matrix (n, m), whose n rows become one dot each; one
            group or two, and m at least 2.

    Returns:
        Axes with one set of dots for each group, later groups on top.

    Raises:
        TypeError, ValueError: too many groups, or one that is no such matrix.
    """
    looks = ((BLUE, "o", 3), (VERMILION, "D", 6))
    checks.groups("groups", groups, len(looks))
    for name, vectors in groups.items():
        _, m = checks.shape(f"groups[{name!r}]", vectors, "n m")
        checks.finite(f"groups[{name!r}]", vectors)
        if m < 2:
            raise ValueError(
                f"groups[{name!r}] must hold at least two numbers a row, but got 1. "
                f"One number alone has no standard deviation."
            )
    ax = new_axes(3.5, 2.4)
    ax.set_position([0.16, 0.18, 0.8, 0.68])
    for (name, vectors), (color, marker, size) in zip(
        groups.items(), looks, strict=False
    ):
        # Rounded, so that the last bit of a sum does not move a dot.
        means = torch.round(vectors.mean(dim=1), decimals=4).tolist()
        stds = torch.round(vectors.std(dim=1), decimals=4).tolist()
        ax.plot(means, stds, marker, color=color, ms=size, label=name)
    ax.tick_params(labelsize=8)
    ax.set_xlabel("mean", fontsize=8)
    ax.set_ylabel("standard deviation", fontsize=8)
    _legend_above(ax)
    return ax


def _legend_above(ax):
    ax.legend(
        loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=2, fontsize=8,
        frameon=False, labelcolor=INK, borderaxespad=0.1, handlelength=1,
    )  # fmt: skip
