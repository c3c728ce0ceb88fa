"""Figures of section 3.5: from scores to masked weights, dropout."""

import torch

from coding_attention.figures.base import (
    INK,
    LIGHT,
    SMALL,
    TITLE,
    VERMILION,
    are_weights,
    arrow,
    cell,
    check,
    matrix,
    new_axes,
    number,
    shade,
    styled,
)


@styled
def steps(rows, tokens, title=None):
    """Draw one row of a matrix as it changes from step to step.

    Args:
        rows: dict of name -> vector (t,), in the order of the steps. The first row
            of weights, and all after it, have the color of weights.
        tokens: t labels above the first row.
        title: short text above all.

    Returns:
        Axes with one named row of t cells for each step, and arrows between them.
    """
    t, n, step = len(tokens), len(rows), 1.9
    ax = _bare_axes(3.6, 0.28 * (n * step + 1.4), t)
    ax.set_ylim(n * step - 0.8, -2.2)
    _write(ax, t / 2, -1.8, title or "", TITLE)
    for j, token in enumerate(tokens):
        _write(ax, j + 0.5, -1.1, token)
    kind = "numbers"
    for i, (name, row) in enumerate(rows.items()):
        check(tokens=(tokens, "t"), **{f"rows[{name!r}]": (row, "t")})
        top = i * step
        if i:
            arrow(ax, (0.3, top - 0.85), (0.3, top - 0.02), gap=0)
        left = 0.5 if i else 0.05
        ax.text(left, top - 0.35, name, fontsize=SMALL, va="center", color=INK)
        values = row.detach().unsqueeze(0)
        kind = "weights" if kind == "weights" or are_weights(values) else kind
        colors = shade(values, kind)[0]
        for j, value in enumerate(row.tolist()):
            cell(ax, j, top, 1, 1, colors[j], number(value))
    return ax


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
    """
    check(tokens=(tokens, "t"), weights=(weights, "t t"), keep=(keep, "t t"))
    t = len(tokens)
    seen = torch.ones(t, t).tril().bool()
    result = weights * keep / (1 - rate)  # (t, t)
    head = 0.09 * max(len(str(token)) for token in [*tokens, "sum"])
    margin, width, height = 0.64, 3.6, 0.31 * t + 0.34 + head
    ax = new_axes(width, height)
    ax.set_position([margin / width, 0.05 / height, 0.815, 0.31 * t / height])
    hidden = ~(seen & keep)
    matrix(result, tokens, (), title, 3, blank=hidden, kind="weights", ax=ax)
    ax.set_xticks([*(j + 0.5 for j in range(t)), t + 0.62], [*tokens, "sum"])
    ax.tick_params(axis="x", rotation=90)
    for i, j in (seen & ~keep).nonzero().tolist():
        cell(ax, j, i, 1, 1, LIGHT)
        for ends in ((i + 0.2, i + 0.8), (i + 0.8, i + 0.2)):
            ax.plot((j + 0.2, j + 0.8), ends, color=VERMILION, lw=1.2)
    for i, total in enumerate(result.sum(dim=-1).tolist()):
        _write(ax, t + 0.62, i + 0.5, number(total, 3))
    ax.set_xlim(-0.03, t + 1.15)
    ax.set_ylim(t + 0.03, -0.03)
    return ax


def _bare_axes(width, height, columns):
    ax = new_axes(width, height)
    ax.set_position([0.01, 0.01, 0.98, 0.98])
    ax.set_axis_off()
    ax.set_xlim(0, columns)
    return ax


def _write(ax, x, y, text, size=SMALL):
    look = {"color": INK, "ha": "center", "va": "center_baseline", "fontsize": size}
    ax.text(x, y, text, **look)
