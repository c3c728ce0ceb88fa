"""Attention computed step by step in float64, right or with mistakes."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor

from attncheck.layer import Layer, Rope, document_of, memory_tokens, normalize, rotate
from attncheck.projections import Pair, Projections

PLAIN = Layer()


@dataclass(frozen=True)
class Recipe:
    """How to compute attention. The defaults are right; each change is a mistake.

    Attributes:
        source: what queries, keys and values are made with: "q", "k", "v" for the
            projections, "x" for the input itself, "k by v" and "v by k" where the
            two maps up from a shared latent are swapped.
        split: how queries, keys and values are cut into heads.
        join: how the heads are put together.
        attend: "tokens", or "heads" for attention among the heads of one token.
        scale: what the scores are multiplied with; see :func:`_factor`.
        mask: which scores are hidden; see :func:`hide_scores`.
        fill: the score of a hidden position.
        mask_by: "fill", "adding ones", or "after softmax".
        softmax: the axis that is normalized, or "none", "twice", "all", "safe".
        turned: "scores" or "weights" to transpose these.
        scale_weights: also divide the attention weights by √d_head.
        groups: how neighboring query heads share a key, and how a value: "blocks",
            "tiles", or "numbers" that are repeated one by one.
        rotated: what is wrong with rotary positions; see :func:`_rotate_as`.
        norm: which of "q", "k", "v" are normalized, or "width" for all heads at once.
        window: how much larger the window is than meant; ``inf``: there is none.
        sink: "column" if the sink takes part in softmax; see :func:`_weigh_with_sink`.
        documents: "apart", or "joined" if they see each other, or "both" to hide what
            is both in another document and in the future.
    """

    source: tuple[str, ...] = ("q", "k", "v")
    split: tuple[str, ...] = ("transpose", "transpose", "transpose")
    join: str = "transpose"
    attend: str = "tokens"
    scale: str | float = "1/√d_head"
    mask: str = "future"
    fill: float = -torch.inf
    mask_by: str = "fill"
    softmax: int | str = -1
    turned: str = ""
    scale_weights: bool = False
    groups: tuple[str, ...] = ("blocks", "blocks")
    rotated: str = "both"
    norm: str = "qk"
    window: float = 0
    sink: str = "column"
    documents: str = "apart"


RIGHT = Recipe()
# What acts only after queries, keys and values are made, and only after the weights.
# Caching depends on all other fields, so a new field is safe without a line here.
_OF_WEIGHTS = ("attend", "scale", "mask", "fill", "mask_by", "softmax", "turned",
               "scale_weights", "window", "sink", "documents")  # fmt: skip
_OF_OUTPUT = ("join",)
_NOT_SHARED = {"source", "split", "groups", *_OF_WEIGHTS, *_OF_OUTPUT}
# The fields by which weights, and queries, keys and values, are cached.
_weights_of = attrgetter(*_OF_WEIGHTS)
_shared_of = attrgetter(
    *(field.name for field in fields(Recipe) if field.name not in _NOT_SHARED)
)


class Computation:
    """Attention of one input, which keeps what several recipes have in common.

    Args:
        x: tokens (b, t, d_in).
        projections: the weights.
        layer: what acts besides attention.
    """

    def __init__(
        self, x: Tensor, projections: Projections, layer: Layer = PLAIN
    ) -> None:
        self.x = x.double()
        self.p = projections.double()
        self.layer = layer
        if layer.rope and projections.rope_share:
            rope = replace(layer.rope, share=projections.rope_share)
            self.layer = replace(layer, rope=rope)
        if layer.memory:
            width = projections.key[0].shape[1]
            self.memory = memory_tokens(layer.memory, x, width).double()
        self._kept: dict[Any, Tensor] = {}

    def output(self, recipe: Recipe) -> Tensor:
        """Return the output (b, t, width)."""
        context = self.context(recipe)
        if recipe.attend == "heads":
            context = context.transpose(1, 2)
        return self.join_heads(context, recipe)

    def join_heads(self, context: Tensor, recipe: Recipe = RIGHT) -> Tensor:
        """Return the output made of the heads' results (b, h, t, d_head)."""
        context = _join(context, recipe)
        if self.p.out is not None:
            context = _project(context, self.p.out)
        context = context + self.x if self.layer.residual else context
        if self.layer.postnorm:
            numbers = self.layer.norm_of("x")
            context = normalize(context, self.layer.postnorm, numbers)
        return context

    def values(self, recipe: Recipe) -> Tensor:
        """Return the values of each head (b, h, t, d_head)."""
        return self._heads(recipe, 2)

    def weights(self, recipe: Recipe) -> Tensor:
        """Return the attention weights (b, h, t_q, t_k)."""
        r = recipe
        key = (_weights_of(r), self._key(r, 0), self._key(r, 1), r.groups)
        return self._once(key, lambda: self._weights(r))

    def context(self, recipe: Recipe) -> Tensor:
        """Return the sum of values for each head."""
        r = recipe
        values = self._heads(r, 2)
        if r.attend == "heads":
            values = values.transpose(1, 2)
        return self.weights(r) @ values

    def _once(self, key: tuple[Any, ...], function: Callable[[], Tensor]) -> Tensor:
        if key not in self._kept:
            self._kept[key] = function()
        return self._kept[key]

    def _key(self, r: Recipe, slot: int) -> tuple[Any, ...]:
        group = r.groups[max(slot - 1, 0)]
        return (slot, r.source[slot], r.split[slot], group, _shared_of(r))

    def _heads(self, r: Recipe, slot: int) -> Tensor:
        return self._once(self._key(r, slot), lambda: self._make_heads(r, slot))

    def _make_heads(self, r: Recipe, slot: int) -> Tensor:
        """Return queries, keys or values (b, h, t, d_head) as the recipe does."""
        p, layer = self.p, self.layer
        name, how = r.source[slot], r.split[slot]
        x = self.x if slot == 0 or not layer.memory else self.memory
        if layer.prenorm:
            x = normalize(x, layer.prenorm, layer.norm_of("x"))
        pairs: dict[str, Any] = {
            "q": p.query,
            "k": p.key,
            "v": p.value,
            "x": None,
        } | dict(p.swapped)
        if name not in pairs:
            raise RuntimeError("there is no latent")
        made = x if name == "x" else _project(x, pairs[name])
        numbers = layer.norm_of("qkk"[slot])
        over_all = layer.qk_norm and r.norm == "width" and slot < 2
        if over_all:
            made = normalize(made, layer.qk_norm, numbers)
        made = _split(made, max(made.shape[-1] // p.d_head, 1), how)
        if layer.qk_norm and not over_all and "qkv"[slot] in r.norm:
            made = normalize(made, layer.qk_norm, numbers)
        if layer.rope:
            made = _rotate_as(made, layer.rope, r.rotated, slot)
        return _share(made, p.num_heads, r.groups[slot - 1]) if slot else made

    def _weights(self, r: Recipe) -> Tensor:
        q, k = self._heads(r, 0), self._heads(r, 1)
        if r.attend == "heads":
            q, k = q.transpose(1, 2), k.transpose(1, 2)
        scores = q @ k.transpose(2, 3) * _factor(r.scale, self.p, self.x.shape[1])
        if self.layer.bias is not None:
            scores = scores + self.layer.bias(scores.shape[-1])
        size = scores.shape[-2:]  # of heads where these attend to each other
        mask = self._once(("mask", r.mask, size), lambda: hide_scores(r.mask, *size))
        window = self.layer.window
        if window:
            t_q, t_k = scores.shape[-2:]
            mask = mask | _far(window + r.window, t_q, t_k, r.mask)
        if self.layer.documents and r.documents != "joined":
            document = document_of(len(mask))
            apart = document[:, None] != document
            mask = mask & apart if r.documents == "both" else mask | apart
        sink = self.layer.norm_of("sink")[0] if self.layer.sink else None
        weights = _weigh(scores, mask, r, sink)
        return weights * self.p.d_head**-0.5 if r.scale_weights else weights


def hide_scores(which: str, t_q: int, t_k: int) -> Tensor:
    """Return the mask (t_q, t_k), True where a score is hidden."""
    i, j = torch.arange(t_q)[:, None], torch.arange(t_k)[None, :]
    if which == "none":
        return (j > i) & False
    if which == "beyond the next":
        return j > i + 1
    compare: dict[str, Callable[..., Tensor]] = {
        "future": torch.gt,
        "past": torch.lt,
        "future and self": torch.ge,
        "past and self": torch.le,
        "self": torch.eq,
        "others": torch.ne,
    }
    return compare[which](j, i)


def _far(window: float, t_q: int, t_k: int, mask: str) -> Tensor:
    i, j = torch.arange(t_q)[:, None], torch.arange(t_k)[None, :]
    # Without a causal mask a window reaches to both sides.
    return (i - j).abs() >= window if mask == "none" else i - j >= window


def _rotate_as(x: Tensor, rope: Rope, how: str, slot: int) -> Tensor:
    """Rotate queries, keys or values (b, h, t, d) as meant or as mistaken."""
    sides = {"queries": (0,), "keys": (1,), "values": (0, 1, 2), "none": (),
             "queries and values": (0, 2), "keys and values": (1, 2)}  # fmt: skip
    if slot not in sides.get(how, (0, 1)):
        return x
    positions = torch.arange(x.shape[-2], dtype=x.dtype)
    if how.startswith("left out"):
        return _leave_out(x, rope.share, slot == 0 and how.endswith("the root"))
    d = x.shape[-1]
    part = int(d * rope.share)
    width = {
        "half steps": 2 * part,
        "double steps": part // 2,
        "whole width": d * x.shape[1],
        "head width": d,
    }
    if how.startswith("base "):
        rope = replace(rope, base=float(how[5:]))
    elif "neighbors" in how or how.startswith("halves"):
        rope = replace(rope, pairing=how)
    return rotate(x, rope, positions, width.get(how))


def _leave_out(x: Tensor, share: float | Fraction, of_the_root: bool) -> Tensor:
    """Set the part that is rotated to 0, and with it its part of the scores."""
    turned = int(x.shape[-1] * share)
    if turned == x.shape[-1]:
        raise RuntimeError("nothing would be left")
    x = torch.cat([torch.zeros_like(x[..., :turned]), x[..., turned:]], dim=-1)
    return x / float(1 - share) ** 0.5 if of_the_root else x


def _project(x: Tensor, pair: Pair) -> Tensor:
    weight, bias = pair
    y = x @ weight.T
    return y if bias is None else y + bias


def _factor(scale: str | float, projections: Projections, t: int) -> float:
    d_head, d_out = projections.d_head, projections.query[0].shape[0]
    if scale == "1/√latent":
        if projections.latent is None:
            raise RuntimeError("there is no latent")
        d_rope = int(d_head * (projections.rope_share or 0))
        return (projections.latent + d_rope) ** -0.5
    if isinstance(scale, float):
        return scale
    return {
        "1/√d_head": d_head**-0.5,
        "1": 1.0,
        "1/√d_out": d_out**-0.5,
        "1/√d_in": projections.d_in**-0.5,
        "1/d_head": 1 / d_head,
        "1/d_out": 1 / d_out,
        "√d_head": d_head**0.5,
        "√d_out": d_out**0.5,
        "1/√t": t**-0.5,
    }[scale]


def _split(x: Tensor, h: int, how: str) -> Tensor:
    """Cut (b, t, width) into heads (b, h, t, d_head), as meant or as mistaken."""
    b, t, width = x.shape
    if how == "view":  # straight to the target shape: mixes tokens
        return x.reshape(b, h, t, width // h)
    if how == "interleaved":  # heads and d_head exchanged
        return x.reshape(b, t, width // h, h).permute(0, 3, 1, 2)
    return x.reshape(b, t, h, width // h).transpose(1, 2)


def _share(x: Tensor, h: int, groups: str) -> Tensor:
    """Repeat the keys or values of grouped heads until there are h."""
    repeats = h // x.shape[1]
    if repeats <= 1:
        return x
    if groups == "tiles":
        return x.repeat(1, repeats, 1, 1)
    if groups == "numbers":  # repeats each number of a head, not each head
        wide = x.transpose(1, 2).flatten(2).repeat_interleave(repeats, dim=-1)
        return wide.unflatten(-1, (h, -1)).transpose(1, 2)
    return x.repeat_interleave(repeats, dim=1)


def _weigh(scores: Tensor, mask: Tensor, recipe: Recipe, sink: Tensor | None) -> Tensor:
    if recipe.turned == "scores":
        scores = scores.transpose(-2, -1)
    if recipe.mask_by == "adding ones":
        scores = scores + mask
    elif recipe.mask_by == "fill":
        scores = scores.masked_fill(mask, recipe.fill)
    if sink is None or recipe.sink == "none":
        weights = _normalize(scores, recipe.softmax)
    else:
        weights = _weigh_with_sink(scores, sink, recipe)
    if recipe.mask_by == "after softmax":
        weights = weights.masked_fill(mask, 0.0)
    return weights.transpose(-2, -1) if recipe.turned == "weights" else weights


def _weigh_with_sink(scores: Tensor, sink: Tensor, recipe: Recipe) -> Tensor:
    """Let the sinks (h) take part in softmax, as meant or as mistaken."""
    how = recipe.sink
    column = sink.double().view(-1, 1, 1).expand(*scores.shape[:-1], 1)
    if how == "zero":
        column = torch.zeros_like(column)
    first = how == "first"  # in front, while the last column is dropped
    both = torch.cat([column, scores] if first else [scores, column], dim=-1)
    weights = _normalize(both, recipe.softmax)
    return weights[..., 1:] if how == "last" else weights[..., :-1]


def _normalize(scores: Tensor, how: Any) -> Tensor:
    if how == "none":
        return scores
    if how == "all":
        return torch.softmax(scores.flatten(1), dim=-1).view(scores.shape)
    if how == "twice":
        return torch.softmax(torch.softmax(scores, dim=-1), dim=-1)
    if how == "safe":  # as PyTorch's own: zeros where everything is hidden
        return torch.softmax(scores, dim=-1).nan_to_num(0.0)
    return torch.softmax(scores, dim=how)


def _join(context: Tensor, recipe: Recipe) -> Tensor:
    """Put heads (b, h, t, d_head) together to (b, t, width)."""
    b, h, t, d_head = context.shape
    if recipe.join == "view":  # without moving the heads back: mixes tokens
        return context.reshape(b, t, h * d_head)
    if recipe.join == "interleaved":
        return context.permute(0, 2, 3, 1).reshape(b, t, h * d_head)
    return context.transpose(1, 2).reshape(b, t, h * d_head)
