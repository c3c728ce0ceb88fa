"""The first call of a class, and other ways to call or build it where that fails."""

import torch

from attncheck.build import UnusableError
from attncheck.numbers import changed
from attncheck.probes.meaning import depends
from attncheck.subject import CallFailed, Failure
from attncheck.variants import narrower_heads, one_by_one, uneven

RUNS = "builds and runs"


def first_call(source, subject, collector, tests):
    """Call it once; return the subject if the other tests make sense."""
    x = subject.tokens()
    done = f"Called with {len(x)} sequences of {x.shape[1]} tokens."
    try:
        subject(x)
    except Failure as failure:
        if failure.mistake == "environment":
            raise UnusableError(f"this PyTorch cannot run it: {failure}.") from None
        if _only_full_length(subject, failure, collector, done):
            return subject
        other = _otherwise(source, subject, failure)
        if other is None:
            collector.cannot_run(RUNS, failure, done)
            collector.not_run(tests, "the layer does not run")
            return None
        subject = other
    collector.run(RUNS, _try_out, subject)
    return subject


def _otherwise(source, subject, failure):
    """Return the subject called or built in another way that runs, or None."""
    if failure.mistake not in ("forward_raises", "wrong_shape"):
        return None
    other = narrower_heads(source, subject)
    if other is not None:
        note = f"Built with head_size={source.arguments['head_size']}, which is d_in/h."
    else:
        other = one_by_one(source, subject)
        note = "It takes one sequence (t, d) at a time: each was given alone."
    if other is None:
        return None
    for name in ("notes", "reference", "skip_reference"):
        setattr(other, name, getattr(subject, name))
    other.note(note)
    return other


def _only_full_length(subject, failure, collector, done):
    """Whether it runs with exactly context_length tokens; then go on with these."""
    if failure.mistake != "forward_raises" or not subject.limit:
        return False
    if not 6 < subject.limit <= 64:
        return False
    subject.fixed_length = subject.limit
    try:
        subject(subject.tokens())
    except Failure:
        subject.fixed_length = None
        return False
    text = f"It raised {failure}. With {subject.limit} tokens it runs."
    collector.cannot_run(RUNS, CallFailed("short_inputs", text), done)
    return True


def _try_out(subject, collector):
    _try_layout(subject, collector)
    subject.uneven = uneven(subject, collector)


def _try_layout(subject, collector):
    """See whether sequences attend to each other where tokens should."""
    x = subject.tokens(seed=2)
    other = x.clone()
    other[1] = subject.tokens(seed=3)[1]
    y, z = subject(x), subject(other)
    mixes_samples = changed(y[0], z[0]) or changed(y[2], z[2])
    if subject.layout != "btd" or not mixes_samples or _mixes_tokens(subject):
        return
    subject.layout = "tbd"
    if not _mixes_tokens(subject):
        subject.layout = "btd"
        return
    done = "One token, then one sequence replaced by another."
    seen = (
        "Other sequences changed, other tokens of the same sequence did not. "
        "With the first two axes exchanged it is the other way round."
    )
    collector.add("batch_first", done, seen)
    subject.note("The other tests gave it its input as (t, b, d).")


def _mixes_tokens(subject):
    matrix = depends(subject)
    return bool((matrix & ~torch.eye(len(matrix), dtype=torch.bool)).any())
