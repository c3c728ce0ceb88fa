"""Thirty notebooks as a class may hand them in: answers, mistakes, and worse.

They answer the assignment "causal", with sizes of their own. What each is about stands
in its name; the numbered ones are ordinary students.
"""

import json

from coding_attention.grading.variants import sizes_of

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
    "past": "torch.ones(num_tokens, num_tokens).tril(-1).bool()",
    "none": "None",
}
MEAN = "def mean_of_past(x):\n    return {}"
MEANS = {
    "right": "x.cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None]",
    "all": "x.mean(dim=1, keepdim=True).expand_as(x)",
    "sums": "x.cumsum(dim=1)",
    "ends": "__import__('os')._exit(3)",
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
    if dropout is None:
        dropout, _ = dropout_of(student)
    return [
        SETUP.format(student=student),
        MASK.format(MASKS[mask]),
        'check_exercise("causal-mask", causal_mask)',
        f"kept_and_average = {dropout}",
        'check_exercise("dropout", kept_and_average)',
        MEAN.format(MEANS[mean]),
        'check_exercise("mean-of-the-past", mean_of_past)',
    ]


def write_class(folder):
    """Write the thirty files; return the names of what they are, by file name."""
    folder.mkdir(parents=True, exist_ok=True)
    sheets = {}
    for number, (mask, mean) in enumerate(
        [("right", "right")] * 5
        + [("diagonal", "right")] * 6
        + [("keep", "all")] * 3
        + [("right", "sums")] * 2
    ):
        student = f"student-{number:02}"
        sheets[student] = answers(student, mask, mean)

    # What was copied: the right numbers of somebody else.
    theirs, _ = dropout_of("student-00")
    sheets["copied"] = answers("copied", dropout=theirs)
    _, mistake = dropout_of("not-rescaled")
    sheets["not-rescaled"] = answers("not-rescaled", dropout=mistake)
    sheets["unsolved"] = answers("unsolved", mask="none")[:3]

    # What happens on the way.
    first = answers("loops")[:3]
    sheets["loops"] = [*first, "while True:\n    pass", *answers("loops")[3:]]
    sheets["sleeps"] = [*answers("sleeps")[:3], "import time\ntime.sleep(3600)"]
    sheets["exits"] = ["import sys\nsys.exit(1)", *answers("exits")]
    sheets["ends"] = [*answers("ends")[:5], "import os\nos._exit(0)"]
    sheets["crashes"] = [
        *answers("crashes")[:3],
        "import ctypes\nctypes.string_at(0)",
    ]
    sheets["ends-in-an-answer"] = answers("ends-in-an-answer", mean="ends")
    sheets["eats-memory"] = [
        *answers("eats-memory"), "fits = torch.zeros(2**28)",
        "hoard = torch.zeros(2**31)",
        "more = bytearray(2**33)",
    ]  # fmt: skip
    sheets["raises"] = ["import no_such_package", "1 / 0", *answers("raises")]

    files = {f"{name}.ipynb": notebook(*cells) for name, cells in sheets.items()}
    files |= {
        "empty.ipynb": "",
        "no-notebook.ipynb": "print('this is Python')",
        "no-answers.ipynb": notebook("print(1)"),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return sorted(files)
