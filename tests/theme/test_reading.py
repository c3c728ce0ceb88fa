"""Nothing is cut or hidden from a reader, on a laptop and on a phone."""

from statistics import median

import pytest

from coding_attention.book import list_pages
from tools.measure.reading import is_tensor, most_marks, read, row

pytestmark = pytest.mark.site
# Figures that leave more than a fifth of their column empty, and why: grids of a few
# cells, whose letters would else be larger than those of the text.
SMALL = {
    "10_attention_in_models:figure-distance": "few columns",
    "checker:figure-by-page": "two columns",
}


@pytest.mark.parametrize("page", list_pages())
def test_nothing_is_cut(page, browser, address):
    found = read(browser, f"{address}/{page}.html")
    numbers = row(found)
    # Code scrolls on a phone, since a wrapped line reads as broken Python.
    boxes = [b for b in found["boxes 390"] if b["kind"] == "output"]
    assert [b["text"][:80] for b in boxes if b["cut"]] == []
    assert numbers["code_cut_1280"] == numbers["output_cut_1280"] == 0
    assert numbers["tables_hidden_1280"] == numbers["tables_hidden_390"] == 0
    formulas = [found["formulas 1280"], found["formulas 390"]]
    assert [f["lost"] for f in formulas] == [[], []]
    assert min(f["room"] for f in formulas) >= 16
    assert numbers["labels_out"] == 0, found["labels 390"]
    assert numbers["stops_unseen"] == 0
    assert numbers["stops_a_cell"] <= 1
    assert all(b["size"] >= 11 for b in found["boxes 390"])
    for box in found["boxes 390"]:
        if is_tensor(box["text"]):
            assert box["size"] <= 13
    # Set like a book: lines that the eye finds back from, figures that fill their room.
    lines = found["lines 1280"]
    if len(lines) >= 12:
        assert 60 <= median(lines) <= 72
    for figure in found["figures 1280"]:
        name = f"{page.rpartition('/')[2]}:{figure['cell']}"
        assert (figure["share"] < 0.8) == (name in SMALL), (name, figure)
        assert figure["seen"], name
        # Beside the beginning of a page stand its contents, beside the index nothing.
        beside = not (figure["wide"] or figure["first"] or page.endswith("index"))
        assert figure["margin"] == beside, name
    assert most_marks(found["marks 1280"]) <= 1
    assert most_marks(found["marks 390"]) <= 1
