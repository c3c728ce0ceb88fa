"""How long a page takes in class: a plan by one rule.

The words of a page are told at 150 a minute. Each cell takes a minute to show, a
question two more for the class to answer, a lab four more to play with. An easy
exercise takes 5 minutes, a medium one 10, a hard one 20. Nobody has measured a class.
Whoever reads a short path alone opens each answer at once, and skips code that shows
nothing.
The index, the page for teachers and the decks all have their minutes from here.
"""

import re

from coding_attention import address
from coding_attention.exercises import EXERCISES

WORDS = 150
CELL, QUESTION, LAB = 1, 2, 4
EXERCISE = {"easy": 5, "medium": 10, "hard": 20}
PREDICT = re.compile(r"^> \*\*Predict\.\*\* (.+?)$", re.MULTILINE)
SHORT_PATH = re.compile(r"^\*\*Short path\.\*\* .+$", re.MULTILINE)


def words(text):
    """List the words of Markdown; comments and markup do not count."""
    plain = re.sub(r"<!--.*?-->|<[^>]*>|\]\([^)]*\)", " ", text, flags=re.DOTALL)
    return re.findall(r"[^\W_]+(?:[-'’.][^\W_]+)*", plain)


def spoken(text):
    """Give the minutes of a text, its questions included.

    Args:
        text: Markdown.
    """
    return len(words(text)) / WORDS + QUESTION * len(PREDICT.findall(text))


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


def short_path(notebook):
    """Give the words of a page's short path, and its cells that show something.

    The path is the introduction and the sections that it links as "Short path".
    """
    text = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    linked = re.findall(r"\(#([\w-]+)\)", SHORT_PATH.search(text)[0])
    on_path, read, seen = True, [], []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            seen += [cell] if on_path and cell.outputs else []
            continue
        for section in re.split(r"^(?=#+ )", cell.source, flags=re.MULTILINE):
            if heading := re.match(r"(#+) (.+)", section):
                on_path = heading[1] == "#" or _anchor(heading[2]) in linked
            read += words(section) if on_path else []
    return read, seen


def _anchor(heading):
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")


def read(notebook):
    """Give the minutes in which someone alone reads the short path of a page."""
    text, cells = short_path(notebook)
    return len(text) / WORDS + sum(map(shown, cells))


def done(page):
    """Give the minutes of the exercises that a page links.

    Args:
        page: its name, such as ``02_simple_self_attention``.
    """
    return sum(EXERCISE[e.level] for e in EXERCISES.values() if e.link[0] == page)


def rounded(minutes):
    """Give minutes as a plan says them: in steps of five."""
    return 5 * round(minutes / 5)
