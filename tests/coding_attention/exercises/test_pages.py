"""The pages hold every exercise: a cell to write in, a check, a solution that is right.

A reader who runs the exercises from top to bottom, solving nothing, gets no error.
"""

import re

import pytest

from coding_attention.exercises import EXERCISES
from coding_attention.exercises.places import PLACES
from tests.book.pages import Page, text_of
from tests.book.pages import slug as heading

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


def words(page):
    """The page's text with the names of its cells, without anchors for Jupyter."""
    text = "\n".join(
        cell.metadata.get("name", "") if cell.cell_type == "code" else cell.source
        for cell in page.notebook.cells
    )
    return re.sub(r'\n+<a id="[^"]*"></a>|<a id="[^"]*"></a>\n+', "", text)


def title(page, prefix, name):
    """The heading under which the exercise, or its solution, stands."""
    above = f"{words(page)}\n".partition(f"\n{prefix}-{slug(name)}\n")[0]
    return re.findall("^### (.+)$", above, re.MULTILINE)[-1]


@pytest.mark.parametrize("name", EXERCISES)
def test_help_opens_step_by_step_and_ends_with_the_solution(name):
    after = words(EXERCISES_PAGE).partition(f"check-{slug(name)}\n")[2]
    after = re.split(r"\n(?:write-|#{2,3} )", after)[0]
    steps = re.findall("<summary>(.+)</summary>", after)
    assert after.count("<details>") == after.count("</details>") == len(steps)
    assert steps[:2] == ["First hint", "Second hint"]
    assert steps[-1] == "Solution"
    # Not one click away: the link is folded, and so is the code where it leads.
    anchor = heading(title(SOLUTIONS_PAGE, "solution", name))
    folded = after.partition("<summary>Solution</summary>")[2]
    assert f"(solutions.ipynb#{anchor})" in folded
    assert after.count("solutions.ipynb") == 1


@pytest.mark.parametrize("name", EXERCISES)
def test_the_exercise_and_its_page_link_each_other(name):
    level, page, section, _ = PLACES[name]
    here = title(EXERCISES_PAGE, "write", name)
    text = words(EXERCISES_PAGE).partition(f"### {here}\n\n")[2]
    said = re.match(r"\*(\w+)\*, after \[(.+?)\]\((\w+)\.ipynb#(\S+)\)", text)
    assert said, text[:200]
    assert said[1] == level.title()
    assert (said[3], said[2].replace("`", "")) == (page, section)
    assert said[4] == heading(said[2])
    there, section = PLACES[name].link
    after = words(Page(there)).replace("`", "").partition(f"# {section}\n")[2]
    line = re.split("\n#{1,3} ", after)[0].strip().splitlines()[-1]
    assert line.startswith("> **Exercise")
    assert f"[{here}](exercises.ipynb#{heading(here)}) ({level})" in line


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
