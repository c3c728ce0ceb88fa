"""A fixture for other people's test suites.

In ``conftest.py``::

    pytest_plugins = ["attention.checker.pytest_plugin"]

and in a test::

    def test_my_attention(check_attention):
        check_attention(MyAttention, d_in=16, d_out=16, num_heads=4)
"""

import pytest

from attention.checker.run import check


@pytest.fixture
def check_attention():
    """Return a function that checks a class and fails the test with the report."""

    def run(*arguments, **named):
        __tracebackhide__ = True  # the report says all, our frames say nothing
        report = check(*arguments, **named)
        report.raise_for_failures()
        return report

    return run
