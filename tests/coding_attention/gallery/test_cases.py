"""The cases of "Find the bug": stored as computed, told apart, and said rightly."""

import json
from functools import cache

import pytest
import torch

from coding_attention.gallery import cases
from coding_attention.gallery.pictures import picture
from coding_attention.gallery.planted import PLANTED

STORED = json.loads(cases.STORED.read_text(encoding="utf-8"))
CASES = [(case["bug"], case["kind"]) for case in STORED["cases"]]
SHOWN = sorted(
    {(c["bug"], case["kind"]) for case in STORED["cases"] for c in case["choices"]}
)
every_case = pytest.mark.parametrize("case", STORED["cases"], ids=map("-".join, CASES))
# The difference that an eye has to see: a tenth of the scale of weights.
SEEN = 0.1


picture = cache(picture)  # a loss is 300 steps of training


def numbers(value):
    """A stored picture as a tensor; float reads "nan" and "-inf"."""
    if isinstance(value, list):
        return torch.stack([numbers(part) for part in value])
    return torch.tensor(float(value), dtype=torch.float64)


def pictures(case):
    return {c["bug"]: numbers(c["picture"]) for c in case["choices"]}


def gap(a, b):
    """The largest difference of two pictures; nan against a number is a large one."""
    both = [x.nan_to_num(nan=-9, neginf=-9) for x in (a, b)]
    return (both[0] - both[1]).abs().max()


# ---- stored as computed ----


def test_there_are_enough_cases_of_five_causes():
    assert len(CASES) == len(set(CASES)) >= 12
    for case in STORED["cases"]:
        assert len({c["bug"] for c in case["choices"]}) == 5
        assert case["bug"] in {c["bug"] for c in case["choices"]}


def test_words_and_lines_are_those_of_the_module(monkeypatch):
    """All but the pictures, to the letter."""
    monkeypatch.setattr(cases, "stored_picture", lambda name, kind: None)
    made = cases.list_cases()
    for both in (made, STORED):
        both = json.loads(json.dumps(both))
    bare = [
        [
            {k: v for k, v in case.items() if k != "choices"}
            | {"c": [(c["bug"], c["cause"], c["looks"]) for c in case["choices"]]}
            for case in version["cases"]
        ]
        for version in (made, STORED)
    ]
    assert bare[0] == bare[1], "run python -m coding_attention.gallery.cases"


@pytest.mark.parametrize(("name", "kind"), SHOWN, ids=map("-".join, SHOWN))
def test_stored_picture_is_what_the_class_computes(name, kind):
    stored = [
        numbers(c["picture"])
        for case in STORED["cases"]
        if case["kind"] == kind
        for c in case["choices"]
        if c["bug"] == name
    ]
    found = picture(name, kind).double()
    # Over 300 steps, processors drift apart by 4e-4; an eye needs SEEN.
    atol = 0.01 if kind == "loss" else 0.51 * 10**-cases.DIGITS
    for one in stored:
        torch.testing.assert_close(one, found, atol=atol, rtol=0, equal_nan=True)


@pytest.mark.parametrize("kind", list(cases.ASKED))
def test_stored_right_picture_is_what_the_right_class_computes(kind):
    atol = 0.01 if kind == "loss" else 0.51 * 10**-cases.DIGITS
    stored, found = numbers(STORED["right"][kind]), picture("right", kind).double()
    torch.testing.assert_close(stored, found, atol=atol, rtol=0)


# ---- told apart ----


@every_case
def test_no_other_cause_makes_this_picture(case):
    shown = pictures(case)
    this = shown.pop(case["bug"])
    for name, other in shown.items():
        assert gap(this, other) > SEEN, f"{name} looks the same"


@every_case
def test_the_picture_is_not_that_of_the_right_layer(case):
    right = numbers(STORED["right"][case["kind"]])
    assert gap(pictures(case)[case["bug"]], right) > SEEN


@every_case
def test_the_lines_shown_are_the_mistake(case):
    source = PLANTED[case["bug"]].source()
    right = cases.BASES[PLANTED[case["bug"]].base][0]
    wrong_lines, right_lines = (
        [line.strip() for line in text.splitlines()] for text in (source, right)
    )
    broken, mended = (part.splitlines() for part in cases.changed_lines(case["bug"]))
    # A line may stand twice in a class, and change in one of the places.
    assert broken
    for line in broken:
        assert wrong_lines.count(line) > right_lines.count(line)
    for line in mended:
        assert right_lines.count(line) > wrong_lines.count(line)


# ---- said rightly: what each sentence says, as a question to its picture ----

ABOVE = torch.ones(6, 6).triu(1).bool()
BELOW = ABOVE.T


def rows_sum_to_1(x):
    return (x.sum(-1) - 1).abs().max() < 0.01


def columns_sum_to_1(x):
    return (x.sum(-2) - 1).abs().max() < 0.01 and not rows_sum_to_1(x)


def future_is_0(x):
    return (x[..., ABOVE] == 0).all()


def in_order(x):
    return rows_sum_to_1(x) and future_is_0(x)


def right(kind):
    return numbers(STORED["right"][kind])


def shared(x):
    return (x.sum(0)[~ABOVE] - 1).abs().max() < 0.01


SAYS = {
    "weights": {
        "mask_missing": lambda x: (
            rows_sum_to_1(x) and (x.masked_fill(~ABOVE, 0).amax(-1) > 0.1).sum() >= 3
        ),
        "mask_upside_down": lambda x: (
            rows_sum_to_1(x) and (x[BELOW] == 0).all() and x.diagonal().max() > 0.5
        ),
        "mask_inverted": lambda x: (
            x[-1].isnan().all()
            and rows_sum_to_1(x[:-1])
            and (x[:-1][~ABOVE[:-1]] == 0).all()
        ),
        "mask_hides_itself": lambda x: (
            x[0].isnan().all()
            and (x.diagonal()[1:] == 0).all()
            and rows_sum_to_1(x[1:])
        ),
        "mask_off_by_one": lambda x: (
            (x.triu(2) == 0).all() and rows_sum_to_1(x) and x.diagonal(1).max() > 0.1
        ),
        "mask_fill_zero": lambda x: (
            rows_sum_to_1(x)
            and all(0 < r[i + 1 :].min() > r[i + 1 :].max() - 2e-3
                    for i, r in enumerate(x[:-1]))
        ),
        "mask_added_as_ones": lambda x: (
            rows_sum_to_1(x)
            and x[ABOVE].sum() > picture("mask_missing", "weights")[ABOVE].sum()
        ),
        "mask_after_softmax": lambda x: (
            future_is_0(x)
            and (x.sum(-1)[:-1] < 0.99).all()
            and abs(x.sum(-1)[-1] - 1) < 0.01
        ),
        "softmax_over_queries": columns_sum_to_1,
        "softmax_over_everything": lambda x: (
            abs(x.sum() - 1) < 0.02 and (x.sum(-1) < 0.1).sum() >= 3
        ),
        "softmax_missing": lambda x: (
            (x[ABOVE] == -torch.inf).all() and x.max() > 1 and x[~ABOVE].min() < 0
        ),
        "softmax_twice": lambda x: x.max() < 0.5 and x[ABOVE].min() > 0.1,
        "scale_after_softmax": lambda x: (x.sum(-1) - 0.354).abs().max() < 0.005,
        "scale_missing": lambda x: (
            in_order(x)
            and (x.amax(-1)[1:] > right("weights").amax(-1)[1:]).all()
        ),
        "scale_twice": lambda x: (
            in_order(x)
            and (x.amax(-1)[1:] < right("weights").amax(-1)[1:]).all()
        ),
        "scores_transposed": lambda x: (
            in_order(x)
            and (x.argmax(-1) != right("weights").argmax(-1)).sum() >= 2
        ),
    },
    "heads": {
        "mask_missing": lambda x: (
            rows_sum_to_1(x) and (x[:, ABOVE].amax(-1) > 0.3).all()
        ),
        "softmax_over_heads": lambda x: shared(x) and x[:, ABOVE].isnan().all(),
        "softmax_over_queries": columns_sum_to_1,
        "heads_viewed": in_order,
        "heads_interleaved": lambda x: (
            in_order(x) and gap(x, right("heads")) > SEEN
        ),
    },
    "batch": {
        "samples_mixed": lambda x: torch.equal(x[0], x[1]) and in_order(x),
        "softmax_over_batch": lambda x: shared(x) and x[:, ABOVE].isnan().all(),
        "softmax_over_batch: softmax over batch without nan": lambda x: (
            shared(x) and (x[:, ABOVE] == 0.5).all()
        ),
        "softmax_over_queries": columns_sum_to_1,
        "scores_transposed": lambda x: gap(x[0], x[1]) > SEEN,
    },
    "reach": {
        "mask_missing": lambda x: (x > 0).all(),
        "mask_upside_down": lambda x: (x[BELOW] == 0).all(),
        "mask_off_by_one": lambda x: (
            (x.triu(2) == 0).all() and (x.diagonal(1) > 0).all()
        ),
        "weights_transposed": lambda x: (
            (x > 0).all() and x[ABOVE].mean() > x[BELOW].mean()
        ),
        "heads_viewed": lambda x: (
            (x[ABOVE] > 0.1).any() and (x.diagonal() == 0).any()
        ),
        "join_viewed": lambda x: (
            x[2, 5] > 0.1 and (x[3, 2:] == 0).all() and (x[3, :2] > 0).all()
        ),
        "heads_interleaved": future_is_0,
    },
    "loss": {
        "mask_missing": lambda x: x[1] < 2.08 / 2 and x[-5:].max() < 0.5,
        "mask_fill_zero": lambda x: x[1] < 1.6 and x.min() > 1,
        "mask_hides_itself": lambda x: x.isnan().all(),
        "softmax_over_queries": lambda x: 1.8 < x[-5:].mean() < 2.05 < x[0],
        "no_gradient": lambda x: (x - 2.08).abs().max() < 0.1,
    },
}  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), SHOWN, ids=map("-".join, SHOWN))
def test_what_is_said_of_a_picture_is_so(name, kind):
    assert SAYS[kind][name](picture(name, kind).double())
    if name != "heads_interleaved" and kind not in ("heads", "loss"):
        assert not SAYS[kind][name](right(kind)) or (name, kind) == (
            "scores_transposed", "batch",
        )  # fmt: skip


def test_every_mistake_that_can_be_chosen_has_its_words():
    assert set(SAYS) == set(cases.ASKED)
    for kind, said in SAYS.items():
        assert set(said) >= {name for name, k in SHOWN if k == kind}
        assert {b.name for b in PLANTED.values() if kind in b.looks} == set(said)
