"""What is printed: the book as one PDF, and the summary as one sheet of two sides."""

import io

import pytest
from pypdf import PdfReader

from tools import pdf
from tools.measure.visit import visiting

pytestmark = pytest.mark.site


def test_pdf_holds_title_code_and_outline(browser, address, tmp_path):
    parts = [
        pdf.print_page(browser, f"{address}/{entry}.html")
        for entry in ("book/02_simple_self_attention", "book/notation")
    ]
    pages = pdf.join(parts, tmp_path / "two.pdf")
    reader = PdfReader(io.BytesIO((tmp_path / "two.pdf").read_bytes()))
    assert len(reader.pages) == pages > 5
    assert [item.title for item in reader.outline] == [title for title, _ in parts]
    first = reader.pages[0].extract_text()
    assert reader.metadata.title == parts[0][0] in first
    assert "import torch" in first
    assert "Coding attention" in reader.pages[2].extract_text()[-99:]  # its footer
    # What a page folds until it is answered is on paper.
    assert "0.84 from cats" in "".join(page.extract_text() for page in reader.pages)
    start = reader.get_destination_page_number(reader.outline[1])
    assert parts[1][0] in reader.pages[start].extract_text()


SIZES = {"A4": (210, 297), "Letter": (216, 279)}  # in millimeters


def test_the_summary_is_one_sheet(browser, address):
    """As a browser prints it: with its own margins, and with those of the page."""
    with visiting(browser, f"{address}/book/summary.html") as visit:
        visit.load()
        for size, expected in SIZES.items():
            for margin in (
                {},
                dict.fromkeys(("top", "right", "bottom", "left"), "1cm"),
            ):
                data = visit.page.pdf(format=size, margin=margin)
                pages = PdfReader(io.BytesIO(data)).pages
                assert len(pages) == 2, (size, margin)
                box = pages[0].mediabox
                told = tuple(
                    round(float(x) / 72 * 25.4) for x in (box.width, box.height)
                )
                assert told == expected
