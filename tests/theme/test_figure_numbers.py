"""Figures on the built site: numbered, with their code as a link below."""

import re

import pytest
from sphinx.errors import ExtensionError

from theme.figure_numbers import make_label


@pytest.mark.parametrize(
    ("page", "count", "name"),
    [("book/03_trainable", 2, "03b"), ("book/03_questions", 1, "03Qa"),
     ("book/index", 2, "A2")],
)  # fmt: skip
def test_no_figure_or_listing_is_named_like_a_published_one(page, count, name):
    """The chapter's are 3.1 to 3.26."""
    assert make_label(page, count) == name
    assert not re.match(r"\d\.\d", make_label(page, count))


def test_a_page_without_either_is_refused():
    with pytest.raises(ExtensionError, match="Give it one in LETTERS"):
        make_label("book/unheard_of", 1)


def figures(site, soup):
    for path in sorted((site / "book").glob("*.html")):
        page = f"book/{path.stem}"
        found = soup(page).select(".attention-figure")
        if found:
            yield page, found


def test_figures_are_counted_in_the_order_of_their_page(site, soup):
    labels = []
    for page, found in figures(site, soup):
        here = [figure.select_one(".figure-number").get_text() for figure in found]
        assert here == [f"Figure {make_label(page, i + 1)}." for i in range(len(here))]
        labels += here
        for figure in found:
            link = figure.select_one(".figure-number a")["href"]
            assert figure.find_parent(id=link[1:]) is not None
    assert len(labels) == len(set(labels)) >= 40


def test_code_of_a_figure_is_folded_below_it(site, soup):
    for page, found in figures(site, soup):
        for figure in found:
            (fold,) = figure.find_parent("div", class_="cell").find_all("details")
            assert fold in figure.find_all_next("details"), page
            assert fold.summary.get_text(" ", strip=True) == "Show code Hide code"
            assert "figures.show" in fold.get_text()
