"""The published values: whole, and unchanged where nothing recomputes them."""

import hashlib
import json
import re

from tests.book.pages import BOOK
from theme.printed_values import DATA, reference

ENTRIES = reference()
KINDS = {"input", "output", "approximate", "example", "erratum"}
# Printed without a seed, so no computation gives them again. Their digits are held by
# a second entry: this sum changes with any of them.
EXAMPLES_SHA256 = "27eb791dfc4bb741b9151c82101d80605f8ad6b3ee685add95108882ca7532b7"

# The same for who printed a value, and where: no computation shows it either.
SOURCES_SHA256 = "a1c21a71bdad4d5481a4d52728b3dbb575a6cec71169e0a104ce9598839fa1c0"


def test_ids_are_unique_and_entries_whole():
    listed = json.loads((DATA / "printed_values.json").read_text(encoding="utf-8"))
    assert len(ENTRIES) == len(listed)
    for entry in listed:
        assert entry["kind"] in KINDS, entry["id"]
        assert {"id", "section", "how", "values", "printed_by"} <= set(entry), entry[
            "id"
        ]


def test_examples_are_as_published():
    examples = {i: e["values"] for i, e in ENTRIES.items() if e["kind"] == "example"}
    text = json.dumps(examples, sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest() == EXAMPLES_SHA256


def test_sources_are_as_found_and_explained():
    found = {i: [e["section"], e["printed_by"]] for i, e in ENTRIES.items()}
    text = json.dumps(found, sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest() == SOURCES_SHA256
    page = (BOOK / "provenance.md").read_text(encoding="utf-8")
    terms = set(re.findall(r"^(.+)\n: ", page, re.M))
    explained = {name for term in terms for name in term.split(", ")}
    assert {name for e in ENTRIES.values() for name in e["printed_by"]} == explained


def test_inputs_are_as_published():
    """Inputs are shown by cells; heads_example is also squared by its outputs."""
    inputs = {i for i, e in ENTRIES.items() if e["kind"] == "input"}
    assert inputs == {"inputs", "heads_example", "averaging_x0", "averaging_b"}
