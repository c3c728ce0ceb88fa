"""The ground that all figures stand on: colors, the number matrix, and showing.

Figures are drawn for two backgrounds at once. Ink (text, lines) takes the color of
the surrounding page; filled cells bring their own light color and dark text.
"""

import html
import io
import re
import xml.etree.ElementTree as ET

import matplotlib as mpl
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attention.chapter.figures import checks

# Okabe and Ito's palette: its hues stay apart for color-blind readers.
BLUE, ORANGE, GREEN = "#56b4e9", "#e69f00", "#009e73"
SKY, VERMILION, PURPLE = "#cfe8f8", "#d55e00", "#cc79a7"
LIGHT = "#f4f8fb"
DARK = "#14202b"
# Stands for the page's own text color; `show` swaps it for CSS's currentColor.
INK = "#010203"
WEIGHTS = LinearSegmentedColormap.from_list("weights", [LIGHT, BLUE])
SIGNED = LinearSegmentedColormap.from_list("signed", ["#f2b8a0", LIGHT, BLUE])

STYLE = {
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 9,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 8,
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
SVG = "{http://www.w3.org/2000/svg}"
XLINK = "{http://www.w3.org/1999/xlink}href"


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


def shape_box(ax, x, y, width, name, shape, color, before=""):
    """Draw a box around (x, y) that names a tensor and gives its shape below."""
    corner = (x - width / 2, y - 0.2)
    ax.add_patch(Rectangle(corner, width, 0.4, facecolor=color, edgecolor=INK))
    text = f"{name}\n{before}({', '.join(str(size) for size in shape)})"
    ax.text(x, y, text, color=DARK, ha="center", va="center", fontsize=8)


def arrow(ax, start, end):
    """Draw an arrow from start to end, both (x, y)."""
    ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": INK})


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
    values,
    rows=None,
    columns=None,
    title=None,
    decimals=4,
    outline=(),
    blank=None,
    signed=None,
    ax=None,
):
    """Draw a matrix as cells that hold their numbers.

    Args:
        values: tensor (rows, columns); a vector becomes one row.
        rows: a label for each row.
        columns: a label for each column.
        title: short text above the cells.
        decimals: digits after the point; 0 writes integers.
        outline: (row, column) cells to frame, for instance the ones the text names.
        blank: boolean tensor like ``values``; True cells stay empty.
        signed: color negative and positive apart; by default when a value is negative.
        ax: Axes to draw into; by default a new one of fitting size.

    Returns:
        The Axes.

    Raises:
        TypeError, ValueError: no vector or matrix, or the labels, blanks or outlines
            do not fit.
    """
    values = checks.tensor("values", values).double()
    values = values.unsqueeze(0) if values.dim() == 1 else values
    if values.dim() != 2:
        raise ValueError(
            f"values must be a vector or a matrix, but got the shape "
            f"{tuple(values.shape)}. Pick one sequence or head, such as values[0]."
        )
    n_rows, n_columns = checks.shape("values", values, "rows columns")
    _check_cells(values, outline, blank)
    if ax is None:
        # Axes that are passed in may have more columns, such as one of sums.
        for name, labels, count in (
            ("rows", rows, n_rows), ("columns", columns, n_columns)
        ):  # fmt: skip
            if labels is not None:
                checks.labels(name, labels, count, name)
        longest = max((len(str(label)) for label in rows or []), default=0)
        margin = 0.12 + 0.075 * longest
        width = min(3.6, margin + 0.1 + 0.47 * n_columns)
        head = 0.06 + 0.21 * (title is not None) + 0.17 * (columns is not None)
        height = head + 0.31 * n_rows + 0.08
        ax = new_axes(width, height)
        ax.set_position(
            [margin / width, 0.05 / height, 1 - (margin + 0.05) / width,
             0.31 * n_rows / height]
        )  # fmt: skip
    _fill_cells(ax, values, decimals, blank, signed)
    for row, column in outline:
        frame = Rectangle((column, row), 1, 1, fill=False, edgecolor=VERMILION, lw=1.8)
        frame.set_clip_on(False)
        ax.add_patch(frame)
    ax.set_xlim(-0.03, n_columns + 0.03)
    ax.set_ylim(n_rows + 0.03, -0.03)
    _label_sides(ax, rows, columns, title)
    return ax


def _check_cells(values, outline, blank):
    n_rows, n_columns = values.shape
    checks.pairs("outline", outline, row=n_rows, column=n_columns)
    if blank is not None:
        sizes = {"rows": n_rows, "columns": n_columns}
        checks.shape("blank", blank, "rows columns", **sizes)


def _fill_cells(ax, values, decimals, blank, signed):
    finite = values[values.isfinite()]
    largest = float(finite.abs().max()) if finite.numel() else 1.0
    largest = largest or 1.0
    signed = bool((finite < 0).any()) if signed is None else signed
    for row, line in enumerate(values):
        for column, value in enumerate(line):
            if blank is not None and blank[row, column]:
                continue
            # Rounded, so that the last bit of a sum does not change a color.
            share = round(float(value) / largest, 3) if value.isfinite() else 0.0
            color = SIGNED((share + 1) / 2) if signed else WEIGHTS(share)
            cell = Rectangle(
                (column, row), 1, 1, facecolor=color, edgecolor="white", clip_on=False
            )
            ax.add_patch(cell)
            text = number(value, decimals)
            ax.text(
                column + 0.5, row + 0.5, text, color=DARK, ha="center",
                va="center_baseline", fontsize=8 if len(text) < 6 else 7,
            )  # fmt: skip


def _label_sides(ax, rows, columns, title):
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.tick_params(length=0, pad=2, top=False, labeltop=True, labelbottom=False)
    ax.set_xticks([i + 0.5 for i in range(len(columns or []))], columns or [])
    ax.set_yticks([i + 0.5 for i in range(len(rows or []))], rows or [])
    if title is not None:
        ax.set_title(title, color=INK)


class Shown:
    """Figures with a caption and a text alternative, for any notebook front end."""

    def __init__(self, svgs, caption, alt):
        """Keep the finished SVG texts with their two descriptions."""
        self.svgs, self.caption, self.alt = svgs, caption, alt

    def __repr__(self):
        return f"Figure: {self.caption}\nShown: {self.alt}"

    def _repr_html_(self):
        panels = "".join(self.svgs)
        return (
            '<figure class="attention-figure" style="margin: 1em 0">'
            f'<div role="img" aria-label="{html.escape(self.alt)}" style="display: '
            f'flex; flex-wrap: wrap; gap: 0.5em 1.5em">{panels}</div>'
            f"<figcaption>{html.escape(self.caption)}</figcaption></figure>"
        )


def show(*axes, caption, alt):
    """Show one or more Axes side by side, wrapped to the width of the reader's page.

    Args:
        axes: what the functions of this package return.
        caption: what the figure tells, in a sentence or two.
        alt: what is to be seen, for readers who do not see it.

    Returns:
        An object that notebooks render as SVG with caption and text alternative.

    Raises:
        ValueError: no Axes, or an empty caption or text alternative.
    """
    if not axes:
        raise ValueError("show needs at least one Axes, such as matrix(weights).")
    for name, text in (("caption", caption), ("alt", alt)):
        if not isinstance(text, str) or not text.strip():
            raise ValueError(
                f"{name} is empty. Say in a sentence what the figure shows."
            )
    return Shown([_svg(ax.figure) for ax in axes], caption, alt)


@styled
def _svg(figure):
    """Turn a figure into SVG that can stand inside a page beside others."""
    buffer = io.StringIO()
    nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
    figure.savefig(buffer, format="svg", metadata=nothing)
    ET.register_namespace("", SVG[1:-1])
    ET.register_namespace("xlink", XLINK[1:].split("}")[0])
    root = ET.fromstring(buffer.getvalue())
    _drop_page_wide_style(root)
    _drop_ids(root)
    _round_coordinates(root)
    width = float(root.attrib.pop("width").removesuffix("pt"))
    root.attrib.pop("height")
    root.set("aria-hidden", "true")  # the wrapper carries the text alternative
    root.set("style", f"width: 100%; max-width: {width * 1.5:.0f}px; height: auto")
    return ET.tostring(root, encoding="unicode").replace(INK, "currentColor")


def _drop_page_wide_style(root):
    # A <style> inside inline SVG would restyle the whole page; attributes do not.
    for parent in root.iter():
        for child in list(parent):
            if child.tag in (SVG + "style", SVG + "metadata"):
                parent.remove(child)
    root.set("stroke-linejoin", "round")
    root.set("stroke-linecap", "butt")


def _drop_ids(root):
    # Matplotlib numbers its groups anew in each figure; a page holds many figures.
    uses = {e.get(XLINK, "")[1:] for e in root.iter()}
    for element in root.iter():
        uses |= {v[5:-1] for v in element.attrib.values() if v.startswith("url(#")}
    for element in root.iter():
        if element.get("id") not in uses:
            element.attrib.pop("id", None)


def _round_coordinates(root):
    # A hundredth of a point is finer than any screen, and keeps the pages small.
    for element in root.iter():
        for name in ("d", "x", "y", "transform", "width", "height"):
            if name in element.attrib:
                element.set(name, re.sub(r"\d+\.\d+", _two_places, element.get(name)))


def _two_places(match):
    return f"{float(match[0]):.2f}".rstrip("0").rstrip(".")
