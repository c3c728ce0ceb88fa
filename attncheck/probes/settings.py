"""Compares with settings that are off by default, or too large to act on few tokens."""

import contextlib
import copy
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from attncheck.build import UnusableError, duplicate
from attncheck.calling import asking_way, is_pytorchs
from attncheck.collector import Collector, NotCompared, SkipTest
from attncheck.inferred import inferred
from attncheck.layer import Layer
from attncheck.numbers import changed
from attncheck.probes.basics import same_in_eval
from attncheck.probes.comparing import ROPE_BASE, ROUNDED, Comparison, compare
from attncheck.probes.meaning import batch, dependence, depends, given_memory
from attncheck.probes.training import gradients
from attncheck.subject import Failure, Subject
from attncheck.variants import distinct, runs, with_gains

NORMED = re.compile(r"(^|_)qk_?(layer_?)?norm|norm(alize)?_qk")
BLOCK = re.compile(
    r"(^|_)(block|chunk|tile|slice|bucket(?=_?(size|len)))(_?(size|len|length))?"
    r"(_([qk]|rows?|cols?|columns?|queries|keys|m|n))?$"
)
QUERIES = re.compile(r"(^|_)(q|query|queries|rows?|m)(_|$)")
# Two entries make one pair, and any way to pair them is right.
ROTARY = re.compile(r"rot\w*_?(dim|ndims)$")
USUAL, OTHER = 1e4, 500.0  # bases
# Where a block is all that its tokens see.
LOCAL = r"local|band|axial|neighbor|strid|dilat|window|spars"
# By these a class computes the same in another way.
PATHS = re.compile(r"flash|sdpa|fused|xformers|naive|eager|manual|mem\w*_?efficient")
NOTHING = NotCompared, SkipTest, Failure, UnusableError
INSIDE = re.compile(r"(with)?in (its|their|a|each|the same) (own )?(block|chunk)", re.I)


def compared(subject: Subject, found: Collector) -> None:
    """Compare with attention, as it is built and with other settings.

    Raises:
        NotCompared: no reference fits, or the weights were not found.
    """
    before, declared = {*found.found}, subject.layer
    try:
        compare(subject, found)
    except NotCompared:
        _compare_blocks(subject, found)
        raise
    if found.compared and found.found.keys() == before:
        for own in _others(subject):
            _try(subject, own, found)
        for name, value in subject.given.items():
            if subject.layer.rope and value == USUAL and ROPE_BASE.search(name):
                _try_base(subject, name, found)
        for done, other in _paths(subject):
            _try_path(subject, done, other, found)
        for name, other in given_memory(subject) if not subject.layer.rope else ():
            more = Collector()
            with contextlib.suppress(*NOTHING):
                compare(other, more)
            found.take(more, f"Passed a memory as {name}.", but=("differs",))
        if subject.layer.rope and subject.layer.qk_norm:
            _norm_again(subject, declared, found)


def _norm_again(subject: Subject, declared: Layer, found: Collector) -> None:
    """See whether queries and keys are normed before the rotation, or behind it.

    With gains that are all 1, as they start, both orders give the same.
    """
    other = with_gains(subject)
    with contextlib.suppress(Exception):  # what is captured may have any form
        read = inferred(other, other.tokens())
        done = "Gave the norms of queries and keys other gains than 1."
        late = read is not None and "norm_late" in read.options
        if late and not declared.norm_late:
            seen = "Queries and keys are rotated first, and normed then."
            severity = None if declared.qk_norm else "warning"
            found.add("qk_norm_late", done, seen, severity)
        elif read and read.options.keys() >= {"rope", "qk_norm"} and not late:
            seen = "Queries and keys are normed first, and rotated then."
            if declared.norm_late:
                found.add("differs", done, seen, stage="positions")


def _paths(subject: Subject) -> Iterator[tuple[str, Subject]]:
    """Yield (how it was made, a layer that is to compute the same in another way)."""
    for name, value in subject.given.items():
        if type(value) is bool and PATHS.search(name):
            other = subject.variant(own={name: not value})
            if other is not None and _shapes(other) == _shapes(subject):
                other.variant = partial(_built, subject, {name: not value})
                yield f"Built it with {name}={not value}.", other
    kind = type(subject.pristine)
    for name, value in vars(subject.pristine).items():
        known = name in subject.given or hasattr(kind, name)
        if type(value) is bool and PATHS.search(name) and not known:
            other = copy.copy(subject)
            other.pristine, other.fresh = duplicate(subject.pristine), subject.fresh
            setattr(other.pristine, name, not value)
            yield f"Set {name} to {not value}.", other.alone()
    way = None if subject.how.call else asking_way(subject.pristine, subject.how.way)
    if way is not None and not is_pytorchs(subject.pristine):
        other = copy.copy(subject)
        other.how = replace(subject.how, way=way)
        yield "Asked for the weights.", other.alone()


def _built(subject: Subject, given: dict[str, Any], **changes: Any) -> Subject | None:
    own = given | changes.pop("own", {})
    return subject.variant(**changes, own=own)


def _shapes(subject: Subject) -> list[tuple[str, torch.Size]]:
    return [(name, p.shape) for name, p in subject.pristine.named_parameters()]


def _try_path(subject: Subject, done: str, other: Subject, found: Collector) -> None:
    """Look whether another way gives the same, and if not, what is wrong with it."""
    more = Collector()
    with contextlib.suppress(*NOTHING):
        x = subject.tokens()
        if changed(subject(x), other(x), 1e-4):
            more.add("differs", "", "The output is another.", stage="output")
            other.uneven, told = distinct(other), Collector()
            with contextlib.suppress(*NOTHING):
                compare(other, told)
            if told.found.keys() - {"differs"}:
                more = told
        else:
            same_in_eval(other, more)
            gradients(other, more)
    found.take(more, done)


def _try_base(subject: Subject, name: str, found: Collector) -> None:
    """Give rotary positions another base than the usual one, which may be fixed."""
    how, rope = subject.how, subject.layer.rope
    if how.call is not None or how.way is not None:
        return  # angles may be passed
    other = subject.variant(own={name: OTHER})
    if other is None or rope is None or rope.base != USUAL:
        return
    other.layer = replace(subject.layer, rope=replace(rope, base=OTHER))
    with contextlib.suppress(*NOTHING):
        compare(other, more := Collector())
        (held := Comparison(other, other)).equal()
        # Another epsilon of a norm is no other base, and tells by less.
        if more.found and held.gap > ROUNDED:
            done = f"Built it with {name}={OTHER:g}."
            text = f"It isn't the output of queries and keys turned by {OTHER:g}."
            found.add("rope_base", done, text)


def _others(subject: Subject) -> list[dict[str, Any]]:
    """Return the arguments to try, each time by their names."""
    given = subject.given
    tried: list[dict[str, Any]] = [
        {name: True}
        for name, value in given.items()
        if value is False and NORMED.search(name)
    ]
    wide = subject._d_head() >= 4
    tried += [{n: 4} for n, v in given.items() if v == 2 and ROTARY.search(n) and wide]
    sizes = {
        name: value
        for name, value in given.items()
        if BLOCK.search(name) and type(value) is int and value > 1
    }
    # Off by default: five leave a rest of six tokens, and of three samples' heads.
    idle = {n for n, v in given.items() if BLOCK.search(n) and v is None}
    # A block's size may have been taken for the longest input.
    tried += [{name: 4} for name, value in sizes.items() if value == subject.limit]
    sizes = {name: value for name, value in sizes.items() if value != subject.limit}
    window, _ = subject.named_window  # has a size of its own, so blocks are no window
    local = subject.speaks_of(LOCAL) and (not window or window in sizes)
    if (sizes or idle) and (local or subject.says(INSIDE)):
        return tried
    tried += [{name: 5} for name in sorted(idle)]
    if sizes:
        least = min(sizes.values())  # two of them stay as they are to each other
        small = {n: max(2 * v // least, 2) for n, v in sizes.items()}
        if len(sizes) > 1 and len({*sizes.values()}) == 1:  # none needs be the other
            small = {n: 4 if QUERIES.search(n) else 2 for n in sizes}
        tried.append(small if small != sizes else {n: 2 * v for n, v in sizes.items()})
    return tried


def _same_output(subject: Subject, other: Subject, found: Collector) -> None:
    """Look whether the output is the one that it has with other sizes of its blocks."""
    x = subject.tokens()
    if _shapes(other) == _shapes(subject) and changed(subject(x), other(x), 1e-4):
        uneven = Comparison(other, other).unequal_sums()
        name = "rows_do_not_sum_to_one" if uneven else "differs"
        found.add(name, "", "The output is another one.", stage="output")


def _compare_blocks(subject: Subject, found: Collector) -> None:
    """Compare with other blocks, where each token sees the same tokens in both."""
    x = subject.tokens()
    for own in _others(subject):
        other = subject.variant(own=own)
        if other is None or _shapes(other) != _shapes(subject):
            continue
        with contextlib.suppress(*NOTHING):
            seen = depends(subject)
            far = torch.ones_like(seen).triu(1) if subject.causal else seen & False
            whole = bool((seen | far).all()) and torch.equal(seen, depends(other))
            if not whole or not changed(subject(x), other(x), 1e-4):
                continue
            one = x[:, :1].expand_as(x)  # of equal values, every mean is the same
            uneven = changed(subject(one), other(one), 1e-4)
            name = "rows_do_not_sum_to_one" if uneven else "differs"
            told = ", ".join(f"{name}={value}" for name, value in own.items())
            text = "The output is another one, though each token sees the same tokens."
            found.add(name, f"Built it with {told}.", text, "error")
            return


def _try(subject: Subject, own: dict[str, Any], found: Collector) -> None:
    """Run the tests that such settings decide, and keep what they know for sure."""
    other, more = subject.variant(own=own), Collector()
    if other is None:
        return
    if any(subject.given[name] == subject.limit for name in own):
        other.sizes["context_length"] = other.limit = None
    if runs(other) is None:
        return
    other.variant, more.rounded = subject.variant, found.rounded
    with contextlib.suppress(*NOTHING):
        compare(other, more)
    sizes = all(BLOCK.search(name) for name in own)
    if sizes and more.found.keys() <= {"differs"}:
        with contextlib.suppress(*NOTHING):
            _same_output(subject, other, more)
    before = {*more.found}
    with contextlib.suppress(SkipTest, Failure):
        if before <= {"differs"}:
            if sizes:
                dependence(other, more)
                batch(other, more)
            gradients(other, more)
    # Blocks that hide nothing must not change the output either.
    sure = sizes and more.found.keys() == before
    told = ", ".join(f"{name}={value}" for name, value in own.items())
    found.take(more, f"Built it with {told}.", but=() if sure else ("differs",))
