"""One switch opens the whole answer to a prediction, and nothing else is folded."""

import pytest

from coding_attention.book import list_pages
from tests.theme.conftest import ROOT
from theme.answers import OPENS
from tools.measure.visit import visiting

pytestmark = pytest.mark.site
PAGE = "book/02_simple_self_attention.html"
WITH_FIGURE = "book/03_trainable_self_attention.html"  # an answer with a figure


@pytest.mark.parametrize("page", list_pages())
def test_every_prediction_has_its_answer_behind_one_switch(page, soup):
    article = soup(page).find("article")
    asked = article.select(".role-predict")
    assert len(article.select("details.answer")) == len(asked)
    for question in asked:
        behind = question.find_next_sibling()
        found = behind.select("details.answer") or [behind]
        assert [fold["class"][-1] for fold in found] == ["answer"]
        (fold,) = found
        assert fold.select(".cell_output")
        assert all(
            inner.summary.get_text(" ", strip=True) == "Show code Hide code"
            for inner in fold.find_all("details")
        )


@pytest.mark.parametrize("page", list_pages())
def test_the_words_of_an_answer_are_behind_its_switch(page, soup):
    article = soup(page).find("article")
    bold = article.select("p > strong:first-child")
    answers = [one for one in bold if one.get_text() == "Answer."]
    source = (ROOT / f"{page}.md").read_text(encoding="utf-8")
    assert len(answers) == source.count(OPENS)
    outputs = article.select("details .cell_output")  # which fold nowhere else
    for part in (*answers, *outputs):
        assert part.find_parent("details", class_="answer"), part.parent.get_text()


def test_links_and_paper_open_an_answer(browser, address):
    is_open, first = "(fold) => fold.open", "details.answer"
    with visiting(browser, f"{address}/{PAGE}") as visit:
        visit.load()
        fold = visit.page.locator(first).first
        name = fold.locator(".cell[id]").first.get_attribute("id")
        assert not fold.evaluate(is_open)
        visit.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert fold.evaluate(is_open)
        visit.page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert not fold.evaluate(is_open)
        visit.page.evaluate(f"location.hash = '#{name}'")
        visit.page.locator(f"#{name}").wait_for(state="visible")
    # The state of a lab stands behind the name, where no browser finds the cell itself.
    with visiting(browser, f"{address}/{PAGE}#{name}?causal=true") as visit:
        visit.load()
        assert visit.page.locator(f"#{name}").is_visible()


def test_one_click_opens_all_of_an_answer_without_scripts(browser, site):
    url = f"{site.as_uri()}/{WITH_FIGURE}"
    with visiting(browser, url, java_script_enabled=False) as visit:
        visit.page.goto(url)
        fold = visit.page.locator("details.answer:has(.attention-figure)").first
        figure, code = fold.locator(".attention-figure"), fold.locator("details pre")
        assert not fold.locator(".cell_output").first.is_visible()
        fold.locator("> summary").click()
        parts = [*fold.locator(".cell_output").all(), *figure.all()]
        assert all(part.is_visible() for part in parts)
        assert not code.first.is_visible()
        fold.locator("details > summary").first.click()
        assert code.first.is_visible()
