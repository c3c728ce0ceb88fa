"""What a mistake is, and the bugs that plant it: read from the records."""

import linecache
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import unified_diff
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any

from attncheck.mistakes.bases import BASES, HEADER

HERE = Path(__file__).parent
# The order of findings: what explains other findings comes first.
FILES = ("running", "masking", "weighting", "heads", "projecting", "positions",
         "symptoms", "training", "storage", "contracts", "unknown")  # fmt: skip


@dataclass(frozen=True)
class Planted:
    """One mistake in an otherwise right class.

    Attributes:
        mistake: the checker's name for it.
        name: the same; where a mistake is planted in several ways, the later ones
            add what was done.
        did: what was done, in a few words.
        changes: pairs (right text, wrong text); several only where one slip of the
            mind touches several lines.
        base: which of ``BASES`` is changed.
        arguments: for the check, in addition to those of the base.
        cause, why, looks, case: its words and its cases in the game of the book.
    """

    mistake: str
    name: str
    did: str
    changes: tuple[tuple[str, str], ...]
    base: str = "multi_head"
    arguments: Mapping[str, Any] = field(default_factory=dict)
    cause: str = ""
    why: str = ""
    looks: Mapping[str, str] = field(default_factory=dict)
    case: tuple[Mapping[str, Any], ...] = ()

    @property
    def preset(self) -> str:
        """The name of the function that checks it."""
        return BASES[self.base][1]

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments for that function."""
        return BASES[self.base][2] | dict(self.arguments)

    def source(self) -> str:
        """Return the source of the class with the mistake in it.

        Raises:
            ValueError: a change does not apply.
        """
        text = BASES[self.base][0]
        for right, wrong in self.changes:
            if right not in text:
                raise ValueError(f"{self.name}: {right!r} is not in {self.base}")
            text = text.replace(right, wrong)
        return HEADER + "\n" + text

    def mended(self) -> str:
        """Return the lines to change, as a diff from the wrong class to the right."""
        right = (HEADER + "\n" + BASES[self.base][0]).splitlines()
        wrong = [one for one in self.source().splitlines() if one.strip() != "pass"]
        # The first three lines are the names of two files and of the first place.
        lines = list(unified_diff(wrong, right, n=0))[3:]
        between = [line.startswith("@@") for line in lines]
        code = ["" if b else one[1:] for b, one in zip(between, lines, strict=True)]
        mended = zip(between, lines, dedent("\n".join(code)).split("\n"), strict=True)
        return "\n".join("..." if b else f"{one[0]} {c}" for b, one, c in mended)

    def build(self) -> type:
        """Return the class with the mistake in it."""
        return compiled(self.source(), f"{self.did.replace(' ', '_')}.py")


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
        code: a code that stays the same, such as "ATT201", to select or ignore it.
        title: the mistake in one line.
        means: what it means for the results.
        line: the line that is likely at fault, and what is meant instead.
        page: the page of the book to read.
        severity: "error" (results are wrong), "warning" (a trap for later) or "note"
            (a choice that may be meant).
        stage: the stage of attention that it changes, or what else shows it.
        shown: wrong and right lines, where no class is planted with it.
        planted: classes that have this mistake.
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
    planted: tuple[Planted, ...] = ()
    recipes: tuple[Recipe, ...] = ()

    def example(self) -> str:
        """Return how to fix its first planted bug, as a diff, or the lines to show.

        Wrong lines begin with a minus, right ones with a plus; "..." stands for the
        lines between.
        """
        return self.planted[0].mended() if self.planted else self.shown


@cache
def families() -> dict[str, tuple[Mistake, ...]]:
    """Return the mistakes of each file of records."""
    return {name: tuple(_read(HERE / f"{name}.toml")) for name in FILES}


def _read(path: Path) -> Iterator[Mistake]:
    for name, record in tomllib.loads(path.read_text(encoding="utf-8")).items():
        bugs = enumerate(record.pop("planted", []))
        try:
            planted = tuple(_planted(name, place, bug) for place, bug in bugs)
            recipes = tuple(_recipe(**one) for one in record.pop("recipes", []))
            yield Mistake(name=name, **record, planted=planted, recipes=recipes)
        except (TypeError, KeyError) as error:
            raise ValueError(f"{path.name}, [{name}]: {error}") from None


def _recipe(change: dict[str, Any], equals: str, option: str = "") -> Recipe:
    # A recipe must be hashable, and TOML has no tuples.
    held = {k: tuple(v) if isinstance(v, list) else v for k, v in change.items()}
    return Recipe(held, equals, option)


def _planted(mistake: str, place: int, bug: dict[str, Any]) -> Planted:
    changes = tuple((right, wrong) for right, wrong in bug.pop("changes"))
    name = f"{mistake}: {bug['did']}" if place else mistake
    case = tuple(bug.pop("case", ()))
    return Planted(mistake, name, changes=changes, case=case, **bug)


def compiled(source: str, filename: str) -> type:
    """Return the class ``Attention`` of a source text, with lines for tracebacks."""
    lines = source.splitlines(keepends=True)
    linecache.cache[filename] = (len(source), None, lines, filename)
    names: dict[str, Any] = {"__name__": filename.removesuffix(".py")}
    exec(compile(source, filename, "exec"), names)
    made: type = names["Attention"]
    return made
