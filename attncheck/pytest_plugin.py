"""The pytest plugin: its fixtures are there wherever the package is installed.

It imports nothing but pytest, so that test runs without attention start as fast as
before; PyTorch is imported when a test asks for a check.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from attncheck.report import Report, Result


@pytest.fixture
def check_attention() -> Callable[..., Report]:
    """Return a function that checks a class and fails the test with the report."""

    def run(*arguments: Any, **named: Any) -> Report:
        __tracebackhide__ = True  # the report says all, our frames say nothing
        from attncheck import check

        report = check(*arguments, **named)
        report.raise_for_failures()
        return report

    return run


@pytest.fixture
def attention_subtests(subtests: pytest.Subtests) -> Callable[..., Report]:
    """Return a function that checks a class, with a subtest for each of its tests."""

    def run(*arguments: Any, **named: Any) -> Report:
        __tracebackhide__ = True
        from attncheck import check

        report = check(*arguments, **named)
        if not report.usable:
            report.raise_for_failures()
        for result in report.results:
            with subtests.test(msg=result.test):
                _tell(report, result)
        return report

    return run


def _tell(report: Report, result: Result) -> None:
    __tracebackhide__ = True
    if result.outcome == "not run":
        pytest.skip(result.why)
    lines = (
        [result.why]
        if result.outcome == "broken"
        else [
            f"{f.mistake} ({f.code}): {f.title}. {f.seen}"
            for f in report.failing()
            if f.mistake in result.mistakes or f.test == result.test
        ]
    )
    if lines:
        pytest.fail("\n".join(lines), pytrace=False)
