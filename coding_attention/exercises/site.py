"""Writes down what the built site needs to check answers with no kernel.

    python -m coding_attention.exercises.site

makes ``answers.json`` from the tables of rules, and from functions that return a small
grid: there, the right function and each known mistake are called once, and the grids
that they return become rules. ``check.js`` reads the file; a test holds it up to date.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import torch

from coding_attention.exercises import EXERCISES
from coding_attention.exercises.places import PAGES
from coding_attention.exercises.table import Field, Table, right, wrong

FILE = Path(__file__).with_name("answers.json")


@dataclass(frozen=True)
class Grid:
    """A function's result for one argument, to be filled in by hand.

    Attributes:
        case: the arguments.
        kind: "mask" (true and false) or "matrix" (numbers).
        label: what to fill in.
        rows, columns: their names.
        batched: whether the result has an axis for the one sequence.
    """

    case: tuple
    kind: str
    label: str
    rows: tuple
    columns: tuple
    batched: bool = False


TOKENS = tuple(f"token {i + 1}" for i in range(4))
GRIDS = {
    "causal-mask": Grid(
        (4,),
        "mask",
        "Rows are queries, columns are keys. What is hidden?",
        TOKENS,
        TOKENS,
    ),
    "padding": Grid(
        (torch.tensor([[False, True, False, False]]),),
        "mask",
        "A sequence of four whose second place is padding. Rows are queries, columns "
        "are keys. What is hidden?",
        ("token 1", "padding", "token 3", "token 4"),
        ("token 1", "padding", "token 3", "token 4"),
        batched=True,
    ),
    # The mean of the rows of an identity matrix shows the weights themselves.
    "mean-of-the-past": Grid(
        (torch.eye(3)[None],),
        "matrix",
        "How much of each column's token is in the mean of each row's token? A "
        "fraction such as 2/5 will do.",
        TOKENS[:3],
        TOKENS[:3],
        batched=True,
    ),
}


def table_of(name):
    """Return the table that checks an exercise on the site, or None."""
    check = EXERCISES[name].check
    if isinstance(check, Table):
        return check
    return _grid_table(name, check, GRIDS[name]) if name in GRIDS else None


def _grid_table(name, check, grid):
    def filled(function):
        result = function(*(x.clone() if hasattr(x, "clone") else x for x in grid.case))
        if not isinstance(result, torch.Tensor):
            return None
        if grid.batched:
            result = result[0] if result.dim() == 3 else result[:0]
        wanted = torch.bool if grid.kind == "mask" else torch.float32
        size = len(grid.rows), len(grid.columns)
        fits = tuple(result.shape) == size and result.dtype == wanted
        return result.tolist() if fits and result.isfinite().all() else None

    known = filled(check.right)
    rules, seen = [right(check.praise, grid=(known,))], [known]
    for mistake, say in check.mistakes:
        rows = filled(mistake)
        if rows is not None and rows not in seen:
            rules.append(wrong(say, grid=(rows,)))
            seen.append(rows)
    rules.append(
        wrong(
            "The shape is right, the numbers are not. At index {index} it holds "
            "{given}, right is {known}."
        )
    )
    part = Field("grid", grid.kind, grid.label, (grid.rows, grid.columns))
    derived = tuple(Field(n, "text") for n in ("index", "given", "known"))
    return Table(EXERCISES[name].wanted, (part,), tuple(rules), derived=derived)


def entries():
    """Return what the site needs to know of each exercise that it can check."""
    found = {}
    for name, exercise in EXERCISES.items():
        table = table_of(name)
        if table is None:
            continue
        page, section = exercise.reads
        found[name] = {
            "read": f'{PAGES[page]}, section "{section}"',
            "wanted": table.wanted,
            "fields": [_field(f) for f in table.fields],
            "derived": {f.name: f.kind for f in table.derived},
            "rules": [
                {"say": r.say, "when": r.when, **({"right": True} if r.right else {})}
                for r in table.rules
            ],
        }
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
    lines = (
        f"{json.dumps(name)}: {json.dumps(entry, ensure_ascii=False, allow_nan=False)}"
        for name, entry in entries().items()
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
