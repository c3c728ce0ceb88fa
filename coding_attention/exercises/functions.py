"""Checks a function by what it returns, beside the right one and known mistakes."""

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch

import torch

from coding_attention.exercises.core import (
    Failed,
    NothingYet,
    NotRight,
    attempt,
    describe,
    record_call,
    require_function,
    same,
)


def read_result(result, *arguments):
    """Return what counts of a result: all of it, where an exercise doesn't say more."""
    return result


@dataclass(frozen=True)
class FunctionCheck:
    """Tries a function out beside the right one and beside each known mistake.

    Attributes:
        signature: how it is called, such as "softmax(scores)".
        right: the right function.
        cases: function that returns a list of argument tuples.
        mistakes: pairs (wrong function, hint). A wrong answer that agrees with one of
            them in all cases gets its hint.
        praise: what to learn from the right answer.
        without: patterns of names of PyTorch functions that the exercise asks to do
            without, such as "*softmax".
        uses: the name of one that it asks for.
        look_at_sources: function that refuses a right answer by the sets of arguments
            that went into each of its results.
        read_result: function of a result and the arguments; returns what counts of it.
    """

    signature: str
    right: Callable
    cases: Callable
    mistakes: tuple
    praise: str
    without: tuple = ()
    uses: str = ""
    look_at_sources: Callable | None = None
    read_result: Callable = read_result

    def __call__(self, answer):
        """Return the praise.

        Raises:
            NotRight, NothingYet: see there.
        """
        require_function(answer, self.signature)
        cases = self.cases()
        runs = [record_call(answer, _copies(case)) for case in cases]
        given = self._read([result for result, _ in runs], cases)
        if all(result is None for result in given):
            raise NothingYet(
                "The function returns None. If you have written it, return its result."
            )
        wrong = [i for i, g in enumerate(given) if not same(g, self._right(cases[i]))]
        if wrong:
            self._name_mistake(given, cases)
            self._say_what_is_seen(given[wrong[0]], cases[wrong[0]])
        self._require_way([recorder for _, recorder in runs])
        self._require_inputs_kept(answer, cases[0])
        return self.praise

    def _read(self, results, cases):
        pairs = zip(results, cases, strict=True)
        return [self.read_result(result, *case) for result, case in pairs]

    def _right(self, case):
        return self.read_result(self.right(*_copies(case)), *case)

    def _name_mistake(self, given, cases):
        for mistake, hint in self.mistakes:
            results = [record_call(mistake, _copies(case))[0] for case in cases]
            if _same_mistake(given, self._read(results, cases)):
                raise NotRight(hint)

    def _say_what_is_seen(self, given, case):
        called = f"called with {self._called(case)}"
        if isinstance(given, Failed):
            raised = f"It raised {given.kind}: {given.text}."
            if "torch.return_types." in given.text:
                kind = given.text.partition("torch.return_types.")[2].split("'")[0]
                raised = (
                    f"With dim, torch.{kind} returns values and indices. "
                    f"Use the values: .{kind}(…).values."
                )
            raise NotRight(f"{raised} It was {called}.")
        right = self._right(case)
        raise NotRight(f"{describe_difference(given, right)} It was {called}.")

    def _called(self, case):
        return ", ".join(
            f"{name} of shape {tuple(value.shape)}"
            if isinstance(value, torch.Tensor)
            else f"{name}={value}"
            for name, value in zip(self._arguments, case, strict=True)
        )

    @property
    def _arguments(self):
        return self.signature.partition("(")[2].rstrip(")").split(", ")

    def _require_way(self, recorders):
        names = sorted(set().union(*(recorder.names for recorder in recorders)))
        used = [n for n in names if any(fnmatch(n, way) for way in self.without)]
        if used:
            name = {"matmul": "matmul (or @)", "special_softmax": "special.softmax"}
            raise NotRight(
                f"The numbers are right, but they come from PyTorch's own "
                f"{name.get(used[0], used[0])}. Write it without that."
            )
        if self.uses and self.uses not in names:
            raise NotRight(
                f"The numbers are right. Now write it with torch.{self.uses}, which is "
                f"what this exercise is about."
            )
        if self.look_at_sources:
            self.look_at_sources(
                [
                    {self._arguments[i] for i in one}
                    for recorder in recorders
                    for one in recorder.sources
                ]
            )

    def _require_inputs_kept(self, answer, case):
        copies = _copies(case)
        attempt(answer, *copies)
        if not all(
            same(a, b)
            for a, b in zip(copies, case, strict=True)
            if isinstance(b, torch.Tensor)
        ):
            raise NotRight(
                "The result is right, but the function changes its input in place, and "
                "the caller's tensor with it. Use masked_fill instead of masked_fill_, "
                "and x = x - m instead of x -= m."
            )


def _same_mistake(given, results):
    """Whether two functions go wrong in the same way in all cases.

    Errors of one kind agree, whatever they say, if some other case gave the same
    numbers. Without such a case they must say the same too.
    """
    if all(same(g, r) for g, r in zip(given, results, strict=True)):
        return True
    values, others = [], []
    for pair in zip(given, results, strict=True):
        failed = all(isinstance(x, Failed) for x in pair)
        (others if failed else values).append(pair)
    kinds = all(g.kind == r.kind for g, r in others)
    return kinds and bool(values) and all(same(g, r) for g, r in values)


def _copies(case):
    return tuple(x.clone() if isinstance(x, torch.Tensor) else x for x in case)


def describe_difference(given, right):
    """Say how a result differs from the right one, of which it gives little away."""
    if isinstance(right, tuple):
        if not isinstance(given, tuple | list) or len(given) != len(right):
            return f"Expected {len(right)} results, but got {_kind(given)}."
        pairs = list(zip(given, right, strict=True))
        place = next(i for i, pair in enumerate(pairs) if not same(*pair))
        seen = describe_difference(*pairs[place])
        return f"In result {place + 1} of {len(right)}: {seen}"
    if not isinstance(given, torch.Tensor):
        return f"Expected a tensor, but got {_kind(given)}."
    if given.shape != right.shape:
        return (
            f"The shape is {tuple(given.shape)}, but the expected shape is "
            f"{tuple(right.shape)}."
        )
    if given.dtype != right.dtype and torch.bool in (given.dtype, right.dtype):
        return f"The result has dtype {given.dtype}, but should have {right.dtype}."
    if given.isnan().any() and not right.isnan().any():
        return "The result contains NaN."
    wrong = ~torch.isclose(given.detach().double(), right.double(), 1e-4, 1e-5)
    place = tuple(wrong.nonzero()[0].tolist())
    named = f"row {place[-2]}, column {place[-1]}, " if len(place) > 1 else ""
    return (
        f"The shape is right, but the numbers aren't. At index {place}, {named}"
        f"{_short(given[place])} should be {_short(right[place])}."
    )


def _kind(given):
    if isinstance(given, tuple | list):
        return f"a {type(given).__name__} of {len(given)}"
    return describe(given)


def _short(value):
    if value.dtype == torch.bool:
        return str(bool(value))
    return f"{float(value):.4f}"
