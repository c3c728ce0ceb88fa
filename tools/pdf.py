"""Print the whole book into one PDF, from the pages of the built site.

    python -m tools.pdf            writes _build/html/coding-attention.pdf
    python -m tools.pdf --out F    writes it elsewhere

Each page of the table of contents is printed by a headless Chromium, in its order, and
becomes an entry of the PDF's outline.
"""

import argparse
import io
import sys
from pathlib import Path

from pypdf import PdfReader, PdfWriter
from tqdm import tqdm

from coding_attention.book import list_pages
from tools.measure.server import serving
from tools.measure.visit import browser, visiting

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "_build" / "html"
NAME = "coding-attention.pdf"
FOOTER = (
    '<div style="width:100%;font:8px sans-serif;text-align:center;color:#555">'
    '<span class="title"></span></div>'
)


def print_page(instance, url):
    """Give the title of a page and its PDF.

    Raises:
        ValueError: the page has no title, so the site is not built.
    """
    with visiting(instance, url) as visit:
        visit.load()
        if visit.page.locator("h1").count() == 0:
            raise ValueError(f"{url} has no title; is the site built? Run: make book")
        title = visit.page.evaluate(
            "document.querySelector('article h1').firstChild.textContent.trim()"
        )
        visit.page.emulate_media(media="print", color_scheme="light")
        return title, visit.page.pdf(
            format="A4",
            print_background=True,
            display_header_footer=True,
            header_template="<span></span>",
            footer_template=FOOTER,
            margin={"top": "16mm", "bottom": "18mm", "left": "16mm", "right": "16mm"},
        )


def join(parts, target):
    """Write parts, pairs of title and PDF, as one file with an outline."""
    writer = PdfWriter()
    for title, data in parts:
        first = len(writer.pages)
        writer.append(PdfReader(io.BytesIO(data)))
        writer.add_outline_item(title, first)
    writer.add_metadata({"/Title": parts[0][0], "/Author": "The authors of the book"})
    writer.compress_identical_objects()
    writer.write(target)
    return len(writer.pages)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--site", type=Path, default=SITE, help="folder of the HTML")
    parser.add_argument("--out", type=Path, help="the file to write")
    options = parser.parse_args()
    if not (options.site / f"{list_pages()[0]}.html").exists():
        sys.exit(f"{options.site} holds no book. Build it first: make book")
    target = options.out or options.site / NAME
    with browser() as instance, serving(options.site) as address:
        parts = [
            print_page(instance, f"{address}/{entry}.html")
            for entry in tqdm(list_pages(), desc="printing", unit="page")
        ]
    pages = join(parts, target)
    print(f"Wrote {target}: {pages} pages, {target.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
