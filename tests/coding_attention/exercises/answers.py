"""The answers that the tests try: all cases in the files of the exercises.

What is right, each rule and each known mistake, each change of the solution, and what
else stands under "tried". Every one names the words that it has to get.
"""

import functools
import inspect
import itertools
from typing import NamedTuple

import attention
from coding_attention.exercises import EXERCISES
from coding_attention.exercises.build import build, functions_of, namespace, solution
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
def list_answers(name):
    """Return every :class:`Tried` of an exercise, with the sizes of the book."""
    return tuple(_all(EXERCISES[name], None))


def with_sizes(name, sizes):
    """Return what is tried of an exercise with other sizes."""
    return tuple(_all(EXERCISES[name], sizes))


def _all(exercise, sizes):
    check = build(exercise, sizes)
    if sizes is None:  # a solution is that of the book's sizes
        yield Tried("the solution", solution(exercise)[0], True, "")
    if isinstance(check, Table):
        yield from _of_rules(check)
    elif isinstance(check, FunctionCheck):
        yield from _of_functions(exercise, check)
    else:
        for case in exercise.cases["wrong"]:
            yield from _of_case(exercise, case, {})
    space = namespace(exercise, sizes)
    space |= {name: getattr(attention, name) for name in attention.__all__}
    if sizes is None:
        space = solution(exercise)[1] | space
    for case in exercise.cases.get("tried", ()):
        yield from _of_case(exercise, case, space)


def _of_case(exercise, case, space):
    right, words = case.get("right", False), case.get("say", "")
    if "change" in case:
        answers = [solution(exercise, [case["change"]])[0]]
    elif "program" in case:
        answers = [solution(exercise, more=case["program"])[0]]
    else:
        answers = functions_of(exercise, case, space)
    for answer in answers:
        yield _renew(Tried(f"{case}", answer, right, words))


def _of_functions(exercise, check):
    """The right function, unless its way is refused, and the known mistakes."""
    first, *_ = exercise.cases["right"]
    rights = functions_of(exercise, first, namespace(exercise))
    for number, right in enumerate(rights):
        if number or not (check.without or check.uses):
            yield _renew(Tried(f"right {number}", right, True, ""))
    for number, (mistake, say) in enumerate(check.mistakes):
        yield Tried(f"mistake {number}", mistake, False, say)


def _renew(one):
    # The book's own functions are no answer, even where they are right.
    if one.right and inspect.isfunction(one.answer):
        return one._replace(answer=lambda *arguments: one.answer(*arguments))
    return one


def _of_rules(table):
    """Answers that the rules name. What is derived stands under "tried"."""
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
