"""What a run costs, counted while it runs, and held against tests/tiers.toml.

Counts are the same on every machine, whatever else it does; seconds are told only.
"""

import os
import sys
import time
from collections import Counter
from contextlib import suppress

import pytest

from tests.tiers import TIER, read

COUNTED = ("visits", "kernels", "cells", "subprocesses", "trainings")
spent = {}  # tier: Counter
now = None  # the tier of the test that runs


def note(what, amount=1):
    """Count something for the tier of the test that runs."""
    if now is not None:
        spent.setdefault(now, Counter())[what] += amount


# ---- what counts ----


def _hear(event, args):
    if event != "subprocess.Popen":
        return
    words = " ".join(map(str, args[1] or ()))
    note("kernels" if "ipykernel_launcher" in words else "subprocesses")


def _count_visits():
    from playwright.sync_api import Page

    goto, reload = Page.goto, Page.reload

    def counted(function):
        def visit(self, *args, **options):
            if args[:1] != ("about:blank",):
                note("visits")
            return function(self, *args, **options)

        return visit

    Page.goto, Page.reload = counted(goto), counted(reload)


class _Trainings:
    """Counts optimizers that take a step, once PyTorch is there."""

    hook = None

    def look(self):
        if self.hook is None and "torch.optim" in sys.modules:
            from torch.optim.optimizer import register_optimizer_step_post_hook

            self.hook = register_optimizer_step_post_hook(self._stepped)

    def _stepped(self, optimizer, args, kwargs):
        if not getattr(optimizer, "was_counted", False):
            optimizer.was_counted = True
            note("trainings")


trainings = _Trainings()


def processor_seconds():
    """Give the processor time of this process and of the children that ended."""
    return sum(os.times()[:4])


def pytest_configure(config):
    if not hasattr(sys, "costs_are_heard"):
        sys.costs_are_heard = True  # an audit hook stays
        sys.addaudithook(_hear)
        with suppress(ImportError):  # an environment for the package alone
            _count_visits()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    """Count for the tier of this test, with all that its fixtures do."""
    global now
    trainings.look()
    now, start, used = item.stash[TIER], time.monotonic(), processor_seconds()
    if item.path.suffix == ".ipynb":
        note("cells")
    try:
        return (yield)
    finally:
        note("tests")
        note("seconds", time.monotonic() - start)
        note("processor", processor_seconds() - used)
        now = None


# ---- what is done with it ----


def pytest_sessionfinish(session):
    """Tell the process that started this worker; there, hold all against the table."""
    config = session.config
    if hasattr(config, "workeroutput"):
        config.workeroutput["costs"] = {k: dict(v) for k, v in spent.items()}
    elif exceeded() and session.exitstatus == 0:
        session.exitstatus = 1


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Add up what a worker spent."""
    for tier, counts in getattr(node, "workeroutput", {}).get("costs", {}).items():
        spent.setdefault(tier, Counter()).update(counts)


def exceeded():
    """Say what each tier spent too much of."""
    return [
        f"{tier}: {counts[what]} {what}, and tests/tiers.toml allows {row[what]}"
        for tier, row in read().items()
        for what, counts in [(w, spent.get(tier, {})) for w in COUNTED]
        if counts.get(what, 0) > row[what]
    ]


def pytest_terminal_summary(terminalreporter):
    """Tell what was spent, and loudly what was too much."""
    if not spent:
        return
    heads = ("tests", *COUNTED)
    terminalreporter.section("what it cost")
    terminalreporter.write_line(
        f"{'tier':10}" + "".join(f"{head:>13}" for head in heads) + f"{'processor':>13}"
    )
    for tier, counts in spent.items():
        numbers = "".join(f"{counts[head]:>13}" for head in heads)
        terminalreporter.write_line(f"{tier:10}{numbers}{counts['processor']:>11.0f} s")
    for line in exceeded():
        terminalreporter.write_line(line, red=True)
