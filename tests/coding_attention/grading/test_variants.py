"""Sizes that differ by student: the right answer is right, the mistakes are named."""

import pytest
import torch

from attention import MultiHeadAttention, MultiHeadAttentionWrapper, SelfAttention_v2
from coding_attention.grading import VARIED, check_exercise_of
from coding_attention.grading.variants import task

STUDENTS = [f"autumn/{name}" for name in ("anna", "ben", "chi", "dora", "emil", "fay")]


def names_of(student, exercise):
    """What the cell of the task defines."""
    names = {"torch": torch}
    exec(task(exercise, student).code, names)
    return names


@pytest.mark.parametrize("student", STUDENTS)
@pytest.mark.parametrize("exercise", VARIED)
def test_the_right_answer_is_right_and_the_placeholder_is_nothing(student, exercise):
    mine = task(exercise, student)
    check = check_exercise_of(student)
    assert check(exercise, mine.right).right
    assert names_of(student, exercise)[mine.answer] is None
    assert check(exercise, None).outcome == "nothing yet"
    assert task(exercise, student).text == mine.text


@pytest.mark.parametrize("exercise", VARIED)
def test_a_copied_answer_is_wrong(exercise):
    many = [f"autumn/{number}" for number in range(200)]
    anna = task(exercise, STUDENTS[0]).right
    same = sum(check_exercise_of(name)(exercise, anna).right for name in many)
    # Few enough that one who copies is found; scale has the fewest sizes.
    assert same <= 8


# {exercise: [(function of the cell's names and of the right answer, hint)]}
MISTAKES = {
    "shapes": [
        (lambda n, r: r[::-1], "the other way round"),
        (lambda n, r: (r[0], r[0]), "still multiplied with x"),
        (lambda n, r: ((r[1][2],) * 2, r[1]), "Scores have one row for each query"),
        (lambda n, r: (r[0][1:], r[1]), "the batch axis is missing"),
        (lambda n, r: ((r[0][0], r[1][2], r[1][2]), r[1]), "This compares features"),
    ],
    "scale": [
        (lambda n, r: n["sizes"]["d_out"], "Divide by its root"),
        (lambda n, r: n["sizes"]["d_in"] ** 0.5, "the root of d_in"),
        (lambda n, r: n["sizes"]["t"] ** 0.5, "the root of the number of tokens"),
        (lambda n, r: 1 / r, "Asked for is the divisor"),
    ],
    "count-weights": [
        (lambda n, r: r / 3, "one of the three layers"),
        (lambda n, r: r + 1, "Count one nn.Linear first"),
        (lambda n, r: "many", "One whole number"),
    ],
    "dropout": [
        (lambda n, r: (r[1], r[1]), "PyTorch rescales what it keeps"),
        (lambda n, r: r[::-1], "The other way round"),
        (lambda n, r: (n["weight"] / n["dropout_rate"], r[1]), "that is dropped"),
        (lambda n, r: (r[0], r[0]), "the value when kept"),
    ],
    "scores-for-weights": [
        (lambda n, r: n["wanted"], "These are the weights"),
        (lambda n, r: -n["wanted"].log(), "The sign is wrong"),
        (lambda n, r: n["wanted"].log2(), "torch.log"),
        (lambda n, r: [0.0] * 4, "gives other weights") ,
        (lambda n, r: "log", "Four scores are asked for"),
    ],
    "3.2": [
        (lambda n, r: {"num_heads": 1}, "The number of heads is to stay"),
        (lambda n, r: {"width": 3}, "One argument decides"),
        (lambda n, r: {"d_out": 1000}, "has another width"),
        (lambda n, r: object(), "The argument and its value"),
    ],
    "3.3": [
        (lambda n, r: n["sizes"]["width"] ** 2, "one of the four matrices"),
        (lambda n, r: 4 * n["sizes"]["width"] ** 2, "The bias of out_proj is missing"),
        (lambda n, r: r + 1024**2, "The mask is counted"),
        (lambda n, r: r * n["sizes"]["num_heads"], "does not enter"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("student", STUDENTS)
@pytest.mark.parametrize("exercise", VARIED)
def test_mistakes_are_named(student, exercise):
    check, right = check_exercise_of(student), task(exercise, student).right
    for wrong, hint in MISTAKES[exercise]:
        verdict = check(exercise, wrong(names_of(student, exercise), right))
        assert verdict.outcome == "not right"
        assert hint in verdict.text, verdict.text


@pytest.mark.parametrize("exercise", VARIED)
def test_rubbish_gets_words(exercise):
    class Spiteful:
        def __repr__(self):
            raise RuntimeError("no repr")

    for rubbish in ("", (), {}, object(), lambda: 1, torch.zeros(7), Spiteful()):
        verdict = check_exercise_of("a/b")(exercise, rubbish)
        assert verdict.outcome in ("not right", "unusable")
        assert verdict.text.startswith(f"Exercise {exercise}: ")


def test_a_layer_may_be_handed_in_for_its_count():
    check = check_exercise_of("autumn/anna")
    sizes = names_of("autumn/anna", "3.3")["sizes"]
    with torch.device("meta"):
        heads, width = sizes["num_heads"], sizes["width"]
        assert check("3.3", MultiHeadAttention(width, width, 1024, 0.0, heads)).right
        other = MultiHeadAttention(width, width, 1024, 0.0, 1)
        assert "another number of heads" in check("3.3", other).text
        right = task("3.2", "autumn/anna").right["d_out"]
        heads = int(
            task("3.2", "autumn/anna").code.partition("heads=")[2].split(")")[0]
        )
        assert check("3.2", f"d_out = {right}").right
        wrapper = MultiHeadAttentionWrapper(3, right, 6, 0.0, heads)
        assert check("3.2", wrapper).right
        call = task("count-weights", "autumn/anna").code.partition("\n")[0][2:]
        layer = eval(call, {"SelfAttention_v2": SelfAttention_v2})
        assert check("count-weights", layer).right


def test_an_exercise_without_sizes_is_that_of_the_book():
    assert check_exercise_of("autumn/anna")("which-dim", -1).right
    assert check_exercise_of("")("scale", 4.0).right
    assert "There is no exercise" in check_exercise_of("autumn/anna")("zzz", 1).text
