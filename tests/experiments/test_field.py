"""Other people's classes: the set is complete, and the page says what is stored."""

import re

import pytest

from attncheck.mistakes import MISTAKES
from experiments.field import __main__ as field


def test_the_set_has_addresses_licenses_and_names_that_the_checker_knows():
    entries = field.read_set()
    assert len({entry["id"] for entry in entries}) == len(entries) >= 80
    wrong = [entry for entry in entries if "wrong" in entry]
    assert 30 < len(wrong) < len(entries) - 30
    for entry in entries:
        known = re.fullmatch(r"[\w.-]+/[\w.-]+/.+@[0-9a-f]{40}", entry["address"])
        assert known, entry["id"]
        assert entry["licence"]
    for entry in wrong:
        assert set(entry["names"]) <= set(MISTAKES), entry["id"]


@pytest.mark.parametrize("version", field.VERSIONS)
def test_a_version_was_run_on_at_least_eighty_classes_of_the_set(version):
    results = field.read_results(version)
    assert len(results) >= 80
    assert set(results) <= {entry["id"] for entry in field.read_set()}
    for row in results.values():
        assert row["exit"] in (0, 1, 2, 3)
        assert row["exit"] != 0 or row["compared"]  # never green without having tried


def test_the_page_says_what_is_stored():
    page = field.PAGE.read_text(encoding="utf-8")
    assert field.PLACE.search(page)
    assert page == field.write_page(page)


RIGHT = {"id": "a"}
WRONG = RIGHT | {"wrong": "no scale", "names": ["scale_missing"]}


@pytest.mark.parametrize(
    ("entry", "exit_status", "found", "warned", "verdict"),
    [
        (RIGHT, 0, [], [], "passed"),
        (RIGHT, 1, ["scale_missing"], [], "flagged"),
        (RIGHT, 3, [], [], "not judged"),
        (RIGHT, 2, [], [], "not run"),
        (RIGHT, 3, ["forward_raises"], [], "not run"),
        (WRONG, 1, ["scale_missing", "differs"], [], "named"),
        (WRONG, 1, ["differs", "scale_missing"], [], "another mistake"),
        (WRONG, 0, [], ["scale_missing"], "named in a warning"),
        (WRONG, 0, [], ["differs"], "passed"),
        (WRONG, 3, [], [], "not judged"),
    ],
)
def test_what_a_report_is_worth(entry, exit_status, found, warned, verdict):
    row = {"exit": exit_status, "found": found, "warned": warned}
    assert field.judge(entry, row) == verdict
