"""Which tests run a line, as recorded once by coverage.

A mutant then meets only those. `make mutants` records first.
"""

import configparser
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = configparser.ConfigParser()
SETTINGS.read(ROOT / "tools/mutants/cover.ini")
DATA = ROOT / SETTINGS["run"]["data_file"]


def tests_on(path, line):
    """Node ids of the tests that ran a line; none where nothing was recorded."""
    found = {_node(name) for name in _lines(path).get(line, ())}
    return sorted(found - {None})


@cache
def _lines(path):
    if not DATA.exists():
        return {}
    from coverage import CoverageData

    data = CoverageData(basename=str(DATA))
    data.read()
    # Recorded under the folder of that run, which need not be this one.
    found = [file for file in data.measured_files() if file.endswith("/" + path)]
    return data.contexts_by_lineno(found[0]) if found else {}


@cache
def _node(name):
    # tests.attention.test_fused.test_x -> tests/attention/test_fused.py::test_x
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        file = Path(*parts[:end]).with_suffix(".py")
        if (ROOT / file).exists():
            if f"def {parts[-1]}(" not in (ROOT / file).read_text("utf-8"):
                return None  # it was recorded, and is gone
            return "::".join([str(file), *parts[end:]])
    return None  # not within a test: a fixture, an import
