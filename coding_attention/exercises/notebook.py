"""Cells of a notebook from an exercise: alone, or among others in a hand-out.

A notebook lies outside the book: links to pages would lead nowhere there, and the
proofs behind numbers are for those who edit the pages. Needs no PyTorch.
"""

import json
import re

from coding_attention.exercises.pages import HELP, check_cell

CELL = re.compile(
    r"^```\{code-cell\} ipython3\n(?::[^\n]*\n)*\n(.*?)^```\n?",
    re.MULTILINE | re.DOTALL,
)
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


def cells_of(exercise, sizes=None, under=""):
    """Return the cells of an exercise as pairs of kind and source.

    Args:
        exercise: an :class:`~coding_attention.exercises.files.Exercise`.
        sizes: those of a student. Its figures and hints are left out then, since they
            may speak of the sizes of the book.
        under: what to say below the heading.
    """
    parts = CELL.split(exercise.given(exercise.body, sizes))
    parts = parts[:2] if sizes else parts
    heading = f"### {exercise.title}\n\n{under}".strip()
    cells = [("markdown", f"{heading}\n\n{_outside_the_book(parts[0])}")]
    for text, code in zip([*parts[2::2], ""], parts[1::2], strict=False):
        cells += [("code", code.strip()), ("markdown", _outside_the_book(text))]
    cells.append(("code", check_cell(exercise)))
    if not sizes:
        hints = (_hint(exercise, name) for name in ("First hint", "Second hint"))
        cells.append(("markdown", "\n\n".join(hints)))
    return [(kind, source) for kind, source in cells if source]


def _hint(exercise, name):
    text = exercise.given(exercise.section(name)).strip()
    return HELP.format(name, _outside_the_book(text))


def _outside_the_book(text):
    return PAGE_LINK.sub(r"\1", PROOF.sub("", text)).strip()


def build_notebook(exercise, install):
    """Return the text of a notebook that holds one exercise.

    Args:
        exercise: which.
        install: the code of the cell that installs the package.
    """
    task, *others = cells_of(exercise)
    return join_cells([task, ("code", install), ("code", SETUP), *others])


def join_cells(cells):
    """Return the text of a notebook.

    Args:
        cells: tuples of kind, source and perhaps metadata.
    """
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
    return json.dumps(notebook, indent=1) + "\n"
