"""The pages hold every exercise: a cell to write in, a check, a solution that is right.

A reader who runs the exercises from top to bottom, solving nothing, gets no error.
"""

import re

import pytest

from attention.chapter.exercises import EXERCISES
from tests.book.pages import Page, text_of

EXERCISES_PAGE, SOLUTIONS_PAGE = Page("exercises"), Page("solutions")


def slug(name):
    return name.replace(".", "-")


def cells(page):
    return {cell.metadata["name"]: cell for cell in page.code_cells}


def names(page, prefix):
    return {n.removeprefix(prefix) for n in cells(page) if n.startswith(prefix)}


@pytest.mark.parametrize("page", [EXERCISES_PAGE, SOLUTIONS_PAGE], ids=["e", "s"])
def test_the_page_holds_these_exercises_and_no_others(page):
    prefixes = ["write-", "check-"] if page is EXERCISES_PAGE else ["solution-"]
    for prefix in prefixes:
        assert names(page, prefix) == {slug(name) for name in EXERCISES}


@pytest.mark.parametrize("name", EXERCISES)
def test_the_unsolved_exercise_has_nothing_to_check(name):
    write = cells(EXERCISES_PAGE)[f"write-{slug(name)}"]
    check = cells(EXERCISES_PAGE)[f"check-{slug(name)}"]
    assert "tags" not in write.metadata
    assert "None  # " in write.source
    assert check.source.startswith(f'check_exercise("{name}", ')
    assert text_of(check).startswith(f"Exercise {name}: nothing to check yet.")
    # What is checked is what the cell before it defines.
    answer = re.fullmatch(r'check_exercise\("[^"]+", (\w+)\)', check.source)[1]
    assert re.search(rf"^(def {answer}\(|{answer} = None)", write.source, re.M)


@pytest.mark.parametrize("name", EXERCISES)
def test_help_stands_below_the_exercise(name):
    text = "\n".join(
        cell.metadata.get("name", "") if cell.cell_type == "code" else cell.source
        for cell in EXERCISES_PAGE.notebook.cells
    )
    after = text.partition(f"check-{slug(name)}\n")[2].partition("\nwrite-")[0]
    assert after.count("<details>") == after.count("</details>") >= 1
    assert f"[Solution](solutions.ipynb#solution-{slug(name)})" in after


@pytest.mark.parametrize("name", EXERCISES)
def test_the_solution_is_folded_and_right(name):
    cell = cells(SOLUTIONS_PAGE)[f"solution-{slug(name)}"]
    assert "hide-input" in cell.metadata["tags"]
    assert f'check_exercise("{name}", ' in cell.source
    assert f"Exercise {name}: right. " in text_of(cell)


def test_each_answer_has_a_name_of_its_own():
    checks = [c.source for n, c in cells(EXERCISES_PAGE).items() if "check-" in n]
    answers = [source.rpartition(", ")[2] for source in checks]
    assert len(answers) == len(set(answers)) == len(EXERCISES)
