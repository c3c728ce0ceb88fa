"""A roofline: what a machine can reach, by the arithmetic that a step does per byte."""

from matplotlib.ticker import LogLocator, NullLocator

from coding_attention.figures.base import (
    BLUE,
    INK,
    ORANGE,
    SMALL,
    VERMILION,
    describe,
    new_axes,
    styled,
)
from coding_attention.figures.speed import plain

GROUPS = ((BLUE, "o"), (VERMILION, "s"), (ORANGE, "^"))


@styled
def roofline(peak, bandwidth, groups, title=""):
    """Draw the most that can be reached against the FLOPs done for each byte.

    Args:
        peak: GFLOPs a second of the fastest arithmetic.
        bandwidth: gigabytes a second from memory.
        groups: dict of name -> dict of step -> FLOPs a byte, at most three groups.
        title: name of the machine.

    Returns:
        Axes with the roof as a line and every step as a mark on it: on the slope it
        waits for memory, on the flat part for arithmetic.
    """
    ax = new_axes(3.6, 3.0)
    ax.set_position([0.29, 0.17, 0.68, 0.62])  # room for 1000000
    found = [x for steps in groups.values() for x in steps.values()]
    ridge = peak / bandwidth
    low, high = min(*found, ridge) / 8, max(*found, ridge) * 3
    ax.plot([low, ridge, high], [low * bandwidth, peak, peak], color=INK, lw=1.5)
    for i, (group, steps) in enumerate(groups.items()):
        color, mark = GROUPS[i]
        heights = [min(peak, x * bandwidth) for x in steps.values()]
        ax.plot(
            list(steps.values()), heights, mark, color=color, ms=7, label=group, lw=0
        )
        # On the slope, the first group has its names on the left, the others on the
        # right.
        place, side = ((-8, 3), "right") if i == 0 else ((8, -4), "left")
        for (name, x), y in zip(steps.items(), heights, strict=True):
            if x < ridge:
                _name(ax, name, (x, y), place, ha=side, va="center")
    # Above the flat part, each name stands higher than those to its left.
    flat = sorted(
        (x, name) for g in groups.values() for name, x in g.items() if x >= ridge
    )
    for i, (x, name) in enumerate(flat):
        _name(ax, name, (x, peak), (14, 8 + 13 * i), ha="right", va="bottom")
    bottom, room = low * bandwidth, 0.04 + 0.1 * max(1, len(flat))  # of the height
    ax.set_xscale("log", base=10)
    ax.set_yscale("log", base=10)
    ax.set_xlim(low, high)
    ax.set_ylim(bottom, peak * (peak / bottom) ** (room / (1 - room)))
    for axis in (ax.xaxis, ax.yaxis):
        # Powers of ten on both: eighths would stand close, as 0.015625 and 0.125.
        axis.set_major_locator(LogLocator(base=10))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(plain)
    ax.set_xlabel("FLOPs for each byte moved", fontsize=SMALL)
    ax.set_ylabel("GFLOPs a second", fontsize=SMALL)
    ax.legend(
        loc="lower left", bbox_to_anchor=(-0.02, 1.0), fontsize=SMALL, frameon=False,
        labelcolor=INK, ncols=len(groups), borderaxespad=0.1,
    )  # fmt: skip
    ax.set_title(title, fontsize=SMALL, color=INK, pad=20)
    return describe(ax, "", _words(groups, ridge, title))


def _name(ax, text, point, place, **where):
    ax.annotate(text, point, place, textcoords="offset points", fontsize=SMALL,
                color=INK, **where)  # fmt: skip


def _words(groups, ridge, title):
    steps = [step for group in groups.values() for step in group.items()]
    sides = [
        ", ".join(f"{name} at {x:.1f}" for name, x in steps if (x < ridge) == below)
        for below in (True, False)
    ]
    return (
        f"{title}: a line on axes whose steps multiply, which rises and is flat from "
        f"{ridge:.1f} FLOPs a byte on. On the rising part: {sides[0] or 'nothing'}. "
        f"On the flat part: {sides[1] or 'nothing'}."
    )
