"""One switch opens the whole answer to a prediction, and nothing else is folded."""

import pytest
from docutils import nodes
from docutils.utils import new_document

from coding_attention.book import list_pages
from theme import answers
from tools.measure.visit import visiting

PAGE = "book/02_simple_self_attention.html"
WITH_FIGURE = "book/03_trainable_self_attention.html"  # an answer with a figure


def quote(bold):
    words = nodes.paragraph("", "", nodes.strong("", bold), nodes.Text(" Which?"))
    return nodes.block_quote("", words)


def cell(name, hide_mode=None):
    parts = [nodes.literal_block("", f"{name} {part}") for part in ("code", "output")]
    made = nodes.container("", *parts)
    made["name"] = name
    if hide_mode:
        made["hide_mode"] = hide_mode
    return made


def paragraph(bold, text):
    return nodes.paragraph("", "", nodes.strong("", bold), nodes.Text(text))


def folded(*parts):
    """Fold a section of these parts; give it, and the fold."""
    document = new_document("")
    section = nodes.section("", nodes.title("", "One"), *parts)
    document += section
    answers.fold_answers(type("Page", (), {"document": document}))
    (fold,) = section.findall(answers.HideCodeCellNode)
    return section, fold


def test_cells_and_words_of_an_answer_are_one_fold():
    figure = cell("figure", "input+output")
    section, fold = folded(
        quote("Predict."), cell("one", "all"), figure, paragraph("Answer.", " It."),
        paragraph("Answer.", " Not this."), cell("two", "all"),
    )  # fmt: skip
    assert [part.astext().split()[0] for part in fold] == ["one", "figure", "Answer."]
    assert section[1].astext() == "Predict. Which?"
    assert section[2] is fold
    assert section[3].astext() == "Answer. Not this."
    # Open inside, but for a figure's code.
    assert [part.get("hide_mode") for part in fold] == [None, "input", None]


def test_an_answer_ends_where_something_else_begins():
    section, fold = folded(quote("Predict."), cell("one", "all"), cell("open"))
    assert len(fold) == 1
    assert section[-1]["name"] == "open"
    section, fold = folded(
        quote("Predict."), cell("one", "all"), nodes.paragraph("", "So."),
        cell("two", "all"), cell("three", "output"), cell("figure", "input+output"),
    )  # fmt: skip
    assert len(fold) == 1
    # No output folds but in an answer.
    assert [part.get("hide_mode") for part in section[-3:]] == [None, None, "input"]


def test_code_that_is_asked_about_stays_open():
    about = cell("about", "output")
    _, fold = folded(quote("Predict."), about, cell("one", "all"))
    assert about[0].astext() == "about code"
    assert about[1] is fold
    assert [part.astext() for part in fold] == [
        "about output",
        "one code\n\none output",
    ]


@pytest.mark.site
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


@pytest.mark.site
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


@pytest.mark.site
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
