"""The check itself: build, call, probe, report."""

import contextlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attncheck import limits
from attncheck.arguments import open_arguments
from attncheck.collector import Collector
from attncheck.errors import Failure, UnusableError, first_line
from attncheck.first_call import RUNS, first_call
from attncheck.given_reference import reference_from
from attncheck.layer import OPTIONS, describe_layer
from attncheck.probes import PROBES
from attncheck.report import Report
from attncheck.source import Source
from attncheck.subject import WINDOW, How, Subject, keep_random_state
from attncheck.surroundings import keep_process, keep_settings, quiet
from attncheck.variants import first_subject

GONE = {
    "alibi": "pass the bias of the scores as bias=",
    "softcap": "pass a correct class as reference=",
    "postnorm": "pass a correct class as reference=",
    "exclusive": "pass a correct class as reference=",
    "first": "pass a correct class as reference=",
    "norm_over": "pass a correct class as reference=",
    "norm_late": "pass a correct class as reference=",
    "select": "choose among report.findings",
    "ignore": "choose among report.findings",
    "strict": "look at report.findings, which holds warnings, too",
}


def check(
    module_or_class: object,
    reference: object = None,
    causal: bool | None = None,
    *,
    weights: Callable[[nn.Module], Mapping[str, Any]] | None = None,
    call: Callable[[nn.Module, Tensor], Tensor] | None = None,
    layout: str = "btd",
    time_limit: float = 10.0,
    **arguments: Any,
) -> Report:
    """Test an attention class by what it does, and name the mistake.

    Works for any module that maps (b, t, d_in) to (b, t, d_out). The module given is
    copied; it, its mode and the global random state stay as they are. Weights of the
    copy are drawn anew, so that mistakes show. Where forward takes a mask, a memory or
    a cache by its name, these are tried, too.

    Args:
        module_or_class: a class derived from ``nn.Module``, an instance, or a
            function of x.
        reference: what is right. None: attention computed from the module's own
            weights. A module or class with the same parameter names: it gets the
            weights, and no buffers. A function (module, x). False: leave the
            comparison out, so that nothing is judged.
        causal: whether a token may not see the future. True: it promises that, so a
            mask that the caller has to give is a mistake. None: it may take one.
        weights: function (module) that returns a dictionary with "query", "key",
            "value", if there is one "out", each a weight (out, in) or a pair of it
            and a bias, and "num_heads". For weights that the check does not find.
        call: function (module, x), where module(x) is not the way to call it.
        layout: "btd", or "tbd" where the first axis is meant for the tokens.
        time_limit: seconds that one call may take.
        **arguments: for the constructor, by the chapter's names or its own. Without
            any, d_in=16, d_out=16, context_length=8, dropout=0.0, num_heads=4, as far
            as the constructor takes them. And what the layer does besides attention:
            rope=True, "halves", "neighbors" or a dictionary with pairing and base;
            window=…; qk_norm= and prenorm="layer", "rms" or "l2"; residual=True;
            scale="1/d", "none" or a number; bias=function (module, t) that gives what
            is added to the scores; memory=…, the number of tokens that keys and values
            come from in cross-attention; sink=True, one learned score for each head,
            in a parameter with "sink" in its name; documents=True, where forward takes
            the number of each token's document, (b, t), and so does ``call``. What was
            declared excuses nothing: every difference from it fails.

    Returns:
        :class:`attncheck.Report`, which prints as text and shows as a table.
        Whatever the class does, this function does not raise;
        ``report.raise_for_failures()`` does.

    Raises:
        ValueError: ``time_limit`` is no number of seconds.
        TypeError: an option that is no more.

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
    return run_check(
        module_or_class, reference, causal, weights=weights, call=call, layout=layout,
        time_limit=time_limit, **arguments,
    )  # fmt: skip


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


def run_check(
    module_or_class: object,
    reference: object = None,
    causal: bool | None = None,
    *,
    own: Mapping[str, Any] | None = None,
    own_config: Mapping[str, Any] | None = None,
    weights: Callable[[nn.Module], Mapping[str, Any]] | None = None,
    call: Callable[[nn.Module, Tensor], Tensor] | None = None,
    layout: str = "btd",
    time_limit: float = 10.0,
    **arguments: Any,
) -> Report:
    """Do what :func:`check` does, with arguments of the constructor apart.

    ``own`` holds these, whatever names they have; ``own_config`` the settings for a
    constructor that takes one object with all of them.
    """
    if not isinstance(time_limit, int | float) or not time_limit > 0:
        raise ValueError(f"time_limit must be a number of seconds, got {time_limit!r}.")
    _refuse_gone(module_or_class, arguments)
    worker = limits.Worker(time_limit)
    report = Report(subject=_name(module_or_class))
    collector = Collector(report)
    with contextlib.ExitStack() as kept:
        # Prints and warnings of the class would bury the report.
        kept.enter_context(quiet())
        kept.enter_context(_memory())
        kept.enter_context(keep_random_state(_device(module_or_class)))
        # Tensors made in inference mode, or without gradients, could not be trained.
        kept.enter_context(torch.inference_mode(False))
        kept.enter_context(torch.enable_grad())
        changes = kept.enter_context(keep_settings())
        kept.enter_context(keep_process())
        try:
            layer = describe_layer(**_layer_options(module_or_class, arguments))
            arguments |= own or {}
            if layer.window:
                arguments = _window(module_or_class, layer.window) | arguments
            if own_config is None and isinstance(arguments.get("config"), Mapping):
                own_config = arguments.pop("config")  # as --config does
            # A memory is there from the start.
            sees = causal is not False and not layer.memory
            source = Source(module_or_class, arguments, sees, worker, own_config)
            report.subject = source.label
            report.notes += source.notes
            how = How(call, _layout(layout), weights, layer, promised=causal is True)
            _run(source, reference, sees, how, collector)
        except Failure as failure:  # its config couldn't be worked out
            collector.cannot_run(RUNS, failure, f"Built as {report.subject}.")
        except UnusableError as error:
            report.usable = False
            report.problem = str(error)
        except Exception as error:
            # Nobody who checks a class should meet a traceback of the checker.
            report.usable = False
            report.problem = (
                f"the checker itself failed ({type(error).__name__}: "
                f"{first_line(error)}). It says nothing about your class."
            )
        finally:
            worker.close()
        if names := [n for n in changes() if n not in _CHANGED_BY_IMPORTS]:
            told = f"It changed {', '.join(names)}; they're restored now."
            report.notes.append(told)
    if report.usable:
        collector.finish()
    return report


# Imports of any kind change these two, PyTorch's own included.
_CHANGED_BY_IMPORTS = ("the path of imports", "the environment")


def _refuse_gone(given: object, arguments: Mapping[str, Any]) -> None:
    """Say what replaces an option that is no more.

    Raises:
        TypeError: it was given, and the constructor takes none of that name.
    """
    names = _parameters(given)
    for name in arguments.keys() & GONE.keys():
        if name not in names:
            raise TypeError(f"{name}= is no option any more: {GONE[name]}.")


def _parameters(given: object) -> Mapping[str, inspect.Parameter]:
    """Return a class's parameters, or none."""
    with contextlib.suppress(TypeError, ValueError):
        if inspect.isclass(given):
            return inspect.signature(given).parameters
    return {}


def _layer_options(given: object, arguments: dict[str, Any]) -> dict[str, Any]:
    """Take what describes the layer; leave what the constructor asks for too."""
    names = _parameters(given)
    options = {name: arguments[name] for name in OPTIONS if name in arguments}
    if isinstance(options.get("bias"), bool):  # that of the projections
        del options["bias"]
    for name in options:
        # A scale in words, as "1/d", is no number that a constructor multiplies with.
        if name not in names or (name == "scale" and isinstance(options[name], str)):
            del arguments[name]
    return options


def _window(given: object, size: int) -> dict[str, int]:
    """Return the declared window by the constructor's name, if it has none of its own.

    It needs one, or by default there is none.
    """
    parameters = _parameters(given).items()
    free = [name for name, one in parameters if one.default in (one.empty, None)]
    return {name: size for name in free if WINDOW.fullmatch(name)}


def _run(
    source: Source, reference: object, causal: bool, how: How, collector: Collector
) -> None:
    try:
        subject = first_subject(source, causal, how, _build(source))
    except Failure as failure:
        if failure.mistake == "environment":
            raise UnusableError(f"this PyTorch cannot run it: {failure}.") from None
        collector.cannot_run(RUNS, failure, f"Built as {source.label}.")
        return
    collector.report.notes = subject.notes = source.notes
    collector.undeclared = replace(how.layer, memory=None).plain and reference is None
    running = first_call(source, subject, collector, [test for test, _ in PROBES])
    asks = source.plan.asks
    if running is not None:
        if reference is False:
            running.reference = False
        elif reference is not None:
            running.reference = reference_from(reference, source)
        _probe(running, collector)
        _tell_untried(running, collector)
        failed = any(one.severity == "error" for one in collector.findings())
        passed = collector.report.compared and not failed
        if passed or not (asks and source.plan.config):
            return
    if asks:
        raise UnusableError(asks)


# These need inputs of several lengths.
_NEED_LENGTHS = {"output shape", "state between calls"}


def _probe(subject: Subject, collector: Collector) -> None:
    for place, (test, probe) in enumerate(PROBES):
        if subject.fixed_length and test in _NEED_LENGTHS:
            collector.not_run([test], "it runs only with context_length tokens")
            continue
        left = [name for name, _ in PROBES[place + 1 :]]
        if "hangs" in collector.found:
            collector.not_run(left, "a call didn't return")
            return
        # The time in calls of the class: the checker's own does not count.
        if subject.worker.spent > 3 * subject.worker.seconds:
            collector.not_run([test, *left], "time ran out; raise time_limit")
            return
        collector.run(test, probe, subject)


def _tell_untried(subject: Subject, collector: Collector) -> None:
    """List the arguments that could change the result, and that nobody has tried."""
    if subject.how.call is not None or subject.way is None:
        return
    names = open_arguments(subject.pristine, subject.way)
    left = [f"`{name}`" for name in names if name not in collector.tried]
    collector.report.not_tried = [*left, *collector.report.not_tried]


def _build(source: Source) -> nn.Module:
    """Return the module, built with other values where the constructor refuses ours.

    Raises:
        UnusableError: it needs what nobody can guess.
        Failure: it refuses all of them.
    """
    try:
        return source.build()
    except Failure as failure:
        if failure.mistake == "constructor_raises":
            for module in source.build_others(failure):
                return module
            if source.plan.asks:
                raise UnusableError(source.plan.asks) from None
        raise


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
