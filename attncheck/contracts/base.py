"""What the presets share: they build and call a class as ``check`` does."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attncheck.build import UnusableError
from attncheck.collector import Collector, SkipTest
from attncheck.report import Report
from attncheck.run import Probe, checked
from attncheck.subject import Subject

COMPARED = "same output as attention with these weights"


def run(
    given: object,
    prepare: Callable[[Subject, Collector], list[Any]],
    tests: Sequence[tuple[str, Callable[[Any, Collector], None]]],
    options: Mapping[str, Any],
    needed: str,
    otherwise: Callable[..., Any] | None = None,
) -> Report:
    """Run the tests of a contract, or all others where these can't be run.

    Args:
        given: class or instance.
        prepare: function (subject, collector) that returns what the tests take, one
            after the other; nothing where it has told what is wrong. The first test
            begins with it.
        tests: (name, function (what is prepared, collector)) pairs.
        options: those of :func:`attncheck.check`, and arguments for the constructor.
        needed: what to write by hand where they can't be run.
        otherwise: ``call`` for a class that runs in no other way.

    Returns:
        :class:`attncheck.Report`.
    """
    held: list[list[Any]] = []

    def probe(test: Callable[[Any, Collector], None], first: bool) -> Probe:
        def run_it(subject: Subject, found: Collector) -> None:
            if first:
                try:
                    held.append(prepare(subject, found))
                except SkipTest as reason:
                    found.needed = needed
                    raise UnusableError(str(reason)) from None
            elif not held or not held[0]:
                raise SkipTest("the first test failed")
            for one in held[0]:
                test(one, found)

        return run_it

    contract = [(name, probe(test, not n)) for n, (name, test) in enumerate(tests)]
    report = checked(given, contract=contract, **options)
    if not held and otherwise is not None and "call" not in options:
        report = checked(given, contract=contract, call=otherwise, **options)
    if report.exit_status == 0:
        _beside(report, checked(given, **options))
    return report


def _beside(report: Report, whole: Report) -> None:
    """Add what the other tests found: a contract says nothing of the weights."""
    known = {one.mistake for one in report.findings}
    if whole.exit_status in (0, 1) and not whole.not_compared:
        wrong = [one for one in whole.findings if one.severity == "error"]
        rest = [one for one in whole.findings
                if one.severity == "warning" and one.test == COMPARED]  # fmt: skip
        report.findings = [*wrong, *report.findings, *(
            one for one in rest if one.mistake not in known)]  # fmt: skip
        report.results += [one for one in whole.results if one.outcome == "failed"]
