"""Notebooks as a class may hand them in, and a way to run them without a kernel.

They answer the assignment "causal", with sizes of their own.
"""

import json
from pathlib import Path
from unittest import mock

from coding_attention import grading
from coding_attention.grading.report import ClassReport
from coding_attention.grading.row import Row
from coding_attention.grading.runner import Run
from coding_attention.grading.variants import check_exercise_of, sizes_of

COURSE = "autumn-26"
SETUP = f"""import torch
from torch import nn
from coding_attention.exercises import check_exercise
from coding_attention.grading import check_exercise_of
check_exercise = check_exercise_of("{COURSE}/{{student}}")"""

MASK = "def causal_mask(num_tokens):\n    return {}"
MASKS = {
    "right": "torch.ones(num_tokens, num_tokens).triu(1).bool()",
    "diagonal": "torch.ones(num_tokens, num_tokens).triu(0).bool()",
    "keep": "torch.ones(num_tokens, num_tokens).tril().bool()",
}
MEAN = "def mean_of_past(x):\n    return {}"
MEANS = {
    "right": "x.cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None]",
    "sums": "x.cumsum(dim=1)",
}


def notebook(*codes):
    """A notebook of code cells, as Jupyter writes it."""
    cells = [
        {"cell_type": "code", "id": f"c{i}", "metadata": {}, "source": code,
         "outputs": [], "execution_count": None}
        for i, code in enumerate(codes)
    ]  # fmt: skip
    return json.dumps(
        {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    )


def dropout_of(student):
    """The right pair, and the mistake that forgets what dropout rescales."""
    sizes = sizes_of("dropout", f"{COURSE}/{student}")
    weight = sizes["weight"]
    return (weight / (1 - sizes["rate"]), weight), (weight, weight)


def answers(student, mask="right", mean="right", dropout=None):
    """The cells of a student who answered three of the five exercises."""
    return [
        SETUP.format(student=student),
        MASK.format(MASKS[mask]),
        'check_exercise("causal-mask", causal_mask)',
        f"kept_and_average = {dropout or dropout_of(student)[0]}",
        'check_exercise("dropout", kept_and_average)',
        MEAN.format(MEANS[mean]),
        'check_exercise("mean-of-the-past", mean_of_past)',
    ]


def run_here(cells, student):
    """What the runner returns for these cells, from this process."""
    run, check = Run(network="none"), check_exercise_of(f"{COURSE}/{student}")

    def report(name, answer=None):
        verdict = check(name, answer)
        told = {"exercise": name, "answer": answer if type(answer) is tuple else None}
        run.verdicts.append(vars(verdict) | told)

    names = {}
    with mock.patch.object(grading, "check_exercise_of", return_value=report):
        for run.cell, code in enumerate(cells, 1):
            try:
                exec(code, names)
            except Exception as error:
                run.raised.append((run.cell, f"{type(error).__name__}: {error}"))
    return run


def row_of(student, cells, file=None):
    """The row of a student's cells, without a kernel."""
    row = Row(Path(file or f"{student}.ipynb"), student, f"{COURSE}/{student}", cells)
    row.take(run_here(cells, student))
    return row


def report_of(rows, assignment="causal"):
    """The report on some rows."""
    return ClassReport(rows, grading.ASSIGNMENTS[assignment], COURSE)
