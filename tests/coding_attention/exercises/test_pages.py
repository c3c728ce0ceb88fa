"""The pages hold every exercise: a cell to write in, a check, a solution that is right.

They are made from the files of the exercises, and a reader who runs them from top to
bottom, solving nothing, gets no error.
"""

import dataclasses
import re

import pytest

from attncheck import report
from coding_attention.book import list_pages
from coding_attention.exercises import EXERCISES, check_exercise, notebook, pages
from coding_attention.exercises.build import check_of
from coding_attention.exercises.functions import FunctionCheck
from tests.book.pages import Page, text_of

EXERCISES_PAGE, SOLUTIONS_PAGE = Page("exercises"), Page("solutions")


def cells(page):
    return {cell.metadata["name"]: cell for cell in page.code_cells}


def test_the_pages_show_what_the_files_say():
    names = ", ".join(file.name for file in pages.stale())
    assert not names, f"{names}: run make notebooks (edit the files in exercises/tasks)"


@pytest.mark.parametrize("titles", [pages.PAGES, report.PAGES], ids=["kit", "checker"])
def test_titles_are_those_of_the_pages_in_their_order(titles):
    for name, title in titles.items():
        text = (pages.BOOK / f"{name}.md").read_text(encoding="utf-8")
        assert f"\n# {title}\n" in text, name
    order = [page.removeprefix("book/") for page in list_pages()]
    assert list(titles) == sorted(titles, key=order.index)


def test_a_changed_file_changes_the_pages(tmp_path, monkeypatch):
    for file in pages.pages():
        (tmp_path / file.name).write_text(file.read_text(encoding="utf-8"))
    task = EXERCISES["induction"]
    monkeypatch.setitem(vars(task), "level", "hard")
    monkeypatch.setitem(vars(task), "link", ("08_past_one_device", "Around a ring"))
    changed = {file.name for file in pages.write(tmp_path)}
    assert changed == {
        "exercises.md", "08_past_one_device.md", "09_watch_heads_learn.md",
    }  # fmt: skip
    moved = (tmp_path / "08_past_one_device.md").read_text(encoding="utf-8")
    links = [line for line in moved.splitlines() if line.startswith("> **Exercises.**")]
    # The page has two places with exercises; this one follows "Around a ring".
    ends = [line for line in links if "around-the-ring" in line]
    assert len(ends) == 1
    assert ends[0].endswith("(exercises.ipynb#where-do-both-heads-look) (hard).")
    monkeypatch.setitem(vars(task), "link", ("08_past_one_device", "Nowhere"))
    with pytest.raises(LookupError, match="no section 'Nowhere'"):
        pages.write(tmp_path)


@pytest.mark.parametrize("name", EXERCISES)
def test_the_unsolved_exercise_has_nothing_to_check(name):
    slug = EXERCISES[name].slug
    write = cells(EXERCISES_PAGE)[f"write-{slug}"]
    check = cells(EXERCISES_PAGE)[f"check-{slug}"]
    assert "tags" not in write.metadata
    assert "None  # " in write.source
    assert check.source == pages.check_cell(EXERCISES[name])
    assert text_of(check).startswith(f"Exercise {name}: nothing to check yet.")


@pytest.mark.parametrize("name", EXERCISES)
def test_the_solution_is_folded_and_right(name):
    cell = cells(SOLUTIONS_PAGE)[f"solution-{EXERCISES[name].slug}"]
    assert "hide-input" in cell.metadata["tags"]
    assert f'check_exercise("{name}", ' in cell.source
    assert f"Exercise {name}: right. " in text_of(cell)


def test_the_solution_is_not_one_click_away():
    # The link to it is folded, and so is the code where it leads.
    for exercise in EXERCISES.values():
        text = pages.task(exercise)
        open_, _, folded = text.partition("<summary>Solution</summary>")
        assert "solutions.ipynb#" in folded
        assert "solutions.ipynb" not in open_


def test_each_answer_has_a_name_of_its_own():
    answers = [exercise.answer for exercise in EXERCISES.values()]
    assert len(answers) == len(set(answers))


@pytest.mark.parametrize("name", [n for n, e in EXERCISES.items() if e.signature])
def test_a_function_is_called_as_on_the_page(name):
    exercise = EXERCISES[name]
    assert f"def {exercise.signature}:" in exercise.body
    if isinstance(check_of(name), FunctionCheck):
        assert check_of(name).signature == exercise.signature
    # Also where the message comes from: of all that a number is no function.
    assert exercise.signature in check_exercise(name, 3.5).text


def test_an_exercise_says_after_which_section_it_comes():
    for name, exercise in EXERCISES.items():
        (line,) = re.findall(r"^\*.+\*, .+\.ipynb#.+$", pages.task(exercise), re.M)
        level, word, section = re.match(r"\*(\w+)\*, (\w+) \[(.+)\]\(", line).groups()
        told = (level.lower(), word, section)
        assert told == (exercise.level, "after", exercise.reads[1]), name


def test_each_cell_of_an_exercise_stands_below_its_own_words():
    more = "\n```{code-cell} ipython3\n\nfurther = 1\n```\n\nThe last words.\n"
    task = EXERCISES["shapes"]
    plain = notebook.cells_of(task)
    longer = notebook.cells_of(dataclasses.replace(task, body=task.body + more))
    added = [cell for cell in longer if cell not in plain]
    assert added == [("code", "further = 1"), ("markdown", "The last words.")]
    assert longer.index(added[1]) == longer.index(added[0]) + 1
