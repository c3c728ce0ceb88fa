"""The table of tiers: it names what there is, and what it holds is held."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests import costs, tiers
from tests.book.test_printed_values_on_pages import SHOWN

ROOT = Path(__file__).resolve().parent.parent
TABLE = tiers.read()
PLACES = tiers.places(TABLE)


@pytest.mark.parametrize("place", PLACES)
def test_a_place_is_there(place):
    path, _, name = place.partition("::")
    assert (ROOT / path).is_dir() if path.endswith("/") else (ROOT / path).is_file()
    function = name.partition("[")[0]
    assert not name or f"def {function}(" in (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("test", "tier"),
    [
        ("a/test_x.py::test_one", "folder"),
        ("a/b/test_y.py::test_one[1]", "file"),
        ("a/b/test_y.py::test_two[1]", "one"),
        ("a/b/test_y.py::test_two_more", "file"),
        ("a/b/test_z.py::test_two", "folder"),
        ("ab/test_x.py::test_one", None),
    ],
)
def test_the_longest_place_decides(test, tier):
    known = {"a/": "folder", "a/b/test_y.py": "file", "a/b/test_y.py::test_two": "one"}
    assert tiers.tier_of(test, known) == tier


def test_a_file_is_read_for_each_tier_that_one_of_its_tests_has():
    known = {"a/": "folder", "a/test_x.py": "file", "a/test_x.py::test_one": "one"}
    assert tiers.tiers_in("a/test_x.py", known) == {"file", "one"}
    assert tiers.tiers_in("a/test_y.py", known) == {"folder"}
    assert tiers.tiers_in("a/conftest.py", {}) == {None}


def test_no_place_has_two_tiers():
    with pytest.raises(ValueError, match=r"\['a/'\] in more than one"):
        tiers.places({"one": {"tests": ["a/"]}, "two": {"tests": ["a/", "b/"]}})


def pytest_run(*args):
    command = [sys.executable, "-m", "pytest", "-q", "--co", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*command, *args], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_a_file_without_a_tier_stops_the_run(tmp_path):
    (tmp_path / "test_new.py").write_text("def test_it():\n    pass\n")
    run = pytest_run("-p", "tests.tiers", f"-c{ROOT / 'pyproject.toml'}", tmp_path)
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert "Which tier runs" in run.stderr
    assert "test_new.py" in run.stderr


def test_an_unknown_tier_is_refused():
    run = pytest_run("--tier", "sites", "tests/test_style.py")
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--tier got sites" in run.stderr


def test_a_long_file_is_shared_among_workers_and_others_stay_whole():
    hosts = "tests/book/test_hosts.py::test_every_page_works[{}-{}]"
    lab, other = (tiers.together(hosts.format(host, "index")) for host in
                  ("JupyterLab", "Notebook"))  # fmt: skip
    assert lab != other
    assert lab == tiers.together(hosts.format("JupyterLab", "errata"))
    walk = "tests/attncheck/test_walk.py"
    assert tiers.together(f"{walk}::test_a") != tiers.together(f"{walk}::test_b")
    lab = "tests/coding_attention/labs/test_browser.py"
    assert tiers.together(f"{lab}::test_a[a-b]") == tiers.together(f"{lab}::test_b")


def test_what_is_shared_comes_last_and_evens_out_what_workers_have_left(request):
    name = str(tiers.ROOT / "tests" / "conftest.py")
    plugin = request.config.pluginmanager.get_plugin(name)
    shared, whole = (plugin._comes_last(tiers.ROOT / file, set(), None) for file in
                     ("tests/attncheck/test_walk.py", "tests/tools/test_notebooks.py")
                     )  # fmt: skip
    assert shared > whole


def test_workers_take_what_belongs_together(request):
    config = request.config
    assert tiers.pytest_xdist_make_scheduler(Dist(config, "load"), None) is None
    scheduler = tiers.pytest_xdist_make_scheduler(Dist(config, "loadfile"), None)
    walk = "tests/attncheck/test_walk.py"
    assert scheduler._split_scope(f"{walk}::test_a[x]") == f"{walk}::test_a[x]"
    assert (
        scheduler._split_scope("tests/test_style.py::test_a") == "tests/test_style.py"
    )


class Dist:
    """Pytest's configuration, as if it had been given --dist."""

    def __init__(self, config, dist):
        self.config, self.dist = config, dist

    def getvalue(self, name):
        values = {"dist": self.dist, "tx": ["2*popen"], "maxschedchunk": None}
        return values.get(name) or self.config.getvalue(name)

    def __getattr__(self, name):
        return getattr(self.config, name)


def test_pages_with_published_values_are_in_the_first_tier():
    pages = {f"book/{page}.ipynb" for page, _, _ in SHOWN}
    assert {PLACES.get(page) for page in pages} == {"test"}


def test_every_tier_has_a_command_and_a_row_in_contributing():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| `make test(?:-(\w+))?` \|",
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert [name or "test" for name in rows] == [*TABLE, "rest", "all"]
    rest = re.search(r"^REST = (.*)$", makefile, re.MULTILINE)[1]
    assert ["test", *rest.split(",")] == [name for name in TABLE if name != "hosts"]
    made = subprocess.run(
        ["make", "-n", "test-all"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    ran = re.findall(r"--tier (\S+)", made)
    assert sorted(",".join(ran).split(",")) == sorted(TABLE)
    for tier in TABLE:
        assert tier == "test" or f"\ntest-{tier}:" in makefile


# ---- what is counted ----


@pytest.fixture
def counted(monkeypatch):
    spent = {}
    monkeypatch.setattr(costs, "spent", spent)
    monkeypatch.setattr(costs, "now", "labs")
    return spent


def test_processes_kernels_and_trainings_are_counted(counted):
    import torch

    costs.trainings.look()
    subprocess.run([sys.executable, "-c", ""], check=True)
    subprocess.run([sys.executable, "-c", "", "ipykernel_launcher"], check=True)
    layer = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(layer.parameters())
    for _ in range(3):
        layer(torch.ones(2)).sum().backward()
        optimizer.step()
    assert counted["labs"] == Counter(subprocesses=1, kernels=1, trainings=1)


def test_a_tier_that_outgrows_its_budget_is_named(counted):
    costs.note("visits", TABLE["labs"]["visits"])
    assert costs.exceeded() == []
    costs.note("visits")
    (line,) = costs.exceeded()
    assert line.startswith(f"labs: {TABLE['labs']['visits'] + 1} visits, and")
