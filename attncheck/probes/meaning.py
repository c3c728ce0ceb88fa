"""Tests of what the output means: who sees whom, and by how much."""

import contextlib
import copy
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from attncheck.calling import (
    CAUSAL,
    asking_way,
    own_memories,
    plain_way,
    takes_bounds,
    takes_documents,
)
from attncheck.collector import Collector, SkipTest
from attncheck.inferred import ADDED, APART, BESIDE, NULL
from attncheck.layer import document_of
from attncheck.numbers import changed
from attncheck.recorded import Recorded
from attncheck.stages import Captured
from attncheck.subject import CallFailed, Subject
from attncheck.trace import norms_of, tensors

# A memory as long as the input, whose future may be hidden, too.
ALIGNED = re.compile(r"\b(aligned|same length|time step|timestep)", re.IGNORECASE)
MEMORY = 6  # tokens of a memory that nobody asked for, as many as of the input


def finite(subject: Subject, found: Collector) -> None:
    """Look for NaN and infinity."""
    bad = _not_finite(subject(subject.tokens()))
    if bad.any():
        severity = "error" if bad.all() else None
        found.add("not_finite", "Passed random tokens.", _at(bad), severity)
    else:
        _zero_token(subject, found)


def _zero_token(subject: Subject, found: Collector) -> None:
    """Pass a token of zeros, as an embedding of padding is, where no bias adds to it.

    Its scores are exactly 0, which says nothing of who may see whom.
    """
    module = subject.copy()
    if norms_of(module) or subject.layer.qk_norm or subject.layer.prenorm:
        return  # what is divided by its own size may be anything
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if parameter.dim() == 1 and "bias" in name:
                parameter.zero_()
    x = subject.tokens()
    x[:, 2:3] = 0.0
    bad = _not_finite(subject(x, module))
    if bad.any():
        done = "Passed a token of zeros, without biases."
        found.add("not_finite", done, _at(bad))


def _not_finite(y: torch.Tensor) -> torch.Tensor:
    """Return which positions hold NaN or infinity, in any sequence."""
    bad = ~y.isfinite().all(dim=-1).all(dim=0)  # (t,)
    return bad


def _at(bad: torch.Tensor) -> str:
    where = _positions(torch.nonzero(bad).flatten().tolist(), len(bad))
    return f"NaN or inf at {where}."


def _positions(indices: list[int], t: int) -> str:
    if len(indices) == t:
        return "every position"
    noun = "position" if len(indices) == 1 else "positions"
    return f"{noun} {', '.join(map(str, indices))}"


def batch(subject: Subject, found: Collector) -> None:
    """Change one sequence and look at the others."""
    x = subject.tokens(seed=2)
    y = subject(x)
    other = x.clone()
    other[1] = subject.tokens(seed=3)[1]
    z = subject(other)
    done = "Replaced the middle one of 3 sequences."
    if changed(y[0], z[0]) or changed(y[2], z[2]):
        found.add("samples_mixed", done, "The output for another sequence changed.")
        return
    if subject.layer.documents and _documents_mixed(subject, x):
        done = "Gave the first of 3 sequences a first document of two tokens, not four."
        found.add("samples_mixed", done, "The output for another sequence changed.")
        return
    if _mixed_beside(subject):
        done = "Replaced one of several sequences."
        text = "What is returned beside the output changed for another sequence."
        found.add("samples_mixed", done, text, stage="outputs")
        return
    for place in (0, len(x) - 1):
        if changed(y[place], subject(x[place : place + 1])[0], 1e-4):
            done = f"Passed sequence {place} alone, and in a batch of {len(x)}."
            found.add("samples_mixed", done, "Its outputs differ.")
            return


def _documents_mixed(subject: Subject, x: torch.Tensor) -> bool:
    """Whether sequences are cut into documents where the first one is."""
    if subject.how.one_by_one or takes_bounds(subject.pristine):
        return False
    usual = document_of(x.shape[1]).expand(len(x), -1)
    other = usual.clone()
    other[0] = torch.arange(x.shape[1]) >= 2
    y = subject(x)
    subject.own_documents = other
    try:
        return changed(y[1:], subject(x)[1:])
    finally:
        subject.own_documents = None


def _mixed_beside(subject: Subject) -> bool:
    """Whether what is returned for a sequence, beside the output, knows of others."""
    others = subject.sizes.get("num_heads"), subject.fixed_length
    b = next(n for n in (7, 11, 13) if n not in others)
    x = subject.tokens(b=b)
    other = x.clone()
    other[1] = subject.tokens(b=b, seed=3)[1]
    pairs = zip(_beside(subject, x), _beside(subject, other), strict=False)
    return any(
        one.dim() > 2 and len(one) == b and changed(one[2:], two[2:])
        for one, two in pairs
        if one.shape == two.shape
    )


def _beside(subject: Subject, x: torch.Tensor) -> list[torch.Tensor]:
    """Return what forward returns beside the output, such as weights, if asked for."""
    how, module, made = subject.how, subject.copy(), []
    module.register_forward_hook(lambda _, given, output: made.append(output))
    way = None if how.call else asking_way(module, how.way)
    try:
        subject.how = replace(how, way=way) if way else how
        subject(x, module)
    except CallFailed:
        return []
    finally:
        subject.how = how
    return [one.detach() for one in list(tensors(made))[1:]]


def dependence(subject: Subject, found: Collector) -> None:
    """Replace one token after the other and see which positions change."""
    matrix = depends(subject)
    t = len(matrix)
    if t < 2:
        raise SkipTest("the layer takes only one token")
    i, j = torch.arange(t)[:, None], torch.arange(t)[None, :]
    ahead, behind, itself = matrix & (j > i), matrix & (j < i), matrix.diagonal()
    # Rows that are NaN throughout change with nothing: the test above names them.
    known = subject(subject.tokens()).isfinite().flatten(2).all(dim=-1).all(dim=0)
    if t < 2 or not known.any():
        raise SkipTest("no position is finite")
    known = known & ~passed_on(subject)
    if not subject.layer.memory and known.all() and not matrix.any():
        done = "Replaced one token at a time and compared all outputs."
        text = "No output changed with any token."
        found.add("tokens_not_mixed", done, text, "error")
        return
    window = subject.layer.window or subject.given_window
    if window:
        # What lies behind the window is not to be seen; that it is, comparing tells.
        far = (i - j >= window) & known[:, None]
        if not subject.layer.window and far.any() and (matrix | ~far).all():
            done = f"Built with window={window}; one token after the other replaced."
            sure = subject.hides_by_window
            seen = "Each position changed with all of its past."
            if not sure:
                seen += " That may be meant, as where only some layers have a window."
            found.add("window_unused", done, seen, None if sure else "warning")
        matrix = matrix | ((i - j).abs() >= window)
    matrix = matrix | _hidden_by_bias(subject, t)
    if not subject.layer.documents and takes_documents(subject.pristine):
        _try_documents(subject, found)
    if subject.layer.documents:
        _tell_documents(matrix, found)
        document = document_of(t)
        matrix = matrix | (document[:, None] != document)
    behind = matrix & (j < i)
    if subject.layer.memory:
        _tell_memory(subject, matrix, known, found)
    elif subject.layer.exclusive:
        raise SkipTest("that no token sees itself was compared")
    elif subject.causal:
        speaks = subject.given_window or subject.speaks_of("window")
        prefix = subject.speaks_of("prefix")
        _tell_causal(ahead, behind, itself, known, found, speaks, prefix)
    elif found.not_compared and subject.speaks_of("window"):
        return  # as long as nobody says what is meant
    else:
        _tell_full(matrix, known, found)
    if "tokens_not_mixed" in found.found and _over_heads(subject):
        seen = "Softmax gives each token a weight for each pair of its heads."
        found.add("heads_attend_heads", "Looked at the shape of the weights.", seen)
    if not (subject.layer.memory or subject.layer.exclusive):
        _try_memory(subject, found)


def _over_heads(subject: Subject) -> bool:
    """Whether the first weights are square for each token, and not for each head."""
    x, module = subject.tokens(t=7), subject.copy()
    watch = Recorded(module)
    subject(x, module, mode=watch)
    for name, given, _, out in watch.calls:
        fused = name == "scaled_dot_product_attention"
        if not fused and name not in ("softmax", "_softmax"):
            continue
        shape = given[0].shape[:-1] if fused else out.shape[:-1]
        return len(shape) > 2 and shape[-2] == x.shape[1] != shape[-1] > 1
    return False


def _hidden_by_bias(subject: Subject, t: int) -> torch.Tensor:
    """Return which pairs (t, t) a declared bias hides with -inf, in all heads."""
    bias: Any = subject.layer.bias
    if callable(bias):
        with torch.no_grad():
            bias = bias(subject.copy(), t)
    none = torch.zeros(1, t, t, dtype=torch.bool)
    if not isinstance(bias, torch.Tensor):
        return none[0]
    bias = bias[..., :t, :t] if bias.dim() > 1 else bias[..., :t]
    return (none | (bias == -torch.inf).cpu()).flatten(0, -3).all(dim=0)


def passed_on(subject: Subject) -> torch.Tensor:
    """Return (t), True for tokens that come out as they went in, unless all do.

    So do those that only a class token attends to.
    """
    x = subject.tokens()
    y = subject(x)
    learns = any(True for _ in subject.pristine.parameters())
    if x.shape != y.shape or x.dtype != y.dtype or not learns:
        return torch.zeros(x.shape[1]).bool()
    same = torch.tensor([not changed(x[:, i], y[:, i]) for i in range(x.shape[1])])
    return same & ~same.all()


def depends(subject: Subject, t: int = 6) -> torch.Tensor:
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


def _depends(subject: Subject, size: float, t: int, seed: int = 0) -> torch.Tensor:
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


def _is_band(lost: torch.Tensor) -> bool:
    """Whether what is hidden of the past is all that lies behind a window."""
    distance = torch.arange(len(lost))[:, None] - torch.arange(len(lost))
    return torch.equal(lost, distance >= distance[lost].min())


def is_units(matrix: torch.Tensor) -> bool:
    """Whether tokens see each other within groups, each the whole of its own."""
    seen = matrix.float()
    alike = bool(matrix.diagonal().all()) and torch.equal(matrix, matrix.T)
    return alike and torch.equal((seen @ seen) > 0, matrix)


def _is_columns(lost: torch.Tensor) -> bool:
    """Whether what is hidden of the past are tokens that none behind them sees."""
    columns = lost.any(dim=0)
    past = torch.ones_like(lost).tril(-1)
    return bool(columns.any()) and torch.equal(lost, past & columns)


def hides_tokens(subject: Subject) -> bool:
    """Whether the one difference from a causal mask are tokens that none sees."""
    try:
        matrix = depends(subject, t=8)
    except CallFailed:  # it takes fewer tokens
        matrix = depends(subject, t=6)
    past = torch.ones_like(matrix).tril(-1)
    if (matrix & past.T).any() or not _is_columns(past & ~matrix):
        return False
    # Such a token may see itself.
    return not (~matrix.diagonal() & ~(past & ~matrix).any(dim=0))[:-1].any()


def _tell_causal(
    ahead: torch.Tensor,
    behind: torch.Tensor,
    itself: torch.Tensor,
    known: torch.Tensor,
    found: Collector,
    window: int | None = None,
    prefix: bool = False,
) -> None:
    done, severity = "Replaced one token at a time and compared all outputs.", None
    t = len(itself)
    if ahead.any():
        i, j = torch.nonzero(ahead)[0].tolist()
        distances = sorted({(b - a) for a, b in torch.nonzero(ahead).tolist()})
        seen = f"Position {i} changed when token {j} changed: the future leaks, at "
        seen += f"distance {_listed(distances)} ({int(ahead.sum())} of "
        seen += f"{t * (t - 1) // 2} pairs)."
        if not behind.any():
            seen += " No position changed with an earlier token."
            name = "mask_upside_down" if itself[known].all() else "mask_inverted"
        elif _square(ahead) and prefix:
            name, severity = "future_leaks", "warning"  # as far as the prefix goes
        elif distances == [1] and t > 2 and ahead.sum() > 1 and not found.causes:
            name = "mask_off_by_one"
        else:
            name = "future_leaks"
        found.add(name, done, seen, severity)
        return
    full = torch.ones(t, t, dtype=torch.bool).tril(-1)
    lost = full & ~behind & known[:, None]
    if not behind.any() and itself.all():
        found.add(
            "tokens_not_mixed", done, "Outputs changed only with their own token."
        )
    elif found.not_compared and lost.any() and not itself.any():
        return  # a span of its own, of which nobody says what is meant
    elif not itself[known].all() or (behind.any() and not known[0] and known[1:].all()):
        rows = torch.nonzero(~itself | ~known).flatten().tolist()
        seen = f"The output didn't change with its own token: {_positions(rows, t)}."
        found.add("mask_hides_itself", done, seen)
    elif lost.any():
        i, j = torch.nonzero(lost)[0].tolist()
        alone = (window and _is_band(lost)) or _is_columns(lost)
        alone |= is_units(~(lost | lost.T))
        if found.not_compared and alone:
            return  # as long as nobody says what is meant
        seen = f"Position {i} didn't change when token {j} did ({int(lost.sum())} of "
        found.add("past_unused", done, seen + f"{int(full.sum())} pairs of the past).")


def _tell_documents(matrix: torch.Tensor, found: Collector) -> None:
    document = document_of(len(matrix))
    seen = (matrix & (document[:, None] > document)).nonzero()
    if len(seen):
        i, j = seen[0].tolist()
        done = "Replaced one token at a time in a row with two documents."
        text = f"Position {i}, in the second, changed with token {j}, in the first."
        found.add("documents_unused", done, text)


def _try_documents(subject: Subject, found: Collector) -> None:
    """Give one row of two documents, and see whether the second knows the first."""
    if subject.how.call is not None or subject.layer.memory or subject.layout != "btd":
        return
    kept, x = subject.layer, subject.tokens(b=1)
    other = x.clone()
    apart = document_of(x.shape[1]) == 0
    if apart.all():
        return  # it takes no more tokens than the first has
    other[:, apart] = subject.tokens(b=1, seed=5)[:, apart]
    subject.layer = replace(kept, documents=True)
    try:
        y, z = subject(x), subject(other)
    except CallFailed:
        return  # it takes them in another form
    finally:
        subject.layer = kept
    late = ~apart
    if changed(y[:, late], z[:, late], 1e-4):
        done = "Passed a row with two documents, and replaced the tokens of the first."
        found.add("documents_unused", done, "Outputs of the second changed.")
    elif _of_another_row(subject, x, other, apart):
        done = "Passed a row of one document and a row of two, and replaced the first "
        seen = "Outputs of the last one changed: its row's own borders don't count."
        found.add("samples_mixed", f"{done}of the two.", seen)
    if not subject.causal:
        return
    other = x.clone()
    other[:, -1] = subject.tokens(b=1, seed=5)[:, -1]
    subject.layer = replace(kept, documents=True)
    try:
        z = subject(other)
    finally:
        subject.layer = kept
    if changed(y[:, :-1], z[:, :-1], 1e-4):
        done = "Passed a row with two documents, and replaced its last token."
        found.add("future_leaks", done, "Earlier outputs changed.")


def _of_another_row(
    subject: Subject, x: torch.Tensor, other: torch.Tensor, apart: torch.Tensor
) -> bool:
    """Whether a row's documents are taken for those of the row before it."""
    if takes_bounds(subject.pristine):
        return False  # they are the same for all rows
    kept, documents = subject.layer, torch.stack([apart.long() * 0, 1 - apart.long()])
    subject.layer, subject.own_documents = replace(kept, documents=True), documents
    try:
        y, z = (subject(torch.cat([x, one])) for one in (x, other))
    except CallFailed:
        return False
    finally:
        subject.layer, subject.own_documents = kept, None
    return changed(y[1, ~apart], z[1, ~apart], 1e-4)


def _tell_full(matrix: torch.Tensor, known: torch.Tensor, found: Collector) -> None:
    done = "Replaced one token at a time and compared all outputs."
    missing = ~matrix & known[:, None]
    t = len(matrix)
    if not missing.any():
        return
    count = int(missing.sum())
    seen = f"{count} of {t * t} pairs of an output and a token are independent."
    if torch.equal(matrix, torch.eye(t, dtype=torch.bool)):
        found.add("tokens_not_mixed", done, seen)
    elif torch.equal(matrix, torch.ones(t, t, dtype=torch.bool).tril()):
        found.add("mask_unwanted", done, seen)
    elif not (found.not_compared and is_units(matrix)):
        found.add("past_unused", done, seen)


def _tell_memory(
    subject: Subject, matrix: torch.Tensor, known: torch.Tensor, found: Collector
) -> None:
    done = "Replaced one query at a time and compared all outputs."
    mixed = bool((matrix & ~torch.eye(len(matrix), dtype=torch.bool)).any())
    if mixed and BESIDE in found.read:
        return  # so is meant
    x = subject.tokens(size=0.2)
    y, columns = subject(x), []
    for place in range(subject.layer.memory or 0):
        subject.replaced_memory = place
        z = subject(x)
        columns.append([changed(y[:, i], z[:, i]) for i in range(y.shape[1])])
    subject.replaced_memory = None
    acts = torch.tensor(columns)[:, known]
    # A query that sees one token of the memory alone has nothing to weigh.
    itself = matrix.diagonal()[known] | (acts.sum(dim=0) == 1)
    if mixed:
        # Where nothing was compared, the memory may hold the queries, too.
        severity = "warning" if found.not_compared else None
        seen = "Outputs of other queries changed."
        found.add("cross_mixes_queries", done, seen, severity)
    elif not itself.all():
        some = found.not_compared and itself.any()
        seen = "Its own output didn't change."
        found.add("cross_ignores_queries", done, seen, "warning" if some else None)
    done = "Replaced one token of the memory at a time."
    if not acts.any():
        found.add("cross_ignores_memory", done, "No output changed.")
    elif not acts.all():
        text = f"Outputs ignored it in {int((~acts).sum())} of {acts.numel()} cases."
        found.add("cross_masked", done, text)


def _square(ahead: torch.Tensor) -> bool:
    """Whether the first tokens all see one another, and no other sees what follows."""
    p = int(ahead.any(1).sum()) + 1
    first = torch.zeros_like(ahead)
    first[:p, :p] = True
    return torch.equal(ahead, first.triu(1))


def given_memory(subject: Subject) -> Iterator[tuple[str, Subject]]:
    """Yield (name, the layer given a memory by that argument), where forward may be."""
    way = None if subject.how.call else subject.how.way or plain_way(subject.pristine)
    if way is None or way.masked or way.memory or subject.says(ALIGNED):
        return  # a mask that it's given hides what it says
    flags = [n for n, v in way.others if v is True and CAUSAL.search(n.lower())]
    way = way.with_values(dict.fromkeys(flags, False))  # it was for tokens alone
    for name in own_memories(subject.pristine, way):
        given = copy.copy(subject)
        given.layer = replace(subject.layer, memory=MEMORY)
        given.how = replace(subject.how, way=replace(way, memory=name))
        given.causal, given.uneven = False, None
        yield name, given


def _try_memory(subject: Subject, found: Collector) -> None:
    """Give a memory where forward may take one: the causal mask is not for it."""
    for name, given in given_memory(subject):
        with contextlib.suppress(CallFailed):
            x, columns = given.tokens(size=0.2), []
            y = given(x)
            for place in range(MEMORY):
                given.replaced_memory = place
                z = given(x)
                columns.append([changed(y[:, i], z[:, i]) for i in range(y.shape[1])])
            acts = torch.tensor(columns)
            # It was to be read if forward names it more than where it takes it.
            read = len(re.findall(rf"\b{name}\b", subject.source)) > 1
            if read and found.compared and not acts.any():
                done = f"Passed a memory as {name}, and replaced one token at a time."
                found.add("cross_ignores_memory", done, "No output changed.")
                return
            cut = torch.equal(acts, torch.ones_like(acts).triu())
            if cut or (found.compared and acts.any() and not acts.all()):
                done = f"Passed a memory as {name}, and replaced one token at a time."
                text = f"Outputs ignored it in {int((~acts).sum())} of {acts.numel()} "
                found.add("cross_masked", done, f"{text}cases.")


def _listed(distances: list[int]) -> str:
    if len(distances) > 2 and distances == list(range(1, len(distances) + 1)):
        return f"1 to {len(distances)}"
    return ", ".join(map(str, distances))


def prefix(subject: Subject, found: Collector) -> None:
    """Compare the first tokens alone with the same tokens followed by others."""
    if not subject.causal:
        raise SkipTest("without a mask, outputs may differ")
    if found.severities.get("future_leaks") == "warning":
        raise SkipTest("the first tokens see one another")
    x = subject.tokens()
    y = subject(x)
    for t in range(1, x.shape[1]):
        short = subject(x[:, :t])
        if changed(y[:, :t], short, 1e-4):
            done = f"Passed only the first {t} of {x.shape[1]} tokens."
            seen = "Their outputs differ from the longer sequence's."
            found.add("length_matters", done, seen)
            return


def equal_tokens(subject: Subject, found: Collector) -> None:
    """Repeat one token: an average of equal values is that value, at any position."""
    if subject.layer.sink:
        raise SkipTest("a sink takes a share of each token's weights")
    if found.not_compared and "sink" in str(list(subject.pristine.state_dict())):
        raise SkipTest("a sink takes a share of each token's weights")
    if {ADDED, APART, NULL} & {*found.read} or subject.layer.exclusive:
        raise SkipTest("more than the tokens is mixed, and each row was compared")
    if found.not_compared:
        _mixing(subject, found)
        return
    if subject.layer.memory and subject.layer.ordered:
        raise SkipTest("queries at other places weigh the memory otherwise")
    x = subject.tokens()
    x = x[:, :1].expand_as(x).contiguous()
    y = subject(x)
    known = y.isfinite().all(dim=-1).all(dim=0)
    if not known.any():
        raise SkipTest("no position is finite")
    y = y[:, known & ~passed_on(subject)]
    if changed(y, y[:, -1:].expand_as(y), 1e-4):
        if "differs" in found.found and _sums_seen(subject)[1] < 1e-3:
            raise SkipTest("each row that values are mixed with has the same sum")
        gap = (y - y[:, -1:]).abs().max().item()
        done = "Put the same token at all positions."
        seen = f"The outputs of equal tokens differ by up to {gap:.2g}."
        found.add("rows_do_not_sum_to_one", done, seen)


def _mixing(subject: Subject, found: Collector) -> None:
    """Look at the rows that values are mixed with, where they can be captured."""
    sums, off = _sums_seen(subject)
    if sums is None:
        raise SkipTest(f"{found.beside or 'something'} may depend on the position")
    if off > 1e-3 and not subject.layer.sink:
        done = "Added up the rows that multiply the values."
        seen = f"The sums range from {sums.min():.2f} to {sums.max():.2f}."
        # Weights that nobody described may be there to change them.
        severity = "warning" if "what holds weights" in found.beside else None
        found.add("rows_do_not_sum_to_one", done, seen, severity)


def _sums_seen(subject: Subject) -> tuple[torch.Tensor | None, float]:
    """Return the sums of the rows, and how far apart they are; none if not captured."""
    x = subject.tokens()
    module = subject.copy()
    watch = Captured(module)
    subject(x, module, mode=watch)
    t = x.shape[1]
    mixing = [f for f in watch.tensors["factors"] if f.shape[-2:] == (t, t)]
    own = watch.seen.fused or "multi_head_attention_forward" in watch.seen.lines
    if own and not watch.tensors["scores"]:
        return None, 0.0  # PyTorch itself mixes
    if not watch.tensors["scores"] or not mixing:
        return None, math.inf
    last = mixing[-1].detach()
    # Values may also be multiplied from the left, by columns. The same sum in all rows
    # is a design, as where one softmax is subtracted from another.
    sums, columns = last.sum(dim=-1), last.sum(dim=-2)
    off = min((s - s.mean(dim=-1, keepdim=True)).abs().max() for s in (sums, columns))
    return sums, off.item()


def large_scores(subject: Subject, found: Collector) -> None:
    """Raise the scores until exp alone overflows, and a finite fill value leaks."""
    if not subject(subject.tokens()).isfinite().all():
        raise SkipTest("the output isn't finite for ordinary tokens either")
    size = 25.0
    x = subject.tokens(size=size)
    y = subject(x)
    done = f"Multiplied tokens by {size:g}, so that scores reach a few hundred"
    if not y.isfinite().all():
        found.add("overflows", f"{done}.", "The output contains NaN or infinity.")
        return
    # Where the largest of all scores is subtracted, those of other rows may vanish.
    if "samples_mixed" not in found.found and changed(y[:1], subject(x[:1]), 0.1):
        done = f"{done}, and passed a sequence alone, and in a batch of {len(x)}."
        found.add("samples_mixed", done, "Its outputs differ.")
        return
    if subject.causal and not found.found.keys() & _LEAKS and not found.causes:
        _finite_fill(subject, found)


_LEAKS = {"future_leaks", "mask_upside_down", "mask_inverted", "mask_off_by_one"}


def _finite_fill(subject: Subject, found: Collector) -> None:
    size = 300.0
    x = subject.tokens(b=16, size=size)
    other = x.clone()
    other[:, -1] = subject.tokens(b=16, size=size, seed=7)[:, -1]
    y, z = subject(x), subject(other)
    if changed(y[:, :-1], z[:, :-1], 1e-4):
        done = (
            f"Multiplied tokens by {size:g}, so that visible scores reach about "
            f"-{size**2:,.0f}, then replaced the last token."
        )
        seen = "Earlier positions changed, which they don't for ordinary tokens."
        if subject.layer.softcap:  # behind which a fill would be far below all scores
            found.add("softcap_after_mask", done, seen)
            return
        # Ordinary scores are far above such a fill.
        found.add("mask_fill_finite", done, seen, "warning")
