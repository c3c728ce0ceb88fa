"""Tests of what the output means: who sees whom, and by how much."""

import contextlib
import copy
import re
from dataclasses import replace

import torch
from torch import Tensor

from attncheck.arguments import CAUSAL, own_memories
from attncheck.collector import Collector, SkipTest
from attncheck.errors import CallFailed
from attncheck.layer import document_of
from attncheck.numbers import changed
from attncheck.subject import Subject

MEMORY = 6  # tokens of a memory that nobody asked for, as many as of the input
DONE = "Replaced one token at a time and compared all outputs."
LEAKS = {"future_leaks", "mask_upside_down", "mask_inverted", "mask_off_by_one",
         "mask_missing"}  # fmt: skip
LARGE, HUGE = 25.0, 300.0  # times ordinary tokens


def finite(subject: Subject, found: Collector) -> None:
    """Look for NaN and infinity."""
    bad = ~subject(subject.tokens()).isfinite().all(dim=-1).all(dim=0)  # (t,)
    if bad.any():
        where = _positions(torch.nonzero(bad).flatten().tolist(), len(bad))
        severity = "error" if bad.all() else None
        done = "Passed random tokens."
        found.add("not_finite", done, f"NaN or inf at {where}.", severity)


def _positions(indices: list[int], t: int) -> str:
    if len(indices) == t:
        return "every position"
    noun = "position" if len(indices) == 1 else "positions"
    return f"{noun} {', '.join(map(str, indices))}"


def batch(subject: Subject, found: Collector) -> None:
    """Change one sequence and look at the others."""
    if mixes_samples(subject):
        done = "Replaced the middle one of 3 sequences."
        found.add("samples_mixed", done, "The output for another sequence changed.")
        return
    x = subject.tokens(seed=2)
    y = subject(x)
    for place in (0, len(x) - 1):
        if changed(y[place], subject(x[place : place + 1])[0], 1e-4):
            done = f"Passed sequence {place} alone, and in a batch of {len(x)}."
            found.add("samples_mixed", done, "Its outputs differ.")
            return


def mixes_samples(subject: Subject) -> bool:
    """Whether outputs change with another sequence."""
    x = subject.tokens(seed=2)
    other = x.clone()
    other[1] = subject.tokens(seed=3)[1]
    y, z = subject(x), subject(other)
    return changed(y[0], z[0]) or changed(y[2], z[2])


def dependence(subject: Subject, found: Collector) -> None:
    """Replace one token after the other and see which positions change."""
    matrix = depends(subject)
    t = len(matrix)
    i, j = torch.arange(t)[:, None], torch.arange(t)[None, :]
    # Rows that are NaN throughout change with nothing: another test names them.
    known = subject(subject.tokens()).isfinite().flatten(2).all(dim=-1).all(dim=0)
    if t < 2 or not known.any():
        raise SkipTest("the layer takes only one token, or no position is finite")
    if subject.layer.memory:
        _tell_memory(subject, known, found)
        return
    if known.all() and not matrix.any():
        found.add("tokens_not_mixed", DONE, "No output changed with any token.")
        return
    ahead = matrix.triu(1)
    window = subject.layer.window or subject.named_window[1]
    if window:  # tokens behind the window must not act; the comparison checks that
        matrix = matrix | ((i - j).abs() >= window)
    if subject.layer.documents:
        document = document_of(t)
        _tell_documents(matrix & (document[:, None] > document), found)
        matrix = matrix | (document[:, None] != document)
    if subject.causal:
        _tell_causal(subject, ahead, matrix, known, found)
    else:
        _tell_full(subject, matrix, known, found)


def depends(subject: Subject, t: int = 6) -> Tensor:
    """Return (t, t), True where output i changes when token j is replaced.

    Small tokens are tried as well: with large ones softmax may be so sharp that a
    token gets no weight at all. Where a norm makes them as large again, others may do.
    """
    made = _depends(subject, 1.0, t) | _depends(subject, 0.2, t)
    for seed in (1, 2):
        if (made | made.T if subject.causal else made).all():
            break
        made = made | _depends(subject, 1.0, t, seed)
    return made


def _depends(subject: Subject, size: float, t: int, seed: int = 0) -> Tensor:
    x = subject.tokens(t=t, size=size, seed=seed)
    y = subject(x)
    fresh = subject.tokens(t=t, seed=seed + 5, size=2 * size)
    columns = []
    for j in range(x.shape[1]):
        other = x.clone()
        other[:, j] = fresh[:, j]
        z = subject(other)
        columns.append([changed(y[:, i], z[:, i]) for i in range(y.shape[1])])
    return torch.tensor(columns).T


def _tell_causal(
    subject: Subject, ahead: Tensor, matrix: Tensor, known: Tensor, found: Collector
) -> None:
    t = len(matrix)
    behind, itself = matrix.tril(-1), matrix.diagonal()
    if ahead.any():
        _tell_leak(subject, ahead, behind, itself[known], found)
        return
    full = torch.ones(t, t, dtype=torch.bool).tril(-1)
    lost = full & ~behind & known[:, None]
    if not behind.any() and itself.all():
        text = "Outputs changed only with their own token."
        found.add("tokens_not_mixed", DONE, text)
    elif found.report.not_compared and (lost.any() or not itself.all()):
        return  # it may see a span of its own, and nobody declared one
    elif not itself[known].all() or (behind.any() and not known[0] and known[1:].all()):
        rows = torch.nonzero(~itself | ~known).flatten().tolist()
        seen = f"The output didn't change with its own token: {_positions(rows, t)}."
        found.add("mask_hides_itself", DONE, seen)


def _tell_leak(
    subject: Subject, ahead: Tensor, behind: Tensor, itself: Tensor, found: Collector
) -> None:
    t = len(ahead)
    i, j = torch.nonzero(ahead)[0].tolist()
    distances = sorted({(b - a) for a, b in torch.nonzero(ahead).tolist()})
    seen = f"Position {i} changed when token {j} changed: the future leaks, at "
    seen += f"distance {_join(distances)} ({int(ahead.sum())} of "
    seen += f"{t * (t - 1) // 2} pairs)."
    name = "future_leaks"
    if not behind.any():
        seen += " No position changed with an earlier token."
        name = "mask_upside_down" if itself.all() else "mask_inverted"
    found.add(name, DONE, seen)


def _join(distances: list[int]) -> str:
    if len(distances) > 2 and distances == list(range(1, len(distances) + 1)):
        return f"1 to {len(distances)}"
    return ", ".join(map(str, distances))


def _tell_documents(seen: Tensor, found: Collector) -> None:
    if seen.any():
        i, j = seen.nonzero()[0].tolist()
        done = "Replaced one token at a time in a row with two documents."
        text = f"Position {i}, in the second, changed with token {j}, in the first."
        found.add("documents_unused", done, text)


def _tell_full(
    subject: Subject, matrix: Tensor, known: Tensor, found: Collector
) -> None:
    missing = ~matrix & known[:, None]
    t = len(matrix)
    if not missing.any() or (found.report.not_compared and subject.speaks_of("window")):
        return
    seen = f"{int(missing.sum())} of {t * t} pairs of an output and a token are "
    seen += "independent."
    if torch.equal(matrix, torch.eye(t, dtype=torch.bool)):
        found.add("tokens_not_mixed", DONE, seen)
    elif torch.equal(matrix, torch.ones_like(matrix).tril()):
        found.add("mask_unwanted", DONE, seen)


def _tell_memory(subject: Subject, known: Tensor, found: Collector) -> None:
    acts = _memory_acts(subject, subject.layer.memory or 0)[:, known]
    done = "Replaced one token of the memory at a time."
    if not acts.any():
        found.add("cross_ignores_memory", done, "No output changed.")
    elif not acts.all():
        text = f"Outputs ignored it in {int((~acts).sum())} of {acts.numel()} cases."
        found.add("mask_unwanted", done, text)


def _memory_acts(subject: Subject, count: int) -> Tensor:
    """Return (count, t), True where an output changes with a token of the memory."""
    x, columns = subject.tokens(size=0.2), []
    y = subject(x)
    try:
        for place in range(count):
            subject.replaced_memory = place
            z = subject(x)
            columns.append([changed(y[:, i], z[:, i]) for i in range(y.shape[1])])
    finally:
        subject.replaced_memory = None
    return torch.tensor(columns)


def memory(subject: Subject, found: Collector) -> None:
    """Give a memory where forward may take one: no causal mask is for it."""
    way = None if subject.how.call else subject.way
    if way is None or way.mask or way.memory or subject.layer.memory:
        raise SkipTest("no argument may take a memory")
    flags = [n for n, v in way.others if v is True and CAUSAL.search(n.lower())]
    way = way.with_values(dict.fromkeys(flags, False))  # it was for tokens alone
    names = own_memories(subject.pristine, way)
    if not names:
        raise SkipTest("no argument may take a memory")
    for name in names:
        given = copy.copy(subject)
        given.layer = replace(subject.layer, memory=MEMORY)
        given.how = replace(subject.how, way=replace(way, memory=name))
        given.causal, given.uneven = False, None
        with contextlib.suppress(CallFailed):
            acts = _memory_acts(given, MEMORY)
            found.tried.add(name)
            # forward uses it if the name appears beyond the signature.
            read = len(re.findall(rf"\b{name}\b", subject.source)) > 1
            done = f"Passed a memory as {name}, and replaced one token at a time."
            if read and found.report.compared and not acts.any():
                found.add("cross_ignores_memory", done, "No output changed.")
            elif torch.equal(acts, torch.ones_like(acts).triu()):
                text = f"Outputs ignored it in {int((~acts).sum())} of {acts.numel()} "
                found.add("mask_unwanted", done, f"{text}cases.")


def equal_tokens(subject: Subject, found: Collector) -> None:
    """Repeat one token: an average of equal values is that value, at any position."""
    if found.report.not_compared or subject.layer.sink or subject.layer.residual:
        raise SkipTest("more than the tokens may be mixed")
    x = subject.tokens()
    x = x[:, :1].expand_as(x).contiguous()
    y = subject(x)
    known = y.isfinite().all(dim=-1).all(dim=0)
    if not known.any():
        raise SkipTest("no position is finite")
    y = y[:, known]
    if changed(y, y[:, -1:].expand_as(y), 1e-4):
        gap = (y - y[:, -1:]).abs().max().item()
        done = "Put the same token at all positions."
        seen = f"The outputs of equal tokens differ by up to {gap:.2g}."
        found.add("rows_do_not_sum_to_one", done, seen)


def large_scores(subject: Subject, found: Collector) -> None:
    """Raise the scores until exp alone overflows, and a finite fill value leaks."""
    if not subject(subject.tokens()).isfinite().all():
        raise SkipTest("the output isn't finite for ordinary tokens either")
    done = f"Multiplied tokens by {LARGE:g}, so that scores reach a few hundred."
    if not subject(subject.tokens(size=LARGE)).isfinite().all():
        found.add("overflows", done, "The output contains NaN or infinity.")
    elif subject.causal and not found.found.keys() & LEAKS and not found.causes:
        _tell_finite_fill(subject, found)


def _tell_finite_fill(subject: Subject, found: Collector) -> None:
    x = subject.tokens(b=16, size=HUGE)
    try:
        y = subject(x)
    except CallFailed:  # as where a cache has room for fewer
        x = subject.tokens(size=HUGE)
        y = subject(x)
    other = x.clone()
    other[:, -1] = subject.tokens(b=len(x), size=HUGE, seed=7)[:, -1]
    if changed(y[:, :-1], subject(other)[:, :-1], 1e-4):
        done = f"Multiplied tokens by {HUGE:g}, so that visible scores reach about "
        done += f"-{HUGE**2:,.0f}, then replaced the last token."
        seen = "Earlier positions changed, which they don't for ordinary tokens."
        # Ordinary scores are far above such a fill.
        found.add("mask_fill_finite", done, seen, "warning")
