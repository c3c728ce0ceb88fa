"""Every digit that a page tells has its proof beside it, in a comment that nobody sees.

    `<!-- = cell:3 -->`    the number before it is the 3rd number in that cell's output,
                           or a rounding of it; `= a:3, 5, b:1-2` proves the last four
    `<!-- in cell -->`     it stands in that cell's code
    `<!-- fact: why -->`   no cell shows it; `fact 2: why` speaks of the last two

A proof speaks of the last numbers before it, in its own paragraph, that have no proof
yet. A cell of another page is `page/cell`. CONTRIBUTING.md has examples.

    python -m tests.book.claims PAGE      print what has no proof, and what to write
"""

import re
import sys
from dataclasses import dataclass
from functools import cache

from coding_attention.book import list_pages
from coding_attention.published_values import text_of
from tests.book import numerals
from tests.book.numerals import Number
from tests.book.pages import BOOK, Page

COMMENT = re.compile(r"<!--(.*?)-->", re.S)
PROOF = re.compile(r"\s*(=|in\b|fact\b)(.*)", re.S)
ITEM = re.compile(r"(?:(?P<cell>[\w./-]+):)?(?P<first>\d+)(?:-(?P<last>\d+))?")
FACT = re.compile(r"\s*(\d*)\s*:\s*(\S.*?)\s*", re.S)
CELL = re.compile(r"^```\{code-cell\}.*?^```$", re.M | re.S)
HEADER = re.compile(r"\A---\n.*?^---$", re.M | re.S)
# Made from stored results by experiments/field/table.py and compared with them by
# tests/experiments/test_field.py: no digit of it is typed.
WRITTEN = re.compile(r"<!-- written by .*?<!-- end -->", re.S)
# What stands on slides; tests/theme/test_slides.py holds its digits.
SLIDE = re.compile(r"<!-- slide\b.*?-->", re.S)
SPACE_BEFORE_STOP = re.compile(r"\s<!--[^>]*-->[.,;:!?)]")


@dataclass
class Cell:
    """What a proof can point at: the numbers of an output, and the code."""

    outputs: list
    source: str


@cache
def cells(page):
    """The named cells of a page; none where the page has no notebook."""
    if not (BOOK / f"{page}.ipynb").exists():
        return {}
    return {
        c.metadata.name: Cell(numerals.outputs(text_of(c)), c.source)
        for c in Page(page).code_cells
    }


@cache
def code_of(page):
    """The tokens of a page's code and outputs, where its code spans must occur."""
    known = [t for c in Page(page).code_cells for t in (c.source, text_of(c))]
    return numerals.tokens("\n".join(known))


def _find(page, reference):
    other, _, name = reference.rpartition("/")
    try:
        return cells(other or page)[name]
    except KeyError:
        raise ValueError(f"the page {other or page} has no cell {name!r}") from None


@dataclass
class Claim:
    """One thing that a proof says of one number."""

    page: str
    how: str  # "=", "in" or "fact"
    cell: str = ""
    place: int = 0

    def check(self, number):
        """Raise ValueError, with the reason, where the number is not proven."""
        if self.how == "fact":
            return
        cell = _find(self.page, self.cell)
        if self.how == "in":
            shown = numerals.outputs(cell.source.replace("_", ""))
            if not (
                any(numerals.agrees(number, n) for n in shown)
                or numerals.tokens(number.text) in numerals.tokens(cell.source)
            ):
                raise ValueError(f"no number in the code of {self.cell} is it")
            return
        if not 1 <= self.place <= len(cell.outputs):
            raise ValueError(f"{self.cell} shows {len(cell.outputs)} numbers")
        shown = cell.outputs[self.place - 1]
        if not numerals.agrees(number, shown):
            raise ValueError(f"{self.cell}:{self.place} is {shown.strip()}")


def claims_of(page, comment):
    """What a comment claims, in order; None if it is no proof."""
    match = PROOF.fullmatch(comment)
    if match is None:
        return None
    how, rest = match.groups()
    if how == "fact":
        reason = FACT.fullmatch(rest)
        if reason is None:
            raise ValueError("write it as fact: the reason")
        return [Claim(page, how)] * int(reason[1] or 1)
    names = [item.strip() for item in rest.split(",")]
    if how == "in":
        return [Claim(page, how, name) for name in names]
    return list(_counted(page, names))


def _counted(page, items):
    cell = None
    for item in items:
        match = ITEM.fullmatch(item)
        cell = (match and match["cell"]) or cell
        if match is None or cell is None:
            raise ValueError("write it as = cell:3 or = cell:3, 5, other:1-2")
        first = int(match["first"])
        for place in range(first, int(match["last"] or first) + 1):
            yield Claim(page, "=", cell, place)


def prose(page):
    """The words of a page's Markdown half, each on the line where it stands there."""
    text = (BOOK / f"{page}.md").read_text(encoding="utf-8")
    blank = lambda match: "\n" * match[0].count("\n")  # noqa: E731
    for left_out in (HEADER, CELL, WRITTEN, SLIDE):
        text = left_out.sub(blank, text)
    return text


def blocks(text):
    """The paragraphs of a text, with the lines where they begin; fences stay whole."""
    block, start, fence = [], 1, False
    for i, line in enumerate([*text.split("\n"), ""], start=1):
        if line.strip() or fence:
            start = start if block else i
            block.append(line)
            if line.lstrip().startswith("```"):
                fence = not fence
        elif block:
            yield start, "\n".join(block)
            block = []


def problems(page, text=None):
    """What is wrong with the numbers of a page: (line, number or comment, why)."""
    found = []
    for line, block in blocks(prose(page) if text is None else text):
        for position, what, why in _in_block(page, block):
            found.append((line + block[:position].count("\n"), what, why))
    return found


def _in_block(page, block):
    comments = [m for m in COMMENT.finditer(block) if not _is_code(block, m.start())]
    told = block
    for comment in comments:
        told = told.replace(comment[0], _spaces(comment))
    code = code_of(page) if cells(page) else None
    numbers = numerals.found(told, code)
    waiting = []
    for thing in sorted([*numbers, *comments], key=_start):
        if isinstance(thing, Number):
            waiting.append(thing)
            continue
        yield from _misplaced(block, thing)
        yield from _proven(page, thing, waiting)
    for number in waiting:
        yield number.start, number.text, _what_to_write(page, number)


def _proven(page, comment, waiting):
    # Take the numbers that a comment speaks of off the list, and check each.
    try:
        claims = claims_of(page, comment[1])
    except ValueError as error:
        yield comment.start(), comment[0], str(error)
        return
    if claims is None:
        return
    if not 1 <= len(claims) <= len(waiting):
        yield comment.start(), comment[0], "has too few unproven numbers before it"
        return
    numbers = waiting[-len(claims) :]
    del waiting[-len(claims) :]
    for number, claim in zip(numbers, claims, strict=True):
        try:
            claim.check(number)
        except ValueError as error:
            yield number.start, number.text, f"{error} ({comment[0]})"


def _is_code(block, position):
    return any(m.start() < position < m.end() for m in numerals.CODE.finditer(block))


def _spaces(match):
    return re.sub(r"[^\n]", " ", match[0])


def _start(thing):
    return thing.start if isinstance(thing, Number) else thing.start()


def _misplaced(block, comment):
    # Markdown ends a paragraph where a line begins with a comment.
    start, rest = comment.start(), block[comment.end() :]
    first = not block[:start].rpartition("\n")[2].strip()
    if first and rest.strip():
        yield start, comment[0], "begins a line; put it behind a word"
    if SPACE_BEFORE_STOP.match(block, start - 1):
        yield start, comment[0], "leaves a space before the stop; take it away"


def _what_to_write(page, number):
    shown = [
        f"<!-- = {name}:{k} -->"
        for name, cell in cells(page).items()
        for k, output in enumerate(cell.outputs, start=1)
        if numerals.agrees(number, output)
    ]
    if shown:
        return "has no proof; perhaps " + " or ".join(shown[:4])
    return "has no proof, and no cell shows it: compute it, or <!-- fact: why -->"


def report(page):
    """The problems of a page as lines for people."""
    lines = prose(page).split("\n")
    for line, what, why in problems(page):
        quoted = _around(lines[line - 1], what)
        yield f"book/{page}.md:{line}: {what} {why}\n    {quoted}"


def _around(line, what, width=70):
    line = COMMENT.sub("", line).strip()
    at = max(0, line.find(what) - width // 2)
    return f"…{line[at : at + width]}…"


def names():
    """Every page."""
    return [entry.removeprefix("book/") for entry in list_pages()]


if __name__ == "__main__":
    for name in sys.argv[1:] or names():
        print("\n".join([f"# {name}", *report(name)]))
