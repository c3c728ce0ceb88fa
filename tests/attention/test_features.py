"""The table of the page "The package" says what comes out when each cell is tried."""

from pathlib import Path

import pytest
import torch

from tests.attention.public import LAYERS

if torch.__version__ < "2.6":
    pytest.skip("the table is that of PyTorch 2.6 or later", allow_module_level=True)

from tests.attention import features

pytestmark = pytest.mark.package
BOOK = Path(__file__).resolve().parents[2] / "book"
PAGE = (BOOK / "api.md").read_text(encoding="utf-8")


def table():
    """Give {(feature, layer): cell} of the page."""
    lines = [line for line in PAGE.splitlines() if line.startswith("| ")]
    rows = [
        [cell.strip().strip("`") for cell in line[2:-1].split("|")] for line in lines
    ]
    head = next(row for row in rows if LAYERS[0] in row)
    return {
        (row[0], name): text
        for row in rows[rows.index(head) + 2 :]
        for name, text in zip(head[1:], row[1:], strict=True)
    }


SHOWN = table()


def test_the_table_has_a_cell_for_every_feature_of_every_layer():
    cells = {(f, name) for f in features.FEATURES for name in LAYERS}
    assert set(SHOWN) == cells, (
        f"book/api.md has cells too many or too few: {sorted(set(SHOWN) ^ cells)}. "
        f"Run python -m tests.attention.features, and put the table there."
    )


def cells(costly):
    known = [c for c in SHOWN if c[0] in features.FEATURES]
    chosen = [c for c in known if (c[0] in features.COSTLY) == costly]
    return pytest.mark.parametrize(("title", "name"), chosen)


@cells(costly=False)
def test_the_cell_says_what_comes_out(title, name):
    hold(title, name)


@cells(costly=True)
def test_the_costly_cell_says_what_comes_out(title, name):
    hold(title, name)


def hold(title, name):
    # Beside PyTorch alone, as with other versions of it, some packages are not there.
    # The whole environment has them all: tests/book/test_api.py.
    absent = features.missing(title)
    if absent:
        pytest.skip(f"{title} was not tried: {' and '.join(absent)} not installed")
    assert features.cell(title, name) == SHOWN[title, name]


def test_costly_features_are_features():
    assert set(features.COSTLY) < set(features.FEATURES)
