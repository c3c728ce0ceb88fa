"""Reads an exercise: one Markdown file in ``tasks/``, from which all else is made.

A file holds facts in YAML, the task, two hints and the solution in Markdown, and under
"Check" a cell of Python and the cases in YAML. The pages, the links to an exercise, its
check, the site's answers, the grader's sizes and the tests come from that file;
CONTRIBUTING names three to begin from. Nothing here imports PyTorch, so that pages can
be brought up to date without it.
"""

import functools
import math
import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from coding_attention.number_words import spell_number

FOLDER = Path(__file__).with_name("tasks")
LEVELS = "easy", "medium", "hard"
# Pages that exercises belong to or name, by title: a wheel has no book to read it from.
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
# What stands in a file: keys at the top, sections, keys of the cases and of each case.
HEAD = {"level", "chapter", "order", "read", "wanted"}
SECTIONS = {"First hint", "Second hint", "Solution", "Check"}
CASES = {"right", "wrong"}
CASE = {"when", "each", "returns", "answer", "change", "program", "say", "right"}

_FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_GIVEN = re.compile(r"\{\{(.+?)\}\}")
# The C version reads all files in a tenth of the time, where it is there.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class TaskError(Exception):
    """A file in ``tasks/`` cannot be used; the message says where and what to do."""


@dataclass(frozen=True, eq=False)
class Exercise:
    """One exercise, as its file describes it.

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
        cases: what its YAML says of answers: the fields of one, what is right and
            wrong, what else the tests try, sizes, and what the site needs.
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
    cases: dict

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
        return "sizes" in self.cases

    @property
    def check(self):
        """The code of its check, and the line before it in the file."""
        text, line = self.sections["Check"]
        found = _block(text, "python")
        return (
            (found[2], line + text[: found.start(2)].count("\n")) if found else ("", 0)
        )

    def section(self, heading):
        """Return the text of a section."""
        return self.sections[heading][0]

    def sizes(self, dice=None):
        """Return the sizes of the book, or those that ``dice`` throws for a student."""
        if not self.varied:
            return {}
        names = {"dice": dice, "math": math, "word": spell_number}
        exec(self.cases["sizes"]["student" if dice else "book"], names)
        return {n: v for n, v in names.items() if n not in ("dice", "__builtins__")}

    def given(self, text, sizes=None):
        """Return a text with sizes in place of each ``{{…}}``."""
        sizes = self.sizes() if sizes is None else sizes
        return _GIVEN.sub(lambda found: str(eval(found[1], dict(sizes))), text)


def _block(text, kind):
    return next((m for m in _FENCED.finditer(text) if m[1] == kind), None)


def _split(text):
    """Return the text before the sections, and {heading: (text, line)} of them."""
    # A line in a fence may look like a heading.
    hidden = _FENCED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    starts = [match.start() for match in re.finditer("^## ", hidden, re.MULTILINE)]
    parts = {}
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        heading, _, rest = text[start + 3 : end].partition("\n")
        parts[heading.strip()] = rest, text[:start].count("\n") + 1
    return text[: starts[0]] if starts else text, parts


def read(file):
    """Return the :class:`Exercise` of a file.

    Raises:
        TaskError: it is not of the form of the others.
    """

    def refuse(what):
        raise TaskError(f"{file.name}: {what} count-weights.md shows the form.")

    def require(where, known, given, more=()):
        if missing := known - set(given):
            refuse(f"{where} lacks {', '.join(sorted(missing))}.")
        if unknown := set(given) - known - set(more):
            refuse(f"{where} has {', '.join(map(str, unknown))}, which has no meaning.")

    def load(text, where):
        try:
            return yaml.load(text, _Loader) or {}
        except yaml.YAMLError as error:
            refuse(f"{where} is not YAML: {' '.join(str(error).split())}.")

    def place(text):
        page, _, section = text.partition(", ")
        if page not in PAGES or not section:
            refuse(f"'{text}' is not 'page, section'. Pages: {', '.join(PAGES)}.")
        return page, section

    before, sections = _split(file.read_text(encoding="utf-8"))
    if len(parts := before.split("---\n", 2)) < 3:
        refuse("it begins with '---', facts, '---' and a heading '# Title'.")
    _, head, task = parts
    facts = load(head, "the top")
    require("the top", HEAD, facts, ("link", "needs"))
    if facts["level"] not in LEVELS:
        refuse(f"the level is one of {', '.join(LEVELS)}, not {facts['level']!r}.")
    solved = [h for h in sections if h.startswith("Solution: ")]
    if solved:
        sections["Solution"] = sections.pop(solved[0])
    require("the list of sections ('## Solution: TITLE')", SECTIONS, sections)
    for cell, where in (("write", task), ("solution", sections["Solution"][0])):
        name = f"{cell}-{file.stem.replace('.', '-')}"
        if f":name: {name}\n" not in where:
            refuse(f"there is no cell with the line ':name: {name}'.")
    block = _block(sections["Check"][0], "yaml")
    cases = load(block[2], "the block of cases") if block else {}
    require(
        "the YAML below '## Check'", CASES, cases, ("fields", "tried", "sizes", "site")
    )
    for case in (*cases["right"], *cases["wrong"], *cases.get("tried", ())):
        require("a case", set(), case, CASE)
    title, _, body = task.strip().partition("\n")
    reads = place(facts["read"])
    return Exercise(
        file.stem, facts["level"], facts["chapter"], facts["order"], reads,
        place(facts["link"]) if "link" in facts else reads, facts["wanted"],
        tuple(facts.get("needs", "").replace(",", " ").split()),
        title.removeprefix("# "), body.strip(), sections,
        solved[0].removeprefix("Solution: "), cases,
    )  # fmt: skip


@functools.cache
def exercises():
    """Return {name: :class:`Exercise`} of all files, in the order of the book.

    Raises:
        TaskError: a file is not of the form of the others.
    """
    found = [read(file) for file in sorted(FOLDER.glob("*.md"))]
    chapters = [*PAGES, "open-ended"]
    if unknown := {e.chapter for e in found} - set(chapters):
        raise TaskError(f"{unknown} is no chapter. Chapters: {', '.join(chapters)}.")
    found.sort(key=lambda e: (chapters.index(e.chapter), e.order, e.name))
    return {exercise.name: exercise for exercise in found}
