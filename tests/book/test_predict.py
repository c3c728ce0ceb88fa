"""Whoever predicts has a closed answer: the cells right behind the question.

A question about the code below it leaves the code of its first cell open.
"""

import re

import pytest

from coding_attention import address
from tests.book.pages import is_figure, pages

PREDICT = re.compile(r"^> \*\*Predict\.\*\* (.+)$", re.MULTILINE)
ANCHOR = re.compile(r'<a id="[\w-]*"></a>')  # of the cell that follows
HIDDEN = [{"hide-cell"}, {"hide-input", "hide-output"}]


def questions(cells):
    """Each question, the words behind it in its cell, and the cells that answer it."""
    cells = [c for c in cells if c.metadata.get("name") != address.CELL_NAME]
    for place, cell in enumerate(cells):
        for match in PREDICT.finditer(cell.source):
            answers = []
            for answer in cells[place + 1 :]:
                if answer.cell_type != "code":
                    break
                answers.append(answer)
            yield match[1], ANCHOR.sub("", cell.source[match.end() :]).strip(), answers


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_answer_stands_closed_behind_its_question(page):
    for question, behind, answers in questions(page.source.cells):
        assert not behind, f"{question} has words before its answer"
        assert answers, f"{question} has no answer"
        assert not is_figure(answers[0]), f"{question} has nothing but a drawing"
        tags = [{*answer.metadata.get("tags", [])} for answer in answers]
        if re.search(r"\bbelow\b", question) and tags[0] == {"hide-output"}:
            del tags[0]
        assert all(each in HIDDEN for each in tags), f"{question} is answered openly"
