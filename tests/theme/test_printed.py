"""What is printed: the summary is one sheet of two sides, and nothing of it is lost."""

import io

import pytest
from pypdf import PdfReader

from tools.measure.visit import visiting

SIZES = {"A4": (210, 297), "Letter": (216, 279)}  # in millimeters


@pytest.mark.site
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
                words = " ".join(pages[0].extract_text().split())
                for text in (
                    "Attention on one sheet", "1. Simple", "4. Multi-head",
                    "out_proj(context", "PyTorch has both",
                ):  # fmt: skip
                    assert text in words
                assert "Mix the heads" in pages[1].extract_text()
