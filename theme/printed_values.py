"""The published values and the cells that show them.

Shared by the tests and by the page "Sources and checks", so that both mean
the same by "shown" and "equal". Needs neither PyTorch nor a kernel.
"""

import json
import re
from functools import cache
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "reference"
# A number that stands for itself: not the 32 of float32, not the 2 of W_2.
NUMBER = re.compile(r"(?<![\w.])-?(?:inf\b|\d+\.\d*(?:e[+-]?\d+)?|\d+(?![\w]))")
# Printed inputs have four decimals, so a mean of theirs may differ in the last digit.
TOLERANCE = 1.00001e-4


def reference():
    """The published values, by id."""
    text = (DATA / "printed_values.json").read_text(encoding="utf-8")
    return {entry["id"]: entry for entry in json.loads(text)}


@cache
def sources():
    """Who printed what, and where: sources, places, concordance and card."""
    return json.loads((DATA / "sources.json").read_text(encoding="utf-8"))


def source_names():
    """What each source is called in a sentence."""
    return {key: source["name"] for key, source in sources()["sources"].items()}


def errata():
    """What published sources get wrong, in the order of the errata page."""
    return json.loads((DATA / "errata.json").read_text(encoding="utf-8"))


def text_of(cell):
    """What a code cell printed or returned, as plain text."""
    parts = []
    for output in cell.outputs:
        if output.output_type == "stream":
            parts.append(output.text)
        elif "data" in output:
            parts.append(output.data.get("text/plain", ""))
    return "\n".join(parts)


def numbers(text):
    """The numbers of a text, as they are written."""
    return NUMBER.findall(text)


def flatten(values):
    """The digits of a reference entry in printing order."""
    if isinstance(values, str):
        return [values]
    return [digit for value in values for digit in flatten(value)]


def _find_run(haystack, needle, equal):
    size = len(needle)
    starts = range(len(haystack) - size + 1)
    return next((i for i in starts if equal(haystack[i : i + size], needle)), None)


def published(value_id):
    """The entries that a cell may show under this id: two for either dropout."""
    entries = reference()
    if value_id in entries:
        return [entries[value_id]]
    either = [f"{value_id}@a", f"{value_id}@b"]
    return [entries[i] for i in either if i in entries]


def shows(text, value_id):
    """Tell whether a cell's text shows the digits that were published under an id."""
    found = numbers(text)
    return any(place(found, entry) is not None for entry in published(value_id))


def place(found, entry):
    """Find the digits of an entry among the numbers of a text.

    Args:
        found: what `numbers` gives.
        entry: a reference entry.

    Returns:
        The index of the first of them, or None.
    """
    digits = flatten(entry["values"])
    if entry["kind"] == "input":
        digits = [_as_printed(digit) for digit in digits]
    equal = _about if entry["kind"] == "approximate" else list.__eq__
    return _find_run(found, digits, equal)


def _about(found, wanted):
    pairs = zip(found, wanted, strict=True)
    return all(abs(float(a) - float(b)) <= TOLERANCE for a, b in pairs)


def _as_printed(digits):
    # PyTorch prints a tensor of fractions with four decimals, one of whole numbers
    # with none; the inputs are published as they were typed.
    return digits if digits.endswith(".") else f"{float(digits):.4f}"


def cells_that_show(book=ROOT / "book"):
    """(page, cell, id) for every value that a cell claims to show."""
    for path in sorted(book.glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            for value_id in cell.metadata.get("shows", []):
                yield path.stem, cell, value_id
