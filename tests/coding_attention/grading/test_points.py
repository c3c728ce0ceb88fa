"""Points a teacher would defend: remarks cost nothing, a gap costs itself alone."""

import pytest

from coding_attention.exercises import EXERCISES, check_exercise
from coding_attention.exercises.build import cell, solution
from tests.coding_attention.grading.the_class import SETUP, report_of, row_of


@pytest.mark.parametrize("name", ["repair", "causal-class"])
def test_minus_a_billion_for_minus_infinity_is_a_remark_and_costs_nothing(name):
    answer = solution(EXERCISES[name], [("-torch.inf", "-1e9")])[0]
    verdict = check_exercise(name, answer)
    assert verdict.right
    assert "A remark that costs no points: " in verdict.text
    assert "A remark" not in check_exercise(name, solution(EXERCISES[name])[0]).text


def test_a_fill_that_leaks_still_costs():
    answer = solution(EXERCISES["causal-class"], [("-torch.inf", "-2.0")])[0]
    assert not check_exercise("causal-class", answer).right


def test_a_submission_with_a_gap_is_graded_on_what_it_has():
    setup, gap = SETUP.format(student="it"), 'check_exercise("3.2", None)'
    split = "lambda x, h: x.unflatten(-1, (h, -1)).transpose(1, 2)"
    row = row_of("it", [setup, f'check_exercise("split-heads", {split})', gap])
    assert (row.status, row.reason) == ("graded", "")
    assert report_of([row], "heads").points_of(row) == 2
    assert (row.sign("split-heads"), row.sign("3.2")) == ("+", ".")
    assert row_of("it", [setup, gap]).status == "no answers"


def test_the_class_to_repair_has_the_three_mistakes_that_its_file_lists():
    task, names = EXERCISES["repair"], {}
    exec("import torch\nfrom torch import nn", names)
    exec(cell("broken-class", task.body), names)
    changes = [case["change"] for case in task.cases["wrong"]]
    planted = solution(task, [changes[0], changes[1], changes[-1]])[0]
    broken = check_exercise("repair", names["Broken"])
    assert not broken.right
    assert broken.text == check_exercise("repair", planted).text
