"""The grader over thirty notebooks, hanging, crashing and empty ones among them."""

import csv
import io
import json
import re

import pytest

from coding_attention.grading import ASSIGNMENTS, Limits, grade
from tests.coding_attention.grading.the_class import COURSE, write_class

# Generous: an ordinary notebook takes a second of the processor, and a hang takes all.
LIMITS = Limits(processor=6, seconds=40, memory=2)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class")
    assert len(write_class(folder)) == 30
    return grade([folder], COURSE, ASSIGNMENTS["causal"], LIMITS)


@pytest.fixture(scope="module")
def rows(report):
    return {row.student: row for row in report.rows}


def test_each_notebook_has_its_row(report, rows):
    assert len(rows) == len(report.rows) == 30
    assert report.exit_status == 1


# mask (1 point), dropout (2), mean of the past (2); the other two are not answered.
POINTS = {
    "student-00": 5, "student-04": 5,
    "student-05": 4, "student-10": 4,
    "student-11": 2, "student-13": 2,
    "student-14": 3, "student-15": 3,
    "copied": 3, "not-rescaled": 3, "ends-in-an-answer": 3,
    "exits": 5, "raises": 5, "eats-memory": 5,
    "loops": 1, "sleeps": 1, "crashes": 1, "ends": 3,
    "unsolved": 0, "empty": 0, "no-notebook": 0, "no-answers": 0,
}  # fmt: skip


@pytest.mark.parametrize("student", POINTS)
def test_points(report, rows, student):
    assert report.points_of(rows[student]) == POINTS[student]


STATUS = {
    "loops": ("stopped", "used more than 6 s of processor time, in cell 4: while True"),
    "sleeps": ("stopped", "did not finish within 40 s, in cell 4: import time"),
    "crashes": ("stopped", "ended by the signal SIGSEGV, in cell 4: import ctypes"),
    "ends": ("stopped", "its process ended with status 0, in cell 6: import os"),
    "unsolved": ("no answers", "every answer is the placeholder"),
    "no-answers": ("no answers", "no cell calls check_exercise"),
    "empty": ("not run", "an empty file"),
    "no-notebook": ("not run", "not a notebook: it isn't JSON"),
}


@pytest.mark.parametrize("student", STATUS)
def test_what_cannot_be_graded_says_why(rows, student):
    status, reason = STATUS[student]
    assert rows[student].status == status
    assert reason in rows[student].reason


def test_all_others_are_graded(rows):
    others = [row for name, row in rows.items() if name not in STATUS]
    assert len(others) == 22
    assert {(row.status, row.reason) for row in others} == {("graded", "")}


NOTES = {
    "exits": "cell 1 raised SystemExit: 1",
    "raises": "cell 2 raised ZeroDivisionError: division by zero",
    "eats-memory": "cell 10 raised MemoryError",
    "copied": "the answer to dropout is right for student-00",
    "no-answers": "doesn't say whose sizes it has: taken from its file name",
}


@pytest.mark.parametrize("student", NOTES)
def test_what_is_odd_is_noted(rows, student):
    assert any(NOTES[student] in note for note in rows[student].notes)


def test_an_ordinary_notebook_has_no_note(rows):
    for number in range(16):
        assert rows[f"student-{number:02}"].notes == []


def test_an_answer_that_ends_its_process_costs_no_other(rows):
    verdicts = rows["ends-in-an-answer"].verdicts
    assert verdicts["causal-mask"]["outcome"] == "right"
    assert verdicts["mean-of-the-past"]["outcome"] == "unusable"
    assert "process ended with status 3" in verdicts["mean-of-the-past"]["text"]


def test_the_mistakes_of_the_class_are_counted(report):
    counted = [(m["count"], m["of"], m["exercise"]) for m in report.mistakes]
    assert counted[:3] == [
        (6, 26, "causal-mask"), (3, 26, "causal-mask"), (3, 22, "mean-of-the-past"),
    ]  # fmt: skip
    assert report.mistakes[0]["text"].startswith("This hides the diagonal too")
    assert not any("To read" in mistake["text"] for mistake in report.mistakes)
    assert report.mistakes[0]["students"] == [f"student-{n:02}" for n in range(5, 11)]


def test_the_report_to_read(report):
    text = report.text()
    assert max(map(len, text.splitlines())) <= 88
    assert "30 notebooks (22 graded, 2 no answers, 4 stopped, 2 not run)" in text
    assert " 6 of 26  causal-mask: This hides the diagonal too" in text
    (line,) = [line for line in text.splitlines() if line.startswith("student-05 ")]
    assert line.split() == ["student-05", "4/10", "-", ".", "+", "+", "."]
    # Each sign stands below the number of its exercise, which the legend names.
    (head,) = [line for line in text.splitlines() if line.startswith("student ")]
    assert head.split() == ["student", "points", "1", "2", "3", "4", "5"]
    ends = [[m.end() for m in re.finditer(r"\S+", told)][2:] for told in (head, line)]
    assert ends[0] == ends[1]
    names = [f"{n} {name} (" for n, name in enumerate(ASSIGNMENTS["causal"].points, 1)]
    assert all(name in " ".join(text.split()) for name in names)


def test_the_report_for_programs(report):
    students = {s["student"]: s for s in json.loads(report.json())["students"]}
    assert len(students) == 30
    assert students["student-05"]["points"] == 4
    mask = students["student-05"]["exercises"]["causal-mask"]
    assert mask["outcome"] == "not right"
    assert "This hides the diagonal too" in mask["text"]


def test_the_report_for_a_spreadsheet(report):
    lines = list(csv.DictReader(io.StringIO(report.csv())))
    assert len(lines) == 30
    by_student = {line["student"]: line for line in lines}
    assert by_student["student-05"]["points"] == "4"
    assert by_student["student-05"]["causal-mask"] == "0"
    assert by_student["student-05"]["dropout"] == "2"
    assert by_student["empty"]["reason"] == "an empty file"
