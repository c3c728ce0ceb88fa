"""Tables of rules: every rule can be reached, and the last one takes what is left."""

import contextlib

import numpy as np
import pytest
import torch

from coding_attention.exercises import EXERCISES
from coding_attention.exercises.build import check_of
from coding_attention.exercises.core import NotRight
from coding_attention.exercises.table import Field, Rule, Table, format_value, parse
from tests.coding_attention.exercises.answers import list_answers

TABLES = {n: check_of(n) for n in EXERCISES if isinstance(check_of(n), Table)}


@pytest.mark.parametrize("name", TABLES)
def test_every_rule_is_the_first_for_some_answer(name):
    table = TABLES[name]
    read = table.read or table._read
    found = []
    for _, answer, *_ in list_answers(name):
        with contextlib.suppress(NotRight):
            found.append(table.rule_for(read(answer)))
    missing = [rule.say for rule in table.rules if rule not in found]
    assert not missing, "no answer gets these words: try one under 'tried:'"


@pytest.mark.parametrize("name", TABLES)
def test_some_rule_is_right_and_the_last_one_matches_always(name):
    rules = TABLES[name].rules
    assert any(rule.right for rule in rules)
    assert not rules[-1].when
    assert [rule for rule in rules if not rule.when] == [rules[-1]]


def test_words_show_the_values_of_fields():
    table = Table(
        "A pair",
        (Field("size", "shape"), Field("n", "count")),
        (Rule("fine", {"n": (3,)}, right=True), Rule("{size} and {n}, not {other}")),
    )
    with pytest.raises(NotRight, match=r"\(2, 3\) and 12,345, not \{other\}"):
        table(((2, 3), 12_345))
    assert format_value("number", 2.5) == "2.5"
    assert format_value("numbers", (0.5, 0.25)) == "0.500, 0.250"


ANSWERS = {
    "number": (2.5, [2.5, np.float64(2.5), torch.tensor(2.5), torch.tensor([2.5])]),
    "shape": ((2, 3), [(2, 3), [2, 3], torch.empty(2, 3).shape]),
    "numbers": ((1.0, 2.0), [(1, 2), [1.0, 2.0], torch.tensor([1, 2])]),
    "choice": ("a", ["a", " A ", ["a"]]),
    "order": ("ab", ["ab", "A, B", ["a", "b"], ("a", "b")]),
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_answer_may_be_written_in_many_ways(kind):
    known, ways = ANSWERS[kind]
    field = Field("x", kind, options=(("a", "A"), ("b", "B")), length=2)
    for way in ways:
        assert parse(field, way, "An answer") == known
    for rubbish in (None, True, "xyz", {}, 2j, torch.empty(2, 3), (float("nan"),) * 2):
        with pytest.raises(NotRight, match="Expected "):
            parse(field, rubbish, "An answer")
