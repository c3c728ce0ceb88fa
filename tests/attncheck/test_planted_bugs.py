"""Every planted bug is named; what the records say of it is so."""

import json
from pathlib import Path

import pytest

import attncheck
from attncheck.mistakes import MISTAKES
from coding_attention.gallery.planted import PLANTED

CODES = json.loads(Path(__file__).with_name("codes.json").read_text(encoding="utf-8"))
# Told first by another name, and not worth more code.
OTHERWISE = {"some_sizes_raise": "wrong_shape"}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_named_first(name):
    bug = PLANTED[name]
    report = attncheck.check(bug.build(), **bug.settings)
    found = [finding.mistake for finding in report.findings]
    assert found[:1] == [OTHERWISE.get(name, bug.mistake)], report.text(True)
    error = report.findings[0].severity == "error"
    assert report.exit_status == (1 if error else 0)
    assert "broken" not in [result.outcome for result in report.results]


def test_a_line_of_the_class_is_quoted():
    source = PLANTED["scale_missing"].source().splitlines()
    report = attncheck.check(PLANTED["scale_missing"].build())
    file, number, text = report.findings[0].place
    assert source[number - 1].strip() == text
    assert "softmax" in text
    assert file in str(report)
    assert text in str(report)


def test_a_code_is_never_given_to_another_mistake():
    for mistake in MISTAKES.values():
        assert CODES[mistake.code] == mistake.name
    assert len({mistake.code for mistake in MISTAKES.values()}) == len(MISTAKES) <= 90


def test_every_record_is_complete():
    for mistake in MISTAKES.values():
        for text in (mistake.title, mistake.means, mistake.line, mistake.stage):
            assert text, mistake.name
        assert mistake.page in attncheck.report.PAGES


def test_the_lines_of_a_record_are_those_of_its_first_planted_bug():
    firsts = {bug.mistake: bug for bug in reversed(PLANTED.values())}
    derived = [m for m in MISTAKES.values() if m.shown and m.name in firsts]
    own = [m.name for m in derived
           if m.shown.strip() != firsts[m.name].mended().strip()]  # fmt: skip
    assert len(derived) > 40
    assert own == ["mask_unwanted"]  # its planted class is one of cross-attention
