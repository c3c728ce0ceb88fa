"""Builds the same class in other sizes, so that mistakes cannot hide behind equals."""

from dataclasses import replace
from typing import Any

from torch import nn

from attncheck.build import DEFAULTS, UnusableError, is_lazy
from attncheck.config import guess, is_head_width
from attncheck.source import HEAD_WIDTHS, Source, set_dropout, size_held
from attncheck.subject import CallFailed, Failure, How, Subject

# d_in, d_out and h, where no two of their roots, nor those of d_head, are equal. Where
# a class has one width alone, d_out is that width. Rotary positions need an even
# d_head, grouped heads an h that two divides.
DISTINCT = ((18, 24, 3), (20, 48, 6))
POWER_OF_2 = ((20, 40, 4),)  # where classes differ in the slopes for other numbers


def first_subject(source: Source, causal: bool, how: How, module: nn.Module) -> Subject:
    """Return the subject for the module, with sizes read from it.

    Raises:
        UnusableError: it is no module.
    """
    if not isinstance(module, nn.Module):
        raise UnusableError(f"{source.label} doesn't return a torch.nn.Module.")
    source.complete_sizes(module)
    if is_lazy(module):
        module = _materialized(source, causal, how, module)
    subject = Subject(module, source.worker, causal, dict(source.sizes), how)
    subject.limit = source.sizes["context_length"]
    subject.given = source.defaults() | source.arguments
    subject.takes_length = "context_length" in source.mapped
    subject.variant = lambda **changes: variant(source, subject, **changes)
    return subject


def _materialized(
    source: Source, causal: bool, how: How, module: nn.Module
) -> nn.Module:
    """Call a lazy module once, so that it gets its sizes."""
    sizes = {"d_in": DEFAULTS["d_in"], "context_length": 8} | {
        name: value for name, value in source.sizes.items() if value
    }
    first = Subject(module, source.worker, causal, sizes, how)
    first(first.tokens(), module)
    return module


def variant(source: Source, subject: Subject, **changes: Any) -> Subject | None:
    """Return the subject with other arguments or another seed, or None.

    Arguments by the names of sizes, or in ``own`` by those of the constructor. With
    ``alone``, no other rate than ``dropout`` acts.
    """
    dropout, own = changes.pop("dropout", None), changes.pop("own", {})
    alone = changes.pop("alone", False)
    if not source.is_class and (changes or own):
        return None
    if not set(changes) <= {"seed", *source.mapped}:
        return None
    if dropout is not None and "dropout" in source.mapped:
        changes["dropout"] = dropout
    meant = "" if dropout == 0 else source.mapped.get("dropout", "")
    if alone or dropout == 0:
        own |= {name: rate for name, rate in source.rates().items() if name != meant}
    own = _head_widths(source, subject.sizes | changes) | own
    try:
        module = source.build(own=own, **changes)
        if is_lazy(module):
            module = _materialized(source, subject.causal, subject.how, module)
    except CallFailed:
        return None
    by_argument = dropout is None or "dropout" in changes
    if not by_argument and not set_dropout(module, dropout):
        return None
    sizes = dict(subject.sizes)
    sizes |= {name: value for name, value in changes.items() if name in sizes}
    if "num_heads" not in source.mapped:  # it may follow from the width
        sizes["num_heads"] = size_held(module, "num_heads") or sizes["num_heads"]
    twin = Subject(module, subject.worker, subject.causal, sizes, subject.how)
    twin.layer, twin.layout = subject.layer, subject.layout
    twin.limit, twin.keeps_state = subject.limit, subject.keeps_state
    twin.fixed_length, twin.given = subject.fixed_length, subject.given | own
    twin.variant = lambda **changes: variant(source, twin, **changes)
    return twin


def _head_widths(source: Source, sizes: dict[str, Any]) -> dict[str, Any]:
    """Return the widths of heads that were guessed from other sizes, for these.

    Some split by a view that takes any width, and mix up tokens where it is wrong.
    """
    guessed = source.plan.guessed if source.is_class else {}
    known = {*source.mapped.values()}
    return {
        name: guess(name, sizes)[1]
        for name, value in guessed.items()
        if is_head_width(name)
        and name not in known
        and value == guess(name, source.sizes)[1]
    }


def uneven(subject: Subject) -> Subject | None:
    """Return the subject with d_in, d_out, h and d_head all different, if it can be.

    With equal sizes, a mistake about one of them would not show.
    """
    d_in, d_out = subject.sizes["d_in"], subject.sizes["d_out"]
    if d_out is not None:
        if d_in != d_out or d_in < 4:
            return None
        other = subject.variant(d_in=d_in - d_in // 4)
        if other is not None:
            try:
                other(other.tokens())
            except CallFailed:  # as where the input is added to the output
                return runs(subject.variant(d_in=24, d_out=24, num_heads=3))
    return distinct(subject)


def distinct(subject: Subject) -> Subject | None:
    """Return a variant whose widths have no alias, or the nearest that runs."""
    d_in, d_out = subject.sizes["d_in"], subject.sizes["d_out"]
    h = subject.sizes["num_heads"] or 1
    # A function that names the weights may tell the number of heads as well.
    alike = POWER_OF_2 if subject.speaks_of("alibi|slope") else ()
    tried = () if subject.how.weights else (*alike, *DISTINCT)
    for wide_in, wide_out, heads in tried:
        sizes = {"num_heads": heads} if subject.sizes["num_heads"] else {}
        if subject.takes_length and subject.limit:  # no width of a head, nor its alias
            sizes["context_length"] = subject.limit + 3
        if d_out is None:
            found = runs(subject.variant(d_in=wide_out, **sizes))
        else:
            found = runs(subject.variant(d_in=wide_in, d_out=wide_out, **sizes))
        if found is not None and _whole_groups(found):
            return found
    if d_out is None:
        return runs(subject.variant(d_in=d_in + 2 * h))
    narrow = d_in - d_in // 4
    wider = runs(subject.variant(d_in=narrow, d_out=d_out + 2 * h))
    return wider or runs(subject.variant(d_in=narrow))


def _whole_groups(subject: Subject) -> bool:
    """Whether each key head serves the same number of query heads."""
    return all(
        reading.query[0].shape[0] % reading.key[0].shape[0] == 0
        for reading in subject.candidates()[:1]
    )


def runs(subject: Subject | None) -> Subject | None:
    """Return the subject if there is one that runs."""
    try:
        if subject is not None:
            subject(subject.tokens())
    except CallFailed:
        return None
    return subject


def one_by_one(source: Source, subject: Subject) -> Subject | None:
    """Return the subject called with one sequence (t, d_in) at a time, or None."""
    how = replace(subject.how, one_by_one=True)
    twin = Subject(subject.fresh, subject.worker, subject.causal, subject.sizes, how)
    twin.limit, twin.given = subject.limit, subject.given
    twin.variant = lambda **changes: variant(source, twin, **changes)
    return runs(twin)


def narrower_heads(source: Source, subject: Subject) -> Subject | None:
    """Return the subject built with heads as wide as d_in / h, or None."""
    h, d_in = subject.sizes["num_heads"], subject.sizes["d_in"]
    known = {n: v for n, v in source.defaults().items() if type(v) is int}
    names = [n for n in HEAD_WIDTHS if n in known | source.arguments]
    if not source.is_class or not names or not h or not source.chose(names[0]):
        return None
    kept = dict(source.arguments)
    source.arguments[names[0]] = d_in // h
    try:
        module = source.build()
    except Failure:
        source.arguments.clear()
        source.arguments |= kept
        return None
    twin = Subject(
        module, subject.worker, subject.causal, dict(subject.sizes), subject.how
    )
    twin.limit, twin.given = subject.limit, subject.given
    twin.variant = lambda **changes: variant(source, twin, **changes)
    return runs(twin)
