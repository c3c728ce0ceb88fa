"""Reads off what a layer is that nobody described, from what its forward computes.

Every step of one pass has to follow from what went into it: tokens, or their norm, are
projected, cut into heads, normed or rotated, multiplied, given a bias that depends on
the distance alone, masked, normalized, mixed, joined and projected. A layer of which
one step stays unexplained is not judged by this.
"""

import math
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, permutations, product
from typing import Any

import torch
from torch import nn

from attncheck.calling import asked_of, kinds_of
from attncheck.following import SUMS, _followed
from attncheck.layer import Numbers, Rope, memory_tokens, normalize, rotate
from attncheck.mistakes import MISTAKES
from attncheck.projections import NAMES
from attncheck.recorded import CONVOLUTIONS, Call, Recorded, Step, _close
from attncheck.reference import _rotated as turned_as
from attncheck.reference import _share
from attncheck.scored import SCALES as FACTORS
from attncheck.scored import T5
from attncheck.subject import ITSELF, Failure, Subject
from attncheck.trace import norms_of, tensors

NORMS = ("layer_norm", "rms_norm", "group_norm")
TIMES = ("mul", "__mul__", "__rmul__", "mul_", "__imul__")
# Functions of one number at a time.
EACH = ("gelu", "relu", "relu_", "silu", "leaky_relu", "elu", "mish", "dropout",
        "hardswish", "softplus", "contiguous", "to", "float")  # fmt: skip
GATES = ("sigmoid", "sigmoid_", "silu")
DEEP = 8  # modules in a row that are taken as they are
SCALES = re.compile(r"scale|temp|logit|tau")
BIAS_OF = re.compile(r"(q|k|v|query|key|value)_?bias|bias_?(q|k|v|query|key|value)")
MEANT = re.compile(r"scal|temp|mult|mup|head|nope|qk|^d_?[hk]$")
NULL = "a learned key and value beside the tokens'"
# By these names, queries are among the keys.
LATENT = "latent|perceiver|resampl"
APART = "values by distance"
ADDED = "a table added to the tokens"
BESIDE = "keys of the tokens beside those of the memory"
SECONDS = 15.0  # for mistakes in queries, keys and values; most take half a one
BASE = re.compile(r"theta|base|freq")
# Names of projections, but for those that other parts have, too.
ROLES = {
    name
    for role in ("query", "key", "value", "out", "qkv", "kv")
    for name in NAMES[role]
    if name not in ("projection", "fc", "o", "q", "k", "v")
}
ATTENDS = {"softmax", "_softmax", "scaled_dot_product_attention", "exp", "exp_"}
# Changes of a recipe that do not act on one head after another.
UNREAD = {"none", "across heads", "left out", "left out, and out of the root", "width",
          ""}  # fmt: skip
POWERS = {"half steps", "double steps", "whole width", "head width", "one step up"}
Turn = tuple[Rope, str]  # words on two axes
# The norm, "behind" if it comes after the positions, and these.
Kind = tuple[tuple[str | None, str | None], Turn | None]
Part = tuple[str, int, int]  # parameter, which part of it, how many there are


class UnexplainedError(Exception):
    """A step of the layer follows from nothing that is known."""


class TooFewError(UnexplainedError):
    """More sequences are needed to tell."""


@dataclass
class Map:
    """A linear map: its parameter's name, what it took and gave as (b, t, width)."""

    name: str
    took: torch.Tensor
    made: torch.Tensor


@dataclass
class Piece:
    """A part of each head that lies side by side in what a map made.

    Attributes:
        map: the map.
        start, width: its first number in a head, and how many there are.
        column, step: its place in the map for the first head, and from head to head.
        factor: what the numbers of each head are multiplied with.
        turn: rotary positions, or None.
    """

    map: Map
    start: int
    column: int
    width: int
    step: int
    factor: torch.Tensor
    turn: Rope | None


@dataclass
class Side:
    """What a module beside attention took and gave: nothing in it attends.

    Attributes:
        name, kind: those of the module.
        part: the module.
        took, made: the first tensor in, and that out.
    """

    name: str
    kind: str
    part: nn.Module
    took: torch.Tensor
    made: torch.Tensor


@dataclass
class Read:
    """What was read off.

    Attributes:
        words: what the layer does besides attention.
        options: fields of a layer that other tests look at.
        steps: those that are wrong.
        asks: options that have to be declared, since two ways are usual.
    """

    words: list[str]
    options: dict[str, Any]
    steps: list[Step]
    asks: dict[str, Any]


def inferred(subject: Subject, x: torch.Tensor, mistakes: bool = True) -> Read | None:
    """Return what the layer is, or None where a step stays unexplained.

    Args:
        subject: the module under test.
        x: tokens (b, t, d_in).
        mistakes: whether a mistake may explain queries, keys and values.
    """
    for heads_first in (False, True):
        try:
            try:
                return Reading(subject, x, None, heads_first).read(mistakes)
            except TooFewError:
                many = subject.tokens(b=80, t=x.shape[1], seed=6)
                return Reading(subject, many, None, heads_first).read(mistakes)
        except (UnexplainedError, Failure, RuntimeError, IndexError, ValueError):
            continue
    return None


def _views(tensor: torch.Tensor, b: int, t: int) -> Iterator[torch.Tensor]:
    """Yield a tensor as tokens (b, t, width), in each way in which it may hold them."""
    shape = tuple(tensor.shape)
    if len(shape) == 3:
        if shape[:2] == (b, t):
            yield tensor
        if shape[:2] == (t, b):
            yield tensor.transpose(0, 1)
        if (shape[0], shape[2]) == (b, t):
            yield tensor.mT
    elif len(shape) == 2 and len(tensor) == b * t:
        yield tensor.view(b, t, -1)
    elif len(shape) == 5 and shape[0] == b and math.prod(shape[2:]) == t:
        yield tensor.flatten(2).mT  # voxels
    elif len(shape) == 4 and shape[0] == b:
        if shape[2] * shape[3] == t:
            yield tensor.flatten(2).mT
        if shape[1] * shape[2] == t:
            yield tensor.flatten(1, 2)
        if shape[1] == t:  # with an axis for the heads
            yield tensor.flatten(2)


class Reading:
    """One forward pass that is read step by step.

    Args:
        subject: the module under test.
        x: tokens (b, t, d_in).
        module: the module, if it is changed.
        heads_first: whether heads come before the sequences of a batch.
    """

    def __init__(
        self,
        subject: Subject,
        x: torch.Tensor,
        module: nn.Module | None = None,
        heads_first: bool = False,
    ) -> None:
        self.subject, self.x = subject, x
        self.module = module or subject.copy()
        watch = Recorded(self.module)
        self.aside: list[Side] = []
        self.pairs: list[torch.Tensor] = []  # forward was given for pairs of tokens
        hooks = list(self._watched(watch))
        self.y = subject(x, self.module, mode=watch)
        for hook in hooks:
            hook.remove()
        self.calls, self.b, self.t = watch.calls, len(x), x.shape[1]
        walk = _followed(watch, x, self.y)
        if walk is None or not self.y.isfinite().all():
            raise UnexplainedError
        self.heads_first = heads_first
        self.walk, self.h = walk.batch_first() if heads_first else walk, walk.h
        self.keys = walk.key.shape[-2]
        self.words: list[str] = []
        self.options: dict[str, Any] = {}
        self.steps: list[Step] = []
        self.parameters = dict(self.module.named_parameters())
        self.maps = [one for call in self.calls for one in self._maps(call)]
        self.maps += [one for map_ in self.maps for one in self._with_bias(map_)]
        self.normed: torch.Tensor | None = None  # what the norm of the input gave
        self.extra: int | None = None  # the place of a key that is no token's, 0 or -1
        self.asks: dict[str, Any] = {}  # what has to be declared
        self.wrong: dict[str, Any] = {}  # the mistake that is tried
        self.cuts: list[tuple[int, int]] = []
        self.values: Part | None = None
        self.used: set[str] = set()  # weights of queries, keys and values
        self.gated = ""  # a weight of which a part makes no query, key or value
        # What queries, keys and values are projected from, and how that came about.
        self.sources: list[torch.Tensor] = []
        self.ways: list[tuple[str, ...]] = []
        self.slices: dict[int, Piece] = {}  # what is cut from several maps, by slot
        self.apart: set[int] = set()  # slots whose projection has a norm of its own
        self.taken: dict[str, str] = {}  # modules that are taken as they are

    def read(self, mistakes: bool = True) -> Read:
        """Return what was read off.

        Args:
            mistakes: whether one may explain queries, keys and values.

        Raises:
            UnexplainedError: a step follows from nothing that is known.
        """
        factors = self._sides() if mistakes else self._sides_so()
        self._scores(*factors)
        self._weights()
        self._around()
        if self.taken:
            told = ", ".join(f"{name} ({kind})" for name, kind in self.taken.items())
            self.words.append(f"taken as they are: {told}")
        return Read(self.words, self.options, self.steps, self.asks)

    # What stands beside attention.

    def _watched(self, watch: Recorded) -> Iterator[Any]:
        """Have each part note what goes in and out, if nothing in it attends."""
        taken: dict[str, tuple[int, torch.Tensor]] = {}

        def look(_: nn.Module, given: Any, named: Any) -> None:
            held = [one.detach().clone() for one in tensors((given, named))]
            both = (self.x.shape[1],) * 2
            self.pairs = [one for one in held if one.dim() == 4]
            self.pairs += [one[None, None] for one in held if one.shape == both]

        yield self.module.register_forward_pre_hook(look, with_kwargs=True)
        for name, part in self.module.named_modules():

            def before(_: nn.Module, given: Any, named: Any, name: str = name) -> None:
                first = next(tensors((given, named)), None)
                if first is not None:
                    taken[name] = len(watch.calls), first.detach().clone()

            def behind(
                part: nn.Module, given: Any, named: Any, made: Any, name: str = name
            ) -> None:
                out = next(tensors(made), None)
                start, first = taken.pop(name, (0, None))
                inside = {call[0] for call in watch.calls[start:]}
                if out is None or first is None or inside & ATTENDS:
                    return
                kind = type(part).__name__
                both = (first, out.detach().clone())
                self.aside.append(Side(name, kind, part, *both))

            if name:
                yield part.register_forward_pre_hook(before, with_kwargs=True)
                yield part.register_forward_hook(behind, with_kwargs=True)

    def _sides_of(self, made: torch.Tensor) -> Iterator[tuple[Side, torch.Tensor]]:
        """Yield (module, what it took) of those that gave these tokens."""
        b, t = made.shape[:2]
        for one in self.aside[::-1]:  # the whole before its parts
            own = one.name.rpartition(".")[2].replace("_", "").lower()
            if one.name in self.taken or own in ROLES or self._projects(one.name):
                continue
            if not any(_close(gave, made) for gave in _views(one.made, b, t)):
                continue
            for tokens in {t, self.t}:  # keys may be fewer than tokens
                for took in _views(one.took, b, tokens):
                    if not _close(took, made):
                        yield one, took

    def _projects(self, name: str) -> bool:
        """Whether a module holds weights of queries, keys, values or the output."""
        return any(used.startswith(f"{name}.") for used in self.used)

    def _way(
        self, made: torch.Tensor, starts: list[torch.Tensor], deep: int = DEEP
    ) -> tuple[str, ...] | None:
        """Return how tokens follow from one of several tensors, or None.

        By modules that are taken as they are, by what acts on each number, by a
        table that is added, or by joining some of the tensors.
        """
        if any(_close(made, one) for one in starts):
            return ()
        if not deep:
            return None
        b, t = made.shape[:2]
        for side, took in self._sides_of(made):
            self.taken[side.name] = side.kind
            way = self._way(took, starts, deep - 1)
            if way is not None:
                return way
            del self.taken[side.name]
        if (cut := self._cut_from(made, starts)) is not None:
            return cut
        for name, given, _, result in self.calls:
            if name not in (*EACH, *SUMS, *TIMES, "cat", *NORMS):
                continue
            if not any(_close(one, made) for one in _views(result, b, t)):
                continue
            if name in (*EACH, *NORMS):
                for took in _views(given[0], b, t):
                    if _close(took, made):
                        continue
                    way = self._way(took, starts, deep - 1)
                    if way is not None:
                        return (*way, name)
            elif name in TIMES and len(given) == 2:
                for one, by in (given, given[::-1]):
                    if not self._is_gain(by):
                        continue
                    for took in _views(one, b, t):
                        way = self._way(took, starts, deep - 1)
                        if way is not None:
                            return (*way, name)
            elif name in SUMS and len(given) == 2:
                for one, other in (given, given[::-1]):
                    if not self._is_table(other, made):
                        continue
                    for took in _views(one, b, t):
                        way = self._way(took, starts, deep - 1)
                        if way is not None and "positions" not in way:
                            return (*way, "positions")
            elif name == "cat" and len(given) == 2:
                flat = [p.flatten(1, -2) for p in given if p.dim() in (3, 4)]
                sides = [self._way(part, starts, deep - 1) for part in flat]
                if len(sides) == 2 and None not in sides:
                    return ("joined",)
        return None

    def _cut_from(
        self, made: torch.Tensor, starts: list[torch.Tensor]
    ) -> tuple[str, ...] | None:
        """Return how tokens follow that are the first or last numbers of a map's."""
        wide = made.shape[-1]
        for one in self.maps:
            if one.made.shape[:2] == made.shape[:2] and one.made.shape[-1] > wide:
                ends = (one.made[..., :wide], one.made[..., -wide:])
                if any(_close(end, made) for end in ends) and any(
                    _close(one.took, start) for start in starts
                ):
                    self.taken[one.name] = "Linear"
                    return ()
        return None

    def _is_gain(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is a vector of numbers that are learned."""
        flat = tensor.flatten()
        return any(p.dim() < 2 and torch.equal(p, flat)
                   for p in self.parameters.values()
                   if p.numel() == len(flat))  # fmt: skip

    def _is_table(self, tensor: torch.Tensor, like: torch.Tensor) -> bool:
        """Whether a tensor is the same for all sequences, and held or looked up."""
        width = like.shape[-1]
        if tensor.shape[-1] != width or tensor.dim() not in (2, 3):
            return False
        rows = tensor[0] if tensor.dim() == 3 else tensor
        if tensor.dim() == 3 and not _close(tensor, rows.expand_as(tensor)):
            return False
        if len(rows) not in (1, like.shape[1]):
            return False
        held = [*self.parameters.values(), *self.module.buffers()]
        held += [one for name, _, _, one in self.calls if name == "embedding"]
        return any(
            _close(one.reshape(-1, width)[: len(rows)].to(rows), rows)
            for one in held
            if one.numel() and one.shape[-1] == width and one.dim() > 1
        )

    # What goes into the scores.

    def _maps(self, call: Call) -> Iterator[Map]:
        """Yield the linear map that a call is, if it is one with a parameter."""
        name, given, _, result = call
        yield from self._by_head(name, given, result)
        if name in ("linear", *CONVOLUTIONS, "matmul", "__matmul__", "mm"):
            taken, weight = given[:2] if len(given) > 1 else (None, None)
        elif name == "addmm" and len(given) == 3:
            taken, weight = given[1:]
        else:
            return
        if (
            taken is None
            or weight is None
            or weight.dim() < 2
            or weight[0, 0].numel() != 1
        ):
            return
        for own, held in self.parameters.items():
            # With an axis for heads, they may be seen one below the other.
            parameter: torch.Tensor = held
            if weight.dim() == 2 and held.dim() == 3:
                parameter = held.flatten(0, 1)
            if parameter.shape in (weight.shape, weight.mT.shape) and any(
                torch.equal(one.reshape(weight.shape), weight)
                for one in (parameter, parameter.mT)
                if one.numel() == weight.numel() and one.shape == weight.shape
            ):
                for t in {self.t, self.keys}:
                    yield from (
                        Map(own, one, made)
                        for one, made in zip(
                            _views(taken, self.b, t),
                            _views(result, self.b, t),
                            strict=False,
                        )
                    )
                return

    def _with_bias(self, map_: Map) -> Iterator[Map]:
        """Yield the map with a bias that is added to it afterwards."""
        b, t, width = map_.made.shape
        for name, given, _, result in self.calls:
            if name not in SUMS or len(given) != 2:
                continue
            for one, other in (given, given[::-1]):
                if other.numel() != width or one.numel() != map_.made.numel():
                    continue
                if not any(p is other or torch.equal(p, other)
                           for p in self.parameters.values()
                           if p.shape == other.shape):  # fmt: skip
                    continue
                both = (_views(each, b, t) for each in (one, result))
                for tokens, made in zip(*both, strict=False):
                    if _close(tokens, map_.made):
                        yield Map(map_.name, map_.took, made)

    def _by_head(
        self, name: str, given: list[torch.Tensor], result: torch.Tensor
    ) -> Iterator[Map]:
        """Yield the map of a weight with an axis for the heads, (h, d_in, d_head)."""
        if name not in ("matmul", "__matmul__", "einsum", "tensordot"):
            return
        for own, parameter in self.parameters.items():
            taken = [one for one in given if not torch.equal(one, parameter)]
            if len(taken) != 1 or len(given) != 2:
                continue
            if parameter.dim() == 2 and name == "einsum":
                yield from self._by_matrix(own, parameter, taken[0], result)
            if parameter.dim() != 3:
                continue
            yield from self._from_heads(own, parameter, taken[0], result)
            for t in {self.t, self.keys}:
                for tokens in _views(taken[0], self.b, t):
                    for axes in permutations("hdk"):
                        if parameter.shape[axes.index("d")] != tokens.shape[-1]:
                            continue
                        made = torch.einsum(
                            f"btd,{''.join(axes)}->bthk", tokens, parameter
                        )
                        for order in ("bthk", "bhtk", "hbtk"):
                            places = ["bthk".index(axis) for axis in order]
                            turned = made.permute(places)
                            if turned.numel() == result.numel() and _close(
                                result, turned.reshape(result.shape)
                            ):
                                yield Map(own, tokens, made.flatten(2))
                                return

    def _from_heads(
        self, name: str, weight: torch.Tensor, taken: torch.Tensor, made: torch.Tensor
    ) -> Iterator[Map]:
        """Yield the map of a weight (h, d_head, width) that heads go through."""
        h, d = weight.shape[:2]
        for one in (taken, taken.transpose(1, 2)) if taken.dim() == 4 else ():
            if one.shape[1:] != (self.t, h, d) or made.dim() != 3:
                continue
            joined = one.flatten(2)
            if _close(made, joined @ weight.flatten(0, 1)):
                yield Map(name, joined, made)
                return

    def _by_matrix(
        self, name: str, weight: torch.Tensor, taken: torch.Tensor, made: torch.Tensor
    ) -> Iterator[Map]:
        for t in {self.t, self.keys}:
            both = (_views(one, self.b, t) for one in (taken, made))
            for tokens, result in zip(*both, strict=False):
                if any(
                    one.shape[1] == tokens.shape[-1] and _close(tokens @ one.mT, result)
                    for one in (weight, weight.mT)
                ):
                    yield Map(name, tokens, result)

    def _sides(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Explain queries, keys and values; return the factors of the first two.

        Where they are not what is meant, a mistake has to explain all three.
        """
        kept = list(self.words), self.normed, dict(self.options)
        end = time.process_time() + SECONDS
        for name, change, told in [("", {}, ""), *self._wrong()]:
            if time.process_time() > end:
                break
            self.wrong, self.words, self.normed = dict(change), list(kept[0]), kept[1]
            self.sources, self.extra, self.steps = [], None, []
            self.ways, self.taken, self.apart = [], {}, set()
            self.slices = {}
            self.options, self.used, self.gated = dict(kept[2]), set(), ""
            try:
                factors = self._sides_so()
            except (UnexplainedError, RuntimeError):
                continue
            if told:
                stage = MISTAKES[name].stage
                self.steps.append(Step(name, stage, f"Queries, keys and values equal "
                                       f"those of attention {told}."))  # fmt: skip
            return factors
        raise UnexplainedError

    def _wrong(self) -> Iterator[tuple[str, dict[str, Any], str]]:
        """Yield (mistake, change of the recipe, words) that may explain the sides."""
        tables = {"a table of positions", "a table"} & set(self.walk.extras)
        yield "projection_mixed_up", {"order": True}, ""
        if any("kv" in name or "latent" in name for name in self.parameters):
            told = "with the maps up from their latent swapped"
            yield "latent_maps_swapped", {"maps": True}, told
        self.values = self._values()
        if self.values is None:
            yield "projection_mixed_up", {"cut": True}, ""
        for mistake in MISTAKES.values():
            for recipe in mistake.recipes:
                change = dict(recipe.change)
                alone = set(change) in ({"rotated"}, {"groups"}, {"norm"})
                known = set(change.values()) & UNREAD if alone else {""}
                if not alone or known or ("rotated" in change and not tables):
                    continue
                # Values that are as meant are no reason to look at what changes them.
                own = change.get("groups", ("", "blocks"))[1] != "blocks"
                other = own or "values" in change.get("rotated", "")
                if other == (self.values is None):
                    yield mistake.name, change, recipe.equals

    def _values(self) -> Part | None:
        """Return the part that values come from, where nothing is wrong with them."""
        made = self.walk.values
        heads = made.view(self.b, self.h, *made.shape[1:]).double()
        self.wrong = {}
        try:
            return self._side(2, self._without_extra(2, heads))[2]
        except (UnexplainedError, RuntimeError):
            return None

    def _sides_so(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Explain them with the mistake that is tried, if any."""
        walk, kinds = self.walk, []
        for slot, made in enumerate((walk.query, walk.key, walk.values)):
            heads = made.view(self.b, self.h, *made.shape[1:]).double()
            kinds.append(self._side(slot, self._without_extra(slot, heads)))
        if 1 in self.slices and kinds[0][0] != kinds[1][0] and 0 not in self.slices:
            made = walk.query.view(self.b, self.h, *walk.query.shape[1:]).double()
            kinds[0] = self._sliced(0, self._without_extra(0, made))
            self.sources[0], self.ways[0] = self.sources.pop(), self.ways.pop()
        (one, q, part_q), (two, k, part_k), (three, _, part_v) = kinds
        if "rotated" in self.wrong and None in (one[1], two[1]):
            one, two = ((both[0], one[1] or two[1]) for both in (one, two))
        if 1 in self.slices and one[1] and not two[1]:
            told = "The queries have rotary positions, and no part of the keys has."
            self.steps.append(Step("rope_on_one_side", "positions", told))
            two = two[0], one[1]
        if one != two or three != ((None, None), None):
            raise UnexplainedError
        parts = (part_q, part_k, part_v)
        self._side_by_side()
        if self.wrong.get("cut"):
            self._overlapping(parts)
        elif self.wrong.get("order"):
            self._exchanged(parts)
        else:
            self._in_order(parts)
        asked = self.subject.sizes.get("num_heads")
        if asked and asked != self.h:
            raise UnexplainedError
        own, *others = (
            self.sources if not self.subject.layer.memory else self.sources[1:]
        )
        partly = [_close(one, self.x) for one in (own, *others)]
        beside = [{*way} for way in self.ways]
        if beside != [set()] * 3:
            self._alike(beside)
        elif partly == [False, True, True] and self._may_take_memory():
            self.words.append("a norm of the queries' input alone")
        elif len(set(partly)) == 2:
            # Each is the tokens or their norm.
            self.steps.append(Step("prenorm_partly", "projection", "Some of queries, "
                              "keys and values come from the norm of the input, and "
                              "some from the input."))  # fmt: skip
        elif not _close(*self.sources[1:]) and self.apart != {1, 2} | self.apart:
            raise UnexplainedError  # two norms, and keys and values have one each
        (norm, over), rope = one
        if norm:
            over = " over all heads" if over == "all heads" else ""
            self.words.append(f"a norm of queries and keys{over} ({norm})")
            self.options |= {"qk_norm": norm}
            self.options |= {"norm_over": "all"} if over else {}
            self.options |= {"norm_late": True} if one[0][1] == "behind" else {}
        if rope:
            turned, axial = rope
            self.words.append(f"rotary positions ({turned.words()}{axial})")
            self.options |= {"rope": turned} if not axial else {}
        self.l2 = norm == "l2"
        return q, k

    def _alike(self, beside: list[set[str]]) -> None:
        """Refuse keys and values that don't come from the same, but for positions."""
        if len({*map(frozenset, beside[self.subject.layer.memory is not None :])}) > 1:
            one, two, three = beside
            wide = any(
                p.dim() > 1
                for side in self.aside
                if side.name in self.taken
                for p in side.part.parameters()
            ) or any(name in self.parameters for name in self.taken)
            if two == three and wide and not one and _close(*self.sources[1:]):
                return  # as where keys come from fewer tokens
            if self._norm_between():
                return
            alike = two - three == {"positions"} and (one == two or three <= one)
            if not alike or three - two:
                raise UnexplainedError
        elif not _close(*self.sources[1:]) and not self._norm_between():
            raise UnexplainedError
        if "positions" in beside[1]:
            self.words.append(ADDED)
        if "joined" in beside[1] and not self.subject.speaks_of(LATENT):
            raise UnexplainedError
        if "joined" in beside[1]:
            self.words.append(BESIDE)

    def _norm_between(self) -> bool:
        """Tell where keys or values come from a norm of what the others come from."""
        _, keys, values = self.sources
        if _close(keys, values):
            return False  # a norm of what is normed changes nothing
        for one, other, last, first in (
            (keys, values, "Values", "keys"),
            (values, keys, "Keys", "values"),
        ):
            if one.shape == other.shape and self._is_norm(other, one):
                told = f"{last} come from the norm of what {first} come from."
                self.steps.append(Step("prenorm_partly", "projection", told))
                return True
        return False

    def _may_take_memory(self) -> bool:
        """Whether keys and values may come from elsewhere, and take the input else."""
        taken = kinds_of(self.subject.pristine)
        apart = {"k", "v"} <= {name.strip("_")[:1].lower() for name in taken}
        apart |= "memory" in taken.values()
        asked = asked_of(self.subject.pristine)[1:2]  # whatever its name says
        apart |= bool(asked) and taken[asked[0]] is None
        return apart and not self.subject.layer.memory

    def _cuts(
        self, slot: int, made: torch.Tensor, heads: torch.Tensor
    ) -> list[tuple[int, int]]:
        """Return which numbers of a projection may be those of one role."""
        width, d = made.shape[-1], heads.shape[-1]
        starts = {0, self.h * d, width // 3, width // 2}
        if slot == 2:  # nothing turns values, so their first number is among them
            own = heads[:, 0, :, 0]
            starts = {i for i in range(width) if _close(made[..., i], own)}
        wide = [n * d for n in range(1, self.h + 1) if self.h % n == 0]
        return [(a, a + w) for a in starts for w in wide if a + w <= width]

    def _in_order(self, parts: tuple[Part, ...]) -> None:
        """Refuse parts of a joined weight that are not queries, keys and values."""
        part_q, part_k, part_v = parts
        for first, second in ((part_q, part_k), (part_k, part_v), (part_q, part_v)):
            # In a joined weight, queries come first, then keys.
            if first[0] == second[0] and first[1] >= second[1]:
                raise UnexplainedError
        self.used = {name for name, *_ in parts}
        if any(self._projects(name) for name in self.taken):
            raise UnexplainedError
        for name, _, count in parts:
            used = sum(one[0] == name for one in parts)
            if used == count - 1 and not self.gated:
                self.gated = name  # the rest may make the gate
            elif used != count and self.gated != name:
                raise UnexplainedError  # a part of its rows is left out

    def _exchanged(self, parts: tuple[Part, ...]) -> None:
        """Tell where the parts of one joined weight are taken in another order."""
        own = parts[0][0]
        places = [place for _, place, _ in parts]
        if {name for name, *_ in parts} != {own} or sorted(places) != [0, 1, 2]:
            raise UnexplainedError
        self.used = {own}
        thirds = ("first", "second", "third")
        told = ", ".join(
            f"{role} are the {thirds[place]} part"
            for role, place in zip(("queries", "keys", "values"), places, strict=True)
        )
        told = f"Of what {own} makes, {told}."
        self.steps.append(Step("projection_mixed_up", "projection", told))

    def _overlapping(self, parts: tuple[Part, ...]) -> None:
        """Tell where queries, keys and values are cut from rows that overlap."""
        for own in sorted({name for name, *_ in parts}):
            rows = sorted((first, last) for name, first, last in parts if name == own)
            whole = next(m.made.shape[-1] for m in self.maps if m.name == own)
            if len(rows) > 1 and {*rows} == {(0, whole)} and not self.walk.idle:
                self.words.append("one projection for two roles")
                return
            ends = [(0, 0), *rows, (whole, whole)]
            if all(one[1] == two[0] for one, two in pairwise(ends)):
                continue
            told = ", ".join(f"{first} to {last - 1}" for first, last in rows)
            told = f"Of {whole} numbers of {own}, {told} are used."
            self.steps.append(Step("projection_mixed_up", "split", told))
            return
        raise UnexplainedError

    def _without_extra(self, slot: int, heads: torch.Tensor) -> torch.Tensor:
        """Leave out a key or value that every token sees, and that is a parameter."""
        if slot == 0 or self.subject.layer.memory or heads.shape[2] != self.t + 1:
            return heads
        for place, rest in ((0, heads[:, :, 1:]), (-1, heads[:, :, :-1])):
            own = heads[:, :, place]
            held = [p.double().flatten() for p in self.parameters.values()]
            alike = _close(own, own[:1].expand_as(own))
            if alike and any(_holds(p, own[0].flatten()) or _holds(p, own[0, 0])
                             for p in held):  # fmt: skip
                if self.extra is None:
                    self.words.append(NULL)
                self.extra = place
                return rest
        raise UnexplainedError

    def _side(self, slot: int, heads: torch.Tensor) -> tuple[Kind, torch.Tensor, Part]:
        """Return ((norm, rope), factors, part) that explain (b, h, t, d)."""
        role = ("query", "key", "value")[slot]
        t = heads.shape[2]
        for map_ in self.maps:
            if map_.made.shape[1] != t:
                continue
            made, added = map_.made.double(), self._added(map_)
            if self.wrong.get("cut"):
                self.cuts = self._cuts(slot, made, heads)
            each = zip(
                *(self._parts(one, heads.shape[-1]) for one in (made, added)),
                strict=True,
            )
            for (place, part), (_, bias) in each:
                if self.h % part.shape[1] or self._hopeless(slot, role, map_, place):
                    continue
                for how, turned in self._turned(part, slot, heads):
                    turned, factor = self._scaled_to(heads, turned, slot)
                    if not _close(heads, turned * factor[:, None, None]):
                        if slot or self.wrong or not self._shifted(heads - turned):
                            continue
                        factor = torch.ones_like(factor)
                    if slot == 2 and (factor - 1).abs().max() > 1e-4:
                        continue
                    self._named(map_, role, place)
                    self._biased(bias.flatten(), role)
                    self._source(map_, slot)
                    return how, factor, (map_.name, *place)
        if self.wrong:
            raise UnexplainedError
        return self._sliced(slot, heads)

    def _sliced(
        self, slot: int, heads: torch.Tensor
    ) -> tuple[Kind, torch.Tensor, Part]:
        """Explain heads of which a part has positions, and one of its own weight.

        As where keys and values come from one short vector, and the part of the keys
        that is rotated is the same in all heads.
        """
        pieces = self._pieces(heads)
        turned = [one for one in pieces if one.turn]
        plain = [one for one in pieces if not one.turn]
        if slot == 1 and len(plain) == 2:  # one is the latent's, one shared by heads
            shared = plain[0].step == 0
            turned, plain = plain[not shared :][:1], plain[shared:][:1]
        if len(plain) != 1 or len(turned) > 1 or (turned and slot == 2):
            raise UnexplainedError
        (one,) = plain
        if slot == 1 and (not turned or turned[0].map.name == one.map.name):
            raise UnexplainedError
        kind: Kind = ((None, None), None)
        if turned:
            (other,) = turned
            told = f", {other.width} numbers of each head"
            told += " in front" if not other.start else ""
            kind = ((None, None), (other.turn, told)) if other.turn else kind
            if (other.factor / one.factor - 1).abs().max() > 1e-4:
                raise UnexplainedError
            if slot == 1 and self._way(other.map.took, [self.x]) is None:
                raise UnexplainedError
        self.slices[slot] = one
        self._source(one.map, slot)
        whole = one.width == one.step or not slot
        return kind, one.factor, (one.map.name, int(one.column > 0), 2 - whole)

    def _side_by_side(self) -> None:
        """Refuse slices that overlap or leave a part of their map out."""
        if 1 not in self.slices:
            if 2 in self.slices:
                raise UnexplainedError
            return
        made = self.walk.values
        heads = made.view(self.b, self.h, *made.shape[1:]).double()
        key, value = self.slices[1], self._pieces(heads)[0]
        together = key.map.name == value.map.name
        ends = (value.column, value.column + value.width) if together else (
            key.step, key.step)  # fmt: skip
        if (key.column, key.width, key.step) != (0, *ends):
            raise UnexplainedError

    def _pieces(self, heads: torch.Tensor) -> list[Piece]:
        """Return the parts of heads (b, h, t, d) that lie side by side in a map."""
        h, d = heads.shape[1], heads.shape[3]
        pieces: list[Piece] = []
        start = 0
        while start < d:
            found = [
                piece
                for map_ in self.maps
                if map_.made.shape[1] == heads.shape[2]
                for piece in self._piece(map_, heads, start)
            ]
            if not found or len(pieces) > 1:
                raise UnexplainedError
            pieces.append(max(found, key=lambda one: one.width))
            start += pieces[-1].width
        if h < 2:
            raise UnexplainedError  # nothing tells what is shared
        return pieces

    def _piece(self, map_: Map, heads: torch.Tensor, start: int) -> Iterator[Piece]:
        """Yield the widest part of heads from a place on that a map has, or none."""
        made, h, d = map_.made.double(), heads.shape[1], heads.shape[3]
        first, second = (_directions(heads[:, i, :1, start:]) for i in (0, 1))
        whole = _directions(made[:, :1])
        for column in _alike(whole, first[:, 0]):
            for other in _alike(whole, second[:, 0]):
                step, wide = other - column, 0
                while start + wide < d and all(
                    at + wide < whole.shape[1]
                    and (whole[:, at + wide] @ side[:, wide]) > 1 - 1e-7
                    for at, side in ((column, first), (other, second))
                ):
                    wide += 1
                last = column + (h - 1) * step + wide
                if step < 0 or last > made.shape[-1]:
                    continue
                part = torch.stack(
                    [made[..., column + i * step :][..., :wide] for i in range(h)], 1
                )
                for width, turn, factor in self._piece_turns(
                    part, heads[..., start : start + wide]
                ):
                    yield Piece(map_, start, column, width, step, factor, turn)

    def _piece_turns(
        self, part: torch.Tensor, heads: torch.Tensor
    ) -> Iterator[tuple[int, Rope | None, torch.Tensor]]:
        """Yield (width, rotary positions or None, factors) that make heads of it."""
        size = part[:, :, 0].square().sum(dim=(0, 2)).clamp_min(1e-12)
        factor = (heads[:, :, 0] * part[:, :, 0]).sum(dim=(0, 2)) / size
        scaled = part * factor[:, None, None]
        same = [_close(heads[..., i], scaled[..., i]) for i in range(part.shape[-1])]
        plain = next((i for i, one in enumerate(same) if not one), len(same))
        if plain:
            yield plain, None, factor
        given = self.subject.given.items()
        numbers = {n: v for n, v in given if type(v) in (int, float) and v > 1}
        bases = [float(v) for n, v in numbers.items() if BASE.search(n)]
        # Its first numbers alone may be turned: as many as it was built with.
        widths = {part.shape[-1], *(v for v in numbers.values() if type(v) is int)}
        widths = {n for n in widths if n % 2 == 0 and n <= part.shape[-1]}
        for n, base in product(sorted(widths), dict.fromkeys([*bases, 1e4])):
            for pairing in ("halves", "neighbors"):
                turned = _rotated(scaled[..., :n], (Rope(pairing, base), ""))
                if _close(heads[..., :n], turned):
                    yield n, Rope(pairing, base), factor

    def _scaled_to(
        self, heads: torch.Tensor, made: torch.Tensor, slot: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what was made for all heads, and the best factor of each head."""
        shared = self.wrong.get("groups", ("", ""))[max(slot - 1, 0)]
        made = _share(made, self.h, shared if slot else "")
        size = made.square().sum(dim=(0, 2, 3)).clamp_min(1e-12)
        return made, (heads * made).sum(dim=(0, 2, 3)) / size

    def _may_turn(self, made: torch.Tensor, slot: int, heads: torch.Tensor) -> bool:
        """Whether the first token is as it should be: no position turns that one."""
        first = heads[:, :, :1]
        one, factor = self._scaled_to(first, made[:, :, :1], slot)
        left = first - one
        return _close(first, one * factor[:, None, None]) or (
            not slot and not self.wrong and _close(left, left[:1].expand_as(left))
        )

    def _shifted(self, left: torch.Tensor) -> bool:
        """Whether a parameter was added to the queries of every token."""
        own = left[:1, :, :1]
        return _close(left, own.expand_as(left)) and any(
            _holds(p.double().flatten(), own.flatten())
            for p in self.parameters.values()
            if p.numel() == own.numel()
        )

    def _parts(
        self, made: torch.Tensor, d: int
    ) -> Iterator[tuple[tuple[int, int], torch.Tensor]]:
        """Yield (where it lies, heads (b, h, t, d)) that a projection may hold."""
        width = made.shape[-1]
        if self.wrong.get("cut"):
            for first, last in self.cuts:
                part = made[..., first:last]
                yield (first, last), part.unflatten(-1, (-1, d)).transpose(1, 2)
            return
        keys, values = (one.shape[-1] for one in (self.walk.key, self.walk.values))
        if keys != values and width == self.h * (2 * keys + values):
            sizes = [keys, keys, values]  # head by head, and one after another
            each = made.unflatten(-1, (self.h, -1)).split(sizes, dim=-1)
            whole = made.split([self.h * n for n in sizes], dim=-1)
            for i, (one, two) in enumerate(zip(each, whole, strict=True)):
                if sizes[i] == d:
                    yield (i, 3), one.transpose(1, 2)
                    yield (i, 3), two.unflatten(-1, (self.h, -1)).transpose(1, 2)
            return
        if width % d:
            return
        yield (0, 1), made.unflatten(-1, (-1, d)).transpose(1, 2)
        for count in (2, 3):
            if width % (count * d):
                continue
            for i, one in enumerate(made.chunk(count, dim=-1)):
                yield (i, count), one.unflatten(-1, (-1, d)).transpose(1, 2)
            each = made.unflatten(-1, (-1, count, d))
            for i in range(count):
                yield (i, count), each[..., i, :].transpose(1, 2)
        rest = width - self.h * d
        if 0 < rest < 2 * self.h * d and rest % (2 * d) == 0:
            sizes = [self.h * d, rest // 2, rest // 2]
            for i, one in enumerate(made.split(sizes, dim=-1)):
                yield (i, 3), one.unflatten(-1, (-1, d)).transpose(1, 2)
            groups = rest // (2 * d)  # or group by group
            each = made.unflatten(-1, (groups, -1, d))
            for i, one in enumerate(
                (each[..., :-2, :], each[..., -2:-1, :], each[..., -1:, :])
            ):
                yield (i, 3), one.flatten(2, 3).transpose(1, 2)

    def _turned(
        self, part: torch.Tensor, slot: int, heads: torch.Tensor
    ) -> Iterator[tuple[Kind, torch.Tensor]]:
        """Yield ((norm, rope), what these make of queries or keys)."""
        rotated, normed = (self.wrong.get(name) for name in ("rotated", "norm"))
        if slot == 2:
            if "values" in (rotated or ""):
                for one_way, _ in self._ropes(part.shape[2]):
                    yield (
                        ((None, None), None),
                        turned_as(part, one_way, str(rotated), slot),
                    )
            else:
                yield ((None, None), None), part
            return
        # A side that the mistake leaves as it is may have any rotary positions.
        sides = str(rotated or "").split(" and ")[0]
        still = sides in ("queries", "keys") and sides != ("queries", "keys")[slot]
        if (rotated is None and normed is None) or still:
            yield ((None, None), None), part
        ropes = [] if still else list(self._ropes(part.shape[2]))
        elsewhere = str(rotated).startswith(("offset", "left out", "rest in front"))

        def to_try(one: torch.Tensor) -> list[Turn]:
            return ropes if elsewhere or self._may_turn(one, slot, heads) else []

        def moved(one: torch.Tensor, turn: Turn) -> torch.Tensor:
            if rotated is None:
                return _rotated(one, turn)
            if turn[1]:
                raise UnexplainedError
            return turned_as(one, turn[0], rotated, slot)

        if normed is None:
            for rope in to_try(part):
                yield ((None, None), rope), moved(part, rope)
        for norm in (*self._norms("qk"[slot], part.shape[-1]), ("l2", ())):
            one = normalize(part, norm[0], norm[1] or (None, None))
            if normed is not None and "qk"[slot] not in normed:
                one = part
            how = (norm[0], None)
            if rotated is None or still:
                yield (how, None), one
            for rope in to_try(one):
                yield (how, rope), moved(one, rope)
                again = moved(part, rope)
                yield (
                    ((how[0], "behind"), rope),
                    normalize(again, norm[0], norm[1] or (None, None)),
                )

        for norm in self._norms("qk"[slot], part.shape[1] * part.shape[-1]):
            whole = part.transpose(1, 2).flatten(2)
            one = normalize(whole, norm[0], norm[1] or (None, None))
            one = one.unflatten(-1, part.shape[1::2]).transpose(1, 2)
            yield ((norm[0], "all heads"), None), one
            for rope in to_try(one):
                yield ((norm[0], "all heads"), rope), _rotated(one, rope)

    def _norms(self, letter: str, width: int) -> Iterator[tuple[str, Numbers]]:
        for name, kind, wide, *numbers in norms_of(self.module):
            last = name.split(".")[-1].lower()
            other = "qk".replace(letter, "")
            if wide == width and not re.match(rf"{other}|norm_?{other}", last):
                yield kind, tuple(numbers)

    def _ropes(self, t: int) -> Iterator[Turn]:
        """Yield (rotary positions, words on two axes) that tables may hold."""
        tables = {"a table of positions", "a table"} & set(self.walk.extras)
        if not tables:
            return
        given = self.subject.given
        numbers = {n: v for n, v in given.items() if type(v) in (int, float) and v > 0}
        bases = [float(v) for n, v in numbers.items() if BASE.search(n) and v > 1]
        shares = [
            v for n, v in numbers.items() if re.search("pct|share|frac|partial", n)
        ]
        shares += [
            v / self.walk.d
            for n, v in numbers.items()
            if re.search("rot|rope", n) and type(v) is int and v <= self.walk.d
        ]
        how = str(self.wrong.get("rotated", ""))
        if how.startswith("base ") and not bases:
            return  # nobody said which base is meant
        # With few angles, other powers of a rare base are those of another base.
        usual = [1e4] if how in POWERS else [1e4, 5e5, 1e6]
        # What was given counts alone: another is a mistake.
        for base, share in product(
            dict.fromkeys(bases or usual), dict.fromkeys(shares or [1.0, 0.5])
        ):
            if not 0 < share <= 1 or int(self.walk.d * share) % 2:
                continue
            for pairing in ("halves", "neighbors"):
                yield Rope(pairing, base, share), ""
        for rows in range(2, t // 2 + 1):
            if rows in self._rows(t) and t // rows > 1 and self.walk.d % 4 == 0:
                for base in dict.fromkeys(bases or [1e4, 1e2]):
                    for pairing in ("halves", "neighbors"):
                        yield Rope(pairing, base), f", by row and column of {rows}"

    def _rows(self, t: int) -> list[int]:
        """Return how many rows a grid of tokens may have."""
        sizes = [v for v in self.subject.given.values() if isinstance(v, tuple | list)]
        given = [v for v in sizes if len(v) == 2 and v[0] * v[1] == t]
        return [v[0] for v in given] or [n for n in range(1, t) if t % n == 0]

    def _hopeless(
        self, slot: int, role: str, map_: Map, place: tuple[int, int]
    ) -> bool:
        """Whether a part is not worth a try with a mistake: it is another's."""
        if not self.wrong:
            return False
        own = {1: (0, 0, 0), 2: (0, 0, 1), 3: (0, 1, 2)}  # of two, those of k and v
        if self.wrong.keys() & {"order", "maps"}:
            return False
        if not self.wrong.get("cut") and place[0] != own[place[1]][slot]:
            return True
        if self.values is not None and slot < 2:
            name, _, count = self.values
            together = count == 3 or (count == 2 and slot == 1)
            if place[1] != (count if together else 1):
                return True
            if (map_.name == name) != together:
                return True
        try:
            self._named(map_, role, place)
        except UnexplainedError:
            return True
        return False

    def _named(self, map_: Map, role: str, place: tuple[int, int]) -> None:
        """Refuse a parameter whose name says that it makes something else."""
        parts = [p for p in map_.name.split(".") if p not in ("weight", "bias")]
        plain = parts[-1].replace("_", "").lower() if parts else ""
        others = [r for r in ("query", "key", "value", "out") if r != role]
        if place[1] == 1 and any(plain in NAMES[other] for other in others):
            raise UnexplainedError
        up = {"key": "value", "value": "key"}.get(role, "")
        own = role if self.wrong.get("maps") else up
        if up and plain in NAMES[f"up_{own}"]:
            raise UnexplainedError

    def _added(self, map_: Map) -> torch.Tensor:
        """Return what a linear map adds to each token, as (1, 1, width)."""
        took, made = map_.took.double(), map_.made.double()
        weight = self.parameters[map_.name].double()
        weight = weight.reshape(made.shape[-1], -1) if weight.dim() > 2 else weight
        for one in (weight, weight.mT):
            if one.shape == (made.shape[-1], took.shape[-1]):
                left = made - took @ one.mT
                if _close(left, left[:1, :1].expand_as(left)):
                    return left[:1, :1]
        return torch.zeros_like(made[:1, :1])

    def _biased(self, bias: torch.Tensor, role: str) -> None:
        """Tell of a bias that another projection has by its name."""
        for name, parameter in self.parameters.items():
            whose = BIAS_OF.fullmatch(name.rpartition(".")[2].lower())
            if not whose or (whose[1] or whose[2])[0] == role[0]:
                continue
            held = parameter.double().flatten()
            if held.shape == bias.shape and held.any() and _close(held, bias):
                told = f"{name} is added to the {role} of each token."
                self.steps.append(Step("projection_mixed_up", "projection", told))

    def _source(self, map_: Map, slot: int) -> None:
        """Explain what a projection takes: the tokens, or their norm."""
        x, memory = self.x, self.subject.layer.memory
        self.sources.append(map_.took)
        starts = [x]
        if slot and memory:
            x = memory_tokens(memory, x, map_.took.shape[-1])
            starts = [x, *starts]
        if _close(map_.took, x):
            self.ways.append(())
            return
        if not self._is_norm(map_.took, x):
            kept, self.taken = self.taken, {}
            way = self._way(map_.took, starts)
            self.taken |= kept
            if way is None or (slot and memory and _close(map_.took, self.x)):
                raise UnexplainedError
            self.ways.append((*way, "beside"))
            return
        self.ways.append(())
        part = map_.name.rpartition(".")[0].rpartition(".")[0]
        norms = [n for n, *_ in norms_of(self.module) if n.rpartition(".")[0] == part]
        self.apart |= {slot} if part and len(norms) == 1 else set()
        if slot == 0 or not memory:
            if self.normed is None:
                self.words.append("a norm of the input")
            self.normed = map_.took
            self.options |= {"prenorm": "layer"}

    def _is_norm(self, tensor: torch.Tensor, x: torch.Tensor) -> bool:
        """Whether a tensor is the norm of tokens."""
        b, t = x.shape[:2]
        for name, given, _, result in self.calls:
            if name in NORMS and any(
                _close(one, x) and _close(made, tensor)
                for one, made in zip(
                    _views(given[0], b, t), _views(result, b, t), strict=False
                )
            ):
                return True
        return any(
            wide == x.shape[-1]
            and _close(tensor.double(), normalize(x.double(), kind, tuple(numbers)))
            for _, kind, wide, *numbers in norms_of(self.module)
        )

    # From scores to weights.

    def _scores(self, q: torch.Tensor, k: torch.Tensor) -> None:
        """Explain what softmax takes: scores, a factor, a bias and a mask."""
        walk, b, h = self.walk, self.b, self.h
        keys = self.keys
        taken = walk.taken.double().view(b, h, self.t, -1)
        self.front = 0
        if taken.shape[-1] == keys + 1:
            self._sink(taken)
            taken = taken[..., self.front : self.front + keys]
        elif taken.shape[-1] != keys:
            raise UnexplainedError
        scores = walk.scores.double().view(b, h, self.t, keys)
        if self.extra is not None:
            cut = slice(1, None) if self.extra == 0 else slice(-1)
            other = taken[..., self.extra]
            if (other < -1e3).any():
                raise UnexplainedError
            taken, scores, keys = taken[..., cut], scores[..., cut], keys - 1
        hidden = (taken < -1e3) | ~taken.isfinite()
        self._mask(hidden)
        seen = ~hidden[0]
        taken = taken - self._declared_bias(taken)
        if walk.capped:
            scores = self._capped(scores, taken, seen)
        factor, bias, left = _fitted(taken, scores, seen)
        if self.pairs and (left > 1e-4 or bias.abs().max() > 1e-4):
            for told, one in self._pair_biases(taken):
                less = _fitted(taken - one, scores, seen)
                if less[2] < 1e-4 and less[1].abs().max() < 1e-3:
                    self.words.append(told)
                    factor, bias, left = less
                    break
        if left > 1e-4:
            self._content(taken, scores, self.walk.d**-0.5 / (q * k), seen)
            return
        self._factor(factor * q * k)
        if bias.abs().max() > 1e-4 * taken[0][seen].abs().max():
            if self._is_fixed(bias, seen):
                self._slopes(bias, seen)
            else:
                self._bias(bias, seen)

    def _declared_bias(self, taken: torch.Tensor) -> torch.Tensor:
        """Return what the reader says that is added to the scores, or 0."""
        told = self.subject.layer.bias
        if told is None:
            return taken.new_zeros(())
        self.options |= {"bias": told}
        bias = told if isinstance(told, torch.Tensor) else told(self.module, self.t)
        return bias.detach().to(taken)[..., : self.t, : self.keys]

    def _pair_biases(self, taken: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield (words, numbers) of what forward was given for each pair of tokens.

        As it is, or projected to a number for each head, also from its norm.
        """
        b, h, t, keys = taken.shape
        for pair in self.pairs:
            if {*pair.shape[:2]} <= {1, b, h} and pair.shape[2:] == (t, keys):
                yield "numbers for each pair of tokens", pair.to(taken)
            sources = [
                pair,
                *(
                    one.made
                    for one in self.aside
                    if self._is_a_norm(one) and _close(one.took, pair)
                ),
            ]
            sources += [result for name, given, _, result in self.calls
                        if name in NORMS and _close(given[0], pair)]  # fmt: skip
            for name, given, _, made in self.calls:
                if name not in ("linear", "matmul", "__matmul__", "addmm"):
                    continue
                if made.shape != (*pair.shape[:3], h) or pair.shape[1:3] != (t, keys):
                    continue
                if any(_close(given[0], one) for one in sources):
                    told = "a projected number for each pair of tokens"
                    yield told, made.permute(0, 3, 1, 2).to(taken)

    def _capped(
        self, scores: torch.Tensor, taken: torch.Tensor, seen: torch.Tensor
    ) -> torch.Tensor:
        """Return the capped scores, divided by what goes into tanh of the scores.

        What they are multiplied with behind is to leave the usual factor.
        """
        for name, given, _, result in self.calls:
            if name != "tanh" or result.numel() != scores.numel():
                continue
            into, out = (
                one.double().reshape(scores.shape) for one in (given[0], result)
            )
            by, added, left = _fitted(into, scores, seen)
            if left > 1e-4 or added.abs().max() > 1e-4 * into[0][seen].abs().max():
                break
            caps, _, left = _fitted(taken, out, seen)
            cap = float(caps[0])
            if left > 1e-4 or not _close(caps, caps[:1].expand_as(caps)):
                break
            meant = [v for n, v in self.subject.given.items()
                     if "cap" in n and type(v) in (int, float) and v]  # fmt: skip
            if meant and not any(abs(cap - v) < 1e-3 * cap for v in meant):
                break
            self.words.append(f"scores capped at {cap:.4g}")
            self.options |= {"softcap": cap}
            return out / by[:, None, None]
        raise UnexplainedError

    def _is_fixed(self, bias: torch.Tensor, seen: torch.Tensor) -> bool:
        """Whether no parameter beside the projections changes the bias."""
        module, made = self.subject.copy(), {one.name for one in self.maps}
        with torch.no_grad():
            for name, p in module.named_parameters():
                if name not in made and not SCALES.search(name):
                    p.mul_(-1.7).add_(0.3)
        walk = Reading(self.subject, self.x, module, self.heads_first).walk
        keys = self.keys
        size = self.b, self.h, self.t
        taken = walk.taken.double().view(*size, -1)[..., self.front :][..., :keys]
        scores = walk.scores.double().view(*size, keys)
        if self.extra is not None:
            cut = slice(1, None) if self.extra == 0 else slice(-1)
            taken, scores = taken[..., cut], scores[..., cut]
        return _close(_fitted(taken, scores, seen)[1], bias)

    def _slopes(self, bias: torch.Tensor, seen: torch.Tensor) -> None:
        """Explain a bias that nothing learns: that of ALiBi, as it is meant."""
        i = torch.arange(self.t)
        far = (i[:, None] - i).abs()
        usual = 2.0 ** (-8 * torch.arange(1, self.h + 1).double() / self.h)
        whole = 1 << (self.h - 1).bit_length()  # a power of two: every second first
        doubled = 2.0 ** (-8 * torch.arange(1, whole + 1).double() / whole)
        doubled = torch.cat([doubled[1::2], doubled[::2]])[: self.h]
        both = [-one[:, None, None] * far * seen for one in (usual, doubled)]
        if self.keys == self.t and seen[..., 0].all():
            # What all scores of a row have in common is nothing to softmax.
            bias, *both = ((one - one[..., :1]) * seen for one in (bias, *both))
        if self.keys != self.t or not any(_close(bias, one) for one in both):
            raise UnexplainedError
        self.words.append("a distance bias")
        self.options |= {"alibi": True}

    def _content(
        self,
        taken: torch.Tensor,
        scores: torch.Tensor,
        factor: torch.Tensor,
        seen: torch.Tensor,
    ) -> None:
        """Explain what is added by products of the queries with one row by distance."""
        d = self.walk.d
        if self.b < 3 * d:
            raise TooFewError
        if self.l2 or self.keys != self.t:
            raise UnexplainedError
        queries = self.walk.query.double().view(self.b, self.h, self.t, d)
        given = torch.cat([queries, torch.ones_like(queries[..., :1])], dim=-1)
        given = given.permute(1, 2, 0, 3)  # (h, t, b, d + 1)
        added = taken - factor[:, None, None] * scores
        added = torch.where(seen, added, torch.zeros_like(added)).permute(1, 2, 0, 3)
        rows = torch.linalg.lstsq(given, added).solution  # (h, t, d + 1, keys)
        if (given @ rows - added).abs().max() > 1e-4 * added.abs().max():
            raise UnexplainedError
        self._bias(rows.transpose(1, 2).flatten(0, 1), seen[:1].expand(
            self.h * (d + 1), -1, -1), of="products of the queries")  # fmt: skip

    def _sink(self, taken: torch.Tensor) -> None:
        """Explain a column of scores without values: a parameter, or zeros."""
        for place in (-1, 0):
            column = taken[..., place]
            if not _close(column, column[:1, :, :1].expand_as(column)):
                continue
            own = column[0, :, 0]
            held = [p.double().flatten() for p in self.parameters.values()]
            if not own.any() or any(_close(one, own) for one in held):
                self.front = 1 if place == 0 else 0
                kind = "learned" if own.any() else "zero"
                self.words.append(f"a {kind} sink for each head")
                self.options |= {"sink": kind}
                return
            if told := self._other_sink(own):
                self.front = 1 if place == 0 else 0
                self.options |= {"sink": "learned"}
                self.steps.append(Step("sink_altered", "weights", told))
                return
        raise UnexplainedError

    def _other_sink(self, own: torch.Tensor) -> str:
        """Say what was made of the sinks that a parameter holds, or return ""."""
        for name, p in self.parameters.items():
            sinks = p.double().flatten()
            if "sink" not in name or len(sinks) != self.h or self.h < 2:
                continue
            by = float((own * sinks).sum() / sinks.square().sum())
            if _close(own, by * sinks):
                return f"The sinks of {name} are multiplied by {by:.3g}."
            if _close(own.sort().values, sinks.sort().values):
                return f"The sinks of {name} go to other heads than their own."
            if _close(own, sinks.mean().expand_as(own)):
                return f"Each head's sink is the mean of {name}."
        return ""

    def _mask(self, hidden: torch.Tensor) -> None:
        """Explain what is hidden: nothing, the future, or what a window leaves out."""
        if not torch.equal(hidden, hidden[:1, :1].expand_as(hidden)):
            raise UnexplainedError
        t, keys = hidden.shape[2:]
        i, j = torch.arange(t)[:, None], torch.arange(keys)[None, :]
        mask, declared = hidden[0, 0].cpu(), self.subject.layer.window
        meant = declared or self.subject.given_window
        ahead = j > i
        if not self.subject.causal or self.subject.layer.memory:
            ahead = ahead & False
        most = max(t, keys)
        if self.subject.layer.exclusive:
            self.words.append("no token seeing itself")
            self.options |= {"exclusive": True}
        alone = (i == j) & bool(self.subject.layer.exclusive)
        bands = {
            w: ahead | alone | (self._apart(i, j, ahead) >= w)
            for w in range(1, most + 1)
        }
        widths = [w for w, band in bands.items() if torch.equal(mask, band)]
        if not widths or (widths[0] >= t and meant and meant < t):
            raise UnexplainedError
        if widths[0] >= t:
            return
        self.words.append(f"a window of {widths[0]}")
        self.options |= {"window": widths[0]}
        if declared and widths[0] != declared:
            told = f"Each token sees {widths[0]} tokens instead of {declared}."
            self.steps.append(Step("window_size", "mask", told))
        elif not declared and meant and widths[0] in self._sides_of_window(meant):
            return
        elif not declared and meant in (widths[0] - 1, widths[0] + 1):
            self.asks |= {"window": meant}
        elif widths[0] != meant:
            raise UnexplainedError

    def _sides_of_window(self, meant: int) -> tuple[int, ...]:
        """Return the windows that mean as many tokens to each side, or half of them."""
        if self.subject.causal or self.subject.says(ITSELF):
            return ()
        return meant + 1, meant // 2 + 1

    def _apart(
        self, i: torch.Tensor, j: torch.Tensor, ahead: torch.Tensor
    ) -> torch.Tensor:
        """Return how far apart tokens are, to one side where the future is hidden."""
        return i - j if ahead.any() else (i - j).abs()

    def _factor(self, whole: torch.Tensor) -> None:
        """Explain what the scores are multiplied with, for each head."""
        usual = self._usual()
        if not self.l2 and ((whole / usual - 1).abs() < 1e-3).all():
            return
        for name, p in self.parameters.items():
            one = p.double().flatten()
            if not SCALES.search(name) or len(one) not in (1, self.h):
                continue
            for made in (
                one, one.exp(), one.exp().clamp(max=100), 1 / one, one * usual,
                one.clamp(max=4.6052).exp(), one.abs(), one.sigmoid(),
                torch.nn.functional.softplus(one), 1 / one.exp(),
            ):  # fmt: skip
                if _close(whole, made.expand_as(whole)):
                    self.words.append(f"the scores multiplied by {name}")
                    return
        given = [
            v for v in self.subject.given.values() if type(v) in (int, float) and v
        ]
        if ((whole - whole[0]).abs() < 1e-3 * whole[0].abs()).all() and any(
            abs(whole[0] / v - 1) < 1e-3 for v in given if self.l2
        ):
            self.words.append(f"the scores multiplied by {whole[0]:.3g}")
            return
        if self.subject.speaks_of(T5) and (
            (whole - 1).abs() < 1e-3
        ).all() and "an embedding" in self.walk.extras:  # fmt: skip
            self.words.append("scores that aren't scaled, as in T5")
            return
        for mistake, factor in FACTORS:
            if self.l2 or (mistake == "scale_missing" and "qk_norm" in self.options):
                continue  # where both are normed, other scales are meant
            if ((whole / factor(self.walk) - 1).abs() < 1e-3).all():
                told = f"The scores are multiplied by {whole[0]:.4g} instead of "
                self.steps.append(Step(mistake, "scores", f"{told}{usual:.4g}."))
                return
        for name, width in self._other_widths():
            if ((whole * width**0.5 - 1).abs() < 1e-3).all():
                told = f"The scores are divided by the root of {name} = {width}"
                told += f", not of d_head = {self.walk.d}."
                self.steps.append(Step("scale_other", "scores", told))
                return
        raise UnexplainedError

    def _usual(self) -> float:
        """Return what the scores are to be multiplied with, as declared."""
        scale = self.subject.layer.scale
        if scale is None:
            return float(self.walk.d**-0.5)
        self.options |= {"scale": scale}
        self.words.append(f"scores multiplied by {scale}")
        return scale if isinstance(scale, float) else {"1": 1.0}.get(
            scale, 1 / self.walk.d
        )  # fmt: skip

    def _other_widths(self) -> list[tuple[str, int]]:
        """Return (name, number) of what may stand for the width of a head by mistake.

        That is neither a scale nor the width of a head or of its part, by its name.
        """
        if self.l2 or "qk_norm" in self.options:
            return []
        held = vars(self.module) | self.subject.given
        numbers = [(name, v) for name, v in held.items() if type(v) is int and v > 1]
        if 1 in self.slices:  # heads of two parts: the width of one is a mistake
            return numbers
        return [(name, v) for name, v in numbers if not MEANT.search(name)]

    def _bias(self, bias: torch.Tensor, seen: torch.Tensor, of: str = "") -> None:
        """Explain what is added to the scores: one number for each distance.

        That of a distance is what no other distance has, or that of its bucket.
        """
        told = "a bias by distance" + (f", from {of}" if of else "")
        for p in self.parameters.values():
            if p.dim() >= 2 and p.shape[-1] >= self.keys and p.numel() >= bias.numel():
                table = p.double().reshape(-1, *p.shape[-2:])[
                    ..., : self.t, : self.keys
                ]
                if table.shape == bias.shape and _close(bias, table * seen):
                    self.words.append("a learned bias for each pair of positions")
                    return
        i = torch.arange(self.t)
        for sides in self._grids(self.t) if bias.shape[-1] == self.t else ():
            places, left = torch.zeros(self.t, self.t, dtype=torch.long), i
            even = places
            for side in sides[::-1]:
                apart = (left % side)[:, None] - left % side
                places = places * 2 * self.t + apart
                even = even * 2 * self.t + apart.abs()
                left = left // side
            flat = len(sides) == 1
            if flat and not of and self._by_bucket(bias, seen, i[None, :] - i[:, None]):
                return
            # As far to one side as to the other, where every token sees all.
            both = [] if self.subject.causal or of else [even]
            if any(self._by_distance(bias, seen, one) for one in (places, *both)):
                grid = "" if flat else f" in {sides[0]} rows"
                grid += f" of {len(sides)} axes" if len(sides) > 2 else ""
                self.words.append(told + grid)
                self.options |= {} if of else {"bias": bias}
                return
        if not of and self._viewed(bias, seen):
            told = "What is added to the scores holds the numbers of a table by "
            told += "distance, (tokens, tokens, heads), viewed as (heads, tokens, "
            told += "tokens) instead of turned."
            self.steps.append(Step("bias_misplaced", "positions", told))
            return
        raise UnexplainedError

    def _grids(self, t: int) -> list[tuple[int, ...]]:
        """Return the sides that a grid of tokens may have."""
        sizes = [v for v in self.subject.given.values() if isinstance(v, tuple | list)]
        whole = [tuple(v) for v in sizes if {*map(type, v)} == {int}]
        # The tokens may be the first of those in the grid.
        solid = [v for v in whole if 1 < len(v) < 4 and math.prod(v) >= t]
        flat = [(t,) if rows == 1 else (rows, t // rows) for rows in self._rows(t)]
        return [*solid, *flat]

    def _viewed(self, bias: torch.Tensor, seen: torch.Tensor) -> bool:
        """Whether the bias is that of distances with its axes viewed as others."""
        t, h = self.t, self.h
        i = torch.arange(t)
        for _, _, _, made in self.calls:
            if made.numel() != bias.numel() or made.shape[-1] != h or h in (1, t):
                continue
            one = made.double().reshape(t, t, h)
            if _close(bias, one.reshape(h, t, t) * seen) and any(
                self._is_even(one, i // (t // rows), i % (t // rows))
                for rows in self._rows(t)
            ):
                return True
        return False

    def _is_even(self, table: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> bool:
        """Whether pairs as far apart, on two axes, have the same numbers (t, t, h)."""
        places = (y[:, None] - y) * 2 * self.t + z[:, None] - z
        return all(
            _close(each, each[:1].expand_as(each))
            for each in (table[places == place] for place in places.unique())
        )

    def _by_distance(
        self, bias: torch.Tensor, seen: torch.Tensor, places: torch.Tensor
    ) -> bool:
        numbers, seen, most = [], seen[0], bias.abs().max()
        for place in places[seen].unique():
            each = bias[:, seen & (places == place)]  # a row for each head
            if (each - each[:, :1]).abs().max() > 1e-3 * most:
                return False
            numbers.append(each[:, 0])
        table = torch.stack(numbers)  # (distances, h)
        same = torch.cdist(table, table) < 1e-3 * most
        near = same.diagonal(offset=1).tolist()  # of neighbors, in one dimension
        ends = [0, 0]
        while near and near[0]:  # far ones on either side may share a number
            ends[0] += 1
            near.pop(0)
        while near and near[-1]:
            ends[1] += 1
            near.pop()
        if not self.subject.causal and ends[0] != ends[1]:
            return False
        outer = same[:, [0, -1]].any(dim=1)
        inner = same[~outer][:, ~outer]
        return not any(near) and int(inner.sum()) == len(inner)

    def _by_bucket(
        self, bias: torch.Tensor, seen: torch.Tensor, distance: torch.Tensor
    ) -> bool:
        """Whether the bias is that of T5's buckets, of a table that is held."""
        both = not self.subject.causal
        for name, p in self.parameters.items():
            if p.dim() != 2 or self.h not in p.shape:
                continue
            table = p.double() if p.shape[1] == self.h else p.double().T
            held = [vars(part).values() for part in self.module.modules()]
            held = [self.subject.given.values(), *held]
            given = [v for values in held for v in values if type(v) is int]
            for most in {*given, 128}:
                if most <= len(table) // (4 if both else 2):
                    continue
                rows = _bucket(distance, both, len(table), most)
                made = table[rows].permute(2, 0, 1) * seen
                if any(
                    _close(bias, made * by)
                    for by in (1.0, self.walk.d**0.5, self.walk.d**-0.5)
                ):
                    self.words.append(f"a bias by buckets of the distance ({name})")
                    self.options |= {"bias": bias}
                    return True
        return False

    # Behind the scores.

    def _weights(self) -> None:
        """Explain the weights, their use and the context."""
        walk, keys = self.walk, self.keys
        weights = walk.taken.softmax(dim=-1)
        if not _close(walk.weights, weights) or not _close(
            walk.mixing, weights[..., self.front : self.front + keys]
        ):
            raise UnexplainedError
        if not _close(walk.context, walk.mixing @ walk.values):
            raise UnexplainedError

    def _around(self) -> None:
        """Explain the output: the joined heads, projected, and what is added."""
        context = self.walk.context.view(self.b, self.h, self.t, -1)
        joined = context.transpose(1, 2).flatten(2)
        if not any(_close(m.took, joined) for m in self.maps):
            joined = self._with_distances(joined)
        if self.gated or not any(_close(m.took, joined) for m in self.maps):
            joined = self._gate(joined)
        made = [m.made for m in self.maps if _close(m.took, joined)]
        if not made:
            for side in self.aside:
                for took, one in zip(
                    self._as_joined(side.took), self._as_joined(side.made), strict=False
                ):
                    used = [m.made for m in self.maps if _close(m.took, one)]
                    if _close(took, joined) and used and self._is_a_norm(side):
                        self.taken[side.name] = side.kind
                        made += used
        if not made and self._with_queries(joined):
            return
        if not made and any(self._is_out(name) for name in self.parameters):
            raise UnexplainedError
        self.used |= {m.name for m in self.maps if any(m.made is one for one in made)}
        for one in made or [joined]:
            if self._ends(one):
                return
        raise UnexplainedError

    def _with_distances(self, joined: torch.Tensor) -> torch.Tensor:
        """Return the heads with values by distance, if these are mixed in, too."""
        t, mixing = self.t, self.walk.mixing.view(self.b, self.h, self.t, -1)
        i = torch.arange(t)
        for _, given, _, _ in self.calls:
            for table in given:
                if table.shape != (t, t, self.walk.d) or not table.is_floating_point():
                    continue
                more = torch.einsum("bhij,ijd->bihd", mixing, table.to(mixing))
                whole = joined + more.flatten(2)
                if any(_close(m.took, whole) for m in self.maps) and self._is_even(
                    table, i * 0, i
                ):
                    self.words.append(APART)
                    return whole
        return joined

    def _with_queries(self, joined: torch.Tensor) -> bool:
        """Whether the queries are added to the heads, and feed-forward parts follow.

        As in blocks for sets of tokens.
        """
        stream = self._stream()
        if stream.shape != joined.shape:
            return False
        stream = joined + stream
        normed = [made for side in self.aside for took, made in self._pairs(side)
                  if self._is_a_norm(side) and _close(took, stream)]  # fmt: skip
        if not any(self._feeds_forward(one) for one in (stream, *normed)):
            return False
        self.words.append("the queries added to the heads")
        return True

    def _stream(self) -> torch.Tensor:
        """Return the queries of all heads, as tokens."""
        queries = self.walk.query.view(self.b, self.h, self.t, -1)
        return queries.transpose(1, 2).flatten(2)

    def _is_a_norm(self, side: Side) -> bool:
        """Whether a module is a norm, by its own numbers."""
        return side.name in {name for name, *_ in norms_of(self.module)}

    def _ends(self, one: torch.Tensor) -> bool:
        """Whether the output follows from the projected heads."""
        for joined, words in self._scaled(one):
            if _close(self.y, joined):
                self.words += words
                return True
            if self._is_norm(self.y, joined):
                self.words += [*words, "a norm of the output"]
                self.options |= {"postnorm": "layer"}
                return True
            added = joined + self.x
            if joined.shape != self.x.shape or added.shape != self.y.shape:
                continue
            self.options |= {"residual": True}
            if _close(self.y, added):
                self.words += [*words, "the input added"]
                self._norm_before(joined, one)
                return True
            if self._is_norm(self.y, added):
                self.words += [*words, "the input added", "a norm of the output"]
                self.options |= {"postnorm": "layer"}
                return True
            if self._feeds_forward(added):
                self.words += [*words, "the input added"]
                return True
            del self.options["residual"]
        if self._several_times(one):
            return True
        if self.normed is not None and _close(self.y, one + self.normed):
            told = "The output is the projected heads plus the normed input."
            self.steps.append(Step("residual_moved", "output", told))
            return True
        added = one + stream if (stream := self._stream()).shape == one.shape else one
        if stream.shape == one.shape and (
            _close(self.y, added) or self._is_norm(self.y, added)
        ):
            told = "The output is the projected heads plus the queries."
            self.steps.append(Step("residual_moved", "output", told))
            return True
        return False

    def _norm_before(self, joined: torch.Tensor, one: torch.Tensor) -> None:
        """Warn where the norm comes before the sum, and nothing says that it should."""
        norms = {side.name for side in self.aside if self._is_a_norm(side)
                 for took, made in self._pairs(side)
                 if _close(took, one) and _close(made, joined)}  # fmt: skip
        if norms and self.normed is None and "postnorm" not in self.options:
            told = f"{norms.pop()} acts on the projected heads, and the input is added "
            told += "behind it. Some models do so, and may declare it as late."
            step = Step("residual_after_norm", "output", told, severity="warning")
            self.steps.append(step)

    def _several_times(self, one: torch.Tensor) -> bool:
        """Whether the heads or the input are in the output twice or three times."""
        if one.shape != self.y.shape:
            return False
        added = self.x if self.x.shape == one.shape else torch.zeros_like(one)
        for heads, own in ((2, 0), (3, 0), (1, 2), (2, 1), (2, 2)):
            if _close(self.y, heads * one + own * added) and (added.any() or not own):
                told = f"The output holds the projected heads {heads} times"
                told += f", and the input {own} times." if own else "."
                self.steps.append(Step("output_repeated", "output", told))
                return True
        return False

    def _scaled(self, one: torch.Tensor) -> Iterator[tuple[torch.Tensor, list[str]]]:
        """Yield the projected heads, and what a norm or a learned scale makes."""
        yield one, []
        kept = dict(self.taken)
        for side in self.aside:
            small = [p.dim() < 2 for p in side.part.parameters()]
            for took, made in self._pairs(side) if small and all(small) else ():
                if _close(took, one) and not _close(made, one):
                    self.taken[side.name] = side.kind
                    yield made, []
                    self.taken = dict(kept)
        held = [p.double().flatten() for p in self.parameters.values() if p.dim() < 2]
        held += [change(p) for p in held for change in (torch.tanh, torch.sigmoid)]
        for name, given, _, result in self.calls:
            if name not in TIMES or len(given) != 2 or result.numel() != one.numel():
                continue
            for took, by in (given, given[::-1]):
                if not any(_close(by.double().flatten(), p) for p in held):
                    continue
                both = (_views(each, self.b, self.t) for each in (took, result))
                for heads, made in zip(*both, strict=False):
                    if _close(heads, one):
                        yield made, ["the output multiplied by a learned scale"]
        for made in self._gated_by(one):
            yield made, ["a gate of the output"]

    def _pairs(self, side: Side) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield what a module took and gave, as tokens (b, t, width)."""
        both = (_views(one, self.b, self.t) for one in (side.took, side.made))
        yield from zip(*both, strict=False)

    def _sums_inside(self, start: torch.Tensor) -> Side | None:
        """Return a module that makes the output of this, and adds it inside."""
        for side, took in self._sides_of(self.y):
            sums = (
                _close(one.reshape(start.shape), start)
                for name, given, _, result in self.calls
                if name in SUMS and result.numel() == start.numel()
                for one in given
                if one.numel() == start.numel()
            )
            if _close(took, start) and not self._is_a_norm(side) and any(sums):
                return side
        return None

    def _feeds_forward(self, stream: torch.Tensor) -> bool:
        """Whether the output is what a feed-forward part makes of the stream.

        It is added to what it took, or to what its norm took.
        """
        kept = dict(self.taken)
        named: list[tuple[str, str]] = []
        starts = [(stream, named)] + [
            (made, [(side.name, side.kind)])
            for side in self.aside
            for took, made in self._pairs(side)
            if self._is_a_norm(side) and _close(took, stream)
        ]
        ends = [(self.y, named)] + [
            (took, [(side.name, side.kind)])
            for side, took in self._sides_of(self.y)
            if self._is_a_norm(side)
        ]
        for start, norm in starts:
            if side := self._sums_inside(start):
                self.taken |= dict([*norm, (side.name, side.kind)])
                return True
        for (start, norm), (end, last) in product(starts, ends):
            if bool(norm) != bool(last):
                continue  # what is normed behind the sum was normed before
            for name, given, _, result in self.calls:
                if name not in SUMS or len(given) != 2:
                    continue
                if not any(_close(one, end) for one in _views(result, self.b, self.t)):
                    continue
                for one, other in (given, given[::-1]):
                    if not any(_close(v, start) for v in _views(one, self.b, self.t)):
                        continue
                    for made in _views(other, self.b, self.t):
                        self.taken = dict(kept) | dict([*norm, *last])
                        way = self._way(made, [start])
                        if way is not None and len(self.taken) > len(kept):
                            return True
        self.taken = kept
        return False

    def _gate(self, joined: torch.Tensor) -> torch.Tensor:
        """Return the joined heads times a gate that is projected, if there is one."""
        for wanted in self._gated_by(joined):
            used = any(_close(m.took, wanted) for m in self.maps)
            if used or _close(self.y, wanted):
                self.words.append("a gate of the joined heads")
                return wanted
        if self.gated:
            raise UnexplainedError
        return joined

    def _gated_by(self, joined: torch.Tensor) -> Iterator[torch.Tensor]:
        """Yield tokens times each gate that is projected of what queries come from."""
        b, t, d = self.b, self.t, self.walk.d
        for name, given, _, gate in self.calls:
            if name not in GATES or not gate.numel():
                continue
            for by, logits in zip(
                self._as_joined(gate), self._as_joined(given[0]), strict=True
            ):
                if joined.shape[-1] % by.shape[-1]:
                    continue
                # One number for each entry, or for each head.
                wanted = joined * by.repeat_interleave(
                    joined.shape[-1] // by.shape[-1], dim=-1
                )
                free = [m for m in self.maps if m.name not in self.used - {self.gated}]
                for m in [m for m in free if m.made.shape[1] == t]:
                    whole = m.name != self.gated
                    pieces = [part for _, part in self._parts(m.made, d)]
                    each = [p.transpose(1, 2).reshape(b, t, -1) for p in pieces]
                    if _close(m.took, self.sources[0]) and any(
                        _close(logits, one) for one in ([m.made] if whole else each)
                    ):
                        yield wanted

    def _as_joined(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """Return a tensor as (b, t, width), in each way in which it may hold heads."""
        shape, views = tuple(tensor.shape), list(_views(tensor, self.b, self.t))
        if tensor.dim() == 4 and shape[:2] == (self.b, self.t):
            views = [tensor.flatten(2)]
        elif tensor.dim() == 4 and shape[:3] == (self.b, self.h, self.t):
            views = [tensor.transpose(1, 2).flatten(2)]
        elif shape == (self.b, self.h, self.t):
            views = [tensor.mT]
        return views[:1]

    def _is_out(self, name: str) -> bool:
        parts = [p for p in name.split(".") if p not in ("weight", "bias")]
        return bool(parts) and parts[-1].replace("_", "").lower() in NAMES["out"]


def _fitted(
    taken: torch.Tensor, scores: torch.Tensor, seen: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return (factor for each head, what is added, how much is left by sequence)."""
    zero = torch.zeros((), dtype=torch.float64)
    change = torch.where(seen, taken[0] - taken[1], zero)
    by = torch.where(seen, scores[0] - scores[1], zero)
    factor = (change * by).sum(dim=(1, 2)) / by.square().sum(dim=(1, 2))
    each = factor[:, None, None]
    left = (change - each * by).abs().max() / change.abs().max().clamp_min(1e-12)
    return factor, torch.where(seen, taken[0] - each * scores[0], zero), left


def _directions(numbers: torch.Tensor) -> torch.Tensor:
    """Return (b, 1, n) as n columns of length 1."""
    columns = numbers.double().flatten(0, 1)
    return columns / columns.norm(dim=0).clamp_min(1e-12)


def _alike(columns: torch.Tensor, one: torch.Tensor) -> list[int]:
    """Return the places of columns that have a direction."""
    return [int(i) for i in (one @ columns > 1 - 1e-7).nonzero()[:, 0]]


def _rotated(heads: torch.Tensor, turn: Turn) -> torch.Tensor:
    rope, axial = turn
    t = heads.shape[2]
    if not axial:
        return rotate(heads, rope, torch.arange(t, dtype=heads.dtype))
    rows = int(axial.split()[-1])
    i = torch.arange(t, dtype=heads.dtype)
    wide = t // rows
    one, two = heads.chunk(2, dim=-1)
    y, z = (i / wide).floor(), i % wide
    return torch.cat([rotate(one, rope, y), rotate(two, rope, z)], dim=-1)


def _bucket(distance: torch.Tensor, both: bool, count: int, most: int) -> torch.Tensor:
    """Return T5's bucket of each distance, key minus query."""
    start = torch.zeros_like(distance)
    if both:
        count //= 2
        start = (distance > 0).long() * count
        far = distance.abs()
    else:
        far = (-distance).clamp(min=0)
    exact = count // 2
    large = (far.clamp(min=1).double() / exact).log()
    large = large / torch.tensor(most / exact, dtype=torch.float64).log()
    large = exact + (large * (count - exact)).long()
    return start + torch.where(far < exact, far, large.clamp(max=count - 1))


def _holds(parameter: torch.Tensor, numbers: torch.Tensor) -> bool:
    """Whether a parameter has these numbers, one after another."""
    size = len(numbers)
    return len(parameter) % size == 0 and any(
        _close(one, numbers) for one in parameter.view(-1, size)
    )
