"""What the reader gave, and how to build modules and variants from it."""

import contextlib
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from attncheck.constructor import Plan, fields_of, parameters_of, plan_call
from attncheck.errors import Failure, UnusableError
from attncheck.guesses import (
    ALIASES,
    DEFAULTS,
    guess,
    is_kv_heads,
    is_unsure,
    size_held,
)
from attncheck.limits import Worker
from attncheck.modules import FunctionModule, duplicate
from attncheck.projections import find
from attncheck.subject import run_guarded, seed_everything

# What a constructor calls the width of one head.
HEAD_WIDTHS = ("head_size", "head_dim", "dim_head", "d_head", "dim_per_head")


class Source:
    """A class with its arguments, an instance, or a function.

    Args:
        given: class, instance or function.
        arguments: the reader's constructor arguments, or sizes of the instance.
        causal: passed to a constructor that asks for it.
        worker: runs the constructor.
        config: settings for a class that takes one object with all of them.

    Attributes:
        label: what is checked, in words.
        sizes: d_in, d_out, context_length, num_heads; None where unknown.
        notes: remarks on the arguments.

    Raises:
        UnusableError: nothing that can be tested.
    """

    def __init__(
        self,
        given: Any,
        arguments: dict[str, Any],
        causal: bool,
        worker: Worker,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        if inspect.isroutine(given) and _wants_nothing(given):  # it builds the layer
            given = run_guarded(worker, given, "constructor_raises")
        self.given = given
        self.worker = worker
        self.notes: list[str] = []
        self.plan = Plan({}, {})
        self.config = config
        self.is_class = inspect.isclass(given)
        self._asked = dict(arguments)
        _refuse_broken_sizes(arguments)
        if self.is_class:
            self._take_class(given, arguments, causal)
        elif isinstance(given, nn.Module):
            self.label = f"{type(given).__name__} (an instance)"
        elif inspect.isroutine(given):
            self.label = f"{getattr(given, '__name__', 'function')} (a function)"
        else:
            raise UnusableError(
                f"expected a class, a module or a function, but got {given!r:.80} "
                f"({type(given).__name__}). Pass the class itself, as in "
                f"check(MyAttention), or from a terminal path/to/file.py:MyAttention."
            )
        self.arguments, self.mapped = self.plan.arguments, self.plan.mapped
        self.sizes = self._read_sizes()

    def _read_sizes(self) -> dict[str, Any]:
        """Return the sizes that were given, or that the constructor is given."""
        sizes = {name: self._asked.get(name) for name in DEFAULTS}
        values = self.defaults() | self.arguments
        for ours, theirs in self.mapped.items():
            if ours in sizes and isinstance(values.get(theirs), int | float):
                sizes[ours] = values[theirs]
        return sizes

    def _take_class(self, given: type, arguments: dict[str, Any], causal: bool) -> None:
        if not issubclass(given, nn.Module):
            raise UnusableError(
                f"{given.__name__} is a class, but not a torch.nn.Module. Derive it "
                f"from nn.Module, or pass a function from x to context vectors."
            )
        self.plan = run_guarded(
            self.worker,
            lambda: plan_call(given, arguments, causal, self.config),
            "constructor_raises",
        )
        if self.plan.guessed:
            told = ", ".join(f"{n}={v!r}" for n, v in self.plan.guessed.items())
            self.notes.append(f"Guessed from the names: {told}.")
        taken = {*self.plan.arguments, *self.plan.mapped}
        ignored = [name for name in arguments if name not in taken]
        if ignored:
            self.notes.append(
                f"{given.__name__} doesn't take {', '.join(ignored)}: ignored."
            )
        shown = ", ".join(f"{n}={v!r}" for n, v in self.plan.arguments.items())
        self.label = f"{given.__name__}({shown})"

    def chose(self, name: str) -> bool:
        """Whether nobody asked for the value of an argument."""
        return name not in {*self._asked, *(self.config or {})}

    def defaults(self) -> dict[str, Any]:
        """Return what the constructor takes where nothing is given."""
        if not self.is_class:
            return {}
        parameters = parameters_of(self.given).items()
        taken = {n: p.default for n, p in parameters if p.default is not p.empty}
        held = fields_of(self.plan.config[1]) if self.plan.config else {}
        plain = {n: v for n, v in (held or {}).items() if isinstance(v, int | float)}
        return taken | plain

    def build(self, seed: int = 0, **changes: Any) -> nn.Module:
        """Return a module: built after ``seed`` with changed arguments, or a copy.

        Raises:
            Failure: the constructor raised or did not return.
            UnusableError: the instance cannot be copied.
        """
        if not self.is_class:
            if isinstance(self.given, nn.Module):
                return duplicate(self.given)
            return FunctionModule(self.given)
        own = changes.pop("own", {})
        changes = {self.mapped[name]: value for name, value in changes.items()}

        def job() -> Any:
            seed_everything(seed, torch.device("cpu"))
            with torch.enable_grad():
                return self.plan.make(self.given, self.arguments | changes | own)

        return run_guarded(self.worker, job, "constructor_raises")

    def build_others(self, failure: Exception) -> Iterator[nn.Module]:
        """Yield modules built with other values of what nobody gave, likely ones first.

        While one is in use, the arguments and sizes are its own, and a note says so.
        """
        kept = self.arguments, self.sizes
        for arguments, note in self._other_arguments(failure):
            self.arguments = arguments
            self.sizes = self._read_sizes()
            with contextlib.suppress(Failure, UnusableError):
                module = self.build()
                self.notes.append(note)
                yield module
                self.notes.pop()
        self.arguments, self.sizes = kept

    def _other_arguments(
        self, failure: Exception
    ) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield (arguments, a note on them), likely ones first."""
        if not self.is_class:
            return
        refused = getattr(failure, "mistake", "") == "constructor_raises"
        changes, given = self._changes(), self.arguments
        if refused or re.search(r"\b0\b", str(failure)):
            changes += self._widths(failure)
        if refused and not self.plan.config:
            changes.append(self._fill_left_out())
        for change in changes:
            told = [f"{n}={getattr(v, '__name__', v)}" for n, v in change.items()]
            note = f"Built with {', '.join(told)}; it failed without."
            if told:
                yield given | change, note
        if not self.plan.config:
            parameters = parameters_of(self.given)
            needed = {
                name: value
                for name, value in given.items()
                if name in self._asked
                or name not in parameters
                or parameters[name].default is inspect.Parameter.empty
            }
            if needed != given:
                yield needed, "Built with its constructor's default values."

    def _changes(self) -> list[dict[str, Any]]:
        """Return other values for arguments that nobody gave, alone and together."""
        h = self.sizes["num_heads"] or DEFAULTS["num_heads"]
        d_in, guessed = self.sizes["d_in"] or DEFAULTS["d_in"], self.plan.guessed
        free = {n: v for n, v in guessed.items() if n not in self.mapped.values()}
        values = self.defaults() | self.arguments
        widths = [n for n in HEAD_WIDTHS if type(values.get(n)) is int]
        tries: list[dict[str, Any]] = [
            {n: d_in // h for n in widths if self.chose(n)},
            {m: h * values[n] for n in widths if not self.chose(n)
             for m in [*self.mapped.values()][: "d_in" in self.mapped]},
            {n: h for n in free if is_kv_heads(n)},
            {n: 16 for o, n in self.mapped.items()
             if o == "context_length" and self.chose(o) and self.chose(n)},
            {n: d_in for n, v in free.items() if v == d_in // h and "head" not in n},
            {n: 0 for n in free if is_unsure(n)},
        ]  # fmt: skip
        acts = [n for n, v in free.items() if v == "gelu"]
        tries += [dict.fromkeys(acts, act) for act in (nn.GELU, nn.functional.gelu)]
        changes = [{n: v for n, v in c.items() if values.get(n) != v} for c in tries]
        changes = [change for change in changes if change]
        alone = [{name: value} for one in changes for name, value in one.items()]
        whole = {n: v for one in reversed(changes) for n, v in one.items()}
        return [*changes, *(alone if len(changes) < len(alone) else []), whole]

    def _widths(self, failure: Exception) -> list[dict[str, Any]]:
        """Return widths that the error names, and usual ones, where none was given."""
        ours = [n for n in ("d_in", "d_out") if n in self.mapped and self.chose(n)]
        names = [self.mapped[n] for n in ours if self.chose(self.mapped[n])]
        names += [n for n, v in self.plan.guessed.items() if v == DEFAULTS["d_in"]]
        told = [int(number) for number in re.findall(r"\b\d+\b", str(failure))]
        widths = [n for n in told if 2 < n <= 1024] + [32, 64, 128, 256, 512]
        return [dict.fromkeys(names, width) for width in dict.fromkeys(widths)]

    def _fill_left_out(self) -> dict[str, Any]:
        """Return values for what is None by default, and may be needed all the same."""
        more = {}
        for name, parameter in parameters_of(self.given).items():
            if parameter.default is not None or name in self.arguments:
                continue
            found, value = guess(name, DEFAULTS | self.sizes)
            if re.match(r"act|norm", name):
                found, value = True, nn.Identity
            if found and value is not None:
                more[name] = value
        return more

    def complete_sizes(self, module: nn.Module) -> None:
        """Read from the built module the sizes that no argument told."""
        sizes = self.sizes
        for name in ("d_in", "context_length", "num_heads"):
            if sizes[name] is None:
                sizes[name] = size_held(module, name)
        readings = find(module, sizes["num_heads"], sizes["d_in"])
        if readings and not ("d_in" in self.mapped and self.is_class):
            sizes["d_in"] = readings[0].d_in
        if sizes["d_in"] is None:
            sizes["d_in"] = _last_width(module) or DEFAULTS["d_in"]
        if sizes["context_length"] is None:
            sizes["context_length"] = _mask_length(module)


def _refuse_broken_sizes(given: Mapping[str, Any]) -> None:
    """Refuse sizes that no tensor can have.

    Raises:
        UnusableError: a size is no whole number from 1.
    """
    for name in DEFAULTS:
        value = given.get(name)
        if name == "dropout" or value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UnusableError(
                f"{name} must be a whole number, 1 or more, but got {value!r}."
            )


def _wants_nothing(given: Any) -> bool:
    """Whether a function takes no argument, so that it can be no layer."""
    with contextlib.suppress(
        TypeError, ValueError
    ):  # some functions written in C have no signature
        return not inspect.signature(given).parameters
    return False


def _last_width(module: nn.Module) -> int | None:
    # Those of a convolution over single tokens count, too.
    matrices = [p for p in module.parameters() if p.dim() > 1 and p[0, 0].numel() == 1]
    widths = [p.shape[1] for p in matrices]
    return widths[0] if widths else None


def _mask_length(module: nn.Module) -> int | None:
    """Return the size of a square buffer whose name says that it is a mask."""
    for name, buffer in module.named_buffers():
        masks = ("mask", "tril", "triu", "bias")
        square = buffer.dim() >= 2 and buffer.shape[-1] == buffer.shape[-2]
        if square and name.split(".")[-1].strip("_").endswith(masks):
            return buffer.shape[-1]
    return None


def set_dropout(module: nn.Module, p: float) -> bool:
    """Set every dropout of a module to ``p``; return whether there was any."""
    found = False
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p, found = p, True
        for name in ALIASES["dropout"]:
            if isinstance(getattr(part, name, None), float):
                setattr(part, name, p)
                found = True
    return found
