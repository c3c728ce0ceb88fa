"""The report on a class: points, what to look at, mistakes by frequency, feedback."""

import csv
import io
import re
from pathlib import Path

import pytest

from coding_attention.grading import ASSIGNMENTS, commandline
from coding_attention.grading.row import Row
from coding_attention.grading.runner import Run
from tests.coding_attention.grading.the_class import (
    SETUP,
    answers,
    dropout_of,
    report_of,
    row_of,
)

CHECK = 'check_exercise("{}", None)'
OPEN = [CHECK.format(name) for name in ("padding", "causal-class")]


@pytest.fixture(scope="module")
def report():
    students = {
        "anna": answers("anna"),
        "ben": answers("ben", "diagonal"),
        "chi": answers("chi", "diagonal", "sums"),
        "dora": answers("dora", dropout=dropout_of("dora")[1]),
        "copied": answers("copied", dropout=dropout_of("anna")[0]),
        "guessed": answers("guessed", dropout=(0.25, 0.125)),
    }
    rows = [row_of(name, cells + OPEN) for name, cells in students.items()]
    rows.append(row_of("unsolved", [SETUP.format(student="unsolved"), *OPEN]))
    rows.append(row_of("deleted", answers("deleted")[:3]))
    empty = Row(Path("empty.ipynb"), "empty", status="not run", reason="an empty file")
    return report_of([*rows, empty])


@pytest.fixture(scope="module")
def rows(report):
    return {row.student: row for row in report.rows}


# The mask gives 1 point, dropout 2, the mean of the past 2.
@pytest.mark.parametrize(
    ("student", "points"),
    [("anna", 5), ("ben", 4), ("chi", 2), ("dora", 3), ("copied", 3), ("guessed", 3),
     ("unsolved", 0), ("deleted", 1), ("empty", 0)],
)  # fmt: skip
def test_points(report, rows, student, points):
    assert report.points_of(rows[student]) == points


def test_what_cannot_be_graded_says_why(rows):
    reasons = {row.student: row.reason for row in rows.values() if row.reason}
    assert reasons == {
        "unsolved": "every answer is the placeholder",
        "empty": "an empty file",
    }


@pytest.mark.parametrize(
    ("student", "note"),
    [
        ("deleted", "no cell checks padding, dropout, mean-of-the-past, causal-class"),
        ("unsolved", "no cell checks causal-mask, dropout, mean-of-the-past"),
    ],
)
def test_what_is_odd_is_noted(rows, student, note):
    assert any(note in told for told in rows[student].notes)


def test_an_ordinary_notebook_has_no_note(rows):
    for student in ("anna", "ben", "chi", "dora", "guessed"):
        assert rows[student].notes == []


def test_two_notebooks_of_one_student_are_told_apart(tmp_path):
    anna, copy = (
        row_of("anna", answers("anna"), f"{folder}/anna.ipynb") for folder in "ab"
    )
    other = row_of("anna", answers("anna"), "ben.ipynb")
    report = report_of([anna, copy, other])
    assert "3 notebooks are anna's" in anna.notes
    assert "handed out to anna: look at the name" in other.notes
    table = [line.split()[:2] for line in report.text().splitlines()[3:6]]
    assert table == [["anna", "a/anna.ipynb"], ["anna", "b/anna.ipynb"],
                     ["anna", "ben.ipynb"]]  # fmt: skip
    commandline._write_feedback(report, tmp_path / "new")
    files = sorted(file.name for file in (tmp_path / "new").iterdir())
    assert files == ["a-anna.md", "b-anna.md", "ben.md"]


def test_the_mistakes_of_the_class_are_counted(report):
    counted = [(m["count"], m["of"], m["exercise"]) for m in report.mistakes]
    assert counted[0] == (2, 7, "causal-mask")
    assert set(counted) == {
        (2, 7, "causal-mask"), (2, 6, "dropout"), (1, 6, "dropout"),
        (1, 6, "mean-of-the-past"),
    }  # fmt: skip
    assert report.mistakes[0]["text"].startswith("This hides the diagonal too")
    assert not any("To read" in mistake["text"] for mistake in report.mistakes)
    assert report.mistakes[0]["students"] == ["ben", "chi"]


def test_a_mistake_without_a_name_comes_with_its_answers(report):
    (guessed,) = [m for m in report.mistakes if "guessed" in m["students"]]
    assert guessed["answers"][1] == "[0.25, 0.125]"
    assert "; [0.25, 0.125]." in " ".join(report.text().split())


def test_the_report_to_read(report):
    text = report.text()
    assert max(map(len, text.splitlines())) <= 88
    assert "9 notebooks (7 graded, 1 no answers, 1 not run)" in text
    (line,) = [line for line in text.splitlines() if line.startswith("chi ")]
    assert line.split() == ["chi", "chi.ipynb", "2/10", "-", ".", "+", "-", "."]
    # Each sign stands below the number of its exercise, which the legend names.
    (head,) = [line for line in text.splitlines() if line.startswith("student ")]
    ends = [[m.end() for m in re.finditer(r"\S+", told)][2:] for told in (head, line)]
    assert ends[0] == ends[1]
    names = [f"{n} {name} (" for n, name in enumerate(ASSIGNMENTS["causal"].points, 1)]
    assert all(name in " ".join(text.split()) for name in names)


def test_feedback_has_what_each_check_said(report, rows):
    text = report.feedback(rows["chi"])
    assert "2 of 10 points." in text
    assert "This hides the diagonal too" in text
    assert text.count("\n## ") == 5
    assert "Your answer: `(0.25, 0.125)`" in report.feedback(rows["guessed"])
    assert report.feedback(rows["deleted"]).count("no cell that checks") == 4
    assert "not run: an empty file." in report.feedback(rows["empty"])


def test_the_report_for_a_spreadsheet(report):
    lines = {s["student"]: s for s in csv.DictReader(io.StringIO(report.csv()))}
    assert len(lines) == 9
    assert lines["ben"]["points"] == "4"
    assert (lines["ben"]["causal-mask"], lines["ben"]["dropout"]) == ("0", "2")
    assert lines["empty"]["reason"] == "an empty file"


def test_the_last_check_counts_and_others_may_have_written():
    row = Row(Path("it.ipynb"), "it", cells=["x"])
    told = {"exercise": "scale", "text": "", "answer": 1}
    verdicts = [
        told | {"outcome": "right"},
        told | {"outcome": "not right"},
        told | {"outcome": "splendid"},
        {"outcome": "right"},
    ]
    row.take(Run(verdicts=verdicts, ended="it stopped", cell=1))
    assert row.verdicts == {"scale": {"outcome": "not right", "text": ""}}
    assert (row.status, row.reason) == ("stopped", "it stopped, in cell 1: x")


def test_a_spreadsheet_gets_no_formulas_and_a_report_no_lines():
    bad = Row(Path("=1+2.ipynb"), "=1+2", cells=["x"])
    bad.take(Run(raised=[(1, "ValueError: a\nstudent-00  10/10")]))
    report = report_of([bad])
    assert report.csv().splitlines()[1].startswith("'=1+2,")
    assert not any(line.startswith("student-00") for line in report.text().split("\n"))
