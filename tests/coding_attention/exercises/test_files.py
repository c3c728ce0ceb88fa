"""The files of the exercises: what one needs, and what is said where it is missing."""

import re
import subprocess
import sys
import traceback

import pytest

from coding_attention.exercises import EXERCISES, files
from coding_attention.exercises.build import build, solution
from coding_attention.exercises.files import TaskError

SCALE = EXERCISES["scale"].file.read_text(encoding="utf-8")


def made(folder, text, name="scale"):
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    exercise = files.read(folder / f"{name}.md")
    build(exercise)
    solution(exercise)
    return exercise


def test_a_file_is_read(tmp_path):
    exercise = made(tmp_path, SCALE)
    assert (exercise.name, exercise.level, exercise.order) == ("scale", "easy", 2)
    assert exercise.reads == EXERCISES["scale"].reads
    assert exercise.answer == "divisor"


@pytest.mark.parametrize("name", EXERCISES)
def test_its_cell_asks_for_its_own_answer(name):
    text = EXERCISES[name].file.read_text(encoding="utf-8")
    asked = re.findall(r"^check_exercise\(\"(.*?)\", (.*)\)$", text, re.MULTILINE)
    assert [first for first, _ in asked] == [name]


# {what is wrong: (a text, what stands in its place, what is said)}
FAULTS = {
    "no facts": ("---\nlevel", "level", "it begins with '---'"),
    "no level": ("level: easy\n", "", "the top lacks level"),
    "a level of its own": ("easy", "simple", "one of easy, medium"),
    "an unknown fact": ("level:", "hard: 1\nlevel:", "the top has hard"),
    "no page": ("read: 03_", "read: 33_", "is not 'page, section'"),
    "no hint": ("## First hint", "### First hint", "sections .* lacks First hint"),
    "an unknown section": ("## First", "## Zzz\n\n## First", "sections .* has Zzz"),
    "no solution": ("## Solution: ", "## Right ", "Solution: TITLE.* lacks Solution"),
    "no cell": (":name: write-scale", ":name: a", "no cell with the line"),
    "no YAML": ("say: How wide", "say: How: wide", "cases is not YAML"),
    "no cases": ("wrong:", "wring:", "lacks wrong"),
    "an unknown key": ("- when: divisor=d_in**0.5", "- if: 1", "a case has if"),
    "code that raises": (
        "divisor=d_in**0.5", "divisor=zzz", r"zzz.* NameError.*names .*\bd_in\b",
    ),
    "no last words": ("  - say: How", "  - when: divisor=1\n    say: How", "the last"),
    "no fields": ("fields:\n  divisor", "site:\n  divisor", "its YAML needs 'fields:'"),
}  # fmt: skip


@pytest.mark.parametrize("how", FAULTS)
def test_a_fault_in_a_file_says_what_to_do(how, tmp_path):
    old, new, words = FAULTS[how]
    assert old in SCALE
    with pytest.raises(TaskError, match=words) as raised:
        made(tmp_path, SCALE.replace(old, new))
    assert "scale.md" in str(raised.value)


def test_a_change_of_what_the_solution_does_not_say_is_named():
    with pytest.raises(TaskError, match="the solution has no 'zzz' to change into 'a'"):
        solution(EXERCISES["3.1"], [("zzz", "a")])


def test_an_error_in_a_check_has_the_line_of_the_file(tmp_path):
    text = SCALE.replace("## Check\n", "## Check\n\n```python\n\n\n1 / 0\n```\n")
    with pytest.raises(TaskError, match="ZeroDivisionError") as raised:
        made(tmp_path, text)
    *_, last = traceback.extract_tb(raised.value.__cause__.__traceback__)
    assert text.splitlines()[last.lineno - 1] == "1 / 0"


def test_the_code_of_the_checks_has_the_style_of_all_code(tmp_path):
    for exercise in EXERCISES.values():
        text, line = exercise.check
        name = f"{exercise.slug.replace('-', '_')}_line_{line}.py"
        (tmp_path / name).write_text(text, encoding="utf-8")
    # Names come from KIT, and what a cell defines, the cases use.
    lint = ["check", "--select", "E,F,B,SIM,UP", "--ignore", "F821,B018"]
    for arguments in (lint, ["format", "--check"]):
        result = subprocess.run(
            [sys.executable, "-m", "ruff", *arguments, str(tmp_path)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert result.returncode == 0, result.stdout
