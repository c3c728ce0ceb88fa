"""What hints and messages say of places and code is computed from the solution.

An index word ("the last state of each sentence") stands for an index, and a number word
for a number. Under "Facts", the file of the exercise says what must hold of it:
``last[0].equal(states[:, at])``, or ``n == len(states)``, and of no other; of a word
such as "lower", it says which ``word`` is right. So a hint that says "first" where it
means "last" is false, whoever wrote it.
"""

import ast
import contextlib
import re

import pytest

import attention
from coding_attention.exercises import EXERCISES
from coding_attention.exercises.build import cell, check_of, namespace, solution
from coding_attention.exercises.files import NUMBERS
from coding_attention.exercises.functions import FunctionCheck
from coding_attention.exercises.table import Table
from tools.mutants.places import WORDS

AT = {"first": 0, "second": 1, "third": 2, "last": -1}
WORD = "|".join({*AT, *NUMBERS, *WORDS})
# A place, and not the adverb in "count this first".
PLACE = re.compile(rf"\b(?:the|its) (?:{'|'.join(AT)})\b", re.IGNORECASE)
HINTS = "First hint", "Second hint"
FACTS = re.compile(r"^- (.+?): `(.+)`$", re.MULTILINE)


def texts(exercise):
    """What a reader is told: the task, the hints, the messages."""
    check = check_of(exercise.name)
    if isinstance(check, FunctionCheck):
        said = [check.praise, *(hint for _, hint in check.mistakes)]
    elif isinstance(check, Table):
        said = [rule.say for rule in check.rules]
    else:
        said = [item.say for item in exercise.items("Right")]
    return [exercise.body, *(exercise.section(h) for h in HINTS), *said]


def names(exercise):
    """What a hint may speak of: the cell, the solution, the first case of the check."""
    space = {name: getattr(attention, name) for name in attention.__all__}
    space |= namespace(exercise)
    written = exercise.given(cell(f"write-{exercise.slug}", exercise.body))
    exec(written, space)
    space |= {n: v for n, v in solution(exercise)[1].items() if n != "__name__"}
    if exercise.signature and "cases" in space:
        arguments = exercise.signature.partition("(")[2][:-1].split(", ")
        space |= zip(arguments, space["cases"]()[0], strict=True)
    for block in exercise.blocks("Facts"):
        exec(block.text, space)
    return space


def facts(exercise):
    """Triples (where in the texts, the index word or "", the expression)."""
    for phrase, expression in FACTS.findall(exercise.section("Facts")):
        before, _, after = phrase.partition("…")
        pattern = re.compile(
            rf"{re.escape(before)}\b({WORD})\b{re.escape(after)}", re.IGNORECASE
        )
        found = [(i, m) for i, t in enumerate(texts(exercise))
                 for m in pattern.finditer(t)]  # fmt: skip
        assert found, f"{exercise.file.name}: no text says {phrase!r}"
        for number, match in found:
            yield number, match, expression


def meaning(word):
    """What stands for a word in an expression, with its value and a wrong one."""
    if word in AT:
        return "at", AT[word], 0 if AT[word] else -1
    if word in NUMBERS:
        return "n", NUMBERS.index(word), NUMBERS.index(word) + 1
    return "word", word, WORDS[word]


STATED = [name for name, exercise in EXERCISES.items() if exercise.section("Facts")]


@pytest.mark.parametrize("name", STATED)
def test_first_and_last_are_what_the_solution_makes_them(name):
    exercise = EXERCISES[name]
    space = names(exercise)
    for _, match, expression in facts(exercise):
        word = match[1].lower()
        kind, value, other = meaning(word)
        assert eval(expression, space | {kind: value}), f"{name} says {match[0]!r}"
        with contextlib.suppress(IndexError):  # nor is there another one
            also = eval(expression, space | {kind: other})
            assert not also, f"{name}: {expression} holds whatever {match[0]!r} says"


@pytest.mark.parametrize("name", EXERCISES)
def test_each_place_in_a_hint_or_a_message_has_its_fact(name):
    exercise = EXERCISES[name]
    held = {(n, match.start(1)) for n, match, _ in facts(exercise)}
    for number, text in enumerate(texts(exercise)[1:], 1):
        for match in PLACE.finditer(text):
            word = match.end() - len(match[0].split()[-1])
            assert (number, word) in held, (
                f"{exercise.file.name} says {text[match.start() :][:60]!r}: write "
                f"under '## Facts' what must hold of it, with … for the index word, "
                f"and `at` for the index"
            )


def test_a_hint_that_says_first_state_for_last_state_is_false():
    exercise = EXERCISES["bottleneck"]
    space = names(exercise)
    (hint,) = [f for f in facts(exercise) if f[0] == 2]
    assert "last state" in hint[1][0]
    assert eval(hint[2], space | {"at": AT["last"]})
    assert not eval(hint[2], space | {"at": AT["first"]})


def test_a_message_that_says_upper_for_lower_is_false():
    exercise = EXERCISES["ring"]
    (stated,) = [e for _, m, e in facts(exercise) if m[1] == "lower"]
    assert eval(stated, names(exercise) | {"word": "lower"})
    assert not eval(stated, names(exercise) | {"word": WORDS["lower"]})


def code(exercise):
    """The expressions in hints that name or compute something."""
    for hint in HINTS:
        for span in re.findall("`([^`]+)`", exercise.section(hint)):
            try:
                tree = ast.parse(span.rpartition(" = ")[2], mode="eval")
            except SyntaxError:
                continue
            if any(isinstance(n, ast.Attribute | ast.Call | ast.BinOp | ast.Subscript)
                   for n in ast.walk(tree)):  # fmt: skip
                yield span.rpartition(" = ")[2]


CODE = [(name, span) for name, e in EXERCISES.items() for span in code(e)]


@pytest.mark.parametrize(("name", "span"), CODE)
def test_the_code_in_a_hint_runs(name, span):
    eval(span, names(EXERCISES[name]))


def test_there_are_facts_and_code_to_hold():
    assert len(STATED) >= 12
    assert len(CODE) >= 20
