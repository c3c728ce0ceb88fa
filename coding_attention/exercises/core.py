"""What the checks share: what they raise, calling a reader's code, comparing."""

import inspect
import math
import numbers
import re
from dataclasses import dataclass

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten

from attncheck import limits
from attncheck.errors import first_line

SECONDS = 10.0  # for one call of a reader's function
PACKAGES = ("attention", "attncheck", "coding_attention")
OURS = "This is the book's own {name}, which works. The exercise is to write your own."


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
class Failed:
    """What a reader's code raised."""

    kind: str
    text: str = ""


class Recorder(TorchFunctionMode):
    """Notes which PyTorch functions a reader's code calls, and on what.

    Attributes:
        names: of the functions, as the reader wrote them: "matmul" for ``@``, "mT".
        sources: for each result, the set of the arguments that went into it, counted
            from zero.
    """

    def __init__(self, arguments=()):
        super().__init__()
        self.names, self.sources = set(), set()
        # Tensors are kept so that no other one gets the id of one that is gone.
        self._known = {
            id(x): (x, {i}) for i, x in enumerate(arguments)
            if isinstance(x, torch.Tensor)
        }  # fmt: skip

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        self.names.add(_name_of(function))
        used = [self._known[id(x)][1] for x in _leaves((args, kwargs))
                if id(x) in self._known]  # fmt: skip
        for x in _leaves(result):
            if isinstance(x, torch.Tensor):
                self._known[id(x)] = x, set().union(*used)
                self.sources.add(frozenset().union(*used))
        return result


def _name_of(function):
    name = getattr(function, "__name__", "")
    return function.__self__.__name__ if name == "__get__" else name


def _leaves(tree):
    return tree_flatten(tree)[0]


def run_check(check, answer):
    """Return what a check says of a right answer, or raise what it raises.

    Raises:
        NotRight: the check raised it, or the answer is the book's own function.
    """
    # Answers such as those of the exercises on dropout may draw numbers.
    with torch.random.fork_rng(devices=[]):
        praise = check(answer)
    # A class is looked at by its own check; a layer may be what the exercise asks for.
    if inspect.isfunction(answer) and (name := is_ours(answer)):
        raise NotRight(OURS.format(name=name))
    return praise


def attempt(function, *arguments):
    """Call a reader's function; return its result, or :class:`Failed`.

    Raises:
        NotRight: it did not return in time.
    """
    return record_call(function, arguments)[0]


def record_call(function, arguments):
    """Return what :func:`attempt` does, and the :class:`Recorder` of the call.

    Raises:
        NotRight: it did not return in time.
    """
    worker, recorder = limits.Worker(SECONDS), Recorder(arguments)

    def job():
        with recorder:  # a mode holds in the thread that enters it
            return function(*arguments)

    try:
        return worker.call(job), recorder
    except limits.TimedOutError:
        raise NotRight(
            f"A call didn't return within {SECONDS:g} seconds. Look for a loop whose "
            f"condition never becomes false."
        ) from None
    # sys.exit() in an answer must not end the reader's session.
    except (Exception, SystemExit) as error:
        return Failed(type(error).__name__, first_line(error)), recorder
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


def watch_runs(module):
    """Return a list that gets an entry for each run of a module: whether a hook is in.

    It isn't watched by a hook, which the reader's code could find.
    """
    forward, runs = module.forward, []

    def run(*arguments, **named):
        runs.append(has_hooks(module))
        return forward(*arguments, **named)

    module.forward = run
    return runs


def has_hooks(module):
    """Whether a hook is registered in a module or a part of it."""
    return any(m._forward_hooks or m._forward_pre_hooks for m in module.modules())


def require_one_hooked_run(runs):
    """Require that a module ran once, with a hook in it.

    Raises:
        NotRight: it ran without one, several times or not at all.
    """
    if not any(runs):
        raise NotRight(
            "The numbers are right, but no hook read them. Register one, run the model "
            "or layer, and return what the hook collected."
        )
    if len(runs) > 1:
        raise NotRight(
            f"The numbers are right, but it ran {len(runs)} times. Once is enough: all "
            f"hooks can collect in the same run."
        )


def draw(*shape, seed=0):
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


def describe(value, limit=60):
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
        raise NotRight(f"Expected {wanted}, but got {describe(answer)}.")
    if not math.isfinite(answer):
        raise NotRight(f"Expected {wanted}, but {answer} is not finite.")
    return float(answer)


def close(a, b):
    """Whether two numbers agree to two decimals: the one rule for all of them."""
    return abs(a - b) <= 5.001e-3


def of_length(answer, length, wanted):
    """Return the answer as a tuple of the given length.

    Raises:
        NotRight: it is no tuple or list, or has another length.
    """
    if isinstance(answer, torch.Tensor) and answer.dim() == 1:
        answer = answer.tolist()
    if not isinstance(answer, tuple | list):
        raise NotRight(f"Expected {wanted}, but got {describe(answer)}.")
    if len(answer) != length:
        raise NotRight(f"Expected {wanted}, but got {len(answer)} entries.")
    return tuple(answer)


def shape(answer, wanted):
    """Return a shape as a tuple of integers.

    Raises:
        NotRight: it is no tuple, list or ``torch.Size`` of whole numbers.
    """
    if isinstance(answer, torch.Tensor):
        raise NotRight(f"Expected {wanted}: pass the .shape, not the tensor.")
    if not isinstance(answer, tuple | list) or not answer:
        raise NotRight(f"Expected {wanted}, but got {describe(answer)}.")
    if any(isinstance(n, bool) or not isinstance(n, int) for n in answer):
        raise NotRight(
            f"Expected {wanted}, but {tuple(answer)} has sizes that aren't whole."
        )
    return tuple(answer)


def require_function(answer, signature):
    """Require something that can be called.

    Raises:
        NotRight: it cannot.
    """
    name = signature.partition("(")[0]
    if isinstance(answer, torch.Tensor):
        raise NotRight(
            f"Expected a function {signature}, but got {describe(answer)}. Pass the "
            f"function itself, {name}, not its result."
        )
    if not callable(answer) or isinstance(answer, type):
        raise NotRight(f"Expected a function {signature}, but got {describe(answer)}.")
