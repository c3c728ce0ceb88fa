"""Figures of trained heads: patterns, training curves, the induction circuit."""

from coding_attention.figures import words
from coding_attention.figures.base import (
    BLUE,
    GREEN,
    INK,
    LIGHT,
    ORANGE,
    PURPLE,
    TEXT,
    TOKEN,
    VERMILION,
    arrow,
    canvas,
    cell,
    check,
    describe,
    frame,
    legend,
    new_axes,
    shade,
    styled,
)

COLORS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE)


@styled
def pattern(weights, rows, columns, title=None, marked=()):
    """Draw attention weights as squares without numbers, darker for larger.

    Args:
        weights: (t_q, t_k), from 0 to 1.
        rows: t_q labels, one for each query.
        columns: t_k labels, one for each key.
        title: short text above the squares.
        marked: (row, column) squares to frame.

    Returns:
        Axes with one square for each weight.
    """
    check(weights=(weights, "t_q t_k"), rows=(rows, "t_q"), columns=(columns, "t_k"))
    t_q, t_k = weights.shape
    left = 0.12 + 0.072 * max(len(str(label)) for label in rows)
    above = 0.12 + 0.072 * max(len(str(label)) for label in columns)
    above += 0.24 * (title is not None)
    # Two of six tokens stand side by side on a phone.
    side = min(0.21 if t_k <= 6 else 0.24, (3.5 - left) / t_k)
    width, height = left + side * t_k + 0.05, above + side * t_q + 0.05
    ax = new_axes(width, height)
    ax.set_position(
        [left / width, 0.05 / height, side * t_k / width, side * t_q / height]
    )
    for i, line in enumerate(shade(weights.detach(), "weights")):
        for j, color in enumerate(line):
            cell(ax, j, i, 1, 1, color)
    for i, j in marked:
        frame(ax, j, i)
    ax.set_xlim(0, t_k)
    ax.set_ylim(t_q, 0)
    # Words are turned; a digit or two find room as they are.
    turned = 90 if max(len(str(label)) for label in columns) > 2 else 0
    ax.set_xticks([j + 0.5 for j in range(t_k)], columns, rotation=turned)
    ax.set_yticks([i + 0.5 for i in range(t_q)], rows)
    ax.tick_params(length=0, pad=2, labeltop=True, labelbottom=False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    if title is not None:
        ax.set_title(title, pad=4)
    alt = words.pattern(weights.detach(), rows, columns, title, marked)
    return describe(ax, "", alt)


@styled
def curves(steps, groups, xlabel, ylabel, levels=None):
    """Draw numbers over training, one line for each series.

    Args:
        steps: n positions on the x axis.
        groups: dict of name -> list of series, each of n numbers from 0 on; one to
            five of them. Series of one group share a color; the group's name stands in
            the legend.
        xlabel: what the positions are.
        ylabel: what the numbers are.
        levels: dict of name -> number from 0 on, drawn as dashed lines.

    Returns:
        Axes with a line for each series.
    """
    rows = (len(groups) + 1) // 2
    ax = new_axes(3.6, 2.3 + 0.2 * rows)
    height = ax.figure.get_figheight()
    ax.set_position([0.15, 0.44 / height, 0.82, 1.7 / height])
    for (name, series), color in zip(groups.items(), COLORS, strict=False):
        for k, values in enumerate(series):
            check(steps=(steps, "n"), **{f"groups[{name!r}][{k}]": (values, "n")})
            label = name if k == 0 else None
            ax.plot(steps, values, "-", color=color, lw=1.6, label=label)
    for name, level in (levels or {}).items():
        ax.axhline(level, color=INK, lw=0.8, ls="--")
        ax.annotate(
            name, (steps[-1], level), xytext=(0, 2), textcoords="offset points",
            ha="right", va="bottom", fontsize=TEXT,
        )  # fmt: skip
    ax.set_ylim(bottom=0)
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    legend(ax)
    return describe(ax, "", words.curves(steps, groups, ylabel, levels))


@styled
def circuit(tokens):
    """Draw how two heads copy: look one back, then look for the same.

    Args:
        tokens: three labels, a piece that comes twice: (A, B, C) gives A B C A.

    Returns:
        Axes with four tokens on two levels and the looks between them.
    """
    check(tokens=(tokens, "3"))
    a, b, c = tokens
    ax = canvas(3.6, 2.4)
    centers = (0.46, 1.35, 2.24, 3.13)
    for x, token in zip(centers, (a, b, c, a), strict=True):
        cell(ax, x - 0.43, 1.95, 0.86, 0.3, TOKEN, token)
    # What each vector holds, and below it the word before, once that is known.
    for x, token, before in zip(centers, (a, b, c, a), (None, a, b, None), strict=True):
        held = f"{token}\nafter {before}" if before else token
        cell(ax, x - 0.43, 0.96, 0.86, 0.42, TOKEN, held)
    for start, end in ((0, 1), (1, 2)):
        arrow(ax, (centers[start], 1.94), (centers[end], 1.39), BLUE, 1.8)
    arrow(ax, (centers[1], 0.95), (centers[3], 0.41), VERMILION, 1.8)
    cell(ax, 2.7, 0.1, 0.86, 0.3, LIGHT, f"next: {b}")
    text = {"fontsize": TEXT, "va": "center", "color": INK}
    ax.text(2.36, 1.66, "block one:\nprevious-token", **text)
    ax.text(0.03, 0.55, "block two:\ninduction head", **text)
    return ax
