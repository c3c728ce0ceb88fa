"""A decimal number in the prose, in a caption or in a text alternative has its proof:
an output of the page, a published value, or a reason that is written down here."""

import re

import pytest

from tests.book.pages import BOOK, is_figure, pages, toc_entries
from tools.printed_values import flatten, numbers, reference, text_of

DECIMAL = re.compile(r"(?<![\w.])-?\d+\.\d+(?:\.\d+)*(?:e[+-]?\d+)?")
PUBLISHED = {d for e in reference().values() for d in flatten(e["values"])}
SECTIONS = {f"3.{n}" for n in range(1, 7)} | {
    f"3.{n}.{m}" for n, m in ((3, 1), (3, 2), (4, 1), (4, 2), (5, 1), (5, 2), (5, 3))
} | {"3.6.1", "3.6.2"}  # fmt: skip
REASONS = {
    "2.0": "the license Apache 2.0",
    "4.0": "the license CC BY 4.0",
    "3.2.1": "section of Vaswani et al. (2017)",
    "3.2.2": "section of Vaswani et al. (2017)",
    "3.2.3": "section of Vaswani et al. (2017)",
}


def proven(page):
    """Numbers that the page's own outputs show, figures aside: they need proof too."""
    cells = [c for c in page.code_cells if not is_figure(c)]
    return {n for cell in cells for n in numbers(text_of(cell))}


def told(page):
    """What a reader is told in words: prose, captions and text alternatives."""
    figures = [text_of(cell) for cell in page.code_cells if is_figure(cell)]
    return "\n".join([*page.prose, *figures])


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_decimal_is_proven(page):
    known = proven(page) | PUBLISHED | SECTIONS | set(REASONS)
    unproven = [n for n in DECIMAL.findall(told(page)) if n not in known]
    assert unproven == [], f"{page.name}: no output shows these"


def test_pages_without_cells_tell_no_unproven_decimal():
    for entry in toc_entries():
        path = BOOK / f"{entry.removeprefix('book/')}.md"
        if path.with_suffix(".ipynb").exists():
            continue
        known = PUBLISHED | SECTIONS | set(REASONS)
        found = DECIMAL.findall(path.read_text(encoding="utf-8"))
        assert [n for n in found if n not in known] == [], path.name


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_prose_is_plain(page):
    """No raw MyST roles (other front ends show them as text), no em-dash chains."""
    for text in page.prose:
        assert not re.search(r"\{[\w:-]+\}`", text), text
        assert "—" not in text, text
