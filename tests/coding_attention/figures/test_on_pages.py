"""The figures as the pages hold them: their widths and their smallest text.

Measured from what the notebooks store: the view box of each drawing, the size of its
smallest text in it, and the width that the page gives it. The columns are those of the
built site at 1280 and at 390 pixels (measured in the browser by tests/theme).
"""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from coding_attention.figures import shown
from coding_attention.stored import html_of

BOOK = Path(__file__).resolve().parents[3] / "book"
PHONE = 358  # the column of text in CSS pixels on a screen of 390
# Figures that leave more than a fifth of their column empty, and why: grids of a few
# cells, whose letters would else be larger than those of the text.
SMALL = {
    "04_questions:figure-mask-corner": "four by four",
    "10_attention_in_models:figure-distance": "few columns",
    "checker:figure-by-page": "two columns",
}


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


@pytest.mark.parametrize("name", FIGURES)
def test_figure_fills_its_column(name):
    """That of the text, or with the margin; tests/theme measures it in a browser."""
    html = FIGURES[name]
    column = shown.WHOLE if "data-wide" in html else shown.COLUMN
    rows = [0]
    for _, most, _ in drawings(html):
        if rows[-1] and rows[-1] + most > column + 2:
            rows.append(0)
        rows[-1] += most + shown.GAP
    assert (max(rows) - shown.GAP < 0.8 * column) == (name in SMALL)


@every_figure
def test_a_page_stores_a_figure_as_it_is_laid_out_now(html):
    """Where it fails: .venv/bin/python -m tools.notebooks --force PAGE."""
    roots = [ET.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", html, re.S)]
    stored = [root.get("style") for root in roots]
    _, share = shown._laid_out(roots)
    assert [root.get("style") for root in roots] == stored
    assert f"flex: {share}; " in html
