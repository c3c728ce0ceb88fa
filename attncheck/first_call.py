"""The first call of a class, and other ways to call or build it where that fails."""

import contextlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from math import prod

import torch

from attncheck.arguments import CAUSAL, example_call, is_pytorchs, masked_ways, ways
from attncheck.collector import Collector, NotCompared
from attncheck.errors import CallFailed, Failure, UnusableError
from attncheck.numbers import changed
from attncheck.probes.compare import Comparison
from attncheck.probes.meaning import depends, mixes_samples
from attncheck.source import Source
from attncheck.subject import How, Subject
from attncheck.trace import Watch
from attncheck.variants import first_subject, runs, uneven
from attncheck.ways import Way

RUNS = "builds and runs"
COUNTS = re.compile("len|patch|token|seq|block|pos")
LISTS = re.compile(r"\[(\d+(?:, \d+)+)\]")  # sizes in an error
MEMORY = 5  # tokens of a memory that nobody declared, fewer than others


def first_call(
    source: Source, subject: Subject, collector: Collector, tests: Iterable[str]
) -> Subject | None:
    """Call it once; return the subject if the other tests make sense.

    Raises:
        UnusableError: this PyTorch can't run it.
    """
    x = subject.tokens()
    done = f"Called with {len(x)} sequences of {x.shape[1]} tokens."
    try:
        subject(x)
    except (Failure, UnusableError) as failure:
        if getattr(failure, "mistake", "") == "environment":
            raise UnusableError(f"this PyTorch can't run it: {failure}.") from None
        other = _call_otherwise(source, subject, failure, collector, done)
        if other is None:
            if isinstance(failure, UnusableError):
                failure = CallFailed("forward_raises", str(failure).rstrip("."))
            collector.cannot_run(RUNS, failure, done)
            if failure.mistake == "forward_raises":
                collector.report.needed = (
                    "say how to call it: fill in the rest of "
                    f"call={example_call(subject.pristine)}"
                )
            collector.not_run(tests, "the layer doesn't run")
            return None
        subject = other
    if subject.causal and subject.how.call is None:
        _give_mask(subject, collector)
    if not any(result.test == RUNS for result in collector.report.results):
        collector.run(RUNS, _try_out, subject)
    plain = subject.how.call is None and subject.how.way is None
    if subject.layout == "tbd" and plain and subject.causal:
        _give_mask(subject, collector)  # the masks tried before had the batch's size
        if subject.uneven is not None:
            _call_from_now(subject.uneven, subject.how, subject.causal)
    return subject


def _call_otherwise(
    source: Source,
    subject: Subject,
    failure: Failure | UnusableError,
    collector: Collector,
    done: str,
) -> Subject | None:
    """Return the subject called or built in another way that runs, or None."""
    tries = [_find_way, _find_length]
    if not isinstance(failure, UnusableError):
        if failure.mistake not in ("forward_raises", "wrong_shape"):
            return None
        tries += [_find_width, _call_alone]
    found = any(attempt(subject, failure) for attempt in tries)
    running = subject if found else _build_otherwise(source, subject, failure)
    if running is not None and running.fixed_length and not running.how.way:
        text = f"It raised {failure}. It runs with {running.fixed_length} tokens."
        collector.cannot_run(RUNS, CallFailed("short_inputs", text), done)
    return running


def _build_otherwise(
    source: Source, subject: Subject, failure: Failure | UnusableError
) -> Subject | None:
    """Return the subject built with other arguments, where it runs with some."""
    for module in source.build_others(failure):
        with contextlib.suppress(Failure, UnusableError):
            other = first_subject(source, subject.causal, subject.how, module)
            tries = (_find_length, _find_way)
            if runs(other) or any(attempt(other, failure) for attempt in tries):
                for text in other.notes:
                    subject.note(text)
                other.notes = subject.notes
                return other
    return None


def _call_alone(subject: Subject, failure: Failure | UnusableError) -> bool:
    """Give it one sequence at a time; return whether it runs so."""
    kept = subject.how
    subject.how = replace(kept, one_by_one=True)
    if runs(subject) is None:
        subject.how = kept
        return False
    subject.note("It takes one sequence (t, d) at a time: each was passed alone.")
    return True


def _find_length(subject: Subject, failure: Failure | UnusableError) -> bool:
    """Look for the one number of tokens that it runs with; return whether there is."""
    if isinstance(failure, UnusableError):  # it hasn't been called yet
        kept = subject.how
        subject.how = replace(kept, way=next(_ways(subject), None))
        try:
            subject(subject.tokens())
        except (Failure, UnusableError) as other:
            failure = other
        subject.how = kept
    text, width = str(failure), subject.sizes["d_in"]
    lists = [[int(n) for n in one.split(",")] for one in LISTS.findall(text)]
    whole = [n for n in map(prod, lists) for n in (n // (3 * width), n)]
    # An image has its patches and one token for the class.
    counts = [v for n, v in subject.given.items() if COUNTS.search(n)]
    named = [n + 1 for n in counts if type(n) is int]
    lengths = [subject.limit or 0, *_numbers(failure), *whole, *named, 16]
    for length in dict.fromkeys(lengths):
        if 4 <= length <= 64:
            subject.fixed_length = length
            with contextlib.suppress(UnusableError):
                if runs(subject) is not None:
                    return True
                continue
            if _find_way(subject, failure):
                return True
    subject.fixed_length = None
    return False


def _find_width(subject: Subject, failure: Failure | UnusableError) -> bool:
    """Give tokens as wide as the error says; return whether it runs so."""
    known = subject.sizes["d_in"]
    for width in _numbers(failure):
        subject.sizes["d_in"] = width
        if runs(subject) is not None:
            return True
    subject.sizes["d_in"] = known
    return False


def _numbers(failure: Failure | UnusableError) -> list[int]:
    found = [int(number) for number in re.findall(r"(?<![\w.])\d+", str(failure))]
    found += [int(n) for pair in re.findall(r"(\d+)x(\d+)", str(failure)) for n in pair]
    return [number for number in dict.fromkeys(found) if 2 < number <= 1024]


def _find_way(subject: Subject, failure: Failure | UnusableError) -> bool:
    """Find out what forward wants besides x; return whether it runs so."""
    if subject.how.call is not None or subject.layer.documents:
        return False
    leaking: tuple[How, bool] | None = None
    kept = subject.how, subject.causal
    for optional in (False, True):
        for way in _ways(subject, optional):
            if subject.causal and _attends_to_itself(subject, way):
                return _tell_way(subject)
            if not _runs_by(subject, way):
                continue
            leaks = subject.causal and (way.mask or way.opened) and _leaks(subject)
            alone = not way.mask or _takes_one(subject)
            hides = way.opened and (not _is_precise(subject) or _is_blank(subject))
            if not leaks and alone and not hides:
                return _tell_way(subject)
            leaking = leaking or (subject.how, subject.causal)
            _call_from_now(subject, *kept)
        if leaking:
            _call_from_now(subject, *leaking)
            return _tell_way(subject)
    return False


def _attends_to_itself(subject: Subject, way: Way) -> bool:
    """Whether it takes keys beside queries, and hides what comes later in them."""
    if not way.memory or subject.layer.memory:
        return False
    kept = subject.how
    both = (*way.tokens, *way.memory.split())
    one = replace(way, tokens=both, memory=None, memory_width=None)
    if _runs_by(subject, one) and not _leaks(subject):
        return True
    _call_from_now(subject, kept, True)
    return False


def _ways(subject: Subject, optional: bool = False) -> Iterator[Way]:
    matrices = [p for p in subject.pristine.parameters() if p.dim() == 2]
    others = dict.fromkeys(p.shape[1] for p in matrices)  # a memory may be as wide
    others.pop(subject.sizes["d_in"], None)
    widths, memory = (None, *others), bool(subject.layer.memory)
    return ways(subject.pristine, subject.causal, widths, memory, optional)


def _takes_one(subject: Subject) -> bool:
    """Whether it runs with one token alone, or with one number of tokens by design."""
    try:
        subject(subject.tokens()[:, :1])
    except CallFailed:
        return bool(subject.fixed_length)
    return True


def _is_precise(subject: Subject) -> bool:
    """Whether float32 does: a mask of the wrong kind shifts all scores by thousands."""
    x = subject.tokens()
    kept, y = subject.dtype, subject(x)
    try:
        fine = subject(x.double(), subject.copy().double())
    except CallFailed:
        return True
    finally:
        subject.dtype = kept
    return not changed(y, fine.to(y.dtype), 1e-5)


def _is_blank(subject: Subject) -> bool:
    """Whether all weights are alike, as where a mask of the wrong kind hides all."""
    watch = Watch(module := subject.copy())
    y = subject(subject.tokens(), module, mode=watch)
    made = [weights for _, weights in watch.seen.softmaxes if weights.shape[-1] > 1]
    return not changed(y, y[:1, :1].expand_as(y)) or any(
        one.isnan().any() or not changed(one, one[..., :1].expand_as(one), 1e-6)
        for one in made
    )


def _tell_way(subject: Subject) -> bool:
    """Note what forward was called with; return that it runs."""
    assert subject.how.way is not None, "it was called in a way that was found"
    if words := subject.how.way.words():
        subject.note(f"forward was called with {words}.")
    return True


def _runs_by(subject: Subject, way: Way) -> bool:
    """Call the subject in this way from now on, if it runs so; return whether."""
    how, causal = subject.how, subject.causal
    layer = subject.layer
    if way.memory:
        layer = replace(layer, memory=layer.memory or MEMORY)
    _call_from_now(
        subject, replace(how, way=way, layer=layer), causal and not way.memory
    )
    if runs(subject) is not None:
        return True
    _call_from_now(subject, how, causal)
    return False


def _call_from_now(subject: Subject, how: How, causal: bool) -> None:
    subject.how, subject.layer, subject.causal = how, how.layer, causal


def _give_mask(subject: Subject, collector: Collector) -> None:
    """Give the causal mask that it takes to a class that sees the future without.

    A class that promises to be causal by itself is told on; of another, the verdict
    says so.
    """
    way = subject.way
    if way is None or is_pytorchs(subject.pristine):
        return
    if way.mask:
        _say_masked(subject, collector, way)
    if way.mask or not _leaks(subject):
        return
    how, acting, open_ = subject.how, [], subject(subject.tokens())
    found = list(masked_ways(subject.pristine, way))
    for masked, narrow in [*product(found, (False,)), *product(found, (True,))]:
        if _runs_by(subject, masked):
            if not _leaks(subject) and (_takes_one(subject) or narrow):
                _say_masked(subject, collector, masked)
                return
            if changed(open_, subject(subject.tokens())):
                acting.append(masked)
            _call_from_now(subject, how, True)
    for masked in acting:  # it may hide too little
        if _runs_by(subject, masked):
            with contextlib.suppress(NotCompared):
                Comparison(subject).decide(more := Collector())
                if {*more.causes} & HIDES_LITTLE and len(more.causes) == 1:
                    _say_masked(subject, collector, masked)
                    return
            _call_from_now(subject, how, True)


HIDES_LITTLE = {"mask_fill_finite", "mask_fill_zero", "mask_added_as_ones",
                "mask_after_softmax"}  # fmt: skip


def _say_masked(subject: Subject, collector: Collector, way: Way) -> None:
    """Say that it is causal with a mask alone, and whether it promised more."""
    _tell_way(subject)
    name = way.mask
    if not name:
        return
    collector.tried.add(name)
    if subject.how.promised or _promises(subject):
        collector.start(RUNS)
        done = "Called it without a mask."
        collector.add("mask_missing", done, f"It leaks the future unless `{name}` is "
                      f"given, though it promises to be causal.")  # fmt: skip
    else:
        collector.report.promised = f"causal only with `{name}`"


def _promises(subject: Subject) -> bool:
    """Whether the class says that it is causal: by a flag, or a triangle it holds."""
    if any(CAUSAL.search(n.lower()) and v is True for n, v in subject.given.items()):
        return True
    for _, held in subject.pristine.named_buffers():
        square = held.dim() >= 2 and held.shape[-1] == held.shape[-2] > 1
        if square:
            flat = held.reshape(-1, *held.shape[-2:])[0]
            low, high = flat.tril(), flat.triu()
            if torch.equal(flat, low) or torch.equal(flat, high):
                return not torch.equal(flat, flat.diagonal().diag())
    return False


def _leaks(subject: Subject) -> bool:
    """Whether earlier outputs change with the last token."""
    x = subject.tokens()
    other = x.clone()
    other[:, -1] = subject.tokens(seed=5)[:, -1]
    try:
        y, z = subject(x), subject(other)
    except Failure:
        return False
    return changed(y[:, :-1], z[:, :-1]) or not y.isfinite().all()


def _try_out(subject: Subject, collector: Collector) -> None:
    _try_lengths(subject, collector)
    _try_layout(subject, collector)
    subject.uneven = uneven(subject)


def _try_lengths(subject: Subject, collector: Collector) -> None:
    """See whether it takes one number of tokens alone, by its own design."""
    t = subject.tokens().shape[1]
    if subject.fixed_length or subject.takes_length or t < 4:
        return
    raised = None
    for other in (t - 1, t - 2, t + 1):
        try:
            subject(
                subject.tokens(1, t, size=1.0).new_zeros(
                    1, other, subject.sizes["d_in"]
                )
            )
            return
        except CallFailed as failure:
            if failure.mistake != "forward_raises":
                return
            raised = raised or failure
    subject.fixed_length = t
    done = f"1 sequence of {t - 1} tokens, while {t} tokens run."
    collector.add("some_sizes_raise", done, f"It raised {raised}.", "warning")
    subject.note(f"It takes only {t} tokens, and was tested with that many.")


def _try_layout(subject: Subject, collector: Collector) -> None:
    """See whether sequences attend to each other where tokens should."""
    if subject.layout != "btd" or not mixes_samples(subject) or _mixes_tokens(subject):
        return
    subject.layout = "tbd"
    if not _mixes_tokens(subject):
        subject.layout = "btd"
        return
    done = "Replaced one token, then one sequence."
    seen = (
        "Other sequences changed; other tokens of the same sequence didn't. "
        "With the first two axes swapped, it's the reverse."
    )
    meant = bool(subject.says(BATCH) or UNPACKED.search(subject.source))
    meant = meant and not subject.says(TOKENS)
    collector.add("batch_first", done, seen, "error" if meant else None)
    subject.note("The other tests passed the input as (t, b, d).")


# Comments and lines that put the batch first, as in "b, t, d = x.shape" or in brackets,
# unless others put the tokens first.
BATCH = re.compile(r"[(\[]\s*(b|bs|bsz|batch\w*)\s*[,*]", re.IGNORECASE)
UNPACKED = re.compile(
    r"^\s*(b|bs|bsz|batch\w*), ?\w+, ?\w+ = \w+\.(shape|size\()",
    re.IGNORECASE | re.MULTILINE,
)
TOKENS = re.compile(r"[(\[]\s*[a-z]\w*\s*,\s*(b|n|bs|bsz|batch\w*)\b", re.IGNORECASE)


def _mixes_tokens(subject: Subject) -> bool:
    matrix = depends(subject)
    return bool((matrix & ~torch.eye(len(matrix), dtype=torch.bool)).any())
