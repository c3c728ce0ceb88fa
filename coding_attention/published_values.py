"""The values that others published, and how a cell's output compares with them.

A code cell lists the values it prints in its metadata (`shows`). When a page is
executed or reworded, `record_verdicts` compares its outputs with `book/reference/` and
stores what it found in the cell (`published`). The site only shows these verdicts; the
tests compare again. Needs neither PyTorch nor a kernel.
"""

import json
import re
from functools import cache
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "book" / "reference"
# The verdicts. A value printed without a seed can't be computed again, so a cell can
# only repeat its digits.
EQUAL, ONE_OF_TWO, ABOUT = "equal", "equal to one of the two", "holds"
NO_SEED, NOT_EQUAL = "no seed", "not equal"
REPRODUCED = {EQUAL, ONE_OF_TWO, ABOUT}
# A number on its own: not the 32 of float32, not the 2 of W_2.
NUMBER = re.compile(r"(?<![\w.])-?(?:inf\b|\d+\.\d*(?:e[+-]?\d+)?|\d+(?![\w]))")
# Printed inputs have four decimals, so their means may differ in the last digit.
TOLERANCE = 1.00001e-4


@cache
def _read(name):
    return json.loads((DATA / name).read_text(encoding="utf-8"))


def read_values():
    """Read the published values, by id."""
    return {entry["id"]: entry for entry in _read("printed_values.json")}


def read_sources():
    """Read who printed what, and where: sources, places, concordance and card."""
    return _read("sources.json")


def read_errata():
    """Read what published sources get wrong, in the order of the errata page."""
    return _read("errata.json")


def find_entries(value_id):
    """Find the entries behind an id of `shows`: two for a dropout result.

    Raises:
        ValueError: nothing was published under this id.
    """
    entries = read_values()
    ids = [i for i in (value_id, f"{value_id}@a", f"{value_id}@b") if i in entries]
    if not ids:
        raise ValueError(
            f"{value_id!r} is no published value. `shows` takes ids of "
            f"{DATA.relative_to(ROOT)}/printed_values.json, such as 'scores_all'."
        )
    return [entries[i] for i in ids]


def text_of(cell):
    """Give what a code cell printed or returned, as plain text."""
    parts = []
    for output in cell.outputs:
        if output.output_type == "stream":
            parts.append(output.text)
        elif "data" in output:
            parts.append(output.data.get("text/plain", ""))
    return "\n".join(parts)


def find_numbers(text):
    """Find the numbers of a text, as they are written."""
    return NUMBER.findall(text)


def list_digits(values):
    """List the numbers of an entry in printing order."""
    if isinstance(values, str):
        return [values]
    return [digits for value in values for digits in list_digits(value)]


def find_place(numbers, entry):
    """Find an entry's values in a list of numbers.

    Args:
        numbers: what `find_numbers` gives.
        entry: a published value.

    Returns:
        The index of the first of them, or None.
    """
    wanted = list_digits(entry["values"])
    if entry["kind"] == "input":
        wanted = [_as_printed(digits) for digits in wanted]
    equal = _about_equal if entry["kind"] == "approximate" else list.__eq__
    size = len(wanted)
    starts = range(len(numbers) - size + 1)
    return next((i for i in starts if equal(numbers[i : i + size], wanted)), None)


def _about_equal(numbers, wanted):
    pairs = zip(numbers, wanted, strict=True)
    return all(abs(float(a) - float(b)) <= TOLERANCE for a, b in pairs)


def _as_printed(digits):
    # PyTorch prints a tensor of fractions with four decimals and one of whole numbers
    # with none; the inputs are published as they were typed.
    return digits if digits.endswith(".") else f"{float(digits):.4f}"


def compare(text, value_id):
    """Compare what a cell printed with a published value; give the verdict."""
    entries, numbers = find_entries(value_id), find_numbers(text)
    if all(find_place(numbers, entry) is None for entry in entries):
        return NOT_EQUAL
    if len(entries) > 1:
        return ONE_OF_TWO
    return {"example": NO_SEED, "approximate": ABOUT}.get(entries[0]["kind"], EQUAL)


def compare_cell(cell):
    """Compare a cell's output with each value that it shows; give verdicts by id."""
    values = cell.metadata.get("shows", ())
    return {value_id: compare(text_of(cell), value_id) for value_id in values}


def record_verdicts(notebook):
    """Store the verdicts in a notebook's cells, where the site reads them."""
    for cell in notebook.cells:
        if verdicts := compare_cell(cell):
            cell.metadata["published"] = verdicts


def read_verdicts(book=ROOT / "book"):
    """Give (page, name of the cell, value id, verdict) for all that pages store."""
    for path in sorted(book.glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            for value_id, verdict in cell.metadata.get("published", {}).items():
                yield path.stem, cell.metadata.get("name"), value_id, verdict
