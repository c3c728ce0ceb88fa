"""Training runs of many seeds: what most do, and the ones that fail."""

from coding_attention.figures.base import (
    BLUE,
    GRAY,
    INK,
    TEXT,
    VERMILION,
    check,
    new_axes,
    styled,
)


@styled
def runs(steps, series, xlabel, ylabel, highlight=(), failed=(), level=None):
    """Draw one curve for each seed; some stand out, and so do those that fail.

    Args:
        steps: n positions on the horizontal axis.
        series: dict of seed -> n numbers.
        xlabel: what the positions are.
        ylabel: what the numbers are.
        highlight: seeds drawn thick, for instance the one of the page's model.
        failed: seeds drawn in the color of what the text speaks of, dashed.
        level: (name, number), drawn as a dashed line.

    Returns:
        Axes with a line for each seed, and its name at the end of those that stand out.
    """
    for seed, values in series.items():
        check(steps=(steps, "n"), **{f"series[{seed!r}]": (values, "n")})
    ax = new_axes(3.6, 2.5)
    ax.set_position([0.14, 0.18, 0.59, 0.78])
    ends = []
    for seed, values in series.items():
        color, width, style = GRAY, 0.9, "-"
        if seed in failed:
            color, width, style = VERMILION, 1.8, "--"
        elif seed in highlight:
            color, width = BLUE, 2.4
        ax.plot(steps, values, style, color=color, lw=width, label=f"seed {seed}")
        if color != GRAY:
            ends.append((values[-1], f"seed {seed}"))
    rest = [s for s in series if s not in failed and s not in highlight]
    if rest:
        mean = sum(float(series[seed][-1]) for seed in rest) / len(rest)
        more = f"the other {len(rest)}" if ends else f"{len(rest)} seeds"
        ends.append((mean, more))
    if level is not None:
        ax.axhline(level[1], color=INK, lw=0.8, ls=":")
        ends.append((level[1], level[0]))
    largest = max(float(max(values)) for values in series.values())
    ax.set_ylim(0, 1.05 * max(largest, level[1] if level else 0))
    _name_ends(ax, steps[-1], ends)
    ax.set_xlim(steps[0], steps[-1])
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    return ax


def _name_ends(ax, x, ends):
    """Write names at the ends of lines, pushed apart where they would touch."""
    low, high = ax.get_ylim()
    room = 0.08 * (high - low)
    below = -float("inf")
    for value, name in sorted(ends):
        y = max(float(value), below + room)
        below = y
        ax.annotate(
            name, (x, y), xytext=(4, 0), textcoords="offset points",
            va="center_baseline", fontsize=TEXT, color=INK, annotation_clip=False,
        )  # fmt: skip
