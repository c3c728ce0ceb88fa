"""Makes what checks an answer from the file of an exercise."""

import ast
import functools
import itertools
import math
import re
from dataclasses import dataclass

import torch
from torch import nn

import attention
from coding_attention.exercises import core, functions
from coding_attention.exercises.classes import (
    check_class,
    check_repair,
    class_of,
)
from coding_attention.exercises.files import TaskError, exercises, word
from coding_attention.exercises.functions import FunctionCheck
from coding_attention.exercises.table import Field, Rule, Table

_FIELD = re.compile(r"^- `(\w+)`, (derived )?(?:(\d+) )?(\w+)(?:: (.+))?$", re.M)
_SHOWN = re.compile(r"\{([^{}]+)\}")


class AnyOf(tuple):
    """Several values of a field that a rule takes alike."""


def any_of(*values):
    """Return values that a rule takes alike."""
    return AnyOf(values)


@dataclass(frozen=True)
class Grid:
    """A function's result for one argument, to be filled in by hand on the site.

    Attributes:
        case: the arguments.
        kind: "mask" (true and false) or "matrix" (numbers).
        label: what to fill in.
        rows, columns: their names.
        batched: whether the result has an axis for the one sequence.
        free: rows of a mask that may hold anything but a row that hides everything.
    """

    case: tuple
    kind: str
    label: str
    rows: tuple
    columns: tuple
    batched: bool = False
    free: tuple = ()


# What the code of a file may use without importing it.
KIT = {
    "torch": torch, "nn": nn, "math": math, "re": re, "itertools": itertools,
    "word": word, "any_of": any_of, "Grid": Grid, "check_class": check_class,
    "check_repair": check_repair, "class_of": class_of,
    **{name: getattr(core, name) for name in (
        "Failed", "NothingYet", "NotRight", "attempt", "described", "has_hooks",
        "number", "of_length", "require_function", "require_one_hooked_run", "seeded",
        "shape", "watch_runs",
    )},
}  # fmt: skip


@functools.cache
def check_of(name):
    """Return the check of an exercise, with the sizes of the book."""
    return build(exercises()[name])


def build(exercise, sizes=None):
    """Return the check of an exercise: a function of the answer.

    Args:
        exercise: an :class:`~coding_attention.exercises.files.Exercise`.
        sizes: those of a student; without them, those of the book.
    """
    space = namespace(exercise, sizes)
    if "check" in space:
        return space["check"]
    return _function(exercise, space) if exercise.signature else _table(exercise, space)


def namespace(exercise, sizes=None):
    """Return what the code of a file defines, and what it may use."""
    space = KIT | (exercise.sizes() if sizes is None else sizes)
    space |= {
        "__name__": "coding_attention.exercises.tasks",
        "wanted": exercise.wanted,
        "praise": exercise.items("Right")[0].say,
        "versions": functools.partial(versions, exercise),
    }
    for block in exercise.blocks("Check"):
        _run(exercise, block.text, block.line, space)
    return space


def _run(exercise, text, line, space, mode="exec"):
    # As if the file were the module, so that a traceback shows its lines.
    try:
        code = compile("\n" * line + text, str(exercise.file), mode)
        return (exec if mode == "exec" else eval)(code, space)
    except Exception as error:
        raise TaskError(
            f"{exercise.file.name}, line {line + 1}: {text[:60].strip()!r} raised "
            f"{type(error).__name__}: {error}. This code may use the names "
            f"{', '.join(sorted(name for name in space if name[0] != '_'))}."
        ) from error


def value(exercise, item, span, space):
    """Return what the code of an item is."""
    return _run(exercise, f"({span})", item.line, space, "eval")


def _said(exercise, item, space, fields=()):
    def one(match):
        name = match[1]
        return (
            match[0]
            if name in fields
            else str(_run(exercise, f"({name})", item.line, space, "eval"))
        )

    return _SHOWN.sub(one, item.say)


# ---- functions ----


def function_of(exercise, item, span, space):
    """Return the function whose result the code of an item is."""
    if item.whole:
        return value(exercise, item, span, space)
    names = exercise.signature.partition("(")[2]
    return _run(exercise, f"lambda {names[:-1]}: ({span})", item.line, space, "eval")


def _function(exercise, space):
    first = exercise.items("Right")[0]
    return FunctionCheck(
        exercise.signature,
        function_of(exercise, first, first.spans[0], space),
        space["cases"],
        tuple(
            (function_of(exercise, item, span, space), _said(exercise, item, space))
            for item in exercise.items("Wrong")
            for span in item.spans
        ),
        _said(exercise, first, space),
        space.get("without", ()),
        space.get("uses", ""),
        space.get("look_at_sources"),
        space.get("read_result", functions.read_result),
    )


# ---- numbers, shapes, choices ----


def _table(exercise, space):
    found = [match.groups() for match in _FIELD.finditer(exercise.section("Fields"))]
    options = space.get("options", {})
    fields, derived = [], []
    for name, is_derived, length, kind, label in found:
        field = Field(name, kind, label or "", options.get(name, ()), int(length or 0))
        (derived if is_derived else fields).append(field)
    if not fields:
        raise TaskError(
            f"{exercise.file.name}: it asks for no function, so it needs '## Fields', "
            f"the parts of an answer, or in '## Check' a function check(answer)."
        )
    names = {field.name for field in (*fields, *derived)}
    rules = []
    for heading in ("Right", "Wrong"):
        for item in exercise.items(heading):
            for when, say in _whens(exercise, item, space):
                words = say or _said(exercise, item, space, names)
                # Sizes can make two mistakes one: the first words count.
                if when not in [rule.when for rule in rules]:
                    rules.append(Rule(words, when, heading == "Right"))
    if rules[-1].when:
        raise TaskError(
            f"{exercise.file.name}: the list under '## Wrong' ends with '- otherwise: "
            f"words', which are said of any other answer."
        )
    read = space.get("read")
    return Table(exercise.wanted, tuple(fields), tuple(rules), read, tuple(derived))


def _whens(exercise, item, space):
    """Give pairs of what must hold, and the words where they are not the item's."""
    if item.head == "otherwise":
        return [({}, None)]
    if item.spans[0].startswith("*"):
        found = value(exercise, item, item.spans[0][1:], space)
        return [(_values(when), say) for when, say in found]
    whens = [
        _values(_run(exercise, f"dict({span})", item.line, space, "eval"))
        for span in item.spans
    ]
    if len({tuple(when) for when in whens}) == 1 == len(whens[0]):
        (name,) = whens[0]
        return [({name: tuple(v for when in whens for v in when[name])}, None)]
    return [(when, None) for when in whens]


def _values(when):
    return {n: tuple(v) if isinstance(v, AnyOf) else (v,) for n, v in when.items()}


# ---- solutions ----


def cell(name, text):
    """Return the code of a cell, without its options."""
    found = re.search(rf":name: {name}\n(?::[^\n]*\n)*\n(.*?)^```", text, re.M | re.S)
    return found[1]


def solution(exercise, changes=(), more=""):
    """Run the solution of an exercise.

    Args:
        exercise: which.
        changes: pairs (text, other text) to be exchanged in it first.
        more: code to run behind it.

    Returns:
        (the answer, all names that it defines).

    Raises:
        TaskError: the solution does not have a text that is to be exchanged.
    """
    space = {"__name__": "solution", "math": math, "torch": torch, "nn": nn}
    space |= {name: getattr(attention, name) for name in attention.__all__}
    space["print"] = lambda *words: None
    for name in exercise.needs:
        space |= solution(exercises()[name])[1]
    code = cell(f"solution-{exercise.slug}", exercise.section("Solution"))
    for old, new in changes:
        if old not in code:
            raise TaskError(
                f"{exercise.file.name}: the solution has no {old!r} to change into "
                f"{new!r}."
            )
        code = code.replace(old, new)
    tree = ast.parse(code)
    checked = tree.body.pop().value  # check_exercise(name, answer)
    exec(compile(tree, f"solution of {exercise.name}", "exec"), space)
    exec(more, space)
    return eval(
        compile(ast.Expression(checked.args[1]), "answer", "eval"), space
    ), space


@functools.cache
def versions(exercise):
    """Return [(share of what is repaired, class)]: the solution, and it with mistakes.

    The changes under "Wrong" that begin at the same text exclude each other.
    """
    slots = {}
    for item in exercise.items("Wrong"):
        slots.setdefault(item.spans[0], [()]).append((item.spans,))
    made = []
    for ways in itertools.product(*slots.values()):
        changes = [change for way in ways for change in way]
        share = 1 - len(changes) / len(slots)
        made.append((share, solution(exercise, changes)[0]))
    return made
