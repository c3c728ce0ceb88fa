"""What the exercises share: their record, calling a reader's code, comparing."""

import math
import numbers
import re
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from attncheck import limits
from attncheck.build import first_line
from coding_attention.exercises.places import PLACES

SECONDS = 10.0  # for one call of a reader's function
PACKAGES = ("attention", "attncheck", "coding_attention")
OURS = (
    "This is the book's own {name}, and it does what it should. The exercise is to "
    "write it yourself."
)


class NotRight(Exception):  # noqa: N818 (reads as a sentence)
    """The answer is not right; the message names the mistake and gives a hint.

    Args:
        text: the message.
        page: the page to read, where it is not that of the exercise.
    """

    def __init__(self, text, page=None):
        super().__init__(text)
        self.page = page


class NothingYet(Exception):  # noqa: N818
    """The answer is still the placeholder."""


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    Attributes:
        name: what ``check_exercise`` knows it by.
        page: the page of the book to read.
        wanted: what kind of answer is asked for, to begin a sentence with.
        check: function of the answer that returns what to learn from the right one.
            It raises :class:`NotRight` or :class:`NothingYet`.
    """

    name: str
    page: str
    wanted: str
    check: Callable

    @property
    def level(self):
        """How hard it is: "easy", "medium" or "hard"."""
        return PLACES[self.name].level

    @property
    def reads(self):
        """The page and the section to read."""
        place = PLACES[self.name]
        return place.page, place.section


@dataclass(frozen=True)
class Failed:
    """What a reader's code raised."""

    kind: str
    text: str = ""


class _Recorder(TorchFunctionMode):
    """Notes the names of the PyTorch functions that are called inside."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.names.add(getattr(function, "__name__", ""))
        return function(*args, **(kwargs or {}))


def attempt(function, *arguments):
    """Call a reader's function; return its result, or :class:`Failed`.

    Raises:
        NotRight: it did not return in time.
    """
    return _attempt(function, arguments)[0]


def _attempt(function, arguments):
    worker, recorder = limits.Worker(SECONDS), _Recorder()

    def job():
        with recorder:  # a mode holds in the thread that enters it
            return function(*arguments)

    try:
        return worker.call(job), recorder.names
    except limits.TimedOutError:
        raise NotRight(
            f"A call did not return within {SECONDS:g} seconds. Look for a loop whose "
            f"condition never becomes false."
        ) from None
    # sys.exit() in an answer must not end the reader's session.
    except (Exception, SystemExit) as error:
        return Failed(type(error).__name__, first_line(error)), recorder.names
    finally:
        worker.close()


def is_ours(answer):
    """Return the name of the book's own function or class in an answer, or "".

    A class counts too that is derived from one of the book, or an instance that holds
    one as a part.
    """
    parts = answer.modules() if isinstance(answer, nn.Module) else [answer]
    for part in parts:
        known = part if hasattr(part, "__module__") else type(part)
        kinds = known.__mro__ if isinstance(known, type) else [known]
        if isinstance(part, nn.Module):
            kinds = type(part).__mro__
        for kind in kinds:
            if str(getattr(kind, "__module__", "")).split(".")[0] in PACKAGES:
                return kind.__name__.strip("_")
    return ""


def seeded(*shape, seed=0):
    """Return random numbers that are the same in each check."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def same(given, right):
    """Whether two results agree: kind, shape, and values up to rounding."""
    if isinstance(right, tuple | list):
        return (
            isinstance(given, tuple | list)
            and len(given) == len(right)
            and all(same(a, b) for a, b in zip(given, right, strict=True))
        )
    if isinstance(right, Failed):
        return given == right
    if not isinstance(given, torch.Tensor) or not isinstance(right, torch.Tensor):
        return given is None and right is None
    if given.shape != right.shape:
        return False
    if torch.bool in (given.dtype, right.dtype) and given.dtype != right.dtype:
        return False
    given, right = (x.detach().cpu().double() for x in (given, right))
    return torch.allclose(given, right, rtol=1e-4, atol=1e-5, equal_nan=True)


def described(value, limit=60):
    """Return a value and its type in a few words."""
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, nn.Module):
        return f"a {type(value).__name__}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    # Addresses in memory say nothing to a reader and differ from run to run.
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
    text = text if len(text) <= limit else text[:limit] + " …"
    return f"{text} ({type(value).__name__})"


def number(answer, wanted):
    """Return the answer as a float.

    Raises:
        NotRight: it is no number.
    """
    if isinstance(answer, torch.Tensor) and answer.numel() == 1:
        answer = answer.item()
    if isinstance(answer, bool) or not isinstance(answer, numbers.Real):
        raise NotRight(f"{wanted} is asked for, but got {described(answer)}.")
    if not math.isfinite(answer):
        raise NotRight(f"{wanted} is asked for, but {answer} is not finite.")
    return float(answer)


def close(a, b):
    """Whether two numbers agree to about three digits, as a reader would round."""
    return math.isclose(a, b, rel_tol=2e-3, abs_tol=1e-9)


def of_length(answer, length, wanted):
    """Return the answer as a tuple of the given length.

    Raises:
        NotRight: it is no tuple or list, or has another length.
    """
    if isinstance(answer, torch.Tensor) and answer.dim() == 1:
        answer = answer.tolist()
    if not isinstance(answer, tuple | list):
        raise NotRight(f"{wanted} is asked for, but got {described(answer)}.")
    if len(answer) != length:
        raise NotRight(f"{wanted} is asked for, but got {len(answer)} entries.")
    return tuple(answer)


def shape(answer, wanted):
    """Return a shape as a tuple of integers.

    Raises:
        NotRight: it is no tuple, list or ``torch.Size`` of whole numbers.
    """
    if isinstance(answer, torch.Tensor):
        raise NotRight(f"{wanted} is asked for: pass the .shape, not the tensor.")
    if not isinstance(answer, tuple | list) or not answer:
        raise NotRight(f"{wanted} is asked for, but got {described(answer)}.")
    if any(isinstance(n, bool) or not isinstance(n, int) for n in answer):
        raise NotRight(f"{wanted} is asked for; {tuple(answer)} holds no whole sizes.")
    return tuple(answer)


def require_function(answer, signature):
    """Require something that can be called.

    Raises:
        NotRight: it cannot.
    """
    name = signature.partition("(")[0]
    if isinstance(answer, torch.Tensor):
        raise NotRight(
            f"A function {signature} is asked for, but got {described(answer)}. Pass "
            f"the function itself, {name}, not what it returns."
        )
    if not callable(answer) or isinstance(answer, type):
        raise NotRight(
            f"A function {signature} is asked for, but got {described(answer)}."
        )


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
        without: names of PyTorch functions that the exercise asks to do without.
        uses: the name of one that it asks for.
    """

    signature: str
    right: Callable
    cases: Callable
    mistakes: tuple
    praise: str
    without: tuple = ()
    uses: str = ""

    def __call__(self, answer):
        """Return the praise.

        Raises:
            NotRight, NothingYet: see there.
        """
        require_function(answer, self.signature)
        cases = self.cases()
        runs = [_attempt(answer, _copies(case)) for case in cases]
        given = [result for result, _ in runs]
        if all(result is None for result in given):
            raise NothingYet(
                "The function returns None. If you have written it, let it return its "
                "result."
            )
        wrong = [i for i, g in enumerate(given) if not same(g, self._right(cases[i]))]
        if wrong:
            self._name_mistake(given, cases)
            self._say_what_is_seen(given[wrong[0]], cases[wrong[0]])
        self._require_way(set().union(*(names for _, names in runs)))
        self._require_inputs_kept(answer, cases[0])
        return self.praise

    def _right(self, case):
        return self.right(*_copies(case))

    def _name_mistake(self, given, cases):
        for mistake, hint in self.mistakes:
            results = [_attempt(mistake, _copies(case))[0] for case in cases]
            if _same_mistake(given, results):
                raise NotRight(hint)

    def _say_what_is_seen(self, given, case):
        called = f"called with {self._called(case)}"
        if isinstance(given, Failed):
            raised = f"It raised {given.kind}: {given.text}."
            if "torch.return_types." in given.text:
                kind = given.text.partition("torch.return_types.")[2].split("'")[0]
                raised = (
                    f"With dim, torch.{kind} returns two tensors, the values and where "
                    f"they are. Take the values: .{kind}(…).values."
                )
            raise NotRight(f"{raised} It was {called}.")
        right = self._right(case)
        raise NotRight(f"{difference(given, right)} It was {called}.")

    def _called(self, case):
        names = self.signature.partition("(")[2].rstrip(")").split(", ")
        return ", ".join(
            f"{name} of shape {tuple(value.shape)}"
            if isinstance(value, torch.Tensor)
            else f"{name}={value}"
            for name, value in zip(names, case, strict=True)
        )

    def _require_way(self, names):
        used = [name for name in self.without if name in names]
        if used:
            raise NotRight(
                f"The numbers are right, but they come from PyTorch's own {used[0]}. "
                f"The exercise is to do without it."
            )
        if self.uses and self.uses not in names:
            raise NotRight(
                f"The numbers are right. Now write it with torch.{self.uses}: that is "
                f"what the exercise is about."
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
                "The result is right, but the function changes its input in place. "
                "The caller's tensor holds other numbers afterwards. Use masked_fill "
                "for masked_fill_, and x = x - m for x -= m."
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


def difference(given, right):
    """Say how a result differs from the right one, of which it gives little away."""
    if isinstance(right, tuple):
        if not isinstance(given, tuple | list) or len(given) != len(right):
            return f"{len(right)} results are asked for, but it returns {_kind(given)}."
        pairs = list(zip(given, right, strict=True))
        place = next(i for i, pair in enumerate(pairs) if not same(*pair))
        return f"In result {place + 1} of {len(right)}: {difference(*pairs[place])}"
    if not isinstance(given, torch.Tensor):
        return f"A tensor is asked for, but it returns {_kind(given)}."
    if given.shape != right.shape:
        return (
            f"The shape is {tuple(given.shape)}, but {tuple(right.shape)} is asked for."
        )
    if given.dtype != right.dtype and torch.bool in (given.dtype, right.dtype):
        return f"It holds {given.dtype}, but {right.dtype} is asked for."
    if given.isnan().any() and not right.isnan().any():
        return "The result holds NaN."
    wrong = ~torch.isclose(given.detach().double(), right.double(), 1e-4, 1e-5)
    place = tuple(wrong.nonzero()[0].tolist())
    return (
        f"The shape is right, the numbers are not. At index {place} it holds "
        f"{_short(given[place])}, right is {_short(right[place])}."
    )


def _kind(given):
    if isinstance(given, tuple | list):
        return f"a {type(given).__name__} of {len(given)}"
    return described(given)


def _short(value):
    if value.dtype == torch.bool:
        return str(bool(value))
    return f"{float(value):.4f}"
