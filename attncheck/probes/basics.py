"""Tests of the call itself: state, shapes, the input, eval(), too many tokens."""

import contextlib
import re

import torch
from torch import Tensor, nn

from attncheck.collector import NEEDS_MORE, Collector, SkipTest
from attncheck.errors import CallFailed
from attncheck.numbers import changed
from attncheck.subject import Subject

# Names for the part of a text that a token sees.
UNITS = r"window|chunk|patch|stride|segment|bucket|kernel|local|block_len|(^|_)unit"
LARGEST = 2048  # tokens; more would take too long
RATE = re.compile("drop|(^|_)p($|_)")


def state(subject: Subject, found: Collector) -> None:
    """Compute x, then something else, then x again, with one instance."""
    x, other = subject.tokens(), subject.tokens(b=2, t=3, seed=1)
    module, late = subject.copy(), subject.copy()
    done = "Passed the same tokens twice to one instance, with others in between."
    first = subject(x, module).clone()
    between = _takes(subject, other)  # unless this size always fails
    try:
        if between:
            subject(other, module)
        again = subject(x, module)
    except CallFailed as failure:
        found.add("keeps_state", done, f"The second time, it raised {failure}.")
        return
    if changed(first, again):
        found.add("keeps_state", done, "The outputs differ.")
        return
    spoiled = between and _takes(subject, other, late)
    if spoiled and (not _takes(subject, x, late) or changed(first, subject(x, late))):
        seen = "After a call with fewer tokens, it failed or its output changed."
        found.add("keeps_state", done, seen)
    else:
        subject.keeps_state = False


def _takes(subject: Subject, x: Tensor, module: nn.Module | None = None) -> bool:
    """Whether a call with these tokens works."""
    with contextlib.suppress(CallFailed):
        subject(x, module)
        return True
    return False


def shapes(subject: Subject, found: Collector) -> None:
    """Try several numbers of sequences and tokens."""
    limit = subject.limit or 8
    width = subject(subject.tokens()).shape[-1]
    tried = [(1, 1), (2, 1), (1, 2), (2, 5), (1, min(limit, 64)), (4, min(limit, 3))]
    refused: dict[int, tuple[str, str]] = {}
    taken: set[int] = set()
    for b, t in [(b, t) for b, t in tried if t <= limit]:
        done = f"Passed {_count(b, 'sequence')} of {_count(t, 'token')}."
        try:
            y = subject(subject.tokens(b, t), any_shape=True)
        except CallFailed as failure:
            if not NEEDS_MORE.search(str(failure)):
                refused.setdefault(t, (done, f"It raised {failure}."))
            continue
        taken.add(t)
        if tuple(y.shape) != (b, t, width):
            seen = f"The output has the shape {tuple(y.shape)}, not {(b, t, width)}."
            found.add("wrong_shape", done, seen)
    if refused:
        way = subject.how.way  # the mask we passed to hide nothing may be a bias
        known = _by_design(subject, taken, {*refused}) or (way and way.opened)
        severity = "warning" if known else None
        found.add("some_sizes_raise", *refused[min(refused)], severity)
    _tell_width(subject, found, width)


def _by_design(subject: Subject, taken: set[int], refused: set[int]) -> bool:
    """Whether it takes whole windows alone: multiples, or no less than one."""
    multiples = any(
        not any(t % unit for t in taken) and all(t % unit for t in refused)
        for unit in range(2, max(taken, default=0) + 1)
    )
    short = max(refused) < min(taken, default=0) and subject.speaks_of(UNITS)
    return not refused & taken and (multiples or short)


def _tell_width(subject: Subject, found: Collector, width: int) -> None:
    """Compare the output's width with d_out, or h · d_out for separate heads."""
    d_out = subject.sizes.get("d_out")
    if d_out is None or width == d_out:
        return
    readings = subject.candidates()
    separate = not readings or readings[0].per_head
    if separate and width == d_out * (subject.sizes["num_heads"] or 1):
        return
    done = f"Built with d_out={d_out}, called with 3 sequences."
    found.add("wrong_shape", done, f"Each output vector is {width} wide, not {d_out}.")


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" + "s" * (count != 1)


def input_kept(subject: Subject, found: Collector) -> None:
    """Compare the input before and after."""
    x = subject.tokens()
    given = x.clone()
    subject(given, subject.copy(), grad=True, mode=torch.no_grad())
    if not torch.equal(x, given):
        gap = (x - given).abs().max().item()
        done = "Compared the input with a copy made before the call."
        found.add("changes_input", done, f"It changed by up to {gap:.2g}.")


def same_in_eval(subject: Subject, found: Collector) -> None:
    """Call twice in eval() after different seeds, with dropout where there is any."""
    others = {n: 0.5 for n, v in subject.given.items()
              if RATE.search(n) and type(v) is float and 0 <= v < 1}  # fmt: skip
    variants = subject.variant(dropout=0.5), subject.variant(own=others)
    for one, words in zip(
        (subject, *variants), ("", *[" and dropout 0.5"] * 2), strict=True
    ):
        if one is None:
            continue
        x = one.tokens()
        with contextlib.suppress(CallFailed):
            if changed(one(x, seed=1), one(x, seed=2)):
                done = f"Passed the same tokens twice in eval(){words}."
                found.add("random_in_eval", done, "The two outputs differ.")
                return


def too_many_tokens(subject: Subject, found: Collector) -> None:
    """Pass one token more than context_length."""
    if subject.limit is None:
        raise SkipTest("no context_length is known")
    t = subject.limit + 1
    if t > LARGEST:
        raise SkipTest(f"context_length={subject.limit} is too long for a quick test")
    x = torch.zeros(1, t, subject.sizes["d_in"]).to(subject.device, subject.dtype)
    try:
        y = subject(x, any_shape=True)
    except CallFailed:
        return  # right: it refuses
    done = f"Passed {t} tokens, with context_length={subject.limit}."
    if y.dim() == 3 and y.shape[1] < t:
        seen = f"No error, and the output has {y.shape[1]} tokens."
        found.add("too_many_tokens_cut", done, seen)
    else:
        found.add("too_many_tokens_accepted", done, "No error was raised.")
