"""What the presets share: build the class, call it within limits, report."""

import contextlib
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import nn

from attncheck import limits
from attncheck.build import UnusableError, first_line
from attncheck.collector import Collector
from attncheck.report import Report
from attncheck.source import Source
from attncheck.subject import (
    Failure,
    How,
    Subject,
    fields_of,
    guarded,
    random_state_kept,
    seed_everything,
)
from attncheck.surroundings import process_kept, quiet, settings_kept
from attncheck.variants import first_subject


def run(
    given: object,
    tests: Sequence[tuple[str, Callable[[Any, Collector], None]]],
    arguments: dict[str, Any],
    causal: bool = True,
    time_limit: float = 10.0,
    strict: bool = False,
) -> Report:
    """Build the class and run the tests of a contract.

    Args:
        given: class or instance.
        tests: (name, function (Layer, collector)) pairs.
        arguments: for the constructor.
        causal: passed to a constructor that asks for it.
        time_limit: seconds that one call may take.
        strict: whether warnings fail.

    Returns:
        :class:`attncheck.Report`.
    """
    worker = limits.Worker(time_limit)
    collector = Collector()
    label = getattr(given, "__name__", type(given).__name__)
    report = Report(subject=label, strict=strict)
    with contextlib.ExitStack() as kept:
        for context in (
            quiet(),
            random_state_kept(None),
            torch.inference_mode(False),
            torch.enable_grad(),
            settings_kept(),
            process_kept(),
        ):
            kept.enter_context(context)
        try:
            source = Source(given, arguments, causal, worker)
            report.subject = source.label
            subject = first_subject(source, causal, How(), source.build())
            layer: Any = Called(subject)  # what a contract's tests take as subject
            for place, (test, function) in enumerate(tests):
                collector.run(test, function, layer)
                if "hangs" in collector.found:
                    left = [name for name, _ in tests[place + 1 :]]
                    collector.not_run(left, "a call didn't return")
                    break
            report.notes = subject.notes
        except UnusableError as error:
            report.usable, report.problem = False, str(error)
        except Failure as failure:
            collector.cannot_run("builds", failure, "Built the class.")
        except Exception as error:
            report.usable = False
            report.problem = (
                f"the checker itself failed ({type(error).__name__}: "
                f"{first_line(error)}). It says nothing about your class."
            )
        finally:
            worker.close()
    if report.usable:
        collector.hand_over(report)
    return report


class Called:
    """A module that is called within limits, with random tokens of the right width.

    Args:
        subject: what was built.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.limit = subject.limit

    def module(self) -> nn.Module:
        """Return a copy that no call has touched, in eval()."""
        return self.subject.copy().eval()

    def tokens(self, b: int = 2, t: int = 6, seed: int = 0) -> torch.Tensor:
        """Return random tokens."""
        return self.subject.tokens(b, t, seed)

    def call(self, function: Callable[..., Any], *arguments: Any) -> torch.Tensor:
        """Return the first tensor of ``function(*arguments)``.

        Raises:
            Failure: it raised, hung, or returned no tensor.
        """
        y = self.raw(function, *arguments)
        return first_tensor(y)

    def raw(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return all of ``function(*arguments)``.

        Raises:
            Failure: it raised or hung.
        """

        def job() -> Any:
            seed_everything(0, self.subject.device)
            with torch.no_grad():
                return function(*arguments)

        return guarded(self.subject.worker, job, "forward_raises")


def first_tensor(y: Any) -> torch.Tensor:
    """Return the output of a call that may return more.

    Raises:
        UnusableError: there is none.
    """
    if isinstance(y, tuple | list) and y:
        return first_tensor(y[0])
    y = next((v for v in fields_of(y).values() if isinstance(v, torch.Tensor)), y)
    if not isinstance(y, torch.Tensor):
        raise UnusableError(f"the call returned {type(y).__name__}, not a tensor.")
    return y


def accepts(module: Callable[..., Any], names: Iterable[str]) -> str | None:
    """Return the first of several argument names that forward takes, or None."""
    forward = module.forward if isinstance(module, nn.Module) else module
    parameters = inspect.signature(forward).parameters
    return next((name for name in names if name in parameters), None)
