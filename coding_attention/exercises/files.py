"""Reads an exercise: one Markdown file in ``tasks/``, from which all else is made.

The pages, the links to an exercise, its check, the site's answers, the grader's sizes
and the tests come from that file; CONTRIBUTING says how one is written. Nothing here
imports PyTorch, so that pages can be brought up to date without it.
"""

import functools
import math
import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).with_name("tasks")
LEVELS = "easy", "medium", "hard"
# Every page that an exercise belongs to or sends a reader to, by its title.
PAGES = {
    "01_why_attention": "Why attention",
    "02_simple_self_attention": "Simple self-attention",
    "03_trainable_self_attention": "Trainable self-attention",
    "04_causal_attention": "Causal attention",
    "04_questions": "Questions about causal attention",
    "05_multi_head_attention": "Multi-head attention",
    "06_averaging": "The averaging route",
    "07_where_the_time_goes": "Where the time goes",
    "08_past_one_device": "Beyond one device",
    "09_watch_heads_learn": "Watch heads learn",
    "10_attention_in_models": "Attention in real models",
}
SECTIONS = (
    "First hint", "Second hint", "Solution", "Sizes", "Fields", "Check", "Right",
    "Wrong", "Also tried", "On the site",
)  # fmt: skip
KEYS = {"level", "chapter", "order", "read", "link", "wanted", "needs"}
NUMBERS = (
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
    "ten", "eleven", "twelve",
)  # fmt: skip

_FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ITEM = re.compile(
    r"^- (?P<head>otherwise|(?:the answer )?`[^`]+`(?: (?:or|→) `[^`]+`)*)"
    r": (?P<say>.+?)(?=^- |\Z)",
    re.MULTILINE | re.DOTALL,
)
_GIVEN = re.compile(r"\{\{(.+?)\}\}")


class TaskError(Exception):
    """A file in ``tasks/`` cannot be read; the message says where and what to do."""


@dataclass(frozen=True)
class Item:
    """One entry of a list: what is answered, and what is said of it.

    Attributes:
        head: "otherwise", or the marked-up beginning.
        spans: the code in it.
        say: the words behind it.
        line: where it stands in the file.
    """

    head: str
    spans: tuple
    say: str
    line: int

    @property
    def changes(self):
        """Whether it says a change of the solution: this text → that text."""
        return " → " in self.head

    @property
    def whole(self):
        """Whether its code is the whole answer, also where a function is asked for."""
        return self.head.startswith("the answer ")


@dataclass(frozen=True)
class Block:
    """A fenced block: what stands behind its first fence, the text, and its line."""

    info: str
    text: str
    line: int


@dataclass(frozen=True, eq=False)
class Exercise:
    """One exercise, as its file tells it.

    Attributes:
        name: what ``check_exercise`` knows it by: the name of the file.
        level: "easy", "medium" or "hard".
        chapter: its part of the page about exercises: a page's name, or "open-ended".
        order: its place in that part.
        reads: the page and the section to read, with their markup.
        link: the page and the section that link to it.
        wanted: what kind of answer, as in "Expected a number".
        needs: exercises whose solutions come before its own.
        title: its heading.
        body: the task with its cells, in MyST Markdown.
        sections: {heading: (text, line)} of what stands below.
        answered: the heading of its solution.
    """

    name: str
    level: str
    chapter: str
    order: int
    reads: tuple
    link: tuple
    wanted: str
    needs: tuple
    title: str
    body: str
    sections: dict
    answered: str

    @property
    def file(self):
        """Where it stands."""
        return FOLDER / f"{self.name}.md"

    @property
    def slug(self):
        """Its name within the names of cells."""
        return self.name.replace(".", "-")

    @property
    def place(self):
        """What to read, in words."""
        page, section = self.reads
        return f'{PAGES[page]}, section "{section.replace("`", "")}"'

    @property
    def answer(self):
        """The name that the cell to write in gives to the answer."""
        cell = re.search(
            rf":name: write-{self.slug}\n(.*?)^```", self.body, re.MULTILINE | re.DOTALL
        )
        names = re.findall(r"^(?:def (\w+)\(|(\w+) = None\b)", cell[1], re.MULTILINE)
        return "".join(names[-1])

    @property
    def signature(self):
        """How the function that is asked for is called, or nothing."""
        found = re.match(r"a function (\w+\(.*\))$", self.wanted)
        return found[1] if found else ""

    @property
    def varied(self):
        """Whether its sizes differ from student to student."""
        return "Sizes" in self.sections

    def section(self, heading):
        """Return the text of a section, or nothing."""
        return self.sections.get(heading, ("", 0))[0]

    def items(self, heading):
        """Return the entries of a section that is a list.

        Raises:
            TaskError: a line of the section is no entry.
        """
        text, line = self.sections.get(heading, ("", 0))
        text = _blank(text)
        found = [
            Item(
                match["head"],
                tuple(
                    " ".join(span.split())
                    for span in re.findall("`([^`]+)`", match["head"])
                ),
                " ".join(match["say"].split()),
                line + text[: match.start()].count("\n"),
            )
            for match in _ITEM.finditer(text)
        ]
        if len(found) != len(re.findall("^- ", text, re.MULTILINE)):
            raise TaskError(
                f"{self.file.name}, {heading!r}: an entry is not of the form "
                f"'- `code`: words', '- `this` → `that`: words' or '- otherwise: "
                f"words'."
            )
        return found

    def blocks(self, heading, kind="python"):
        """Return the fenced blocks of a section."""
        text, line = self.sections.get(heading, ("", 0))
        return [
            Block(match[1], match[2], line + text[: match.start()].count("\n") + 1)
            for match in _FENCED.finditer(text)
            if match[1].startswith(kind)
        ]

    def sizes(self, dice=None):
        """Return the sizes of the book, or those that ``dice`` throws for a student."""
        if not self.varied:
            return {}
        names = {"dice": dice, "math": math, "word": word}
        book, student = self.blocks("Sizes")
        exec(book.text if dice is None else student.text, names)
        return {n: v for n, v in names.items() if n not in ("dice", "__builtins__")}

    def given(self, text, sizes=None):
        """Return a text with sizes in place of each ``{{…}}``."""
        sizes = self.sizes() if sizes is None else sizes
        return _GIVEN.sub(lambda found: str(eval(found[1], dict(sizes))), text)


def word(number):
    """Return a number as a word, if it is a small one."""
    return NUMBERS[number] if number < len(NUMBERS) else str(number)


def anchor(heading):
    """Return the anchor that the site makes of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def _blank(text):
    # What is fenced is no list, but its lines count.
    return _FENCED.sub(lambda match: "\n" * match[0].count("\n"), text)


def _parts(text, line):
    """Split at the headings of the second level; fences may hold lines that look so."""
    places = [m.start() for m in re.finditer("^## ", _hidden(text), re.MULTILINE)]
    for start, end in zip(places, [*places[1:], len(text)], strict=True):
        heading, _, rest = text[start + 3 : end].partition("\n")
        yield heading.strip(), (rest, line + text[:start].count("\n") + 1)


def _hidden(text):
    return _FENCED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def read(file):
    """Return the :class:`Exercise` of a file.

    Raises:
        TaskError: it is not of the form that CONTRIBUTING describes.
    """

    def refuse(what):
        raise TaskError(f"{file.name}: {what} CONTRIBUTING shows the form of a file.")

    text = file.read_text(encoding="utf-8")
    head, _, body = text.removeprefix("---\n").partition("\n---\n")
    facts = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    if not text.startswith("---\n") or not body.lstrip().startswith("# "):
        refuse("it begins with '---', facts, '---' and a heading '# Title'.")
    if missing := {"level", "chapter", "order", "read", "wanted"} - facts.keys():
        refuse(f"these facts are missing at the top: {', '.join(sorted(missing))}.")
    if unknown := facts.keys() - KEYS:
        refuse(f"{', '.join(sorted(unknown))}: no such fact. Known: {sorted(KEYS)}.")
    if facts["level"] not in LEVELS:
        refuse(f"the level is one of {', '.join(LEVELS)}, not {facts['level']!r}.")
    first, *_ = re.split("^## ", _hidden(body), flags=re.MULTILINE)
    title, _, task = body[: len(first)].strip().partition("\n")
    parts = dict(_parts(body, head.count("\n") + 3))
    solutions = [h for h in parts if h.startswith("Solution: ")]
    if len(solutions) != 1:
        refuse("it needs one section '## Solution: TITLE', the cell that solves it.")
    parts["Solution"] = parts.pop(solutions[0])
    if unknown := parts.keys() - set(SECTIONS):
        refuse(f"{', '.join(unknown)}: no such section. Known: {', '.join(SECTIONS)}.")
    needed = {"First hint", "Second hint", "Right", "Wrong"} - parts.keys()
    if needed:
        refuse(f"these sections are missing: {', '.join(sorted(needed))}.")
    slug = file.stem.replace(".", "-")
    for cell, where in (("write", task), ("solution", parts["Solution"][0])):
        if f":name: {cell}-{slug}\n" not in where:
            refuse(f"there is no cell with the line ':name: {cell}-{slug}'.")
    reads = _place(facts["read"], refuse)
    return Exercise(
        file.stem, facts["level"], facts["chapter"], int(facts["order"]), reads,
        _place(facts["link"], refuse) if "link" in facts else reads,
        facts["wanted"], tuple(facts.get("needs", "").replace(",", " ").split()),
        title.removeprefix("# "), task.strip(), parts,
        solutions[0].removeprefix("Solution: "),
    )  # fmt: skip


def _place(text, refuse):
    page, _, section = text.partition(", ")
    if page not in PAGES or not section:
        refuse(f"'{text}' is not 'page, section'. Pages: {', '.join(PAGES)}.")
    return page, section


@functools.cache
def exercises():
    """Return {name: :class:`Exercise`} of all files, in the order of the book.

    Raises:
        TaskError: a file is not of the form that CONTRIBUTING describes.
    """
    found = [read(file) for file in sorted(FOLDER.glob("*.md"))]
    chapters = [*PAGES, "open-ended"]
    if unknown := {e.chapter for e in found} - set(chapters):
        raise TaskError(f"{unknown} is no chapter. Chapters: {', '.join(chapters)}.")
    found.sort(key=lambda e: (chapters.index(e.chapter), e.order, e.name))
    return {exercise.name: exercise for exercise in found}
