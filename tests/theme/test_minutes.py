"""The minutes of a page: one rule, for the index, for teachers and in the decks."""

import re

import nbformat
import pytest

from coding_attention.exercises.files import LEVELS, PAGES, word
from tests.book.pages import BOOK, Page
from theme import minutes
from theme.slides import __main__ as slides
from theme.slides import deck

PAGE = (BOOK / "teaching.md").read_text(encoding="utf-8")


def plan():
    """The minutes of the page's table: {page: (told, done)}."""
    section = PAGE.partition("## How long it takes")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| \[.*?\]\((\w+)\.ipynb\) \| (\d+) \| (\d+) ", section, re.M)
    return {page: (int(told), int(done)) for page, told, done in rows}


def test_the_minutes_of_the_table_are_those_of_the_rule():
    numbered = [n for n in slides.pages() if n != "index"]
    assert plan() == {
        name: (minutes.rounded(minutes.told(Page(name).notebook)), minutes.done(name))
        for name in numbered
    }


def test_the_rule_is_written_as_it_is_computed():
    rule = PAGE.partition("We allow ")[2].partition("lab.")[0]
    cell = "a" if minutes.CELL == 1 else word(minutes.CELL)
    assert rule.startswith(f"{minutes.WORDS} words a minute<")
    for each in (
        f"{cell} minute for each cell",
        f"{word(minutes.QUESTION)} more for a question",
        f"{word(minutes.LAB)} more for a",
    ):
        assert each in rule
    easy, medium, hard = (minutes.EXERCISE[level] for level in LEVELS)
    said = (
        f"easy exercise takes {easy} minutes, a medium one {medium}, a hard one {hard}<"
    )
    assert said in PAGE


def test_the_index_promises_the_hours_of_the_plan():
    chapter = [times for name, times in plan().items() if name < "07"]
    hours = round(sum(map(sum, chapter)) / 60)
    index = (BOOK / "index.md").read_text(encoding="utf-8")
    promised = re.search(r"(\w+) pages [^.]*exercises[^.]* (\w+) hours\.", index)
    assert promised.groups() == (word(len(chapter)), word(hours))


@pytest.mark.parametrize("name", slides.pages())
def test_the_slides_of_a_deck_take_the_minutes_of_its_page(name):
    made = slides.of_page(name)
    assert deck.told(made) == pytest.approx(minutes.told(Page(name).notebook))
    exercises = sum(s.minutes for s in made if s.kind == "exercise")
    assert exercises == pytest.approx(minutes.done(name))


def test_what_is_counted():
    cell = nbformat.v4.new_code_cell
    words = nbformat.v4.new_markdown_cell(
        "# A title\n\nTwo [words](here.ipynb). <!-- = none of these -->\n\n"
        "> **Predict.** Which one?"
    )
    cells = [
        cell(metadata={"name": name}) for name in ("figure-one", "lab-one", "code")
    ]
    notebook = nbformat.v4.new_notebook(cells=[words, *cells])
    assert minutes.told(notebook) == pytest.approx(7 / 150 + 2 + 3 + 4)
    assert [minutes.rounded(m) for m in (7, 8, 12.4)] == [5, 10, 10]


# The cells in which each page keeps its promise.
PROMISED = {
    "01_why_attention": {"word-by-word", "figure-accuracy"},
    "02_simple_self_attention": {"one-word-exchanged", "nearly-the-mean"},
    "03_trainable_self_attention": {
        "figure-promise", "shuffle", "real-one-word-exchanged",
    },
    "04_causal_attention": {
        "two-losses", "written", "every-beginning", "decided-later",
    },
    "05_multi_head_attention": {"one-softmax", "two-softmaxes", "twelve-heads"},
}  # fmt: skip


def test_the_short_path_takes_half_an_hour():
    pages = [Page(name).notebook for name in PROMISED]
    assert sum(map(minutes.read, pages)) <= 30
    assert sum(len(minutes.short_path(page)[0]) for page in pages) <= 4500
    index = (BOOK / "index.md").read_text(encoding="utf-8")
    assert re.search(r"half an hour\?.+\(01_why_attention\.ipynb", index)


@pytest.mark.parametrize("name", PROMISED)
def test_the_short_path_holds_the_promise_of_its_page(name):
    _, cells = minutes.short_path(Page(name).notebook)
    assert PROMISED[name] <= {cell.metadata.name for cell in cells}


def test_what_lies_on_a_short_path():
    v4 = nbformat.v4
    shown = [v4.new_output("stream", text="1")]
    cells = [
        v4.new_markdown_cell("# A title\n\n**Short path.** [This](#this-one-31)"),
        v4.new_code_cell(metadata={"name": "figure-one"}, outputs=shown),
        v4.new_markdown_cell("## Not this\n\nWords.\n\n### This one (3.1)\n\nWords."),
        v4.new_code_cell(metadata={"name": "lab-two"}, outputs=shown),
        v4.new_code_cell(metadata={"name": "shows-nothing"}),
        v4.new_markdown_cell("> **Predict.** Which?\n\n#### Nor this\n\nWords."),
        v4.new_code_cell(metadata={"name": "three"}, outputs=shown),
    ]
    notebook = v4.new_notebook(cells=cells)
    read, found = minutes.short_path(notebook)
    assert " ".join(read) == "A title Short path This This one 3.1 Words Predict Which"
    assert [cell.metadata.name for cell in found] == ["figure-one", "lab-two"]
    assert minutes.read(notebook) == pytest.approx(11 / 150 + 1 + 5)


def test_the_route_fits_its_time():
    assert "90min" in slides.routes()
    title, chosen = slides.of_route("90min")
    spent = deck.told([slide for _, slide in chosen])
    assert 75 <= spent <= 90, f"{title}: {spent:.0f} minutes by the rule"
    assert {page for page, _ in chosen[1:]} == {
        PAGES[n] for n in slides.pages() if n[:2] in ("02", "03", "04", "05")
    }
