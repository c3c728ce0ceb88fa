"""Figures of trained heads: patterns, training curves, effects of single heads."""

from matplotlib.patches import Rectangle

from attention.chapter.figures import checks
from attention.chapter.figures.base import (
    BLUE,
    DARK,
    GREEN,
    INK,
    LIGHT,
    ORANGE,
    PURPLE,
    VERMILION,
    WEIGHTS,
    new_axes,
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

    Raises:
        TypeError, ValueError: no matrix of weights from 0 to 1, not one label for each
            row and column, or a mark outside.
    """
    weights = checks.tensor("weights", weights)
    t_q, t_k = checks.shape("weights", weights, "t_q t_k")
    checks.labels("rows", rows, t_q, "rows")
    checks.labels("columns", columns, t_k, "columns")
    checks.between("weights", weights, 0, 1)
    marked = checks.pairs("marked", marked, row=t_q, column=t_k)
    left = 0.12 + 0.062 * max(len(str(label)) for label in rows)
    above = 0.12 + 0.062 * max(len(str(label)) for label in columns)
    above += 0.22 * (title is not None)
    side = min(0.24, (3.5 - left) / t_k)
    width, height = left + side * t_k + 0.05, above + side * t_q + 0.05
    ax = new_axes(width, height)
    ax.set_position(
        [left / width, 0.05 / height, side * t_k / width, side * t_q / height]
    )
    for i, line in enumerate(weights.tolist()):
        for j, weight in enumerate(line):
            # Rounded, so that the last bit of a sum does not change a color.
            color = WEIGHTS(round(weight, 3))
            ax.add_patch(Rectangle((j, i), 1, 1, facecolor=color, edgecolor="white"))
    for i, j in marked:
        frame = Rectangle((j, i), 1, 1, fill=False, edgecolor=VERMILION, lw=1.4)
        ax.add_patch(frame)
    ax.set_xlim(0, t_k)
    ax.set_ylim(t_q, 0)
    ax.set_xticks([j + 0.5 for j in range(t_k)], columns, rotation=90, fontsize=8)
    ax.set_yticks([i + 0.5 for i in range(t_q)], rows, fontsize=8)
    ax.tick_params(length=0, pad=2, labeltop=True, labelbottom=False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    if title is not None:
        ax.set_title(title, fontsize=9, pad=4)
    return ax


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

    Raises:
        TypeError, ValueError: too many groups, a series that has not one number from 0
            on for each position, or a level below 0.
    """
    n = checks.entries("steps", steps)
    steps = checks.numbers("steps", steps, n, "positions")
    checks.groups("groups", groups, len(COLORS))
    groups = {
        name: checks.series(f"groups[{name!r}]", series, n, "steps", 0)
        for name, series in groups.items()
    }
    if levels:
        checks.named("levels", levels)
        for name, level in levels.items():
            advice = "The axis begins at 0 and would not show it."
            checks.number(f"levels[{name!r}]", level, 0, checks.INFINITY, advice)
    ax = new_axes(3.5, 2.5)
    ax.set_position([0.14, 0.17, 0.83, 0.68])
    for (name, series), color in zip(groups.items(), COLORS, strict=False):
        for k, values in enumerate(series):
            label = name if k == 0 else None
            ax.plot(steps, values, "-", color=color, lw=1.6, label=label)
    for name, level in (levels or {}).items():
        ax.axhline(level, color=INK, lw=0.8, ls="--")
        ax.text(steps[-1], level, name, ha="right", va="bottom", fontsize=8)
    ax.set_ylim(bottom=0)
    ax.tick_params(labelsize=8)
    ax.set_xlabel(xlabel, fontsize=8)
    ax.set_ylabel(ylabel, fontsize=8)
    ax.legend(
        loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=2, fontsize=8,
        frameon=False, labelcolor=INK, borderaxespad=0.1, handlelength=1,
    )  # fmt: skip
    return ax


@styled
def circuit(words):
    """Draw how two heads copy: look one back, then look for the same.

    Args:
        words: three labels, a piece that comes twice: (A, B, C) gives A B C A.

    Returns:
        Axes with four tokens on two levels and the looks between them.

    Raises:
        TypeError, ValueError: the words are not a list of three.
    """
    checks.labels("words", words, 3, "tokens of the piece")
    a, b, c = words
    ax = new_axes(3.6, 2.3)
    ax.set_position([0, 0, 1, 1])
    ax.set_axis_off()
    ax.set_xlim(0, 3.6)
    ax.set_ylim(2.3, 0)
    centers = (0.46, 1.35, 2.24, 3.13)
    levels = ((2.0, (a, b, c, a)), (1.15, (a, f"{b}, after {a}", f"{c}, after {b}", a)))
    for y, labels in levels:
        for x, label in zip(centers, labels, strict=True):
            corner = (x - 0.43, y - 0.15)
            box = Rectangle(corner, 0.86, 0.3, facecolor=LIGHT, edgecolor=DARK, lw=0.8)
            ax.add_patch(box)
            ax.text(
                x, y, label, color=DARK, fontsize=7, ha="center", va="center_baseline"
            )
    for start, end in ((0, 1), (1, 2)):
        _look(ax, (centers[start], 1.84), (centers[end], 1.31), VERMILION)
    _look(ax, (centers[1], 0.99), (centers[3], 0.4), GREEN)
    box = Rectangle((2.7, 0.1), 0.86, 0.3, facecolor=LIGHT, edgecolor=DARK, lw=0.8)
    ax.add_patch(box)
    ax.text(
        3.13, 0.25, f"next: {b}", color=DARK, fontsize=7, ha="center",
        va="center_baseline",
    )  # fmt: skip
    ax.text(2.35, 1.58, "block one:\nprevious-token head", fontsize=7, va="center")
    ax.text(0.03, 0.6, "block two: induction head", fontsize=7, va="center")
    return ax


def _look(ax, start, end, color):
    arrow = {"arrowstyle": "->", "color": color, "lw": 1.8}
    ax.annotate("", end, start, arrowprops=arrow)
