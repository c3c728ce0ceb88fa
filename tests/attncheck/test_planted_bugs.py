"""Every planted bug is named; what the records say of it is so."""

import json
from difflib import unified_diff
from pathlib import Path
from textwrap import dedent

import pytest

import attncheck
from attncheck.mistakes import MISTAKES
from coding_attention.gallery.planted import BASES, HEADER, PLANTED

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


def mend(bug):
    """Return the lines to change, as a diff from the wrong class to the right."""
    right = (HEADER + "\n" + BASES[bug.base][0]).splitlines()
    wrong = [one for one in bug.source().splitlines() if one.strip() != "pass"]
    # The first three lines are the names of two files and of the first place.
    lines = list(unified_diff(wrong, right, n=0))[3:]
    between = [line.startswith("@@") for line in lines]
    code = ["" if b else one[1:] for b, one in zip(between, lines, strict=True)]
    mended = zip(between, lines, dedent("\n".join(code)).split("\n"), strict=True)
    return "\n".join("..." if b else f"{one[0]} {c}" for b, one, c in mended)


def test_the_lines_of_a_record_are_those_of_its_first_planted_bug():
    firsts = {bug.mistake: bug for bug in reversed(PLANTED.values())}
    derived = [m for m in MISTAKES.values() if m.shown and m.name in firsts]
    own = [m.name for m in derived if m.shown.strip() != mend(firsts[m.name]).strip()]
    assert len(derived) > 40
    assert own == ["mask_unwanted"]  # its planted class is one of cross-attention
