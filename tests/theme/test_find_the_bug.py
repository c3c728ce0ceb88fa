"""The page "Find the bug" as people use it: without scripts, by mouse, by keys."""

import json

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import expect

from theme import find_the_bug

PAGE = "book/find_the_bug"
STORED = json.loads(find_the_bug.STORED.read_text(encoding="utf-8"))
CASES = STORED["cases"]


def right_cause(case):
    return next(c for c in case["choices"] if c["bug"] == case["bug"])


# ---- as it is written ----


def test_a_case_can_be_read_without_scripts(soup):
    for case, element in zip(CASES, soup(PAGE).select(".fb-case"), strict=True):
        causes = [item.text for item in element.select(".fb-causes li")]
        assert causes == [c["cause"] for c in case["choices"]]
        answer = element.select_one("details.fb-answer")
        assert not answer.has_attr("open")
        words = answer.get_text()
        assert right_cause(case)["cause"] in words
        assert case["broken"] in words
        assert case["mended"] in words


def test_the_pictures_hold_the_stored_numbers(soup):
    for case, element in zip(CASES, soup(PAGE).select(".fb-case"), strict=True):
        if case["kind"] == "loss":
            assert element.select_one(".fb-this .fb-line")["points"].count(",") == 20
            continue
        both = right_cause(case)["picture"], STORED["right"][case["kind"]]
        for values, figure in zip(both, (".fb-this", ".fb-right"), strict=True):
            grids = values if case["kind"] in ("heads", "batch") else [values]
            tables = element.select(f"{figure} table")
            for grid, table in zip(grids, tables, strict=True):
                shown = [
                    [cell.text for cell in row.select("td:not(.fb-sum)")]
                    for row in table.select("tbody tr")
                ]
                known = [[find_the_bug.format_number(x) for x in row] for row in grid]
                assert shown == known
                assert table["aria-label"]


# ---- as it is played ----

# What a figure's tables say: their names and numbers, and how dark each is.
SAID = """(all) => [all.map((e) => e.ariaLabel ?? e.textContent),
  all.map((e) => parseInt(e.style.getPropertyValue("--tone")) || 0)]"""


def said(choice, kind):
    """Give what Python draws of a mistake, as SAID gives it."""
    name = "With that mistake"
    drawn = find_the_bug.draw_picture(choice["picture"], kind, name)
    parts = BeautifulSoup(drawn, "html.parser").select("table, td")
    tones = [e.get("style", "0%").removeprefix("--tone:")[:-1] for e in parts]
    return [e.get("aria-label") or e.text for e in parts], [int(x) for x in tones]


@pytest.fixture
def opened(browser, address):
    """Open the page in a fresh browser context; gives the page."""
    made = []

    def open_(**options):
        context = browser.new_context(**options)
        made.append(context)
        page = context.new_page()
        page.errors = []
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.on("console", lambda m: m.type == "error" and page.errors.append(m.text))
        page.goto(f"{address}/{PAGE}.html")
        return page

    yield open_
    for context in made:
        context.close()


def case_of(page, number):
    return page.locator(f'.fb-case[data-case="{number}"]')


def button(page, number, cause):
    return case_of(page, number).get_by_role("button", name=cause)


@pytest.mark.site
def test_wrong_then_right_then_a_score_that_stays(opened):
    page = opened(permissions=["clipboard-read", "clipboard-write"])
    first, right = CASES[0], right_cause(CASES[0])["cause"]
    other, wrong = [c for c in first["choices"] if c["bug"] != first["bug"]][:2]
    box = case_of(page, 1)
    button(page, 1, other["cause"]).click()
    button(page, 1, wrong["cause"]).click()
    expect(box.locator(".fb-reply")).to_have_text(f"Not this one. {wrong['looks']}")
    # What that mistake would have shown, from what its class computed.
    shown = box.locator("table[aria-label='With that mistake'] tbody td:not(.fb-sum)")
    numbers = [find_the_bug.format_number(x) for row in wrong["picture"] for x in row]
    assert shown.all_text_contents() == numbers
    assert not box.locator("details").evaluate("e => e.open")
    button(page, 1, right).click()
    expect(box.locator(".fb-reply")).to_have_text("Yes, that is it.")
    assert box.locator("details").evaluate("e => e.open")

    second = right_cause(CASES[1])["cause"]
    button(page, 2, second).click()
    expect(case_of(page, 2).locator(".fb-reply")).to_have_text(
        "Yes, at the first guess."
    )
    words = f"Solved 2 of {len(CASES)}, 1 at the first guess."
    expect(page.locator(".fb-score p")).to_have_text(words)
    page.reload()
    expect(page.locator(".fb-score p")).to_have_text(words)
    assert button(page, 2, second).get_attribute("data-mark") == "right"
    assert page.locator("details.fb-answer[open]").count() == 0
    page.get_by_role("button", name="Copy the score").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == f"Find the bug: 2 of {len(CASES)}\n🟨🟩" + "⬜" * (len(CASES) - 2)
    page.get_by_role("button", name="Start over").click()
    expect(page.locator(".fb-score p")).to_have_text(f"Solved 0 of {len(CASES)}.")
    assert button(page, 2, second).get_attribute("data-mark") is None
    # It was wrong once before: that is forgotten.
    button(page, 1, right).click()
    expect(box.locator(".fb-reply")).to_have_text("Yes, at the first guess.")
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(); }")
    page.get_by_role("button", name="Copy the score").click()
    expect(page.get_by_role("button", name="does not allow it")).to_be_visible()
    page.get_by_role("button", name="Start over").click()
    assert page.locator("details.fb-answer[open]").count() == 0
    assert page.errors == []


# From its heading to the folded answer: what a reader sees of a case at once.
HEIGHT = """(e) => e.querySelector("summary").getBoundingClientRect().bottom
  - e.closest("section").querySelector("h3").getBoundingClientRect().top"""

PLACE = """(e) => [e.getBoundingClientRect().top + scrollY, e.offsetHeight]"""


@pytest.mark.site
def test_every_case_is_solved_with_keys_alone(opened):
    page = opened(viewport={"width": 390, "height": 844})
    for number in range(1, len(CASES) + 1):
        assert case_of(page, number).evaluate(HEIGHT) <= 844, number
    # Of four grids a phone shows two, and exchanges them on the same place.
    four = page.locator(".fb-one").first
    place = four.locator(".fb-this").evaluate(PLACE)
    four.get_by_role("button", name="Show the right layer").click()
    assert four.locator(".fb-right").evaluate(PLACE) == place
    assert not four.locator(".fb-this").is_visible()
    four.get_by_role("button", name="Show this layer").click()
    assert four.locator(".fb-this").evaluate(PLACE) == place
    for number, case in enumerate(CASES, start=1):
        for choice in sorted(case["choices"], key=lambda c: c["bug"] == case["bug"]):
            target = button(page, number, choice["cause"])
            target.focus()
            page.keyboard.press("Enter")
            solved = choice["bug"] == case["bug"]
            mark = "right" if solved else "wrong"
            assert target.get_attribute("data-mark") == mark, choice
            if not solved:
                parts = case_of(page, number).locator(".fb-reply + * :is(table, td)")
                words, tones = parts.evaluate_all(SAID)
                known, known_tones = said(choice, case["kind"])
                # Python and JavaScript do not round halves the same way.
                for one, other in zip(words, known, strict=True):
                    assert one == other or abs(float(one) - float(other)) < 0.011
                assert tones == pytest.approx(known_tones, abs=1)
    sections = page.locator("section:has(> .fb-case)").evaluate_all(
        "(all) => all.map((e) => `#${e.id}`)"
    )
    following = page.locator(".fb-next").evaluate_all("(all) => all.map((e) => e.hash)")
    assert following == sections[1:]
    words = f"Solved {len(CASES)} of {len(CASES)}, 0 at the first guess."
    expect(page.locator(".fb-score p")).to_have_text(words)
    assert page.errors == []
    small = page.locator(".fb-case button, .fb-score button").evaluate_all(
        "all => all.map(e => e.getBoundingClientRect().height).filter(h => h < 24)"
    )
    assert small == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.site
def test_a_curve_is_drawn_anew_where_it_was_drawn_first(opened):
    page = opened()
    number, case = next(
        (i, c) for i, c in enumerate(CASES, start=1) if c["kind"] == "loss"
    )
    for choice in case["choices"]:
        if choice["bug"] == case["bug"]:
            continue
        button(page, number, choice["cause"]).click()
        line = case_of(page, number).locator(
            ".fb-reply + * .fb-line, .fb-that .fb-line"
        )
        drawn = line.last.get_attribute("points").replace(",", " ").split()
        wanted = find_the_bug.list_points(choice["picture"]).replace(",", " ").split()
        near = [float(x) for x in wanted]
        start, end = (find_the_bug.format_number(choice["picture"][i]) for i in (0, -1))
        told = f"With that mistake: the loss is {start} at first, {end} in the end."
        name = case_of(page, number).get_by_role("img", name=told, exact=True)
        assert name.count() == 1
        assert [float(x) for x in drawn] == pytest.approx(near, abs=0.1)


@pytest.mark.site
def test_without_scripts_no_button_lies_dead(opened):
    page = opened(java_script_enabled=False)
    assert page.locator(".fb-case button").count() == 0
    assert page.locator(".fb-score").inner_text() == ""
    assert page.locator(".fb-case").first.locator("summary").is_visible()
