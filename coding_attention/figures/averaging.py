"""Figures of the averaging route: the mean as a matrix product, and layer norm."""

import torch

from coding_attention.figures.base import (
    BLUE,
    INK,
    TITLE,
    VERMILION,
    block,
    canvas,
    check,
    frame,
    legend,
    new_axes,
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
    """
    check(left=(left, "n m"), right=(right, "m k"), names=(names, "3"))
    parts = (left, right, left @ right)
    gap, top, high = 0.2, 0.26, 0.29
    columns = sum(part.shape[1] for part in parts)
    wide = min(0.47, (3.5 - 2 * gap) / columns)
    decimals = 4 if wide > 0.46 else 2
    ax = canvas(
        columns * wide + 2 * gap + 0.1, top + high * max(map(len, parts)) + 0.05
    )
    x = 0.05
    for part, name, sign in zip(parts, names, ("", "@", "="), strict=True):
        if sign:
            ax.text(
                x - gap / 2, top + high * max(map(len, parts)) / 2, sign, color=INK,
                ha="center", va="center", fontsize=TITLE,
            )  # fmt: skip
        block(ax, x, top, part, (wide, high), name, decimals=decimals)
        if row is not None and part is not right:
            frame(ax, x, top + row * high, part.shape[1] * wide, high)
        x += part.shape[1] * wide + gap
    return ax


@styled
def running_mean(x, means, ylabel):
    """Draw a sequence of numbers and the mean of each with all before it.

    Args:
        x: one number a token, (t,).
        means: the running means, (t,).
        ylabel: what the numbers are.

    Returns:
        Axes with dots for ``x`` and a line for ``means``.
    """
    t = check(x=(x, "t"), means=(means, "t"))["t"]
    ax = new_axes(3.6, 2.3)
    ax.set_position([0.16, 0.2, 0.82, 0.66])
    positions = range(1, t + 1)
    ax.axhline(0, color=INK, lw=0.6)
    ax.vlines(positions, means.tolist(), x.tolist(), color=VERMILION, lw=0.8)
    ax.plot(positions, x.tolist(), "o", color=VERMILION, ms=5, label="its own")
    ax.plot(
        positions, means.tolist(), "s-", color=BLUE, ms=4, lw=2,
        label="mean of it and its past",
    )  # fmt: skip
    ax.set_xticks(positions, [str(i) for i in positions])
    ax.set_xlabel("token")
    ax.set_ylabel(ylabel)
    legend(ax)
    return ax


@styled
def spread(groups):
    """Draw the mean of each vector against its standard deviation.

    Args:
        groups: dict of name -> matrix (n, m), whose n rows become one dot each; one
            group or two, and m at least 2.

    Returns:
        Axes with one set of dots for each group, later groups on top.
    """
    ax = new_axes(3.6, 2.5)
    ax.set_position([0.16, 0.19, 0.8, 0.68])
    looks = ((BLUE, "o", 3), (VERMILION, "D", 6))
    for (name, vectors), look in zip(groups.items(), looks, strict=False):
        check(**{f"groups[{name!r}]": (vectors, "n m")})
        # Rounded, so that the last bit of a sum does not move a dot.
        means = torch.round(vectors.mean(dim=1), decimals=4).tolist()
        stds = torch.round(vectors.std(dim=1), decimals=4).tolist()
        color, marker, size = look
        ax.plot(means, stds, marker, color=color, ms=size, label=name)
    ax.set_xlabel("mean")
    ax.set_ylabel("standard deviation")
    legend(ax)
    return ax
