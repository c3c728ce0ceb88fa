"""The foot of a page says how many of its published values the page reproduces."""

import pytest

from tests.book.pages import pages
from theme import printed_values as data
from theme import published

SHOWN = {
    page.name: {v for cell in page.code_cells for v in cell.metadata.get("shows", [])}
    for page in pages()
}


def test_a_differing_digit_is_called_different():
    text = "tensor([0.1500, 0.2264, 0.2199, 0.1311, 0.0906, 0.1820])"
    assert published.judge(text, "weights_2") == "equal"
    assert published.judge(text.replace("906", "907"), "weights_2") == "not equal"


def test_a_differing_value_is_not_counted_as_reproduced():
    verdicts = {"a": "equal", "b": "not equal", "c": "no seed"}
    line = published.write_line(verdicts, "provenance.html").astext()
    assert line.startswith(
        "1 of 3 published values reproduced; 1 was printed without a seed"
    )


@pytest.mark.site
@pytest.mark.parametrize("page", SHOWN)
def test_the_foot_counts_the_values_and_leads_to_their_sources(page, soup):
    kinds = [data.published(value)[0]["kind"] for value in SHOWN[page]]
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
