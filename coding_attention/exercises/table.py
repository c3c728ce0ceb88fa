"""Answers that are numbers, shapes, choices or grids: one table of what each one means.

A table serves twice. Here it checks an answer in Python. Written as JSON by
:mod:`coding_attention.exercises.site`, it checks the same answer on the built page,
with no kernel: ``check.js`` reads the rules in the same way. So no rule may hold code.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from coding_attention.exercises.core import (
    NotRight,
    close,
    describe,
    number,
    of_length,
    shape,
)


@dataclass(frozen=True)
class Field:
    """One part of an answer.

    Attributes:
        name: by which the rules call it.
        kind: "number", "count" (a whole number, compared to the last digit), "shape",
            "numbers" (a row of them), "flags" (a row of true and false), "choice",
            "order" (letters in a row) or "text" (derived, never entered).
        label: what it is, for the site.
        options: pairs (value, text) of a choice or an order.
        length: how many numbers or flags.
    """

    name: str
    kind: str
    label: str = ""
    options: tuple = ()
    length: int = 0


@dataclass(frozen=True)
class Rule:
    """What to say of answers.

    Attributes:
        say: the words. ``{name}`` stands for the value of that field.
        when: for each field that counts, the values that match. Nothing: always.
        right: whether the answer is right.
    """

    say: str
    when: dict = field(default_factory=dict)
    right: bool = False


@dataclass(frozen=True)
class Table:
    """Checks an answer by the first rule that matches.

    Attributes:
        wanted: what kind of answer, as in "Expected a number".
        fields: the parts of an answer, in order.
        rules: first match counts; the last one matches always.
        read: function of the answer that returns the value of each field. Without it
            the answer is the value of the one field, or a list of values.
        derived: further fields, which ``read`` or the site computes from the others.
    """

    wanted: str
    fields: tuple
    rules: tuple
    read: Callable | None = None
    derived: tuple = ()

    def __call__(self, answer):
        """Return the praise.

        Raises:
            NotRight: with the words of the rule that matches.
        """
        values = (self.read or self._read)(answer)
        fields = {f.name: f for f in (*self.fields, *self.derived)}
        return _speak(self.rule_for(values), fields, values)

    def rule_for(self, values):
        """Return the first rule that matches values of the fields."""
        kinds = {f.name: f.kind for f in (*self.fields, *self.derived)}
        return next(
            rule
            for rule in self.rules
            if all(
                any(matches(kinds[n], values[n], value) for value in known)
                for n, known in rule.when.items()
            )
        )

    def _read(self, answer):
        if len(self.fields) == 1:
            return {self.fields[0].name: parse(self.fields[0], answer, self.wanted)}
        parts = of_length(answer, len(self.fields), self.wanted)
        pairs = zip(self.fields, parts, strict=True)
        return {f.name: parse(f, part, self.wanted) for f, part in pairs}


def _speak(rule, fields, values):
    words = rule.say
    for name, value in values.items():
        words = words.replace(f"{{{name}}}", format_value(fields[name].kind, value))
    if not rule.right:
        raise NotRight(words)
    return words


def parse(part, answer, wanted):
    """Return the value of a field.

    Raises:
        NotRight: it is of another kind.
    """
    if part.kind in ("number", "count"):
        return number(answer, wanted)
    if part.kind == "shape":
        return shape(answer, wanted)
    if part.kind == "numbers":
        entries = of_length(answer, part.length, wanted)
        return tuple(number(entry, wanted) for entry in entries)
    letters = "".join(answer) if _is_letters(answer) else answer
    if isinstance(letters, str):
        letters = letters.strip().lower().replace(" ", "").replace(",", "")
        known = [value for value, _ in part.options]
        if part.kind == "choice" and letters in known:
            return letters
        if part.kind == "order" and sorted(letters) == sorted(known):
            return letters
    raise NotRight(f"Expected {wanted}, but got {describe(answer)}.")


def _is_letters(answer):
    return isinstance(answer, tuple | list) and all(
        isinstance(part, str) for part in answer
    )


def matches(kind, value, known):
    """Whether a value is one that a rule names."""
    if kind == "number":
        return close(value, known)
    if kind == "numbers":
        return all(close(a, b) for a, b in zip(value, known, strict=True))
    return value == known


def format_value(kind, value):
    """Return a value as the words of a rule show it."""
    if kind == "count":
        return f"{value:,.0f}"
    if kind == "number":
        return f"{value:.6g}"
    if kind == "numbers":
        return ", ".join(f"{x:.3f}" for x in value)
    if kind == "shape":
        return str(tuple(value))
    return str(value)
