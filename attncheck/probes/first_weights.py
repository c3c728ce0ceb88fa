"""Tests of the weights as the class draws them, and of weights that are shared."""

import contextlib
import re
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import torch

from attncheck.build import duplicate
from attncheck.collector import Collector, SkipTest
from attncheck.probes.training import acting
from attncheck.projections import Projections, find
from attncheck.roles import Pair
from attncheck.subject import CallFailed, Subject

STEPS = 3
FREQUENCIES = re.compile("freq|theta|rot|angle")
# What follows the tensor is its mean.
MEAN = re.compile(r"\binit\.normal_\([^,()]+, *(0?\.\d+|\de-\d+|[\w.]*(std|range))\)")
SATURATED = 0.9  # the mean of the largest weight in rows of eight


def shared(subject: Subject, found: Collector) -> None:
    """See whether two heads, or two projections, are the same weights."""
    module = subject.pristine
    done = "Compared where the weights of all heads and projections are stored."
    for name, part in module.named_modules():
        if isinstance(part, torch.nn.ModuleList):
            layers = [e for e in part if any(True for _ in e.parameters())]
            if len({id(layer) for layer in layers}) < len(layers):
                seen = f"{name or 'The list'} contains the same layer several times."
                linear = isinstance(layers[0], torch.nn.Linear)
                found.add("projections_tied" if linear else "heads_shared", done, seen)
                return
    owners: dict[int, list[str]] = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        owners.setdefault(id(parameter), []).append(name)
    for names in owners.values():
        if len(names) > 1:
            seen = f"These are the same parameter: {', '.join(names)}."
            found.add("projections_tied", done, seen)
            return
    if names := subject.in_one_place:  # to share on purpose, one would be the other
        seen = f"These are stored in one place: {', '.join(names)}."
        found.add("projections_tied", done, seen, "error")


def first_weights(subject: Subject, found: Collector) -> None:
    """Look at the weights as built: can they learn, are they drawn at random?"""
    again = subject.variant(seed=0)
    if again is None:
        raise SkipTest("this needs the class, not an instance")
    module = again.fresh
    readings = find(module, again.sizes.get("num_heads"), again.sizes.get("d_in"))
    weights = {}
    for reading in readings[:1]:
        for role in ("query", "key", "value"):
            weights[role] = getattr(reading, role)[0]
    if not weights:
        given = module.named_parameters()  # a bias may have an axis for the heads
        matrices = [(n, p) for n, p in given if p.dim() == 2 and "bias" not in n]
        weights = {name: p.detach() for name, p in matrices}
    positive = _values(weights, subject, found)
    # One alone may begin so on purpose. Later on, they are trained.
    zeros = len(weights) > 2 and not any(one.any() for one in weights.values())
    _constants(module, found)
    for (one, first), (other, second) in combinations(weights.items(), 2):
        same = first.shape == second.shape and first.data_ptr() != second.data_ptr()
        if same and first.numel() > 1 and first.std() > 0 and first.equal(second):
            done = "Looked at the parameters of a new instance."
            seen = f"{one} and {other} start with the same numbers."
            found.add("projections_tied", done, seen, "warning")
            break
    if not found.found.keys() & {
        "no_gradient",
        "gradient_missing",
        "backward_raises",
    }:
        _learns(again, found)
    if zeros and "init_dead" not in found.found:
        done = "Looked at the parameters of a new instance."
        found.add("init_constant", done, f"All numbers of {', '.join(weights)} are 0.")
    if readings and not positive:
        _saturated(readings[0], again, found)


def written(subject: Subject, found: Collector) -> None:
    """Build it once more, with NaN in all memory that nobody has written to."""
    kept = torch.get_deterministic_debug_mode()
    # PyTorch then fills memory that nobody wrote to with NaN. With
    # use_deterministic_algorithms, it would import its compiler for that: a second.
    torch.set_deterministic_debug_mode("warn")
    try:
        built = subject.variant(seed=0)
    finally:
        torch.set_deterministic_debug_mode(kept)
    done = "Built it with NaN in all memory that isn't written to."
    names = [
        name
        for name, p in (built.fresh.named_parameters() if built else [])
        if p.is_floating_point() and p.isnan().any()
    ]
    if names:
        found.add("init_missing", done, f"Never written: {', '.join(names)}.")
        for one in filter(None, (subject, subject.uneven)):
            one.draw(names)


def _values(
    weights: Mapping[str, torch.Tensor], subject: Subject, found: Collector
) -> bool:
    done = "Looked at the parameters of a new instance."
    for name, weight in weights.items():
        if weight.numel() < 2 or not weight.isfinite().all():
            continue
        if bool((weight == weight.flatten()[0]).all()) and weight.any():
            seen = f"All numbers of {name} are {weight.flatten()[0].item():.3g}."
            found.add("init_constant", done, seen)
        elif bool((weight > 0).all()):
            subject.note(
                f"In a new instance, all numbers in {name} are positive, so scores are "
                f"large and have one sign. `nn.Linear` draws both signs."
            )
            return True
    return False


def _constants(module: torch.nn.Module, found: Collector) -> None:
    """Look for masks, slopes by distance and frequencies of rotations, as trained."""
    done = "Looked at the parameters of a new instance."
    for name, p in module.named_parameters():
        held = p.detach().squeeze()
        if not p.requires_grad or not held.numel() > 1:
            continue
        if held.dim() == 2 and held.shape[0] == held.shape[1]:
            ahead = torch.ones_like(held).triu(1) > 0
            if not held[~ahead].any() and bool((held[ahead] < -1e3).all()):
                seen = f"{name} holds 0 where a token is visible, and much less where "
                found.add("constant_trained", done, seen + "it is hidden.")
        elif held.dim() == 1 and FREQUENCIES.search(name) and _is_geometric(held):
            seen = f"{name} holds the frequencies of rotary positions."
            found.add("constant_trained", done, seen)
        elif held.dim() == 1 and bool((held > 0).all()) and held[0] != held[1]:
            h = len(held)
            slopes = 2.0 ** (-8.0 * torch.arange(1, h + 1, device=p.device) / h)
            if torch.allclose(held.double(), slopes.double(), rtol=1e-5):
                # Some learn them; then they are meant to change.
                seen = f"{name} holds the slopes of a bias by distance."
                found.add("constant_trained", done, seen, "warning")


def _is_geometric(held: torch.Tensor) -> bool:
    """Whether it falls from 1 by one factor."""
    factor = held[1] / held[0]
    powers = factor ** torch.arange(len(held), device=held.device)
    return bool(0 < factor < 1) and torch.allclose(held, powers.to(held), rtol=1e-3)


def _learns(subject: Subject, found: Collector) -> None:
    """Train for some steps; a matrix that never changes cannot learn."""
    module, opened = subject.fresh, duplicate(subject.fresh)
    idle = _given_zeros(subject, duplicate(module))
    before = {n: p.detach().clone() for n, p in module.named_parameters()}
    still = _trained(subject, module)
    if not {name.rpartition(".")[0] for name in still} - idle:
        return
    done = f"Trained a new instance for {STEPS} steps."
    if all(re.search("rel|pos|distance|bucket", name.lower()) for name in still):
        seen = f"Never changed: {', '.join(still)}. All visible pairs of tokens "
        found.add("distances_lost", done, seen + "seem to take the same row.")
        return
    # A gain that starts at 0 is meant to be loaded: it holds the rest back.
    after = dict(module.named_parameters())
    gains = [n for n, p in before.items() if "bias" not in n and p.dim() == 1]
    gains = [n for n in gains if not before[n].any() and after[n].detach().any()]
    # Unless it is held back itself, as two that start at 0 and are multiplied are, or
    # with a gain of 1 the rest still doesn't change: then it is a bias by another name.
    severity = None
    if gains:
        with torch.no_grad():
            for name in gains:
                opened.get_parameter(name).fill_(1.0)
        severity = (
            "error" if set(still) <= set(_trained(subject, opened)) else "warning"
        )
    found.add("init_dead", done, f"Never changed: {', '.join(still)}.", severity)


def _given_zeros(subject: Subject, module: torch.nn.Module) -> set[str]:
    """Return the names of parts that a call gives zeros alone: they can't learn."""
    zeros = set()

    def look(part: torch.nn.Module, args: tuple[Any, ...]) -> None:
        if args and isinstance(args[0], torch.Tensor) and not args[0].any():
            zeros.add(names[part])

    names = {part: name for name, part in module.named_modules()}
    for part in names:
        part.register_forward_pre_hook(look)
    with contextlib.suppress(CallFailed):
        subject(subject.tokens(), module, train=True)
    return zeros


def _trained(subject: Subject, module: torch.nn.Module) -> list[str]:
    """Train a module for some steps, and return the names of what never changed."""
    module.train()  # some return nothing
    before = {n: p.detach().clone() for n, p in module.named_parameters()}
    x = subject.tokens(b=8, seed=11)
    generator = torch.Generator().manual_seed(12)
    wanted = None
    try:
        for _ in range(STEPS):
            # With a gradient of its own: without, PyTorch 2.13 can end the process
            # in the backward pass of a group norm of channels that come last.
            given = x.clone().requires_grad_()
            y = subject(given * 1.0, module, train=True, grad=True)
            if not y.requires_grad or not y.isfinite().all():
                return []
            if wanted is None:
                wanted = torch.randn(y.shape, generator=generator).to(y)
            module.zero_grad()
            (y - wanted).square().mean().backward()
            with torch.no_grad():
                for p in module.parameters():
                    if p.grad is not None:
                        p.sub_(0.5 * p.grad)
    except (CallFailed, RuntimeError):
        return []
    still = [
        name
        for name, p in module.named_parameters()
        # A bias may change nothing, as one of keys does; a gain of 0 has to grow.
        if (p.dim() >= 2 or (p.dim() == 1 and "bias" not in name and not p.any()))
        and p.numel()
        and p.requires_grad
        and torch.equal(p.detach(), before[name])
    ]
    for name, p in module.named_parameters():  # of joined ones, what starts at 0
        if p.dim() == 2 and p.numel() and p.shape[0] % 3 == 0 and name not in still:
            thirds = zip(p.detach().chunk(3), before[name].chunk(3), strict=True)
            if any(not then.any() and torch.equal(now, then) for now, then in thirds):
                still.append(name)
    with contextlib.suppress(CallFailed, RuntimeError):
        x = subject.tokens()
        still = acting(subject, still, x, subject(x, train=True)) if still else []
    return still


def _saturated(reading: Projections, subject: Subject, found: Collector) -> None:
    x = subject.tokens(b=16, t=8, seed=13).cpu().double()
    if not x.shape[-1] == reading.d_in == reading.key[0].shape[1]:
        return  # a memory of another width
    h, d = reading.num_heads, reading.d_head
    q, k = (_project(x, pair) for pair in (reading.query, reading.key))
    if q.shape != k.shape:
        return  # grouped heads
    q, k = (part.unflatten(-1, (h, d)).transpose(1, 2) for part in (q, k))
    scores = q @ k.mT
    largest = (scores / d**0.5).softmax(-1).amax(-1).mean().item()
    if largest > SATURATED:
        done = "Passed random tokens to a new instance."
        seen = f"A row's largest attention weight is {largest:.2f} on average."
        slip = MEAN.search(subject.source)
        if slip:  # large weights may be meant, a mean for a deviation is not
            seen += f" {slip[0]} sets the mean, and leaves the deviation at 1."
        found.add("init_too_large", done, seen, "error" if slip else None)


def _project(x: torch.Tensor, pair: Pair) -> torch.Tensor:
    y = x @ pair[0].double().T
    return y if pair[1] is None else y + pair[1].double()
