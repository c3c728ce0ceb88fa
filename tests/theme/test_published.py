"""A click on a printed number that was published says who printed it."""

import pytest

from tests.book.pages import pages
from theme import lab_states, published
from theme import printed_values as data
from tools.measure.visit import axe_source, visiting

SHOWING = [
    (page.name, cell.metadata["name"], cell.metadata["shows"])
    for page in pages()
    for cell in page.code_cells
    if "shows" in cell.metadata
]
PAGE = "book/03_trainable_self_attention.html"


@pytest.mark.parametrize(("page", "name", "values"), SHOWING)
def test_each_value_is_told_below_its_cell(page, name, values, soup):
    cell = soup(f"book/{page}").find(id=name)
    line = cell.find("details", class_="published", recursive=False)
    entries = {li["data-value"]: li for li in line.find_all("li")}
    assert list(entries) == values
    for value, entry in entries.items():
        for published_entry in data.published(value):
            code_of = published_entry.get("code_of", [])
            for source in published_entry["printed_by"] + code_of:
                assert data.source_names()[source] in entry.get_text()
            assert ("Not printed" in entry.get_text()) == bool(code_of)
        assert "Ours differs" not in entry.get_text()
    # What it says of others must not stand for what the cell prints itself.
    assert not line.find_parents(class_="cell_output")


@pytest.mark.parametrize(("page", "name", "values"), SHOWING)
def test_each_published_digit_can_be_clicked(page, name, values, soup):
    cell = soup(f"book/{page}").find(id=name)
    marked = {}
    for span in cell.select(".cell_output .published-number"):
        found = data.numbers(span.get_text())
        marked.setdefault(span["data-value"], []).extend(found)
    text = "\n".join(pre.get_text() for pre in cell.select(".cell_output pre"))
    found = data.numbers(text)
    for value in values:
        places = [(e, data.place(found, e)) for e in data.published(value)]
        entry, start = next((p for p in places if p[1] is not None), (None, None))
        if entry is None:
            assert data.published(value)[0]["kind"] == "example"
        elif value in marked:
            size = len(data.flatten(entry["values"]))
            assert marked[value] == found[start : start + size]
        else:  # its digits belong to another value that the cell shows, too
            assert any(other in marked for other in values if other != value)


def test_a_differing_digit_is_called_different():
    text = "tensor([0.1500, 0.2264, 0.2199, 0.1311, 0.0906, 0.1820])"
    assert published.verdict(text, "weights_2")[0] == "equal"
    assert published.verdict(text.replace("906", "907"), "weights_2")[0] == "not equal"
    told = published.line(["weights_2"], "tensor([1.])", {}, "t.html")
    assert "Published value: not equal" in told


def test_digits_are_marked_line_by_line():
    box = (
        '<div class="cell" id="x"><pre>0.8434 0.7070</pre>'
        '<div class="cell_output"><pre>&#39;a&#39; 7 tensor([0.9544, 1.4950,\n'
        "        1.4754, 0.8434, 0.7070, 1.0865])</pre></div></div>"
    )
    told = published.mark(box, ["scores_journey"])
    span = '<span class="published-number" data-value="scores_journey">'
    assert f"tensor([{span}0.9544, 1.4950</span>,\n" in told
    assert f"{span}1.4754, 0.8434, 0.7070, 1.0865</span>])" in told
    assert told.count(span) == 2
    assert published.mark(box.replace("0.9544", "0.9545"), ["scores_journey"]).count(
        "<span"
    ) == 0  # fmt: skip


@pytest.mark.parametrize("page", sorted({page for page, _, _ in SHOWING}))
def test_a_page_says_once_how_many_values_it_reproduces(page, soup):
    shown = {value for name, _, values in SHOWING if name == page for value in values}
    kinds = [data.published(value)[0]["kind"] for value in shown]
    equal = len(kinds) - kinds.count("example")
    (told,) = soup(f"book/{page}").select(".reproduced")
    text = told.get_text()
    assert text.startswith(f"{equal} of {len(shown)} published values reproduced")
    assert ("without a seed" in text) == (equal < len(shown))


def test_a_differing_value_is_not_counted_as_reproduced():
    told = published.summary({"a": "equal", "b": "not equal", "c": "no seed"})
    assert "1 of 3 published values reproduced; 1 was printed without a seed" in told


@pytest.mark.site
def test_proofs_are_shown_to_those_who_ask_and_on_the_next_page_too(browser, address):
    with visiting(browser, f"{address}/{PAGE}") as visit:
        visit.load()
        page, line = visit.page, visit.page.locator("#weights-2 > .published")
        number = page.locator("#weights-2 .published-number").first
        style = "(e) => getComputedStyle(e).textDecorationLine"
        assert not line.is_visible()
        page.locator("details.run:has(#weights-2) > summary").click()
        number.click()  # means nothing yet
        assert not line.is_visible()
        assert number.evaluate(style) == "none"
        page.get_by_label("Show the proofs").check()
        assert line.is_visible()
        assert number.evaluate(style) == "underline"
        page.goto(f"{address}/book/04_causal_attention.html")
        assert page.locator(".published").first.is_visible()
        page.get_by_label("Show the proofs").uncheck()
        page.goto(f"{address}/{PAGE}")
        assert not line.is_visible()


@pytest.mark.site
def test_click_and_key_open_the_line(browser, address):
    with visiting(browser, f"{address}/{PAGE}", bypass_csp=True) as visit:
        visit.load()
        page = visit.page
        page.get_by_label("Show the proofs").check()
        line = page.locator("#weights-2 > .published")
        page.locator("#weights-2 .published-number").click()
        assert line.get_attribute("open") is not None
        assert "chapter" in line.locator("li.asked").inner_text()
        page.keyboard.press("Enter")  # the line has the focus
        assert line.get_attribute("open") is None
        page.keyboard.press("Enter")
        assert line.get_attribute("open") is not None
        page.evaluate(axe_source())
        found = page.evaluate("axe.run('#weights-2', {preload: false})")
        assert [rule["id"] for rule in found["violations"]] == []
        line.locator("a", has_text="table of all").click()
        page.wait_for_url("**/provenance.html#value-weights-2")
        assert visit.third_parties() == []
        assert visit.errors == []


@pytest.mark.site
def test_the_line_opens_without_scripts(browser, site):
    url = f"{site.as_uri()}/{PAGE}"
    with visiting(browser, url, java_script_enabled=False) as visit:
        visit.page.goto(url)
        line = visit.page.locator("#weights-2 > .published")
        visit.page.get_by_label("Show the proofs").check()
        visit.page.locator("details.run:has(#weights-2) > summary").click()
        assert not line.locator("li").is_visible()
        line.locator("summary").click()
        assert line.locator("li").is_visible()


# The numbers that a lab's tables show, row by row; what is edited stands in fields.
ROWS = """(cell) => [...document.querySelectorAll(`#${cell} .attn-lab tr`)].map((row) =>
  [...row.querySelectorAll("td")].map((c) => (c.querySelector("input") ?? c).value
    ?? c.textContent))"""
IN_LABS = sorted({value for *_, values in SHOWING for value in values})
IN_LABS = [value for value in IN_LABS if lab_states.state_of(value)]


def rows_of(values):
    """Give the innermost lists of digits of a reference entry."""
    if isinstance(values, str):
        return [[values]]
    if all(isinstance(value, str) for value in values):
        return [values]
    return [row for value in values for row in rows_of(value)]


def is_shown(table, row):
    """Tell whether a row of digits stands in one row of the tables, in one piece."""
    wanted = [float(digits) for digits in row]
    for line in table:
        found = [_number(text) for text in line]
        for start in range(len(found) - len(wanted) + 1):
            pairs = zip(found[start : start + len(wanted)], wanted, strict=True)
            if all(x is not None and (x == y or abs(x - y) < 5.1e-5) for x, y in pairs):
                return True
    return False


def _number(text):
    try:
        return float(text.strip().replace("\u2212", "-").replace("∞", "inf"))
    except ValueError:
        return None


def test_digits_in_a_table_are_found_and_others_are_not():
    table = [["a", "0.1000", "0.2000", "1.0000"], ["−∞", "0.5000"]]
    assert is_shown(table, ["0.1", "0.2000"])
    assert is_shown(table, ["-inf", "0.5"])
    assert not is_shown(table, ["0.2000", "0.1000"])
    assert not is_shown(table, ["0.1001", "0.2000"])


@pytest.mark.site
def test_a_link_sets_the_lab_to_what_was_published(browser, address):
    assert len(IN_LABS) > 18
    tables = {}
    for value in IN_LABS:
        page, anchor, _ = lab_states.state_of(value)
        if anchor not in tables:
            with visiting(browser, f"{address}/{page}.html#{anchor}") as visit:
                visit.load()
                tables[anchor] = visit.page.evaluate(ROWS, anchor.partition("?")[0])
        for entry in data.published(value):
            for row in rows_of(entry["values"]):
                assert is_shown(tables[anchor], row), f"{value}: {anchor} lacks {row}"


@pytest.mark.site
def test_the_way_from_a_number_to_the_lab(browser, address):
    """On the page itself: the lab, which stood elsewhere, shows the number."""
    with visiting(browser, f"{address}/book/04_causal_attention.html") as visit:
        visit.load()
        page = visit.page
        name = next(n for _, n, v in SHOWING if "causal_weights_zeroed" in v)
        digits = f"#{name} .published-number[data-value=causal_weights_zeroed]"
        page.get_by_label("Show the proofs").check()
        page.locator(digits).first.click()
        page.locator(f"#{name} .published li.asked a", has_text="mask lab").click()
        # The page's policy forbids eval, with which the browser's driver would wait.
        page.evaluate("""() => new Promise(seen => {
          const lab = document.querySelector('#lab-mask .attn-lab');
          const look = () => lab.getBoundingClientRect().top < innerHeight
            ? seen() : requestAnimationFrame(look);
          look();
        })""")
        table = page.evaluate(ROWS, "lab-mask")
        row = data.published("causal_weights_zeroed")[0]["values"][2]
        assert is_shown(table, row)
        assert visit.errors == []


def test_every_state_is_of_a_value_that_a_cell_shows():
    named = [value for *_, values in lab_states.STATES for value in values]
    assert sorted(named) == IN_LABS
