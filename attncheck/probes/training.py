"""Tests of what happens in training: dropout and gradients."""

import re
from math import prod
from typing import Any

import torch
from torch import nn

from attncheck.calling import kinds_of, makes_positions
from attncheck.collector import Collector, SkipTest
from attncheck.numbers import changed
from attncheck.projections import NAMES
from attncheck.subject import CallFailed, Failure, Subject, guarded
from attncheck.trace import Watch, tensors

P = 0.5
SEEDS = 256
DISTANCES = re.compile("rel|dist|bias|bucket|offset")
HALVES = re.compile(r"buckets?\s*(//=|=\s*[\w.]+\s*//)\s*2")  # one for each direction
MEMORY = r"context|mem|cond|encoder|cross"  # names of what acts on a memory


def dropout(subject: Subject, found: Collector) -> None:
    """Run many copies of one sequence with dropout 0.5 and look at their mean."""
    dropped = subject.variant(dropout=P)
    if dropped is None:
        raise SkipTest("no dropout was found")
    alone = subject.variant(dropout=P, alone=True) or dropped
    subject = dropped
    _goes_back(subject)
    if "random_in_eval" in found.found:
        raise SkipTest("the layer is random in eval()")
    linear = mean_holds(subject)
    _without_biases(subject)
    x = subject.tokens(b=1)
    x = x.expand(_copies(subject), -1, -1).contiguous()
    expected, y = subject(x), subject(x, train=True, seed=1)
    if changed(expected, y) and not changed(y[:1].expand_as(y), y):
        # One mask for the whole batch: other seeds have others.
        x, expected = x[:SEEDS], expected[:SEEDS]
        y = torch.cat([subject(x[:1], train=True, seed=s) for s in range(SEEDS)])
    if not expected.isfinite().all():
        raise SkipTest("the output isn't finite without dropout either")
    if _too_early(alone, x, y, found):
        return
    if not changed(expected, y):
        if changed(expected, subject(x, subject.copy(), train=True, seed=1)):
            done = f"Passed tokens in eval(), then in train(), with dropout {P}."
            seen = "After the call in eval(), dropout no longer acts in training."
            found.add("keeps_state", done, seen, stage="training")
            return
        done = f"Passed the same tokens in train() and eval(), with dropout {P}."
        places, _ = dropped_at(subject)
        told = ", although dropout runs: what it returns goes nowhere" if places else ""
        severity = "error" if places else None
        found.add("dropout_unused", done, f"The outputs are equal{told}.", severity)
        return
    if not linear:
        raise SkipTest("a norm follows dropout, so the mean may change")
    mean, expected = y.mean(dim=0), expected[0]
    ratio = ((mean * expected).sum() / expected.square().sum()).item()
    if not 0.8 < ratio < 1.25:
        done = f"Compared the mean of {len(x)} runs with dropout {P} with eval()."
        seen = f"On average, the output is {ratio:.2f} times as large."
        found.add("dropout_not_rescaled", done, seen)


def _goes_back(subject: Subject) -> None:
    """Send a gradient back: what dropout changes in place, softmax may need for it.

    Raises:
        CallFailed: it can't go back.
    """
    x = subject.tokens().requires_grad_()
    y = subject(x * 1.0, subject.copy(), train=True, grad=True)
    if y.requires_grad:
        guarded(subject.worker, y.sum().backward, "backward_raises")


def mean_holds(subject: Subject) -> bool:
    """Whether dropout of weights may not change the mean: no norm comes after it."""
    if subject.layer.postnorm:
        return False
    if subject.layer.prenorm or subject.layer.qk_norm:
        return True
    module = subject.copy()
    watch = Watch(module)
    try:
        subject(subject.tokens(b=1), module, mode=watch)
    except Failure:
        return True
    return "a norm" not in watch.seen.extras


def _too_early(
    subject: Subject, x: torch.Tensor, y: torch.Tensor, found: Collector
) -> bool:
    """Tell whether scores are dropped: with equal values, that cannot show."""
    if not y.isfinite().all():
        done = f"Called it in training mode with dropout {P}."
        seen = "The output contains NaN; in eval(), it doesn't."
        found.add("dropout_on_scores", done, seen)
        return True
    equal = x[:, :1].expand_as(x).contiguous()
    still = not changed(subject(equal), subject(equal, train=True, seed=1), 1e-4)
    places, times = dropped_at(subject)
    unclear = "weights" in places and not times
    if places and "scores" not in places and not unclear:
        return False  # as where relative positions are dropped
    if "scores" in places and "weights" not in places:
        done = f"Called it in training mode with dropout {P}."
        seen = "Dropout acts on as many numbers as softmax takes, before it does."
        found.add("dropout_on_scores", done, seen)
        return True
    if still and changed(y[:1].expand_as(y), y):
        done = f"In training mode with dropout {P}, random tokens, then equal ones."
        seen = (
            "The output varies for random tokens but never for equal ones, so "
            "attention weights still sum to 1 after dropout."
        )
        found.add("dropout_on_scores", done, seen)
        return True
    return False


def dropped_at(subject: Subject) -> tuple[list[str], int]:
    """Return (where dropout acted: on weights, scores, …; how often on weights).

    Where softmax is written by hand, what is told as weights may be scores: 0 times.
    """
    x = subject.tokens(b=2)
    grid = x.shape[1], subject.layer.memory or x.shape[1]
    module = subject.copy()
    watch = Watch(module)
    try:
        subject(x, module, train=True, mode=watch)
    except CallFailed:
        return [], 0
    seen = watch.seen
    softmax = min((place for place, *_ in seen.softmaxes), default=0)
    # A bias has fewer numbers than there are scores.
    sizes = {made.numel() for _, made, _ in seen.softmaxes}
    places = []
    for place, shape, _ in seen.dropouts:
        if shape == (0, 0) or (shape[-2:] == grid and place > softmax):
            places.append("weights")
        elif shape[-2:] == grid and prod(shape) in sizes:
            places.append("scores")
        else:
            before = any(p.place > place for p in seen.products[:1])
            later = place > max((p.place for p in seen.products), default=0)
            places.append("inputs" if before else "outputs" if later else "values")
    computed = len(seen.softmaxes) + len(seen.fused)
    times = places.count("weights") / computed if computed else 0
    return sorted(set(places)), round(times)


def _copies(subject: Subject) -> int:
    return 512 if subject.sizes["d_in"] <= 128 else 128


def _without_biases(subject: Subject) -> None:
    """Set biases to 0, since dropout does not touch them and the ratio would blur."""
    with torch.no_grad():
        for name, parameter in subject.pristine.named_parameters():
            if parameter.dim() == 1 and "bias" in name:
                parameter.zero_()


def _next_step(subject: Subject) -> None:
    """Train twice: what the first step left behind may hold its graph.

    Raises:
        CallFailed: the second step can't go back.
    """
    module = subject.copy()
    # PyTorch 2.13 ends the process in a group norm over channels-last tokens that
    # need no gradient.
    x = subject.tokens().requires_grad_()
    for _ in range(2):
        y = subject(x * 1.0, module, train=True, grad=True)
        if y.requires_grad:
            guarded(subject.worker, y.sum().backward, "backward_raises")


def gradients(subject: Subject, found: Collector) -> None:
    """Send a gradient back and see where it arrives."""
    module = subject.copy()
    x = subject.tokens().requires_grad_()
    idle = _fed_zeros(module)
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
    guarded(subject.worker, loss.backward, "backward_raises")
    _next_step(subject)
    # Beside a memory, the input makes queries alone, and the values may learn.
    learn = [p for p in module.parameters() if p.dim() > 1 and not _cut_off(p)]
    if x.grad is None and not (subject.layer.memory and len(learn) > 1):
        found.add("no_gradient", done, "The input gets no gradient.")
        return
    memory = subject.last_memory
    acts = subject.layer.memory and "cross_ignores_memory" not in found.found
    if acts and memory is not None and memory.grad is None:
        seen = "The memory gets no gradient, so what makes it never learns."
        found.add("gradient_missing", done, seen)
        return
    _lost_distances(subject, module, found, x.shape[1])
    cut = [
        name
        for name, p in module.named_parameters()
        if _cut_off(p) or ("sink" in name and _idle(p))
    ]
    cut = acting(subject, cut, x.detach(), y.detach()) if cut else []
    owners = {name.rpartition(".")[0] or name for name in cut}
    held = dict(module.named_parameters())
    # Zeros that the call passes leave all that they meet without a gradient.
    called = bool(idle and all(held[name].grad is not None for name in cut))
    if (
        len(owners) == 1
        and not called
        and _never_acts(subject, cut, x.detach(), y.detach())
    ):
        unused, stage = _by_name(cut[0])
        if unused == "qk_norm_one_side" and _norm_used_twice(subject, x.detach()):
            unused = "qk_norm_shared"
        if unused == "qk_norm_one_side" and not _used_norms(module, cut[0]):
            unused, stage = "qk_norm_unused", "projection"  # as of a latent
        inner = held[cut[0]].numel() != subject.sizes["d_in"]
        if unused == "prenorm_unused" and inner:  # as of a latent
            unused, stage = "gradient_missing", "projection"
        owner = module.get_submodule(cut[0].rpartition(".")[0])
        linear = isinstance(owner, torch.nn.Linear)
        if linear and stage in ("mix", "scores"):  # as txt_k beside img_k
            unused, stage = "projection_mixed_up", ""
        done = "Changed the values of each parameter."
        seen = f"{', '.join(cut)} has no effect: it's never used."
        # As where the caller adds a bias that another method returns.
        elsewhere = cut[0].endswith("bias") and f"{cut[0]}\n" in subject.source
        found.add(unused, done, seen, "warning" if elsewhere else None, stage=stage)
        return
    rows = _rows_cut(subject, module)
    if not cut and (unused := _third_unused(subject, x.detach(), y.detach())):
        done = "A part of the joined weights given other numbers."
        seen = f"The {unused} changes nothing: it is never used."
        bias = "bias_unused" if unused.endswith("bias") else "projection_mixed_up"
        found.add(bias, done, seen)
        return
    cut += rows
    if not cut and "random_in_eval" not in found.found:
        _derived(subject, found)
    if cut:
        # What is no matrix, such as a norm, may wait for another method.
        vectors = all(name in held and held[name].dim() < 2 for name in cut)
        # One that acts, and never learns, is cut off.
        vectors = vectors and _never_acts(subject, cut, x.detach(), y.detach())
        called = called and all(name in held for name in cut)
        severity = "warning" if vectors or called else None
        seen = f"No gradient for {', '.join(cut)}."
        if called:
            seen += f" Only zeros go into {', '.join(sorted(idle))}: if they come from "
            seen += "the call, pass random numbers instead."
        found.add("gradient_missing", done, seen, severity)


def acting(
    subject: Subject, cut: list[str], x: torch.Tensor, y: torch.Tensor
) -> list[str]:
    """Return the parameters that are for the output that is tested.

    Others are for another output, or for a memory that nobody gave.
    """
    kinds = kinds_of(subject.pristine)
    spare = "memory" in kinds.values() or any("mem" in name for name in kinds)
    spare = spare and not subject.layer.memory
    idle = [n for n in cut if spare and re.search(MEMORY, n.lower())]
    module, outputs = subject.copy(), []
    module.register_forward_hook(lambda _, args, made: outputs.append(made))
    subject(x * 1.0, module, train=True, grad=True)
    more = outputs[0][1:] if outputs and isinstance(outputs[0], tuple | list) else ()
    # With a row for each token of either side, they may be weights, to be looked at.
    sizes = (x.shape[1], subject.layer.memory)
    for one in tensors(more):
        if one.requires_grad and one.dim() == 3 and one.shape[-1] not in sizes:
            one.square().sum().backward(retain_graph=True)
            held = dict(module.named_parameters())
            idle += [n for n in cut if n in held and not _cut_off(held[n])]
    return [n for n in cut if n not in idle or not _never_acts(subject, [n], x, y)]


def _fed_zeros(module: nn.Module) -> set[str]:
    """Return a set that will hold the names of linear layers that get only zeros."""
    names = set()
    for name, part in module.named_modules():
        if isinstance(part, torch.nn.Linear):

            def look(_: nn.Module, args: tuple[Any, ...], name: str = name) -> None:
                if args and not args[0].any():
                    names.add(name)

            part.register_forward_pre_hook(look)
    return names


def _derived(subject: Subject, found: Collector) -> None:
    """Compare gradients with derivatives, without and with dropout."""
    dropped = subject.variant(dropout=P)
    for one, what, words in (
        (subject, "the input", "."),
        (subject, "what is no matrix", "."),
        (dropped, "the input", ", in training."),
    ):
        gap = _not_derived(one, what == "the input", one is dropped) if one else 0.0
        if gap > 0.02:
            done = f"Moved {what} a little, and compared the output's change with "
            done += f"what the gradient predicts{words}"
            found.add("gradient_wrong", done, f"They differ by {gap:.0%}.")
            return


def _not_derived(subject: Subject, of_input: bool, train: bool) -> float:
    """Return how far a gradient is from the derivative, or 0.

    It is the input's, or that of all parameters that are no matrices, such as sinks:
    a product has the derivative that PyTorch gives it, they may be in other hands.
    """
    kept = subject.dtype
    try:
        subject.dtype = torch.float64
        module = subject.copy().double()
        x = subject.tokens(b=2).requires_grad_()
        generator = torch.Generator().manual_seed(4)
        y = subject(x * 1.0, module, train, grad=True)
        more = torch.randn(y.shape, generator=generator, dtype=y.dtype).to(y.device)
        (y * more).sum().backward()
        moved = [x] if of_input else [p for p in module.parameters() if p.dim() < 2]
        moved = [one for one in moved if one.grad is not None]
        if not moved:
            return 0.0
        gradients = [one.grad.clone() for one in moved if one.grad is not None]
        steps = [
            torch.randn(one.shape, generator=generator, dtype=one.dtype).to(one.device)
            for one in moved
        ]
        slopes = []
        for size in (1e-4, 1e-5):
            ends = []
            for sign in (1, -2):  # ahead, then behind
                with torch.no_grad():
                    for one, step in zip(moved, steps, strict=True):
                        one.add_(step, alpha=sign * size)
                ends.append(subject(x.detach() * 1.0, module, train))
            with torch.no_grad():
                for one, step in zip(moved, steps, strict=True):
                    one.add_(step, alpha=size)
            slopes.append(((ends[0] - ends[1]) * more).sum() / (2 * size))
    except (Failure, RuntimeError):
        return 0.0
    finally:
        subject.dtype = kept
    told = sum((g * s).sum() for g, s in zip(gradients, steps, strict=True))
    scale = sum(g.norm() for g in gradients) + abs(slopes[1])
    gap, apart = abs(told - slopes[1]), abs(slopes[0] - slopes[1])
    # What is computed in float32 drowns such small steps, and both slopes differ.
    sure = apart < 1e-3 * scale and apart < 0.1 * gap
    return float(gap / abs(slopes[1])) if sure else 0.0


def _never_acts(
    subject: Subject, names: list[str], x: torch.Tensor, y: torch.Tensor
) -> bool:
    """Whether parameters may hold any numbers."""
    module = subject.copy()
    with torch.no_grad():
        for name in names:
            held = dict(module.named_parameters())
            if name not in held:
                return False  # a part of one
            held[name].mul_(-1.7).add_(0.3)
    return not changed(y, subject(x, module, train=True))


def _third_unused(subject: Subject, x: torch.Tensor, y: torch.Tensor) -> str:
    """Return which third of a joined weight may hold any numbers, or ""."""
    for name, p in subject.pristine.named_parameters():
        part = name.split(".")[-2:] if name.endswith((".weight", ".bias")) else [name]
        plain = part[0].split(".")[-1].replace("_", "").lower()
        made = {plain, plain.removesuffix("bias")} & {*NAMES["qkv"]}
        if not made or p.dim() > 2 or p.shape[0] % 3:
            continue
        idle = []
        for place, word in enumerate(("first", "second", "third")):
            module = subject.copy()
            with torch.no_grad():
                rows = dict(module.named_parameters())[name].chunk(3)[place]
                rows.mul_(-1.7).add_(0.3)
            if not changed(y, subject(x, module, train=True)):
                idle.append(f"{word} third of {name}")
        if (idle and p.dim() == 2) or len(idle) == 2:  # the keys' bias never acts
            return idle[-1]
    return ""


# What a parameter that is never used leaves out, by its name.
UNUSED = (
    (r"^(q|k|query|key)_?(norm|ln)|^(norm|ln)_?(q|k)", "qk_norm_one_side", ""),
    (r"sink", "sink_unused", ""),
    (r"slope|alibi", "alibi_unused", ""),
    (r"^(w?_?o|out|to_out|output|dense|fc|c_proj|proj|w_?out|o_?proj|(lin|linear|fc|out)"
     r"_?(o|out|proj|projection))$", "output_projection_unused", ""),
    (r"(_|^)v(alues?)?$|_v_", "gradient_missing", "mix"),
    (r"(_|^)(q|k|query|key)s?$", "gradient_missing", "scores"),
    (r"rel|pos|table|distance", "gradient_missing", "positions"),
    (r"(post|out|o)_?(norm|ln)|(norm|ln)_?(post|out|o)", "gradient_missing", "output"),
    (r"^(pre|in|input|x|group|layer|attn)?_?(norm|ln)(_?(1|in|x))?$",
     "prenorm_unused", ""),
    (r"norm|(^|_)ln(_|$)", "gradient_missing", "projection"),
)  # fmt: skip

BIAS_OF = re.compile(
    r"b(ias)?(q|k|v|query|key|value)|(q|k|v|qkv|query|key|value|in)bias"
)


def _norm_used_twice(subject: Subject, x: torch.Tensor) -> bool:
    """Whether queries and keys go through one norm."""
    module, calls = subject.copy(), []
    for name, part in module.named_modules():
        if re.search(UNUSED[0][0], name.split(".")[-1].lower()):
            part.register_forward_hook(lambda *_, name=name: calls.append(name))
    subject(x, module)
    return len(calls) == 2 and calls[0] == calls[1]


def _used_norms(module: nn.Module, unused: str) -> list[str]:
    """Return the norms of queries or keys as wide as one that is never used."""
    return [
        name
        for name, p in module.named_parameters()
        if p.numel() == module.get_parameter(unused).numel()
        and re.search(UNUSED[0][0], name.split(".")[-2:][0].lower())
        and not _cut_off(p)
    ]


def _by_name(name: str) -> tuple[str, str]:
    """Return (mistake, stage) of a parameter that is never used."""
    parts = [p.lower() for p in name.split(".")]
    if parts[-1] in ("weight", "bias", "gamma", "gain", "scale"):
        parts.pop()
    plain = parts[-1].replace("_", "") if parts else ""
    made = any(plain in NAMES[role] for role in ("qkv", "query", "key", "value"))
    if BIAS_OF.fullmatch(plain) or (made and name.endswith(".bias")):
        return "bias_unused", ""
    maps = ("up_key", "up_value")
    if (made and plain not in NAMES["qkv"]) or any(plain in NAMES[m] for m in maps):
        return "projection_mixed_up", ""
    for pattern, mistake, stage in UNUSED:
        if parts and re.search(pattern, parts[-1]):
            if mistake == "output_projection_unused" and name.endswith(".bias"):
                return "gradient_missing", "output"  # its weight may well be used
            return mistake, stage
    return "gradient_missing", ""


def _lost_distances(
    subject: Subject, module: nn.Module, found: Collector, t: int
) -> None:
    """Look for a table of distances with rows that pairs of tokens should reach."""
    if subject.layer.memory:
        return
    held = {id(p) for part in module.modules() for p in part.parameters(recurse=False)
            if isinstance(part, torch.nn.Linear)}  # fmt: skip
    done = "Ran the backward pass from a random sum of the outputs."
    h, given = subject.sizes["num_heads"], makes_positions(subject.how.call)
    for name, p in module.named_parameters():
        if id(p) in held or p.grad is None or p.dim() not in (1, 2) or t < 4:
            continue
        # One number for each head and distance, by whatever name and in either order.
        by_head = p.dim() == 2 and h in p.shape and p.shape[0] != p.shape[1]
        by_head &= not given
        axis = 1 if by_head and p.shape[0] == h else 0
        if p.shape[axis] < 4 or not (by_head or DISTANCES.search(name)):
            continue
        got = p.grad.any(dim=1 - axis) if p.dim() == 2 else p.grad
        places = got.nonzero().flatten().tolist()
        if len(places) == 1:
            kind = "column" if axis else "row"
            seen = f"Of {name}, {kind} {places[0]} alone gets a gradient, for all "
            found.add("distances_lost", done, f"{seen}distances among {t} tokens.")
            return
    if subject.causal:
        return  # it never reaches the rows of later tokens
    if HALVES.search(subject.source):
        for name, p in module.named_parameters():
            n = len(p) // 2 if p.dim() == 2 and len(p) > 7 else 0
            if not n or id(p) in held or p.grad is None or not DISTANCES.search(name):
                continue
            if p.grad[:n].any() and not p.grad[n:].any():
                seen = f"Rows {n} to {len(p) - 1} of {name} get no gradient: tokens "
                seen += "ahead have the rows of those behind."
                found.add("distances_lost", done, seen)
                return
    for name, p in module.named_parameters():
        odd = p.dim() >= 2 and p.shape[0] % 2 == 1 and p.shape[0] > 2
        if not odd or id(p) in held or p.grad is None or not p.grad.any():
            continue
        dead = ~p.grad.flatten(1).any(dim=1)
        reached = (~dead).nonzero().flatten().tolist()
        # One for each token, and there may be a few more tokens than are given.
        own = reached == [*range(len(reached))] and len(reached) <= t + 2
        if len(reached) == 1 or (own and not DISTANCES.search(name)):
            continue  # no table of distances
        if dead.any() and not torch.equal(dead, dead.flip(0)):
            rows = ", ".join(map(str, dead.nonzero().flatten().tolist()))
            seen = f"Rows {rows} of {name} get no gradient, unlike the rows "
            found.add("distances_lost", done, seen + "as far from the other end.")
            return


def _rows_cut(subject: Subject, module: nn.Module) -> list[str]:
    """Return what of a weight that joins projections gets no gradient, in words.

    A joined weight has a gradient as soon as one of its parts has.
    """
    held = {
        pair[0].untyped_storage().data_ptr()
        for reading in subject.candidates()[:1]
        for pair in (reading.query, reading.key, reading.value)
    }
    told = []
    grads = {name: p.grad for name, p in module.named_parameters()}
    for name, p in subject.pristine.named_parameters():
        matrix = p.dim() > 1 and p.shape[2:].numel() == 1  # or a 1x1 convolution
        named = name.removesuffix(".weight").split(".")[-1].replace("_", "").lower()
        joined = named in NAMES["qkv"] or p.untyped_storage().data_ptr() in held
        gradient = grads.get(name)
        if not matrix or not joined or gradient is None or not gradient.any():
            continue
        gradient = gradient.flatten(1)
        for axis, noun in ((0, "rows"), (1, "columns")):
            dead = ~gradient.any(dim=1 - axis)
            if dead.float().mean() >= 0.2:
                count = f"{int(dead.sum())} of {len(dead)} {noun}"
                told.append(f"{count} of {name}")
    return told


def _idle(parameter: torch.Tensor) -> bool:
    """Whether a gradient that arrives is nothing but rounding."""
    return parameter.grad is not None and bool(parameter.grad.abs().max() < 1e-6)


def _cut_off(parameter: torch.Tensor) -> bool:
    """Whether no gradient arrives. That of a key's bias is 0 by nature: let it be."""
    if not parameter.requires_grad:
        return False
    if not parameter.numel():
        return False
    gradient = parameter.grad
    return gradient is None or (parameter.dim() > 1 and not gradient.any())
