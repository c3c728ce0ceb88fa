"""Writes down what the built site needs to check answers with no kernel.

    python -m coding_attention.exercises.site

makes ``answers.json`` from the tables of rules, and from functions that return a small
grid: there, the right function and each known mistake are called once, and the grids
that they return become rules. ``check.js`` reads the file. ``make notebooks`` does this
where an exercise has changed; a test holds it up to date.
"""

import hashlib
import json
from pathlib import Path

from coding_attention.exercises.files import FOLDER, exercises

FILE = Path(__file__).with_name("answers.json")


def hash_files():
    """Return what changes when a file of an exercise does. Needs no PyTorch."""
    text = "".join(f.read_text(encoding="utf-8") for f in sorted(FOLDER.glob("*.md")))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_stale():
    """Whether an exercise has changed since the file was written."""
    return hash_files() not in FILE.read_text(encoding="utf-8").partition("\n")[0]


def table_of(name):
    """Return the table that checks an exercise on the site, or None."""
    from coding_attention.exercises.build import check_of
    from coding_attention.exercises.table import Table

    if isinstance(check_of(name), Table):
        return check_of(name)
    grid = grid_of(exercises()[name])
    return _grid_table(exercises()[name], grid) if grid else None


def grid_of(exercise):
    """Return what its file says of the grid that answers a function, or None."""
    return exercise.cases.get("site", {}).get("grid")


def rows_of(grid, result):
    """Return the rows that a function's result fills a grid with, or None.

    Args:
        grid: "kind" is "mask" (true and false) or "matrix" (numbers); "rows" and
            "columns" are their names; "batched" says whether the result has an axis for
            the one sequence.
        result: of a right or wrong function.
    """
    import torch

    if not isinstance(result, torch.Tensor):
        return None
    if grid.get("batched"):
        result = result[0] if result.dim() == 3 else result[:0]
    wanted = torch.bool if grid["kind"] == "mask" else torch.float32
    size = len(grid["rows"]), len(grid["columns"])
    fits = tuple(result.shape) == size and result.dtype == wanted
    return result.tolist() if fits and result.isfinite().all() else None


def _grid_table(exercise, grid):
    from coding_attention.exercises.build import check_of, namespace, run
    from coding_attention.exercises.table import Field, Rule, Table

    check, space = check_of(exercise.name), namespace(exercise)

    def filled(function):
        case = run(exercise, grid["arguments"], space)
        return rows_of(grid, check.read_result(function(*case), *case))

    rules = [Rule(check.praise, {"grid": (filled(check.right),)}, right=True)]
    for mistake, say in check.mistakes:
        rows = filled(mistake)
        if rows is not None and {"grid": (rows,)} not in [r.when for r in rules]:
            rules.append(Rule(say, {"grid": (rows,)}))
    rules.append(
        Rule("Look at the row of {row}, column {column}: {given} should be {known}.")
    )
    part = Field("grid", grid["kind"], grid["label"], (grid["rows"], grid["columns"]))
    derived = tuple(Field(n, "text") for n in ("row", "column", "given", "known"))
    return Table(exercise.wanted, (part,), tuple(rules), derived=derived)


def entries():
    """Return what the site needs to know of each exercise that it can check."""
    found = {}
    for name, exercise in exercises().items():
        table = table_of(name)
        if table is None:
            continue
        found[name] = {
            "read": exercise.place,
            "wanted": table.wanted,
            "fields": [_field(f) for f in table.fields],
            "derived": {f.name: f.kind for f in table.derived},
            "rules": [
                {"say": r.say, "when": r.when, **({"right": True} if r.right else {})}
                for r in table.rules
            ],
        }
        # What follows from an answer, where rules ask for it: practice.py makes a
        # function of the text.
        if derive := exercise.cases.get("site", {}).get("derive"):
            found[name]["derive"] = exercise.given(derive).strip()
        # Rows of a mask that may hold anything but a row that hides everything.
        if free := (grid_of(exercise) or {}).get("free"):
            found[name]["free"] = free
    return found


def _field(part):
    record = {"name": part.name, "kind": part.kind, "label": part.label}
    if part.options:
        record["options"] = part.options
    if part.length:
        record["length"] = part.length
    return record


def text():
    """Return the text of ``answers.json``."""
    known = {"made from": hash_files(), **entries()}
    lines = (
        f"{json.dumps(name)}: {json.dumps(entry, ensure_ascii=False, allow_nan=False)}"
        for name, entry in known.items()
    )
    return "{" + ",\n".join(lines) + "\n}\n"


def write():
    """Write ``answers.json``."""
    FILE.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    write()
