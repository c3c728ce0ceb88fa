"""What one forward pass took and gave, call by call, and the steps in it."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from attncheck.projections import NAMES
from attncheck.trace import Arguments, Line, Product, Watch, _storage, tensors

CLOSE = 1e-4  # of the largest number
MOST = 400  # tensors that are kept
CONVOLUTIONS = ("conv1d", "conv2d", "conv3d")
CONTRACTIONS = ("matmul", "__matmul__", "__rmatmul__", "bmm", "einsum", "baddbmm")
Settings = tuple[list[Any], dict[str, Any]]
# Name, tensors given, settings, tensor returned.
Call = tuple[str, list[torch.Tensor], Settings, torch.Tensor]


@dataclass(frozen=True)
class Step:
    """A step that is not what is meant.

    Attributes:
        mistake: its name, or "" where it has none.
        stage: the stage of attention.
        seen: what was seen there.
        severity: another severity than usual, or None.
        late: the name that counts where nothing else explains the output.
    """

    mistake: str
    stage: str
    seen: str
    severity: str | None = None
    late: str = ""


class Recorded(Watch):
    """Keeps a copy of what each call took and gave, since later ones may change it."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__(module)
        self.calls: list[Call] = []
        roles = {*NAMES["query"], *NAMES["key"], *NAMES["value"]}
        self.idle = {
            name: p
            for name, p in module.named_parameters()
            if p.dim() == 2 and roles & {*name.lower().replace("_", "").split(".")}
        }

    def _product(self, *call: Any) -> Product | None:
        product = super()._product(*call)
        if product is not None:
            product.output = _copy(product.output)
        return product

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: Arguments = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        name = getattr(function, "__name__", "")
        plain = name in ("__get__", "size", "dim", "__len__", "stride")
        keep = not plain and len(self.calls) < MOST
        given = [_copy(a) for a in tensors((args, kwargs))] if keep else []
        if self.idle and not plain:
            used = {_storage(a) for a in tensors((args, kwargs))}
            self.idle = {n: p for n, p in self.idle.items() if _storage(p) not in used}
        result = super().__torch_function__(function, types, args, kwargs)
        if keep:
            settings = [a for a in args if not isinstance(a, torch.Tensor)]
            if name == "einsum" and len(given) > 2 and isinstance(args[0], str):
                self.calls += _pairwise(args[0], given)
                return result
            for one in tensors(result):
                kept = _copy(one)
                self.calls.append((name, given, (settings, kwargs or {}), kept))
        return result


def _pairwise(equation: str, given: list[torch.Tensor]) -> Iterator[Call]:
    """Yield the products of einsum, two factors at a time."""
    terms, _, out = equation.replace(" ", "").partition("->")
    first, *others = terms.split(",")
    made = given[0]
    for place, other in enumerate(others, 1):
        wanted = set("".join((out, *others[place:])))
        last = place == len(others)
        kept = out if last else "".join(
            label for label in dict.fromkeys(first + other) if label in wanted
        )  # fmt: skip
        both, pair = [made, given[place]], f"{first},{other}->{kept}"
        first, made = kept, torch.einsum(pair, *both)
        yield "einsum", both, ([pair], {}), made


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone()


@dataclass
class Walk:
    """The steps of one forward pass, as (n, t, …) with a batch for each head first.

    Attributes:
        x: the tokens (b, t, d_in).
        y: the output (b, t, width).
        scores: products of queries and keys; ``others`` are added to them.
        taken, weights: what softmax takes and gives.
        mixing, values, context: what is mixed, with what, and the result.
        joined: what the first product behind takes, (b, t, width), or None.
        before, behind: tensors before the scores and behind the context.
        memory: what was projected of as many tokens as there are keys.
        capped: whether as many numbers as there are scores go through tanh.
        idle: matrices for queries, keys or values, by their names, that nothing took.
    """

    x: torch.Tensor
    y: torch.Tensor
    query: torch.Tensor
    key: torch.Tensor
    scores: torch.Tensor
    taken: torch.Tensor
    weights: torch.Tensor
    mixing: torch.Tensor
    values: torch.Tensor
    context: torch.Tensor
    h: int
    others: list[torch.Tensor] = field(default_factory=list)
    projected: list[torch.Tensor] = field(default_factory=list)
    before: list[torch.Tensor] = field(default_factory=list)
    behind: list[Call] = field(default_factory=list)
    extras: dict[str, Line | None] = field(default_factory=dict)
    idle: list[str] = field(default_factory=list)
    memory: list[torch.Tensor] = field(default_factory=list)
    capped: bool = False

    def batch_first(self) -> "Walk":
        """Return it in the usual order, where heads come before sequences."""
        b = len(self.x)
        turned = {
            name: one.unflatten(0, (self.h, b)).transpose(0, 1).flatten(0, 1)
            for name, one in vars(self).items()
            if isinstance(one, torch.Tensor) and name not in ("x", "y")
        }
        return replace(self, **turned)

    @property
    def t(self) -> int:
        """The number of tokens."""
        return self.x.shape[1]

    @property
    def d(self) -> int:
        """The width of a head."""
        return self.query.shape[-1]


def _sinks(walk: Walk) -> list[bool]:
    """Return whether the first and the last column are the same for all tokens."""
    ends = [(walk.taken[: walk.h, :1, at], walk.taken[..., at]) for at in (0, -1)]
    return [_close(one, even.repeat(len(walk.x), walk.t)) for even, one in ends]


def _own(walk: Walk) -> torch.Tensor:
    """Return what softmax takes, without the column of a sink."""
    keys = walk.scores.shape[-1]
    front = walk.taken.shape[-1] == keys + 1 and _sinks(walk) == [True, False]
    return walk.taken[..., 1:] if front else walk.taken[..., :keys]


def _close(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape:
        return False
    other = other.to(one)
    size = float(other.abs().max()) if other.numel() else math.inf
    if math.isfinite(size):
        # Nearly all pairs are far apart or the same, and this tells for less.
        gap = float((one - other).abs().max())
        if gap <= 1e-5 * size or gap > 1.2e-4 * size:
            return gap <= 1e-5 * size
    else:
        finite = other[other.isfinite()]
        size = float(finite.abs().max()) if len(finite) else 1.0
    return torch.allclose(one, other, 1e-4, 1e-5 * size, equal_nan=True)
