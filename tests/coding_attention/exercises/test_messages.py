"""What every message keeps to: the page's names, and a place to read that exists."""

import re

import pytest

from coding_attention.exercises import (
    EXERCISES,
    averaging,
    causal,
    check_exercise,
    simple,
)
from coding_attention.exercises.core import FunctionCheck
from tests.book.pages import Page
from tests.coding_attention.exercises.test_pages import EXERCISES_PAGE, cells, slug

FUNCTIONS = [n for n, e in EXERCISES.items() if "function" in e.wanted]


def plain(heading):
    return heading.replace("`", "")


def sections(page):
    """The headings of a page, each with the text below it."""
    parts = re.split(r"^#{1,3} (.+)$", "\n".join(
        cell.source for cell in Page(page).notebook.cells
        if cell.cell_type == "markdown"
    ), flags=re.MULTILINE)  # fmt: skip
    return {plain(h): text for h, text in zip(parts[1::2], parts[2::2], strict=True)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_called_as_on_the_page(name):
    exercise = EXERCISES[name]
    called = re.search(r"(\w+)\((.*?)\)", exercise.wanted)
    source = cells(EXERCISES_PAGE)[f"write-{slug(name)}"].source
    assert f"def {called[0]}:" in source
    if isinstance(exercise.check, FunctionCheck):
        assert exercise.check.signature == called[0]
    # Also where the message comes from: of all that a number is no function.
    assert called[0] in check_exercise(name, 3.5).text


@pytest.mark.parametrize("name", EXERCISES)
def test_what_to_read_is_there(name):
    page, section = EXERCISES[name].reads
    assert section in sections(page)
    assert f'section "{section}".' in check_exercise(name, "zzz").text


def test_where_to_read_about_what_only_one_page_tells():
    for name, word in {
        "cache-step": "KeyValueCache",
        "cross-attention": "encoder",
        "padding": "*Padding*",
        "einsum": "score",
    }.items():
        page, section = EXERCISES[name].reads
        assert word in sections(page)[section], name


@pytest.mark.parametrize(
    ("name", "solution"),
    [
        ("causal-mask", causal._hide),
        ("padding", causal._padding_right),
        ("mean-of-the-past", averaging._right_mean),
        ("weights-too", simple._right_pair),
    ],
)
def test_a_function_that_is_the_books_own_is_recognized(name, solution):
    result = check_exercise(name, solution)
    assert result.outcome == "not right"
    assert "the book's own" in result.text
