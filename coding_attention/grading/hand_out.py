"""Writes an assignment as notebooks: one for each student, or one for nbgrader.

The tasks are those of the exercises' files. Where sizes differ from student to student,
a notebook has its student's own.
"""

import json
import re

from coding_attention.exercises import EXERCISES
from coding_attention.exercises.pages import HELP, check_cell
from coding_attention.grading.assignments import ASSIGNMENTS
from coding_attention.grading.variants import VARIED, sizes_of

CELL = re.compile(
    r"^```\{code-cell\} ipython3\n(?::[^\n]*\n)*\n(.*?)^```\n?",
    re.MULTILINE | re.DOTALL,
)
# A hand-out lies outside the book: its links to pages lead nowhere, and the proofs
# behind numbers are for those who edit the pages.
PROOF = re.compile(r"[ ]?<!--.*?-->", re.DOTALL)
PAGE_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]*\)")
SETUP = """import torch
from torch import nn

from attention import MultiHeadAttention, MultiHeadAttentionWrapper
from coding_attention import example, figures
from coding_attention.exercises import check_exercise

tokens, inputs = example.TOKENS, example.inputs()"""
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
INTRODUCTION = """# {title}

Write your answers in place of `None`, run the check below each of them, and hand in
this notebook. A check says "right", or it names the mistake; you may run it as often as
you like. {total} points."""


class HandOutError(Exception):
    """A notebook cannot be written; the message says what to change."""


def hand_out(assignment, folder, course, students):
    """Write one notebook for each student, with sizes of their own.

    Args:
        assignment: a name of :data:`ASSIGNMENTS`.
        folder: where to write; it is made.
        course: the name of the variants.
        students: their names; each becomes the name of a file.

    Returns:
        The files.
    """
    for student in students:
        if not re.fullmatch(r"[\w.@-]+", student):
            raise HandOutError(
                f"{student!r} cannot be the name of a file: letters, digits, . @ _ and "
                f"- are allowed."
            )
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for student in students:
        files.append(folder / f"{student}.ipynb")
        _write(files[-1], _cells(assignment, f"{course}/{student}"))
    return files


def nbgrader(assignment, folder):
    """Write ``folder/ASSIGNMENT/ASSIGNMENT.ipynb``, a source notebook of nbgrader.

    nbgrader puts the cells that check back as they were handed out before it grades, so
    they cannot be changed. All students have the same sizes.
    """
    checks = {check_cell(EXERCISES[n]): n for n in ASSIGNMENTS[assignment].points}
    cells = []
    for kind, source in _cells(assignment, ""):
        if source not in checks:
            cells.append((kind, source, {}))
            continue
        name = checks[source]
        locked = {
            "grade": True,
            "grade_id": f"check-{EXERCISES[name].slug}",
            "locked": True,
            "points": ASSIGNMENTS[assignment].points[name],
            "schema_version": 3,
            "solution": False,
            "task": False,
        }
        source = f"verdict = {source}\nprint(verdict)\nassert verdict.right"
        cells.append((kind, source, {"nbgrader": locked}))
    place = folder / assignment
    place.mkdir(parents=True, exist_ok=True)
    _write(place / f"{assignment}.ipynb", cells)
    return place / f"{assignment}.ipynb"


def _cells(assignment, variant):
    """Return the cells of a notebook as pairs of kind and source."""
    sheet = ASSIGNMENTS[assignment]
    title = INTRODUCTION.format(title=sheet.title, total=sheet.total)
    cells = [("markdown", title), ("code", _setup(variant))]
    for name, points in sheet.points.items():
        cells += _exercise(EXERCISES[name], points, variant)
    return cells


def _exercise(exercise, points, variant):
    own = variant and exercise.name in VARIED
    sizes = sizes_of(exercise.name, variant) if own else exercise.sizes()
    worth = f"*{points} point{'' if points == 1 else 's'}*"
    cells = [("markdown", f"### {exercise.title}\n\n{worth}")]
    parts = CELL.split(exercise.given(exercise.body, sizes))
    # A figure and hints may speak of the sizes of the book.
    parts = parts[:2] if own else parts
    for kind, part in zip(("markdown", "code") * len(parts), parts, strict=False):
        text = part.strip() if kind == "code" else _outside_the_book(part)
        if kind == "markdown" and cells[-1][0] == "markdown":
            cells[-1] = "markdown", f"{cells[-1][1]}\n\n{text}".strip()
        elif text:
            cells.append((kind, text))
    cells.append(("code", check_cell(exercise)))
    hints = [] if own else [_hint(exercise, n) for n in ("First hint", "Second hint")]
    return cells + ([("markdown", "\n\n".join(hints))] if hints else [])


def _hint(exercise, name):
    text = exercise.given(exercise.section(name)).strip()
    return HELP.format(name, _outside_the_book(text))


def _outside_the_book(text):
    return PAGE_LINK.sub(r"\1", PROOF.sub("", text)).strip()


def _setup(variant):
    if not variant:
        return SETUP
    return (
        f"{SETUP}\n\nfrom coding_attention.grading import check_exercise_of\n\n"
        f'check_exercise = check_exercise_of("{variant}")'
    )


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
