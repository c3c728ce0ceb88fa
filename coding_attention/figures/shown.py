"""What a page shows: finished drawings as SVG, with caption and text alternative.

On a desk a figure fills the column of text: with drawings side by side, or with its
caption beside them. On a phone everything stands below each other. The sizes below are
those of the site; a test measures them there.
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
# In CSS pixels: the column on a desk, what drawings get of it when the caption stands
# beside them, the column on a phone, the gap between two, the smallest text on a desk.
COLUMN, BESIDE, PHONE, GAP, LEAST = 688, 440, 358, 24, 12
MOST = 1.7  # pixels a point: text of 8.5 points gets 14 pixels


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
        row = "display: flex; flex-wrap: wrap; gap: 0.5em 24px"
        return (
            f'<figure class="attention-figure" style="{row}; margin: 1em 0">'
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

    A drawing is as wide as its smallest text asks for, and grows from there.
    """
    widths = [float(root.get("viewBox").split()[2]) for root in roots]
    least = [w * LEAST / _smallest_text(r) for w, r in zip(widths, roots, strict=True)]
    alone = max(least) <= BESIDE
    rows = _rows(least, COLUMN)
    one_a_row = all(len(row) == 1 for row in rows)
    beside = alone and (one_a_row or sum(least) + GAP * (len(least) - 1) <= BESIDE)
    room = BESIDE if beside else COLUMN
    scale = min(_scales(widths, rows, room))
    scale = min(scale, MOST) if beside else scale
    small = [min(scale, one) for one in _scales(widths, _rows(least, PHONE), PHONE)]
    even = max(small) < 1.01 * min(small)
    texts = []
    for root, width, basis in zip(roots, widths, least, strict=True):
        basis = min(basis, width * scale) - 1  # no rounding breaks a row
        root.set(
            "style",
            f"flex: {width:.0f} 1 {basis:.0f}px; min-width: 0; height: auto; "
            f"max-width: {_most(width, scale, scale if even else min(small), room)}",
        )
        texts.append(for_any_page(ET.tostring(root, encoding="unicode")))
    if not beside:
        return texts, "1 1 100%"
    taken = max(sum(widths[i] * scale + GAP for i in row) - GAP for row in rows)
    return texts, f"0 1 {taken:.0f}px"


def _rows(least, column):
    """Give which drawings stand in each row, when each has its least width."""
    rows = [[]]
    for i, basis in enumerate(least):
        used = sum(least[j] + GAP for j in rows[-1])
        if rows[-1] and used + basis > column:
            rows.append([])
        rows[-1].append(i)
    return rows


def _scales(widths, rows, room):
    """Give the scale at which each row fills the room."""
    return [(room - GAP * (len(row) - 1)) / sum(widths[i] for i in row) for row in rows]


def _most(width, scale, small, room):
    """Give the largest width of a drawing, so that all of a figure have one scale.

    On a phone, a last row of one drawing would else be larger than a row of two.
    """
    desk, phone = width * scale, width * small
    if phone > desk - 1:
        return f"{desk:.0f}px"
    rise = (desk - phone) / (room - PHONE)
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
