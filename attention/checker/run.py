"""The check itself: build, call, probe, report."""

import contextlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from attention.checker import build, limits
from attention.checker.build import UnusableError
from attention.checker.collector import Collector
from attention.checker.layer import OPTIONS, described
from attention.checker.numbers import changed
from attention.checker.probes import PROBES
from attention.checker.probes.meaning import depends
from attention.checker.report import Report
from attention.checker.source import Source
from attention.checker.subject import (
    CallFailed,
    Failure,
    How,
    guarded,
    random_state_kept,
)
from attention.checker.surroundings import process_kept, quiet, settings_kept
from attention.checker.variants import (
    first_subject,
    narrower_heads,
    one_by_one,
    uneven,
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
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    strict: bool = False,
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
            weights, and no buffers. A function (module, x). False: leave the
            comparison out.
        causal: whether a token may not see the future.
        weights: function (module) that returns a dictionary with "query", "key",
            "value", if there is one "out", each a weight (out, in) or a pair of it
            and a bias, and "num_heads". For weights that the check does not find.
        call: function (module, x), where module(x) is not the way to call it.
        layout: "btd", or "tbd" where the first axis is meant for the tokens.
        time_limit: seconds that one call may take.
        select: codes or names of the mistakes to report, such as "ATT2"; others are
            left out. Nothing: all.
        ignore: codes or names of mistakes that are left out.
        strict: also fail on warnings, and where it could not be compared.
        **arguments: for the constructor, by the chapter's names or its own. Without
            any, d_in=16, d_out=16, context_length=8, dropout=0.0, num_heads=4, as far
            as the constructor takes them. And what the layer does besides attention:
            rope=True, "halves", "neighbors" or a dictionary with pairing, base and
            share; window=…; alibi=True; qk_norm= and prenorm="layer", "rms" or "l2";
            softcap=…; memory=…, the number of tokens that keys and values come from
            in cross-attention.

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
        holds Python's lock cannot be limited at all. The command line runs the class
        in a process of its own.
    """
    if not isinstance(time_limit, int | float) or not time_limit > 0:
        raise ValueError(f"time_limit must be a number of seconds, got {time_limit!r}.")
    worker = limits.Worker(time_limit)
    collector = Collector()
    report = Report(subject=_name(module_or_class), strict=strict)
    with contextlib.ExitStack() as kept:
        # Prints and warnings of the class would bury the report.
        kept.enter_context(quiet())
        kept.enter_context(_memory())
        kept.enter_context(random_state_kept(_device(module_or_class)))
        # Tensors made in inference mode, or without gradients, could not be trained.
        kept.enter_context(torch.inference_mode(False))
        kept.enter_context(torch.enable_grad())
        changes = kept.enter_context(settings_kept())
        kept.enter_context(process_kept())
        try:
            layer = described(**_layer_options(module_or_class, arguments))
            causal = causal and not layer.memory  # a memory is there from the start
            source = Source(module_or_class, arguments, causal, worker)
            report.subject = source.label
            report.notes += source.notes
            how = How(call, _layout(layout), weights, layer)
            _run(source, reference, causal, how, collector, report)
        except UnusableError as error:
            report.usable = False
            report.problem = str(error)
        except Exception as error:
            # Nobody who checks a class should meet a traceback of the checker.
            report.usable = False
            report.problem = (
                f"the checker itself failed ({type(error).__name__}: "
                f"{build.first_line(error)}). Nothing is known about the class."
            )
        finally:
            worker.close()
        _tell_settings(changes(), collector)
    if report.usable:
        report.take(collector, select, ignore)
    return report


def _layer_options(given, arguments):
    """Take what describes the layer; leave what the constructor asks for too."""
    names = []
    if inspect.isclass(given):
        with contextlib.suppress(TypeError, ValueError):
            names = list(inspect.signature(given).parameters)
    options = {name: arguments[name] for name in OPTIONS if name in arguments}
    for name in options:
        if name not in names:
            del arguments[name]
    return options


def _tell_settings(names, collector):
    # Imports of any kind change these two, PyTorch's own included.
    imports = ("the path of imports", "the environment")
    names = [name for name in names if name not in imports]
    if names:
        collector.start(RUNS)
        done = "Settings of the process before and after all tests."
        seen = f"Changed: {', '.join(names)}. They were given back."
        collector.add("changes_settings", done, seen)


def _run(source, reference, causal, how, collector, report):
    try:
        subject = first_subject(source, causal, how, source.build())
    except Failure as failure:
        done = f"Built as {source.label}."
        if failure.mistake == "environment":
            raise UnusableError(f"this PyTorch cannot run it: {failure}.") from None
        collector.cannot_run(RUNS, failure, done)
        collector.not_run(TESTS[1:], "there is no instance")
        return
    report.notes = subject.notes = source.notes
    subject.skip_reference = reference is False
    if reference is not None and reference is not False:
        subject.reference = _reference(reference, source)
    subject = _first_call(source, subject, collector)
    if subject is not None:
        _probe(subject, collector)


def _first_call(source, subject, collector):
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
            collector.not_run(TESTS[1:], "the layer does not run")
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


# Without the right to shorter inputs, these have nothing to say.
_NEED_LENGTHS = {"output shape", "shorter inputs", "state between calls"}
# Where these are found, whatever else shows may follow from them.
_STOP = {"init_missing": "its weights are not initialized"}


def _probe(subject, collector):
    for place, (test, probe) in enumerate(PROBES):
        if subject.fixed_length and test in _NEED_LENGTHS:
            collector.not_run([test], "it runs with context_length tokens alone")
            continue
        left = TESTS[place + 1 :]
        if "hangs" in collector.found:
            collector.not_run(left, "a call did not return")
            return
        for name, why in _STOP.items():
            if name in collector.found:
                collector.not_run(left, why)
                return
        # The time in calls of the class: the checker's own does not count.
        spent = subject.worker.spent
        if spent > 3 * subject.worker.seconds:
            collector.not_run(left, "the time is used up")
            seen = f"The calls so far took {spent:.1f} s, 3 · time_limit is allowed."
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
            _take_parameters(right, module)
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


def _take_parameters(right, module):
    """Give the reference the parameters: with the buffers it would copy mistakes."""
    buffers = {name: value.clone() for name, value in right.named_buffers()}
    state = {name: p.detach() for name, p in module.named_parameters()}
    missing = [name for name, _ in right.named_parameters() if name not in state]
    unknown = set(state) - {name for name, _ in right.named_parameters()}
    if missing or unknown:
        raise RuntimeError(
            f"its parameters have other names. Missing key(s): "
            f"{', '.join(missing) or 'none'}; unexpected: "
            f"{', '.join(sorted(unknown)) or 'none'}"
        )
    right.load_state_dict(state | buffers, strict=False)


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
