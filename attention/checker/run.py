"""The check itself: build, call, probe, report."""

import contextlib
import random
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from attention.checker import build, limits
from attention.checker.build import UnusableError
from attention.checker.collector import Collector
from attention.checker.probes import PROBES
from attention.checker.probes.basics import changed
from attention.checker.probes.meaning import depends
from attention.checker.report import Report
from attention.checker.source import Source, set_dropout
from attention.checker.subject import (
    CallFailed,
    Failure,
    Subject,
    guarded,
    random_state_kept,
)

RUNS = "builds and runs"
TESTS = [RUNS, *(test for test, _ in PROBES)]


def check(
    module_or_class: object,
    reference: object = None,
    causal: bool = True,
    *,
    weights: Callable[[nn.Module], Mapping[str, Any]] | None = None,
    call: Callable[[nn.Module, torch.Tensor], torch.Tensor] | None = None,
    layout: str = "btd",
    time_limit: float = 10.0,
    **arguments: Any,
) -> Report:
    """Test an attention class by what it does, and name the mistake.

    Works for any module that maps (b, t, d_in) to (b, t, d_out). The module given is
    copied; it, its mode and the global random state stay as they are. Weights of the
    copy are drawn anew, so that mistakes show.

    Args:
        module_or_class: a class derived from ``nn.Module``, an instance, or a
            function of x.
        reference: what is right. None: attention computed from the module's own
            weights. A module or class with the same parameter names: it gets the
            weights. A function (module, x). False: leave the comparison out.
        causal: whether a token may not see the future.
        weights: function (module) that returns a dictionary with "query", "key",
            "value", if there is one "out", each a weight (out, in) or a pair of it
            and a bias, and "num_heads". For names that the check does not know.
        call: function (module, x), where module(x) is not the way to call it.
        layout: "btd", or "tbd" where the first axis is meant for the tokens.
        time_limit: seconds that one call may take.
        **arguments: for the constructor, by the chapter's names or its own. Without
            any, d_in=16, d_out=16, context_length=8, dropout=0.0, num_heads=4, as far
            as the constructor takes them.

    Returns:
        :class:`attention.checker.Report`, which prints as text and shows as a table.
        Whatever the class does, this function does not raise;
        ``report.raise_for_failures()`` does.

    Example:
        >>> import attention
        >>> attention.check(attention.MultiHeadAttention).ok
        True

    Note:
        The time limit is kept by a second thread. Python code that loops is stopped;
        a C function that never returns is left behind in its thread, and one that
        holds Python's lock cannot be limited at all.
    """
    if not isinstance(time_limit, int | float) or not time_limit > 0:
        raise ValueError(f"time_limit must be a number of seconds, got {time_limit!r}.")
    worker = limits.Worker(time_limit)
    collector = Collector()
    report = Report(subject=_name(module_or_class))
    # Prints and warnings of the class would bury the report.
    # Tensors made in inference mode, or without gradients, could not be trained.
    modes = torch.inference_mode(False), torch.enable_grad()
    kept = random_state_kept(_device(module_or_class))
    with _quiet(), _memory(), kept, modes[0], modes[1]:
        try:
            source = Source(module_or_class, arguments, causal, worker)
            report.subject = source.label
            report.notes += source.notes
            how = {"call": call, "layout": _layout(layout), "weights": weights}
            _run(source, reference, causal, how, collector, report)
        except UnusableError as error:
            report.usable = False
            report.problem = str(error)
        finally:
            worker.close()
    if report.usable:
        report.findings = collector.findings()
        report.results = collector.results
    return report


def _run(source, reference, causal, how, collector, report):
    try:
        subject = _subject(source, causal, how, source.build())
    except Failure as failure:
        done = f"Built as {source.label}."
        collector.cannot_run(RUNS, failure, done)
        collector.not_run(TESTS[1:], "there is no instance")
        return
    report.notes = subject.notes = source.notes
    subject.skip_reference = reference is False
    if reference is not None and reference is not False:
        subject.reference = _reference(reference, source)
    if not _first_call(subject, collector):
        return
    _probe(subject, collector)


def _subject(source, causal, how, module):
    if not isinstance(module, nn.Module):
        raise UnusableError(f"{source.label} builds no torch.nn.Module.")
    source.complete_sizes(module)
    subject = Subject(module, source.worker, causal, dict(source.sizes), **how)
    subject.limit = source.sizes["context_length"]
    subject.variant = lambda **changes: _variant(source, subject, **changes)
    return subject


def _variant(source, subject, **changes):
    """Return the subject with other arguments or another seed, or None."""
    how = {"call": subject._call, "layout": subject.layout}
    dropout = changes.pop("dropout", None)
    if not source.is_class and changes:
        return None
    if not set(changes) <= {"seed", *source.mapped}:
        return None
    if dropout is not None and "dropout" in source.mapped:
        changes["dropout"] = dropout
    try:
        module = source.build(**changes)
    except CallFailed:
        return None
    by_argument = dropout is None or "dropout" in changes
    if not by_argument and not set_dropout(module, dropout):
        return None
    sizes = dict(subject.sizes)
    sizes |= {name: value for name, value in changes.items() if name in sizes}
    weights = subject._weights
    twin = Subject(
        module, subject.worker, subject.causal, sizes, weights=weights, **how
    )
    twin.limit, twin.keeps_state = subject.limit, subject.keeps_state
    twin.fixed_length = subject.fixed_length
    return twin


def _first_call(subject, collector):
    """Call it once; return whether the other tests make sense."""
    x = subject.tokens()
    done = f"Called with {len(x)} sequences of {x.shape[1]} tokens."
    try:
        subject(x)
    except Failure as failure:
        if not _only_full_length(subject, failure, collector, done):
            collector.cannot_run(RUNS, failure, done)
            collector.not_run(TESTS[1:], "the layer does not run")
            return False
        return True
    collector.run(RUNS, _try_out, subject)
    return True


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
    subject.uneven = _uneven(subject, collector)


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


def _uneven(subject, collector):
    """Return the subject with d_in, d_out, h and d_head all different, if it can be.

    With equal sizes, a mistake about one of them would not show.
    """
    d_in, d_out = subject.sizes["d_in"], subject.sizes["d_out"]
    wider = 2 * (subject.sizes["num_heads"] or 1)
    if d_out is None:
        return _runs(subject.variant(d_in=d_in + wider))
    if d_in != d_out or d_in < 4:
        return None
    other = subject.variant(d_in=d_in - d_in // 4)
    if other is None:
        return None
    try:
        other(other.tokens())
    except CallFailed as failure:
        done = f"Built with d_in={other.sizes['d_in']} and d_out={d_out}."
        collector.add("widths_mixed_up", done, f"It raised {failure}.")
        return None
    return _runs(subject.variant(d_in=d_in - d_in // 4, d_out=d_out + wider)) or other


def _runs(subject):
    """Return the subject if there is one that runs."""
    try:
        if subject is not None:
            subject(subject.tokens())
    except CallFailed:
        return None
    return subject


# Without the right to shorter inputs, these have nothing to say.
_NEED_LENGTHS = {"output shape", "shorter inputs", "state between calls"}


def _probe(subject, collector):
    started = time.monotonic()
    for place, (test, probe) in enumerate(PROBES):
        if subject.fixed_length and test in _NEED_LENGTHS:
            collector.not_run([test], "it runs with context_length tokens alone")
            continue
        if "hangs" in collector.found:
            collector.not_run(TESTS[place + 1 :], "a call did not return")
            return
        if time.monotonic() - started > 3 * subject.worker.seconds:
            collector.not_run(TESTS[place + 1 :], "the time is used up")
            spent = time.monotonic() - started
            seen = f"The tests so far took {spent:.1f} s, 3 · time_limit is allowed."
            collector.add("slow", "All tests one after the other.", seen)
            return
        collector.run(test, probe, subject)


def _reference(given, source):
    """Return a function (module, x) that computes what is right.

    Raises:
        UnusableError: it is no module, class or function, or its weights differ.
    """
    if isinstance(given, type) and issubclass(given, nn.Module):
        twin = Source(given, dict(source.arguments), True, source.worker)
        try:
            given = twin.build()
        except Failure as failure:
            raise UnusableError(f"the reference cannot be built: {failure}.") from None
    if isinstance(given, nn.Module):
        right = build.duplicate(given).eval()

        def function(module, x):
            right.load_state_dict(module.state_dict())
            return right(x)
    elif callable(given):
        function = given
    else:
        raise UnusableError(
            f"reference must be a module, a class, a function (module, x), None or "
            f"False, but got {type(given).__name__}."
        )

    def guarded_function(module, x):
        def job():
            with torch.no_grad():
                return function(module.eval(), x.clone())

        try:
            y = guarded(source.worker, job, "forward_raises")
        except Failure as failure:
            raise UnusableError(f"the reference failed: {failure}.") from None
        return y[0] if isinstance(y, tuple | list) else y

    return guarded_function


def _layout(layout):
    if layout not in ("btd", "tbd"):
        raise UnusableError(
            f'layout must be "btd" or "tbd", but got {layout!r}. "tbd" is for layers '
            f"whose first axis counts tokens."
        )
    return layout


def _name(given):
    return getattr(given, "__name__", type(given).__name__)


def _device(given):
    if isinstance(given, nn.Module):
        for parameter in given.parameters():
            return parameter.device
    return None


def _memory():
    # A GPU's driver reserves far more addresses than it uses: no limit there.
    return contextlib.nullcontext() if torch.cuda.is_available() else limits.memory()


class _Nowhere:
    """Takes what is printed and forgets it."""

    def write(self, text):
        return len(text)

    def flush(self):
        pass


@contextlib.contextmanager
def _quiet():
    """Hide prints and warnings; give Python's own random state back."""
    state = random.getstate()
    nowhere = _Nowhere()
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(nowhere),
            contextlib.redirect_stderr(nowhere),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        random.setstate(state)
