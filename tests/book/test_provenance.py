"""The page "Sources and checks" and the errata, as readers get them."""

import re

import pytest

from coding_attention.published_values import (
    find_entries,
    read_errata,
    read_sources,
    read_values,
    text_of,
)
from tests.book.pages import Page, pages
from theme import provenance


@pytest.fixture(scope="module")
def tables(soup):
    """The tables of the page by what they list."""
    found = soup("book/provenance").select("table.provenance")
    kinds = ("sources", "concordance", "values", "errata", "card")
    return {kind: table for table in found for kind in kinds if kind in table["class"]}


SOURCES = read_sources()["sources"]


def rows(table):
    return [row.find_all("td") for row in table.find("tbody").find_all("tr")]


def typed(text):
    """What the site sets with curved quotes and fixed spaces, as it was typed."""
    return text.translate(str.maketrans("“”’\xa0", '""\' '))


def test_every_value_has_a_row_that_says_equal(tables):
    found = {row[0].get_text(): row for row in rows(tables["values"])}
    assert list(found) == list(read_values())
    for value_id, entry in read_values().items():
        said = found[value_id][5].get_text()
        right = {"example": {"no seed"}, "approximate": {"holds"}}.get(
            entry["kind"], {"equal", "equal to one of the two"}
        )
        assert said in right, f"{value_id}: {said}"
        told = found[value_id][3]
        places = read_sources()["places"][value_id]
        typed_in = [s for s, place in places.items() if not place["printed"]
                    and s not in entry.get("code_of", [])]  # fmt: skip
        assert told.text.count(", typed in") == len(typed_in)
        for source, place in places.items():
            assert SOURCES[source]["name"] in told.text
            assert place.get("line", "") in typed(told.text)
            address = SOURCES[source]["address"]
            assert not address or told.find("a", href=address)
        assert ("when run" in told.text) == bool(entry.get("code_of"))
        if entry["kind"] != "example":
            assert found[value_id][4].find("a"), f"{value_id} links no cell"


SHOWN = {
    page.name: [v for cell in page.code_cells for v in cell.metadata.get("shows", [])]
    for page in pages()
}


@pytest.mark.site
@pytest.mark.parametrize("page", SHOWN)
def test_the_foot_counts_the_values_and_leads_to_their_sources(page, soup):
    values = set(SHOWN[page])
    kinds = [find_entries(value)[0]["kind"] for value in values]
    article = soup(f"book/{page}").find("article")
    lines = article.select(".reproduced")
    assert bool(lines) == bool(kinds)
    for line in lines:
        equal = len(kinds) - kinds.count("example")
        wanted = f"{equal} of {len(kinds)} published values reproduced"
        assert line.get_text().startswith(wanted)
        assert line.find_next(["p", "div", "h2"]) not in article.find_all()
        target, _, anchor = line.a["href"].partition("#")
        assert soup(f"book/{target.removesuffix('.html')}").find(id=anchor)


def test_a_differing_value_is_not_counted_as_reproduced():
    verdicts = {"a": "equal", "b": "not equal", "c": "no seed", "d": "holds"}
    line = provenance.count_values(verdicts, "provenance.html").astext()
    assert line.startswith(
        "2 of 4 published values reproduced; 1 was printed without a seed"
    )


def test_every_erratum_has_a_row_with_its_cell(tables):
    for row, erratum in zip(rows(tables["errata"]), read_errata(), strict=True):
        who = f"{SOURCES[erratum['source']]['name']}: {erratum['where']}"
        assert [typed(cell.get_text()) for cell in row[:3]] == [
            who, erratum["says"], erratum["is"]
        ]  # fmt: skip
        link = row[0].find("a")
        assert (link and link["href"]) == (
            erratum.get("address") or SOURCES[erratum["source"]]["address"]
        )
        link = row[3].find("a")["href"]
        assert link == f"{erratum['page']}.html#{erratum['cell']}"


def test_every_item_of_the_concordance_leads_to_its_place(tables, anchors):
    for row, item in zip(
        rows(tables["concordance"]), read_sources()["concordance"], strict=True
    ):
        assert typed(row[2].get_text()) == item["item"]
        links = [a["href"] for a in row[3].find_all("a")]
        assert len(links) == len(item.get("at", []))
        for link in links:
            page, _, anchor = link.partition("#")
            there = anchors(f"book/{page.removesuffix('.html')}")
            assert not anchor or anchor in there, link
        assert item.get("left_out", "") in row[3].get_text()


def test_every_erratum_is_computed_by_its_cell():
    page = Page("errata")
    cells = {cell.metadata["name"]: cell for cell in page.code_cells}
    for erratum in read_errata():
        assert cells[erratum["cell"]].outputs, f"{erratum['id']}: nothing is shown"
        shown = {i for c in cells.values() for i in c.metadata.get("shows", [])}
        expected = [v for v in erratum["values"] if v.startswith("mixed")]
        assert set(expected) <= shown, erratum["id"]


def test_numbers_that_are_called_right_are_computed():
    cells = {c.metadata["name"]: c for c in Page("errata").code_cells}
    for erratum in read_errata():
        cell = cells[erratum["cell"]]
        shown = re.findall(r"[\d,]*\d", text_of(cell) + cell.source)
        for number in re.findall(r"[\d,]*\d", erratum["is"]):
            assert number in shown, erratum["id"]


def test_the_mask_in_question_is_the_published_one():
    source = {c.metadata["name"]: c.source for c in Page("errata").code_cells}
    for name, which in (("Colab", "b"), ("chapter", "a")):
        typed = re.search(rf'"{name}": "([02 ]+)"', source["half-of-them"])[1]
        rows = read_values()[f"dropout_ones@{which}"]["values"]
        assert typed.split() == ["".join(x.rstrip(".") for x in row) for row in rows]
