"""What is printed: the summary is one sheet, and nothing of it is lost."""

import io

import pytest
from pypdf import PdfReader

from tools import pdf


@pytest.mark.browser
def test_the_summary_is_one_sheet_of_a4(browser, address):
    title, data = pdf.print_page(browser, f"{address}/book/summary.html")
    assert title == "Attention on one sheet"
    pages = PdfReader(io.BytesIO(data)).pages
    assert len(pages) == 1
    assert round(float(pages[0].mediabox.height) / 72 * 25.4) == 297
    words = " ".join(pages[0].extract_text().split())
    for text in ("1. Simple", "4. Multi-head", "out_proj(context", "PyTorch has both"):
        assert text in words
