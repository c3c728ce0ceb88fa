"""Sizes that differ by student: the rules of the book, with other numbers in them."""

import pytest
import torch

from coding_attention.exercises import EXERCISES, check_exercise, notebook
from coding_attention.exercises.build import cell
from coding_attention.grading import VARIED, check_exercise_of
from coding_attention.grading.variants import sizes_of
from tests.coding_attention.exercises.answers import with_sizes

STUDENTS = [f"autumn/{name}" for name in ("anna", "ben", "chi", "dora", "emil", "fay")]


def right(exercise, student):
    """A right answer for a student's sizes."""
    tried = with_sizes(exercise, sizes_of(exercise, student))
    return next(one.answer for one in tried if one.right)


@pytest.mark.parametrize("student", STUDENTS)
@pytest.mark.parametrize("exercise", VARIED)
def test_each_answer_gets_its_words_with_other_sizes(exercise, student):
    check = check_exercise_of(student)
    words = set()
    for one in with_sizes(exercise, sizes_of(exercise, student)):
        verdict = check(exercise, one.answer)
        assert verdict.outcome == ("right" if one.right else "not right"), one.how
        assert one.words in verdict.text, f"{one.how}: {verdict.text}"
        words.add(verdict.text)
    assert len(words) >= 3
    assert check(exercise, None).outcome == "nothing yet"


@pytest.mark.parametrize("student", STUDENTS)
@pytest.mark.parametrize("exercise", VARIED)
def test_the_cell_has_the_sizes_and_the_placeholder(exercise, student):
    task, sizes = EXERCISES[exercise], sizes_of(exercise, student)
    code = cell(f"write-{task.slug}", task.given(task.body, sizes))
    assert code != cell(f"write-{task.slug}", task.given(task.body))
    names = {"torch": torch, "MultiHeadAttentionWrapper": lambda **sizes: sizes}
    exec(code, names)
    assert names[task.answer] is None
    assert sizes == sizes_of(exercise, student)


@pytest.mark.parametrize("exercise", VARIED)
def test_a_copied_answer_is_wrong(exercise):
    anna = right(exercise, STUDENTS[0])
    many = [f"autumn/{number}" for number in range(100)]
    same = sum(check_exercise_of(name)(exercise, anna).right for name in many)
    # Few enough that one who copies is found: a width of one head is one of 23.
    assert same <= 10


@pytest.mark.parametrize("exercise", VARIED)
def test_rubbish_gets_words(exercise):
    class Spiteful:
        def __repr__(self):
            raise RuntimeError("no repr")

    for rubbish in ("", (), {}, object(), lambda: 1, torch.zeros(7), Spiteful()):
        verdict = check_exercise_of("a/b")(exercise, rubbish)
        assert verdict.outcome in ("not right", "unusable")
        assert verdict.text.startswith(f"Exercise {exercise}: ")


@pytest.mark.parametrize("exercise", VARIED)
def test_a_student_gets_no_words_or_figures_about_the_sizes_of_the_book(exercise):
    task = EXERCISES[exercise]
    book = notebook.cells_of(task)
    own = notebook.cells_of(task, sizes_of(exercise, STUDENTS[0]))
    assert [kind for kind, _ in own] == ["markdown", "code", "code"]
    assert len(book) > len(own)


def test_an_exercise_without_sizes_is_that_of_the_book():
    assert check_exercise_of("autumn/anna")("which-dim", -1).right
    assert check_exercise_of("") is check_exercise
    assert "There is no exercise" in check_exercise_of("autumn/anna")("zzz", 1).text
