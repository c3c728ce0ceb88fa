"""What the reader gave, and how to build modules and variants from it."""

import contextlib
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from attncheck.build import (
    ALIASES,
    DEFAULTS,
    FunctionModule,
    UnusableError,
    constructor_arguments,
    duplicate,
    is_lazy,
    parameters_of,
    whole_sizes,
)
from attncheck.config import fields_of, guess, is_kv_heads, is_unsure, missing_in
from attncheck.limits import Worker
from attncheck.projections import find
from attncheck.subject import Failure, guarded, seed_everything

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
        if inspect.isroutine(given) and _wants_nothing(given):
            given = guarded(worker, given, "constructor_raises")  # it builds the layer
        self.given = given
        self.worker = worker
        self.notes: list[str] = []
        self.mapped: dict[str, str] = {}
        self.arguments: dict[str, Any] = {}
        self.config = config
        self.is_class = inspect.isclass(given)
        self._asked = set(arguments)
        self._by_default = False
        whole_sizes(arguments)
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
        self.sizes: dict[str, Any] = {name: arguments.get(name) for name in DEFAULTS}
        for ours, theirs in self.mapped.items():
            if ours in self.sizes:
                self.sizes[ours] = self.arguments[theirs]

    def _take_class(self, given: type, arguments: dict[str, Any], causal: bool) -> None:
        if not issubclass(given, nn.Module):
            raise UnusableError(
                f"{given.__name__} is a class, but not a torch.nn.Module. Derive it "
                f"from nn.Module, or pass a function from x to context vectors."
            )
        self.plan = guarded(
            self.worker,
            lambda: constructor_arguments(given, arguments, causal, self.config),
            "constructor_raises",
        )
        self.arguments, self.mapped = self.plan.arguments, self.plan.mapped
        if self.plan.guessed:
            told = ", ".join(f"{n}={v!r}" for n, v in self.plan.guessed.items())
            self.notes.append(f"Guessed from the names: {told}.")
        ignored = [name for name in arguments if self._ignores(name)]
        if ignored:
            self.notes.append(
                f"{given.__name__} doesn't take {', '.join(ignored)}: ignored."
            )
        shown = ", ".join(f"{n}={v!r}" for n, v in self.arguments.items())
        self.label = f"{given.__name__}({shown})"

    def _ignores(self, name: str) -> bool:
        return name not in self.arguments and name not in self.mapped

    def chose(self, name: str) -> bool:
        """Whether nobody asked for the value of an argument."""
        return name not in {*self._asked, *(self.config or {})}

    def rates(self) -> dict[str, float]:
        """Return the arguments that are rates of dropout, each set to 0."""
        return dict.fromkeys(self.plan.rates, 0.0) if self.is_class else {}

    def defaults(self) -> dict[str, Any]:
        """Return what the constructor takes where nothing is given."""
        if not self.is_class:
            return {}
        parameters = parameters_of(self.given).items()
        taken = {n: p.default for n, p in parameters if p.default is not p.empty}
        held = fields_of(self.plan.config[1]) if self.plan.config else {}
        plain = {n: v for n, v in (held or {}).items() if isinstance(v, int | float)}
        return taken | plain

    def ask(self, text: str) -> bool:
        """Give the setting that a text says forward lacks; return whether it was."""
        if not self.is_class or not self.plan.config:
            return False
        missing, (name, kind, names) = missing_in(text), self.plan.config
        found, value = guess(missing or "", DEFAULTS | self.sizes)
        if not missing or not found or missing in names:
            return False
        self.plan.config = name, kind, names | {missing}
        self.arguments[missing] = value
        return True

    def own_defaults(self) -> bool:
        """Leave to the constructor what has a default; return whether that is news."""
        if not self.is_class or self.plan.config or self._by_default:
            return False
        self._by_default = True
        parameters = parameters_of(self.given)
        needed = {
            name: value
            for name, value in self.arguments.items()
            if name in self._asked
            or name not in parameters
            or parameters[name].default is inspect.Parameter.empty
        }
        if needed == self.arguments:
            return False
        self.arguments.clear()
        self.arguments.update(needed)
        self.sizes = dict.fromkeys(self.sizes)
        for ours, theirs in self.mapped.items():
            default = parameters[theirs].default
            value = needed.get(theirs, default)
            if ours in self.sizes and isinstance(value, int | float):
                self.sizes[ours] = value
        return True

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

        return guarded(self.worker, job, "constructor_raises")

    def build_otherwise(self, failure: Failure) -> nn.Module:
        """Build it with other sizes, or with its own; return the module and a note.

        Raises:
            Failure: as it was, if no sizes are right for the constructor.
        """
        named = [int(number) for number in re.findall(r"\b\d+\b", str(failure))]
        widths = [n for n in named if 2 < n <= 1024] + [32, 64, 128, 512]
        ours = [n for n in ("d_in", "d_out") if n in self.mapped]
        ours = [n for n in ours if self.mapped[n] not in self._asked]
        guessed = self.plan.guessed if self.is_class else {}
        others = [n for n, v in guessed.items() if v == DEFAULTS["d_in"]]
        for width in dict.fromkeys(widths) if ours or others else ():
            with contextlib.suppress(Failure, UnusableError):
                own = dict.fromkeys(others, width)
                module = self.build(own=own, **dict.fromkeys(ours, width))
                self.arguments |= own
                for name in ours:
                    self.arguments[self.mapped[name]] = self.sizes[name] = width
                self.notes.append(
                    f"Built with a width of {width}; {DEFAULTS['d_in']} failed."
                )
                return module
        if self.is_class and (made := self._with_more()) is not None:
            return made
        for module in self.built_with_others():
            return module
        if self.is_class and self.own_defaults():
            with contextlib.suppress(Failure, UnusableError):
                module = self.build()
                self.notes.append("Built with its constructor's default values.")
                return module
        if self.is_class and self.plan.asks:
            raise UnusableError(self.plan.asks)
        raise failure

    def built_with_others(self) -> Iterator[nn.Module]:
        """Yield modules with other values for what was guessed, as they are built."""
        kept, changes = dict(self.arguments), self._others() if self.is_class else []
        alone = [{name: value} for change in changes for name, value in change.items()]
        whole = {n: v for change in reversed(changes) for n, v in change.items()}
        for change in [*changes, *(alone if len(changes) < len(alone) else []), whole]:
            if not change:
                continue
            self.arguments.clear()
            self.arguments |= kept | change
            with contextlib.suppress(Failure, UnusableError):
                module = self.build()
                for ours, theirs in self.mapped.items():
                    if theirs in change and ours in self.sizes:
                        self.sizes[ours] = change[theirs]
                told = ", ".join(
                    f"{n}={getattr(v, '__name__', v)}" for n, v in change.items()
                )
                self.notes.append(f"Built with {told}; it failed without.")
                yield module
                self.notes.pop()
        self.arguments.clear()
        self.arguments |= kept

    def _others(self) -> list[dict[str, Any]]:
        """Return other values for arguments that nobody gave, likely ones first."""
        h = self.sizes["num_heads"] or DEFAULTS["num_heads"]
        d_in, guessed = self.sizes["d_in"] or DEFAULTS["d_in"], self.plan.guessed
        free = {n: v for n, v in guessed.items() if n not in self.mapped.values()}
        values = self.defaults() | self.arguments
        widths = [n for n in HEAD_WIDTHS if type(values.get(n)) is int]
        changes: list[dict[str, Any]] = [
            {n: d_in // h for n in widths if self.chose(n)},
            {m: h * values[n] for n in widths if not self.chose(n)
             for m in [*self.mapped.values()][: "d_in" in self.mapped]},
            {n: h for n in free if is_kv_heads(n)},
            {n: 16 for o, n in self.mapped.items()
             if o == "context_length" and self.chose(o) and self.chose(n)},
            {n: d_in for n, v in free.items() if v == d_in // h and "head" not in n},
            {n: 0 for n in free if is_unsure(n)},
            *({n: size for n, v in free.items() if v is None and "window" in n}
              for size in (3, (2, 4))),
        ]  # fmt: skip
        acts = [n for n, v in free.items() if v == "gelu"]
        changes += [dict.fromkeys(acts, act) for act in (nn.GELU, nn.functional.gelu)]
        same = [{n: v for n, v in c.items() if values.get(n) != v} for c in changes]
        return [change for change in same if change]

    def _with_more(self) -> nn.Module | None:
        """Give what is None by default and can't be left out; return the module."""
        parameters = parameters_of(self.given)
        more = {}
        for name, parameter in parameters.items():
            if parameter.default is not None or name in self.arguments:
                continue
            found, value = guess(name, DEFAULTS | self.sizes)
            if re.match(r"act|norm", name):
                found, value = True, nn.Identity
            if found and value is not None:
                more[name] = value
        if not more or self.plan.config:
            return None
        kept = dict(self.arguments)
        self.arguments |= more
        with contextlib.suppress(Failure, UnusableError):
            module = self.build()
            told = ", ".join(
                f"{n}={getattr(v, '__name__', v)}" for n, v in more.items()
            )
            self.notes.append(f"Built with {told}; it failed without.")
            return module
        self.arguments.clear()
        self.arguments |= kept
        return None

    def complete_sizes(self, module: nn.Module) -> None:
        """Read from the built module the sizes that no argument told."""
        sizes = self.sizes
        for name in ("d_in", "context_length", "num_heads"):
            if sizes[name] is None:
                sizes[name] = size_held(module, name)
        if is_lazy(module):
            sizes["d_in"] = sizes["d_in"] or DEFAULTS["d_in"]
            return
        readings = find(module, sizes["num_heads"], sizes["d_in"])
        if readings and not ("d_in" in self.mapped and self.is_class):
            sizes["d_in"] = readings[0].d_in
        if sizes["d_in"] is None:
            sizes["d_in"] = _last_width(module) or DEFAULTS["d_in"]
        if sizes["context_length"] is None:
            sizes["context_length"] = _mask_length(module)


def _wants_nothing(given: Any) -> bool:
    """Whether a function takes no argument, so that it can be no layer."""
    with contextlib.suppress(TypeError, ValueError):  # some of C tell no arguments
        return not inspect.signature(given).parameters
    return False


def size_held(module: nn.Module, ours: str) -> int | None:
    """Return an integer that the module keeps under one of the known names."""
    configs = [getattr(module, name, None) for name in ("config", "cfg", "args")]
    for holder in (module, *configs):
        for name in ALIASES[ours]:
            value = getattr(holder, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return None


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
