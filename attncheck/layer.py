"""What a layer does besides attention, as a reader declares it or as it is found."""

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from attncheck.errors import UnusableError

NORMS = ("layer", "rms", "l2")
PAIRINGS = ("halves", "neighbors")
Numbers = tuple[Any, ...]  # weight or None, bias or None, epsilon if it is known


@dataclass(frozen=True)
class Rope:
    """Rotary positions.

    Attributes:
        pairing: "halves" pairs number i with i + d_head / 2, "neighbors" 2i with 2i+1.
        base: pair i turns by base to the power of -2i / d_head with each token.
        share: the part of d_head that is rotated.
    """

    pairing: str = "halves"
    base: float = 10000.0
    share: float | Fraction = 1.0

    def words(self) -> str:
        """Return how pairs turn, in words."""
        told = f"pairs of {self.pairing}, base {self.base:g}"
        return told + (f", {float(self.share):g} of each head" * (self.share != 1))


@dataclass(frozen=True)
class Layer:
    """What acts besides attention. Without anything: plain attention.

    Attributes:
        rope: rotary positions of queries and keys.
        window: how many tokens one sees, itself included.
        qk_norm: the norm of queries and keys within each head.
        prenorm: the norm of the input.
        residual: the input is added to the output.
        postnorm: the norm of that sum; found, but no option.
        memory: how many tokens of a fixed memory make the keys and values.
        sink: one more learned score for each head, with no value.
        documents: two documents in each row, which do not see each other.
        scale: what scores are multiplied with; None for 1/√d_head.
        bias: what is added to the scores, a function (module, t) or a tensor.
        norms: what a norm is multiplied with and added, by place: "x", "q", "k"; at
            "sink", the sinks.
        open: what was left open by whoever described the layer.
    """

    rope: Rope | None = None
    window: int | None = None
    qk_norm: str | None = None
    prenorm: str | None = None
    residual: bool = False
    postnorm: str | None = None
    memory: int | None = None
    sink: bool = False
    documents: bool = False
    scale: str | float | None = None
    bias: Any = None
    norms: tuple[tuple[str, Numbers], ...] = ()
    open: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether nothing acts."""
        return self.words() == "nothing else"

    def norm_of(self, place: str) -> Numbers:
        """Return (weight or None, bias or None) of what acts at "x", "q", "k", …."""
        return dict(self.norms).get(place, (None, None))

    def words(self) -> str:
        """Return what acts, in words."""
        told = {
            "rope": self.rope and f"rotary positions ({self.rope.words()})",
            "window": self.window and f"a window of {self.window}",
            "qk_norm": self.qk_norm and f"a norm of queries and keys ({self.qk_norm})",
            "prenorm": self.prenorm and f"a norm of the input ({self.prenorm})",
            "residual": self.residual and "the input added",
            "postnorm": self.postnorm and f"a norm of the sum ({self.postnorm})",
            "memory": self.memory and f"a memory of {self.memory} tokens",
            "sink": self.sink and "a sink for each head",
            "documents": self.documents and "documents packed into one row",
            "scale": self.scale is not None and f"scores multiplied by {self.scale}",
            "bias": self.bias is not None and "a bias on the scores",
        }
        acting = [str(words) for words in told.values() if words]
        return ", ".join(acting) or "nothing else"


_FOUND = ("postnorm", "norms", "open")
OPTIONS = tuple(f.name for f in fields(Layer) if f.name not in _FOUND)
SCALES = {"none": "1", "1/d": "1/d_head", "1/sqrt(d)": "1/√d_head"}


def describe_layer(
    rope: Any = None, qk_norm: Any = None, prenorm: Any = None, **others: Any
) -> Layer:
    """Make a :class:`Layer` from the arguments of :func:`attention.check`.

    Raises:
        UnusableError: a value that means nothing.
    """
    norms = {"qk_norm": qk_norm, "prenorm": prenorm}
    for name, value in norms.items():
        value = "layer" if value is True else value or None
        if value is not None and value not in NORMS:
            raise UnusableError(
                f"{name} must be one of {', '.join(NORMS)}, but got {value!r}."
            )
        norms[name] = value
    for name in ("window", "memory"):
        size = others.get(name)
        if size is not None and (type(size) is not int or size < 1):
            raise UnusableError(f"{name} must be a whole number ≥ 1, got {size!r}.")
    for name in ("residual", "sink", "documents"):
        if others.get(name, False) not in (True, False, None):
            raise UnusableError(f"{name} must be True or False, got {others[name]!r}.")
        others[name] = bool(others.get(name))
    others["scale"] = _scale(others.get("scale"))
    rope, left = _rope(rope)
    opened = ["qk_norm"] if qk_norm is True else []
    return Layer(rope=rope, **norms, **others, open=(*opened, *left))


def _scale(given: Any) -> str | float | None:
    """Return a name of :func:`attncheck.reference._factor`, or a number."""
    if given is None:
        return None
    try:
        return float(given)
    except (TypeError, ValueError):
        scale = SCALES.get(given)
    if scale is None:
        raise UnusableError(
            f"scale must be a number or one of {', '.join(SCALES)}, but got {given!r}."
        )
    return None if scale == "1/√d_head" else scale


def _rope(given: Any) -> tuple[Rope | None, tuple[str, ...]]:
    """Return (the rotary positions or None, what was left open of them)."""
    if not given or isinstance(given, Rope):
        return given or None, ()
    named = {} if given is True else given
    named = dict(named) if isinstance(named, dict) else {"pairing": given}
    left = [name for name in ("pairing", "base", "share") if name not in named]
    try:
        rope = Rope(**named)
    except TypeError:
        rope = None
    if rope is None or rope.pairing not in PAIRINGS:
        raise UnusableError(
            f"rope must be True, one of {', '.join(PAIRINGS)}, or a dictionary with "
            f"pairing, base and share, but got {given!r}."
        )
    return rope, tuple(f"rope.{name}" for name in left)


def memory_tokens(count: int, like: Tensor, width: int | None = None) -> Tensor:
    """Return the same random memory (b, count, width) for each of (b, t, d)."""
    b, _, d = like.shape
    d = width or d
    memory = torch.randn(count, d, generator=torch.Generator().manual_seed(91))
    return memory.to(like).expand(b, count, d)


def document_of(t: int) -> Tensor:
    """Return the number of each token's document (t): the first has four tokens."""
    return (torch.arange(t) >= 4).long()


def rotate(
    x: Tensor, rope: Rope, positions: Tensor, width: int | None = None
) -> Tensor:
    """Rotate pairs of the last axis of x (b, h, t, d) by angles (t) · frequencies.

    Raises:
        RuntimeError: an odd number of entries has no pairs.
    """
    d = int(x.shape[-1] * rope.share)
    if d % 2:
        raise RuntimeError("an odd number of entries has no pairs")
    turned, rest = x[..., :d], x[..., d:]
    steps = torch.arange(0, d, 2, dtype=x.dtype)
    angles = positions[:, None] * rope.base ** (-steps / (width or d))
    cos, sin = angles.cos(), angles.sin()  # (t, d / 2)
    if rope.pairing == "halves":
        one, two = turned.chunk(2, dim=-1)
        turned = torch.cat([one * cos - two * sin, two * cos + one * sin], dim=-1)
    elif rope.pairing == "neighbors":
        one, two = turned[..., ::2], turned[..., 1::2]
        turned = torch.stack([one * cos - two * sin, two * cos + one * sin], dim=-1)
        turned = turned.flatten(-2)
    else:  # a table for one pairing, and the rotation of the other
        turned = _rotate_mismatched(turned, cos, sin, rope.pairing)
    return torch.cat([turned, rest], dim=-1)


def _rotate_mismatched(x: Tensor, cos: Tensor, sin: Tensor, which: str) -> Tensor:
    if which == "halves with a table of neighbors":
        cos, sin = cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
        one, two = x.chunk(2, dim=-1)
        return x * cos + torch.cat([-two, one], dim=-1) * sin
    cos, sin = cos.repeat(1, 2), sin.repeat(1, 2)
    swapped = torch.stack([-x[..., 1::2], x[..., ::2]], dim=-1).flatten(-2)
    return x * cos + swapped * sin


def normalize(x: Tensor, how: str | None, pair: Numbers) -> Tensor:
    """Normalize over the last axis, as LayerNorm, RMSNorm or to length 1."""
    weight, bias, *eps = pair
    if how == "l2":
        x = x / x.norm(dim=-1, keepdim=True).clamp_min(1e-12)
    else:
        centered = x - x.mean(dim=-1, keepdim=True) if how == "layer" else x
        size = centered.square().mean(dim=-1, keepdim=True)
        x = centered / (size + (eps[0] if eps else 1e-5)).sqrt()
    if weight is not None and weight.shape[-1] == x.shape[-1]:
        x = x * weight.double()
    if bias is not None and bias.shape[-1] == x.shape[-1]:
        x = x + bias.double()
    return x
