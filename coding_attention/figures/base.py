"""The ground that all figures stand on: axes, cells, and the number matrix.

Figures are drawn for two backgrounds at once. Ink (text, lines) takes the color of
the surrounding page; a filled cell and the text on it change with the page together
(``palette.py``). Sizes are in inches and points of a drawing 3.6 inches wide, which
fills a phone; ``shown.py`` sets how wide it gets on a page.
"""

import matplotlib as mpl
import torch
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from coding_attention.figures import words
from coding_attention.figures.palette import (
    BLUE,
    DARK,
    EDGE,
    GRAY,
    GREEN,
    HEADS,
    INK,
    KEY,
    LIGHT,
    ORANGE,
    PURPLE,
    QUERY,
    SIGNED,
    TOKEN,
    VALUE,
    VERMILION,
    WEIGHTS,
)
from coding_attention.figures.shapes import check

# In points. The smallest is 11 pixels on a phone and 12 on a desk (tested).
SMALL, TEXT, TITLE = 8.5, 9, 10
STYLE = {
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.labelsize": TEXT,
    "axes.titlesize": TITLE,
    "xtick.labelsize": TEXT,
    "ytick.labelsize": TEXT,
    "legend.fontsize": TEXT,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": TEXT,
    "svg.fonttype": "none",  # text stays text: searchable, readable aloud
    "svg.hashsalt": "attention",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
# Decorates what draws: everything made inside follows the book's style.
styled = mpl.rc_context(STYLE)


@styled
def new_axes(width=3.6, height=2.4):
    """Make an empty Axes in the book's style.

    Args:
        width: in inches; 3.6 fills a phone.
        height: in inches.

    Returns:
        Axes on a figure of its own.
    """
    return Figure(figsize=(width, height)).add_subplot()


@styled
def canvas(width, height):
    """Make bare Axes measured in inches, from the upper left corner.

    Args:
        width: in inches; 3.6 fills a phone.
        height: in inches.

    Returns:
        Axes without ticks and lines that fill their figure.
    """
    ax = new_axes(width, height)
    ax.set_position([0, 0, 1, 1])
    ax.set_axis_off()
    ax.set_xlim(0, width)
    ax.set_ylim(height, 0)
    return ax


def describe(ax, caption, alt):
    """Keep with Axes what they show in words, for `show` without words of its own."""
    ax.figure.words = caption, alt
    return ax


def cell(ax, x, y, width, height, color, text="", edge=EDGE, size=SMALL):
    """Draw a filled cell from its upper left corner on, with a text in its middle."""
    ax.add_patch(
        Rectangle((x, y), width, height, facecolor=color, edgecolor=edge, clip_on=False)
    )
    if text:
        ax.text(
            x + width / 2, y + height / 2, text, color=DARK, ha="center",
            va="center_baseline", fontsize=size,
        )  # fmt: skip


def are_weights(values):
    """Say whether every row sums to one, with no entry below zero."""
    if values.shape[-1] < 2 or not bool((values >= 0).all()):
        return False
    return bool(((values.sum(dim=-1) - 1).abs() < 1e-3).all())


def shade(values, kind=None):
    """Give each number of a matrix its color.

    Args:
        values: tensor (rows, columns).
        kind: ``"weights"`` for the one scale of attention weights, from 0 to 1;
            ``"numbers"`` for any others, as shares of the largest. By default rows
            that sum to one with no entry below zero are weights.

    Returns:
        A list of colors for each row.
    """
    kind = kind or ("weights" if are_weights(values) else "numbers")
    if kind == "weights":
        # Rounded, so that the last bit of a sum does not change a color.
        return [[to_hex(WEIGHTS(round(v, 3))) for v in row] for row in values.tolist()]
    finite = values[values.isfinite()]
    largest = (float(finite.abs().max()) if finite.numel() else 1.0) or 1.0
    shares = (values / largest).nan_to_num(0.0, 0.0, 0.0)
    return [
        [to_hex(SIGNED((round(v, 3) + 1) / 2)) for v in row] for row in shares.tolist()
    ]


def block(
    ax, x, y, values, size=(0.37, 0.24), name="", below="", color=None, decimals=2
):
    """Draw a small matrix as cells, its name above and a text below.

    Args:
        ax: a canvas.
        x: left edge, in inches.
        y: upper edge of the cells, in inches.
        values: tensor (rows, columns); a vector becomes one row.
        size: width and height of a cell, in inches.
        name: text above.
        below: text below; ``"shape"`` writes the shape.
        color: one color for all cells; by default each has the one of its number.
        decimals: digits after the point; None leaves the cells without numbers.

    Returns:
        The right and the lower edge of the cells.
    """
    values = values.detach().double()
    below = str(tuple(values.shape)) if below == "shape" else below
    values = values.unsqueeze(0) if values.dim() == 1 else values
    width, height = size
    colors = shade(values)
    for i, row in enumerate(values.tolist()):
        for j, value in enumerate(row):
            text = "" if decimals is None else number(value, decimals)
            fill = color or colors[i][j]
            cell(ax, x + j * width, y + i * height, width, height, fill, text)
    right, bottom = x + values.shape[1] * width, y + values.shape[0] * height
    middle = {"ha": "center", "color": INK, "fontsize": TEXT}
    if name:
        ax.text((x + right) / 2, y - 0.05, name, va="bottom", **middle)
    if below:
        ax.text((x + right) / 2, bottom + 0.04, below, va="top", **middle)
    return right, bottom


def arrow(ax, start, end, color=INK, width=1.0, gap=2):
    """Draw an arrow from start to end, both (x, y); ``gap`` points are left free."""
    look = {"arrowstyle": "->", "color": color, "lw": width}
    ax.annotate("", end, start, arrowprops=look | {"shrinkA": gap, "shrinkB": gap})


def legend(ax, columns=2, handle=1, left=-0.02):
    """Write the legend above the axes, at their left."""
    ax.legend(
        loc="lower left", bbox_to_anchor=(left, 1.0), ncols=columns, frameon=False,
        labelcolor=INK, borderaxespad=0.1, handlelength=handle, labelspacing=0.2,
        columnspacing=1.2,
    )  # fmt: skip


def number(value, decimals=4):
    """Write a number as PyTorch prints it, with a fixed number of decimals.

    Args:
        value: a number, or a tensor that holds one.
        decimals: digits after the point; 0 writes an integer.

    Returns:
        The digits; ``inf``, ``-inf`` and ``nan`` for what has none.
    """
    value = float(value)
    if value != value or value in (float("inf"), float("-inf")):
        return str(value)
    return f"{value:.{decimals}f}"


@styled
def matrix(
    values, rows=None, columns=None, title=None, decimals=4, outline=(), blank=None,
    kind=None, ax=None,
):  # fmt: skip
    """Draw a matrix as cells that hold their numbers.

    Args:
        values: tensor (rows, columns); a vector becomes one row.
        rows: a label for each row.
        columns: a label for each column.
        title: short text above the cells.
        decimals: digits after the point; 0 writes integers.
        outline: (row, column) cells to frame, for instance the ones the text names.
        blank: boolean tensor like ``values``; True cells stay empty.
        kind: ``"weights"`` or ``"numbers"``, see :func:`shade`.
        ax: Axes to draw into; by default a new one of fitting size.

    Returns:
        The Axes.
    """
    values = torch.as_tensor(values).detach().double()
    if values.dim() == 1:
        values = values.unsqueeze(0)
    sizes = check(values=(values, "rows columns"))
    n_rows, n_columns = sizes.values()
    for name, given, layout in (
        ("rows", rows, "rows"), ("columns", columns, "columns"),
        ("blank", blank, "rows columns"),
    ):  # fmt: skip
        if given is not None and ax is None:
            check(values=(values, "rows columns"), **{name: (given, layout)})
    ax = ax or _matrix_axes(n_rows, n_columns, rows, columns, title)
    colors = shade(values, kind)
    for i, row in enumerate(values.tolist()):
        for j, value in enumerate(row):
            if blank is None or not blank[i, j]:
                cell(ax, j, i, 1, 1, colors[i][j], number(value, decimals))
    for i, j in outline:
        frame(ax, j, i)
    ax.set_xlim(-0.03, n_columns + 0.03)
    ax.set_ylim(n_rows + 0.03, -0.03)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.tick_params(length=0, pad=2, top=False, labeltop=True, labelbottom=False)
    ax.set_xticks([j + 0.5 for j in range(len(columns or []))], columns or [])
    ax.set_yticks([i + 0.5 for i in range(len(rows or []))], rows or [])
    if title is not None:
        ax.set_title(title, color=INK)
    return describe(ax, "", words.matrix(values, rows, columns, title, blank, decimals))


def frame(ax, x, y, width=1, height=1):
    """Frame cells in the color of what the text speaks of."""
    ax.add_patch(
        Rectangle(
            (x, y), width, height, fill=False, edgecolor=VERMILION, lw=1.8,
            clip_on=False, zorder=3,
        )
    )  # fmt: skip


def _matrix_axes(n_rows, n_columns, rows, columns, title):
    longest = max((len(str(label)) for label in rows or []), default=0)
    margin = 0.1 + 0.08 * longest
    width = min(3.6, margin + 0.1 + 0.47 * n_columns)
    head = 0.06 + 0.24 * (title is not None) + 0.19 * (columns is not None)
    height = head + 0.31 * n_rows + 0.08
    ax = new_axes(width, height)
    share = 0.31 * n_rows / height
    ax.set_position([margin / width, 0.05 / height, 1 - (margin + 0.05) / width, share])
    return ax
