"""What every layer requires of its sizes and its input, and what it says otherwise.

A condition has one sentence: what was expected, what was given, what to do. A shape
that does not fit would fail anyway, somewhere inside a matrix product, or worse, would
not. What a cache, a checkpoint or a mesh requires stands in its own module.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import NamedTuple

import torch


class Condition(NamedTuple):
    """What is raised where something does not hold, as a template for ``format``."""

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
    "dropout must be a number in [0, 1), but got {value}. Pass the share of weights to "
    "drop: 0.0 drops none, 0.1 a tenth.",
)
DIVISIBLE = Condition(
    ValueError,
    "{whole} must be divisible by {part}, but got {whole}={n} and {part}={parts}, "
    "which leaves {rest} over. For {whole}={n}, {part} can be {choices}.",
)
INSTANCE = Condition(
    TypeError, "{name} must be a {kind}, but got {value.__class__.__name__}. {advice}"
)
TENSOR = Condition(
    TypeError,
    "x must be a tensor of {what}, but got {x.__class__.__name__}. Wrap the numbers in "
    "torch.tensor(...).",
)
FLOATS = Condition(
    TypeError,
    "{name} must hold floating-point numbers, but its dtype is {dtype}. {advice}",
)
SCORES = Condition(
    ValueError,
    "x must hold at least one score along dimension 0, but got the shape {shape}. Pass "
    "a vector such as torch.tensor([0.5, 1.0]).",
)
DIMENSIONS = Condition(
    ValueError,
    "x must have the shape {expected}, but got {shape} with {n} dimensions. {advice}",
)
WIDTH = Condition(
    ValueError,
    "the last dimension of x must be d_in={d_in}, but got {given} in the shape {shape}."
    " Pass token vectors {d_in} wide or build the layer with d_in={given}.",
)
SOMETHING = Condition(
    ValueError,
    "x must hold at least one token and one number for each, but got the shape {shape}."
    " Softmax over nothing has no value: leave out sequences without tokens.",
)
LENGTH = Condition(
    ValueError,
    "x holds {t} tokens, but context_length={limit} is the most that this layer takes. "
    "Pass x[:, -{limit}:] or build the layer with context_length={t}.",
)
MASK = Condition(
    ValueError,
    "the causal mask of this layer is on the meta device and holds no numbers, so "
    "nothing would hide the future. Load a state dict into the layer with "
    "load_state_dict(state, assign=True), which restores the mask.",
)


def sizes(**named: object) -> None:
    """Require every keyword argument to be a positive integer; ``True`` is none."""
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
    """Require ``value`` to be an object of the class ``kind``."""
    holds = isinstance(value, kind)
    require(holds, INSTANCE, name=name, value=value, kind=kind.__name__, advice=advice)


def floats(name: str, x: torch.Tensor, advice: str) -> None:
    """Require a tensor to hold floating-point numbers."""
    require(x.is_floating_point(), FLOATS, name=name, dtype=x.dtype, advice=advice)


def scores(x: torch.Tensor) -> None:
    """Require ``x`` to hold at least one floating-point score along dimension 0."""
    require(isinstance(x, torch.Tensor), TENSOR, what="scores", x=x)
    floats("x", x, "Convert it with x.float().")
    require(x.dim() > 0 and len(x) > 0, SCORES, shape=tuple(x.shape))


# The numbers of dimensions that x may have, and how such a shape is written.
EXPECTED = {(3,): "(b, t, d_in)", (2, 3): "(t, d_in) or (b, t, d_in)"}
# For x with one dimension less than the least that is allowed.
UNSQUEEZE = {
    (2, (3,)): "For one sequence, x.unsqueeze(0) makes a batch of one.",
    (1, (2, 3)): "For one token, x.unsqueeze(0) makes a sequence of one.",
}
EMBED = "Token ids go through an embedding first; other numbers through x.float()."
RESHAPE = "Use one dimension each for batch, tokens and features."


def tokens(
    x: torch.Tensor,
    d_in: int | None = None,
    dims: tuple[int, ...] = (3,),
    context_length: int | None = None,
) -> None:
    """Require ``x`` to hold token vectors that the caller can compute with.

    Args:
        x: what was passed in; right is a floating-point tensor (…, t, d_in).
        d_in: the width that the weights expect; ``None`` allows any.
        dims: the numbers of dimensions that are allowed, a key of ``EXPECTED``.
        context_length: the most tokens allowed; ``None`` sets no limit.
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


def mask_is_there(mask: torch.Tensor, x: torch.Tensor) -> None:
    """Require a mask that holds numbers: PyTorch takes an empty one for no mask."""
    require(not mask.is_meta or x.is_meta, MASK)
