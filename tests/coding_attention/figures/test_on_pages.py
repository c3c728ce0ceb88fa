"""The figures as the pages hold them: their widths and their smallest text.

Measured from what the notebooks store: the view box of each drawing, the size of its
smallest text in it, and the width that the page gives it. The columns are those of the
built site at 1280 and at 390 pixels (measured in the browser by tests/theme).
"""

import json
import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from coding_attention.figures import shown
from coding_attention.stored import html_of

BOOK = Path(__file__).resolve().parents[3] / "book"
PHONE = 358  # the column of text in CSS pixels on a screen of 390


def stored():
    """(page and cell, the figure's HTML) of every figure that a notebook stores."""
    for path in sorted(BOOK.glob("*.ipynb")):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            for output in cell.get("outputs", ()):
                text = html_of(output)
                if "attention-figure" in text:
                    yield f"{path.stem}:{cell['metadata'].get('name')}", text


FIGURES = dict(stored())
every_figure = pytest.mark.parametrize("html", FIGURES.values(), ids=FIGURES)


def drawings(html):
    """(width of the view box, largest width on the page, smallest text) of each."""
    for svg in BeautifulSoup(html, "html.parser").find_all("svg"):
        most = int(re.search(r"max-width: (?:min\()?(\d+)px", svg["style"])[1])
        box = float((svg.get("viewbox") or svg["viewBox"]).split()[2])
        sizes = re.findall(r"font-size: ([\d.]+)px", str(svg))
        yield box, most, min(map(float, sizes))


def test_pages_hold_figures():
    assert len(FIGURES) >= 40


@every_figure
def test_text_is_large_enough_on_a_desk_and_on_a_phone(html):
    for box, most, text in drawings(html):
        assert text * most / box >= 11.9
        assert text * min(most, PHONE) / box >= 11


@every_figure
def test_figure_fills_the_column_with_drawings_or_with_its_caption(html):
    widths = [most for _, most, _ in drawings(html)]
    wide = "flex: 1 1 100%" in html
    if wide:
        row, rows = 0, []
        for width in widths:
            if row and row + shown.GAP + width > shown.COLUMN + 2:
                rows.append(row)
                row = 0
            row += width + (shown.GAP if row else 0)
        assert max([*rows, row]) >= shown.COLUMN - 4
    else:
        assert max(widths) <= shown.BESIDE
        (caption,) = BeautifulSoup(html, "html.parser").find_all("figcaption")
        assert caption["style"].startswith("flex: 1 1")  # it takes what is left
