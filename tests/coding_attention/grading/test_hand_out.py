"""Assignments that are written: tasks from the page, sizes of one's own, nbgrader's."""

import csv
import io
import json
import os
import re
import subprocess
import sys

import pytest

from coding_attention.grading import ASSIGNMENTS, VARIED
from coding_attention.grading.assignments import Assignment
from coding_attention.grading.commandline import main
from coding_attention.grading.hand_out import HandOutError, hand_out, nbgrader
from tests.book.pages import ROOT
from tests.coding_attention.grading.the_class import COURSE, report_of, row_of


def cells(file):
    notebook = json.loads(file.read_text(encoding="utf-8"))
    return [(c["cell_type"], c["source"], c["metadata"]) for c in notebook["cells"]]


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_an_assignment_is_handed_out_unsolved(tmp_path, name):
    files = hand_out(name, tmp_path / "new" / name, COURSE, ["anna", "ben"])
    anna, ben = map(cells, files)
    row = row_of("anna", [source for kind, source, _ in anna if kind == "code"])
    report_of([row], name)
    assert row.reason == "every answer is the placeholder"
    assert list(row.verdicts) == list(ASSIGNMENTS[name].points)
    assert row.notes == []
    varied = [exercise for exercise in ASSIGNMENTS[name].points if exercise in VARIED]
    # The setup says whose it is, and each task with sizes has others.
    differ = [a for a, b in zip(anna, ben, strict=True) if a != b]
    assert len(differ) >= 1 + len(varied)


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_a_hand_out_has_tasks_points_and_no_solutions(tmp_path, name):
    (file,) = hand_out(name, tmp_path, "autumn-26", ["anna"])
    text = "\n".join(source for kind, source, _ in cells(file) if kind == "markdown")
    assert "solutions.ipynb" not in text
    assert "Solution" not in text
    assert "<!--" not in text
    assert text.count("<details>") == text.count("</details>") >= 3
    assert not re.search(r"\]\((?!https?:)", text), "a link into the book"
    worth = [int(n) for n in re.findall(r"^\*(\d+) points?\*$", text, re.M)]
    assert worth == list(ASSIGNMENTS[name].points.values())


def test_what_is_no_exercise_or_no_file_is_named(tmp_path):
    with pytest.raises(ValueError, match="has no exercise 'zzz'"):
        Assignment("one", {"scale": 1, "zzz": 2})
    with pytest.raises(HandOutError, match="can't be a file name"):
        hand_out("heads", tmp_path, "a", ["../b"])


def test_nbgrader_gets_locked_cells_with_points(tmp_path):
    file = nbgrader("heads", tmp_path / "new")
    assert file == tmp_path / "new" / "heads" / "heads.ipynb"
    locked = [(s, m["nbgrader"]) for _, s, m in cells(file) if "nbgrader" in m]
    assert sum(m["points"] for _, m in locked) == ASSIGNMENTS["heads"].total
    for source, metadata in locked:
        assert metadata["grade"]
        assert metadata["locked"]
        assert source.endswith("assert verdict.right")
    assert len({m["grade_id"] for _, m in locked}) == len(locked)
    # For nobody's sizes but the book's, of which its hints may speak.
    points = ASSIGNMENTS["heads"].points
    assert {*points} & {*VARIED}
    told = "".join(source for _, source, _ in cells(file))
    assert told.count("First hint") == told.count("Second hint") == len(points)


USAGE = {
    "nothing": (["--assignment", "heads"], "which notebooks?"),
    "no assignment": (["x"], "required: --assignment"),
    "a hand-out for nobody": (
        ["--hand-out", "x", "--assignment", "heads"], "needs --variant NAME"
    ),
    "no such assignment": (["--assignment", "zzz", "x"], "invalid choice"),
    "no job": (["--jobs", "0", "x"], "0 is below 1"),
}  # fmt: skip


@pytest.mark.parametrize("how", USAGE)
def test_the_command_line_says_what_is_missing(how, capsys):
    arguments, said = USAGE[how]
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_an_empty_folder_is_named(tmp_path, capsys):
    assert main([str(tmp_path), "--assignment", "heads"]) == 2
    assert "no notebooks" in capsys.readouterr().err


def test_the_command(tmp_path, capsys):
    about = ["--assignment", "weights", "--variant", "autumn-26"]
    made = ["--hand-out", str(tmp_path / "new"), *about, "--students", "anna"]
    assert main(made) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "new" / "anna.ipynb")
    (tmp_path / "ben.ipynb").write_text("")
    # As a program, once: what it does is told by its status.
    ran = subprocess.run(
        [sys.executable, "-m", "coding_attention.grading", tmp_path / "ben.ipynb",
         *about, "--csv", "--feedback", tmp_path / "back"],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 1, ran.stderr
    (row,) = csv.DictReader(io.StringIO(ran.stdout))
    assert (row["status"], row["points"]) == ("not run", "0")
    assert "ben.ipynb: not run" in ran.stderr
    assert "an empty file" in (tmp_path / "back" / "ben.md").read_text()
