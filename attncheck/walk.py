"""Judges each step of attention by what went into it, so that no other step disturbs.

The tensors of one forward pass are followed by their numbers: what was projected, cut
into heads, multiplied, masked, normalized, mixed and joined. A step that turns its own
input into something else than meant is named, whatever else the layer does.
"""

from collections.abc import Iterator
from itertools import pairwise

import torch

from attncheck.following import _cut_out, _followed
from attncheck.projected import (
    _borrowed,
    _cut,
    _normed_wrongly,
    _shares,
    _through_relu,
    _tied,
    _turned,
)
from attncheck.recorded import (
    CONTRACTIONS,
    Call,
    Recorded,
    Step,
    Walk,
    _close,
    _own,
    _sinks,
)
from attncheck.scored import T5, _capped, _local, _masked, _scaled
from attncheck.subject import Subject


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
