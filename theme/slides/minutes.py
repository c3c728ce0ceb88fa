"""How long slides take: words at 150 a minute, a minute to show a cell.

A question takes two more, for the class to answer, and a lab four more, to play with.
An easy exercise takes 5 minutes, a medium one 10, a hard one 20. Nobody has measured a
class.
"""

import re

WORDS = 150
CELL, QUESTION, LAB = 1, 2, 4
EXERCISE = {"easy": 5, "medium": 10, "hard": 20}
PREDICT = re.compile(r"^> \*\*Predict\.\*\* (.+?)$", re.MULTILINE)


def spoken(text):
    """Give the minutes of Markdown, its questions included; markup does not count."""
    plain = re.sub(r"<!--.*?-->|<[^>]*>|\]\([^)]*\)", " ", text, flags=re.DOTALL)
    words = re.findall(r"[^\W_]+(?:[-'’.][^\W_]+)*", plain)
    return len(words) / WORDS + QUESTION * len(PREDICT.findall(text))


def shown(cell):
    """Give the minutes of a code cell: of its code, its output, its figure or lab."""
    return CELL + LAB * cell.metadata.get("name", "").startswith("lab-")


def rounded(minutes):
    """Give minutes as a plan says them: in steps of five."""
    return 5 * round(minutes / 5)
