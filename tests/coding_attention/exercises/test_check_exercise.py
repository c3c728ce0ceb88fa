"""What holds for every exercise: rubbish gets clear words, and hints are distinct."""

import random
import re
import sys

import pytest
import torch

from coding_attention.exercises import (
    EXERCISES,
    check_exercise,
    classes,
    core,
    functions,
    judge,
)
from coding_attention.exercises.build import check_of
from coding_attention.exercises.files import PAGES
from coding_attention.exercises.functions import FunctionCheck
from tests.coding_attention.exercises.answers import list_answers

TRIED = [
    (name, number) for name in EXERCISES for number in range(len(list_answers(name)))
]
# A class goes through all tests of the checker: of each exercise, make test tries the
# solution and one other answer.
CLASSES = ("causal-class", "grouped-cache", "repair", "rope", "window")
COSTLY = [(name, number) for name, number in TRIED if name in CLASSES and number > 1]
QUICK = [one for one in TRIED if one not in COSTLY]


def verdict(name, answer):
    """Check an answer; the words must be fit to be read."""
    result = check_exercise(name, answer)
    text = repr(result)
    assert "Traceback" not in text
    assert " at 0x" not in text
    assert max(len(line) for line in text.splitlines()) <= 90
    return result


class Spiteful:
    """Raises whatever is done with it."""

    def __repr__(self):
        raise RuntimeError("no repr")

    def __eq__(self, other):
        raise RuntimeError("no comparing")

    __hash__ = None


RUBBISH = {
    "string": "abc",
    "empty string": "",
    "wrong shape": torch.zeros(7),
    "empty tensor": torch.zeros(0),
    "raises": lambda *arguments: [][1],
    "returns a string": lambda *arguments: "abc",
    "returns a number": lambda *arguments: 1.5,
    "returns nothing of the shape": lambda *arguments: torch.zeros(0),
    "takes nothing": lambda: 1,
    "exits": lambda *arguments: sys.exit(3),
    "object": object(),
    "empty tuple": (),
    "nested": ((), ()),
    "empty dict": {},
    "a class": int,
    "nan": float("nan"),
    "bool": False,
    "complex": 2j,
    "module": torch.nn.Flatten(),
}
FUNCTIONS = [n for n in EXERCISES if isinstance(check_of(n), FunctionCheck)]


@pytest.mark.parametrize(("name", "number"), QUICK)
def test_an_answer_gets_the_words_that_its_file_says(name, number):
    gets_its_words(name, list_answers(name)[number])


@pytest.mark.parametrize(("name", "number"), COSTLY)
def test_a_class_gets_the_words_that_its_file_says(name, number):
    gets_its_words(name, list_answers(name)[number])


def gets_its_words(name, one):
    result = verdict(name, one.answer)
    assert result.outcome == ("right" if one.right else "not right"), one.how
    assert one.words in result.text, f"{one.how}: {result.text}"
    if one.right:
        assert len(result.text) > len(f"Exercise {name}: right. ") + 20
    else:
        assert "To read: " in result.text


ONE = torch.ones(2)


@pytest.mark.parametrize(
    ("given", "right", "said"),
    [
        (ONE.bool(), ONE, "dtype torch.bool, but should have torch.float32"),
        (ONE, ONE.bool(), "dtype torch.float32, but should have torch.bool"),
        # Another precision is no mistake, the numbers are.
        (ONE.double(), 2 * ONE, r"At index \(0,\), 1\S* should be 2"),
        (ONE.bool(), ONE < ONE, r"At index \(0,\), \S+ should be"),
        ((ONE, ONE), (ONE, 2 * ONE), "In result 2 of 2: The shape is right"),
        (ONE / 0 * 0, ONE, "contains NaN"),
        (ONE, torch.ones(3), r"shape is \(2,\), but the expected shape is \(3,\)"),
    ],
)
def test_a_wrong_result_is_described(given, right, said):
    assert re.search(said, functions.describe_difference(given, right))


def test_results_may_differ_by_rounding_and_by_no_more():
    assert core.same(ONE * (1 + 2e-5), ONE)
    assert not core.same(ONE * 1.002, ONE)


def test_a_hint_sends_to_the_section_of_its_exercise_or_to_another_page(monkeypatch):
    exercise = EXERCISES["merge-halves"]
    places = {page: PAGES[page] for page in PAGES} | {exercise.reads[0]: exercise.place}
    for page, place in (places | {None: exercise.place}).items():

        def run_check(check, answer, page=page):
            raise core.NotRight("No.", page)

        monkeypatch.setattr(core, "run_check", run_check)
        assert judge(exercise, None, 1).text.endswith(f"No. To read: {place}.")


@pytest.mark.parametrize("name", EXERCISES)
def test_rubbish_gets_clear_words(name):
    for how, rubbish in RUBBISH.items():
        result = verdict(name, rubbish)
        assert result.outcome == "not right", f"{how}: {result}"
        hint = result.text.removeprefix(f"Exercise {name}: not right yet. ")
        hint, _, page = hint.rpartition(" To read: ")
        assert len(hint) > 30, how
        assert page.removesuffix(".").partition(", section ")[0] in PAGES.values()


@pytest.mark.parametrize("name", EXERCISES)
def test_nothing_to_check_yet(name):
    result = verdict(name, None)
    assert result.outcome == "nothing yet"
    assert result.text == f"Exercise {name}: nothing to check yet."
    assert not result.right


@pytest.mark.parametrize("name", [*FUNCTIONS, "3.1", "wrapper-is-split"])
def test_a_function_that_returns_none_is_a_placeholder(name):
    result = verdict(name, lambda *arguments: None)
    assert result.outcome == "nothing yet"
    assert "nothing to check yet. The function" in result.text


@pytest.mark.parametrize("name", EXERCISES)
def test_what_cannot_even_be_printed(name):
    result = verdict(name, Spiteful())
    assert result.outcome == "unusable"
    assert "no repr" in result.text
    assert f"Expected {EXERCISES[name].wanted}" in result.text


@pytest.mark.parametrize("name", EXERCISES)
def test_each_exercise_has_a_right_answer_and_mistakes_with_words_of_their_own(name):
    assert any(one.right for one in list_answers(name))
    assert len({one.words for one in list_answers(name) if not one.right}) >= 3
    assert EXERCISES[name].wanted[0].islower()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_right_function_of_the_check_is_the_books_own(name):
    check = check_of(name)
    if not (check.without or check.uses):
        assert check(check.right) == check.praise
        assert "the book's own" in check_exercise(name, check.right).text


def test_unknown_names_are_answered_with_the_nearest():
    result = check_exercise("causal_mask", 1)
    assert result.outcome == "unusable"
    assert "There is no exercise 'causal_mask'. Did you mean 'causal-mask'?" in str(
        result.text
    )
    assert "which-dim" in result.text
    assert "Did you mean" not in check_exercise("zzz", 1).text


def test_a_number_is_a_name_too():
    assert check_exercise(3.2, {"d_out": 1}).right


def test_a_function_that_does_not_return_is_stopped(monkeypatch):
    monkeypatch.setattr(core, "SECONDS", 0.2)

    def forever(num_tokens):
        while True:
            pass

    result = verdict("causal-mask", forever)
    assert result.outcome == "not right"
    assert "within 0.2 seconds" in result.text


def test_random_state_and_the_readers_tensors_stay():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    seen = []

    def drawing(num_tokens):
        torch.rand(3)
        seen.append(num_tokens)
        return torch.ones(num_tokens, num_tokens).triu(1).bool()

    state = random.getstate()
    assert verdict("causal-mask", drawing).right
    assert seen
    assert torch.equal(torch.get_rng_state(), before)
    assert random.getstate() == state


def test_verdicts_are_the_same_every_time():
    for name in ("split-heads", "causal-class"):
        for _, answer, *_ in list_answers(name)[:3]:
            first = check_exercise(name, answer)
            torch.rand(3)
            assert check_exercise(name, answer) == first


@pytest.mark.parametrize("count", [1, 2, 4])
def test_what_is_left_after_the_first_finding_is_counted(count):
    """As the student reads it: one finding is told, the others are numbered."""

    class Finding:
        title, means, line, seen, mistake = "T", "M.", "self.scale", "", "none"

    told = classes._describe_findings([Finding()] * count)
    left = re.search(r"(\d+) (\w+) (\w+) this one", told)
    assert (left and left.groups()) == (
        (str(count - 1), "more", "after") if count > 1 else None
    )


def failed(kind, text):
    return core.Failed(kind, text)


@pytest.mark.parametrize(
    ("given", "agree"),
    [
        ([torch.ones(2), ("ValueError", "size 5")], True),
        ([torch.ones(2), ("KeyError", "size 4")], False),  # another kind
        ([torch.zeros(2), ("ValueError", "size 4")], False),  # other numbers
        ([("ValueError", "size 4"), ("ValueError", "size 4")], False),
        ([torch.ones(2), torch.ones(2)], False),  # one raises, one doesn't
    ],
)  # fmt: skip
def test_errors_of_one_kind_are_one_mistake_beside_the_same_numbers(given, agree):
    """An error's text may hold a size, which another seed draws anew."""
    known = [torch.ones(2), failed("ValueError", "size 4")]
    given = [failed(*g) if isinstance(g, tuple) else g for g in given]
    assert functions._same_mistake(given, known) == agree


def test_the_same_errors_without_numbers_must_say_the_same():
    known = [failed("ValueError", "size 4"), failed("ValueError", "size 5")]
    other = [failed("ValueError", "size 4"), failed("ValueError", "size 6")]
    assert functions._same_mistake(list(known), known)
    assert not functions._same_mistake(other, known)


def test_each_error_must_be_of_its_kind():
    known = [torch.ones(2), failed("ValueError", "4"), failed("ValueError", "5")]
    other = [torch.ones(2), failed("ValueError", "6"), failed("KeyError", "5")]
    assert functions._same_mistake([*known[:2], failed("ValueError", "7")], known)
    assert not functions._same_mistake(other, known)
