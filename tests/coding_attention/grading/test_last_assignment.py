"""Ten wrong submissions of the assignment on the last pages get ten right messages."""

import pytest

from coding_attention.exercises import EXERCISES
from coding_attention.exercises.build import cell
from coding_attention.grading import ASSIGNMENTS
from tests.coding_attention.grading.the_class import SETUP, report_of, row_of

# (exercise, what the solution says, what the student wrote, what the report says)
SUBMISSIONS = [
    ("online-softmax", "total * shrink", "total", "the sum of exponentials isn't"),
    ("online-softmax", "largest - new", "new - largest", "The old sums grow"),
    ("cache-step", " / keys.shape[-1] ** 0.5", "", "by the root of d_head"),
    ("cache-step", "values, keys, values", "values, past_keys, past_values",
     "are the old ones"),
    ("merge-halves", "largest - largest.amax(dim=0)", "largest", "overflows for large"),
    ("merge-halves", "(scale * totals)", "totals", "in the denominator aren't"),
    ("hook-weights", "handle.remove()", "pass", "the hook is still there"),
    ("induction-score", "after = after.tril()", "after = same.tril(-1)",
     "the weight on the earlier copy itself"),
    ("induction-score", "after.any(dim=2).sum()", "after.sum()",
     "divides by the number of positions"),
    ("silence-head", "return context", "return None", "nothing is silenced"),
]  # fmt: skip


def solved(name):
    exercise = EXERCISES[name]
    return cell(f"solution-{exercise.slug}", exercise.section("Solution"))


@pytest.fixture(scope="module")
def report():
    rows = []
    for number, (name, right, wrong, _) in enumerate(SUBMISSIONS):
        code, student = solved(name), f"s{number}"
        assert right in code
        cells = [SETUP.format(student=student), code.replace(right, wrong)]
        rows.append(row_of(student, cells))
    all_right = [solved(name) for name in ASSIGNMENTS["inside"].points]
    rows.append(row_of("top", [SETUP.format(student="top"), *all_right]))
    return report_of(rows, "inside")


def test_each_names_its_own_misconception(report):
    said = {m["students"][0]: m["text"] for m in report.mistakes}
    for number, (*_, words) in enumerate(SUBMISSIONS):
        assert words in said[f"s{number}"]
    assert len(set(said.values())) == len(SUBMISSIONS) == 10


def test_the_solutions_get_all_points(report):
    (top,) = [row for row in report.rows if row.student == "top"]
    assert report.points_of(top) == 10
    assert top.notes == []
