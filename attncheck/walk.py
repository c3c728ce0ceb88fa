"""Judges each step of attention by what went into it, so that no other step disturbs.

The tensors of one forward pass are followed by their numbers: what was projected, cut
into heads, multiplied, masked, normalized, mixed and joined. A step that turns its own
input into something else than meant is named, whatever else the layer does.
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise, product
from typing import Any

import torch
from torch import nn

from attncheck.layer import Layer
from attncheck.projections import NAMES
from attncheck.subject import Subject
from attncheck.trace import Arguments, Line, Product, Watch, _storage, tensors

CLOSE = 1e-4  # of the largest number
MOST = 400  # tensors that are kept
CONVOLUTIONS = ("conv1d", "conv2d", "conv3d")
CONTRACTIONS = ("matmul", "__matmul__", "__rmatmul__", "bmm", "einsum", "baddbmm")
Settings = tuple[list[Any], dict[str, Any]]
# Name, tensors given, settings, tensor returned.
Call = tuple[str, list[torch.Tensor], Settings, torch.Tensor]
# By these names a bias by distance stands for the scale.
T5 = r"t5|pos\w*_bias|rel\w*_(bias|pos)"
T5_ITSELF = re.compile(r"(m|u|flan_?|long)?t5(?!\w*(style|like))", re.I)
# What scores are multiplied with, by the mistake; d is the width of a head.
SCALES = (
    ("scale_twice", lambda w: 1 / w.d),
    ("scale_by_d_out", lambda w: (w.h * w.d) ** -0.5),
    ("scale_by_d_in", lambda w: w.x.shape[-1] ** -0.5),
    ("scale_by_d_out_no_root", lambda w: 1 / (w.h * w.d)),
    ("scale_multiplied", lambda w: w.d**0.5),
    ("scale_multiplied", lambda w: (w.h * w.d) ** 0.5),
    ("scale_multiplied", lambda w: w.d),
    ("scale_by_tokens", lambda w: w.t**-0.5),
    ("scale_by_tokens", lambda w: w.key.shape[1] ** -0.5),
    ("scale_by_heads", lambda w: w.h**-0.5),
    ("scale_missing", lambda w: 1.0),
)


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


def walked(subject: Subject, x: torch.Tensor) -> list[Step]:
    """Return the steps of a module that are not what is meant, first ones first."""
    module = subject.copy()
    watch = Recorded(module)
    y = subject(x, module, mode=watch)
    if not y.isfinite().any():
        return []  # another test says so
    walk = _followed(watch, x, y)
    if walk is None:
        return [*_twice(watch.calls), *_alone(watch.calls), *_summed(watch.calls)]
    if not _cut_out(walk) and _cut_out(turned := walk.batch_first()):
        walk = turned
    found = [
        *_tied(walk),
        *_borrowed(walk),
        *_through_relu(walk),
        *_normed_wrongly(walk, watch.calls),
        *_cut(walk),
        *_shares(walk),
        *_turned(walk),
        *_scaled(walk, subject, watch.calls),
        *_capped(walk, subject, watch.calls),
        *_masked(walk, subject.causal, subject.layer),
        *_normalized(walk, subject),
        *_mixed(walk),
        *_joined(walk),
        *(step for step in _alone(watch.calls) if step.stage != "scores"),
    ]
    found = [step for step in found if step is not None]
    if not found:
        found += _local(walk, subject, watch.calls)
    if "scale_after_softmax" in {step.mistake for step in found}:
        # It stands in for the scale of the scores.
        found = [step for step in found if step.mistake != "scale_missing"]
    return found


def followed(subject: Subject, x: torch.Tensor) -> Walk | None:
    """Return the steps of one forward pass, or None where they are others."""
    module = subject.copy()
    watch = Recorded(module)
    walk = _followed(watch, x, subject(x, module, mode=watch))
    if walk and not _cut_out(walk) and _cut_out(turned := walk.batch_first()):
        return turned
    return walk


def hidden(subject: Subject, x: torch.Tensor) -> torch.Tensor | None:
    """Return which scores (t, keys) are hidden, if they are the same in all heads."""
    module = subject.copy()
    watch = Recorded(module)
    walk = _followed(watch, x, subject(x, module, mode=watch))
    if walk is None:
        return None
    own = _own(walk)
    mask = (own < -1e3) | (own < own.amax(dim=-1, keepdim=True) - 70)
    return mask[0].cpu() if torch.equal(mask, mask[:1].expand_as(mask)) else None


def scores_of(subject: Subject, x: torch.Tensor) -> torch.Tensor | None:
    """Return what softmax takes, (b * h, t, keys), or None where it isn't seen."""
    module = subject.copy()
    watch = Recorded(module)
    walk = _followed(watch, x, subject(x, module, mode=watch))
    return None if walk is None else _own(walk)


def sums_first(subject: Subject, x: torch.Tensor) -> bool:
    """Whether keys and values are multiplied with each other, and no pair is scored."""
    t, module = x.shape[1], subject.copy()
    watch = Recorded(module)
    subject(x, module, mode=watch)
    products = [(given, out) for name, given, _, out in watch.calls
                if name in CONTRACTIONS and len(given) == 2]  # fmt: skip
    shapes = [list(out.shape[1:]) for _, out in products]
    fused = any(name == "scaled_dot_product_attention" for name, *_ in watch.calls)
    normed = [out for name, _, _, out in watch.calls if "softmax" in name]
    summed = [
        out for given, out in products
        if t not in out.shape[1:] and all(t in one.shape[1:] for one in given)
    ]  # fmt: skip
    # Chunks of queries have weights for all keys, and have as many rows together, or
    # fewer where the last, shorter one is left out.
    rows = [out.shape[-2] for out in summed]
    chunks = len(rows) > 1 and 0 <= t - sum(rows) < rows[0]
    return (
        not fused
        and not any(shape.count(t) > 1 for shape in shapes)
        and all(t in one.shape[1:] for one in normed)
        and bool(summed)
        and not chunks
    )


def _twice(calls: list[Call]) -> Iterator[Step]:
    """Look for a softmax of what a softmax gave."""
    made = [(given[0], out) for name, given, _, out in calls if "softmax" in name]
    for (_, first), (taken, _) in pairwise(made):
        if first.shape[-1] > 1 and _close(taken, first):
            yield Step("softmax_twice", "weights", "What one softmax gave goes into "
                       "another.")  # fmt: skip
            return


def _summed(calls: list[Call]) -> list[Step]:
    """Compare the axis of softmax with the one that einsum sums the values over."""
    for place, (name, _, settings, weights) in enumerate(calls):
        axis = [*settings[0], *settings[1].values()][:1]
        known = name in ("softmax", "_softmax") and weights.dim() > 2
        if not known or type(*axis or [None]) is not int:
            continue
        for other, given, (equation, *_), _ in calls[place + 1 :]:
            if other != "einsum" or len(given) != 2 or not isinstance(equation[0], str):
                continue
            terms, _, out = equation[0].replace(" ", "").partition("->")
            pairs = list(zip(terms.split(","), given, strict=True))
            for (labels, one), (values, _) in (pairs, pairs[::-1]):
                if len(labels) != weights.dim() or not _close(one, weights):
                    continue
                label = labels[axis[0]]
                if label in values and label not in out:
                    return []
                told = "Softmax normalizes another axis than the one that is summed."
                if label in out and label not in values:
                    return [Step("softmax_over_queries", "weights", told)]
                heads = label in out and axis[0] % len(labels)
                return [Step("softmax_over_heads" if heads else "", "weights", told)]
    return []


def _alone(calls: list[Call]) -> Iterator[Step]:
    """Look for an axis that einsum sums of one factor, with no part in the other."""
    soft = [i for i, call in enumerate(calls) if call[0] in ("softmax", "_softmax")]
    for place, (name, given, (equation, *_), _) in enumerate(calls):
        if name != "einsum" or len(given) != 2 or not isinstance(equation[0], str):
            continue
        terms, arrow, out = equation[0].replace(" ", "").partition("->")
        both = terms.split(",")
        if not arrow or "." in terms or not soft or min(p.dim() for p in given) < 3:
            continue
        for labels, one, other in zip(both, given, both[::-1], strict=True):
            lost = [label for label in labels if label not in other + out]
            if any(one.shape[labels.index(label)] > 1 for label in lost):
                weights = calls[soft[0]][3].numel()
                stage = "mix" if weights in (p.numel() for p in given) else "output"
                stage = stage if place > soft[0] else "scores"
                told = f"In {equation[0]}, {lost[0]} is summed in one factor alone."
                keys = stage == "mix" and one.numel() == weights
                keys &= lost == [labels[-1]] and labels[-2] in other
                name = "tokens_not_mixed" if keys else "axis_summed_alone"
                yield Step(name, stage, told)
                return


def _followed(watch: Recorded, x: torch.Tensor, y: torch.Tensor) -> Walk | None:
    """Find the steps by their sizes and order; return None where they are others."""
    calls, (b, t, _) = watch.calls, x.shape
    fused = [i for i, c in enumerate(calls) if c[0] == "scaled_dot_product_attention"]
    soft = [i for i, c in enumerate(calls) if c[0] in ("softmax", "_softmax")]
    if not fused and not soft:
        soft = _by_hand(calls)
    if len(fused) + len(soft) > 1:
        return _one_by_one(watch, x, y, fused or soft)
    if not fused and not soft:
        return None
    made, start, end = _around(calls, (fused or soft)[0], b, t)
    if made is None or made["query"].shape[0] % b:
        return None
    keys, outputs = made["key"].shape[1], _outputs(watch)
    projected = [_as_tokens(one, b, t) for one in outputs]
    memory = [_as_tokens(one, b, keys) for one in outputs]
    return Walk(
        x=x, y=y, h=made["query"].shape[0] // b,
        projected=[p.detach() for p in projected if p is not None],
        memory=[p.detach() for p in memory if p is not None],
        before=[c[3] for c in calls[:start]], behind=calls[end + 1 :],
        extras=watch.seen.extras, idle=list(watch.idle), **made,
        capped=any(name == "tanh" and out.numel() == made["scores"].numel()
                   for name, _, _, out in calls),
    )  # fmt: skip


def _around(
    calls: list[Call], at: int, b: int, t: int
) -> tuple[dict[str, Any] | None, int, int]:
    """Return what one head or all of them compute, and where that begins and ends."""
    if calls[at][0] == "scaled_dot_product_attention":
        return _of_fused(calls[at], t), at, at
    return _of_softmax(calls, at, b, t)


def _outputs(watch: Recorded) -> list[torch.Tensor]:
    """Return what was projected, in any shape."""
    outputs = [p.output for p in watch.seen.products]
    outputs += [out.flatten(2).mT for name, given, _, out in watch.calls
                if name in CONVOLUTIONS and given[1].dim() == out.dim()
                and given[1][0, 0].numel() == 1]  # fmt: skip
    return outputs + [one for one in map(_by_letters, watch.calls) if one is not None]


def _one_by_one(
    watch: Recorded, x: torch.Tensor, y: torch.Tensor, places: list[int]
) -> Walk | None:
    """Find the steps of heads that are computed one after the other, then joined."""
    calls, (b, t, _) = watch.calls, x.shape
    heads, segments, begin = list[dict[str, Any]](), list[list[Call]](), 0
    for at in places:
        if at < begin:
            return None  # one softmax behind another
        made, start, end = _around(calls[begin:], at - begin, b, t)
        if made is None or len(made["query"]) != b:
            return None
        segments.append(calls[begin : begin + start])
        begin += end + 1
        heads.append(made)
    names = [name for name, one in heads[0].items() if isinstance(one, torch.Tensor)]
    if any(made[n].shape != heads[0][n].shape for made in heads for n in names):
        return None
    contexts = [made["context"] for made in heads]
    joined = any(
        name in ("cat", "concat", "stack") and len(given) == len(heads)
        and all(map(_close, given, contexts))
        for name, given, *_ in calls[begin:]
    )  # fmt: skip
    if not joined:
        return None
    made = {n: _interleaved([one[n] for one in heads]) for n in names}
    own = [
        [out for name, _, _, out in part if name == "linear" or name in CONTRACTIONS]
        for part in segments
    ]
    own = [[out for out in part if out.shape[:2] == (b, t)] for part in own]
    if len({tuple(out.shape for out in part) for part in own}) == 1 and own[0]:
        projected = [torch.cat(outs, dim=-1) for outs in zip(*own, strict=True)]
    else:  # at once, and cut
        tokens = [_as_tokens(one, b, t) for one in _outputs(watch)]
        projected = [one for one in tokens if one is not None]
    return Walk(
        x=x, y=y, h=len(heads), projected=projected, behind=calls[begin:],
        extras=watch.seen.extras, idle=list(watch.idle), **made,
        capped=any(name == "tanh" and out.numel() == heads[0]["scores"].numel()
                   for name, _, _, out in calls),
    )  # fmt: skip


def _interleaved(heads: list[torch.Tensor]) -> torch.Tensor:
    """Return what each head has (b, …) as (b * h, …), by sequence."""
    return torch.stack(heads, dim=1).flatten(0, 1)


def _by_letters(call: Call) -> torch.Tensor | None:
    """Return what einsum makes of tokens (b, t, d) and a weight, as (b, t, width)."""
    name, given, (equation, *_), out = call
    if name != "einsum" or len(given) != 2 or not isinstance(equation[0], str):
        return None
    terms, arrow, made = equation[0].replace(" ", "").partition("->")
    one = terms.split(",")[0 if given[0].dim() == 3 else 1]
    known = arrow and "." not in terms and out.dim() == len(made) and len(one) == 3
    if not known or not {*one[:2]} <= {*made} or one[2] in made:
        return None
    front = [made.index(letter) for letter in one[:2]]
    return out.movedim(front, (0, 1)).flatten(2)


def _by_hand(calls: list[Call]) -> list[int]:
    """Join exp and the division behind it to one call of softmax."""
    for start, (first, given, _, power) in enumerate(calls):
        if first not in ("exp", "exp_") or power.dim() < 3:
            continue
        for i, (name, parts, _, result) in enumerate(calls[start + 1 :], start + 1):
            if "div" in name and result.shape == power.shape and any(
                _close(part, power) for part in parts[:1]
            ):  # fmt: skip
                calls[i] = ("softmax", [_unshifted(calls[:start], given[0])],
                            ([], {}), result)  # fmt: skip
                return [i]
    return []


def _unshifted(calls: list[Call], taken: torch.Tensor) -> torch.Tensor:
    """Return scores as they were before a number was subtracted from each row."""
    for name, given, _, result in calls[::-1]:
        rows = len(given) == 2 and given[1].shape == (*given[0].shape[:-1], 1)
        if "sub" in name and rows and _close(result, taken):
            return given[0]
    return taken


def _of_fused(call: Call, t: int) -> dict[str, Any] | None:
    """Compute what the fused function does not show."""
    _, given, (_, named), result = call
    if len(given) < 3:
        return None
    q, k, v = (_rows(one, one.shape[-2] if slot else t) if one.dim() > 1 else None
               for slot, one in enumerate(given[:3]))  # fmt: skip
    if q is not None and named.get("enable_gqa"):
        k, v = _shared(k, len(q)), _shared(v, len(q))
    if q is None or k is None or v is None or len(q) != len(k) or len(k) != len(v):
        return None
    scores = q @ k.mT
    taken = scores * (named.get("scale") or q.shape[-1] ** -0.5)
    if named.get("is_causal"):
        taken = taken.masked_fill(
            taken.new_ones(taken.shape).triu(1).bool(), -torch.inf
        )
    elif len(given) > 3 or named.get("attn_mask") is not None:
        mask = given[3] if len(given) > 3 else named["attn_mask"]
        try:
            mask = mask.expand(*given[0].shape[:-1], k.shape[-2]).flatten(0, -3)
        except RuntimeError:
            return None
        taken = (
            taken.masked_fill(~mask, -torch.inf)
            if mask.dtype == torch.bool
            else taken + mask
        )
    weights = taken.softmax(dim=-1)
    context = _rows(result, t)
    if context is None:
        return None
    return dict(query=q, key=k, scores=scores, taken=taken, weights=weights,
                mixing=weights, values=v, context=context)  # fmt: skip


SUMS = ("add", "__add__", "__radd__", "add_", "__iadd__")
_Scored = tuple[int, torch.Tensor, torch.Tensor, torch.Tensor]  # place, q, k, scores


def _of_softmax(
    calls: list[Call], at: int, b: int, t: int
) -> tuple[dict[str, Any] | None, int, int]:
    """Find the products before and behind a softmax."""
    nothing = None, 0, 0
    _, given, _, weights = calls[at]
    taken = _unshifted(calls[:at], given[0])
    if taken.dim() < 3:
        return nothing
    taken, weights = (_heads_first(one, b, t) for one in (taken, weights))
    if taken.shape[-2] != t and taken.dim() == 4 and taken.shape[0] == t:
        taken, weights = (one.permute(2, 3, 0, 1) for one in (taken, weights))
    if taken.shape[-2] != t:
        return nothing
    n, keys = taken[..., 0, 0].numel(), taken.shape[-1]
    made = []
    for place, (name, factors, _, result) in enumerate(calls[:at]):
        if name not in CONTRACTIONS or len(factors) < 2:
            continue
        product = _square(result, n, t)
        if product is not None and product.shape[-1] in (keys, keys - 1):
            made.append((place, factors[-2:], product))
    both = [
        (place, q, k, s)
        for place, (one, other), s in made
        if (q := _shared(_rows(one, t), n)) is not None
        and (k := _shared(_rows(other, s.shape[-1], q.shape[-1]), n)) is not None
    ]
    if not both:
        return nothing
    start, q, k, scores = _of_parts(calls[:at], both)
    if k.shape == k.mT.shape and _close(scores, q @ k):
        k = k.mT  # as many tokens as a head is wide
    if calls[start][0] != "baddbmm" and not _close(scores, q @ k.mT):
        if not _close(scores, k @ q.mT):
            return nothing
        q, k = k, q
    if calls[start][0] == "baddbmm":  # what is added comes with the product
        scores = q @ k.mT
    for end, (name, factors, _, result) in enumerate(calls[at + 1 :], at + 1):
        if name not in CONTRACTIONS or len(factors) < 2:
            continue
        for values_first in (False, True):
            mixing: torch.Tensor | None
            values: torch.Tensor | None
            mixing, values = factors[-2:][:: -1 if values_first else 1]
            shared = (
                mixing[:, 0] if mixing.dim() == 4 and mixing.shape[1] == 1 else None
            )
            mixing = _square(mixing, n, t)
            if mixing is None and shared is not None:  # one head's, for all of them
                mixing = _shared(_square(shared, b, t), n)
            values = _shared(_rows(values, scores.shape[-1]), n)
            if mixing is None or values is None:
                continue
            context = _context(result, mixing, values, t)
            if context is None:
                continue
            if len(context) == n and mixing.shape[-1] == scores.shape[-1]:
                turned = keys == t and _close(context, mixing.mT @ values)
                if values_first and turned:
                    mixing = mixing.mT  # values in columns, times the transpose
                elif turned and _in_columns(weights):  # keys come before queries
                    q, k, scores, mixing = k, q, scores.mT, mixing.mT
                    taken, weights = taken.mT, weights.mT
                return dict(
                    query=q, key=k, scores=scores, taken=taken.flatten(0, -3),
                    weights=weights.flatten(0, -3), mixing=mixing, values=values,
                    context=context,
                    others=[s for place, _, s in made
                            if place not in (start, both[0][0])],
                ), start, end  # fmt: skip
    return nothing


def _of_parts(calls: list[Call], both: list[_Scored]) -> _Scored:
    """Return the first product, or two that are added as one of joined factors.

    So are scores made of the parts of a head that are rotated and that are not.
    """
    if len(both) < 2:
        return both[0]
    (_, q, k, one), (place, *more, two) = both[:2]
    if one.shape != two.shape or not _close(one, q @ k.mT):
        return both[0]
    if not _close(two, more[0] @ more[1].mT):
        return both[0]
    q, k = torch.cat([q, more[0]], dim=-1), torch.cat([k, more[1]], dim=-1)
    for name, given, _, result in calls[place:]:
        if name in SUMS and len(given) == 2 and result.numel() == one.numel():
            summed = _square(result, len(one), one.shape[1])
            if summed is not None and _close(summed, one + two):
                return place, q, k, summed
    return both[0]


def _in_columns(weights: torch.Tensor) -> bool:
    """Whether softmax was taken over the last axis but one, and not the last."""
    columns, rows = ((weights.sum(dim=axis) - 1).abs().max() for axis in (-2, -1))
    return bool(columns < 1e-4 < rows)


def _context(
    result: torch.Tensor, mixing: torch.Tensor, values: torch.Tensor, t: int
) -> torch.Tensor | None:
    """Return mixed values as (n, t, d), or None."""
    held = [_rows(result, t)]
    if result.dim() == 4 and result.shape[1] == t:  # the heads may come last
        held.append(result.permute(0, 3, 1, 2).flatten(0, 1))
    whole = mixing @ values if mixing.shape[-1] == values.shape[1] else mixing
    good = (one for one in held if one is not None and _close(one, whole))
    return next(good, held[0])


def _heads_first(tensor: torch.Tensor, b: int, t: int) -> torch.Tensor:
    """Return scores as (b, h, t, keys) whose heads came last, or of an image's pixels.

    Other tensors are returned as they are.
    """
    shape = tensor.shape
    if shape[0] != b or tensor.dim() not in (4, 5):
        return tensor
    if tensor.dim() == 4 and shape[1] == t != shape[-1]:
        return tensor.permute(0, 3, 1, 2)
    if shape[-2] != t == shape[1:3].numel():  # rows and columns of the queries
        return tensor.flatten(3).flatten(1, 2)[:, None]
    return tensor


def _square(tensor: torch.Tensor, n: int, t: int) -> torch.Tensor | None:
    """Return scores or weights as (n, t, keys), or None."""
    if tensor.dim() == 4 and tensor.shape[0] == t and tensor.shape[2:].numel() == n:
        tensor = tensor.permute(2, 3, 0, 1)
    elif tensor.dim() > 3 and n % len(tensor) == 0:
        turned = _heads_first(tensor, len(tensor), t)
        tensor = turned if turned[..., 0, 0].numel() == n else tensor
    if tensor.dim() < 3 or tensor.shape[-2] != t or tensor[..., 0, 0].numel() != n:
        return None
    return tensor.flatten(0, -3)


def _rows(tensor: torch.Tensor, t: int, d: int | None = None) -> torch.Tensor | None:
    """Return heads (…, t, d), (b, t, h, d), (b, t, g, r, d) or turned as (n, t, d)."""
    if tensor.dim() < 3:
        return None
    shape = tensor.shape
    if shape[-2] == t and (d is None or shape[-1] == d):
        return tensor.flatten(0, -3)
    if shape[-1] == t and (d is None or shape[-2] == d):
        return tensor.mT.flatten(0, -3)
    if tensor.dim() >= 4 and shape[1] == t and (d is None or shape[-1] == d):
        return tensor.movedim(1, -2).flatten(0, -3)
    if tensor.dim() == 4 and shape[0] == t and (d is None or shape[-1] == d):
        return tensor.movedim(0, -2).flatten(0, -3)
    if tensor.dim() == 4 and shape[-2:].numel() == t:  # the pixels of an image
        return tensor.flatten(2).mT
    return None


def _shared(rows: torch.Tensor | None, n: int) -> torch.Tensor | None:
    """Return keys or values once for each query head, or None."""
    if rows is None or n % len(rows):
        return None
    return rows.repeat_interleave(n // len(rows), dim=0)


def _as_tokens(tensor: torch.Tensor, b: int, t: int) -> torch.Tensor | None:
    """Return what was projected as (b, t, width), or None."""
    if tensor.dim() == 3 and tensor.shape[:2] == (b, t):
        return tensor
    if tensor.dim() == 3 and tensor.shape[:2] == (t, b):
        return tensor.transpose(0, 1)
    if tensor.dim() == 2 and len(tensor) == b * t:
        return tensor.view(b, t, -1)
    return None


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


def _parts(walk: Walk) -> Iterator[torch.Tensor]:
    """Yield what may be queries, keys or values of a projection: (b, t, width)."""
    d = walk.d
    for made in walk.projected:
        width = made.shape[-1]
        yield made
        for count in (2, 3):
            if width % count == 0 and width // count % d == 0:
                yield from made.chunk(count, dim=-1)
                pieces = made.unflatten(-1, (-1, count, d))
                yield from (pieces[..., i, :].flatten(-2) for i in range(count))
        wide = walk.h * d  # grouped heads in one weight
        if wide < width < 3 * wide and (width - wide) % (2 * d) == 0:
            rest = (width - wide) // 2
            yield from made.split([wide, rest, rest], dim=-1)


def _cut_out(walk: Walk) -> bool:
    """Whether each head's values are a part of a projection, in this order."""
    values = walk.values.view(len(walk.x), walk.h, *walk.values.shape[1:])
    if walk.values.shape[1] != walk.t:
        return False
    wide = walk.values.shape[-1]
    return any(
        part.shape[-1] == walk.h * wide
        and _close(part.unflatten(-1, (walk.h, wide)).transpose(1, 2), values)
        for part in _parts(walk)
    )


def _tied(walk: Walk) -> Iterator[Step]:
    """Look for one projection that makes what another one of the module is for."""
    held = {"queries": walk.query, "keys": walk.key, "values": walk.values}
    for (one, made), (other, same) in combinations(held.items(), 2):
        if made.shape != same.shape:
            continue
        ratio = (made * same).sum() / same.square().sum().clamp_min(1e-12)
        if not (ratio > 0 and _close(made, ratio * same)):
            continue
        if walk.idle or _leaves_a_part(walk, same):
            idle = walk.idle[0] if walk.idle else "a part of their projection"
            told = f"are the same numbers, and {idle} is never used."
            yield Step("projection_mixed_up", "projection",
                       f"The {one} and the {other} {told}")  # fmt: skip
            return


def _leaves_a_part(walk: Walk, rows: torch.Tensor) -> bool:
    """Whether these rows are a part of a projection of which another part is idle."""
    b, h, d = len(walk.x), walk.h, rows.shape[-1]
    used = [one.norm(dim=-1) for one in (walk.query, walk.key, walk.values)]
    for made, count in product((*walk.projected, *walk.memory), (2, 3)):
        if made.shape[1] != rows.shape[1] or made.shape[-1] != count * h * d:
            continue
        whole, each = made.chunk(count, dim=-1), made.unflatten(-1, (h, count, d))
        for parts in (whole, [each[..., i, :].flatten(-2) for i in range(count)]):
            sizes = [
                part.unflatten(-1, (h, d))
                .norm(dim=-1)
                .transpose(1, 2)
                .reshape(b * h, -1)
                for part in parts
            ]
            known = [any(_alike(one, size) for one in used) for size in sizes]
            if any(_alike(rows.norm(dim=-1), size) for size in sizes):
                return not all(known)
    return False


def _alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether one tensor is the other, times a number."""
    return one.shape == other.shape and _times(one, other) is not None


def _borrowed(walk: Walk) -> Iterator[Step]:
    """Look for some numbers of the queries among the keys, or the other way round."""
    q, k = walk.query, walk.key
    if q.shape != k.shape or q.shape[1] != walk.t or not q.any():
        return
    ratio = (q * k).sum(dim=(0, 1)) / k.square().sum(dim=(0, 1)).clamp_min(1e-12)
    same = [bool(by > 0) and _close(q[..., j], by * k[..., j])
            for j, by in enumerate(ratio)]  # fmt: skip
    if any(same) and not all(same) and q[..., torch.tensor(same)].std() > 1e-6:
        told = f"{sum(same)} of {walk.d} numbers of each key are its query's."
        yield Step("projection_mixed_up", "positions", told)


def _cut(walk: Walk) -> Iterator[Step]:
    """Look for heads that were cut out across tokens."""
    b, t, d = len(walk.x), walk.t, walk.d
    made = [one for one in walk.before if one.dim() in (3, 4) and one.shape[-1] == d]
    for part in _parts(walk):
        heads = part.shape[-1] // d
        if part.shape[-1] % d or heads < 2 or heads == t:
            continue
        right = part.unflatten(-1, (heads, d)).transpose(1, 2)
        held = [
            one.transpose(1, 2) if one.shape[1] == t else one
            for one in made
            if one.shape in ((b, heads, t, d), (b, t, heads, d))
        ]
        flat = (b * heads, t, d)
        held += [one.view(b, heads, t, d) for one in made if one.shape == flat]
        viewed = right.reshape(b, heads, d, t).mT.flatten(0, 1)
        if d != t and any(_close(one, viewed) for one in (walk.query, walk.key)):
            yield Step("keys_viewed", "scores", "What is multiplied with the queries "
                       "has the keys' numbers in another order.")  # fmt: skip
            return
        if heads == 3 * walk.h:  # queries may hold the scale
            thirds = (part.reshape(b, 3, t, -1, d).transpose(2, 3),
                      part.reshape(b, 3, -1, t, d))  # fmt: skip
            if any(
                all(
                    made.numel() == each[:, i].numel()
                    and _close(each[:, i].flatten(0, 1), made)
                    for i, made in ((1, walk.key), (2, walk.values))
                )
                for each in thirds
            ):
                yield Step("heads_viewed", "split", "Queries, keys and values are "
                           "thirds of the tokens, not of each token.")  # fmt: skip
                return
        for wrong, name in (
            (part.reshape(b, heads, t, d), "heads_viewed"),
            (part.transpose(0, 1).reshape(b, heads, t, d), "heads_viewed"),
            (part.unflatten(-1, (d, heads)).permute(0, 3, 1, 2), "heads_interleaved"),
        ):
            if any(_close(one, wrong) for one in held) and not any(
                _close(one, right) for one in held
            ):
                # A layer that deals numbers out to heads does so with all of them.
                apart = name == "heads_interleaved" and _in_blocks(walk, made)
                yield Step(name, "split", "A projection is split so that a head "
                           "gets numbers of other heads and tokens.",
                           "error" if apart else None)  # fmt: skip
                return
        if d != t and any(_scrambled(one, right) for one in (walk.query, walk.key)):
            yield Step("heads_viewed", "split", "Queries or keys have the numbers of "
                       "their projection, in tokens that mix them.")  # fmt: skip
            return


def _in_blocks(walk: Walk, made: list[torch.Tensor]) -> bool:
    """Whether some projection is cut so that each head gets its neighbors."""
    d = walk.d
    for part in _parts(walk):
        heads = part.shape[-1] // d
        if part.shape[-1] % d or heads < 2 or heads == walk.t:
            continue
        cut = part.unflatten(-1, (heads, d))
        flat = cut.transpose(1, 2)
        if any(_close(one, cut) or _close(one, flat) for one in made):
            return True
    return False


def _scrambled(made: torch.Tensor, heads: torch.Tensor) -> bool:
    """Whether a head's tokens hold the right numbers, times one, of several tokens.

    The heads (b, h, t, d) are cut as meant. A token that is moved as a whole may be.
    """
    if made.numel() != heads.numel():
        return False
    _, h, _, d = heads.shape
    every = heads.transpose(1, 2).flatten(2).unflatten(-1, (d, h)).transpose(2, 3)
    whole, own = (one.flatten().sort().values for one in (heads, made))
    if not own.any() or _times(whole, own) is None:
        return False
    sizes = made.norm(dim=-1).flatten().sort().values
    usual = (one.norm(dim=-1).flatten().sort().values for one in (heads, every))
    return all(_times(one, sizes) is None for one in usual)


def _through_relu(walk: Walk) -> Iterator[Step]:
    """Look for queries, keys or values of which negative numbers are gone."""
    held = {"queries": walk.query, "keys": walk.key, "values": walk.values}
    for name, made in held.items():
        size = walk.h * made.shape[-1]
        if made.min() < 0 or not made.any() or made.shape[1] != walk.t:
            continue
        heads = made.view(len(walk.x), walk.h, *made.shape[1:])
        for part in _parts(walk):
            if part.shape[-1] == size and part.min() < 0 and _close(
                part.relu().unflatten(-1, (walk.h, -1)).transpose(1, 2), heads
            ):  # fmt: skip
                yield Step("projections_through_relu", "projection", f"The {name} are "
                           "a projection with 0 for what is negative.")  # fmt: skip
                return


def _normed_wrongly(walk: Walk, calls: list[Call]) -> Iterator[Step]:
    """Look for a norm before the scores that divides by something else than a size."""
    widths = {walk.d, walk.h * walk.d, walk.x.shape[-1]}
    for name, given, _, made in calls:
        one, by = given if len(given) == 2 else (made, made)
        if not ("mul" in name or "div" in name) or by.shape[-1:] != (1,):
            one, by = by, one
        if by.shape != (*one.shape[:-1], 1) or made.shape != one.shape:
            continue
        if ("mul" not in name and "div" not in name) or one.shape[-1] not in widths:
            continue
        # What softmax divides is positive.
        if one.shape[-1] < 4 or not (one < 0).any() or not made.isfinite().all():
            continue
        size = one.norm(dim=-1) / made.norm(dim=-1).clamp_min(1e-12)
        square, mean = one.square().mean(dim=-1), one.mean(dim=-1).abs()
        for told, wrong in (("mean", mean), ("mean square, without its root", square)):
            even = (size.square() - wrong.square()).std() < 1e-3 * size.square().mean()
            if even and size.std() > 0.05 * size.mean():
                yield Step("qk_norm_formula", "projection", "A norm divides numbers by "
                           f"their {told}.")  # fmt: skip
                return


def _shares(walk: Walk) -> Iterator[Step]:
    """Compare which query heads share a key with which share a value."""
    b, h, d = len(walk.x), walk.h, walk.d
    kinds = []
    for rows in (walk.key, walk.values):
        sizes = rows.norm(dim=-1).view(b, h, -1)  # turning keeps them
        if sizes.shape[-1] != walk.t or sizes.std() < 1e-2 * sizes.mean():
            return
        for part in _parts(walk):
            heads = part.shape[-1] // d
            if part.shape[-1] % d or heads < 2 or h % heads or heads == h:
                continue
            each = part.unflatten(-1, (heads, d)).norm(dim=-1).transpose(1, 2)
            if _close(sizes, each.repeat_interleave(h // heads, dim=1)):
                kinds.append("blocks")
            elif _close(sizes, each.repeat(1, h // heads, 1)):
                kinds.append("tiles")
            elif _one_alone(walk, each) and any(
                _close(sizes, each[:, g : g + 1].expand_as(sizes)) for g in range(heads)
            ):
                yield Step("rows_repeated", "split", f"All {h} query heads share one "
                           f"of {heads} heads.")  # fmt: skip
                return
    if len(kinds) == 2 and kinds[0] != kinds[1]:
        yield Step("groups_apart", "split", f"Query heads share keys in {kinds[0]}, "
                   f"and values in {kinds[1]}.")  # fmt: skip


def _one_alone(walk: Walk, each: torch.Tensor) -> bool:
    """Whether all heads share one of several, and nothing takes the others.

    The sizes of several heads (b, heads, t) are given. Where one makes keys and the
    other values, each is meant.
    """
    b, t = len(walk.x), walk.t
    taken = set()
    for rows in (walk.query, walk.key, walk.values):
        sizes = rows.norm(dim=-1).view(b, walk.h, -1)
        for place in range(each.shape[1]) if sizes.shape[-1] == t else ():
            one = each[:, place : place + 1]
            if any(_close(sizes[:, h : h + 1], one) for h in range(walk.h)):
                taken.add(place)
    return len(taken) == 1


def _turned(walk: Walk) -> Iterator[Step]:
    """Look at what became of queries and keys between the cut and the scores."""
    wide = [one for one in walk.before if one.dim() == 4 and one.shape[-1] == walk.d]
    for axis in (1, 2):
        if any(_normed_across(one, axis) for one in wide):
            whom = "heads" if walk.t == wide[0].shape[3 - axis] else "tokens"
            told = f"Queries or keys have the same size along the {whom}, "
            yield Step("qk_norm_axis", "positions", f"{told}not in each head.")
            return
    for name, made in (("queries", walk.query), ("keys", walk.key)):
        if _normed_across(made, -2):
            yield Step("qk_norm_axis", "positions", f"The {name} have the same size "
                       "along the tokens, not in each head.")  # fmt: skip
            return
        if made.shape[1] != walk.t:
            return
        for one in _cuts(walk, made):
            yield from _turns(name, one, made.view(one.shape))


def _normed_across(made: torch.Tensor, axis: int) -> bool:
    """Whether each number of a head has the same size over all tokens, or heads."""
    if made.shape[axis] < 2 or not made.is_floating_point():
        return False
    along, across = made.norm(dim=axis), made.norm(dim=-1)
    even = [one.std() < 1e-4 * one.mean() for one in (along, across)]
    return even == [True, False]


def _cuts(walk: Walk, made: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield what may have been turned into queries or keys: (b, h, t, d)."""
    b, h, t, d = len(walk.x), walk.h, walk.t, walk.d
    held = [part.unflatten(-1, (-1, d)).transpose(1, 2) for part in _parts(walk)
            if part.shape[-1] % d == 0]  # fmt: skip
    for one in walk.before:  # behind a norm of each head
        if one.dim() == 4 and one.shape[-1] == d and b == len(one) and t in one.shape:
            held.append(one.transpose(1, 2) if one.shape[1] == t else one)
    for one in held:
        if one.shape[2] == t and h % one.shape[1] == 0 and one.isfinite().all():
            wide = one.repeat_interleave(h // one.shape[1], dim=1)
            if not _close(wide.flatten(0, 1), made):
                yield wide


def _turns(name: str, one: torch.Tensor, made: torch.Tensor) -> Iterator[Step]:
    """Compare heads before and after they were turned, both (b, h, t, d)."""
    d = made.shape[-1]
    for turned in range(2, d, 2):
        rest, first = made[..., turned:], one[..., : d - turned]
        own, long = (part[..., :turned].norm(dim=-1) for part in (one, made))
        if not _close(own, long):
            continue  # no rotation, so it is of another part
        if _close(made, one.roll(-turned, dims=-1)):
            return  # nothing is lost
        if _close(rest, first) and not _close(rest, one[..., turned:]):
            told = f"The last {d - turned} numbers of each head of the {name} are its "
            yield Step("rope_rest_lost", "positions", f"{told}first once more.")
            return
    if len(one) * one.shape[2] < d + 4:
        return
    turns = []
    for head in range(one.shape[1]):  # one matrix for all tokens of a head
        left, right = one[:, head].flatten(0, 1), made[:, head].flatten(0, 1)
        turn = torch.linalg.lstsq(left.double(), right.double()).solution
        itself = torch.eye(d, dtype=turn.dtype)
        if not _close(left.double() @ turn, right.double()):
            return
        if not _close(turn @ turn.mT, itself):
            return
        turns.append(turn)
    if any(not _close(turns[0], each) for each in turns):
        told = f"All tokens of a head of the {name} are turned by the same angle, and "
        yield Step("rope_over_heads", "positions", f"{told}each head by another.")


def _factor(walk: Walk, factor: torch.Tensor) -> float | None:
    """Return what queries or keys were multiplied with since they were projected."""
    b, t = len(walk.x), walk.t
    size = factor.square().sum(-1).view(b, -1, factor.shape[-2]).sum(1).sqrt()
    if size.std() < 1e-2 * size.mean():
        return None  # they were normed
    parts = _parts(walk) if size.shape[-1] == t else _parts(
        replace(walk, projected=walk.memory)
    )  # fmt: skip
    for part in parts:
        if part.shape[1] != size.shape[-1]:
            return None
        if part.shape[-1] % walk.d or walk.h % max(part.shape[-1] // walk.d, 1):
            continue
        other = part.norm(dim=-1) * (walk.h * walk.d / part.shape[-1]) ** 0.5
        ratio = size / other
        if ratio.std() < 1e-3 * ratio.mean():
            return ratio.mean().item()
        if part.shape[-1] == walk.h * walk.d:  # the same may be added to all
            heads = part.unflatten(-1, (walk.h, walk.d)).transpose(1, 2)
            own = factor.view(heads.shape)
            apart, own = heads[0] - heads[1], own[0] - own[1]
            by = (own * apart).sum() / apart.square().sum().clamp_min(1e-12)
            if by > 0 and _close(own, by * apart):
                return float(by)
    return None


@dataclass(frozen=True)
class Sum:
    """What softmax takes, as products and what is added to them.

    Attributes:
        factors: what each product is multiplied with.
        added: what is left, (h, t, keys): the same for all sequences.
        seen: where it counts, since nothing is hidden there.
        exact: whether the products and a part that no sequence changes are all.
    """

    factors: list[float]
    added: torch.Tensor
    seen: torch.Tensor
    exact: bool


def summed_up(walk: Walk) -> Sum | None:
    """Tell what the scores are made of, or None where too few of them are seen."""
    b, n, keys = len(walk.x), len(walk.scores), walk.scores.shape[-1]
    taken = _own(walk)
    if taken.shape[-1] != keys or walk.capped:
        return None
    seen = (taken.isfinite() & (taken > -1e3)).view(b, n // b, walk.t, keys)
    seen = seen[0] & seen[1]
    parts = [one.expand(n, walk.t, keys) for one in (walk.scores, *walk.others)
             if n % len(one) == 0 and one.shape[-1] == keys]  # fmt: skip
    if seen.sum() < 4 * len(parts):
        return None
    # What is added may depend on the position, not on the sequence.
    each = [
        (one.view(b, -1, walk.t, keys)[0] - one.view(b, -1, walk.t, keys)[1])[seen]
        for one in (*parts, taken)
    ]
    left, right = torch.stack(each[:-1], dim=-1).double(), each[-1].double()
    factors = torch.linalg.lstsq(left, right[:, None]).solution[:, 0]
    exact = bool((left @ factors - right).abs().max() <= 1e-3 * right.abs().max())
    both = zip(factors.tolist(), parts, strict=True)
    added = taken - sum(factor * one for factor, one in both)
    return Sum(factors.tolist(), added.view(b, -1, walk.t, keys)[0], seen, exact)


def _scaled(walk: Walk, subject: Subject, calls: list[Call]) -> Iterator[Step]:
    """Compare what the scores are multiplied with and added to."""
    layer, keys = subject.layer, walk.scores.shape[-1]
    made = summed_up(walk)
    if made is None:
        return
    if not made.exact:
        yield from _scaled_sum(walk, layer, calls)
        return
    (first, *others), added, seen = made.factors, made.added, made.seen
    if any(abs(one / first - 1) > 1e-3 for one in others):
        told = ", ".join(f"{one:.3g}" for one in (first, *others))
        yield Step("scores_scaled_apart", "scores", "The products in the scores are "
                   f"multiplied by {told}.")  # fmt: skip
        return
    if keys == walk.t and walk.h > 1:
        alibi = layer.alibi or subject.speaks_of("alibi|slope")
        # Its source is read last: that takes longer than all the rest.
        alibi = alibi or bool(re.search("(?i)alibi|slope", subject.source))
        # What the future gets doesn't matter where it's hidden, even behind softmax.
        past = added.masked_fill(_ahead(walk.t), -torch.inf)
        yield from _biased(walk, layer, past if subject.causal else added, alibi)
    q, k = _factor(walk, walk.query), _factor(walk, walk.key)
    if layer.scale is not None:
        return
    if q is None or k is None:
        yield from _scaled_again(walk, first)
        return
    product = first * q * k
    added = added[seen].abs().max()
    # With positions in the scores, DeBERTa divides by the root of two or three widths.
    counts = {1, len(made.factors)} | ({2, 3} if added > 1e-4 else set())
    if any(abs(product * (n * walk.d) ** 0.5 - 1) < 1e-3 for n in counts):
        if T5_ITSELF.match(type(subject.pristine).__name__) and walk.d > 1:
            yield Step("scale_other", "scores", "The scores are multiplied by "
                       f"{product:.4g}; T5 leaves them as they are.")  # fmt: skip
        return
    # One factor is no two, where the sizes make both the same.
    single = sum(abs(one - 1) > 1e-3 for one in (first, q, k)) == 1
    for name, factor in SCALES[1 if single and walk.h == walk.d else 0 :]:
        if name == "scale_by_heads" and walk.h == 1:
            continue  # that is none
        same = abs(product / factor(walk) - 1) < 1e-3
        meant = added > 1e-4 or subject.speaks_of(T5)
        if same and not (name == "scale_missing" and meant):
            yield Step(name, "scores", f"The scores are multiplied by {product:.4g} "
                       f"instead of {walk.d**-0.5:.4g}.")  # fmt: skip
            return
    if added < 1e-4:
        yield Step("", "scores", f"The scores are multiplied by {product:.4g} instead "
                   f"of {walk.d**-0.5:.4g}.", late="scale_other")  # fmt: skip


def _scaled_sum(walk: Walk, layer: Layer, calls: list[Call]) -> Iterator[Step]:
    """Compare what the sum of scores and something else is multiplied with."""
    taken = _own(walk)
    q, k = _factor(walk, walk.query), _factor(walk, walk.key)
    if q is None or k is None or layer.scale is not None:
        return
    if taken.shape != walk.scores.shape:
        return
    seen = taken > -1e3
    for name, given, _, made in calls:
        if name not in ("add", "__add__", "__radd__", "add_") or len(given) != 2:
            continue
        if not made.numel() == taken.numel() == given[0].numel() == given[1].numel():
            continue
        two = [one.reshape(taken.shape) for one in given]
        own = [_times(walk.scores, one) for one in two]
        last = _times(made.reshape(taken.shape)[seen], taken[seen])
        if last is None or (own[0] is None) == (own[1] is None):
            continue
        by = (own[0] or 0.0) + (own[1] or 0.0)
        other = two[1] if own[1] is None else two[0]
        product, usual = by * last * q * k, walk.d**-0.5
        if abs(product / usual - 1) < 1e-3:
            return
        more = [
            held[0].reshape(taken.shape)
            for kind, held, _, result in calls
            if ("div" in kind or "mul" in kind)
            and held
            and held[0].numel() == result.numel() == other.numel()
            and _close(result.reshape(taken.shape), other)
        ]
        if abs(product - 1) < 1e-3 and any(
            abs((_times(one, other) or 0) / usual - 1) < 1e-3 for one in more
        ):
            yield Step("scores_scaled_apart", "scores", "Of the products in the scores "
                       f"one is multiplied by {usual:.3g}, and not both.")  # fmt: skip
            return
        for mistake, factor in SCALES:
            known = mistake != "scale_missing"
            if known and abs(product / factor(walk) - 1) < 1e-3:
                yield Step(mistake, "scores", f"The sum of scores and others is "
                           f"multiplied by {product:.4g}.")  # fmt: skip
                return
        return


def _times(one: torch.Tensor, other: torch.Tensor) -> float | None:
    """Return the number that makes the second tensor of the first, or None."""
    by = (one * other).sum() / one.square().sum().clamp_min(1e-12)
    return float(by) if _close(other, by * one) else None


def _scaled_again(walk: Walk, factor: float) -> Iterator[Step]:
    """Look for normed queries or keys that are scaled before their scores are, too."""
    usual = walk.d**-0.5
    for name, made in (("queries", walk.query), ("keys", walk.key)):
        for one in walk.before:
            if one.numel() != made.numel() or one.shape[-1] != walk.d:
                continue
            if (rows := _rows(one, made.shape[1])) is None or rows.shape != made.shape:
                continue
            ratio = (made * rows).sum() / rows.square().sum().clamp_min(1e-12)
            if not _close(made, ratio * rows):
                continue
            if all(abs(by / usual - 1) < 1e-3 for by in (float(ratio), factor)):
                yield Step("scale_twice", "scores", f"The {name} are multiplied by "
                           f"{ratio:.4g}, and the scores by {factor:.4g}.")  # fmt: skip
            break  # the first of them


def _capped(walk: Walk, subject: Subject, calls: list[Call]) -> Iterator[Step]:
    """Compare what scores are divided by before tanh, and multiplied with behind."""
    for name, given, _, result in calls:
        if name != "tanh" or result.numel() != walk.scores.numel():
            continue
        before, behind = (one.reshape(walk.scores.shape) for one in (given[0], result))
        seen = walk.mixing > 0
        if walk.taken.shape != before.shape or seen.sum() < 4:
            return
        into, out = before / walk.scores, walk.taken / behind
        if any(one[seen].std() > 1e-3 * one[seen].mean().abs() for one in (into, out)):
            return
        declared = subject.layer.scale
        usual = declared if isinstance(declared, float) else walk.d**-0.5
        first, last = usual / into[seen].mean(), out[seen].mean()
        caps = [v for n, v in subject.given.items() if "cap" in n and type(v) is float]
        caps += [subject.layer.softcap] if subject.layer.softcap else []
        if usual != 1 and any(
            abs(into[seen].mean() * cap - 1) < 1e-3 > abs(last / cap / usual - 1)
            for cap in caps
        ):
            yield Step("softcap_before_scale", "scores", "The scores are capped first, "
                       "and divided by the root of d_head behind that.")  # fmt: skip
        if any(abs(last / cap - 1) < 1e-3 > abs(first - 1) for cap in caps):
            yield Step("softcap_incomplete", "scores", "The capped scores are "
                       f"multiplied by {last:.3g}, and nothing divides them "
                       "before.")  # fmt: skip
        if last * 1.001 < 1.01 < first:
            yield Step("softcap_incomplete", "scores", "The cap divides scores by "
                       f"{first:.3g}, and nothing multiplies them "
                       "again.")  # fmt: skip
        return


def _biased(
    walk: Walk, layer: Layer, added: torch.Tensor, alibi: bool
) -> Iterator[Step]:
    """Look at a bias that grows evenly with the distance."""
    i, j = torch.arange(walk.t)[:, None], torch.arange(walk.t)[None, :]
    seen = added[0].isfinite() & (added[0].abs() < 1e3)
    past = (i > j) & seen
    if past.sum() < 6:
        return
    own = added.diagonal(dim1=-2, dim2=-1)[..., None]
    # What is added to a whole row does nothing: slopes may count a key's place alone.
    if own.isfinite().all() and own.abs().max() > 1e-3:
        added = added - own
    ahead = added[:, (i < j) & seen]
    slopes = -(added / (i - j))[:, past]  # (h, pairs)
    even = (slopes - slopes[:, :1]).abs().amax(dim=1) < 1e-3 * slopes[:, 0].abs()
    if layer.bias is not None or not even.all():
        return
    slopes = slopes.mean(dim=1)
    signed = slopes[:, None, None] * (j - i)
    usual = 2.0 ** (-8 * torch.arange(1, walk.h + 1) / walk.h)
    if (slopes < 0).all() or (
        ahead.numel() and _close(ahead, signed[:, (i < j) & seen])
    ):
        yield Step("alibi_sign", "positions", "What is added to the scores grows with "
                   "the distance.")  # fmt: skip
    elif ahead.numel() and (ahead.abs() < 1e-4 * slopes.min()).all():
        yield Step("alibi_one_sided", "positions", "What is added to the scores of "
                   "later tokens doesn't depend on the distance.")  # fmt: skip
    elif alibi and walk.h > 1 and slopes.std() < 1e-4 * slopes.mean():
        yield Step("alibi_slopes", "positions", "The slope of the bias by distance is "
                   f"{slopes[0]:.3g} in each head.")  # fmt: skip
    elif _close(slopes, usual.to(slopes) * walk.d**-0.5):
        yield Step("alibi_slopes", "positions", "The bias by distance is divided by "
                   "the root of d_head, too.")  # fmt: skip
    elif walk.h & (walk.h - 1) and layer.alibi:
        two = 2 ** (walk.h.bit_length() - 1)  # the slopes of two powers of 2, joined
        both = [2.0 ** (-8 * torch.arange(1, n + 1) / n) for n in (two, 2 * two)]
        paper = torch.cat([both[0], both[1][::2]])[: walk.h]
        if not any(_close(slopes, one.to(slopes)) for one in (usual, paper)):
            told = ", ".join(f"{one:.3g}" for one in slopes)
            yield Step("alibi_slopes", "positions", f"With {walk.h} heads, the slopes "
                       f"are {told}.")  # fmt: skip
    elif alibi and walk.h & (walk.h - 1) == 0 and walk.h > 2:
        steps = slopes[1:] / slopes[:-1]  # of heads one after another
        known = layer.alibi or bool(steps.std() < 1e-3)
        if known and not _close(slopes, usual.to(slopes)):
            yield Step("alibi_slopes", "positions", f"The slopes are {slopes[0]:.3g} "
                       f"to {slopes[-1]:.3g} instead of {usual[0]:.3g} to "
                       f"{usual[-1]:.3g}.")  # fmt: skip


def bias_told(
    walk: Walk, meant: torch.Tensor, tables: list[torch.Tensor]
) -> list[Step]:
    """Compare what is added to the scores with what was declared.

    Args:
        walk: the steps of the module.
        meant: what is to be added, (h, t, t) or less.
        tables: parameters whose numbers it may hold.
    """
    made = summed_up(walk)
    if made is None or not made.exact or made.added.shape[-1] != walk.t:
        return []
    seen, added = made.seen, made.added.double()
    meant = meant.to(added).reshape(-1, *meant.shape[-2:]).expand_as(added)
    own, told = added[seen], meant[seen]
    if _close(own, told) or seen.sum() < 8:
        return []
    if own.abs().max() < 1e-5 * told.abs().max():
        words = "Nothing is added to the scores, although a bias was declared."
        return [Step("score_bias_unused", "positions", words)]
    if (by := _times(told, own)) is not None:
        words = f"The declared bias is multiplied by {by:.4g}."
        return [Step("bias_scaled", "positions", words)]
    pool = torch.cat([one.flatten().to(own) for one in (meant, *tables)]).sort().values
    place = torch.searchsorted(pool, own).clamp(1, len(pool) - 1)
    near = torch.minimum((pool[place] - own).abs(), (pool[place - 1] - own).abs())
    if near.max() > 1e-5 * pool.abs().max():
        return []
    wrong = int(((added - meant).abs()[seen] > 1e-5 * pool.abs().max()).sum())
    words = f"{wrong} of {len(own)} scores get another number of the same table."
    return [Step("bias_misplaced", "positions", words)]


def sinks_told(walk: Walk, sinks: torch.Tensor) -> list[Step]:
    """Compare the extra score of each head with the sinks that a parameter holds."""
    ends = _sinks(walk)
    if walk.taken.shape[-1] != walk.scores.shape[-1] + 1 or ends[0] == ends[1]:
        return []
    own = walk.taken[: walk.h, 0, 0 if ends[0] else -1]
    if len(sinks) != walk.h or _close(own, sinks.to(own)):
        return []
    told = ", ".join(f"{float(one):.3g}" for one in own[:3])
    words = f"The first heads' extra scores are {told}, and none is its head's sink."
    return [Step("sink_altered", "weights", words)]


def _masked(walk: Walk, causal: bool, layer: Layer) -> Iterator[Step]:
    """Compare which scores are hidden."""
    keys = walk.scores.shape[-1]
    taken = _own(walk)
    hidden = (taken < -1e3) | (walk.mixing == 0)  # what comes later is judged later
    capped = taken == taken.min()
    if causal and (capped.sum(dim=(1, 2)) > 1).all() and not hidden.any():
        told = f"Hidden scores are {taken.min():.3g}, so tanh came after the mask."
        if "a cap or a gate" in walk.extras and (capped | ~_ahead(walk.t)).all():
            yield Step("softcap_after_mask", "mask", told)
            return
    fill = taken[~hidden].mode().values if not hidden.all() else taken.new_zeros(())
    filled = (taken == fill) & (walk.scores != fill) & ~hidden
    filled &= ~(filled | hidden).all(dim=-1, keepdim=True)  # a factor may be 0
    heads = filled.view(len(walk.x), walk.h, *filled.shape[1:])
    even = torch.equal(heads, heads[:, :1].expand_as(heads))
    if filled.sum() > walk.h and walk.h > 1 and even:
        zero = fill.abs() < 1e-3  # for softmax, that is 0
        yield Step("mask_fill_zero" if zero else "mask_fill_finite", "mask",
                   f"{int(heads[0, 0].sum())} scores of the first sequence were set "
                   f"to {fill:.3g}, in each head.")  # fmt: skip
        return
    if layer.memory or layer.documents or layer.exclusive or keys != walk.t:
        return
    if not torch.equal(hidden, hidden[:1].expand_as(hidden)):
        return
    mask = hidden[0]
    i, j = torch.arange(walk.t)[:, None], torch.arange(walk.t)[None, :]
    far = {w: (i - j) >= w for w in range(1, walk.t + 1)}
    count = f"{int(mask.sum())} of {mask.numel()} scores are hidden"
    if causal:
        names = {
            "mask_missing": mask & False, "mask_upside_down": j < i,
            "mask_inverted": j <= i, "mask_hides_itself": j >= i,
            "mask_off_by_one": j > i + 1,
        }  # fmt: skip
        for name, wrong in names.items():
            if torch.equal(mask, wrong):
                yield Step(name, "mask", count + ".")
                return
        if (mask | ~(j > i)).all():
            widths = [w for w, one in far.items() if torch.equal(mask, one | (j > i))]
            meant = layer.window
            for own, told in ((i != j, ", and itself"), (i >= 0, "")):
                past = [
                    w
                    for w, one in far.items()
                    if 1 < w < walk.t and torch.equal(mask, ~one & own | (j > i))
                ]
                if past:
                    yield Step("mask_inverted", "mask", "Each token sees only those "
                               f"that are {past[0]} or more away{told}.")  # fmt: skip
                    return
            if not widths and not layer.first:
                first = next(iter((mask & (j <= i)).nonzero().tolist()))
                yield Step("", "mask", f"Token {first[0]} doesn't see token "
                           f"{first[1]}.")  # fmt: skip
            elif meant and meant < walk.t and widths and widths[0] != meant:
                told = f"Each token sees {widths[0]} tokens instead of {meant}."
                yield Step(
                    "window_size" if widths[0] < walk.t else "window_unused",
                    "mask",
                    told,
                )
            return
        band = any(torch.equal(mask, one) for one in far.values())
        yield Step("mask_missing" if band else "", "mask",
                   f"{count}, but not the whole future.")  # fmt: skip
        return
    sides = [w for w, one in far.items() if torch.equal(mask, one)]
    sides += [w for w, one in far.items() if torch.equal(mask, one.T)]
    if torch.equal(mask, j > i):
        yield Step("mask_unwanted", "mask", f"{count}: all of the future.")
    elif sides and mask.any():
        yield Step("window_one_sided", "mask", f"{count}, all on one side.")


# What may bring the scores of other pairs into one, by its design.
ACROSS = ("conv2d", "cumsum", "linear", "avg_pool2d", "max_pool2d", "layer_norm",
          "instance_norm", "batch_norm", "group_norm")  # fmt: skip


def _local(walk: Walk, subject: Subject, calls: list[Call]) -> Iterator[Step]:
    """Compare the scores of two tokens with what they are where a third is another."""
    t, keys = walk.t, walk.scores.shape[-1]
    if keys != t or t < 4 or subject.layer.memory or any(
        name in ACROSS and made.shape[-2:] == (t, keys) for name, _, _, made in calls
    ):  # fmt: skip
        return
    other, place = walk.x.clone(), t // 2
    other[:, place] = subject.tokens(len(other), t, seed=7).to(other)[:, place]
    again = followed(subject, other)
    if again is None or again.taken.shape != walk.taken.shape:
        return
    rest = torch.arange(t) != place
    for one, same in ((walk.query, again.query), (walk.key, again.key)):
        if one.shape != same.shape or not _close(one[:, rest], same[:, rest]):
            return
    one, same = (_own(each)[:, rest][..., rest] for each in (walk, again))
    seen = (one > -1e3) & (same > -1e3)
    # Softmax is the same whatever is added to a row, as minus its largest score.
    one, same = (
        each - each.masked_fill(~seen, -torch.inf).amax(-1, keepdim=True)
        for each in (one, same)
    )
    if seen.any() and not _close(one[seen], same[seen]):
        yield Step("third_token_counts", "positions", "Scores of two tokens change "
                   "with a third, although their queries and keys don't.")  # fmt: skip


def _ahead(t: int) -> torch.Tensor:
    return torch.ones(t, t).triu(1).bool()


def _normalized(walk: Walk, subject: Subject) -> Iterator[Step]:
    """Compare what softmax gives, and what becomes of it before values are mixed."""
    keys = walk.mixing.shape[-1]
    weights, sums = walk.weights, walk.weights.sum(dim=-1)
    heads = weights.view(len(walk.x), walk.h, *weights.shape[1:])
    for name, each, axis in (
        ("heads", heads, 1), ("batch", heads, 0), ("batch", weights, 0)
    ):  # fmt: skip
        whole = each.sum(dim=axis)  # NaN where a position is hidden in all of them
        if each.shape[axis] > 1 and whole.nansum() and _close(whole, 1.0 + 0.0 * whole):
            yield Step(f"softmax_over_{name}", "weights", "The weights of one pair of "
                       f"positions sum to 1 over the {name}.")  # fmt: skip
            return
    if (sums - 1).abs().max() > 1e-3 and weights.isfinite().all():
        columns = (weights.sum(dim=-2) - 1).abs().max() < 1e-3
        name = "softmax_over_queries" if columns else ""
        whole = (weights.sum(dim=(-2, -1)) - 1).abs().max() < 1e-3
        if not name and whole and walk.t > 1:
            name = "softmax_over_everything"
        elif not name and sums.max() > 1 + 1e-3:  # less may go to nothing on purpose
            name = "rows_do_not_sum_to_one"
        yield Step(name, "weights", f"A token's weights after softmax sum to "
                   f"{sums.min():.2f} to {sums.max():.2f}.")  # fmt: skip
        return
    held = [weights[..., :keys], weights[..., weights.shape[-1] - keys :]]
    if weights.shape[-1] == keys + 1:
        ends = _sinks(walk)
        if ends[0] != ends[1] and _close(walk.mixing, held[ends[1]]):
            told = "The sink is the last column, and the first one was dropped."
            if ends[0]:
                told = "The sink is the first column, and the last one was dropped."
            yield Step("sink_given_to_tokens", "weights", told)
            return
    if any(_close(walk.mixing, one) for one in held):
        return
    if any(one.shape[-1] == walk.t and _close(walk.mixing, one.mT) for one in held):
        yield Step("weights_transposed", "mix", "The values are multiplied by the "
                   "transposed weights.")  # fmt: skip
        return
    again = held[0] / held[0].sum(dim=-1, keepdim=True)
    if weights.shape[-1] == keys + 1 and _close(walk.mixing, again):
        yield Step("sink_unused", "weights", "Without the sink's share, the weights "
                   "are normalized to 1 again.")  # fmt: skip
        return
    # What a finite number hid before softmax may be set to 0 behind it, too.
    gone = (walk.mixing == 0) & (held[0] > 0) & (_own(walk) > -1e3)
    if subject.layer.exclusive:  # the first token may see nothing at all
        gone &= (walk.mixing != 0).any(dim=-1, keepdim=True)
    if gone.any() and _close(walk.mixing, held[0].masked_fill(gone, 0.0)):
        yield Step("mask_after_softmax", "weights", f"{int(gone.sum())} weights were "
                   "set to 0 after softmax.")  # fmt: skip
        return
    more = (walk.mixing - held[0]).view(len(walk.x), walk.h, walk.t, keys)
    fixed = more[:1].expand_as(more)
    if (
        subject.speaks_of(rf"{T5}|dist|bias_table")
        and (more - fixed).abs().max() < 1e-5 < more.abs().max()
    ):
        yield Step("rows_do_not_sum_to_one", "weights", "The same numbers are added to "
                   "the weights of each sequence, after softmax.")  # fmt: skip
        return
    first, mixed = heads[..., :keys], walk.mixing.view_as(heads[..., :keys])
    if walk.h > 1 and _close(mixed, mixed[:, :1].expand_as(mixed)):
        shared = [first.mean(dim=1), *first.unbind(dim=1)]
        if any(_close(mixed[:, 0], one) for one in shared):
            yield Step("weights_shared", "mix", "The values of all heads are mixed "
                       "with the same weights.")  # fmt: skip
            return
    ratio = (walk.mixing / held[0])[held[0] > 1e-6]
    if ratio.std() < 1e-4 * ratio.mean().abs():
        yield Step("scale_after_softmax", "weights", "The weights are multiplied by "
                   f"{ratio.mean():.3g} after softmax.")  # fmt: skip


def _sinks(walk: Walk) -> list[bool]:
    """Return whether the first and the last column are the same for all tokens."""
    ends = [(walk.taken[: walk.h, :1, at], walk.taken[..., at]) for at in (0, -1)]
    return [_close(one, even.repeat(len(walk.x), walk.t)) for even, one in ends]


def _own(walk: Walk) -> torch.Tensor:
    """Return what softmax takes, without the column of a sink."""
    keys = walk.scores.shape[-1]
    front = walk.taken.shape[-1] == keys + 1 and _sinks(walk) == [True, False]
    return walk.taken[..., 1:] if front else walk.taken[..., :keys]


def _mixed(walk: Walk) -> Iterator[Step]:
    """Compare the sum of values with the weights that make it."""
    if _close(walk.context, walk.mixing @ walk.values):
        return
    own = walk.context.shape == walk.values.shape and walk.mixing.any()
    if own and _close(walk.context, walk.mixing.sum(-1, keepdim=True) * walk.values):
        yield Step("tokens_not_mixed", "mix", "Each token gets its own value, times "
                   "the sum of its weights.")  # fmt: skip
    if walk.mixing.shape[-2:] == walk.mixing.mT.shape[-2:] and _close(
        walk.context, walk.mixing.mT @ walk.values
    ):
        yield Step("weights_transposed", "mix", "The values are multiplied by the "
                   "transposed weights.")  # fmt: skip


def _joined(walk: Walk) -> Iterator[Step]:
    """Compare the heads as they are put together."""
    b, t = len(walk.x), walk.t
    if walk.h < 2 or walk.h == t:
        return
    n, _, d = walk.context.shape
    heads = walk.context.view(b, n // b, t, d)
    right = heads.transpose(1, 2).flatten(2)  # (b, t, h * d)
    turned = walk.context.view(n // b, b, t, d).permute(1, 2, 0, 3).flatten(2)
    held = [one for _, given, _, result in walk.behind for one in (*given, result)]
    held = [one for one in held if one.numel() == right.numel()]
    # Those of an image, as tokens.
    held = [one.flatten(2).mT if one.dim() == 4 and one.shape[:2] == (b, n // b * d)
            else one for one in held]  # fmt: skip
    # Those of heads that are cut once more, for a projection with an axis for them.
    held = [one.flatten(2) if one.shape == (b, t, n // b, d) else one for one in held]
    held = [one for one in held if one.dim() in (2, 3)]
    if any(
        _close(one.reshape(right.shape), good)
        or (one.shape[:1] == (t,) and _close(one.transpose(0, 1), good))
        for one in held
        for good in (right, turned)
        if one.dim() == 2 or one.shape[-1] == right.shape[-1]
    ):
        return
    numbers = right.flatten().sort().values
    for one in held:
        wide = one.shape[-1] == right.shape[-1]
        if wide and _close(one.flatten().sort().values, numbers):
            moved = heads.permute(0, 2, 3, 1).flatten(2)
            same = _close(one.reshape(right.shape), moved)
            name = "join_interleaved" if same else "join_viewed"
            told = "The joined heads have the right numbers in the wrong order."
            yield Step(name, "join", told)
            return
