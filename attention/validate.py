"""Checks of every layer's sizes and input, with their error messages.

Each message says what was expected, what was given, and what to do. Without the check,
a wrong shape would fail somewhere inside a matrix product or, worse, not at all.
Caches, checkpoints and meshes are checked in their own modules.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import torch


def sizes(**named: object) -> None:
    """Require every keyword argument to be a positive integer; ``True`` isn't one."""
    for name, value in named.items():
        if not isinstance(value, Integral) or isinstance(value, bool):
            raise TypeError(
                f"{name} must be a positive integer, but got {value!r} "
                f"({type(value).__name__}). Pass a whole number such as {name}=2."
            )
        if value < 1:
            raise ValueError(
                f"{name} must be a positive integer, but got {value}. Pass a whole "
                f"number of at least 1."
            )


def dropout_rate(dropout: object) -> None:
    """Require ``dropout`` to be a number from 0 up to, but not including, 1."""
    if not isinstance(dropout, Real) or isinstance(dropout, bool):
        raise TypeError(
            f"dropout must be a number in [0, 1), but got {dropout!r} "
            f"({type(dropout).__name__}). Pass 0.0 for no dropout."
        )
    if not 0 <= float(dropout) < 1:
        raise ValueError(
            f"dropout must be a number in [0, 1), but got {dropout}. Pass the fraction "
            f"of attention weights to drop: 0.0 drops none, 0.1 a tenth."
        )


def divisible(**named: int) -> None:
    """Require the second of two keyword arguments to divide the first."""
    (whole, n), (part, parts) = named.items()
    if n % parts != 0:
        choices = ", ".join(str(i) for i in range(1, n + 1) if n % i == 0)
        raise ValueError(
            f"{whole} must be divisible by {part}, but got {whole}={n} and "
            f"{part}={parts}, which leaves a remainder of {n % parts}. For "
            f"{whole}={n}, {part} can be {choices}."
        )


def instance(name: str, value: object, kind: type, advice: str) -> None:
    """Require ``value`` to be an instance of ``kind``."""
    if not isinstance(value, kind):
        raise TypeError(
            f"{name} must be a {kind.__name__}, but got {type(value).__name__}. "
            f"{advice}"
        )


def floats(name: str, x: torch.Tensor, advice: str) -> None:
    """Require a floating-point tensor."""
    if not x.is_floating_point():
        raise TypeError(
            f"{name} must contain floating-point numbers, but its dtype is {x.dtype}. "
            f"{advice}"
        )


# Other dtypes are those of quantized parameters, whose layer converts x itself.
PLAIN_DTYPES = {torch.float16, torch.bfloat16, torch.float32, torch.float64}


def same_kind(name: str, x: torch.Tensor, weight: Any) -> None:
    """Require ``x`` in the dtype and on the device of a layer's parameters.

    Args:
        name: what the caller calls ``x``.
        x: a floating-point tensor.
        weight: one of the layer's parameters. A quantized layer has a method
            ``weight`` instead; it checks ``x`` itself, so anything that is not a
            tensor is ignored here.
    """
    if not isinstance(weight, torch.Tensor):
        return
    differs = x.dtype != weight.dtype and weight.dtype in PLAIN_DTYPES
    if differs and not _autocast_is_on(x.device.type):
        raise TypeError(
            f"{name} must have the dtype of the layer's parameters, {weight.dtype}, "
            f"but got {x.dtype}. Pass {name}.to({weight.dtype}), or convert the layer "
            f"with layer.to({x.dtype})."
        )
    # Offloaded parameters stay on the meta device until their own layer is called.
    if x.device != weight.device and not weight.is_meta:
        raise ValueError(
            f"{name} must be on the device of the layer's parameters, {weight.device}, "
            f"but is on {x.device}. Pass {name}.to('{weight.device}'), or move the "
            f"layer with layer.to('{x.device}')."
        )


def _autocast_is_on(device_type: str) -> bool:
    """Return whether each operation converts its input to autocast's dtype."""
    if torch.__version__ >= "2.4":
        return torch.is_autocast_enabled(device_type)
    return torch.is_autocast_enabled() or torch.is_autocast_cpu_enabled()


def scores(x: torch.Tensor) -> None:
    """Require at least one floating-point score along dimension 0."""
    _tensor(x, "scores")
    floats("x", x, "Convert it with x.float().")
    if x.dim() == 0 or len(x) == 0:
        raise ValueError(
            f"x must contain at least one score along dimension 0, but got shape "
            f"{tuple(x.shape)}. Pass a vector such as torch.tensor([0.5, 1.0])."
        )


def _tensor(x: object, contents: str) -> None:
    if not isinstance(x, torch.Tensor):
        raise TypeError(
            f"x must be a tensor of {contents}, but got {type(x).__name__}. Convert it "
            f"with torch.tensor(x, dtype=torch.float32): NumPy's default is float64, "
            f"the layers' is float32."
        )


# Allowed numbers of dimensions of x, and how to write such a shape.
EXPECTED = {(3,): "(b, t, d_in)", (2, 3): "(t, d_in) or (b, t, d_in)"}
# For x with one dimension too few.
UNSQUEEZE = {
    (2, (3,)): "For one sequence, x.unsqueeze(0) makes a batch of one.",
    (1, (2, 3)): "For one token, x.unsqueeze(0) makes a sequence of one.",
}


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
        weight: a parameter that is multiplied with ``x``, so both need one dtype and
            one device.
    """
    _tensor(x, f"shape {EXPECTED[dims]}")
    advice = "Pass token ids through an embedding first; convert others with x.float()."
    floats("x", x, advice)
    n, shape = x.dim(), tuple(x.shape)
    if n not in dims:
        advice = "Use one dimension each for batch, tokens and features."
        raise ValueError(
            f"x must have shape {EXPECTED[dims]}, but got {shape} with {n} dimensions. "
            f"{UNSQUEEZE.get((n, dims), advice)}"
        )
    t, width = shape[-2:]
    if d_in is not None and width != d_in:
        raise ValueError(
            f"the last dimension of x must be d_in={d_in}, but got {width} in shape "
            f"{shape}. Pass token vectors of width {d_in}, or build the layer with "
            f"d_in={width}."
        )
    if t == 0 or width == 0:
        raise ValueError(
            f"x must contain at least one token with at least one coordinate, but got "
            f"shape {shape}. Softmax over nothing is undefined: leave out sequences "
            f"without tokens."
        )
    if context_length is not None and t > context_length:
        raise ValueError(
            f"x has {t} tokens, but this layer takes at most "
            f"context_length={context_length}. Pass x[:, -{context_length}:], or build "
            f"the layer with context_length={t}."
        )
    same_kind("x", x, weight)


def mask_is_there(mask: torch.Tensor, x: torch.Tensor) -> None:
    """Require a mask with values: PyTorch treats an empty one as no mask."""
    if mask.is_meta and not x.is_meta:
        raise ValueError(
            "this layer's causal mask is on the meta device and has no values, so "
            "nothing would hide the future. Load a state dict with "
            "load_state_dict(state, assign=True), which restores the mask."
        )
