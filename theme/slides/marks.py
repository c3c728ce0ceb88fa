"""Reads the slides that a page's author has marked.

A mark is a comment in a page's Markdown, which no reader of the page sees:

    <!-- slide: Scores for one query (2 min)
    Words of the slide, in Markdown, with $formulas$.
    show: scores-journey
    Say: what the speaker may say.
    -->

``show: NAME`` shows the code and the output of a cell, or its figure, or its lab;
``show: NAME code`` and ``show: NAME output`` one of both, ``show: NAME forward`` one
method of a class. ``then:`` in place of ``show:`` waits for a key. ``(2 min, page
only)`` leaves a slide out of the deck for one session.
"""

import re
from dataclasses import dataclass

import nbformat

MARK = re.compile(r"<!-- slide\b(.*?)-->", re.S)
HEAD = re.compile(r": (.+) \(([\d.]+) min(, page only)?\)")
SHOW = re.compile(r"(show|then): (\S+)(?: (\w+))?")
FORM = "Begin it with <!-- slide: TITLE (2 min), and end it with a line Say: …"


@dataclass
class Slide:
    """One slide.

    Attributes:
        title: its heading, in Markdown.
        minutes: how long it takes.
        page_only: whether it stays out of the deck for one session.
        parts: what stands on it: a text in Markdown, or a :class:`Shown`.
        note: what the speaker may say, in Markdown.
    """

    title: str
    minutes: float
    page_only: bool
    parts: list
    note: str


@dataclass
class Shown:
    """A cell on a slide.

    Attributes:
        cell: of the page.
        part: "code", "output", the name of a method, or "" for all.
        later: whether it waits for a key.
    """

    cell: object
    part: str
    later: bool


class MarkError(Exception):
    """A mark cannot be read; the message names the page, the mark and the remedy."""


def read_page(path):
    """Return a page's title and the slides that it marks.

    Args:
        path: an executed notebook.

    Raises:
        MarkError: a mark is incomplete, or shows what the page doesn't have.
    """
    cells = nbformat.read(path, as_version=4).cells
    named = {c.metadata.name: c for c in cells if "name" in c.metadata}
    text = "\n\n".join(c.source for c in cells if c.cell_type == "markdown")
    title = re.search(r"^# (.+)$", text, re.M)[1]
    try:
        return title, [_read_mark(mark, named) for mark in MARK.findall(text)]
    except MarkError as error:
        raise MarkError(f"{path.name}: {error}") from None


def _read_mark(mark, cells):
    head, _, rest = mark.partition("\n")
    found = HEAD.fullmatch(head)
    body, _, note = rest.partition("Say:")
    if not (found and note.strip()):
        raise MarkError(f"the mark {head.strip(' :')!r} is not a whole one. {FORM}")
    title, minutes, page_only = found.groups()
    parts = list(_read_parts(body, title, cells))
    return Slide(title, float(minutes), bool(page_only), parts, note.strip())


def _read_parts(body, title, cells):
    words = []
    for line in body.splitlines():
        show = SHOW.fullmatch(line)
        if not show:
            words.append(line)
            continue
        yield from filter(None, ["\n".join(words).strip()])
        words = []
        when, name, part = show.groups()
        if name not in cells:
            raise MarkError(
                f"the slide {title!r} shows a cell {name!r}, which the page does not "
                f"have. Write a name of its cells, as after :name:"
            )
        yield Shown(cells[name], part or "", when == "then")
    yield from filter(None, ["\n".join(words).strip()])
