"""Makes what checks an answer from the file of an exercise."""

import ast
import functools
import itertools
import math
import re

import torch
from torch import nn

import attention
from coding_attention.exercises import core
from coding_attention.exercises.classes import check_class, class_of
from coding_attention.exercises.files import TaskError, exercises
from coding_attention.exercises.functions import FunctionCheck
from coding_attention.exercises.table import Field, Rule, Table
from coding_attention.number_words import spell_number

_SHOWN = re.compile(r"\{([^{}]+)\}")


class AnyOf(tuple):
    """Several values of a field that a rule treats the same."""


def any_of(*values):
    """Return values that a rule treats the same."""
    return AnyOf(values)


# What the code of a file may use without importing it.
KIT = {
    "torch": torch, "nn": nn, "math": math, "re": re, "itertools": itertools,
    "word": spell_number, "any_of": any_of, "check_class": check_class,
    "class_of": class_of,
    **{name: getattr(core, name) for name in (
        "Failed", "NothingYet", "NotRight", "attempt", "describe", "has_hooks",
        "number", "of_length", "require_function", "require_one_hooked_run", "draw",
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
        "praise": exercise.cases["right"][0]["say"],
    }
    text, line = exercise.check
    run(exercise, text, space, "exec", line)
    return space


def run(exercise, text, space, mode="eval", line=0):
    """Run code of a file, or return the value of an expression in it.

    Raises:
        TaskError: it raised an error.
    """
    try:
        # A traceback shows the lines of the file.
        tree = ast.increment_lineno(ast.parse(text, mode=mode), line)
        code = compile(tree, str(exercise.file), mode)
        return exec(code, space) if mode == "exec" else eval(code, space)
    except Exception as error:
        raise TaskError(
            f"{exercise.file.name}: {text[:60].strip()!r} raised "
            f"{type(error).__name__}: {error}. This code may use the names "
            f"{', '.join(sorted(name for name in space if name[0] != '_'))}."
        ) from error


def codes_of(case, key):
    """Return the code under a key of a case, which may be one piece or a list."""
    code = case.get(key, [])
    return code if isinstance(code, list) else [str(code)]


def words_of(exercise, case, space, fields=()):
    """Return what a case says, with the value of each ``{…}`` but the fields."""

    def show(match):
        return match[0] if match[1] in fields else str(run(exercise, match[1], space))

    return _SHOWN.sub(show, case["say"])


# ---- functions ----


def functions_of(exercise, case, space):
    """Return the functions of a case: results as expressions, or whole answers."""
    names = exercise.signature.partition("(")[2].removesuffix(")")
    bodies = [f"lambda {names}: ({code})" for code in codes_of(case, "returns")]
    return [run(exercise, c, space) for c in bodies + codes_of(case, "answer")]


def _function(exercise, space):
    first, *_ = exercise.cases["right"]
    ways = {
        name: space[name]
        for name in ("without", "uses", "look_at_sources", "read_result")
        if name in space
    }
    return FunctionCheck(
        exercise.signature,
        functions_of(exercise, first, space)[0],
        space["cases"],
        tuple(
            (function, words_of(exercise, case, space))
            for case in exercise.cases["wrong"]
            for function in functions_of(exercise, case, space)
        ),
        words_of(exercise, first, space),
        **ways,
    )


# ---- numbers, shapes, choices ----


def _table(exercise, space):
    cases = exercise.cases
    if "fields" not in cases:
        raise TaskError(
            f"{exercise.file.name}: it asks for no function, so its YAML needs "
            f"'fields:', the parts of an answer, or its code a function check(answer)."
        )
    fields, derived = [], []
    for name, facts in cases["fields"].items():
        facts = dict(facts)
        group = derived if facts.pop("derived", False) else fields
        options = tuple(facts.pop("options", {}).items())
        group.append(Field(name, options=options, **facts))
    rules = []
    for case in (*cases["right"], *cases["wrong"]):
        for when, say in _whens(exercise, case, space):
            words = say or words_of(exercise, case, space, cases["fields"])
            # Sizes can make two mistakes one: the first words count.
            if when not in [rule.when for rule in rules]:
                rules.append(Rule(words, when, case in cases["right"]))
    if rules[-1].when:
        raise TaskError(
            f"{exercise.file.name}: the last case under 'wrong:' has 'when:', but what "
            f"it says is meant for any other answer. Give it 'say:' alone."
        )
    read = space.get("read")
    return Table(exercise.wanted, tuple(fields), tuple(rules), read, tuple(derived))


def _whens(exercise, case, space):
    """Give pairs of what must hold, and the words where they are not the case's."""
    if "each" in case:
        found = run(exercise, case["each"], space)
        return [(_values(when), say) for when, say in found]
    whens = [
        _values(run(exercise, f"dict({code})", space))
        for code in codes_of(case, "when")
    ] or [{}]
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
    answer = compile(ast.Expression(checked.args[1]), "answer", "eval")
    return eval(answer, space), space
