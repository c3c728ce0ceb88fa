"""The decks: each figure of its page, nothing from a network, one slide a page."""

import io
import re

import pytest
from bs4 import BeautifulSoup
from pypdf import PdfReader

from tests.book.pages import Page, toc_entries
from theme.slides import __main__ as slides

NAMES = slides.pages()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    target = tmp_path_factory.mktemp("slides")
    slides.write(target, NAMES)
    return target


@pytest.fixture(scope="module")
def deck(folder):
    def parse(name):
        text = (folder / f"{name}.html").read_text(encoding="utf-8")
        return BeautifulSoup(text, "html.parser")

    return parse


def figures_of(name):
    """The text alternative, the number of drawings and the sentence of each figure."""
    for cell in Page(name).code_cells:
        if not cell.metadata.get("name", "").startswith("figure-"):
            continue
        for output in cell.outputs:
            page = BeautifulSoup(output["data"]["text/html"], "html.parser")
            role = page.find(role="img")
            drawings = len(role.find_all("svg"))
            yield role["aria-label"], drawings, page.figcaption.get_text()


def test_the_pages_of_the_chapter_have_decks():
    numbered = [e for e in toc_entries() if re.match(r"book/0\d_(?!questions)", e)]
    assert [f"book/{name}" for name in NAMES] == ["book/index", *numbered]
    assert len(NAMES) >= 10


@pytest.mark.parametrize("name", NAMES)
def test_a_deck_has_each_figure_of_its_page_with_words(deck, name):
    shown = [
        (
            slide.find(role="img")["aria-label"],
            len(slide.find(role="img").find_all("svg")),
            slide.find(class_="sentence").get_text(),
        )
        for slide in deck(name).find_all("section")
        if slide.find("figure")
    ]
    assert shown == list(figures_of(name))
    assert len(shown) >= 3


@pytest.mark.parametrize("name", NAMES)
def test_titles_and_questions_are_those_of_the_page(deck, name):
    page = Page(name)
    text = "\n".join(page.prose)
    titles = {re.sub(r"[`*]", "", t) for t in re.findall(r"^#+ (.+)$", text, re.M)}
    for slide in deck(name).find_all("section"):
        assert slide.find(["h1", "h2"]).get_text() in titles
    asked = deck(name).find_all(class_="question")
    assert len(asked) == len(re.findall(r"^> \*\*Predict\.\*\*", text, re.M))


@pytest.mark.parametrize("name", NAMES)
def test_speakers_have_notes_without_comments_and_links(deck, name):
    sections = deck(name).find_all("section")
    notes = [s.find("aside", class_="notes") for s in sections]
    assert sum(bool(n and n.get_text(strip=True)) for n in notes) >= len(sections) / 2
    assert not deck(name).find_all("a")
    text = deck(name).get_text()
    assert "<!--" not in text
    assert not re.search(r"\$[^$\n]+\$|\]\(", text), "a formula or a link is raw"


@pytest.mark.browser
@pytest.mark.parametrize("name", NAMES)
def test_a_deck_fits_asks_no_network_and_prints_a_slide_a_page(
    browser, folder, deck, name
):
    number = len(deck(name).find_all("section"))
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    asked, errors = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    address = (folder / f"{name}.html").as_uri()
    page.goto(address)
    page.wait_for_function("Reveal.isReady()")
    assert page.evaluate("Reveal.getTotalSlides()") == number
    too_high = page.evaluate(
        "Array.from({length: Reveal.getTotalSlides()}, (_, i) => {"
        "  Reveal.slide(i);"
        "  const slide = Reveal.getCurrentSlide().querySelector('.page');"
        "  return slide.scrollHeight > 721 || slide.scrollWidth > 1281;"
        "}).flatMap((high, i) => high ? [i] : [])"
    )
    assert too_high == []
    page.goto(f"{address}?print-pdf")
    page.wait_for_selector("html.reveal-print .pdf-page")
    page.wait_for_function(f"document.querySelectorAll('.pdf-page').length == {number}")
    printed = page.pdf(prefer_css_page_size=True, print_background=True)
    page.close()
    pages = PdfReader(io.BytesIO(printed)).pages
    assert len(pages) == number
    heading = deck(name).find_all("section")[-1].find(["h1", "h2"]).get_text()
    assert heading in pages[-1].extract_text()
    assert all(url.startswith("file://") for url in asked)
    assert len(asked) >= 5, "the kit was loaded"
    assert errors == []
