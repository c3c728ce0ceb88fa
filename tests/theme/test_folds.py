"""A run that some readers skip folds behind one line, and hides from nobody."""

import pytest
from docutils import nodes
from docutils.utils import new_document

from tests.theme.test_search import read_index
from theme import folds
from tools.measure.visit import visiting

PAGES = {
    "01_why_attention": 0,
    "02_simple_self_attention": 2,
    "03_trainable_self_attention": 3,
    "04_causal_attention": 2,
    "05_multi_head_attention": 4,
}
SCREEN, MOST = 900, 13


def quote(bold, rest=""):
    words = nodes.paragraph("", "", nodes.strong("", bold), nodes.Text(rest))
    return nodes.block_quote("", words)


def test_a_run_ends_at_a_rule_or_a_heading():
    document = new_document("")
    section = nodes.section("", nodes.title("", "One"))
    opens = quote("The published example:", " a < b")
    section += [opens, nodes.paragraph("", "folded"), nodes.transition()]
    section += [nodes.paragraph("", "open"), quote("Predict.", " Which?")]
    section += [quote("The published example:"), nodes.paragraph("", "folded, too")]
    section += nodes.section("", nodes.title("", "Two"))
    document += section
    page = type("Page", (), {"document": document})
    folds.fold(page)
    assert [child.astext() for child in section[1:-1]] == [
        '<details class="run"><summary><strong>The published example:</strong> '
        "a &lt; b</summary>",
        "folded",
        "</details>",
        "open",
        "Predict. Which?",
        '<details class="run"><summary><strong>The published example:</strong>'
        "</summary>",
        "folded, too",
        "</details>",
    ]


@pytest.mark.parametrize("page", PAGES)
def test_runs_are_closed_and_can_be_found(soup, site, page):
    article = soup(f"book/{page}").find("article")
    runs = article.select("details.run")
    assert len(runs) == PAGES[page]
    index = read_index(site)
    found = {
        piece[2]
        for piece in index["pieces"]
        if index["pages"][piece[0]][0] == f"book/{page}.html"
    }
    for run in runs:
        assert not run.has_attr("open")
        names = {cell["id"] for cell in run.select("div.cell[id]")}
        assert names
        assert names <= found
        assert not run.find("h2")
        assert not run.select(".attn-lab, .role-exercise")


@pytest.mark.site
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_at_most_thirteen_screens(browser, address, page):
    with visiting(browser, f"{address}/book/{page}.html", width=1280) as visit:
        visit.load()
        visit.drawn()
        height = visit.page.evaluate("document.documentElement.scrollHeight")
    assert height <= MOST * SCREEN, f"{height / SCREEN:.1f} screens"


@pytest.mark.site
def test_links_paper_and_the_box_of_proofs_open_a_run(browser, address):
    url = f"{address}/book/03_trainable_self_attention.html"
    run = "#score-22 >> xpath=ancestor::details[contains(@class, 'run')]"
    is_open = "(run) => run.open"
    # The state of a lab stands behind the name, where no browser finds the cell itself.
    with visiting(browser, f"{url}#score-22?causal=true") as visit:
        visit.load()
        assert visit.page.locator(run).evaluate(is_open)
        assert visit.page.locator("#score-22").is_visible()
    with visiting(browser, url) as visit:
        visit.load()
        assert not visit.page.locator(run).evaluate(is_open)
        visit.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert visit.page.locator(run).evaluate(is_open)
        visit.page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert not visit.page.locator(run).evaluate(is_open)
        visit.page.evaluate("location.hash = '#weights-2'")
        visit.page.wait_for_function("document.querySelector('details.run').open")
    with visiting(browser, url) as visit:
        visit.load()
        visit.page.locator("#show-proofs").check()
        assert visit.page.locator(run).evaluate(is_open)
