"""Tests of what happens in training: dropout and gradients."""

import re
from math import prod

import torch
from torch import Tensor

from attncheck.arguments import kind_of, parameters_of_forward
from attncheck.collector import Collector, SkipTest
from attncheck.errors import CallFailed
from attncheck.numbers import changed
from attncheck.subject import Subject, run_guarded
from attncheck.trace import Watch

P = 0.5
RATES = 0.2, 0.5
MEMORY = r"context|mem|cond|encoder|cross"  # names of parameters that act on a memory


def same_in_training(subject: Subject, found: Collector) -> None:
    """Compare training mode with eval() where dropout is 0."""
    one = subject.variant(dropout=0.0) or subject
    x = one.tokens()
    still = one(x)
    if not still.isfinite().all():
        raise SkipTest("the output isn't finite in eval() either")
    first, second = one(x, train=True, seed=1), one(x, train=True, seed=2)
    if changed(first, second):
        if one is subject:
            raise SkipTest("it's random in training, and no dropout rate was found")
        done = "Called it twice in training mode, with dropout 0."
        parts = one.pristine.modules()
        rates = {part.p for part in parts if isinstance(part, torch.nn.Dropout)}
        # The argument may be meant for one dropout of several.
        severity = "warning" if len(rates) > 1 and 0.0 in rates else None
        found.add("dropout_rate_ignored", done, "The two outputs differ.", severity)
    elif changed(still, first):
        normed = any("BatchNorm" in type(m).__name__ for m in one.pristine.modules())
        if normed and found.report.not_compared:
            return  # their numbers are those of the batch, maybe by design
        done = "Passed the same tokens in train() and eval(), with dropout 0."
        watch = Watch(module := one.copy())
        one(x, module, train=True, mode=watch)
        if 1.0 in watch.seen.rates:
            seen = "In training, one dropout has the rate 1 and drops everything."
            found.add("dropout_rate_ignored", done, seen)
        else:
            found.add("training_differs", done, "The two outputs differ.")


def dropout(subject: Subject, found: Collector) -> None:
    """Look at whether dropout acts, where, and by the rate that was asked for."""
    if "random_in_eval" in found.found:
        raise SkipTest("the layer is random in eval()")
    dropped = subject.variant(dropout=P)
    if dropped is None:
        raise SkipTest("no dropout was found")
    x = dropped.tokens(b=16)
    still, y = dropped(x), dropped(x, train=True, seed=1)
    places = find_dropout(dropped)
    if not changed(still, y):
        done = f"Passed the same tokens in train() and eval(), with dropout {P}."
        told = ", although dropout runs: what it returns goes nowhere" if places else ""
        severity = "error" if places else None
        found.add("dropout_unused", done, f"The outputs are equal{told}.", severity)
    elif "scores" in places and "weights" not in places:
        done = "Looked at where dropout is called in training mode."
        found.add("dropout_elsewhere", done, "It's called on the scores.", "error")
    elif "weights" in places:
        others = [place for place in places if place != "weights"]
        if others:
            subject.note(f"Dropout acts on the weights, and on {', '.join(others)}.")
    elif subject.sizes.get("dropout") is not None and not subject.layer.memory:
        _tell_elsewhere(dropped, places, found)
    if still.isfinite().all() and not found.found.keys() & {"dropout_unused"}:
        _tell_rate(subject, found)


def _tell_elsewhere(dropped: Subject, places: list[str], found: Collector) -> None:
    """Drop with one token, whose weight is 1: all or nothing of each head remains."""
    if dropped.fixed_length:
        return
    x = dropped.tokens(b=1, t=1).expand(512, -1, -1).contiguous()
    y = dropped(x, train=True, seed=3)[:, 0]
    scale = y.abs().max().clamp_min(1e-12)
    forms = len((y / scale * 1e4).round().unique(dim=0))
    most = 2 ** min(dropped.sizes.get("num_heads") or 1, 8)
    if (places and forms > 1) or forms > most:
        where = f" It acts on {', '.join(places)}." if places else ""
        done = "Passed one token many times in training mode, with dropout 0.5."
        seen = f"The output has {forms} forms; dropped weights give at most {most}"
        found.add("dropout_elsewhere", done, f"{seen}.{where}")


def _tell_rate(subject: Subject, found: Collector) -> None:
    """Compare the spread of two rates: it grows with p / (1 - p)."""
    both = [one for rate in RATES if (one := subject.variant(dropout=rate, alone=True))]
    if len(both) < 2 or not found.report.compared or _is_normed(subject):
        return
    spreads, times = [], 1
    for one in both:
        times = max(len(find_dropout(one)), 1)
        x = one.tokens(b=1, t=2).expand(1024, -1, -1).contiguous()
        try:
            y = one(x, train=True, seed=4)
        except CallFailed:
            return
        spreads.append(y.var(dim=0).sum().item())
    if spreads[0] <= 1e-12:
        return
    ratio, (low, high) = spreads[1] / spreads[0], RATES
    meant = high / (1 - high) / (low / (1 - low))
    # Several dropouts in a row spread the output more.
    most = ((1 - high) ** -times - 1) / ((1 - low) ** -times - 1)
    # A class that takes the rate for the share to keep gets the inverse.
    if not meant / 1.6 < ratio < most * 1.6:
        done = f"Compared the output's spread with dropout {low} and {high}."
        seen = f"It grows {ratio:.2f} times; it should grow {meant:.2f} times."
        found.add("dropout_rate_ignored", done, seen)


def _is_normed(subject: Subject) -> bool:
    """Whether a norm acts, so that the spread may change with what it takes."""
    watch = Watch(module := subject.copy())
    subject(subject.tokens(b=1), module, mode=watch)
    return "a norm" in watch.seen.extras


def find_dropout(subject: Subject) -> list[str]:
    """Return where dropout acted: on weights, on scores or elsewhere."""
    x = subject.tokens(b=2)
    grid = x.shape[1], subject.layer.memory or x.shape[1]
    watch = Watch(module := subject.copy())
    try:
        subject(x, module, train=True, mode=watch)
    except CallFailed:
        return []
    seen = watch.seen
    softmax = min((place for place, _ in seen.softmaxes), default=0)
    # A bias has fewer numbers than there are scores.
    sizes = {made.numel() for _, made in seen.softmaxes}
    places = []
    for place, shape in seen.dropouts:
        if shape == (0, 0) or (shape[-2:] == grid and place > softmax):
            places.append("weights")
        elif shape[-2:] == grid and prod(shape) in sizes:
            places.append("scores")
        else:
            before = any(p.place > place for p in seen.products[:1])
            later = place > max((p.place for p in seen.products), default=0)
            places.append("inputs" if before else "outputs" if later else "values")
    return sorted(set(places))


def gradients(subject: Subject, found: Collector) -> None:
    """Send a gradient back and see where it arrives."""
    module = subject.copy()
    x = subject.tokens().requires_grad_()
    # Times 1, since PyTorch itself refuses to change a leaf of the graph in place.
    y = subject(x * 1.0, module, train=True, grad=True)
    if not y.isfinite().all():
        raise SkipTest("the output isn't finite")
    done = "Ran the backward pass from a random sum of the outputs."
    if not y.requires_grad:
        found.add("no_gradient", done, "The output is cut off from all parameters.")
        return
    generator = torch.Generator().manual_seed(3)
    loss = (y * torch.randn(y.shape, generator=generator).to(y)).sum()
    run_guarded(subject.worker, loss.backward, "backward_raises")
    if x.grad is None and not subject.layer.memory:
        found.add("no_gradient", done, "The input gets no gradient.")
        return
    cut = [name for name, p in module.named_parameters() if _cut_off(p)]
    cut = _acting(subject, cut) if cut else []
    if cut:
        held = dict(module.named_parameters())
        # A vector, such as a norm's weight, may be used by another method only.
        vectors = all(name in held and held[name].dim() < 2 for name in cut)
        seen = f"No gradient for {', '.join(cut)}."
        severity = "warning" if vectors else None
        found.add("gradient_missing", done, seen, severity)


def _acting(subject: Subject, cut: list[str]) -> list[str]:
    """Return the parameters that are for the output that is tested.

    Others may be for a memory that nobody gave.
    """
    others = list(parameters_of_forward(subject.pristine))[1:]
    spare = any(kind_of(name) == "memory" or "mem" in name for name in others)
    spare = spare and not subject.layer.memory
    idle = [n for n in cut if spare and re.search(MEMORY, n.lower())]
    return [n for n in cut if n not in idle]


def _cut_off(parameter: Tensor) -> bool:
    """Whether no gradient arrives. That of a key's bias is 0 by nature: let it be."""
    if not parameter.requires_grad or not parameter.numel():
        return False
    gradient = parameter.grad
    return gradient is None or (parameter.dim() > 1 and not gradient.any())
