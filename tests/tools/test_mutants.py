"""The tool that breaks the book finds the book: each kind of mutant can be drawn."""

import random
from pathlib import Path

from tests.book.pages import toc_entries
from tools.mutants import kinds

ROOT = Path(__file__).resolve().parents[2]


def test_every_page_of_the_contents_is_found():
    book = kinds.Book(ROOT)
    assert {f"book/{name}" for name in book.toc} == set(toc_entries())


def test_one_mutant_of_each_kind_changes_a_file():
    book = kinds.Book(ROOT)
    drawn = kinds.draw(random.Random(0), book, len(kinds.KINDS))
    assert len(drawn) == len(kinds.KINDS)
    for mutant in drawn:
        assert mutant.edits
        for path, text in mutant.edits.items():
            assert text != (ROOT / path).read_text(encoding="utf-8"), mutant.kind
