"""Watches a forward pass: which products, which softmax, and on which line.

Functions of PyTorch are watched as they are called, so it does not matter how the
class is written. Nothing is read from the source but the line to quote.
"""

import linecache
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

OURS = str(Path(__file__).parent)
LIBRARY = str(Path(torch.__file__).parent)
PRODUCTS = ("linear", "matmul", "__matmul__", "mm", "bmm", "addmm")
Line = tuple[str, int, str]  # file, number, text
Arguments = tuple[Any, ...]
Nudge = tuple[int, Callable[[Tensor], Tensor]]
# Name, kind, width, weight, bias, epsilon.
Norm = tuple[str, str, int, Tensor, Tensor | None, float]
# Functions that plain attention doesn't call.
EXTRAS = {
    "layer_norm": "a norm",
    "rms_norm": "a norm",
    "group_norm": "a norm",
    "batch_norm": "a norm",
    "normalize": "a norm",
    "rsqrt": "a norm",
    "norm": "a norm",
    "std": "a norm",
    "var": "a norm",
    "cos": "a table of positions",
    "polar": "a table of positions",
    "view_as_complex": "a table of positions",
    "embedding": "an embedding",
    "conv1d": "a convolution",
    "conv2d": "a convolution",
    "tanh": "a cap or a gate",
    "sigmoid": "a gate",
    "topk": "a choice of some scores",
}


@dataclass
class Product:
    """One linear map with weights of the module.

    Attributes:
        weight, bias: (out, in) and (out) or None, as they acted.
        output: what came out.
        place: when it was called, among all watched calls.
    """

    weight: Tensor
    bias: Tensor | None
    output: Tensor
    place: int


@dataclass
class Seen:
    """What was called in one forward pass.

    Attributes:
        products: list of :class:`Product`.
        softmaxes: (place, output) of each softmax.
        fused: (query, key, value) of each fused attention.
        dropouts: (place, shape of the input) of each dropout that acted.
        rates: the rates of these.
        extras: what acts besides attention, in the order of the calls.
        lines: {name of a function: line of its last call}.
    """

    products: list[Product] = field(default_factory=list)
    softmaxes: list[tuple[int, Tensor]] = field(default_factory=list)
    fused: list[tuple[Tensor, Tensor, Tensor]] = field(default_factory=list)
    dropouts: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    extras: list[str] = field(default_factory=list)
    lines: dict[str, Line] = field(default_factory=dict)


class Watch(TorchFunctionMode):
    """Notes calls, and adds to the output of one product where that is asked for.

    Args:
        module: whose parameters and buffers count.
        nudge: (number of the product, tensor to add to its output), or None.
    """

    def __init__(self, module: nn.Module, nudge: Nudge | None = None) -> None:
        super().__init__()
        self.seen = Seen()
        self.nudge = nudge
        self._parameters = {_storage(p) for p in module.parameters()}
        self._tables = {_storage(b) for b in module.buffers() if is_table(b)}
        self._calls = 0

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: Arguments = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        name = getattr(function, "__name__", "")
        if name in ("__get__", "size", "dim", "__len__", "stride"):
            return result
        self._calls += 1
        return self._note(name, args, kwargs, result)

    def _note(
        self, name: str, args: Arguments, kwargs: dict[str, Any], result: Any
    ) -> Any:
        seen = self.seen
        if line := _line():
            seen.lines[name] = line
        if name in PRODUCTS and isinstance(result, Tensor):
            product = self._product(name, args, kwargs, result)
            if product is not None:
                if self.nudge and self.nudge[0] == len(seen.products):
                    result = result + self.nudge[1](result)
                seen.products.append(product)
        elif name in ("softmax", "_softmax"):
            seen.softmaxes.append((self._calls, result))
        elif name == "scaled_dot_product_attention":
            query, key, value = _first(args, kwargs, ("query", "key", "value"))
            seen.fused.append((query, key, value))
            if kwargs.get("dropout_p"):
                seen.dropouts.append((self._calls, (0, 0)))
                seen.rates.append(kwargs["dropout_p"])
        elif name == "dropout":
            rate, training = _rate(args, kwargs)
            if rate and training:
                seen.dropouts.append((self._calls, tuple(args[0].shape)))
                seen.rates.append(rate)
        elif name in EXTRAS:
            self._add_extra(EXTRAS[name])
        if self._tables and name not in ("to", "clone", "detach"):
            for tensor in tensors((args, kwargs)):
                if _storage(tensor) in self._tables:
                    self._add_extra("a table")
        return result

    def _add_extra(self, what: str) -> None:
        if what not in self.seen.extras:
            self.seen.extras.append(what)

    def _product(
        self,
        name: str,
        args: Arguments,
        kwargs: dict[str, Any],
        result: Tensor,
    ) -> Product | None:
        """Return the product if one of its factors is a parameter."""
        bias = None
        if name == "linear":
            weight, bias = _first(args, kwargs, ("input", "weight", "bias"))[1:]
        elif name == "addmm":
            bias, weight = args[0], args[2].T
        else:
            weight = args[1]
            if not isinstance(weight, Tensor) or weight.dim() != 2:
                return None
            weight = weight.T
        if _storage(weight) not in self._parameters or weight.dim() != 2:
            return None
        if isinstance(bias, Tensor) and _storage(bias) not in self._parameters:
            bias = None
        pair = (weight.detach(), None if bias is None else bias.detach())
        return Product(*pair, result, self._calls)


def is_table(buffer: Tensor) -> bool:
    """Whether a buffer holds more numbers than a mask does."""
    if not buffer.is_floating_point() and not buffer.is_complex():
        return False
    if buffer.is_complex():
        return True
    finite = buffer[buffer.isfinite()].flatten()
    return buffer.numel() > 1 and len(finite[:4096].unique()) > 2


def tensors(nested: object) -> Iterator[Tensor]:
    """Yield the tensors of nested lists and dictionaries."""
    if isinstance(nested, Tensor):
        yield nested
    elif isinstance(nested, dict):
        yield from tensors(list(nested.values()))
    elif isinstance(nested, list | tuple):
        for entry in nested:
            yield from tensors(entry)


def norms_of(module: nn.Module) -> list[Norm]:
    """Return a module's norms: (name, kind, width, weight, bias, epsilon)."""
    found = []
    for name, part in module.named_modules():
        kind = type(part).__name__.lower()
        weight = getattr(part, "weight", None)
        if weight is None and not isinstance(part, nn.LayerNorm):
            weight = next((p for p in part.parameters(recurse=False)), None)
        named = "norm" in kind or "rms" in kind or "norm" in name.rpartition(".")[2]
        if not named or weight is None or weight.dim() != 1:
            continue
        which = "rms" if "rms" in kind else "layer"
        bias = getattr(part, "bias", None)
        bias = bias.detach() if isinstance(bias, Tensor) else None
        weight = weight.detach()
        found.append((name, which, len(weight), weight, bias, _eps(part)))
    return found


def _eps(part: nn.Module) -> float:
    for name in ("eps", "epsilon", "variance_epsilon"):
        value = getattr(part, name, None)
        if isinstance(value, float):
            return value
    return 1e-5 if not isinstance(part, _RMS) else torch.finfo(torch.float32).eps


_RMS = getattr(nn, "RMSNorm", ())


def _storage(tensor: Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return id(tensor)


def _first(
    args: Arguments, kwargs: dict[str, Any], names: tuple[str, ...]
) -> Arguments:
    given = dict(zip(names, args, strict=False)) | kwargs
    return tuple(given.get(name) for name in names)


def _rate(args: Arguments, kwargs: dict[str, Any]) -> tuple[float, bool]:
    _, rate, training = _first(args, kwargs, ("input", "p", "training"))
    return 0.5 if rate is None else rate, True if training is None else training


def _line() -> Line | None:
    """Return (file, number, text) of the innermost line of the reader's code."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((OURS, LIBRARY)) and "contextlib" not in name:
            text = linecache.getline(name, frame.f_lineno).strip()
            # Only our own frames are further out, so the reader's code isn't involved.
            return (name, frame.f_lineno, text) if "threading" not in name else None
        frame = frame.f_back
    return None
