"""The check itself: build, call, probe, report."""

import contextlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from attncheck import build, limits
from attncheck.build import UnusableError
from attncheck.collector import Collector
from attncheck.first_call import RUNS, first_call
from attncheck.given_reference import reference_from
from attncheck.layer import OPTIONS, described
from attncheck.probes import PROBES
from attncheck.report import Report
from attncheck.source import Source
from attncheck.subject import (
    WINDOW,
    Failure,
    How,
    Subject,
    random_state_kept,
)
from attncheck.surroundings import process_kept, quiet, settings_kept
from attncheck.variants import (
    first_subject,
)

Probe = Callable[[Subject, Collector], None]
Probes = Sequence[tuple[str, Probe]]
COMPARISON = "same output as attention with these weights"
RIGHT = (
    "no option covers what this layer does, so write a correct class or function with "
    "the same parameter names, and pass it as reference=, or on the command line as "
    "--reference right.py:RightAttention"
)


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
            comparison out, so that nothing is judged.
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
        strict: also fail on warnings.
        **arguments: for the constructor, by the chapter's names or its own. Without
            any, d_in=16, d_out=16, context_length=8, dropout=0.0, num_heads=4, as far
            as the constructor takes them. And what the layer does besides attention:
            rope=True, "halves", "neighbors", "other-way" or a dictionary with
            pairing, base, share and way; window=…, and first=… tokens that stay
            visible behind it; exclusive=True, where no token sees itself; alibi=True;
            qk_norm=, prenorm= and postnorm="layer", "rms" or "l2"; residual=True, or
            "late" where the input is added behind the norm of the output;
            norm_over="all" for a norm over all heads; norm_late=True for one behind
            the rotation; softcap=…; scale="1/d", "none"
            or a number; bias=function (module, t) that gives what is added to the
            scores; memory=…, the number of tokens that keys and values come from in
            cross-attention; sink=True, one learned score for each head, in a parameter
            with "sink" in its name, or "zero"; documents=True, where forward takes the
            number of each token's document, (b, t), and so does ``call``. What was
            declared excuses nothing: every difference from it fails.

    Returns:
        :class:`attncheck.Report`, which prints as text and shows as a table.
        Whatever the class does, this function does not raise;
        ``report.raise_for_failures()`` does.

    Raises:
        ValueError: ``time_limit`` is no number of seconds.

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
    given = {"module_or_class": module_or_class, "arguments": dict(arguments)}
    given |= {"causal": False} if not causal else {}
    given |= {"layout": layout} if layout != "btd" else {}
    report = checked(
        module_or_class, reference, causal, weights=weights, call=call, layout=layout,
        time_limit=time_limit, select=select, ignore=ignore, strict=strict, **arguments,
    )  # fmt: skip
    if report.not_compared and report.proposal:
        report.command = _command(report, given)
    return report


def assert_attention(module_or_class: object, **arguments: Any) -> None:
    """Assert that a class or module computes attention, as :mod:`torch.testing` does.

    Args:
        module_or_class: what :func:`check` takes.
        **arguments: what :func:`check` takes, such as ``rope="halves"``.

    Raises:
        CheckFailed: an ``AssertionError`` with the report, unless the verdict is
            "passed"; so what could not be judged raises, too.

    Example:
        >>> import attention, attncheck
        >>> attncheck.assert_attention(attention.MultiHeadAttention)
    """
    __tracebackhide__ = True
    check(module_or_class, **arguments).raise_for_failures()


def checked(
    module_or_class: object,
    reference: object = None,
    causal: bool = True,
    *,
    own: Mapping[str, Any] | None = None,
    own_config: Mapping[str, Any] | None = None,
    contract: Probes = (),
    weights: Callable[[nn.Module], Mapping[str, Any]] | None = None,
    call: Callable[[nn.Module, torch.Tensor], torch.Tensor] | None = None,
    layout: str = "btd",
    time_limit: float = 10.0,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    strict: bool = False,
    **arguments: Any,
) -> Report:
    """Do what :func:`check` does, with arguments of the constructor apart.

    ``own`` holds these, whatever names they have; ``own_config`` the settings for a
    constructor that takes one object with all of them. ``contract`` holds the tests of
    a preset, which raise ``UnusableError`` where they can't be run: then all others
    are, and the class isn't judged unless they find a mistake.

    Raises:
        ValueError: the time limit is no positive number.
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
            arguments |= own or {}
            if layer.window and inspect.isclass(module_or_class):
                arguments |= _window(module_or_class, arguments, layer.window)
            if own_config is None and isinstance(arguments.get("config"), Mapping):
                own_config = arguments.pop("config")  # as --config does
            source = Source(module_or_class, arguments, causal, worker, own_config)
            report.subject = source.label
            report.notes += source.notes
            how = How(call, _layout(layout), weights, layer)
            _run(source, reference, causal, how, collector, report, contract)
        except Failure as failure:  # its config could not be found out
            collector.cannot_run(RUNS, failure, f"Built as {report.subject}.")
            collector.not_run(_names(contract), "there is no instance")
        except UnusableError as error:
            report.usable = False
            report.problem = str(error)
        except Exception as error:
            # Nobody who checks a class should meet a traceback of the checker.
            report.usable = False
            report.problem = (
                f"the checker itself failed ({type(error).__name__}: "
                f"{build.first_line(error)}). It says nothing about your class."
            )
        finally:
            worker.close()
        _tell_settings(changes(), collector)
    if report.usable:
        collector.hand_over(report, select, ignore)
        _tell_comparison(report, collector)
        if never := worker.branches.note():
            report.notes.append(never)
    return report


def _tell_comparison(report: Report, collector: Collector) -> None:
    """Say why there was no comparison, where the test of it did not say so."""
    if not collector.compared and not report.not_compared:
        ended = {result.test: result.why for result in collector.results}
        why = ended.get(COMPARISON) or "the tests ended before that"
        report.not_compared = (
            f"the output wasn't compared with correct attention: {why}"
        )
    if report.not_compared:
        report.proposal = collector.proposal
        report.needed = "" if report.proposal else collector.needed or RIGHT


def _command(report: Report, given: dict[str, Any]) -> str:
    """Return the call that would have the class judged."""
    words = [_name(given.pop("module_or_class"))]
    named = given.pop("arguments") | given
    for name, value in (named | report.proposal).items():
        if name in ("weights", "bias", "call") and isinstance(value, str):
            pass
        else:
            value = getattr(value, "__name__", None) or repr(value)
        words.append(f"{name}={value}")
    return f"attention.check({', '.join(words)})"


def _layer_options(given: object, arguments: dict[str, Any]) -> dict[str, Any]:
    """Take what describes the layer; leave what the constructor asks for too."""
    names = []
    if inspect.isclass(given):
        with contextlib.suppress(TypeError, ValueError):
            names = list(inspect.signature(given).parameters)
    options = {name: arguments[name] for name in OPTIONS if name in arguments}
    if isinstance(options.get("bias"), bool):  # that of the projections
        del options["bias"]
    for name in options:
        # A scale in words, as "1/d", is no number that a constructor multiplies with.
        if name not in names or (name == "scale" and isinstance(options[name], str)):
            del arguments[name]
    return options


def _window(given: type, arguments: Mapping[str, Any], size: int) -> dict[str, int]:
    """Return the declared window by the constructor's name, if it has none of its own.

    It needs one, or by default there is none.
    """
    with contextlib.suppress(TypeError, ValueError):
        needed = [
            name
            for name, one in inspect.signature(given).parameters.items()
            if one.default in (one.empty, None) and WINDOW.fullmatch(name)
        ]
        return {name: size for name in needed if name not in arguments}
    return {}


def _tell_settings(names: list[str], collector: Collector) -> None:
    # Imports of any kind change these two, PyTorch's own included.
    imports = ("the path of imports", "the environment")
    names = [name for name in names if name not in imports]
    if names:
        collector.start(RUNS)
        done = "Compared the process's settings before and after the tests."
        seen = f"Changed: {', '.join(names)}. They're restored now."
        collector.add("changes_settings", done, seen)


def _run(
    source: Source,
    reference: object,
    causal: bool,
    how: How,
    collector: Collector,
    report: Report,
    contract: Probes,
) -> None:
    try:
        subject = first_subject(source, causal, how, _built(source))
    except Failure as failure:
        done = f"Built as {source.label}."
        if failure.mistake == "environment":
            raise UnusableError(f"this PyTorch cannot run it: {failure}.") from None
        collector.cannot_run(RUNS, failure, done)
        collector.not_run(_names(contract), "there is no instance")
        return
    if _adds_zero(subject) and not how.layer.sink:
        subject.layer = replace(how.layer, sink="zero")
    report.notes = subject.notes = source.notes
    subject.skip_reference = reference is False
    plain = replace(how.layer, memory=None).plain
    collector.undeclared = plain and reference is None
    if reference is not None and reference is not False:
        subject.reference = reference_from(reference, source)
    running = first_call(source, subject, collector, _names(contract))
    asks = source.plan.asks if source.is_class else ""
    if running is not None:
        _judge(running, collector, contract)
        failed = any(one.severity == "error" for one in collector.findings())
        if not (asks and source.plan.config) or (collector.compared and not failed):
            return
    if asks:
        raise UnusableError(asks)


# Without the right to shorter inputs, these have nothing to say.
_NEED_LENGTHS = {"output shape", "shorter inputs", "state between calls"}


def _names(contract: Probes) -> list[str]:
    return [test for test, _ in contract or PROBES]


def _judge(subject: Subject, collector: Collector, contract: Probes) -> None:
    """Run the tests of a preset, or all others where there is none or it can't be."""
    if not contract:
        _probe(subject, collector, PROBES)
        return
    try:
        _probe(subject, collector, contract)
        ended = {one.test: one.outcome for one in collector.results}
        collector.compared = any(ended[n] != "not run" for n, _ in contract)
    except UnusableError as error:
        needed = collector.needed
        collector.not_run(_names(contract), str(error))
        _probe(subject, collector, PROBES)
        collector.not_compared = (
            f"{error}, so the tests of the preset couldn't run, and those of check "
            f"ran instead"
        )
        collector.proposal, collector.needed = {}, needed


def _probe(subject: Subject, collector: Collector, probes: Probes) -> None:
    for place, (test, probe) in enumerate(probes):
        if subject.fixed_length and test in _NEED_LENGTHS:
            collector.not_run([test], "it runs only with context_length tokens")
            continue
        left = [name for name, _ in probes[place + 1 :]]
        if "hangs" in collector.found:
            collector.not_run(left, "a call didn't return")
            return
        # The time in calls of the class: the checker's own does not count.
        spent = subject.worker.spent
        if spent > 3 * subject.worker.seconds:
            collector.not_run(left, "time ran out")
            seen = f"Calls took {spent:.1f} s so far; 3 · time_limit is allowed."
            collector.add("slow", "Ran the tests one by one.", seen)
            return
        collector.run(test, probe, subject)


def _built(source: Source) -> nn.Module:
    """Return the module, in other sizes where the constructor refuses the usual."""
    try:
        return source.build()
    except Failure as failure:
        if failure.mistake != "constructor_raises":
            raise
        return source.build_otherwise(failure)


def _adds_zero(subject: Subject) -> bool:
    """Whether it is PyTorch's own layer with a key and a value of zeros added."""
    parts = subject.pristine.modules()
    return any(getattr(part, "add_zero_attn", False) for part in parts)


def _layout(layout: str) -> str:
    if layout not in ("btd", "tbd"):
        raise UnusableError(
            f'layout must be "btd" or "tbd", but got {layout!r}. "tbd" is for layers '
            f"whose first axis counts tokens."
        )
    return layout


def _name(given: object) -> str:
    return getattr(given, "__name__", type(given).__name__)


def _device(given: object) -> torch.device | None:
    if isinstance(given, nn.Module):
        for parameter in given.parameters():
            return parameter.device
    return None


def _memory() -> contextlib.AbstractContextManager[None]:
    # A GPU's driver reserves far more addresses than it uses: no limit there.
    return contextlib.nullcontext() if torch.cuda.is_available() else limits.memory()
