"""Right classes with one mistake in each: for the game, the checker's page and tests.

The bugs stand in ``planted.toml``, as changes of a class of ``bases.py``, with their
words and cases in the game.
"""

import linecache
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coding_attention.gallery.bases import BASES, HEADER


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
    def settings(self) -> dict[str, Any]:
        """The arguments for the check."""
        return BASES[self.base][1] | dict(self.arguments)

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

    def build(self) -> type:
        """Return the class with the mistake in it."""
        return compiled(self.source(), f"{self.did.replace(' ', '_')}.py")


def compiled(source: str, filename: str) -> type:
    """Return the class ``Attention`` of a source text, with lines for tracebacks."""
    lines = source.splitlines(keepends=True)
    linecache.cache[filename] = (len(source), None, lines, filename)
    names: dict[str, Any] = {"__name__": filename.removesuffix(".py")}
    exec(compile(source, filename, "exec"), names)
    made: type = names["Attention"]
    return made


def _read() -> dict[str, Planted]:
    text = Path(__file__).with_name("planted.toml").read_text(encoding="utf-8")
    planted = {}
    for mistake, record in tomllib.loads(text).items():
        for place, bug in enumerate(record["planted"]):
            changes = tuple((right, wrong) for right, wrong in bug.pop("changes"))
            name = f"{mistake}: {bug['did']}" if place else mistake
            case = tuple(bug.pop("case", ()))
            planted[name] = Planted(mistake, name, changes=changes, case=case, **bug)
    return planted


PLANTED = _read()
