"""Grades notebooks that a class has handed in: ``python -m coding_attention.grading``.

Each notebook runs in a kernel of its own (:mod:`.runner`), its answers are checked as
on the page about exercises, and over a class the mistakes are counted.
"""

from concurrent.futures import ThreadPoolExecutor

from coding_attention.grading.assignments import ASSIGNMENTS, Assignment
from coding_attention.grading.report import ClassReport
from coding_attention.grading.row import Row
from coding_attention.grading.submissions import find_files, read
from coding_attention.grading.variants import VARIED, check_exercise_of


def grade(places, assignment, course="", limits=None, tell=None, jobs=1):
    """Run and grade notebooks.

    Args:
        places: files, and folders of files. Whatever they hold, each gets its row.
        assignment: an :class:`Assignment`.
        course: the name with which variants were handed out. Each student's sizes are
            then those of "COURSE/STUDENT", whatever the notebook itself says.
        limits: a :class:`~coding_attention.grading.runner.Limits`.
        tell: function of a :class:`Row`, called when it is done.
        jobs: how many notebooks run at a time.

    Returns:
        :class:`ClassReport`.
    """

    def fill_row(file):
        row = _fill_row(read(file), course, limits)
        if tell:
            tell(row)
        return row

    with ThreadPoolExecutor(jobs) as pool:
        rows = list(pool.map(fill_row, find_files(places)))
    return ClassReport(rows, assignment, course)


def _fill_row(submission, course, limits):
    from coding_attention.grading import runner  # a student's notebook needs no Jupyter

    student = submission.student(course)
    row = Row(submission.file, student, submission.variant, submission.cells)
    if submission.problem:
        row.status, row.reason = "not run", submission.problem
        return row
    whose = f"{course}/{student}" if course else submission.variant
    row.take(runner.run(submission.cells, whose, limits or runner.Limits()))
    return row
