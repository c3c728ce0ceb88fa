"""The training lab takes what fits, says what does not, and has a static figure."""

import pytest
import traitlets

from coding_attention.labs.training import TrainingLab

PATTERNS = [[[[1.0, 0.0], [0.25, 0.75]]], [[[1.0, 0.0], [0.5, 0.5]]]]


def make(**changes):
    given = {
        "tokens": ["a", "b"], "steps": [0, 9], "losses": [3.5, 0.5],
        "heads": ["only head"], "scores": {"induction": [[0.125], [0.875]]},
        "patterns": PATTERNS,
    }  # fmt: skip
    return TrainingLab(**(given | changes))


def test_shows_the_chosen_step_and_head():
    assert make(at=1).pattern() == [[1.0, 0.0], [0.5, 0.5]]
    assert make().pattern() == [[1.0, 0.0], [0.25, 0.75]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"patterns": PATTERNS[:1]}, r"\(2, 1, 2, 2\), but got \(1, 1, 2, 2\)"),
        ({"patterns": [[["x"]]]}, "must hold numbers"),
        ({"curve": [[1.0]]}, r"\(step, loss\) pairs, such as"),
        ({"losses": [1.0]}, "each of the 2 steps, but got 1"),
        ({"scores": {"s": [[1.0]]}}, r"scores\['s'\].*\(2, 1\).*\(1, 1\)"),
        ({"at": 2}, "at must be from 0 to 1, but got 2"),
        ({"head": 1}, "head must be from 0 to 0, but got 1"),
    ],
)
def test_says_what_does_not_fit(changes, message):
    with pytest.raises(traitlets.TraitError, match=message):
        make(**changes)


def test_the_curve_is_that_of_the_steps_unless_it_is_given():
    assert make().curve == [[0, 3.5], [9, 0.5]]
    assert make(curve=[(0, 3.5), (4, 2.0), (9, 0.5)]).curve[1] == [4, 2.0]


def test_static_figure_holds_the_numbers():
    page = make(at=1).fallback()
    assert "Step 9 of training, loss 0.5000: what only head looks at." in page
    for number in ("3.5000", "0.5000", "0.1250", "0.8750"):
        assert f"<td>{number}</td>" in page


def test_says_what_it_needs():
    with pytest.raises(TypeError, match="but got no tokens, steps, losses, heads, pat"):
        TrainingLab()
    with pytest.raises(TypeError, match="but got no losses"):
        make(losses=[])
