"""Points that a teacher would defend: each repair counts, a gap costs itself alone."""

import itertools
import json

import pytest
import torch

from coding_attention.exercises import EXERCISES, check_exercise
from coding_attention.exercises.build import solution
from tests.coding_attention.grading.the_class import SETUP, report_of, row_of

REPAIR = EXERCISES["repair"]
PLANTED = [case["change"] for case in REPAIR.cases["wrong"]]
FILL, SCALE, JOIN = PLANTED[0], PLANTED[1], PLANTED[-1]


def with_mistakes(*changes):
    return solution(REPAIR, changes)[0]


@pytest.mark.parametrize("left", itertools.product([0, 1], repeat=3), ids=str)
def test_each_of_three_repairs_counts(left):
    changes = [c for c, on in zip((FILL, SCALE, JOIN), left, strict=True) if on]
    verdict = check_exercise("repair", with_mistakes(*changes))
    assert verdict.credit == pytest.approx(1 - sum(left) / 3)
    assert verdict.right == (not changes)


def test_the_class_of_the_page_is_the_one_with_all_three_mistakes():
    from coding_attention.exercises.build import cell

    names = {}
    exec("import torch\nfrom torch import nn", names)
    exec(cell("broken-class", REPAIR.body), names)
    verdict = check_exercise("repair", names["Broken"])
    assert verdict.credit == 0
    assert (
        verdict.text == check_exercise("repair", with_mistakes(FILL, SCALE, JOIN)).text
    )


def test_another_wrong_repair_costs_that_mistake_only():
    no_root = next(p for p in PLANTED if p[0] == SCALE[0] and p != SCALE)
    verdict = check_exercise("repair", with_mistakes(no_root))
    assert verdict.credit == pytest.approx(2 / 3)


def test_a_class_that_computes_something_else_has_repaired_nothing():
    assert check_exercise("repair", with_mistakes(("dim=-1", "dim=-2"))).credit == 0


def test_a_class_that_cannot_be_built_has_repaired_nothing():
    class Unfinished(torch.nn.Module):
        def __init__(self, *sizes, **named_sizes):
            raise NotImplementedError

    verdict = check_exercise("repair", Unfinished)
    assert not verdict.right
    assert verdict.credit == 0


@pytest.mark.parametrize("name", ["repair", "causal-class"])
def test_minus_a_billion_for_minus_infinity_is_a_remark_and_costs_nothing(name):
    answer = solution(EXERCISES[name], [("-torch.inf", "-1e9")])[0]
    verdict = check_exercise(name, answer)
    assert verdict.right
    assert verdict.credit == 1
    assert "A remark that costs no points: " in verdict.text
    assert "A remark" not in check_exercise(name, solution(EXERCISES[name])[0]).text


def test_a_fill_that_leaks_still_costs():
    answer = solution(EXERCISES["causal-class"], [("-torch.inf", "-2.0")])[0]
    assert check_exercise("causal-class", answer).credit == 0


def test_two_of_three_repairs_give_two_of_three_points():
    code = f"""from coding_attention.exercises import EXERCISES
from coding_attention.exercises.build import solution
mine = solution(EXERCISES["repair"], [{SCALE!r}])[0]
check_exercise("repair", mine)"""
    row = row_of("it", [SETUP.format(student="it"), code])
    report = report_of([row], "heads")
    assert report.points_of(row) == 2
    assert row.sign("repair") == "~"
    assert json.loads(report.json())["students"][0]["points"] == 2
    assert ",2,10," in report.csv().splitlines()[1]
    assert "~ in part" in report.text()
    assert report.mistakes[0]["exercise"] == "repair"


def test_a_submission_with_a_gap_is_graded_on_what_it_has():
    setup, gap = SETUP.format(student="it"), 'check_exercise("3.2", None)'
    split = "lambda x, h: x.unflatten(-1, (h, -1)).transpose(1, 2)"
    row = row_of("it", [setup, f'check_exercise("split-heads", {split})', gap])
    assert (row.status, row.reason) == ("graded", "")
    assert report_of([row], "heads").points_of(row) == 2
    assert (row.sign("split-heads"), row.sign("3.2")) == ("+", ".")
    assert row_of("it", [setup, gap]).status == "no answers"
