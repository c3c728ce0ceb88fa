"""What the book's pages are called: their order, parts, numbers and headings' slugs.

`_toc.yml` is read here and nowhere else. A page is named as it is there, such as
"book/03_trainable_self_attention".
"""

import posixpath
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
NUMBERED = re.compile(r"(\d+)_(questions)?")


class Part(NamedTuple):
    """A part of the book, and its pages in reading order."""

    caption: str
    pages: list


@cache
def _read_toc():
    import yaml  # a reader who only imports an exercise need not have it

    return yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))


def list_parts():
    """List the parts of the book; the first page is in none."""
    return [
        Part(part["caption"], [chapter["file"] for chapter in part["chapters"]])
        for part in _read_toc()["parts"]
    ]


def list_pages():
    """List all pages in reading order, the first page included."""
    inside = [page for part in list_parts() for page in part.pages]
    return [_read_toc()["root"], *inside]


def number_page(page):
    """Give a page's number: 03 for 03_trainable, 03Q for 03_questions, else nothing."""
    match = NUMBERED.match(posixpath.basename(page))
    return match[1] + ("Q" if match[2] else "") if match else ""


def make_slug(heading):
    """Give the anchor that the site makes of a heading."""
    words = re.sub(r"<!--.*?-->", "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
