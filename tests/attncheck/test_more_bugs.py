"""Bugs in what surrounds attention: named first in most, found in all."""

from collections import Counter

import pytest

import attncheck
from coding_attention.gallery.more_bases import MORE_BASES
from coding_attention.gallery.more_bugs import MORE
from coding_attention.gallery.planted_bugs import HEADER, compiled

REPORTS = {}


def report_on(bug):
    if bug.name not in REPORTS:
        REPORTS[bug.name] = getattr(attncheck, bug.preset)(
            bug.build(), **bug.settings()
        )
    return REPORTS[bug.name]


@pytest.mark.parametrize("name", MORE_BASES)
def test_nothing_is_found_in_the_right_class(name):
    source, preset, arguments = MORE_BASES[name]
    cls = compiled(HEADER + source, f"{name}.py")
    report = getattr(attncheck, preset)(cls, **arguments)
    assert report.findings == [], str(report)
    assert not report.not_compared


@pytest.mark.parametrize("bug", MORE, ids=lambda bug: bug.name)
def test_a_bug_around_attention_is_found(bug):
    report = report_on(bug)
    assert report.findings, str(report)
    assert [r for r in report.results if r.outcome == "broken"] == []


def test_most_are_named_first():
    places = Counter()
    for bug in MORE:
        names = [f.mistake for f in report_on(bug).findings]
        place = names.index(bug.expected) if bug.expected in names else "another name"
        places["nothing" if not names else place] += 1
    assert len(MORE) >= 50
    assert places[0] >= 50, places
    assert places["another name"] <= 2, places
    assert places["nothing"] == 0, places
