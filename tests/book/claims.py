"""The second entry for every digit that a page tells in words.

A number in the prose, in a caption or in a text alternative is written down twice:
on the page, and in claims/PAGE.toml as a piece of the sentence, filed under the
reason why it is right. A piece can name its proof, {cell:k}: the k-th number (from
1) in the text output of that cell. The piece, its numbers put in, must stand on the
page exactly once; and every digit on the page must lie inside a piece.

A number that is spelled out ("six tokens", "the third row") has its second entry in
the table "number words" of the same file: the word, the word after it, and how often
the two stand on the page. Whoever adds one has counted it in the page's outputs.

    python -m tests.book.claims PAGE      print what has no second entry
"""

import re
import sys
import tomllib
from collections import Counter
from pathlib import Path

from tests.book.pages import BOOK, Page, is_figure, toc_entries
from tools.printed_values import numbers, text_of

CLAIMS = Path(__file__).with_name("claims")
PROOF = re.compile(r"\{([\w-]+):(\d+)\}")
INTERNAL_TARGET = re.compile(r"\]\((?!\w+://)[^)\s]*\)")
WORDS = "number words"  # the table in a page's file
# "One" is left out: it is nearly always a pronoun here ("the one that is hidden").
NUMBER_WORD = re.compile(
    r"""\b(
        two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen
        |fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty
        |seventy|eighty|ninety|hundreds?|thousands?|millions?|billions?|dozens?
        |first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|twelfth
        |half|halves|halved|thirds|quarters?|twice|doubles?|doubled|tripled?
    )\b(?:[\W_]*?([^\W_][\w'’]*))?""",
    re.IGNORECASE | re.VERBOSE,
)
# Reasons that a test checks beyond the presence of the piece.
RUN = "code that the page runs"


def told(name):
    """What a page tells in words, line by line."""
    path = BOOK / f"{name}.md"
    if path.with_suffix(".ipynb").exists():
        page = Page(name)
        figures = [text_of(cell) for cell in page.code_cells if is_figure(cell)]
        text = "\n".join([*page.prose, *figures])
    else:
        text = path.read_text(encoding="utf-8")
    return INTERNAL_TARGET.sub("]", text)  # test_links.py holds those


def load(name):
    """The pieces of a page: (reason, piece) pairs."""
    table = _table(name)
    table.pop(WORDS, None)
    return [(reason, piece) for reason, pieces in table.items() for piece in pieces]


def _table(name):
    path = CLAIMS / f"{name}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def number_words(text):
    """Numbers that a text spells out, each with the word after it, and how often."""
    found, position = Counter(), 0
    while match := NUMBER_WORD.search(text, position):
        found[" ".join(word for word in match.groups() if word).lower()] += 1
        position = match.end(1)  # the word after it may be a number, too
    return found


def unequal_words(name):
    """Number words whose count on the page is not the one in the page's file."""
    here, there = number_words(told(name)), Counter(_table(name).get(WORDS, {}))
    return {
        phrase: (here[phrase], there[phrase])
        for phrase in sorted(here | there)
        if here[phrase] != there[phrase]
    }


def filled(name, piece):
    """Put the numbers that the piece names as its proof into it."""
    if not PROOF.search(piece):
        return piece
    outputs = {c.metadata.name: numbers(text_of(c)) for c in Page(name).code_cells}
    return PROOF.sub(lambda m: outputs[m[1]][int(m[2]) - 1], piece)


def uncovered(name):
    """Lines of the page with a digit that lies in no piece."""
    text = told(name)
    covered = bytearray(len(text))
    for _, piece in load(name):
        piece = filled(name, piece)
        start = text.find(piece)
        if start >= 0:
            covered[start : start + len(piece)] = b"\1" * len(piece)
    lines, position = [], 0
    for line in text.splitlines(keepends=True):
        digits = [i for i, c in enumerate(line) if c.isdigit()]
        if any(not covered[position + i] for i in digits):
            lines.append(line.rstrip("\n"))
        position += len(line)
    return lines


def names():
    return [entry.removeprefix("book/") for entry in toc_entries()]


if __name__ == "__main__":
    for name in sys.argv[1:] or names():
        print(f"# {name}")
        for line in uncovered(name):
            print(f"    {line!r},")
        for phrase, (here, there) in unequal_words(name).items():
            print(f'    "{phrase}" = {here}  # the file has {there}')
