"""What the other tests read a figure with: its artists, not its pixels."""

from itertools import pairwise
from typing import NamedTuple

import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
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


def texts(ax):
    """Every visible Text with something in it: titles, ticks and legends too."""
    found = [*ax.texts, ax.title, ax.xaxis.label, ax.yaxis.label]
    for axis in (ax.xaxis, ax.yaxis):
        found += shown_tick_labels(axis)
    if ax.get_legend() is not None:
        found += ax.get_legend().get_texts()
    shown = ax.axison
    return [
        t
        for t in found
        if t.get_text() and t.get_visible() and (shown or t in ax.texts)
    ]


def shown_tick_labels(axis):
    """Matplotlib keeps labels for ticks outside the limits, which it does not draw."""
    low, high = sorted(axis.get_view_interval())
    pairs = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
    return [label for at, label in pairs if low <= at <= high]


def boxes(ax):
    """(Text, its box on the drawn figure in points) for every text."""
    canvas = ax.figure.canvas
    if not isinstance(canvas, FigureCanvasAgg):
        canvas = FigureCanvasAgg(ax.figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    found = []
    for text in texts(ax):
        # Of an annotation, the words without the arrow.
        box = super(Annotation, text) if isinstance(text, Annotation) else text
        found.append((text, box.get_window_extent(renderer)))
    return found


def strokes(ax):
    """(points on the drawn figure, order of drawing) of all lines and arrows."""
    found = []
    for line in ax.lines:
        points = line.get_transform().transform(line.get_xydata())
        if line.get_linestyle() not in ("None", "") and len(points) > 1:
            found.append((points, line.get_zorder()))
    for text in ax.texts:
        if isinstance(text, Annotation) and text.arrow_patch is not None:
            ends = ax.transData.transform([text.xyann, text.xy])
            found.append((ends, text.get_zorder()))
    return found


def struck(box, points):
    """Whether a line goes through a box of text, more than along its rim."""
    steps = torch.linspace(0, 1, 200).tolist()
    inside = 0
    for (x0, y0), (x1, y1) in pairwise(points):
        for s in steps:
            x, y = x0 + s * (x1 - x0), y0 + s * (y1 - y0)
            inside += box.x0 + 2 < x < box.x1 - 2 and box.y0 + 3 < y < box.y1 - 3
    return inside > 0


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


def test_readers_tell_cells_frames_and_arrows_apart():
    ax = Figure().add_subplot()
    ax.add_patch(Rectangle((2, 1), 1, 1, facecolor="#ff0000", edgecolor="#00ff00"))
    ax.add_patch(Rectangle((0, 0), 3, 2, fill=False))
    ax.text(2.5, 1.5, "in")
    ax.text(2.5, 1.4, "beside")
    ax.annotate("", (3, 4), (1, 2), arrowprops={"arrowstyle": "->", "color": "#0000ff"})
    assert grid(ax) == {(1, 2): Cell(2, 1, 1, 1, "#ff0000", "#00ff00", "in")}
    assert frames(ax) == [(0, 0, 3, 2)]
    assert arrows(ax) == [((1, 2), (3, 4), "#0000ff")]
    assert written(ax) == ["in", "beside"]
    assert place(ax, "beside") == (2.5, 1.4)


def test_a_line_through_a_text_is_seen():
    ax = Figure(figsize=(2, 2), dpi=100).add_axes([0, 0, 1, 1])
    ax.text(0.5, 0.5, "text", ha="center", va="center")
    ax.plot([0, 1], [0.5, 0.5])
    ax.plot([0, 1], [0.2, 0.2])
    ax.annotate("", (1, 1), (0, 0), arrowprops={"arrowstyle": "->"})
    (_, box), *_ = boxes(ax)
    assert [struck(box, points) for points, _ in strokes(ax)] == [True, False, True]


def test_box_is_where_the_text_stands():
    ax = Figure(figsize=(2, 2), dpi=100).add_axes([0, 0, 1, 1])
    ax.set_axis_off()
    ax.text(0.25, 0.75, "text", ha="center", va="center")
    ((_, box),) = boxes(ax)
    assert (box.x0 + box.x1) / 2 == pytest.approx(50, abs=2)
    assert (box.y0 + box.y1) / 2 == pytest.approx(150, abs=3)


@pytest.mark.parametrize(
    ("one", "other", "ratio"),
    # Black on white is 21 by definition; #767676 on white is WCAG's textbook 4.54.
    [("black", "white", 21.0), ("#767676", "white", 4.54), ("#abc", "#abc", 1.0)],
)
def test_contrast_is_the_one_of_wcag(one, other, ratio):
    assert contrast(one, other) == pytest.approx(ratio, abs=0.005)
    assert contrast(other, one) == pytest.approx(ratio, abs=0.005)
