"""Figures of speed and memory: what is kept, what it costs, how weights are split."""

from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, NullLocator

from coding_attention.figures.base import (
    BLUE,
    DARK,
    EDGE,
    GREEN,
    HEADS,
    INK,
    SMALL,
    TITLE,
    VERMILION,
    check,
    legend,
    new_axes,
    styled,
)

# A process has the color of the first head that it computes.
RANKS = HEADS
# 1,000 and not 10³: an exponent would be too small to read.
plain = FuncFormatter(lambda value, _: f"{value:,.12g}")


@styled
def kept(tokens, d_head):
    """Draw the scores of one head beside its context vectors, all to one scale.

    Args:
        tokens: numbers of tokens, one to three, in rising order.
        d_head: numbers that the head gives each token.

    Returns:
        Axes with a square of t × t and a strip of t × d_head for each t.
    """
    gap = 0.12 * max(tokens)  # room for the labels, whatever the sizes
    across = sum(t + d_head for t in tokens) + 3.4 * gap * len(tokens)
    scale = 3.5 / across  # inches a number
    height = scale * (max(tokens) + 0.3 * gap) + 0.5
    ax = _bare(new_axes(3.6, height))
    ax.set_xlim(-0.05 / scale, across + 0.05 / scale)
    ax.set_position([0, 0, 1, 1 - 0.25 / height])
    ax.set_ylim(-0.25 / scale, (height - 0.5) / scale)
    left = 0.0
    for i, t in enumerate(tokens):
        names = ("t × t scores", "t × d_head context") if i == 0 else ("", "")
        strip = left + t + 0.3 * gap
        # The listing's and the fused form's: the colors of their lines in by_tokens.
        ax.add_patch(Rectangle((left, 0), t, t, facecolor=VERMILION, label=names[0]))
        ax.add_patch(Rectangle((strip, 0), d_head, t, facecolor=BLUE, label=names[1]))
        ax.text(left, -0.06 / scale, f"t = {t}", fontsize=SMALL, color=INK, va="top")
        left = strip + d_head + 3.1 * gap
    legend(ax, left=0)  # the axes reach to the edge
    return ax


@styled
def amounts(values, title):
    """Draw one bar for each named number, the name above its bar.

    Args:
        values: dict of name -> number, none of them negative.
        title: short text above the bars.

    Returns:
        Axes with horizontal bars from zero.
    """
    head = 0.28  # for the title
    height = head + 0.36 * len(values)
    ax = _bare(new_axes(3.6, height))
    ax.set_position([0.02, 0, 0.96, 1 - head / height])
    # The longest bar leaves room for its number.
    right = max(values.values()) * 1.25 or 1
    ax.set_xlim(0, right)
    ax.set_ylim(len(values), 0)
    for row, (name, value) in enumerate(values.items()):
        ax.text(0, row + 0.27, name, fontsize=SMALL, color=INK, va="center_baseline")
        ax.barh(row + 0.7, value, 0.36, color=BLUE)
        ax.text(
            value + 0.015 * right, row + 0.7, f"{value:.2f}", fontsize=SMALL,
            color=INK, va="center_baseline",
        )  # fmt: skip
    ax.set_title(title, fontsize=TITLE, loc="left")
    return ax


@styled
def by_tokens(tokens, lines, ylabel):
    """Draw what grows with the number of tokens; on both axes equal steps multiply.

    Args:
        tokens: numbers of tokens (n,), in rising order.
        lines: dict of name -> n positive numbers, one to three of them.
        ylabel: what the numbers are.

    Returns:
        Axes with one marked line for each entry of ``lines``.
    """
    for name, line in lines.items():
        check(tokens=(tokens, "n"), **{f"lines[{name!r}]": (line, "n")})
    ax = new_axes(3.6, 2.1 + 0.18 * len(lines))
    top = 0.97 - 0.18 * len(lines) / ax.figure.get_figheight()
    ax.set_position([0.2, 0.2, 0.76, top - 0.2])
    looks = zip((VERMILION, BLUE, GREEN), "os^", strict=True)
    for (name, line), (color, marker) in zip(lines.items(), looks, strict=False):
        ax.plot(tokens, line, color=color, marker=marker, ms=5, lw=2, label=name)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=10)
    ax.set_xticks(tokens, [str(t) for t in tokens], fontsize=SMALL)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(plain)
    ax.set_xlabel("tokens t")
    ax.set_ylabel(ylabel)
    legend(ax, 1, 1.5)
    return ax


@styled
def shards(cuts, ranks):
    """Draw weight matrices cut into one part for each rank.

    Args:
        cuts: dict of matrix name -> "rows" or "columns", one to four of them.
        ranks: how many parts, two to four.

    Returns:
        Axes with a square for each matrix; parts of one rank share a color.
    """
    side, gap = 0.78, 0.1  # inches
    ax = _bare(new_axes(3.6, side + 0.3))
    ax.set_xlim(-0.05, 3.55)
    ax.set_ylim(side + 0.05, -0.25)
    for i, (name, cut) in enumerate(cuts.items()):
        left = i * (side + gap)
        middle = left + side / 2
        ax.text(middle, -0.08, name, fontsize=SMALL, color=INK, ha="center")
        for rank in range(ranks):
            start, part = rank * side / ranks, side / ranks
            if cut == "rows":
                corner, size = (left, start), (side, part)
            else:
                corner, size = (left + start, 0), (part, side)
            ax.add_patch(
                Rectangle(corner, *size, facecolor=RANKS[rank], edgecolor=EDGE)
            )
            ax.text(
                corner[0] + size[0] / 2, corner[1] + size[1] / 2, str(rank),
                color=DARK, fontsize=SMALL, ha="center", va="center_baseline",
            )  # fmt: skip
    return ax


def _bare(ax):
    ax.set_position([0, 0, 1, 1])
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_xticks([])
    ax.set_yticks([])
    return ax
