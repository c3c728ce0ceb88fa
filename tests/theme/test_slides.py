"""The decks: all that a page shows, in steps, large enough, with answers in notes."""

import ast
import io
import re

import pytest
from bs4 import BeautifulSoup
from pypdf import PdfReader

from coding_attention import address
from coding_attention.book import list_pages
from coding_attention.exercises import EXERCISES
from coding_attention.published_values import text_of
from coding_attention.stored import html_of
from tests.book.pages import Page, is_figure
from tests.book.test_predict import questions
from theme.slides import __main__ as slides
from theme.slides import fitted, formulas
from theme.slides.page import task_title

NAMES = slides.pages()
ROUTES = list(slides.routes())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    target = tmp_path_factory.mktemp("slides")
    slides.write(target, NAMES)
    for route in ROUTES:
        slides.write_route(target, route)
    return target


@pytest.fixture(scope="module")
def deck(folder):
    def parse(name):
        text = (folder / f"{name}.html").read_text(encoding="utf-8")
        return BeautifulSoup(text, "html.parser")

    return parse


def cells(name, wanted):
    """The code cells of a page, by what their names begin with or a tag of theirs."""
    for cell in Page(name).code_cells:
        tags, named = cell.metadata.get("tags", []), cell.metadata.get("name", "")
        if wanted in tags or (wanted.endswith("-") and named.startswith(wanted)):
            yield cell


def plain(text):
    return "".join(text.split())


def test_the_pages_of_the_chapter_have_decks():
    numbered = [e for e in list_pages() if re.match(r"book/\d\d_(?!questions)", e)]
    assert [f"book/{name}" for name in NAMES] == ["book/index", *numbered]
    assert len(NAMES) >= 10


def test_a_line_of_code_is_as_large_as_it_can_be_unbroken():
    assert fitted.size_of(["x = 1", ""]) == max(fitted.SIZES)
    long = "x" * 75
    size = fitted.size_of([long, ""])
    larger = [one for one in fitted.SIZES if one > size]
    assert fitted.rows_of(long, size) == 1
    assert larger
    assert all(fitted.rows_of(long, one) > 1 for one in larger)
    assert fitted.size_of(["x" * 500, ""]) is None
    # Output may be broken, if letters would else be too small.
    assert fitted.size_of(["x = 1", "x" * 500]) == max(fitted.SIZES)
    assert fitted.size_of(["x = 1", long]) == size


@pytest.mark.parametrize("name", NAMES)
def test_a_deck_has_each_figure_of_its_page_with_words(deck, name):
    shown = {}
    for slide in deck(name).find_all("section"):
        if drawn := slide.find("figure"):
            words = drawn.find(role="img")["aria-label"]
            sentence = slide.find(class_="sentence").get_text()
            drawings = shown.setdefault((words, sentence), [])
            drawings += drawn.find_all("svg")
    figures = list(cells(name, "figure-"))
    for cell in figures:
        page = BeautifulSoup(html_of(cell.outputs[0]), "html.parser")
        drawn = page.find(role="img")
        key = (drawn["aria-label"], page.figcaption.get_text())
        assert len(shown[key]) == len(drawn.find_all("svg"))
    assert len(figures) >= 2


@pytest.mark.parametrize("name", NAMES)
def test_titles_and_questions_are_those_of_the_page(deck, name):
    page = Page(name)
    text = "\n".join(page.prose)
    titles = {re.sub(r"[`*]", "", t) for t in re.findall(r"^#+ (.+)$", text, re.M)}
    titles |= {task_title(e) for e in EXERCISES.values() if e.link[0] == name}
    for slide in deck(name).find_all("section"):
        assert slide.find(["h1", "h2"]).get_text() in titles
    asked = [q.get_text() for q in deck(name).find_all(class_="question")]
    assert len(asked) == len(list(questions(page.notebook.cells)))


@pytest.mark.parametrize("name", NAMES)
def test_listings_are_built_up_line_by_line(deck, name):
    shown = deck(name).select("table.listing pre")
    wanted = [cell.source for cell in cells(name, "listing")]
    told = "\n".join(step.get_text() for step in shown)
    assert plain(told) == plain("".join(wanted))
    for table in deck(name).select("table.listing"):
        rows = table.find_all("tr")
        assert ["fragment" in row.get("class", []) for row in rows] == [
            number > 0 for number in range(len(rows))
        ]
        # One thing at a time: no step holds half of a class.
        assert max(len(r.pre.get_text().split("\n")) for r in rows) <= 8


def test_the_formulas_of_a_listing_are_those_of_its_lines():
    _, listing = cells("05_multi_head_attention", "listing")
    forward = ast.parse(listing.source).body[0].body[-1].body
    assert [f for f in map(formulas.formula, forward) if f] == [
        "q = x W_q", "k = x W_k", "v = x W_v", r"\omega = q k^\top",
        r"\omega = -\infty \text{ where } \text{hidden}",
        r"\alpha = \mathrm{softmax}(\omega / \sqrt{d_k})",
        r"\alpha = \mathrm{dropout}(\alpha)", r"z = \alpha v", "z W_o + b_o",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "formula"),
    [
        ("attn_scores = x @ x.transpose(-2, -1)", r"\omega = x x^\top"),
        ("attn_scores = keys @ queries.transpose(1, 2)", r"\omega = k q^\top"),
        ("attn_weights = torch.softmax(attn_scores, dim=-1)",
         r"\alpha = \mathrm{softmax}(\omega)"),
        ("return attn_weights @ x", r"z = \alpha x"),
        ("queries = queries.view(split).transpose(1, 2)", ""),
        ("b, num_tokens, _ = x.shape", ""),
        ("attn_scores = attn_scores / 7", ""),
    ],
)  # fmt: skip
def test_a_line_has_its_formula(line, formula):
    (statement,) = ast.parse(line).body
    assert formulas.formula(statement) == formula


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_and_its_output_are_in_the_deck(deck, name):
    told = plain("".join(pre.get_text() for pre in deck(name).select(".page pre")))
    for cell in Page(name).code_cells:
        if address.is_install(cell):
            assert plain(cell.source) not in told
        elif not cell.metadata.get("name", "").startswith(("figure-", "lab-")):
            assert plain(cell.source) in told, cell.metadata.name
            assert plain(text_of(cell)) in told, cell.metadata.name


@pytest.mark.parametrize("name", NAMES)
def test_outputs_and_folded_code_come_as_a_step_of_their_own(deck, name):
    folded = {plain(c.source) for c in cells(name, "hide-cell")}
    for slide in deck(name).find_all("section"):
        blocks = slide.select(".page pre")
        for output in slide.select(".page pre.output"):
            assert "fragment" in output["class"] or blocks[0] is output
        for block in blocks:
            if slide.find(class_="question") and plain(block.get_text()) in folded:
                assert "fragment" in block["class"]


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_to_each_question_is_in_its_notes(deck, name):
    notes = [
        plain(slide.find("aside").get_text())
        for slide in deck(name).find_all("section")
        if slide.find(class_="question")
    ]
    asked = list(questions(Page(name).notebook.cells))
    for note, (_, _, answers) in zip(notes, asked, strict=True):
        assert "Answer:" in note
        for cell in answers:
            said = text_of(cell)
            if is_figure(cell):
                page = BeautifulSoup(html_of(cell.outputs[0]), "html.parser")
                said = page.figcaption.get_text()
            assert plain(said) in note, cell.metadata.name


@pytest.mark.parametrize("name", NAMES)
def test_exercises_have_their_task_and_in_the_notes_a_solution(deck, name):
    sections = deck(name).find_all("section")
    for task in (e for e in EXERCISES.values() if e.link[0] == name):
        found = [s for s in sections if task_title(task) in s.get_text()]
        assert found, task.name
        assert f'check_exercise("{task.name}"' in found[0].aside.get_text()
        told = plain("".join(s.find(class_="page").get_text() for s in found))
        (code,) = re.findall(
            rf":name: write-{task.slug}\n+(.+?)^```", task.given(task.body), re.M | re.S
        )
        assert plain(code) in told, task.name


@pytest.mark.parametrize("name", NAMES)
def test_labs_are_pictures_that_link_to_them(deck, name):
    links = [a["href"] for a in deck(name).find_all("a")]
    labs = [cell.metadata.name for cell in cells(name, "lab-")]
    assert links == [f"../html/book/{name}.html#{lab}" for lab in labs]
    for link in deck(name).find_all("a"):
        assert link.find_parent("section").find(["svg", "table"])


def test_columns_of_a_lab_have_whole_names():
    def text(word, turned):
        move = f'transform="translate(9 20) rotate({turned})"'
        return f'<text style="font-size: 9px; x" {move}>{word}</text>'

    level = f"{text('token 0', '-0 1 2')}{text('token 1', '-0 1 2')}</svg>"
    start = '<svg viewBox="0 0 50 60">'
    cut_off = f"{start}{text('toke', -90)}{text('toke', -90)}{level}"
    whole = fitted.with_whole_labels(cut_off)
    assert re.findall(">([^<]+)</text>", whole) == ["token 0", "token 1"] * 2
    assert fitted.box(whole)[1] > 60, "there is room for them"
    others = cut_off.replace("toke<", "head<")
    assert fitted.with_whole_labels(others) == others


def test_output_is_cut_between_tensors_and_code_between_functions():
    tensor = "tensor([[1., 2.],\n        [3., 4.]])"
    output = "\n".join([tensor] * 14)
    parts = fitted.cut(output)
    assert "\n".join(parts) == output
    assert all(part.startswith("tensor") for part in parts)
    function = "def f(x):\n    y = x\n\n    return y\n\n\n"
    assert all(p.startswith("def") for p in fitted.cut(function * 7 + "f(1)")[:-1])


@pytest.mark.parametrize("name", NAMES)
def test_speakers_have_notes_without_comments_and_links(deck, name):
    for section in deck(name).find_all("section"):
        assert re.match(r"\d+ min\.|Half a minute\.", section.aside.get_text())
        assert int(section["data-timing"]) >= 0
    text = deck(name).get_text()
    assert "<!--" not in text
    for code in (soup := deck(name)).find_all("pre"):
        code.decompose()
    assert not re.search(r"\$[^$\n]+\$|\]\(", soup.get_text()), "raw formula or link"


@pytest.mark.parametrize("route", ROUTES)
def test_a_route_is_one_deck_with_a_run_sheet(folder, deck, route):
    _, chosen = slides.of_route(route)
    assert len(deck(route).find_all("section")) == len(chosen)
    rows = deck(f"{route}-run-sheet").find_all("tr")[1:]
    assert len(rows) == len(chosen)
    starts = [row.td.get_text().split(":") for row in rows]
    clock = [60 * int(hours) + int(minutes) for hours, minutes in starts]
    assert clock == sorted(clock)
    assert clock[0] == 0
    numbers = [row.find_all("td")[1].get_text() for row in rows]
    assert numbers == [str(n) for n in range(1, len(chosen) + 1)]
    spent = [slide.minutes for _, slide in chosen]
    assert clock[-1] == int(sum(spent[:-1]))


def test_a_route_that_leads_nowhere_is_refused(monkeypatch):
    nowhere = {"90min": ("A title", [("02_simple_self_attention", "no-such-place")])}
    monkeypatch.setattr(slides, "routes", lambda: nowhere)
    with pytest.raises(SystemExit, match="02_simple_self_attention#no-such-place"):
        slides.of_route("90min")


# What is too small, cut off, or over the footer, on the slide that is shown.
UNREADABLE = """() => {
  const slide = Reveal.getCurrentSlide().querySelector(".page");
  const found = [], aside = "annotation, defs, metadata, style, title, clipPath";
  const words = document.createTreeWalker(slide, NodeFilter.SHOW_TEXT);
  while (words.nextNode()) {
    const text = words.currentNode, parent = text.parentElement;
    if (!text.data.trim() || parent.closest(aside)) continue;
    const matrix = parent.closest("svg") && parent.getScreenCTM();
    const scale = matrix ? Math.hypot(matrix.a, matrix.b) : 1;
    const size = parseFloat(getComputedStyle(parent).fontSize) * scale;
    if (size < 17.95) found.push(`${size.toFixed(1)} px: ${text.data.trim()}`);
  }
  const page = slide.getBoundingClientRect();
  const footer = slide.querySelector(".from").getBoundingClientRect().top;
  for (const part of slide.querySelectorAll("*")) {
    if (part.closest(`.from, ${aside}`) || part.closest("svg") && !part.matches("text"))
      continue;
    const box = part.getBoundingClientRect();
    if (box.width && (box.bottom > footer + 1 || box.right > page.right - 10 ||
        box.left < page.left || box.top < page.top))
      found.push(`${part.tagName} ends at ${box.right}, ${box.bottom}`);
    if (part.matches("pre, p, ul, table, h2") && part.scrollWidth > part.clientWidth + 1
        && part.clientWidth)
      found.push(`${part.tagName} is ${part.scrollWidth} wide`);
  }
  return found;
}"""


@pytest.mark.site
@pytest.mark.parametrize("name", [*NAMES, *ROUTES])
def test_a_deck_can_be_read_asks_no_network_and_prints_a_slide_a_page(
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
    unreadable = {}
    for slide in range(number):
        page.evaluate(f"Reveal.slide({slide}, 0, 99)")
        # A face is loaded when a slide first shows it; until then, lines are longer.
        page.evaluate("document.fonts.ready.then(() => true)")
        if found := page.evaluate(UNREADABLE):
            unreadable[slide + 1] = found
    assert unreadable == {}
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
