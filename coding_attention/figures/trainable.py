"""Figures of section 3.4: one query, and why scores are divided."""

from matplotlib.patches import Rectangle
from matplotlib.ticker import NullLocator

from attention.functional import attention_weights
from coding_attention.figures.base import (
    BLUE,
    DARK,
    EDGE,
    GREEN,
    INK,
    KEY,
    LIGHT,
    QUERY,
    SMALL,
    VALUE,
    VERMILION,
    WEIGHTS,
    check,
    legend,
    new_axes,
    number,
    styled,
)


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
    """
    sizes = check(
        query=(query, "d_k"), keys=(keys, "t d_k"), values=(values, "t d_out"),
        tokens=(tokens, "t"),
    )  # fmt: skip
    d_k, d_out = sizes["d_k"], sizes["d_out"]
    query, keys, values = query.detach(), keys.detach(), values.detach()
    scores = keys @ query  # (t, d_k) @ (d_k,) -> (t,)
    weights = attention_weights(query, keys)
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
    _cells(ax, 0, 0, query, QUERY)
    heads = [(d_k / 2, "key"), (d_k + 0.7, "score"), (d_k + 1.7, "weight")]
    for column, head in [*heads, (first_value + d_out / 2, "value")]:
        ax.text(column, 1.2, head, ha="center", va="center", color=INK, fontsize=SMALL)
    for i, token in enumerate(tokens):
        row = i + 2
        _name(ax, row, token)
        _cells(ax, row, 0, keys[i], KEY)
        _cells(ax, row, d_k + 0.2, scores[i : i + 1], LIGHT)
        share = round(float(weights[i]), 3)
        _cells(ax, row, d_k + 1.2, weights[i : i + 1], WEIGHTS(share))
        _cells(ax, row, first_value, values[i], VALUE)
    _cells(ax, rows - 1.25, first_value, weights @ values, VALUE, VERMILION)
    ax.text(
        first_value - 0.12, rows - 1.25, "sum of weight × value: z", color=INK,
        ha="right", va="center", fontsize=SMALL,
    )  # fmt: skip
    ax.text(
        d_k + 0.12, 0, f"of {name}", color=INK, ha="left", va="center", fontsize=SMALL
    )
    return ax


def _name(ax, row, text):
    ax.text(-0.12, row, text, ha="right", va="center", color=INK, fontsize=SMALL)


def _cells(ax, row, column, numbers, color, edge=EDGE):
    for i, value in enumerate(numbers.tolist()):
        ax.add_patch(
            Rectangle((column + i, row - 0.5), 1, 1, facecolor=color, edgecolor=edge)
        )
        ax.text(
            column + i + 0.5, row, number(value, 3), color=DARK, fontsize=SMALL,
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
    """
    for name, line in lines.items():
        check(widths=(widths, "n"), **{f"lines[{name!r}]": (line, "n")})
    ax = new_axes(3.4, 2.3)
    ax.set_position([0.19, 0.18, 0.78, 0.68])
    looks = zip((VERMILION, BLUE, GREEN), "os^", strict=True)
    for (name, line), (color, marker) in zip(lines.items(), looks, strict=False):
        ax.plot(widths, line, color=color, marker=marker, ms=5, lw=2, label=name)
    ax.set_xscale("log", base=2)
    if log:
        ax.set_yscale("log", base=2)
        # The ticks of the other axis fit: a variance that grows with the width.
        ax.set_yticks(widths, [str(width) for width in widths], fontsize=SMALL)
    ax.set_xticks(widths, [str(width) for width in widths], fontsize=SMALL)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_locator(NullLocator())
    ax.set_xlabel("width d_k")
    ax.set_ylabel(ylabel)
    legend(ax, len(lines), 1.5)
    return ax
