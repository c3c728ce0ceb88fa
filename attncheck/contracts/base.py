"""What the presets share: they build and call a class as ``check`` does."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attncheck.build import UnusableError
from attncheck.collector import Collector, SkipTest
from attncheck.report import Report
from attncheck.run import checked
from attncheck.subject import Subject

Test = Callable[[Any, Collector], None]


def run(
    given: object,
    prepare: Callable[[Subject, Collector], Any],
    tests: Sequence[tuple[str, Test]],
    options: Mapping[str, Any],
    needed: str,
    otherwise: Callable[..., Any] | None = None,
) -> Report:
    """Run the tests of a contract, or all others where these can't be run.

    Args:
        given: class or instance.
        prepare: function (subject, collector) that returns what the tests take, or None
            where it has told what is wrong. The first test begins with it.
        tests: (name, function (what is prepared, collector)) pairs.
        options: those of :func:`attncheck.check`, and arguments for the constructor.
        needed: what to write by hand where they can't be run.
        otherwise: ``call`` for a class that runs in no other way.

    Returns:
        :class:`attncheck.Report`.
    """
    held: list[Any] = []

    def probe(test: Test) -> Callable[[Subject, Collector], None]:
        def run_it(subject: Subject, found: Collector) -> None:
            if not held:
                try:
                    held.append(prepare(subject, found))
                except SkipTest as reason:
                    found.needed = needed
                    raise UnusableError(str(reason)) from None
            if held[0] is not None:
                test(held[0], found)
            elif test is not tests[0][1]:
                raise SkipTest("the first test failed")

        return run_it

    contract = [(name, probe(test)) for name, test in tests]
    report = checked(given, contract=contract, **options)
    if held or otherwise is None or "call" in options:
        return report
    return checked(given, contract=contract, call=otherwise, **options)
