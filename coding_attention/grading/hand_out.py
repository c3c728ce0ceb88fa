"""Writes an assignment as notebooks: one for each student, or one for nbgrader.

The tasks are those of the page about exercises, cut out of its notebook, so a task that
is reworded there is reworded here. Where sizes differ from student to student, the
task comes from :mod:`.variants`.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from coding_attention.grading.assignments import ASSIGNMENTS
from coding_attention.grading.variants import VARIED, task

CHECK = re.compile(r'check_exercise\("([^"]+)", (\w+)\)')
HEADING = re.compile(r"^(?=#{2,3} )", re.M)
# A hand-out lies outside the book: its links to pages lead nowhere, and the one to
# the solution is left out, folded or not; so are the proofs behind numbers.
NOT_HANDED_OUT = re.compile(
    r"<details>\s*<summary>Solution</summary>.*?</details>"
    r"|^[^\n]*\]\(solutions\.ipynb[^)]*\)[^\n]*\n?|[ ]?<!--.*?-->",
    re.M | re.S,
)
PAGE_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]*\)")
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
INTRODUCTION = """# {title}

Write your answers in place of `None`, run the check below each of them, and hand in
this notebook. A check says "right", or it names the mistake; you may run it as often as
you like. {total} points."""


class TemplateError(Exception):
    """The notebook with the tasks is missing, or lacks one; the message says which."""


@dataclass
class _Section:
    """What stands under one heading of the page."""

    cells: list = field(default_factory=list)  # pairs of kind and source

    def exercise(self):
        """Return (name, the answer's name) of the exercise, or nothing."""
        found = (CHECK.match(source) for kind, source in self.cells if kind == "code")
        return next((match.groups() for match in found if match), None)


def hand_out(template, assignment, folder, course, students):
    """Write one notebook for each student, with sizes of their own.

    Args:
        template: the notebook of the page about exercises.
        assignment: a name of :data:`ASSIGNMENTS`.
        folder: where to write; it is made.
        course: the name of the variants.
        students: their names; each becomes the name of a file.

    Returns:
        The files.
    """
    sections, setup = _read(template)
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for student in students:
        if not re.fullmatch(r"[\w.@-]+", student):
            raise TemplateError(
                f"{student!r} cannot be the name of a file: letters, digits, . @ _ and "
                f"- are allowed."
            )
        cells = _cells(sections, setup, assignment, f"{course}/{student}")
        files.append(folder / f"{student}.ipynb")
        _write(files[-1], cells)
    return files


def nbgrader(template, assignment, folder):
    """Write ``folder/ASSIGNMENT/ASSIGNMENT.ipynb``, a source notebook of nbgrader.

    nbgrader puts the cells that check back as they were handed out before it grades, so
    they cannot be changed. All students have the same sizes.
    """
    sections, setup = _read(template)
    cells = []
    for kind, source in _cells(sections, setup, assignment, ""):
        match = CHECK.match(source) if kind == "code" else None
        if not match:
            cells.append((kind, source, {}))
            continue
        name = match[1]
        source = f"verdict = {source}\nprint(verdict)\nassert verdict.right"
        locked = {
            "grade": True,
            "grade_id": f"check-{name.replace('.', '-')}",
            "locked": True,
            "points": ASSIGNMENTS[assignment].points[name],
            "schema_version": 3,
            "solution": False,
            "task": False,
        }
        cells.append((kind, source, {"nbgrader": locked}))
    place = folder / assignment
    place.mkdir(parents=True, exist_ok=True)
    _write(place / f"{assignment}.ipynb", cells)
    return place / f"{assignment}.ipynb"


def _cells(sections, setup, assignment, variant):
    """Return the cells of a notebook as pairs of kind and source."""
    sheet = ASSIGNMENTS[assignment]
    title = INTRODUCTION.format(title=sheet.title, total=sheet.total)
    cells = [("markdown", title), ("code", _setup(setup, variant))]
    for name, points in sheet.points.items():
        if name not in sections:
            raise TemplateError(f"the template has no task for the exercise {name!r}.")
        worth = f"*{points} point{'' if points == 1 else 's'}*"
        if variant and name in VARIED:
            mine = task(name, variant)
            text = f"### {mine.title}\n\n{worth}\n\n{mine.text}"
            check = f'check_exercise("{name}", {mine.answer})'
            cells += [("markdown", text), ("code", mine.code), ("code", check)]
            continue
        (_, first), *others = sections[name].cells
        heading, _, rest = first.partition("\n")
        text = f"{heading}\n\n{worth}\n\n{rest.strip()}".strip()
        cells += [("markdown", text), *others]
    return cells


def _setup(source, variant):
    if not variant:
        return source
    return (
        f"{source}\n\nfrom coding_attention.grading import check_exercise_of\n\n"
        f'check_exercise = check_exercise_of("{variant}")'
    )


def _read(template):
    """Return ({exercise: section}, the first code cell) of the page's notebook."""
    try:
        cells = json.loads(Path(template).read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError, KeyError, TypeError):
        raise TemplateError(
            f"{template} is not the notebook of the page about exercises. Run this in "
            f"the book's folder, or name it: --template PATH."
        ) from None
    sections = [_Section()]
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] != "markdown":
            sections[-1].cells.append((cell["cell_type"], source))
            continue
        source = PAGE_LINK.sub(r"\1", NOT_HANDED_OUT.sub("", source))
        for part in HEADING.split(source):
            if HEADING.match(part):
                sections.append(_Section())
            if part.strip():
                sections[-1].cells.append(("markdown", part.strip()))
    setup = next((s for kind, s in sections[0].cells if kind == "code"), "")
    named = {s.exercise()[0]: s for s in sections if s.exercise()}
    return named, setup


def _write(file, cells):
    made = []
    for number, (kind, source, *metadata) in enumerate(cells):
        cell = {
            "cell_type": kind,
            "id": f"cell-{number}",
            "metadata": metadata[0] if metadata else {},
            "source": source,
        }
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        made.append(cell)
    notebook = {
        "cells": made,
        "metadata": METADATA,
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    file.write_text(json.dumps(notebook, indent=1) + "\n", encoding="utf-8")
