"""What a page shows: finished drawings as SVG, with caption and text alternative.

On a desk a figure fills the column of text, with its caption in the margin, or, with
several drawings, the margin too. On a phone everything stands below each other. The
sizes below are those of the site; a test measures them there.
"""

import html
import io
import os
import re
import xml.etree.ElementTree as ET

from coding_attention.figures.base import styled
from coding_attention.figures.palette import for_any_page
from coding_attention.figures.picture import picture
from coding_attention.stored import STORING

SVG = "{http://www.w3.org/2000/svg}"
XLINK = "{http://www.w3.org/1999/xlink}href"
# In CSS pixels: the column of text on a desk, the same with the margin, the column on a
# phone, the gap between two drawings on either, the smallest text on either.
COLUMN, WHOLE, PHONE, GAP, NARROW, LEAST, SMALLEST = 616, 888, 358, 24, 10.7, 12, 11
FILLED = 0.82  # of its column, by one drawing alone
WIDE = "1 1 100%"
# Pixels a point: text of 8.5 points is no larger than the text of the page.
MOST, ALONE = 1.95, 2.15


class Shown:
    """Figures with a caption and a text alternative, for any notebook front end."""

    def __init__(self, drawings, svgs, width, caption, alt):
        """Keep the drawings, their SVG, what room they take, and what they show."""
        self.drawings, self.svgs, self.width = drawings, svgs, width
        self.caption, self.alt = caption, alt

    def __repr__(self):
        return f"Figure: {self.caption}\nShown: {self.alt}"

    def _repr_html_(self):
        panels = "".join(self.svgs)
        row = f"display: flex; flex-wrap: wrap; gap: 0.5em min({GAP}px, 3%)"
        wide = " data-wide" if self.width == WIDE else ""
        return (
            f'<figure class="attention-figure"{wide} style="{row}; margin: 1em 0">'
            f'<div role="img" aria-label="{html.escape(self.alt)}" '
            f'style="{row}; flex: {self.width}; min-width: 0">{panels}</div>'
            f'<figcaption style="flex: 1 1 13em; text-align: left">'
            f"{html.escape(self.caption)}</figcaption></figure>"
        )

    def _repr_png_(self):
        # Only a page that is stored needs it (coding_attention/stored.py).
        if not os.environ.get(STORING):
            return None
        data, width, height = picture(self.drawings, self.caption)
        return data, {"width": width, "height": height}


def show(*axes, caption=None, alt=None):
    """Show one or more Axes side by side, wrapped to the width of the reader's page.

    Args:
        axes: what the functions of this package return.
        caption: what the figure tells, in a sentence or two; by default what a
            function that tells about its drawing has written itself.
        alt: what is to be seen, for readers who do not see it; by default likewise.

    Returns:
        An object that notebooks render as SVG with caption and text alternative.

    Raises:
        ValueError: there are no Axes, no caption, or no text alternative.
    """
    if not axes:
        raise ValueError("show needs at least one Axes, such as matrix(weights).")
    told = [getattr(ax.figure, "words", ("", "")) for ax in axes]
    if caption is None:
        caption = told[0][0]
    if alt is None:
        alt = " ".join(words for _, words in told)
    for name, text in (("caption", caption), ("alt", alt)):
        if not text.strip():
            raise ValueError(
                f"{name} is empty. Say in a sentence what the figure shows."
            )
    roots = [_svg(ax.figure) for ax in axes]
    return Shown([ax.figure for ax in axes], *_laid_out(roots), caption, alt)


def _laid_out(roots):
    """Give each drawing its width, and all of them their share of the column.

    All drawings of a figure have one scale: the one at which the longest row fills the
    column, or on a phone the screen.
    """
    widths = [float(root.get("viewBox").split()[2]) for root in roots]
    texts = [_smallest_text(root) for root in roots]
    readable = [LEAST * w / text for w, text in zip(widths, texts, strict=True)]
    alone = len(roots) == 1
    room, most = (FILLED * COLUMN, ALONE) if alone else (WHOLE, MOST)
    rows = _rows(readable, room, GAP)
    taken = _longest(widths, rows, scale := min(most, _scale(widths, rows, room, GAP)))
    if taken < 1.2 * COLUMN:  # too little for the margin
        scale = min(scale, _scale(widths, rows, COLUMN, GAP))
        taken = _longest(widths, rows, scale)
    readable = [SMALLEST * w / text for w, text in zip(widths, texts, strict=True)]
    rows = _rows(readable, PHONE, NARROW)
    small = min(scale, _scale(widths, rows, PHONE, NARROW))
    if len(rows) == len(roots) and min(widths) == max(widths):
        small = scale  # each has a row of its own, and shrinks with it
    for root, width in zip(roots, widths, strict=True):
        desk = width * scale
        root.set(
            "style",
            f"flex: {width:.0f} 1 {desk - 1:.0f}px; min-width: 0; height: auto; "
            f"max-width: {_most(desk, width * small, taken)}",
        )
    share = WIDE if taken > COLUMN + 1 else f"0 1 {taken:.0f}px"
    return [for_any_page(ET.tostring(r, encoding="unicode")) for r in roots], share


def _rows(least, room, gap):
    """Give which drawings stand in each row: as many as fit, and as even as can be."""

    def filled(most):
        rows = [[]]
        for i in range(len(least)):
            row = [*rows[-1], i]
            over = sum(least[j] + gap for j in row) - gap > room
            if rows[-1] and (over or len(row) > most):
                rows.append([i])
            else:
                rows[-1] = row
        return rows

    return filled(-(-len(least) // len(filled(len(least)))))


def _longest(widths, rows, scale, gap=GAP):
    return max(sum(widths[i] * scale + gap for i in row) - gap for row in rows)


def _scale(widths, rows, room, gap):
    """Give the scale at which the longest row fills the room."""
    return min(
        (room - gap * (len(row) - 1)) / sum(widths[i] for i in row) for row in rows
    )


def _most(desk, phone, taken):
    """Give the largest width of a drawing: from the phone's to the desk's."""
    if phone > desk - 1:
        return f"{desk:.0f}px"
    rise = (desk - phone) / (taken - PHONE)
    return f"min({desk:.0f}px, {phone - rise * PHONE:.1f}px + {100 * rise:.2f}%)"


def _smallest_text(root):
    sizes = re.findall(r"font-size: ([\d.]+)px", ET.tostring(root, "unicode"))
    return min(map(float, sizes), default=9.0)


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
    _name_font_once(root)
    root.attrib.pop("width")
    root.attrib.pop("height")
    root.set("aria-hidden", "true")  # the wrapper carries the text alternative
    return root


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


def _name_font_once(root):
    # Matplotlib names eleven fonts with every text: half of a page's weight.
    root.set("font-family", "DejaVu Sans, Verdana, sans-serif")
    for text in root.iter(SVG + "text"):
        style = text.get("style", "")
        text.set("style", re.sub(r"font-family: [^;]*(; |$)", "", style))


def _round_coordinates(root):
    # A hundredth of a point is finer than any screen, and keeps the pages small.
    for element in root.iter():
        for name in ("d", "x", "y", "transform", "width", "height"):
            if name in element.attrib:
                element.set(name, re.sub(r"\d+\.\d+", _two_places, element.get(name)))


def _two_places(match):
    return f"{float(match[0]):.2f}".rstrip("0").rstrip(".")
