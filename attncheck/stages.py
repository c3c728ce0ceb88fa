"""Names the first stage of attention whose numbers differ from the reference's.

What goes into and comes out of the softmax, of the fused function and of the products
without weights is kept as it is computed. This names what was found wrong by the
output; it accuses nobody.
"""

import contextlib
from typing import Any

import torch
from torch import nn

from attncheck.changes import base_recipe
from attncheck.following import followed
from attncheck.layer import Layer
from attncheck.projections import Projections
from attncheck.recorded import _own, _sinks
from attncheck.reference import Computation, Recipe
from attncheck.subject import Subject
from attncheck.trace import PRODUCTS, Arguments, Watch, tensors

TOLERANCE = 1e-4
MOST = 400  # tensors that are kept


class Captured(Watch):
    """Notes the factors and results of products, and what softmax takes and gives.

    Attributes:
        tensors: {"scores", "weights", "factors", "results", "all": tensors in order}.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__(module)
        names = ("scores", "weights", "factors", "results", "all")
        self.tensors: dict[str, list[torch.Tensor]] = {name: [] for name in names}

    def _note(
        self, name: str, args: Arguments, kwargs: dict[str, Any], result: Any
    ) -> Any:
        before = len(self.seen.products)
        result = super()._note(name, args, kwargs, result)
        held = self.tensors
        if len(held["all"]) < MOST:
            held["all"] += tensors(result)
        if name in ("softmax", "_softmax"):
            held["scores"].append(args[0])
            held["weights"].append(result)
        elif name == "scaled_dot_product_attention":
            held["factors"] += list(args[:3])
            held["results"].append(result)
        elif name in PRODUCTS and len(self.seen.products) == before:
            held["factors"] += [a for a in args if isinstance(a, torch.Tensor)]
            held["results"].append(result)
        return result


def first_difference(
    subject: Subject, x: torch.Tensor, reading: Projections, layer: Layer, causal: bool
) -> tuple[str, str]:
    """Return the first stage that differs, or "" where none can be told, and how.

    How: in words, where only a number differs that the scores are multiplied with.
    """
    module = subject.copy()
    watch = Captured(module)
    subject(x, module, mode=watch)
    held = watch.tensors
    _followed_too(subject, x, held)
    if not held["factors"]:
        return "", ""
    _stacked(held, reading.num_heads)
    meant = Computation(x.cpu(), reading, layer)
    right = base_recipe(causal, layer)
    plain = Computation(x.cpu(), reading, Layer(memory=layer.memory))
    for slot in (0, 1):
        if not _among(meant._heads(right, slot), held["factors"]):
            turned = layer.rope or {"a table", "a table of positions"} & {
                *watch.seen.extras
            }
            return _before_scores(plain, right, slot, held, turned), ""
    if held["scores"]:
        weights = meant.weights(right)
        scores = _like(held["scores"][0], weights)
        got = _like(held["weights"][0], weights)
        if scores is None or got is None:
            return "", ""
        seen = (weights > 0) & scores.isfinite() & (scores > -1e4)
        logs = torch.where(seen, weights.log() - scores, torch.nan)
        spread = (logs - logs.nanmean(dim=-1, keepdim=True)).nan_to_num(0.0).abs().max()
        if spread > TOLERANCE * scores[seen].abs().max().clamp_min(1.0):
            if layer.alibi or layer.bias is not None:
                return "positions", ""
            return "scores", _scaled(scores, weights, seen)
        if not torch.equal(got > 0, weights > 0):
            return "mask", ""
        if not _close(got, weights):
            return "weights", ""
    values = meant._heads(right, 2)
    if not _among(values, held["factors"]):
        stage = _before_scores(plain, right, 2, held, layer.rope)
        return stage + (
            " of the values" if stage in ("projection", "split") else ""
        ), ""
    context = meant.context(right)
    if not _among(context, held["results"]):
        return ("mix" if held["scores"] else "scores, mask or weights"), ""
    joined = context.transpose(1, 2).flatten(2)
    return ("output" if _any_close(joined, held["all"]) else "join"), ""


def _scaled(scores: torch.Tensor, weights: torch.Tensor, seen: torch.Tensor) -> str:
    """Return what the scores are multiplied with, if that alone is wrong."""

    def centered(logs: torch.Tensor) -> torch.Tensor:
        logs = torch.where(seen, logs, torch.nan)
        return (logs - logs.nanmean(dim=-1, keepdim=True)).nan_to_num(0.0)

    got, meant = centered(scores), centered(weights.log())
    factor = (got * meant).sum() / meant.square().sum()
    if factor <= 0 or not _close(got, meant * factor):
        return ""
    return f"The scores are {factor:.4g} times what they should be."


def _stacked(held: dict[str, list[torch.Tensor]], h: int) -> None:
    """Join what one head after another computes, (b, t, …) each, to (b, h, t, …)."""
    if h < 2 or len(held["weights"]) != h:
        return
    for name, found in held.items():
        step = len(found) // h  # tensors of each head
        each = [found[place : step * h : step] for place in range(step)]
        whole = [
            torch.stack(one, dim=1)
            for one in each
            if len({part.shape for part in one}) == 1 and one[0].dim() == 3
        ]
        held[name] = whole if name in ("scores", "weights") else found + whole


def _followed_too(
    subject: Subject, x: torch.Tensor, held: dict[str, list[torch.Tensor]]
) -> None:
    """Add the steps that were followed, (b, h, t, …), whatever axes they had."""
    walk = None
    with contextlib.suppress(RuntimeError, IndexError, ValueError):
        walk = followed(subject, x)
    if walk is None:
        return

    def heads(one: torch.Tensor) -> torch.Tensor:
        return one.view(len(x), walk.h, *one.shape[1:])

    held["factors"] += [heads(one) for one in (walk.query, walk.key, walk.values)]
    held["results"].append(heads(walk.context))
    scores = _own(walk)
    if held["scores"] and held["scores"][0].shape != heads(scores).shape:
        keys = scores.shape[-1]
        wide = walk.taken.shape[-1] > keys
        first = 1 if wide and _sinks(walk) == [True, False] else 0
        held["scores"][0] = heads(scores)
        held["weights"][0] = heads(walk.weights[..., first : first + keys])


def _before_scores(
    plain: Computation,
    right: Recipe,
    slot: int,
    held: dict[str, list[torch.Tensor]],
    turned: object,
) -> str:
    """Return which stage first differs of those that make queries, keys or values."""
    heads = plain._heads(right, slot)
    if slot == 2 and _among(heads, held["factors"]):
        return "mix"
    if _any_close(heads, held["all"]):  # cut as meant, and changed after that
        return "positions" if turned else "scores" if slot < 2 else "mix"
    flat = heads.transpose(1, 2).flatten(2)
    return "split" if _any_close(flat, held["all"]) else "projection"


def _any_close(wanted: torch.Tensor, held: list[torch.Tensor]) -> bool:
    """Whether one of the tensors held has these numbers."""
    for tensor in held:
        if tensor.numel() != wanted.numel():
            continue
        one = tensor.detach().cpu().double()
        got = _like(one, wanted) if wanted.dim() == 4 else one
        if got is None or got.dim() < 2:
            continue
        b, t = wanted.shape[:2]
        if wanted.dim() == 3 and got.shape[-1] == wanted.shape[-1]:
            turned = got.dim() == 3 and got.shape[:2] == (t, b)
            got = (got.transpose(0, 1) if turned else got).reshape(wanted.shape)
        if got.shape == wanted.shape and _close(got, wanted):
            return True
    return False


def _among(wanted: torch.Tensor, tensors: list[torch.Tensor]) -> bool:
    """Whether the tensors hold these numbers (b, h, t, d), times a number.

    All in one, or those of each head in another.
    """
    if wanted.shape[1] > 1 and all(
        _among(wanted[:, h : h + 1], [one for one in tensors if one.dim() == 3])
        for h in range(wanted.shape[1])
    ):
        return True
    for tensor in tensors:
        for one in (tensor, tensor.mT if tensor.dim() > 1 else tensor):
            got = _like(one, wanted)
            if got is None:
                continue
            factor = (got * wanted).sum() / wanted.square().sum().clamp_min(1e-12)
            # Queries may hold the scale, or its root.
            if factor > 0 and _close(got, wanted * factor) and _usual(factor, wanted):
                return True
    return False


def _usual(factor: torch.Tensor, wanted: torch.Tensor) -> bool:
    d = wanted.shape[-1]
    return any(abs(factor / d**power - 1) < 1e-3 for power in (0, -0.5, -0.25))


def _like(tensor: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor | None:
    """Return the tensor as (b, h, t, d) if its axes can be read so, or None."""
    tensor = tensor.detach().cpu().double()
    b, h, t, d = wanted.shape
    if tensor.shape == wanted.shape:
        return tensor
    if tensor.shape == (b, t, h, d):
        return tensor.transpose(1, 2)
    if tensor.shape == (t, b, h, d):
        return tensor.permute(1, 2, 0, 3)
    if h == 1 and tensor.shape == (b, t, d):
        return tensor.unsqueeze(1)
    if tensor.shape == (b * h, t, d):
        return tensor.view(wanted.shape)
    return None


def _close(one: torch.Tensor, other: torch.Tensor) -> bool:
    size = other.abs().max().clamp_min(1e-12)
    return bool((one - other).abs().max() <= TOLERANCE * size)
