"""Fixtures of all tests: the built site, once for all workers, and a browser."""

import os
import subprocess
import sys
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
COPIES = {"set_site", "lab_site"}  # sites of a file's own
BUILDS = {"site", *COPIES}  # a build has a limit of its own
BUILD_LIMIT = 1800  # seconds


@pytest.fixture(scope="session")
def once(tmp_path_factory, worker_id):
    """A function that lets one worker make a folder, for all; gives the folder."""
    from filelock import FileLock

    base = tmp_path_factory.getbasetemp()
    base = base if worker_id == "master" else base.parent  # common to all workers

    def made(name, make):
        done = base / f"{name}.done"
        with FileLock(base / f"{name}.lock"):
            if not done.exists():
                make(base / name)
                done.touch()
        return base / name

    return made


@pytest.fixture(scope="session")
def site(once):
    """The folder of the built HTML, fresh in this run."""
    return once("site", _build_site) / "_build" / "html"


def _build_site(folder):
    said = build_book(ROOT, folder).stdout
    (folder / "log").write_text(said, encoding="utf-8")


def build_book(root, output, **environment):
    """Build the site of a repository below a folder; give the finished process."""
    return subprocess.run(
        [sys.executable, "-c", "from jupyter_book.cli.main import main; main()",
         "build", str(root), "-W", "--keep-going", "--path-output", str(output)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        env={**os.environ, "NO_COLOR": "1", **environment}, timeout=BUILD_LIMIT,
    )  # fmt: skip


@pytest.fixture(scope="session")
def site_log(site):
    """What the build of the site printed."""
    return (site.parents[1] / "log").read_text(encoding="utf-8")


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


@pytest.fixture(scope="session")
def anchors(soup):
    """A function from a page to its elements that have an id, by that id."""

    @cache
    def by_id(page):
        return {element["id"]: element for element in soup(page).find_all(id=True)}

    return by_id


def missing(what):
    """Skip a test, and say why; where CI runs it, fail, since nobody reads skips."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


class _Shared:
    """The browser of this worker, while tests need one."""

    def __init__(self):
        self.instance, self.stack = None, ExitStack()

    def start(self):
        from tools.measure.visit import browser, find_browser

        if find_browser() is None:
            missing("no Chromium or Chrome is installed: nothing was seen in one")
        if self.instance is not None and not self.instance.is_connected():
            self.stop()  # it crashed: one test has failed for it, no other should
        if self.instance is None:
            self.instance = self.stack.enter_context(browser())
        return self.instance

    def stop(self):
        stack, self.stack, self.instance = self.stack, ExitStack(), None
        stack.close()


shared = _Shared()


@pytest.fixture(scope="module")
def browser():
    """An installed Chromium, or a skip that says what is missing."""
    return shared.start()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item, nextitem):
    """End the browser before a file that has no use for it.

    While Playwright runs, its thread has an event loop, which a notebook's kernel would
    meet.
    """
    yield
    if nextitem is None or (
        nextitem.path != item.path and "browser" not in _fixtures(nextitem)
    ):
        shared.stop()


def pytest_collection_modifyitems(items):
    """Give a build of the site a limit of its own.

    The limit is a test's own. A build that is slow, on a busy machine, would use it up,
    and all that look at the site would fail with the first of them.
    """
    for item in items:
        limit = item.get_closest_marker("timeout")
        if limit is None and BUILDS.intersection(_fixtures(item)):
            item.add_marker(pytest.mark.timeout(func_only=True))


def _fixtures(item):
    return getattr(item, "fixturenames", ())  # the cells of a notebook have none


def pytest_terminal_summary(terminalreporter):
    """Say loudly what this run did not check."""
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped:
        reasons = sorted({str(report.longrepr[-1]) for report in skipped})
        terminalreporter.section(f"NOT CHECKED: {len(skipped)} tests", red=True)
        for reason in reasons:
            terminalreporter.write_line(reason)
