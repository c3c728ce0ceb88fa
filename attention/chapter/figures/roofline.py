"""A roofline: what a machine can reach, by the arithmetic that a step does per byte."""

from matplotlib.ticker import NullLocator

from attention.chapter.figures.base import (
    BLUE,
    INK,
    ORANGE,
    VERMILION,
    new_axes,
    styled,
)

GROUPS = ((BLUE, "o"), (VERMILION, "s"), (ORANGE, "^"))


@styled
def roofline(peak, bandwidth, groups):
    """Draw the most that can be reached against the FLOPs done for each byte.

    Args:
        peak: GFLOPs a second of the fastest arithmetic.
        bandwidth: gigabytes a second from memory.
        groups: dict of name -> dict of step -> FLOPs a byte, at most three groups.

    Returns:
        Axes with the roof as a line and every step as a mark on it: on the slope it
        waits for memory, on the flat part for arithmetic.
    """
    ax = new_axes(4.6, 3.0)
    ax.set_position([0.13, 0.16, 0.85, 0.66])
    found = [x for steps in groups.values() for x in steps.values()]
    ridge = peak / bandwidth
    low, high = min(*found, ridge) / 4, max(*found, ridge) * 3
    ax.plot([low, ridge, high], [low * bandwidth, peak, peak], color=INK, lw=1.5)
    for i, (group, steps) in enumerate(groups.items()):
        color, mark = GROUPS[i]
        heights = [min(peak, x * bandwidth) for x in steps.values()]
        ax.plot(
            list(steps.values()), heights, mark, color=color, ms=7, label=group, lw=0
        )
        # On the slope, the first group has its names to the left, the others to the
        # right; above the flat part there is room.
        place, side = ((-8, 3), "right") if i == 0 else ((8, -4), "left")
        for (name, x), y in zip(steps.items(), heights, strict=True):
            slope = x < ridge
            ax.annotate(
                name, (x, y), place if slope else (0, 8),
                textcoords="offset points", fontsize=8, color=INK,
                ha=side if slope else "center", va="center" if slope else "bottom",
            )  # fmt: skip
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=10)
    ax.set_xlim(low, high)
    ax.set_ylim(low * bandwidth, peak * 4)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_locator(NullLocator())
    ax.tick_params(labelsize=8)
    ax.set_xlabel("FLOPs for each byte moved", fontsize=8)
    ax.set_ylabel("GFLOPs a second, at most", fontsize=8)
    ax.legend(
        loc="lower left", bbox_to_anchor=(-0.02, 1.0), fontsize=8, frameon=False,
        labelcolor=INK, ncols=len(groups), borderaxespad=0.1,
    )  # fmt: skip
    return ax
