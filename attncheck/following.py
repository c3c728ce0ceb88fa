"""Finds the steps of attention in what was recorded, by their sizes and order."""

from collections.abc import Iterator
from typing import Any

import torch

from attncheck.recorded import (
    CONTRACTIONS,
    CONVOLUTIONS,
    Call,
    Recorded,
    Walk,
    _close,
    _own,
)
from attncheck.subject import Subject


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
