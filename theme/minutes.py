"""How long a page takes in class: a plan by one rule.

The words of a page are told at 150 a minute. Each cell takes a minute to show, a
question two more for the class to answer, a lab four more to play with. An easy
exercise takes 5 minutes, a medium one 10, a hard one 20. Nobody has measured a class.
The index, the page for teachers and the decks all have their minutes from here.
"""

import re

from coding_attention import address
from coding_attention.exercises import EXERCISES

WORDS = 150
CELL, QUESTION, LAB = 1, 2, 4
EXERCISE = {"easy": 5, "medium": 10, "hard": 20}
PREDICT = re.compile(r"^> \*\*Predict\.\*\* (.+?)$", re.MULTILINE)


def spoken(text):
    """Give the minutes of a text, its questions included.

    Args:
        text: Markdown; comments and markup do not count.
    """
    plain = re.sub(r"<!--.*?-->|<[^>]*>|\]\([^)]*\)", " ", text, flags=re.DOTALL)
    words = re.findall(r"[^\W_]+(?:[-'’.][^\W_]+)*", plain)
    return len(words) / WORDS + QUESTION * len(PREDICT.findall(text))


def shown(cell):
    """Give the minutes of a code cell: of its code, its output, its figure or lab."""
    return CELL + LAB * cell.metadata.get("name", "").startswith("lab-")


def told(notebook):
    """Give the minutes in which a page is told."""
    return sum(
        spoken(cell.source) if cell.cell_type == "markdown" else shown(cell)
        for cell in notebook.cells
        if not address.is_install(cell)  # it prepares a reader's machine
    )


def done(page):
    """Give the minutes of the exercises that a page links.

    Args:
        page: its name, such as ``02_simple_self_attention``.
    """
    return sum(EXERCISE[e.level] for e in EXERCISES.values() if e.link[0] == page)


def rounded(minutes):
    """Give minutes as a plan says them: in steps of five."""
    return 5 * round(minutes / 5)
