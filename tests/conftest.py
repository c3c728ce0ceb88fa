"""Fixtures of all tests: the built site, once for all workers, and a browser."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# Fixtures that build a site; a build has a limit of its own.
BUILDS = {"site", "set_site", "lab_site"}
BUILD_LIMIT = 1800  # seconds
os.environ.setdefault("OMP_NUM_THREADS", "1")  # the workers share the cores already


@pytest.fixture(scope="session")
def site(tmp_path_factory, worker_id):
    """The folder of the built HTML, fresh in this run."""
    from filelock import FileLock

    base = tmp_path_factory.getbasetemp()
    base = base if worker_id == "master" else base.parent  # common to all workers
    with FileLock(base / "site.lock"):
        log = base / "site.log"
        if not log.exists():
            result = subprocess.run(
                [sys.executable, "-c", "from jupyter_book.cli.main import main; main()",
                 "build", str(ROOT), "-W", "--keep-going",
                 "--path-output", str(base / "site")],
                capture_output=True, text=True, check=False,
                env={**os.environ, "NO_COLOR": "1"}, timeout=BUILD_LIMIT,
            )  # fmt: skip
            log.write_text(result.stdout + result.stderr, encoding="utf-8")
    return base / "site" / "_build" / "html"


@pytest.fixture(scope="session")
def site_log(site):
    """What the build of the site printed."""
    return (site.parents[2] / "site.log").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def soup(site):
    """A function from a page, such as "book/index", to its HTML, parsed once in a run.

    All tests share what it gives, so none may change it.
    """
    from bs4 import BeautifulSoup

    @cache
    def parse(page):
        text = (site / f"{page}.html").read_text(encoding="utf-8")
        return BeautifulSoup(text, "html.parser")

    return parse


@pytest.fixture(scope="module")
def browser():
    """An installed Chromium, or a skip that says what is missing.

    One a module, not one a session: while Playwright runs, its thread has an event
    loop, which the kernels of the notebooks would meet.
    """
    from tools.measure.visit import browser as start_browser
    from tools.measure.visit import find_browser

    if find_browser() is None:
        pytest.skip("no Chromium or Chrome is installed: nothing was seen in a browser")
    with start_browser() as instance:
        yield instance


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in the same hook
def pytest_collection_modifyitems(items):
    """Share the work among the workers: the tests of a file stay together (a browser
    or a kernel is theirs), all that read the parsed site are one group, and what takes
    long begins first, lest one worker is left alone with it in the end.
    """
    for item in items:
        group = "site" if "soup" in _fixtures(item) else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))
        # The limit is a test's own. A build that is slow, on a busy machine, would use
        # it up, and all that look at the site would fail with the first of them.
        limit = item.get_closest_marker("timeout")
        if limit is None and BUILDS.intersection(_fixtures(item)):
            item.add_marker(pytest.mark.timeout(func_only=True))
    items.sort(key=_comes_last)


def _fixtures(item):
    return getattr(item, "fixturenames", ())  # the cells of a notebook have none


def _comes_last(item):
    # The built site waits for Sphinx. Until it is there, the notebooks run.
    ranks = ("jupyterlab" in _fixtures(item), "site" in _fixtures(item))
    ranks += ("browser" in _fixtures(item), item.path.suffix == ".ipynb")
    return ranks.index(True) if any(ranks) else len(ranks)


def pytest_terminal_summary(terminalreporter):
    """Say loudly what this run did not check."""
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped:
        reasons = sorted({str(report.longrepr[-1]) for report in skipped})
        terminalreporter.section(f"NOT CHECKED: {len(skipped)} tests", red=True)
        for reason in reasons:
            terminalreporter.write_line(reason)
