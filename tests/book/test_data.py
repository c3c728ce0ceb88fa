"""The published values: whole, and unchanged where nothing recomputes them."""

import hashlib
import json
import re

import pytest

from coding_attention.published_values import (
    DATA,
    find_numbers,
    list_digits,
    read_errata,
    read_sources,
    read_values,
)
from tests.book.pages import BOOK
from tests.book.test_links import anchors

ENTRIES = read_values()
KINDS = {"input", "output", "approximate", "example", "erratum"}
# Printed without a seed, so no computation gives them again. Their digits are held by
# a second entry: this sum changes with any of them.
EXAMPLES_SHA256 = "27eb791dfc4bb741b9151c82101d80605f8ad6b3ee685add95108882ca7532b7"


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


def test_each_value_is_said_to_be_printed_by_whom_the_evidence_names():
    """Two records: the values name who printed them, and the places say where."""
    places, sources = read_sources()["places"], read_sources()["sources"]
    assert places.keys() == ENTRIES.keys()
    for value, entry in ENTRIES.items():
        said = {*entry["printed_by"], *entry.get("code_of", [])}
        for source in said ^ places[value].keys():
            assert source in sources, (
                f"{value}: {source!r} is none of {', '.join(sources)}."
            )
            assert source in places[value], (
                f"printed_values.json says that {source} printed {value}, and "
                f"sources.json has no place for it there. It has: {[*places[value]]}."
            )
            pytest.fail(
                f"sources.json has a place for {value} in {source}, and "
                f"printed_values.json does not name it. It names: {sorted(said)}."
            )


@pytest.mark.parametrize("value", ENTRIES)
def test_the_line_as_printed_has_the_digits_of_its_value(value):
    for source, place in read_sources()["places"][value].items():
        code_of = source in ENTRIES[value].get("code_of", [])
        typed = value in ("inputs", "heads_example")  # in no source's output
        assert place["printed"] != (code_of or typed), f"{value}: printed, or not?"
        if read_sources()["sources"][source]["address"]:
            line = find_numbers(place["line"].partition("#")[0])
            digits = list_digits(ENTRIES[value]["values"])
            size = min(len(line), len(digits))
            starts = range(len(line) - size + 1)
            assert any(line[i : i + size] == digits[:size] for i in starts) or (
                line[-1:] == digits[-1:]
            ), f"{value}: {source} is said to have printed {place['line']!r}."


def test_a_source_has_a_fixed_address_or_the_word_why_there_is_none():
    for key, source in read_sources()["sources"].items():
        if source["address"]:
            assert re.search(r"/blob/[0-9a-f]{40}/", source["address"]), key
        else:
            assert source["because"].startswith("No address known: "), key
    for erratum in read_errata():
        assert erratum["source"] in read_sources()["sources"], erratum["id"]
        at = erratum.get("address")
        assert at is None or re.search(r"/blob/[0-9a-f]{40}/", at), erratum["id"]


def anchors_of(page):
    path = BOOK / f"{page}.ipynb"
    return anchors(path if path.exists() else path.with_suffix(".md"))


def _listed(source, kind):
    rows = read_sources()["concordance"]
    return [r["item"] for r in rows if (r["source"], r["kind"]) == (source, kind)]


def test_every_section_figure_listing_and_exercise_of_the_chapter_is_mapped():
    sections = [i.split()[0] for i in _listed("chapter", "section")]
    small = {"3.3": 2, "3.4": 2, "3.5": 3, "3.6": 2}
    wanted = [f"3.{n}" for n in range(1, 7)]
    wanted += [f"{s}.{n + 1}" for s, count in small.items() for n in range(count)]
    assert sorted(sections) == sorted([*wanted, "Summary"])
    for kind, count in {"figure": 26, "listing": 5, "exercise": 3}.items():
        named = [item.partition(":")[0] for item in _listed("chapter", kind)]
        assert named == [f"{kind.title()} 3.{n + 1}" for n in range(count)]


def test_every_item_has_a_place_that_exists_or_a_reason():
    for row in read_sources()["concordance"]:
        assert bool(row.get("at")) != bool(row.get("left_out")), row["item"]
        for at in row.get("at", []):
            page, _, anchor = at.partition("#")
            assert (BOOK / f"{page}.md").exists(), at
            assert not anchor or anchor in anchors_of(page), f"{row['item']}: {at}"
