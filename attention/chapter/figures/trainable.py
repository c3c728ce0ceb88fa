"""Figures of section 3.4: projections, one query, and why scores are divided."""

import torch
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullLocator

from attention.chapter.figures import checks
from attention.chapter.figures.base import (
    BLUE,
    DARK,
    GREEN,
    INK,
    LIGHT,
    SKY,
    VERMILION,
    WEIGHTS,
    arrow,
    new_axes,
    number,
    shape_box,
    styled,
)

WARM = "#fbe8c4"  # ORANGE, light enough for dark text


@styled
def flow(x, W_query, W_key, W_value):
    """Draw how inputs become context vectors, with the shape of every step.

    Args:
        x: token vectors (t, d_in).
        W_query: (d_in, d_k).
        W_key: (d_in, d_k).
        W_value: (d_in, d_out).

    Returns:
        Axes with seven boxes, joined by arrows.

    Raises:
        TypeError, ValueError: a shape does not fit the others.
    """
    t, d_in = checks.shape("x", x, "t d_in")
    _, d_k = checks.shape("W_query", W_query, "d_in d_k", d_in=d_in)
    checks.shape("W_key", W_key, "d_in d_k", d_in=d_in, d_k=d_k)
    checks.shape("W_value", W_value, "d_in d_out", d_in=d_in)
    ax = new_axes(3.6, 3.3)
    ax.set_position([0, 0, 1, 1])
    ax.set_axis_off()
    ax.set_xlim(0, 3.6)
    ax.set_ylim(3.3, 0)
    shape_box(ax, 1.8, 0.24, 1.0, "inputs x", x.shape, LIGHT)
    shape_box(ax, 0.6, 1.09, 1.0, "queries q", (t, W_query.shape[1]), SKY)
    shape_box(ax, 1.8, 1.09, 1.0, "keys k", (t, W_key.shape[1]), SKY)
    shape_box(ax, 3.0, 1.09, 1.0, "values v", (t, W_value.shape[1]), WARM)
    shape_box(ax, 1.2, 1.79, 1.0, "scores ω", (t, t), LIGHT)
    shape_box(ax, 1.2, 2.44, 1.0, "weights α", (t, t), LIGHT)
    shape_box(ax, 2.1, 3.04, 1.5, "context vectors z", (t, W_value.shape[1]), WARM)
    for center, name in ((0.6, "W_query"), (1.8, "W_key"), (3.0, "W_value")):
        arrow(ax, (1.8 + (center - 1.8) * 0.3, 0.44), (center, 0.87))
        # On the way, moved aside so that the arrow does not cross the name.
        ax.text(
            1.8 + (center - 1.8) * 0.72 + (0.08 if center >= 1.8 else -0.08), 0.62,
            name, ha="left" if center >= 1.8 else "right", fontsize=8, color=INK,
        )  # fmt: skip
    arrow(ax, (0.6, 1.29), (1.05, 1.57))
    arrow(ax, (1.8, 1.29), (1.35, 1.57))
    ax.text(1.82, 1.5, "dot products", fontsize=8, color=INK)
    arrow(ax, (1.2, 1.99), (1.2, 2.22))
    ax.text(1.28, 2.14, "divide by √d_k, softmax", fontsize=8, color=INK)
    arrow(ax, (1.2, 2.64), (1.75, 2.82))
    arrow(ax, (3.0, 1.29), (2.75, 2.82))
    ax.text(1.85, 2.7, "weighted sum", fontsize=8, color=INK)
    return ax


@styled
def one_query(query, keys, values, tokens, name):
    """Draw how one query becomes its context vector, one row a token.

    Args:
        query: (d_k,).
        keys: (t, d_k).
        values: (t, d_out).
        tokens: t labels.
        name: the label of the query.

    Returns:
        Axes with t + 2 rows: the query, the tokens, the context vector. The columns
        are a token's key, its score, its weight and its value.

    Raises:
        TypeError, ValueError: a shape does not fit the others or the page.
    """
    (d_k,) = checks.shape("query", query, "d_k")
    t, _ = checks.shape("keys", keys, "t d_k", d_k=d_k)
    _, d_out = checks.shape("values", values, "t d_out", t=t)
    checks.labels("tokens", tokens, t, "keys")
    query, keys, values = query.detach(), keys.detach(), values.detach()
    scores = keys @ query  # (t, d_k) @ (d_k,) -> (t,)
    weights = torch.softmax(scores / d_k**0.5, dim=0)
    first_value = d_k + 2.4
    columns = d_k + d_out + 2.4
    margin, cell, height = 0.68, min(0.47, 2.86 / columns), 0.29
    rows = len(tokens) + 3.4
    ax = new_axes(margin + cell * columns + 0.06, height * rows)
    ax.set_position([0, 0, 1, 1])
    ax.set_axis_off()
    ax.set_xlim(-margin / cell, columns + 0.06 / cell)
    ax.set_ylim(rows - 0.6, -0.6)
    _name(ax, 0, "query")
    _cells(ax, 0, 0, query, SKY)
    heads = [(d_k / 2, "key"), (d_k + 0.7, "score"), (d_k + 1.7, "weight")]
    for column, head in [*heads, (first_value + d_out / 2, "value")]:
        ax.text(column, 1.2, head, ha="center", va="center", color=INK, fontsize=8)
    for i, token in enumerate(tokens):
        row = i + 2
        _name(ax, row, token)
        _cells(ax, row, 0, keys[i], SKY)
        _cells(ax, row, d_k + 0.2, scores[i : i + 1], LIGHT)
        share = round(float(weights[i] / weights.max()), 3)
        _cells(ax, row, d_k + 1.2, weights[i : i + 1], WEIGHTS(share))
        _cells(ax, row, first_value, values[i], WARM)
    _cells(ax, rows - 1.25, first_value, weights @ values, WARM, VERMILION)
    ax.text(
        first_value - 0.12, rows - 1.25, "sum of weight × value: z", color=INK,
        ha="right", va="center", fontsize=8,
    )  # fmt: skip
    ax.text(d_k + 0.12, 0, f"of {name}", color=INK, ha="left", va="center", fontsize=8)
    return ax


def _name(ax, row, text):
    ax.text(-0.12, row, text, ha="right", va="center", color=INK, fontsize=8)


def _cells(ax, row, column, numbers, color, edge="white"):
    for i, value in enumerate(numbers.tolist()):
        ax.add_patch(
            Rectangle((column + i, row - 0.5), 1, 1, facecolor=color, edgecolor=edge)
        )
        ax.text(
            column + i + 0.5, row, number(value), color=DARK, fontsize=7,
            ha="center", va="center_baseline",
        )  # fmt: skip


@styled
def growth(widths, lines, ylabel, log=False):
    """Draw what depends on a width, one line for each way of computing it.

    Args:
        widths: the widths on the horizontal axis, (n,), each a power of two.
        lines: dict of name -> n finite numbers, one to three of them.
        ylabel: what the numbers are.
        log: whether the vertical axis is logarithmic.

    Returns:
        Axes with one marked line for each entry of ``lines``.

    Raises:
        TypeError: a line holds no numbers.
        ValueError: too many lines, or one that has not one finite number a width, or
            with ``log`` one that is not above zero.
    """
    checks.groups("lines", lines, 3)
    lines = {
        name: checks.numbers(f"lines[{name!r}]", line, len(widths), "widths")
        for name, line in lines.items()
    }
    if log and min(min(line) for line in lines.values()) <= 0:
        raise ValueError(
            "lines must hold numbers above 0 on a logarithmic axis, but the smallest "
            f"is {min(min(line) for line in lines.values())}. Pass log=False."
        )
    ax = new_axes(3.4, 2.3)
    ax.set_position([0.19, 0.18, 0.78, 0.68])
    looks = zip((VERMILION, BLUE, GREEN), "os^", strict=True)
    for (name, line), (color, marker) in zip(lines.items(), looks, strict=False):
        ax.plot(widths, line, color=color, marker=marker, ms=5, lw=2, label=name)
    ax.set_xscale("log", base=2)
    if log:
        ax.set_yscale("log", base=2)
        # The ticks of the other axis fit: a variance that grows with the width.
        ax.set_yticks(widths, [str(width) for width in widths], fontsize=8)
    ax.set_xticks(widths, [str(width) for width in widths], fontsize=8)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_locator(NullLocator())
    ax.tick_params(labelsize=8)
    ax.set_xlabel("width d_k", fontsize=8)
    ax.set_ylabel(ylabel, fontsize=8)
    ax.legend(
        loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=len(lines), fontsize=8,
        frameon=False, labelcolor=INK, borderaxespad=0.1, handlelength=1.5,
    )  # fmt: skip
    return ax


@styled
def histogram(groups, xlabel, bins=20):
    """Draw how densely random numbers fall where, each group on its own ground line.

    Args:
        groups: dict of name -> tensor of any shape, one or two of them; each fills
            ``bins`` bars from its smallest number to its largest.
        xlabel: what the numbers are.
        bins: how many bars a group gets.

    Returns:
        Axes with one row of bars for each group; bars of one area hold as many numbers.

    Raises:
        ValueError: too many groups, or one without two different, finite numbers.
    """
    checks.groups("groups", groups, 2)
    for name, values in groups.items():
        checks.finite(f"groups[{name!r}]", values)
        if values.numel() == 0 or values.min() == values.max():
            raise ValueError(
                f"groups[{name!r}] must hold at least two different numbers, but holds "
                f"{values.numel()} that do not differ. A bar would have no width."
            )
    ax = new_axes(3.4, 0.5 + 0.7 * len(groups))
    ax.set_position([0.04, 0.24, 0.92, 0.74])
    ground = 0.0
    for (name, values), color in zip(groups.items(), (BLUE, VERMILION), strict=False):
        values = values.detach()
        low, high = float(values.min()), float(values.max())
        step = (high - low) / bins
        density = torch.histc(values, bins, low, high) / values.numel() / step
        edges = [low + i * step for i in range(bins)]
        ax.bar(edges, density.tolist(), step, ground, align="edge", color=color)
        top = ground + float(density.max())
        ax.text(low, top * 1.03, name, color=INK, fontsize=8, va="bottom")
        ground = top * 1.35
    ax.set_ylim(0, ground)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.tick_params(labelsize=8)
    ax.set_xlabel(xlabel, fontsize=8)
    return ax
