"""Which test runs when: tests/tiers.toml says it, for every file.

`pytest --tier test` runs one tier, `--tier site,labs` two. A test that belongs to none
stops the run, with or without the option.
"""

import functools
import tomllib
from pathlib import Path

import pytest

TABLE = Path(__file__).with_name("tiers.toml")
ROOT = Path(__file__).resolve().parents[1]
TIER = pytest.StashKey[str]()


@functools.cache
def read(path=TABLE):
    """Give each tier's row of the table, by its name."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def places(table):
    """Give the tier of each place that the table names.

    A place is a folder (with a slash behind it), a file or a test of one.
    """
    named = [(place, tier) for tier, row in table.items() for place in row["tests"]]
    twice = {place for place, _ in named if [p for p, _ in named].count(place) > 1}
    if twice:
        raise ValueError(f"{TABLE.name} names {sorted(twice)} in more than one tier")
    return dict(named)


def tier_of(nodeid, known):
    """Give the tier of a test: of the longest place that it lies in, or None."""
    return next((known[place] for place in _around(nodeid) if place in known), None)


def _around(nodeid):
    # The test, then each place that it lies in, from the inside out.
    yield nodeid
    place = nodeid.partition("[")[0]
    for sign in ("::", "/"):
        yield place
        while sign in place:
            place = place.rpartition(sign)[0]
            yield place + "/" * (sign == "/")


@functools.cache
def _known():
    return places(read())


def without(root=ROOT):
    """Give the files of tests that no place of the table holds."""
    known = _known()
    files = [
        path.relative_to(root).as_posix() for path in root.glob("tests/**/test_*.py")
    ]
    inside = {place.split("::")[0] for place in known}
    return [f for f in sorted(files) if f not in inside and not tier_of(f, known)]


def pytest_configure(config):
    """Stop at once, and where everyone sees it: workers only say that they ended."""
    wanted(config)
    if lost := without():
        raise pytest.UsageError(
            f"Which tier runs {', '.join(lost)}? Add it to tests/{TABLE.name}."
        )


def apart(file):
    """Whether workers share a file function by function."""
    places = [place for row in read().values() for place in row.get("apart", ())]
    return file.startswith(tuple(places))


def together(nodeid):
    """Give what a worker takes at once: a file, unless its tests share no fixture.

    Of a file in an `apart` of the table: the tests of one function, and of one first
    parameter, such as a host.
    """
    file = nodeid.partition("::")[0]
    return nodeid.partition("-")[0] if apart(file) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With --dist loadfile: a long file must not be left to one worker in the end."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    scheduler = LoadFileScheduling(config, log)
    scheduler._split_scope = together
    return scheduler


def pytest_addoption(parser):
    parser.addoption(
        "--tier",
        default="",
        metavar="NAMES",
        help=f"run these tiers alone, with commas between them: {', '.join(read())}",
    )


def wanted(config):
    """Give the names after --tier; an unknown one is refused."""
    names = [name for name in config.getoption("--tier").split(",") if name]
    unknown = set(names) - set(read())
    if unknown:
        raise pytest.UsageError(
            f"--tier got {', '.join(sorted(unknown))}; "
            f"{TABLE.name} has {', '.join(read())}"
        )
    return names


def tiers_in(file, known):
    """Give the tiers that the tests of a file may belong to."""
    alone = {tier for place, tier in known.items() if place.startswith(f"{file}::")}
    return alone | {tier_of(file, known)}


def pytest_ignore_collect(collection_path, config):
    """Import no file whose tests all belong to tiers that were not asked for."""
    asked = wanted(config)
    if not asked or not collection_path.is_file() or collection_path.name[0] == "_":
        return None
    file = collection_path.relative_to(ROOT).as_posix()
    return True if not tiers_in(file, _known()) & {None, *asked} else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Give each test its tier, and leave out those that were not asked for."""
    known, asked = _known(), wanted(config)
    for item in items:
        item.stash[TIER] = tier_of(item.nodeid, known)
    homeless = {item.nodeid.split("::")[0] for item in items if not item.stash[TIER]}
    if homeless:
        raise pytest.UsageError(
            f"Which tier runs {', '.join(sorted(homeless))}? Add it to {TABLE}."
        )
    if asked:
        left = [item for item in items if item.stash[TIER] not in asked]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item.stash[TIER] in asked]
