"""Answers as a reader enters them on the site, made from answers in Python."""

import re

import torch

from coding_attention.exercises import EXERCISES
from coding_attention.exercises.build import namespace, run
from coding_attention.exercises.site import grid_of, rows_of, table_of


def fill_in(name, answer):
    """Return one entry for each field, or None where the site has no such answer."""
    table = table_of(name)
    if grid := grid_of(EXERCISES[name]):
        return _grid(EXERCISES[name], grid, answer)
    if name == "3.2":
        return _argument(answer)
    if name == "fill":
        return _row(answer)
    if isinstance(answer, torch.Tensor):
        answer = answer.tolist()
    if isinstance(answer, dict):
        answer = list(answer.values())
    parts = [answer] if len(table.fields) == 1 else answer
    if not isinstance(parts, tuple | list) or len(parts) != len(table.fields):
        return None
    entries = [_entry(f, p) for f, p in zip(table.fields, parts, strict=True)]
    return None if None in entries else entries


def _entry(field, part):
    if isinstance(part, torch.Tensor) and field.kind != "shape":
        part = part.tolist()
    if field.kind in ("number", "count"):
        number = isinstance(part, int | float) and not isinstance(part, bool)
        return repr(float(part)) if number else None
    if field.kind == "shape":
        return str(tuple(part)) if isinstance(part, tuple | list) else None
    if field.kind == "numbers":
        right = isinstance(part, tuple | list) and len(part) == field.length
        return [str(x) for x in part] if right else None
    if isinstance(part, list):
        part = "".join(part)
    known = [value for value, _ in field.options]
    if field.kind == "choice" and str(part).strip().lower() not in known:
        return None  # the site offers what there is
    return part.strip().lower() if isinstance(part, str) else None


def _grid(exercise, grid, answer):
    try:
        result = answer(*run(exercise, grid["arguments"], namespace(exercise)))
    except Exception:
        return None
    rows = rows_of(grid, result)
    if rows is None or grid["kind"] == "mask":
        return rows and [rows]
    return [[[str(x) for x in row] for row in rows]]


def _argument(answer):
    if isinstance(answer, str):
        match = re.fullmatch(r"\s*(\w+)\s*=\s*(\d+),?\s*", answer)
        answer = {match[1]: int(match[2])} if match else None
    if not isinstance(answer, dict) or len(answer) != 1:
        return None
    ((argument, value),) = answer.items()
    known = [value for value, _ in table_of("3.2").fields[0].options]
    return [argument, str(value)] if argument in known else None


def _row(answer):
    tensors = isinstance(answer, tuple | list) and len(answer) == 2
    if not tensors or not all(isinstance(x, torch.Tensor) for x in answer):
        return None
    scores, hidden = answer
    if scores.shape != (3,) or hidden.shape != (3,) or hidden.dtype != torch.bool:
        return None
    if not scores.is_floating_point():
        return None
    return [[str(x) for x in scores.tolist()], hidden.tolist()]
