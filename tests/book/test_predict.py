"""A question that is to be answered first has no answer standing open beside it.

What follows a "Predict", up to the next words, is its answer: code and output fold
together. Only a question about the code "below" leaves the code of its first cell open.
"""

import re

import pytest

from coding_attention import address
from tests.book.pages import is_figure, pages

PREDICT = re.compile(r"^> \*\*Predict\.\*\* (.+)$", re.M)

ANCHOR = re.compile(r'<a id="[\w-]*"></a>')  # of the cell that follows


def questions(cells):
    """Each question, the words behind it in its cell, and the cells that answer it."""
    for place, cell in enumerate(cells):
        if cell.cell_type != "markdown":
            continue
        for match in PREDICT.finditer(cell.source):
            answers = []
            for answer in cells[place + 1 :]:
                if answer.cell_type != "code":
                    break
                if answer.metadata.get("name") != address.CELL_NAME:
                    answers.append(answer)
            behind = ANCHOR.sub("", cell.source[match.end() :]).strip()
            yield match[1], behind, answers


def folds(cell):
    """What of a cell is folded: its code, its output, or both."""
    tags = {*cell.metadata.get("tags", [])}
    code, output = (
        tags & {"hide-input", "hide-cell"},
        tags & {"hide-output", "hide-cell"},
    )
    return bool(code), bool(output)


def open_beside(cells):
    """The questions whose answer may be read without opening anything."""
    found = []
    for question, behind, answers in questions(cells):
        about_code = re.search(r"\bbelow\b", question) is not None
        wanted = [(True, True)] * len(answers)
        if about_code and answers:
            wanted[0] = (False, True)
        if behind or not answers or [folds(a) for a in answers] != wanted:
            found.append(question)
    return found


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_no_answer_stands_open_beside_its_question(page):
    assert open_beside(page.notebook.cells) == []


def test_the_book_asks():
    asked = [q for page in pages() for q, _, _ in questions(page.notebook.cells)]
    assert len(asked) >= 40


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_what_answers_prints_or_draws(page):
    for question, _, answers in questions(page.notebook.cells):
        assert all(answer.outputs for answer in answers), question
        assert not is_figure(answers[0]), f"{question} has nothing but a drawing"


QUESTION = "> **Predict.** Which one?"
ANSWER = {"cell_type": "code", "metadata": {"tags": ["hide-cell"]}}


@pytest.mark.parametrize(
    "change",
    [
        ({"source": f"{QUESTION}\n\nThe second one."}, {}),
        ({}, {"metadata": {"tags": ["hide-output"]}}),
        ({}, {"metadata": {"tags": ["hide-input"]}}),
        ({"source": f"{QUESTION[:-1]} below?"}, {}),
        ({}, {"cell_type": "markdown", "source": "The second."}),
    ],
)
def test_an_open_answer_is_found(change):
    from nbformat import from_dict

    question = {"cell_type": "markdown", "source": QUESTION}
    assert open_beside(from_dict([question, ANSWER])) == []
    assert open_beside(from_dict([question | change[0], ANSWER | change[1]])) != []
