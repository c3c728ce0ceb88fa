"""The decks: what a mark shows, a session's length, and slides that can be read."""

import io
import re

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from pypdf import PdfReader

from theme.slides import __main__ as slides
from theme.slides import deck, marks

PAGES = slides.read_pages()
DECKS = slides.choose_decks(PAGES) + slides.choose_decks(PAGES, "90min")
NAMES = [file for file, _, _ in DECKS]
CLASS = """class Layer:
    def __init__(self):
        self.width = 2

    def forward(self, x):
        return x

    def other(self):
        pass"""


def read(tmp_path, mark):
    """The slides of a page with one mark and two cells."""
    cells = [
        new_markdown_cell(f"# A page\n\nWords.\n\n{mark}"),
        new_code_cell(CLASS, metadata={"name": "layer"}),
        new_code_cell(
            "print(1 < 2)",
            metadata={"name": "compare"},
            outputs=[new_output("stream", text="True\n")],
        ),
    ]
    path = tmp_path / "page.ipynb"
    nbformat.write(new_notebook(cells=cells), path)
    return marks.read_page(path)


def write(tmp_path, mark):
    title, found = read(tmp_path, mark)
    made = deck.write_deck("A deck", [(title, slide) for slide in found])
    return BeautifulSoup(made, "html.parser")


MARK = """<!-- slide: *One* title (1.5 min{})
A sentence.
{}
Say: A note
in two lines.
-->"""


def test_a_mark_is_read_whole(tmp_path):
    _, (slide,) = read(tmp_path, MARK.format(", page only", "show: compare"))
    assert (slide.title, slide.minutes, slide.page_only) == ("*One* title", 1.5, True)
    assert slide.note == "A note\nin two lines."
    page = write(tmp_path, MARK.format("", "show: compare"))
    assert page.h2.em.get_text() == "One"
    assert page.select_one(".words").get_text().strip() == "A sentence."
    assert page.aside.get_text().strip() == "A note\nin two lines."
    assert "A page" in page.footer.get_text()


@pytest.mark.parametrize(
    ("line", "shown", "later"),
    [
        ("show: compare", ["print(1 < 2)", "True"], False),
        ("show: compare code", ["print(1 < 2)"], False),
        ("then: compare output", ["True"], True),
        ("show: layer forward", ["def forward(self, x):\n    return x"], False),
    ],
)
def test_a_cell_is_shown_whole_or_in_part(tmp_path, line, shown, later):
    page = write(tmp_path, MARK.format("", line))
    assert [pre.get_text() for pre in page.find_all("pre")] == shown
    assert bool(page.select(".step")) == later


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("<!-- slide: Title (2 min)\nshow: compare\n-->", "'Title (2 min)' is not a"),
        ("<!-- slide: Title\nSay: it\n-->", "'Title' is not a whole one. Begin"),
        (MARK.format("", "show: nothing"), "cell 'nothing', which the page does not"),
        (MARK.format("", "show: layer output"), "shows output of the cell 'layer'"),
        (MARK.format("", "show: layer backward"), "shows backward of the cell"),
    ],
)
def test_a_mark_that_shows_nothing_is_named(tmp_path, mark, words):
    with pytest.raises(marks.MarkError) as raised:
        write(tmp_path, mark)
    assert words in str(raised.value)


def test_a_session_is_one_deck_of_at_most_ninety_minutes():
    ((_, _, chosen),) = slides.choose_decks(PAGES, "90min")
    assert 25 <= len(chosen) <= 45
    assert 60 <= sum(slide.minutes for _, slide in chosen) <= 90
    assert not any(slide.page_only for _, slide in chosen)
    assert [title for title, _ in PAGES.values()] == list(dict(chosen))


def test_the_notes_sheet_says_when_each_slide_begins(tmp_path):
    _, found = read(tmp_path, "\n\n".join([MARK.format("", "")] * 3))
    made = deck.write_sheet("A deck", [("A page", slide) for slide in found])
    rows = BeautifulSoup(made, "html.parser").find_all("tr")
    assert [row.td.get_text() for row in rows] == ["0:00", "0:01", "0:03"]
    assert "Ends at 0:04." in made
    assert deck.write_clock(75) == "1:15"


@pytest.mark.parametrize("name", PAGES)
def test_each_number_said_or_written_is_shown_beside_it(name):
    """Nothing else would notice when a cell's number changes."""
    for slide in PAGES[name][1]:
        shown = deck.write_deck("", [("", slide)])
        shown = BeautifulSoup(shown, "html.parser")
        said = [shown.h2, shown.aside, *shown.select(".words")]
        said = " ".join(part.extract().get_text() for part in said)
        labels = " ".join(part["aria-label"] for part in shown.select("[aria-label]"))
        told = set(re.findall(r"\d[\d.]*\d|[3-9]", said))
        assert told <= set(re.findall(r"[\d.]*\d", shown.get_text() + labels))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    target = tmp_path_factory.mktemp("slides")
    slides.write_decks(target, DECKS)
    return target


# What is cut off, or lies over the footer, on the slide that is shown.
UNREADABLE = """() => {
  const slide = document.querySelector("section.current"), found = [];
  const page = slide.getBoundingClientRect();
  const footer = slide.querySelector("footer").getBoundingClientRect().top;
  for (const part of slide.querySelectorAll("h2, .body p, li, pre, .drawing, .lab")) {
    const box = part.getBoundingClientRect();
    if (box.width && (box.bottom > footer + 1 || box.right > page.right - 10
        || box.top < page.top)) found.push(`${part.tagName} ends at ${box.bottom}`);
    if (part.scrollWidth > part.clientWidth + 1) found.push(`${part.tagName} is cut`);
  }
  return found;
}"""


@pytest.mark.site
@pytest.mark.parametrize("name", NAMES)
def test_a_deck_works_from_a_folder_alone(browser, folder, name):
    """Its slides fit, its labs answer, it asks nobody, and it prints a slide a page."""
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    asked, errors = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((folder / f"{name}.html").as_uri())
    count = page.locator("section").count()
    unreadable, labs = {}, 0
    for number in range(1, count + 1):
        page.wait_for_selector(f"section.current:nth-of-type({number})")
        while page.locator("section.current .step[hidden]").count():
            page.keyboard.press("ArrowRight")
        if found := page.evaluate(UNREADABLE):
            unreadable[number] = found
        if page.locator("section.current .lab").count():
            page.wait_for_selector("section.current .attn-lab")
            labs += 1
        page.keyboard.press("PageDown")
    assert unreadable == {}
    assert page.url.endswith(f"#{count}")
    assert labs == page.locator(".lab").count()
    printed = PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True))).pages
    assert len(printed) == count
    assert page.locator("h2").last.inner_text() in printed[-1].extract_text()
    page.close()
    assert all(url.startswith("file://") for url in asked)
    assert errors == []


@pytest.mark.site
def test_a_lab_on_a_slide_keeps_its_keys_and_answers(browser, folder):
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto((folder / "90min.html").as_uri())
    lab = page.locator("section:has(.lab)").first
    number = 1 + page.locator("section").evaluate_all(
        "all => all.findIndex((one) => one.querySelector('.lab'))"
    )
    page.evaluate(f"location.hash = '{number}'")
    summary = lab.locator(".al-summary")
    before = summary.inner_text()
    lab.get_by_role("slider").first.focus()
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    assert page.url.endswith(f"#{number}")
    assert summary.inner_text() != before
    page.close()


@pytest.mark.site
def test_the_notes_have_a_clock_and_follow_the_slides(browser, folder):
    page = browser.new_page()
    page.goto((folder / "90min.html").as_uri())
    with page.expect_popup() as opened:
        page.keyboard.press("s")
    notes = opened.value
    ((_, _, chosen),) = slides.choose_decks(PAGES, "90min")
    page.keyboard.press("PageDown")
    assert notes.locator("h1").inner_text() == chosen[1][1].title
    until = sum(slide.minutes for _, slide in chosen[:2])
    assert f"this slide until {int(until)}:{30 if until % 1 else 0:02}" in (
        notes.locator("#clock").inner_text()
    )
    assert f"Next: {chosen[2][1].title}" in notes.locator("#next").inner_text()
    page.close()
