"""Writes an assignment as notebooks: one for each student, or one for nbgrader.

The tasks are those of the exercises' files. Where sizes differ from student to student,
a notebook has its student's own.
"""

import re

from coding_attention.exercises import EXERCISES
from coding_attention.exercises.notebook import SETUP, cells_of, join_cells
from coding_attention.exercises.pages import check_cell
from coding_attention.grading.assignments import ASSIGNMENTS
from coding_attention.grading.variants import VARIED, sizes_of

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

    Raises:
        HandOutError: a name cannot be a file's, or an exercise's cell is not there.
    """
    for student in students:
        if not re.fullmatch(r"[\w.@-]+", student):
            raise HandOutError(
                f"{student!r} can't be a file name. Use letters, digits, and . @ _ -."
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
        own = sizes_of(name, variant) if variant and name in VARIED else None
        worth = f"*{points} point{'' if points == 1 else 's'}*"
        cells += cells_of(EXERCISES[name], own, worth)
    return cells


def _setup(variant):
    if not variant:
        return SETUP
    return (
        f"{SETUP}\n\nfrom coding_attention.grading import check_exercise_of\n\n"
        f'check_exercise = check_exercise_of("{variant}")'
    )


def _write(file, cells):
    file.write_text(join_cells(cells), encoding="utf-8")
