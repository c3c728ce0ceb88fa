"""The field study: complete, judged, and with a page that says what is stored."""

import json

from experiments.field import page
from experiments.field.__main__ import LIST, RESULTS, key


def stored(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_every_implementation_has_a_commit_a_hash_and_a_result():
    entries, results = stored(LIST), stored(RESULTS)
    assert len(entries) >= 40
    assert [key(e) for e in entries] == [key(r) for r in results]
    for entry in entries:
        assert len(entry["commit"]) == len(entry["blob"]) == 40


def test_every_accused_class_was_read():
    judged = stored(page.JUDGED)
    accused = [r for r in stored(RESULTS) if page.errors(r)]
    assert {key(r) for r in accused} <= set(judged)
    assert all(judged[key(r)]["why"].endswith(".") for r in accused)


def test_no_class_that_was_read_and_found_right_is_accused():
    judged = stored(page.JUDGED)
    accused = [key(r) for r in stored(RESULTS) if page.errors(r)]
    assert [name for name in accused if not judged[name]["right"]] == []


def test_the_page_says_what_is_stored():
    assert page.PAGE.read_text(encoding="utf-8") == page.written()
