"""Every published value is shown, digit for digit, by a named cell of a page."""

import pytest

from coding_attention.published_values import (
    NOT_EQUAL,
    compare,
    find_entries,
    find_numbers,
    find_place,
    list_digits,
    read_values,
    text_of,
)
from tests.book.pages import pages

REFERENCE = read_values()
MUST_BE_SHOWN = {
    i.partition("@")[0]
    for i, entry in REFERENCE.items()
    if entry["kind"] in ("input", "output", "approximate", "erratum")
}
SHOWN = [
    (page.name, cell, value_id)
    for page in pages()
    for cell in page.code_cells
    for value_id in cell.metadata.get("shows", [])
]


def test_every_value_has_a_cell():
    shown = {value_id for _, _, value_id in SHOWN}
    assert MUST_BE_SHOWN - shown == set(), "no cell shows these published values"
    known = {i.partition("@")[0] for i in REFERENCE}
    assert shown - known == set(), "cells claim values that the data lack"


@pytest.mark.parametrize(
    ("page", "cell", "value_id"), SHOWN, ids=[f"{p}-{i}" for p, _, i in SHOWN]
)
def test_cell_shows_the_published_digits(page, cell, value_id):
    """Compared again here: a stored verdict is no evidence of its own."""
    assert cell.metadata.get("name"), f"{page}: the cell for {value_id} has no name"
    verdict = compare(text_of(cell), value_id)
    assert verdict != NOT_EQUAL, (
        f"{page}, cell {cell.metadata['name']} prints {find_numbers(text_of(cell))}, "
        f"but published is {[entry['values'] for entry in find_entries(value_id)]}"
    )
    assert cell.metadata["published"][value_id] == verdict, (
        f"{page}: the site would show another verdict. Run: make notebooks"
    )


def test_outputs_that_nbval_skips_are_published_ones():
    """The cells whose digits nbval leaves alone print one of the two dropout results,
    whole, and nothing else."""
    for page in pages():
        for cell in page.code_cells:
            if "nbval-ignore-output" not in cell.metadata.get("tags", []):
                continue
            where = f"{page.name}, {cell.metadata.get('name')}"
            if "drawn-in-a-widget" in cell.metadata.tags:
                assert "ipywidgets" in cell.source, where  # nbval knows no such output
                continue
            assert "either-dropout" in cell.metadata.tags, f"{where}: not compared"
            (value_id,) = cell.metadata.shows
            assert compare(text_of(cell), value_id) != NOT_EQUAL, where
            words = set(text_of(cell).translate(PUNCTUATION).split())
            digits = {d for e in find_entries(value_id) for d in _flat(e["values"])}
            assert words <= digits | {"tensor"}, where


PUNCTUATION = str.maketrans("()[],", "     ")


def _flat(values):
    return {values} if isinstance(values, str) else set().union(*map(_flat, values))


@pytest.mark.parametrize(
    ("value_id", "text", "verdict"),
    [
        ("score_22", "tensor(1.8524)", "equal"),
        ("score_22", "tensor(1.8525)", "not equal"),
        ("averaging_x0", "tensor([0.1, 0.2])", "not equal"),
        ("inputs", "", "not equal"),
    ],
)
def test_a_differing_digit_is_called_different(value_id, text, verdict):
    assert compare(text, value_id) == verdict


def test_an_unknown_value_is_refused():
    with pytest.raises(ValueError, match="'score_23' is no published value"):
        compare("1.8524", "score_23")


def test_a_value_printed_about_has_each_of_its_digits_about():
    about = [entry for entry in REFERENCE.values() if entry["kind"] == "approximate"]
    for entry in about:
        digits = [float(digit) for digit in list_digits(entry["values"])]
        assert find_place([f"{digit + 1e-6}" for digit in digits], entry) == 0
        for at in range(len(digits)):
            off = [digit + (at == i) for i, digit in enumerate(digits)]
            assert find_place([str(digit) for digit in off], entry) is None
    assert about
