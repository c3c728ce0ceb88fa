"""Other people's classes: the sets are complete, and the page says what is stored."""

import ast
import json
import re

import pytest

from attncheck.mistakes import MISTAKES
from experiments.field import blind, study, table


@pytest.mark.parametrize("name", table.SETS)
def test_every_public_class_has_an_address_and_a_licence(name):
    public = [e for e in blind.entries(name) if e["id"].startswith("c")]
    assert len(public) + len(blind.bugs(name)) >= 15
    for entry in public:
        known = re.fullmatch(r"[\w.-]+/[\w.-]+/.+@[0-9a-f]{40}", entry["address"])
        assert known or entry["found"], entry["id"]
        assert entry["licence"]


@pytest.mark.parametrize("name", table.PLANTED)
def test_every_bug_is_stored_as_code_of_its_own(name):
    bugs = {e["id"]: e for e in blind.entries(name) if e["id"].startswith("b")}
    sources = blind.bugs(name)
    assert len(bugs) >= 15
    assert set(sources) == set(bugs)
    assert len(set(sources.values())) == len(sources)
    for one, source in sources.items():
        classes = [n.name for n in ast.parse(source).body if hasattr(n, "bases")]
        assert bugs[one]["class"] in classes, one


@pytest.mark.parametrize("name", table.SETS)
def test_every_mistake_has_a_stage_and_names_that_the_checker_knows(name):
    for entry in blind.entries(name):
        if "wrong" in entry:
            assert entry["stage"], entry["id"]
            assert set(entry["names"]) <= set(MISTAKES), entry["id"]


@pytest.mark.parametrize("column", table.COLUMNS, ids=" ".join)
def test_a_column_of_the_table_stands_on_every_class_of_its_set(column):
    path = blind.HERE / "results" / "{}-{}.json".format(*column)
    results = json.loads(path.read_text(encoding="utf-8"))
    assert list(results) == [e["id"] for e in blind.entries(column[0])]


def test_the_page_says_what_is_stored():
    page = table.PAGE.read_text(encoding="utf-8")
    assert {"table", "notes", "summary"} <= {m[2] for m in table.PLACE.finditer(page)}
    assert page == table.written(page)


def test_each_set_has_a_column_with_numbers_and_no_other_has_one():
    made = table.table()
    heads = [line for line in made.splitlines() if "by set |" in line]
    shown = {head.strip() for line in heads for head in line.split("|")[2:-1]}
    assert (len(heads), shown) == (2, {*table.SHORT.values()})
    assert [*table.SHORT] == table.SETS
    assert "–" not in made
    assert all(f"`{version}`" in made for _, version in table.COLUMNS)


def report(status, *found, stage="", compared=True):
    return {"exit": status, "compared": compared, "stage": stage, "found": [*found]}


def test_what_is_counted():
    bug = {"id": "b1", "wrong": "no scale", "stage": "scores", "names": ["a"]}
    right = {"id": "c1", "class": "A", "address": "who/what/a/b.py@1"}
    public = bug | right | {"id": "c2", "class": "B"}
    pairs = [
        (right, {"as is": report(3), "proposed": report(1, "b")}),
        (right, {"as is": report(2), "retry": report(0)}),
        (right | {"faults": ["b", "c"]}, {"as is": report(1, "b")}),
        (right, {"as is": report(1, "forward_raises", compared=False)}),
        (public, {"as is": report(1, "b", stage="scores")}),
        (public | {"seen": "who/b.py"}, {"as is": report(3)}),
        (bug, {"as is": report(0), "declared": report(1, "a", stage="mask")}),
        (bug, {"as is": report(3), "proposed": report(2)}),
        (bug, {"as is": report(1, "b", "a", stage="mask")}),
        (bug, {"as is": report(0, compared=False) | {"warned": ["a"]}}),
    ]
    assert table.counts(pairs, {("who", "what", "b.py", "A")}) == {
        "public classes (of these, known before)": "6 (5)",
        "ran at the first attempt": "4 of 6",
        "not judged": "2 of 6",
        "not judged, even with the proposed command": "1 of 6",
        "correct classes: flagged (of these, rightly)": "2 (1) of 4",
        "wrong classes: named (or the right stage)": "0 (1) of 2",
        "wrong classes: passed (of these, named in a warning)": "0 (0)",
        "wrong classes: not judged": "1",
        "planted bugs: named (or the right stage)": "0 (0) of 4",
        "planted bugs: passed (of these, named in a warning)": "2 (1)",
        "planted bugs: not judged": "1",
        "planted bugs, declared: named (or the right stage)": "1 (1) of 4",
        "planted bugs, declared: passed (of these, named in a warning)": "1 (1)",
        "planted bugs, declared: not judged": "1",
        "runs passed, but not compared": "1 of 14",
    }


def test_every_class_of_the_study_has_a_commit_a_hash_and_a_result():
    entries = json.loads(study.LIST.read_text(encoding="utf-8"))
    results = json.loads(study.RESULTS.read_text(encoding="utf-8"))
    assert len(entries) >= 40
    assert [study.key(e) for e in entries] == list(results)
    for entry in entries:
        assert len(entry["commit"]) == len(entry["blob"]) == 40


def test_every_class_of_the_study_that_is_flagged_was_read():
    for entry, result in table.known():
        if result.get("found"):
            assert entry["why"].endswith("."), entry["path"]
