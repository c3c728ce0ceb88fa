"""The figures that the pages store are laid out as they would be now."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

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


@every_figure
def test_a_page_stores_a_figure_as_it_is_laid_out_now(html):
    """Where it fails: .venv/bin/python -m tools.notebooks --force PAGE."""
    roots = [ET.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", html, re.S)]
    stored = [root.get("style") for root in roots]
    _, share = shown._laid_out(roots)
    assert [root.get("style") for root in roots] == stored
    assert f"flex: {share}; " in html
