"""Tests of training mode and dropout, and a note on the order of tokens."""

import contextlib
import re

import torch
from torch import nn

from attncheck.build import duplicate, rates_of
from attncheck.collector import Collector, SkipTest
from attncheck.numbers import changed
from attncheck.probes.training import DISTANCES, dropped_at, mean_holds
from attncheck.subject import CallFailed, Subject, guarded
from attncheck.trace import Watch

RATES = 0.2, 0.5
FURTHEST = re.compile(r"max_?(rel\w*_)?dist")
BATCH_NORMS = nn.BatchNorm1d, nn.BatchNorm2d


def same_in_training(subject: Subject, found: Collector) -> None:
    """Compare training mode with eval() where dropout is 0."""
    one = subject.variant(dropout=0.0) or subject
    x = one.tokens()
    still = one(x)
    if not still.isfinite().all():
        raise SkipTest("the output isn't finite in eval() either")
    first, second = one(x, train=True, seed=1), one(x, train=True, seed=2)
    if changed(first, second):
        _random(subject, one, found)
    elif changed(still, first):
        _tell_difference(one, x, found)


def _random(subject: Subject, one: Subject, found: Collector) -> None:
    """Without dropout two calls differ: the rate is another than the one asked for."""
    takes_rate = one is not subject or subject.variant(dropout=0.0) is not None
    if not takes_rate:
        raise SkipTest("it's random in training, and no dropout rate was found")
    done = "Called it twice in training mode, with dropout 0."
    rates = {p.p for p in one.pristine.modules() if isinstance(p, torch.nn.Dropout)}
    # The argument may be meant for one dropout of several.
    severity = "warning" if len(rates) > 1 and 0.0 in rates else None
    found.add("dropout_rate_ignored", done, "The two outputs differ.", severity)


def _tell_difference(one: Subject, x: torch.Tensor, found: Collector) -> None:
    done = "Passed the same tokens in train() and eval(), with dropout 0."
    watch = Watch(module := one.copy())
    one(x, module, train=True, mode=watch)
    if 1.0 in watch.seen.rates:
        seen = "In training, one dropout has the rate 1 and drops everything."
        found.add("dropout_rate_ignored", done, seen)
        return
    if _same_for_all(one(x, train=True)) and not _same_for_all(one(x)):
        seen = "In training, the output is the same for all tokens: all is dropped."
        found.add("dropout_rate_ignored", done, seen)
        return
    other = x.clone()
    other[1] = one.tokens(seed=3)[1]
    normed = any(isinstance(part, BATCH_NORMS) for part in one.pristine.modules())
    if normed and (found.not_compared or found.read):
        return  # their numbers are those of the batch, maybe by design
    if changed(one(x, train=True)[0], one(other, train=True)[0]) and not changed(
        one(x)[0], one(other)[0]
    ):
        seen = "In training, the output for sequence 0 changes with sequence 1."
        found.add("samples_mixed_in_training", done, seen)
        return
    ahead = x.clone()
    ahead[:, -1] = one.tokens(seed=5)[:, -1]
    y, z = one(x, train=True), one(ahead, train=True)
    if one.causal and changed(y[:, :-1], z[:, :-1]):
        still = not changed(one(x)[:, :-1], one(ahead)[:, :-1])
        if still:
            seen = "In training, earlier positions change with the last token."
            found.add("mask_only_in_eval", done, seen)
            return
    found.add("training_differs", done, "The two outputs differ.")


def _same_for_all(y: torch.Tensor) -> bool:
    return not changed(y, y[:1, :1].expand_as(y))


def dropout_place(subject: Subject, found: Collector) -> None:
    """Drop with one token, whose weight is 1: all or nothing of each head remains."""
    _kept(subject, found)
    _most_dropped(subject, found)
    dropped = subject.variant(dropout=0.5)
    if dropped is None:
        raise SkipTest("no dropout was found")
    said = "random_in_eval dropout_on_scores dropout_unused dropout_not_rescaled"
    if found.found.keys() & set(said.split()):
        raise SkipTest("the dropout test says more")
    if subject.fixed_length:
        raise SkipTest("it runs only with context_length tokens")
    if "not_finite" in found.found:
        raise SkipTest("the output isn't finite without dropout either")
    _rate(subject, found)
    for name in ["dropout", *rates_of(subject.given)] if subject.layer.residual else ():
        one = dropped if name == "dropout" else subject.variant(own={name: 0.5})
        if one is not None and (seen := _residual_dropped(one)):
            done = f"Called it in training mode with {name} 0.5."
            seen += ": dropout hits the added input with the rest."
            found.add("dropout_elsewhere", done, seen, "error")
            return
    places, times = dropped_at(dropped)
    if times > 1:
        done = "Counted the dropout calls in one call in training mode."
        seen = f"Each attention weight went through dropout {times} times."
        found.add("dropout_rate_ignored", done, seen)
        return
    if "scores" in places and "weights" not in places:
        done = "Looked at where dropout is called in training mode."
        found.add("dropout_on_scores", done, "It's called on the scores.")
        return
    if any(place == "weights" for place in places):
        others = [place for place in places if place != "weights"]
        if others:
            subject.note(f"Dropout acts on the weights, and on {', '.join(others)}.")
        return
    if subject.sizes.get("dropout") is None:
        raise SkipTest("no argument sets dropout for the attention weights")
    if subject.layer.memory:
        raise SkipTest("its memory has several tokens, so one token has many outputs")
    patterns, most = _patterns(dropped)
    if (places and patterns > 1) or patterns > most:
        where = f" It acts on {', '.join(places)}." if places else ""
        done = "Passed one token many times in training mode, with dropout 0.5."
        seen = f"The output has {patterns} forms; dropped weights give at most {most}"
        found.add("dropout_elsewhere", done, f"{seen}.{where}")


def _residual_dropped(subject: Subject) -> str:
    """Say how it shows that dropout acts on the sum with the input, if it does."""
    x = subject.tokens(b=32)  # whole sequences may be dropped
    still, y = subject(x), subject(x, train=True, seed=5)
    share = (y == 0).float().mean()
    if not (still == 0).any() and 0.3 < share < 0.7:
        return "About half of the outputs are 0"
    if not subject.layer.postnorm or subject.layer.late:
        return ""
    # A norm of the sum hides the zeros.
    module, taken = subject.copy(), list[torch.Tensor]()
    for part in module.modules():
        if "norm" in type(part).__name__.lower():
            part.register_forward_pre_hook(lambda _, args: taken.extend(args[:1]))
    watch = Watch(module)
    subject(x, module, train=True, mode=watch)
    direct = any(
        one is last and one._version == then  # else something was added to it
        for last in taken[-1:]
        for one, then in watch.seen.dropped
    )
    return "The last norm takes what dropout returns" if direct else ""


def _patterns(subject: Subject) -> tuple[int, int]:
    """Return how many outputs one token has, and how many dropped weights can give."""
    x = subject.tokens(b=1, t=1).expand(512, -1, -1).contiguous()
    y = subject(x, train=True, seed=3)[:, 0]
    scale = y.abs().max().clamp_min(1e-12)
    forms = (y / scale * 1e4).round().unique(dim=0)
    return len(forms), 2 ** min(subject.sizes.get("num_heads") or 1, 8)


def _rate(subject: Subject, found: Collector) -> None:
    """Compare the spread of two rates: it grows with p / (1 - p)."""
    if not mean_holds(subject):
        return
    spreads, times = [], 1
    both = [one for rate in RATES if (one := subject.variant(dropout=rate, alone=True))]
    _without_others(both)
    for one in both:
        times = max(len(dropped_at(one)[0]), 1)
        x = one.tokens(b=1, t=2).expand(1024, -1, -1).contiguous()
        y = one(x, train=True, seed=4)
        spreads.append(y.var(dim=0).sum().item())
    if spreads[0] <= 1e-12:
        return
    ratio, (low, high) = spreads[1] / spreads[0], RATES
    meant = high / (1 - high) / (low / (1 - low))
    # One behind another, they spread more.
    most = ((1 - high) ** -times - 1) / ((1 - low) ** -times - 1)
    # A share of what is kept, taken for one that is dropped, turns this round.
    if not meant / 1.6 < ratio < most * 1.6:
        done = f"Compared the output's spread with dropout {low} and {high}."
        seen = f"It grows {ratio:.2f} times; it should grow {meant:.2f} times."
        found.add("dropout_rate_ignored", done, seen)


def _kept(subject: Subject, found: Collector) -> None:
    """Keep all, by an argument that is the share to keep, and look for what is lost."""
    for name in (
        n for n, v in subject.given.items() if "keep" in n and type(v) is float
    ):
        whole = subject.variant(own={name: 1.0})
        x = subject.tokens(b=4)
        if whole is not None and changed(whole(x), whole(x, train=True, seed=1), 1e-4):
            done = f"Built it with {name}=1, and called it in training mode."
            text = "The output isn't that of eval(), though all should be kept."
            found.add("dropout_rate_ignored", done, text)
            return


def _most_dropped(subject: Subject, found: Collector) -> None:
    """Look for a rate that drops most weights, and that nobody asked for."""
    asked = {value for value in subject.given.values() if isinstance(value, float)}
    parts = subject.fresh.named_modules()
    rates = [(f"{n} drops", m.p) for n, m in parts if isinstance(m, torch.nn.Dropout)]
    watch = Watch(subject.fresh)
    with contextlib.suppress(CallFailed):
        subject(subject.tokens(), duplicate(subject.fresh), train=True, mode=watch)
    rates += [("Dropout without a module drops", rate) for rate in watch.seen.rates]
    for words, rate in rates:
        if 0.5 < rate < 1.0 and rate not in asked:
            done = "Looked at the rates of a new instance."
            text = f"{words} {rate:.0%} of what it gets. A layer that takes the share "
            text += "to keep gets 1 minus that."
            found.add("dropout_rate_ignored", done, text)
            return


def _without_others(subjects: list[Subject]) -> None:
    """Stop dropouts with a rate of their own, where another has what was asked for."""
    parts = [one.pristine.modules() for one in subjects]
    pairs = [p for p in zip(*parts, strict=True) if isinstance(p[0], torch.nn.Dropout)]
    asked = [pair for pair in pairs if tuple(part.p for part in pair) == RATES]
    for pair in pairs if asked else []:
        for part in pair if pair not in asked else ():
            part.p = 0.0


def order(subject: Subject, found: Collector) -> None:
    """Exchange two earlier tokens and look at the last one."""
    _tell_last_distance(subject, found)
    x = subject.tokens()
    if x.shape[1] < 4:
        raise SkipTest("the layer doesn't take enough tokens")
    other = x.clone()
    other[:, [0, 2]] = x[:, [2, 0]]
    matters = changed(subject(x)[:, -1], subject(other)[:, -1], 1e-4)
    if torch.equal(subject(x), subject(other)):
        raise SkipTest("the output doesn't change with these tokens")
    if matters:
        subject.note(
            "It sees the order of tokens: the last output changes when two earlier "
            "tokens swap places."
        )
    else:
        subject.note(
            "It doesn't see the order of earlier tokens, so add positions before it."
        )


def _tell_last_distance(subject: Subject, found: Collector) -> None:
    """See whether the largest distance reaches the last row of a table for distances.

    Half of the rows may be for the other side, which a causal layer never looks at.
    """
    named = [*subject.given.items(), *vars(subject.pristine).items()]
    sizes = {v for n, v in named if type(v) is int and FURTHEST.search(n.lower())}
    most = sizes.pop() if len(sizes) == 1 else 0
    module, x = subject.copy(), subject.tokens(1, most + 1, size=0.3)
    if not 2 <= most <= 512 or x.shape[1] != most + 1 or subject.layer.memory:
        return
    y = subject(x, module, grad=True)
    guarded(subject.worker, y.square().sum().backward, "backward_raises")
    for name, p in module.named_parameters():
        if p.grad is None or p.dim() != 2 or not DISTANCES.search(name):
            continue
        last = max(p.grad.any(dim=1).nonzero().flatten().tolist(), default=0)
        if len(p) <= 2 * most + 1 and len(p) // 2 < last < len(p) - 1:
            done = f"Passed {most + 1} tokens, and looked at gradients of {name}."
            seen = f"The largest distance, {most}, reaches row {last}, and the last "
            found.add("distances_lost", done, f"{seen}one is {len(p) - 1}.")
