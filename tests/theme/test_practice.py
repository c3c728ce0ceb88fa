"""Exercises on the built page: each answered right and wrong."""

import pytest

from coding_attention.exercises import EXERCISES, check_exercise, site
from tests.coding_attention.exercises.answers import list_answers
from tests.coding_attention.exercises.fill_in import fill_in
from tools.measure.visit import axe_source, visiting

pytestmark = pytest.mark.site
PAGE = "book/exercises.html"
ENTRIES = site.entries()


@pytest.fixture(scope="module")
def page(browser, address):
    """The page, once for all exercises; each has a form of its own."""
    with visiting(browser, f"{address}/{PAGE}", width=390) as visit:
        visit.load()
        yield visit.page
        assert visit.errors == []
        assert visit.third_parties() == []


def form_of(page, name):
    return page.locator(f'.practice[data-exercise="{name}"] form')


def enter(form, fields, entries):
    """Enter an answer by what a reader sees: labels, buttons, cells."""
    for index, (field, entry) in enumerate(zip(fields, entries, strict=True)):
        part = form.locator(".practice-field").nth(index)
        kind = field["kind"]
        if kind in ("number", "count", "shape"):
            part.get_by_label(field["label"], exact=True).fill(entry)
        elif kind == "choice":
            part.get_by_label(field["label"], exact=True).select_option(entry)
        elif kind in ("numbers", "matrix"):
            flat = entry if kind == "numbers" else [x for row in entry for x in row]
            for box, text in zip(part.locator("input").all(), flat, strict=True):
                box.fill(text)
        elif kind == "flags":
            for box, on in zip(part.locator("input").all(), entry, strict=True):
                box.set_checked(on)
        elif kind == "mask":
            flat = [x for row in entry for x in row]
            for cell, on in zip(part.locator("button").all(), flat, strict=True):
                if (cell.get_attribute("aria-pressed") == "true") != on:
                    cell.click()
        elif kind == "order":
            bring_in_order(part, entry)


def bring_in_order(part, letters):
    for place, letter in enumerate(letters):
        button = part.get_by_role("button", name=f"Move line {letter} up")
        for _ in range(len(letters)):
            lines = part.locator("li").all()
            now = [line.get_attribute("data-letter") for line in lines]
            if now.index(letter) <= place:
                break
            button.press("Enter")


def submit(form):
    form.get_by_role("button", name="Check").click()
    result = form.get_by_role("status").last
    return result.get_attribute("data-outcome"), result.inner_text()


def answers(name):
    """One right answer and two wrong ones that can be entered, with their texts."""

    tried = [one for one in list_answers(name) if fill_in(name, one.answer)]
    rights = [one.answer for one in tried if one.right]
    wrongs = [
        one.answer for one in tried if not one.right
        and ". Expected " not in (text := check_exercise(name, one.answer).text)
        and "It was called" not in text
    ]  # fmt: skip
    return rights[0], wrongs[0], wrongs[-1]


@pytest.mark.parametrize("name", ENTRIES)
def test_right_and_two_wrong_answers(name, page):
    right, *wrongs = answers(name)
    form = form_of(page, name)
    for answer in (*wrongs, right):
        enter(form, ENTRIES[name]["fields"], fill_in(name, answer))
        outcome, said = submit(form)
        expected = check_exercise(name, answer)
        assert outcome == expected.outcome
        words = expected.text.partition(": ")[2]
        assert said == words[0].upper() + words[1:]
    assert form.locator(".practice-mark").inner_text() == "✓ done"


def test_a_link_to_a_late_exercise_leads_there(browser, address):
    """Forms above it come in after the page, higher than what they replace."""
    with visiting(browser, f"{address}/{PAGE}#a-sliding-window") as visit:
        visit.load()
        section = visit.page.locator(":target")
        top = section.evaluate("(e) => e.getBoundingClientRect().top")
        assert 0 <= top < visit.page.evaluate("innerHeight / 2")


def test_what_to_read_is_linked(page, address):
    form = form_of(page, "scale")
    enter(form, ENTRIES["scale"]["fields"], ["16"])
    submit(form)
    link = form.get_by_role("status").get_by_role("link")
    assert link.inner_text() in ENTRIES["scale"]["read"]
    there = link.get_attribute("href")
    page_there, _, anchor = there.rpartition("/")[2].partition("#")
    assert page_there == "03_trainable_self_attention.html"
    assert anchor.startswith("step-by-step-for-one-query")


def test_progress_stays_in_the_browser_and_can_be_forgotten(browser, address, soup):
    written = soup("book/exercises").select_one(".practice-progress")
    with visiting(browser, f"{address}/{PAGE}") as visit:
        visit.load()
        line = visit.page.locator(".practice-progress")
        assert line.inner_text() == written.get_text()  # so nothing moves
        assert f"{len(ENTRIES)} exercises" in line.inner_text()
        form = form_of(visit.page, "which-dim")
        enter(form, ENTRIES["which-dim"]["fields"], ["-1"])
        submit(form)
        visit.page.reload()
        assert f"1 of {len(ENTRIES)}" in line.inner_text()
        mark = form_of(visit.page, "which-dim").locator(".practice-mark")
        assert mark.inner_text() == "✓ done"
        assert visit.page.context.cookies() == []
        line.get_by_role("button", name="Forget this").click()
        assert mark.inner_text() == ""
        # The button is gone, and the focus where it was; Tab never stops there.
        assert line.evaluate("(e) => e === document.activeElement && e.tabIndex < 0")
        visit.page.reload()
        assert "remembered in this browser" not in line.inner_text()


def test_answered_by_keyboard_alone(browser, address):
    with visiting(browser, f"{address}/{PAGE}") as visit:
        visit.load()
        page, press = visit.page, visit.page.keyboard.press
        form_of(page, "shapes").get_by_label("Shape of the scores").focus()
        page.keyboard.type("2, 6, 6")
        press("Tab")
        page.keyboard.type("(2, 6, 3)")
        press("Enter")
        result = form_of(page, "shapes").get_by_role("status")
        assert result.get_attribute("data-outcome") == "right"
        form = form_of(page, "causal-mask")
        form.locator("button").first.focus()
        for i in range(4):
            for j in range(4):
                if j > i:
                    press("Space")
                press("Tab")
        press("Enter")
        result = form.get_by_role("status")
        assert result.get_attribute("data-outcome") == "right"


def test_lines_move_both_ways_and_say_where_they_are(page):
    name, fields = next((name, known["fields"]) for name, known in ENTRIES.items()
                        if known["fields"][0]["kind"] == "order")  # fmt: skip
    part = form_of(page, name).locator(".practice-field").first
    letters = [letter for letter, _ in fields[0]["options"]]
    first, second = letters[:2]
    order = "all => all.map(e => e.dataset.letter)"
    said, focus = part.get_by_role("status"), "document.activeElement.ariaLabel"
    start = part.locator("li").evaluate_all(order)
    bring_in_order(part, letters)
    for way, place in (("down", 2), ("up", 1), ("up", 1)):  # at the top it stays
        part.get_by_role("button", name=f"Move line {first} {way}").press("Enter")
        found = part.locator("li").evaluate_all(order)
        assert found[:2] == ([second, first] if place == 2 else [first, second])
        assert said.inner_text() == f"Line {first} is now at place {place}."
        assert page.evaluate(focus) == f"Move line {first} {way}"
    bring_in_order(part, start)


def test_without_storage_answers_are_still_checked(browser, address):
    with visiting(browser, f"{address}/{PAGE}") as visit:
        visit.page.add_init_script(
            "Object.defineProperty(window, 'localStorage', "
            "{get() { throw new Error('blocked'); }})"
        )
        visit.page.goto(visit.url)
        form = form_of(visit.page, "which-dim")
        enter(form, ENTRIES["which-dim"]["fields"], ["2"])
        assert submit(form)[0] == "right"
        assert form.locator(".practice-mark").inner_text() == "✓ done"


def test_without_scripts_the_task_is_there_and_says_what_it_needs(soup):
    html = soup("book/exercises")
    places = html.select(".practice")
    assert len(places) == len(EXERCISES)
    for place in places:
        words = place.get_text()
        assert ("needs scripts" in words) or ("needs Python" in words)
        section = place.find_parent("section")
        assert section.find("h3")
        assert len(section.find("p").get_text()) > 10
    names = {place.get("data-exercise") for place in places} - {None}
    assert names == set(ENTRIES)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_out_of_reach(width, scheme, browser, address):
    with visiting(browser, f"{address}/{PAGE}", width=width, scheme=scheme) as visit:
        visit.load()
        over = "document.documentElement.scrollWidth - innerWidth"
        assert visit.page.evaluate(over) <= 0
        for name, entry in (("shapes", ["1", "2"]), ("scale", ["4"])):
            enter(form_of(visit.page, name), ENTRIES[name]["fields"], entry)
            submit(form_of(visit.page, name))
        visit.page.evaluate(axe_source())
        found = visit.page.evaluate(
            "axe.run({include: ['.practice']}).then(r => r.violations.map(v =>"
            " [v.id, v.nodes.length, v.nodes[0].html.slice(0, 200)]))"
        )
        assert found == []
