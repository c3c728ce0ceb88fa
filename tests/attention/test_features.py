"""The table of the page "The package" says what comes out when each cell is tried."""

from pathlib import Path

import pytest

from tests.attention import features
from tests.attention.public import LAYERS

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


@pytest.mark.parametrize(
    ("title", "name"), [c for c in SHOWN if c[0] in features.FEATURES]
)
def test_the_cell_says_what_comes_out(title, name):
    absent = features.missing(title)
    if absent:
        pytest.skip(f"{title} was not tried: {' and '.join(absent)} not installed")
    assert features.cell(title, name) == SHOWN[title, name]
