"""What a mistake is: read from the records beside this file."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
# The order of findings: what explains other findings comes first.
FILES = ("running", "masking", "weighting", "heads", "projecting", "positions",
         "symptoms", "training", "storage", "contracts", "unknown")  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    """Attention computed with the mistake, as a change of the right recipe.

    Attributes:
        change: fields of ``attncheck.reference.Recipe`` and their values.
        equals: what an output that equals this one is, behind "attention".
        option: the option that declares what is changed, such as "rope".
    """

    change: Mapping[str, Any]
    equals: str
    option: str = ""


@dataclass(frozen=True)
class Mistake:
    """One mistake: its short name, and the words for it.

    Attributes:
        name: short name, its key in :data:`attncheck.MISTAKES`.
        code: a code that stays the same, such as "ATT201".
        title: the mistake in one line.
        means: what it means for the results.
        line: the line that is likely at fault, and what is meant instead.
        page: the page of the book to read.
        severity: "error" (results are wrong), "warning" (a trap for later) or "note"
            (a choice that may be meant).
        stage: the stage of attention that it changes, or what else shows it.
        shown: wrong lines, which begin with a minus, and right ones, with a plus;
            "..." stands for the lines between.
        recipes: ways to compute attention with it; none where behavior shows it.
    """

    name: str
    code: str
    title: str
    means: str
    line: str
    page: str
    severity: str = "error"
    stage: str = ""
    shown: str = ""
    recipes: tuple[Recipe, ...] = ()


@cache
def families() -> dict[str, tuple[Mistake, ...]]:
    """Return the mistakes of each file of records."""
    return {name: tuple(_read(HERE / f"{name}.toml")) for name in FILES}


def _read(path: Path) -> Iterator[Mistake]:
    for name, record in tomllib.loads(path.read_text(encoding="utf-8")).items():
        try:
            recipes = tuple(_recipe(**one) for one in record.pop("recipes", []))
            yield Mistake(name=name, **record, recipes=recipes)
        except (TypeError, KeyError) as error:
            raise ValueError(f"{path.name}, [{name}]: {error}") from None


def _recipe(change: dict[str, Any], equals: str, option: str = "") -> Recipe:
    # A recipe must be hashable, and TOML has no tuples.
    held = {k: tuple(v) if isinstance(v, list) else v for k, v in change.items()}
    return Recipe(held, equals, option)
