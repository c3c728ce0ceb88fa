"""Checks of every layer's sizes and input, with their error messages.

Each message says what was expected, what was given, and what to do. Without the check,
a wrong shape would fail somewhere inside a matrix product or, worse, not at all.
Caches, checkpoints and meshes are checked in their own modules.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, NamedTuple

import torch


class Condition(NamedTuple):
    """The error to raise, with its message as a template for ``format``."""

    error: type[Exception]
    sentence: str


def require(holds: bool, condition: Condition, **given: object) -> None:
    """Raise the error of ``condition``, filled with what was ``given``, if it fails."""
    if not holds:
        raise condition.error(condition.sentence.format(**given))


WHOLE = Condition(
    TypeError,
    "{name} must be a positive integer, but got {value!r} ({value.__class__.__name__})."
    " Pass a whole number such as {name}=2.",
)
POSITIVE = Condition(
    ValueError,
    "{name} must be a positive integer, but got {value}. Pass a whole number of at "
    "least 1.",
)
NUMBER = Condition(
    TypeError,
    "dropout must be a number in [0, 1), but got {value!r} ({value.__class__.__name__})"
    ". Pass 0.0 for no dropout.",
)
SHARE = Condition(
    ValueError,
    "dropout must be a number in [0, 1), but got {value}. Pass the fraction of "
    "attention weights to drop: 0.0 drops none, 0.1 a tenth.",
)
DIVISIBLE = Condition(
    ValueError,
    "{whole} must be divisible by {part}, but got {whole}={n} and {part}={parts}, "
    "which leaves a remainder of {rest}. For {whole}={n}, {part} can be {choices}.",
)
INSTANCE = Condition(
    TypeError, "{name} must be a {kind}, but got {value.__class__.__name__}. {advice}"
)
TENSOR = Condition(
    TypeError,
    "x must be a tensor of {what}, but got {x.__class__.__name__}. Convert it "
    "with torch.tensor(x, dtype=torch.float32): NumPy's default is float64, the "
    "layers' is float32.",
)
FLOATS = Condition(
    TypeError,
    "{name} must contain floating-point numbers, but its dtype is {dtype}. {advice}",
)
SCORES = Condition(
    ValueError,
    "x must contain at least one score along dimension 0, but got shape {shape}. Pass "
    "a vector such as torch.tensor([0.5, 1.0]).",
)
DIMENSIONS = Condition(
    ValueError,
    "x must have shape {expected}, but got {shape} with {n} dimensions. {advice}",
)
WIDTH = Condition(
    ValueError,
    "the last dimension of x must be d_in={d_in}, but got {given} in shape {shape}. "
    "Pass token vectors of width {d_in}, or build the layer with d_in={given}.",
)
SOMETHING = Condition(
    ValueError,
    "x must contain at least one token with at least one coordinate, but got shape "
    "{shape}. Softmax over nothing is undefined: leave out sequences without tokens.",
)
LENGTH = Condition(
    ValueError,
    "x has {t} tokens, but this layer takes at most context_length={limit}. Pass "
    "x[:, -{limit}:], or build the layer with context_length={t}.",
)
DTYPE = Condition(
    TypeError,
    "{name} must have the dtype of the layer's parameters, {weight.dtype}, but got "
    "{x.dtype}. Pass {name}.to({weight.dtype}), or convert the layer with "
    "layer.to({x.dtype}).",
)
DEVICE = Condition(
    ValueError,
    "{name} must be on the device of the layer's parameters, {weight.device}, but is on"
    " {x.device}. Pass {name}.to('{weight.device}'), or move the layer with "
    "layer.to('{x.device}').",
)
MASK = Condition(
    ValueError,
    "this layer's causal mask is on the meta device and has no values, so nothing "
    "would hide the future. Load a state dict with load_state_dict(state, "
    "assign=True), which restores the mask.",
)


def sizes(**named: object) -> None:
    """Require every keyword argument to be a positive integer; ``True`` isn't one."""
    for name, value in named.items():
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        require(whole, WHOLE, name=name, value=value)
        require(value >= 1, POSITIVE, name=name, value=value)  # type: ignore[operator]


def dropout_rate(dropout: object) -> None:
    """Require ``dropout`` to be a number from 0 up to, but not including, 1."""
    number = isinstance(dropout, Real) and not isinstance(dropout, bool)
    require(number, NUMBER, value=dropout)
    require(0 <= float(dropout) < 1, SHARE, value=dropout)  # type: ignore[arg-type]


def divisible(**named: int) -> None:
    """Require the second of two keyword arguments to divide the first."""
    (whole, n), (part, parts) = named.items()
    if n % parts != 0:
        choices = ", ".join(str(i) for i in range(1, n + 1) if n % i == 0)
        facts = {"rest": n % parts, "choices": choices}
        require(False, DIVISIBLE, whole=whole, n=n, part=part, parts=parts, **facts)


def instance(name: str, value: object, kind: type, advice: str) -> None:
    """Require ``value`` to be an instance of ``kind``."""
    holds = isinstance(value, kind)
    require(holds, INSTANCE, name=name, value=value, kind=kind.__name__, advice=advice)


def floats(name: str, x: torch.Tensor, advice: str) -> None:
    """Require a floating-point tensor."""
    require(x.is_floating_point(), FLOATS, name=name, dtype=x.dtype, advice=advice)


# Other dtypes are those of quantized parameters, whose layer converts x itself.
PLAIN_DTYPES = {torch.float16, torch.bfloat16, torch.float32, torch.float64}


def same_kind(name: str, x: torch.Tensor, weight: Any) -> None:
    """Require ``x`` in the dtype and on the device of a layer's parameters.

    Args:
        name: what the caller calls ``x``.
        x: a floating-point tensor.
        weight: one of the layer's parameters. Anything else is left to the layer, such
            as the method ``weight`` of a quantized one.
    """
    if not isinstance(weight, torch.Tensor):
        return
    if x.dtype != weight.dtype and weight.dtype in PLAIN_DTYPES:
        # Under autocast, each operation converts its input.
        require(_autocast_is_on(x.device.type), DTYPE, name=name, x=x, weight=weight)
    # Offloaded parameters stay on meta until their own layer is called.
    there = x.device == weight.device or weight.is_meta
    require(there, DEVICE, name=name, x=x, weight=weight)


def _autocast_is_on(device_type: str) -> bool:
    if torch.__version__ >= "2.4":
        return torch.is_autocast_enabled(device_type)
    return torch.is_autocast_enabled() or torch.is_autocast_cpu_enabled()


def scores(x: torch.Tensor) -> None:
    """Require at least one floating-point score along dimension 0."""
    require(isinstance(x, torch.Tensor), TENSOR, what="scores", x=x)
    floats("x", x, "Convert it with x.float().")
    require(x.dim() > 0 and len(x) > 0, SCORES, shape=tuple(x.shape))


# Allowed numbers of dimensions of x, and how to write such a shape.
EXPECTED = {(3,): "(b, t, d_in)", (2, 3): "(t, d_in) or (b, t, d_in)"}
# For x with one dimension too few.
UNSQUEEZE = {
    (2, (3,)): "For one sequence, x.unsqueeze(0) makes a batch of one.",
    (1, (2, 3)): "For one token, x.unsqueeze(0) makes a sequence of one.",
}
EMBED = "Pass token ids through an embedding first; convert others with x.float()."
RESHAPE = "Use one dimension each for batch, tokens and features."


def tokens(
    x: torch.Tensor,
    d_in: int | None = None,
    dims: tuple[int, ...] = (3,),
    context_length: int | None = None,
    weight: Any = None,
) -> None:
    """Require ``x`` to contain token vectors that the caller can use.

    Args:
        x: should be a floating-point tensor (…, t, d_in).
        d_in: the width the parameters expect; ``None`` allows any.
        dims: allowed numbers of dimensions, a key of ``EXPECTED``.
        context_length: maximum number of tokens; ``None`` sets no limit.
        weight: a parameter that ``x`` meets, in the same dtype on the same device.
    """
    expected = EXPECTED[dims]
    require(isinstance(x, torch.Tensor), TENSOR, what=f"shape {expected}", x=x)
    floats("x", x, EMBED)
    n, shape = x.dim(), tuple(x.shape)
    advice = UNSQUEEZE.get((n, dims), RESHAPE)
    require(n in dims, DIMENSIONS, expected=expected, shape=shape, n=n, advice=advice)
    t, width = shape[-2:]
    fits = d_in is None or width == d_in
    require(fits, WIDTH, d_in=d_in, given=width, shape=shape)
    require(t > 0 and width > 0, SOMETHING, shape=shape)
    fits = context_length is None or t <= context_length
    require(fits, LENGTH, t=t, limit=context_length)
    same_kind("x", x, weight)


def mask_is_there(mask: torch.Tensor, x: torch.Tensor) -> None:
    """Require a mask with values: PyTorch treats an empty one as no mask."""
    require(not mask.is_meta or x.is_meta, MASK)
