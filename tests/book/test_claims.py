"""Every digit in words has its second entry; see claims.py."""

import re

import pytest

from tests.book import claims
from tests.book.pages import Page

NAMES = claims.names()
PIECES = [(name, *entry) for name in NAMES for entry in claims.load(name)]


@pytest.mark.parametrize("name", NAMES)
def test_every_digit_has_a_second_entry(name):
    missing = claims.uncovered(name)
    assert missing == [], f"no piece in claims/{name}.toml covers these lines"


@pytest.mark.parametrize("name", NAMES)
def test_every_number_word_has_a_second_entry(name):
    unequal = claims.unequal_words(name)
    assert unequal == {}, f"(on the page, in claims/{name}.toml)"


def test_number_words_are_found_whole():
    text = "Six tokens, *twenty*-four\nheads; the third\nrow. Someone often. Two"
    assert claims.number_words(text) == {
        "six tokens": 1,
        "twenty four": 1,
        "four heads": 1,
        "third row": 1,
        "two": 1,
    }


@pytest.mark.parametrize("name", NAMES)
def test_every_piece_stands_once_on_its_page(name):
    text = claims.told(name)
    for reason, piece in claims.load(name):
        filled = claims.filled(name, piece)
        assert text.count(filled) == 1, f"{reason}: {filled!r} ({text.count(filled)}×)"


def test_code_in_words_is_code_that_runs():
    for name, reason, piece in PIECES:
        if reason != claims.RUN:
            continue
        source = "\n".join(cell.source for cell in Page(name).code_cells)
        spans = [s for s in re.findall(r"`([^`]+)`", piece) if re.search(r"\d", s)]
        assert spans, f"{name}: {piece!r} holds no code with a digit"
        for span in spans:
            assert span in source, f"{name}: no cell holds {span!r}"


def test_no_claims_without_a_page():
    assert {p.stem for p in claims.CLAIMS.glob("*.toml")} <= set(NAMES)
