"""A report says which branches of a class never ran, so that green means the rest."""

import sys

import pytest

import attncheck
from attncheck.branches import Branches
from attncheck.mistakes import HEADER
from tests.attncheck.plain import PLAIN, made

pytestmark = pytest.mark.skipif(
    sys.gettrace() is not None, reason="something else traces, as coverage does"
)
STEP = "        b, t, d = x.shape\n"


def never(*changes):
    """Return what a right class's report says of branches, without its beginning."""
    report = attncheck.check(made(PLAIN, *changes), d=16, n_heads=4, causal=False)
    assert report.exit_status == 0
    begin = "Branches that never ran, and so weren't tested: "
    notes = [n.removeprefix(begin) for n in report.notes if n.startswith(begin)]
    assert len(notes) < 2
    return "".join(notes)


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ("if d == 3:\n            x = -x\n", "if d == 3"),
        ("if d != 3:\n            x = x + 0\n        else:\n            x = -x\n",
         "else of if d != 3"),
        ("if t > 99:\n            if b:\n                x = -x\n", "if t > 99"),
        ("if d != 3:\n            if t > 99:\n                x = -x\n", "if t > 99"),
    ],
)  # fmt: skip
def test_a_branch_that_never_ran_is_told_with_its_line(step, told):
    source = HEADER + PLAIN.replace(STEP, f"{STEP}        {step}")
    test = told.removeprefix("else of ")
    line = next(i for i, one in enumerate(source.splitlines(), 1) if test in one)
    said = never((STEP, f"{STEP}        {step}"))
    assert said == f"line {line} of plain.py (`{told}`)."


def test_what_stands_behind_a_return_is_a_branch_as_well():
    tail = "        return self.proj"
    mixed = "(s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d)"
    early = f"        if d != 3:\n            return self.proj({mixed})\n"
    assert "(`behind if d != 3`)" in never((tail, early + tail))


@pytest.mark.parametrize(
    "step",
    [
        "if d == 3:\n            raise ValueError(d)\n",  # it's refused
        "if self.training:\n            x = x + 0\n",  # it was trained, too
        "if b == 1:\n            x = x + 0\n",
    ],
)
def test_what_ran_and_what_is_refused_is_not_told(step):
    assert never((STEP, f"{STEP}        {step}")) == ""


def test_what_the_constructor_calls_is_of_other_sizes():
    own = "        self.h = n_heads\n"
    method = "    def sized(self, d):\n        if d == 3:\n            self.h = 1\n\n"
    forward = "    def forward"
    sized = (own, f"{own}        self.sized(d)\n"), (forward, method + forward)
    assert never(*sized) == ""
    assert "if d == 3" in never(*sized, (STEP, f"{STEP}        self.sized(d)\n"))


def test_three_are_listed_and_the_others_counted():
    steps = "".join(f"        if d == {n}:\n            x = -x\n" for n in range(1, 6))
    told = never((STEP, STEP + steps))
    assert told.count("line ") == 3
    assert told.endswith(", 2 more.")


def test_where_something_traces_already_it_goes_on():
    def other(frame, event, arg):
        return None

    branches = Branches()
    sys.settrace(other)
    try:
        assert branches.during(lambda: 3) == 3
        assert sys.gettrace() is other
    finally:
        sys.settrace(None)
    assert branches.note() == ""
    branches.during(lambda: 3)
    assert sys.gettrace() is None
