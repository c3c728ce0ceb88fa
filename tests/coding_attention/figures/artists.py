"""What the other tests read a figure with: its artists, not its pixels."""

from typing import NamedTuple

import pytest
import torch
from matplotlib.colors import to_hex, to_rgb
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation


class Cell(NamedTuple):
    """A filled rectangle, its colors, and the text at its very middle."""

    x: float
    y: float
    width: float
    height: float
    color: str
    edge: str
    text: str | None


def random(*shape, seed=0, scale=1.0):
    """Seeded random numbers with both signs."""
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def random_weights(*shape, seed=0):
    """Seeded rows that sum to one."""
    return random(*shape, seed=seed).softmax(dim=-1)


def cells(ax):
    """All filled rectangles, in the order in which they were drawn."""
    found = []
    for patch in rectangles(ax):
        if not patch.get_fill():
            continue
        x, y, width, height = bounds(patch)
        middle = pytest.approx((x + width / 2, y + height / 2), abs=1e-6)
        inside = [t.get_text() for t in ax.texts if t.get_position() == middle]
        assert len(inside) <= 1, f"{inside} stand on top of each other"
        colors = to_hex(patch.get_facecolor()), to_hex(patch.get_edgecolor())
        found.append(Cell(x, y, width, height, *colors, *(inside or [None])))
    return found


def grid(ax):
    """The cells of one by one, as a dict of (row, column) -> Cell."""
    unit = [cell for cell in cells(ax) if (cell.width, cell.height) == (1, 1)]
    found = {(cell.y, cell.x): cell for cell in unit}
    assert len(found) == len(unit), "two cells at one place"
    return found


def frames(ax):
    """Bounds of all rectangles without a fill."""
    return [bounds(patch) for patch in rectangles(ax) if not patch.get_fill()]


def rectangles(ax):
    return [patch for patch in ax.patches if isinstance(patch, Rectangle)]


def bounds(patch):
    return (*patch.get_xy(), patch.get_width(), patch.get_height())


def arrows(ax):
    """(start, end, color) of every arrow."""
    found = []
    for text in ax.texts:
        if isinstance(text, Annotation) and text.arrow_patch is not None:
            assert text.arrowprops["arrowstyle"] == "->"  # the head is at xy
            color = to_hex(text.arrow_patch.get_edgecolor())
            found.append((tuple(text.xyann), tuple(text.xy), color))
    return found


def written(ax):
    """The texts inside the axes, in the order in which they were drawn."""
    return [t.get_text() for t in ax.texts if t.get_text()]


def place(ax, text):
    """The position of the one text that reads ``text``."""
    (found,) = [t for t in ax.texts if t.get_text() == text]
    return found.get_position()


def ticks(axis):
    """(position, label) of every tick that has a label."""
    labels = [label.get_text() for label in axis.get_ticklabels()]
    pairs = zip(axis.get_ticklocs().tolist(), labels, strict=True)
    return [pair for pair in pairs if pair[1]]


def legend(ax):
    """(text, color) of every entry of the legend."""
    box = ax.get_legend()
    handles = [
        handle.get_facecolor()
        if hasattr(handle, "get_facecolor")
        else handle.get_color()
        for handle in box.legend_handles
    ]
    texts = [text.get_text() for text in box.get_texts()]
    return list(zip(texts, map(to_hex, handles), strict=True))


def luminance(color):
    """Relative luminance as WCAG 2.2 defines it."""
    red, green, blue = (linear(channel) for channel in to_rgb(color))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def linear(channel):
    """Undo the gamma of one sRGB channel."""
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4


def contrast(one, other):
    """Contrast ratio as WCAG 2.2 defines it, from 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
