"""The answers that the tests try: all that the files of the exercises tell of.

What is right, each rule and each known mistake, each change of the solution, and what
else stands under "Also tried". Every one names the words that it has to get.
"""

import functools
import inspect
import itertools
from typing import NamedTuple

import attention
from coding_attention.exercises import EXERCISES
from coding_attention.exercises.build import build, function_of, namespace, solution
from coding_attention.exercises.build import value as value_of
from coding_attention.exercises.functions import FunctionCheck
from coding_attention.exercises.table import Table

# Values that no rule names, so that a rule is reached by what it names alone.
ELSE = {"number": 987.25, "count": 987_654, "shape": (9, 8, 7)}


class Tried(NamedTuple):
    """An answer, whether it is right, and words that the verdict must hold."""

    how: str
    answer: object
    right: bool
    words: str


@functools.cache
def tried(name):
    """Return every :class:`Tried` of an exercise, with the sizes of the book."""
    return tuple(_all(EXERCISES[name], None))


def with_sizes(name, sizes):
    """Return what is tried of an exercise with other sizes."""
    return tuple(_all(EXERCISES[name], sizes))


def rights(name):
    return [one.answer for one in tried(name) if one.right]


def wrongs(name):
    return [one.answer for one in tried(name) if not one.right]


def _all(exercise, sizes):
    check = build(exercise, sizes)
    if sizes is None:  # a solution is that of the book's sizes
        yield Tried("the solution", solution(exercise)[0], True, "")
    if isinstance(check, Table):
        yield from _of_rules(check)
    elif isinstance(check, FunctionCheck):
        yield from _of_functions(exercise, check)
    else:
        yield from _of_changes(exercise, "Wrong")
    space = _with_solution(exercise, sizes)
    yield from _of_changes(exercise, "Also tried")
    for item in exercise.items("Also tried"):
        if not item.changes:
            answer = (
                function_of(exercise, item, item.spans[0], space)
                if exercise.signature
                else value_of(exercise, item, item.spans[0], space)
            )
            yield _written_anew(Tried(item.spans[0], answer, *_outcome(item.say)))
    for block in exercise.blocks("Also tried"):
        words = block.info.removeprefix("python ")
        answer = solution(exercise, more=block.text)[0]
        yield Tried(f"line {block.line}", answer, *_outcome(words))


def _outcome(words):
    right = words == "right" or words.startswith("right: ")
    return right, words.removeprefix("right").removeprefix(": ") if right else words


def _with_solution(exercise, sizes):
    space = namespace(exercise, sizes)
    space |= {name: getattr(attention, name) for name in attention.__all__}
    return solution(exercise)[1] | space if sizes is None else space


def _of_changes(exercise, heading):
    for item in exercise.items(heading):
        if item.changes:
            answer = solution(exercise, [item.spans])[0]
            yield Tried(" → ".join(item.spans), answer, *_outcome(item.say))


def _of_functions(exercise, check):
    space = namespace(exercise)
    first, *_ = exercise.items("Right")
    for span in first.spans[bool(check.without or check.uses) :]:
        right = function_of(exercise, first, span, space)
        yield _written_anew(Tried(span, right, True, ""))
    for number, (mistake, say) in enumerate(check.mistakes):
        yield Tried(f"mistake {number}", mistake, False, say)


def _written_anew(one):
    # The book's own functions are no answer, even where they are right.
    if one.right and inspect.isfunction(one.answer):
        return one._replace(answer=lambda *arguments: one.answer(*arguments))
    return one


def _of_rules(table):
    """Answers that the rules name. What is derived stands under "Also tried"."""
    if table.derived:
        return
    entered = {field.name: field for field in table.fields}
    for rule in table.rules:
        for values in itertools.islice(_values(table, rule), 12):
            answer = [values[name] for name in entered]
            yield Tried(
                f"{values}", answer[0] if len(answer) == 1 else tuple(answer),
                rule.right, rule.say.partition("{")[0],
            )  # fmt: skip


def _values(table, rule):
    """Give values that this rule is the first to match."""
    pools = {}
    for field in table.fields:
        if field.kind in ("choice", "order"):
            rest = map("".join, itertools.permutations(v for v, _ in field.options))
            rest = rest if field.kind == "order" else (v for v, _ in field.options)
        else:
            rest = [ELSE.get(field.kind, (987.25,) * field.length)]
        pools[field.name] = rule.when.get(field.name) or tuple(rest)
    for combination in itertools.product(*pools.values()):
        values = dict(zip(pools, combination, strict=True))
        if table.rule_for(values) is rule:
            yield values
