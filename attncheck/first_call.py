"""The first call of a class, and other ways to call or build it where that fails."""

import contextlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from math import prod

import torch

from attncheck.build import UnusableError
from attncheck.calling import (
    CAUSAL,
    Way,
    example_call,
    masked_ways,
    plain_way,
    ways,
)
from attncheck.collector import Collector, NotCompared
from attncheck.numbers import changed
from attncheck.probes.compare import Comparison
from attncheck.probes.meaning import depends
from attncheck.source import HEAD_WIDTHS, Source
from attncheck.subject import CallFailed, Failure, How, Subject
from attncheck.trace import Watch
from attncheck.variants import (
    first_subject,
    narrower_heads,
    one_by_one,
    runs,
    uneven,
)

RUNS = "builds and runs"
COUNTS = re.compile("len|patch|token|seq|block|pos")
LISTS = re.compile(r"\[(\d+(?:, \d+)+)\]")  # sizes in an error
SETTINGS = 8  # that are guessed one after another
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
        if _refuses(failure):
            other = _otherwise(source, subject, failure, collector, done)
        else:
            other = None
        if other is None:
            if isinstance(failure, UnusableError):
                failure = CallFailed("forward_raises", str(failure).rstrip("."))
            collector.cannot_run(RUNS, failure, done)
            if failure.mistake == "forward_raises":
                collector.needed = (
                    "say how to call it: fill in the rest of "
                    f"call={example_call(subject.pristine)}"
                )
            collector.not_run(tests, "the layer doesn't run")
            return None
        subject = other
    if subject.causal and subject.how.call is None:
        _give_mask(subject, collector)
    if not any(result.test == RUNS for result in collector.results):
        collector.run(RUNS, _try_out, subject)
    plain = subject.how.call is None and subject.how.way is None
    if subject.layout == "tbd" and plain and subject.causal:
        _give_mask(subject, collector)  # those that were tried had the batch's size
        if subject.uneven is not None:
            _set(subject.uneven, subject.how, subject.causal)
    return subject


def _refuses(failure: Failure | UnusableError) -> bool:
    return isinstance(failure, UnusableError) or failure.mistake in (
        "forward_raises", "wrong_shape")  # fmt: skip


def _otherwise(
    source: Source,
    subject: Subject,
    failure: Failure | UnusableError,
    collector: Collector,
    done: str,
) -> Subject | None:
    """Return the subject called or built in another way that runs, or None."""
    tries = [_more_settings, _another_way, _full_length]
    if not isinstance(failure, UnusableError):
        tries += [_another_width, _narrower, _alone]
    for attempt in [*tries, _other_guesses, _wider, _own_defaults]:
        other = attempt(source, subject, failure)
        if other is None:
            continue
        if other is not subject:
            for name in ("reference", "skip_reference", "notes"):
                setattr(other, name, getattr(subject, name))
        if other.fixed_length and not other.how.way:
            text = f"It raised {failure}. It runs with {other.fixed_length} tokens."
            collector.cannot_run(RUNS, CallFailed("short_inputs", text), done)
        return other
    return None


def _more_settings(
    source: Source, subject: Subject, failure: Failure | UnusableError
) -> Subject | None:
    """Return the subject with settings of its config that forward alone reads."""
    for _ in range(SETTINGS):
        if not source.ask(str(failure)):
            return None
        subject = first_subject(source, subject.causal, subject.how, source.build())
        try:
            subject(subject.tokens())
        except CallFailed as other:
            failure = other
            continue
        return subject
    return None


def _narrower(
    source: Source, subject: Subject, failure: Failure | UnusableError
) -> Subject | None:
    other = narrower_heads(source, subject)
    if other is not None:
        name = next(n for n in HEAD_WIDTHS if n in source.arguments)
        size = source.arguments[name]
        subject.note(f"Built with {name}={size}, which is d_in/h.")
    return other


def _other_guesses(
    source: Source, subject: Subject, failure: Failure | UnusableError
) -> Subject | None:
    """Return the subject built with other values for what was guessed, or None."""
    for module in source.built_with_others():
        with contextlib.suppress(Failure, UnusableError):
            other = first_subject(source, subject.causal, subject.how, module)
            tries = (_full_length, _another_way)
            if runs(other) or any(one(source, other, failure) for one in tries):
                return _with_notes(subject, other)
    return None


def _with_notes(subject: Subject, other: Subject) -> Subject:
    """Return the other subject, and keep in the first one's notes how it is called."""
    for text in other.notes:
        subject.note(text)
    return other


def _wider(
    source: Source, subject: Subject, failure: Failure | UnusableError
) -> Subject | None:
    """Return the subject with wider tokens, where a head would have none of them."""
    ours = [n for n in ("d_in", "d_out") if n in source.mapped and source.chose(n)]
    ours = [n for n in ours if source.chose(source.mapped[n])]
    if not ours or not re.search(r"\b0\b", str(failure)):
        return None
    kept = dict(source.arguments), dict(source.sizes)
    for width in (64, 128, 256):
        source.arguments |= {source.mapped[n]: width for n in ours}
        source.sizes |= dict.fromkeys(ours, width)
        with contextlib.suppress(Failure, UnusableError):
            other = first_subject(source, subject.causal, subject.how, source.build())
            if runs(other) is not None or _another_way(source, other, failure):
                subject.note(
                    f"Built with a width of {width}; {kept[1]['d_in']} failed."
                )
                return _with_notes(subject, other)
    source.arguments.clear()
    source.arguments |= kept[0]
    source.sizes |= kept[1]
    return None


def _alone(
    source: Source, subject: Subject, failure: Failure | UnusableError
) -> Subject | None:
    other = one_by_one(source, subject)
    if other is not None:
        subject.note("It takes one sequence (t, d) at a time: each was passed alone.")
    return other


def _full_length(
    source: Source, subject: Subject, failure: Failure | UnusableError
) -> Subject | None:
    """Return the subject where it runs with one number of tokens alone."""
    if isinstance(failure, UnusableError):  # it wasn't called, as nobody knew how
        kept = subject.how
        subject.how = replace(kept, way=next(_ways(subject), None))
        try:
            subject(subject.tokens())
        except (Failure, UnusableError) as other:
            failure = other
        subject.how = kept
    text, width = str(failure), subject.width
    lists = [[int(n) for n in one.split(",")] for one in LISTS.findall(text)]
    whole = [n for n in map(prod, lists) for n in (n // (3 * width), n)]
    # As of an image's patches and a token for its class.
    counts = [v for n, v in source.arguments.items() if COUNTS.search(n)]
    named = [n + 1 for n in counts if type(n) is int]
    lengths = [subject.limit or 0, *_numbers(failure), *whole, *named, 16]
    for length in dict.fromkeys(lengths):
        if 4 <= length <= 64:
            subject.fixed_length = length
            with contextlib.suppress(UnusableError):
                if runs(subject) is not None:
                    return subject
                continue
            if _another_way(source, subject, failure) is not None:
                return subject
    subject.fixed_length = None
    return None


def _another_width(
    source: Source, subject: Subject, failure: Failure | UnusableError
) -> Subject | None:
    """Return the subject where it runs with tokens as wide as the error says."""
    known = subject.sizes["d_in"]
    for width in _numbers(failure):
        subject.sizes["d_in"] = width
        if runs(subject) is not None:
            return subject
    subject.sizes["d_in"] = known
    return None


def _numbers(failure: Failure | UnusableError) -> list[int]:
    found = [int(number) for number in re.findall(r"(?<![\w.])\d+", str(failure))]
    found += [int(n) for pair in re.findall(r"(\d+)x(\d+)", str(failure)) for n in pair]
    return [number for number in dict.fromkeys(found) if 2 < number <= 1024]


def _own_defaults(
    source: Source, subject: Subject, failure: Failure | UnusableError
) -> Subject | None:
    """Return the subject built with the defaults of its constructor, or None."""
    if not source.own_defaults():
        return None
    try:
        other = first_subject(source, subject.causal, subject.how, source.build())
        if runs(other) is None and _another_way(source, other, failure) is None:
            return None
    except (Failure, UnusableError):
        return None
    subject.note("Built with its constructor's default values.")
    return _with_notes(subject, other)


def _another_way(
    source: Source, subject: Subject, failure: Failure | UnusableError
) -> Subject | None:
    """Return the subject where forward runs with more than x, or None."""
    if subject.how.call is not None or subject.layer.documents:
        return None
    turned: list[tuple[How, bool]] = []
    leaking: tuple[How, bool] | None = None
    kept = subject.how, subject.causal
    for optional in (False, True):
        for way in _ways(subject, optional):
            if subject.causal and _of_itself(subject, way):
                return _told(subject)
            if _given(subject, way) is None:
                continue
            if subject.causal and (way.masked or way.opened) and _leaks(subject):
                leaking = leaking or (subject.how, True)
            elif (way.masked and not _takes_one(subject)) or (
                way.opened and (not _precise(subject) or _blank(subject))
            ):
                leaking = leaking or (subject.how, subject.causal)
            elif way.turns:
                turned.append((subject.how, subject.causal))
            else:
                return _told(subject)
            _set(subject, *kept)
        if turned or leaking:
            break
    for how in turned:
        _set(subject, *how)
        if _is_attention(subject):
            return _told(subject)
    first = turned[0] if turned else leaking
    if first:
        _set(subject, *first)
        return _told(subject)
    return None


def _of_itself(subject: Subject, way: Way) -> bool:
    """Whether it takes keys beside queries, and hides what comes later in them."""
    if not way.memory or subject.layer.memory:
        return False
    kept = subject.how
    both = (*way.tokens, *way.memory.split())
    one = replace(way, tokens=both, memory=None, memory_width=None)
    if _given(subject, one) is not None and not _leaks(subject):
        return True
    _set(subject, kept, True)
    return False


def _ways(subject: Subject, optional: bool = False) -> Iterator[Way]:
    widths = [None, *_in_widths(subject)]
    has_memory, rope = bool(subject.layer.memory), subject.layer.rope
    made = ways(subject.pristine, subject.causal, widths, has_memory, optional)
    return (replace(way, base=rope.base) for way in made) if rope else made


def _takes_one(subject: Subject) -> bool:
    """Whether it runs with one token alone, or with one number of tokens by design."""
    try:
        subject(subject.tokens()[:, :1])
    except CallFailed:
        return bool(subject.fixed_length)
    return True


def _precise(subject: Subject) -> bool:
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


def _blank(subject: Subject) -> bool:
    """Whether all weights are alike, as where a mask of the wrong kind hides all."""
    watch = Watch(module := subject.copy())
    y = subject(subject.tokens(), module, mode=watch)
    made = [weights for _, weights, _ in watch.seen.softmaxes if weights.shape[-1] > 1]
    return not changed(y, y[:1, :1].expand_as(y)) or any(
        one.isnan().any() or not changed(one, one[..., :1].expand_as(one), 1e-6)
        for one in made
    )


def _told(subject: Subject) -> Subject:
    way = subject.how.way
    assert way is not None, "it was called in a way that was found"
    if words := way.words():
        subject.note(f"forward was called with {words}.")
    return subject


def _is_attention(subject: Subject) -> bool:
    with contextlib.suppress(NotCompared):
        Comparison(subject).decide(found := Collector())
        return not found.found
    return False


def _in_widths(subject: Subject) -> list[int]:
    """Return the widths that the module's matrices take, but for that of x."""
    widths = [p.shape[1] for p in subject.pristine.parameters() if p.dim() == 2]
    return [w for w in dict.fromkeys(widths) if w != subject.sizes["d_in"]]


def _given(subject: Subject, way: Way) -> Subject | None:
    """Return the subject called in this way if it runs so; else leave it as it is."""
    how, causal = subject.how, subject.causal
    layer = subject.layer
    if way.memory:
        layer = replace(layer, memory=layer.memory or MEMORY)
    _set(subject, replace(how, way=way, layer=layer), causal and not way.memory)
    if runs(subject) is not None:
        return subject
    _set(subject, how, causal)
    return None


def _set(subject: Subject, how: How, causal: bool) -> None:
    subject.how, subject.layer, subject.causal = how, how.layer, causal


def _give_mask(subject: Subject, collector: Collector) -> None:
    """Give the causal mask that it takes to a class that sees the future without.

    A class that promises to be causal by itself is told on; of another, the verdict
    says so.
    """
    way = subject.how.way or plain_way(subject.pristine)
    if way is None or way.masked or not _leaks(subject):
        if way is not None and way.masked:
            _say_masked(subject, collector, way)
        return
    how, acting, open_ = subject.how, [], subject(subject.tokens())
    found = list(masked_ways(subject.pristine, way))
    for masked, narrow in [*product(found, (False,)), *product(found, (True,))]:
        if _given(subject, masked) is not None:
            if not _leaks(subject) and (_takes_one(subject) or narrow):
                _say_masked(subject, collector, masked)
                return
            if changed(open_, subject(subject.tokens())):
                acting.append(masked)
            _set(subject, how, True)
    for masked in acting:  # it may hide too little
        if _given(subject, masked) is not None:
            with contextlib.suppress(NotCompared):
                Comparison(subject).decide(more := Collector())
                if {*more.causes} & HIDES_LITTLE and len(more.causes) == 1:
                    _say_masked(subject, collector, masked)
                    return
            _set(subject, how, True)


HIDES_LITTLE = {"mask_fill_finite", "mask_fill_zero", "mask_added_as_ones",
                "mask_after_softmax"}  # fmt: skip


def _say_masked(subject: Subject, collector: Collector, way: Way) -> None:
    """Say that it is causal with a mask alone, and whether it promised more."""
    _told(subject)
    name = next((n for n, kind in way.others if isinstance(kind, tuple)
                 and kind[0] == "mask"), "")  # fmt: skip
    if not name:
        return
    collector.tried.add(name)
    if subject.promised_causal or _promises(subject):
        collector.start(RUNS)
        done = "Called it without a mask."
        collector.add("mask_missing", done, f"It leaks the future unless `{name}` is "
                      f"given, though it promises to be causal.")  # fmt: skip
    else:
        subject.promise = f"causal only with `{name}`"


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
            subject(subject.tokens(1, t, size=1.0).new_zeros(1, other, subject.width))
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
    if subject.layout != "btd" or not _mixes_samples(subject) or _mixes_tokens(subject):
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


# By these, the batch comes first, as it does in "b, t, d = x.shape" or in brackets,
# unless others say that the tokens do.
BATCH = re.compile(r"[(\[]\s*(b|bs|bsz|batch\w*)\s*[,*]", re.IGNORECASE)
UNPACKED = re.compile(
    r"^\s*(b|bs|bsz|batch\w*), ?\w+, ?\w+ = \w+\.(shape|size\()",
    re.IGNORECASE | re.MULTILINE,
)
TOKENS = re.compile(r"[(\[]\s*[a-z]\w*\s*,\s*(b|n|bs|bsz|batch\w*)\b", re.IGNORECASE)


def _mixes_samples(subject: Subject) -> bool:
    x = subject.tokens(seed=2)
    other = x.clone()
    other[1] = subject.tokens(seed=3)[1]
    y, z = subject(x), subject(other)
    return changed(y[0], z[0]) or changed(y[2], z[2])


def _mixes_tokens(subject: Subject) -> bool:
    matrix = depends(subject)
    return bool((matrix & ~torch.eye(len(matrix), dtype=torch.bool)).any())
