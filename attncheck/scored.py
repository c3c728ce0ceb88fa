"""Judges what scores are multiplied with, added to and hidden by."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from attncheck.following import _parts, _rows, followed
from attncheck.layer import Layer
from attncheck.projected import _times
from attncheck.recorded import Call, Step, Walk, _close, _own, _sinks
from attncheck.subject import Subject

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
