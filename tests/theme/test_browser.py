"""The site in use: policy, themes, copying and keyboard, in a Chromium."""

import re

import pytest
from playwright.sync_api import expect

from tools.measure.visit import visiting

pytestmark = pytest.mark.site
PAGE = "book/02_simple_self_attention.html"


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_theme_follows_the_system_and_the_button(scheme, browser, address, site):
    base = address if scheme == "http" else site.as_uri()
    ground = "() => getComputedStyle(document.body).backgroundColor"
    with visiting(browser, f"{base}/{PAGE}", scheme="dark") as visit:
        visit.load()
        dark = visit.page.evaluate(ground)
        button = visit.page.locator(".theme-switch-button")
        assert button.locator("svg:visible").count() == 1
        # The first step is one that shows; the name of the button says where one is.
        for mode, told in (
            ("light", "light"),
            ("dark", "dark"),
            ("auto", "as the system"),
        ):
            button.click()
            assert visit.page.evaluate("document.documentElement.dataset.mode") == mode
            assert button.get_attribute("aria-label") == f"Color theme: {told}"
            assert (visit.page.evaluate(ground) == dark) == (mode != "light")
        visit.page.evaluate("localStorage.setItem('mode', 'light')")
        visit.load()
        assert visit.page.evaluate(ground) != dark
        assert visit.errors == []


def test_theme_is_set_before_the_first_paint(browser, address):
    with visiting(browser, f"{address}/{PAGE}", scheme="dark") as visit:
        # Without the theme's own scripts, only what stands in the page can set it.
        visit.page.route("**/*.js*", lambda route: route.abort())
        visit.page.goto(visit.url)
        assert visit.page.evaluate("document.documentElement.dataset.theme") == "dark"


@pytest.mark.parametrize("late", [r"[\w-]+", "maths|code"])  # all faces, and two
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize(
    ("page", "face"),
    [
        ("book/01_why_attention", "attention-maths"),
        ("book/04_questions", "attention-maths"),
        ("book/summary", "attention-maths"),
        ("book/provenance", "attention-code"),
    ],
)
def test_a_face_that_comes_late_moves_no_line(
    page, face, width, late, browser, address
):
    held = []
    with visiting(browser, f"{address}/{page}.html", width=width) as visit:
        faces = re.compile(rf"/({late})\.woff2$")
        visit.page.route(faces, lambda route: held.append(route))
        visit.page.goto(visit.url, wait_until="domcontentloaded")
        # The words are there in other faces: longer than a browser waits for its own.
        visit.page.wait_for_function(
            """() => performance.getEntriesByName("first-contentful-paint").some(
              ({ startTime }) => performance.now() > startTime + 400)"""
        )
        assert len(held) >= 1
        for route in held:
            route.continue_()
        # A displayed formula and code take theirs all the same.
        loaded = """async () => {
          await document.fonts.ready;
          return [...document.fonts].filter((face) => face.status === "loaded")
            .map((face) => face.family);
        }"""
        assert face in visit.page.evaluate(loaded)
        visit.drawn()
        assert visit.page.evaluate("window.shift()") <= 0.005


def test_the_page_does_not_wait_for_its_labs(browser, address):
    held, holds = [], True
    with visiting(browser, f"{address}/book/04_causal_attention.html") as visit:
        page = visit.page
        page.route(
            "**/labs.js*",
            lambda route: held.append(route) if holds else route.continue_(),
        )
        # The page stands, and its own controls work, while no lab has come.
        page.goto(visit.url, wait_until="domcontentloaded")
        page.locator(".theme-switch-button").click()
        assert page.evaluate("document.documentElement.dataset.mode") != "auto"
        assert page.locator("#lab-mask .attn-static").is_visible()
        holds = False
        for route in held:
            route.continue_()
        page.wait_for_selector("#lab-mask .attn-static", state="detached")
        page.wait_for_selector("#lab-dropout .attn-static", state="detached")
        assert visit.errors == []


def test_all_but_labs_works_without_scripts(browser, address):
    url = f"{address}/book/04_causal_attention.html"
    color = "(e) => getComputedStyle(e).color"
    with visiting(browser, url, width=390, java_script_enabled=False) as visit:
        visit.page.goto(url)
        code = visit.page.locator("pre:visible", has=visit.page.locator(".kn")).first
        keyword, plain = code.locator(".kn").first, code.locator(".n").first
        assert keyword.evaluate(color) != plain.evaluate(color)
        # What would do nothing is not there; the lists of a phone's menu are.
        for gone in (".theme-switch-button", ".sidebar-toggle.btn", ".open-search"):
            for button in visit.page.locator(gone).all():
                assert not button.is_visible(), gone
        visit.page.locator(".bd-sidebar-primary summary", has_text="Reference").click()
        entry = visit.page.locator(".bd-sidebar-primary a", has_text="Notation")
        assert entry.is_visible()
        entry.click()
        visit.page.wait_for_url("**/notation.html")
        visit.page.goto(url)
        assert visit.page.locator("#lab-mask .attn-static").is_visible()


def test_contents_follow_and_bars_open(browser, address):
    url = f"{address}/book/04_causal_attention.html"
    where = """() => [...document.querySelectorAll(".page-toc a")].filter(
      (a) => a.classList.contains("active") && a.getAttribute("aria-current"))
      .map((a) => a.textContent)"""
    with visiting(browser, url) as visit:
        visit.load()
        for heading in ("two-ways-to-hide-3-5-1", "summary", "the-class-3-5-3"):
            visit.page.evaluate(
                "(id) => document.getElementById(id).scrollIntoView("
                "{behavior: 'instant'})",
                heading,
            )
            visit.drawn()
            title = visit.page.locator(f"#{heading} > h2 > span").inner_text()
            assert visit.page.evaluate(where) == [title]
        assert visit.errors == []
    with visiting(browser, url, width=390) as visit:
        visit.load()
        for which, bar in (("primary", "averaging route"), ("secondary", "Summary")):
            button = visit.page.locator(f".{which}-toggle")
            entry = visit.page.locator(f".bd-sidebar-{which} a", has_text=bar).last
            assert button.get_attribute("aria-expanded") == "false"
            button.focus()
            visit.page.keyboard.press("Enter")
            assert button.get_attribute("aria-expanded") == "true"
            entry.wait_for(state="visible")
            inside = "(bar) => document.activeElement.closest(`.bd-sidebar-${bar}`)"
            visit.page.wait_for_function(inside, arg=which)
            visit.page.keyboard.press("Escape")
            entry.wait_for(state="hidden")
            assert button.get_attribute("aria-expanded") == "false"
            assert button.evaluate("(e) => e === document.activeElement")
        assert visit.errors == []


def test_the_way_back_up_is_offered_to_those_who_turn_back(browser, address):
    url = f"{address}/book/04_causal_attention.html"
    with visiting(browser, url, width=390) as visit:  # a wide page lists its contents
        visit.load()
        up = visit.page.locator("#pst-back-to-top")
        bar = visit.page.locator(".bd-header-article")
        shadow = "(bar) => getComputedStyle(bar).boxShadow"
        assert bar.evaluate(shadow) == "none"
        for way, offered in ((3000, False), (-400, True), (90, False), (-2300, False)):
            visit.page.evaluate("way => scrollBy({top: way, behavior: 'instant'})", way)
            visit.drawn()
            assert up.is_visible() == offered, way
        assert bar.evaluate(shadow) != "none"  # the text goes on below it
        visit.page.evaluate("scrollBy({top: 3000, behavior: 'instant'})")
        visit.drawn()
        visit.page.evaluate("scrollBy({top: -100, behavior: 'instant'})")
        visit.drawn()
        up.click()
        visit.page.wait_for_function("() => scrollY === 0")


def test_the_list_of_pages_stays_where_it_was(browser, address):
    top = "document.querySelector('.bd-sidebar-primary').scrollTop"
    here = """() => {
      const [bar, page] = ['.bd-sidebar-primary', '.bd-docs-nav .current.active']
        .map((part) => document.querySelector(part).getBoundingClientRect());
      return page.top >= bar.top && page.bottom <= bar.bottom; }"""
    low = {"width": 1280, "height": 300}
    with visiting(browser, f"{address}/{PAGE}", viewport=low) as visit:
        visit.load()
        assert visit.page.evaluate(here)
        visit.page.evaluate(f"{top} = 40")
        visit.page.goto(f"{address}/book/04_causal_attention.html")
        assert visit.page.evaluate(top) == 40


def test_policy_blocks_what_it_must(browser, address):
    attempts = """async () => {
      const result = {};
      const script = document.createElement("script");
      script.textContent = "window.ran = true";
      document.head.append(script);
      result.inline = Boolean(window.ran);
      try { eval("1"); result.eval = true; } catch { result.eval = false; }
      try { await fetch("https://other.example/"); result.fetch = true; }
      catch { result.fetch = false; }
      return result;
    }"""
    with visiting(browser, f"{address}/{PAGE}") as visit:
        visit.load()
        visit.page.evaluate(
            "window.violated = []; document.addEventListener('securitypolicyviolation',"
            " (e) => violated.push(e.violatedDirective))"
        )
        # Playwright evaluates outside of the policy; a click does not.
        visit.page.evaluate(
            f"() => {{ const go = {attempts};"
            " document.body.addEventListener('click', () => go().then("
            " (r) => { window.result = r; }), {once: true}); }"
        )
        visit.page.mouse.click(5, 5)
        visit.page.wait_for_function("window.result")
        result = visit.page.evaluate("window.result")
        assert result == {"inline": False, "eval": False, "fetch": False}
        # The browser tells of it in a task of its own, maybe later than the answers.
        visit.page.wait_for_function(
            "['script-src-elem', 'connect-src'].every((d) => violated.includes(d))"
        )


def test_copy_button_copies_the_code(browser, address):
    with visiting(browser, f"{address}/{PAGE}") as visit:
        visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        visit.page.clock.install()
        visit.load()
        code = visit.page.locator("div.cell_input pre").first.inner_text()
        button = visit.page.locator("button.copybtn").first
        name = button.get_attribute("aria-label")
        assert name.startswith("Copy the cell ")
        sheets = button.locator("svg > *")
        assert [sheet.evaluate("e => e.localName") for sheet in sheets.all()] == [
            "rect",
            "path",
        ]
        # As browsers do it today, and where they know only the old way.
        for way in ("", "navigator.clipboard.writeText('')", "hidden"):
            if way == "hidden":
                visit.page.evaluate(
                    "() => { window.kept = navigator.clipboard; Object.defineProperty("
                    "navigator, 'clipboard', { value: null, configurable: true }); }"
                )
            elif way:
                visit.page.evaluate(way)
            button.click(force=True)
            # The browser answers when it will, so the label is waited for.
            expect(button).to_have_attribute("aria-label", "Copied")
            assert button.get_attribute("title") == "Copied"
            visit.page.clock.run_for(60_000)
            assert button.get_attribute("aria-label") == name
            read = "(window.kept ?? navigator.clipboard).readText()"
            assert visit.page.evaluate(read).strip() == code.strip()
        # Where neither works, the button says so.
        visit.page.evaluate("document.execCommand = () => false")
        button.click(force=True)
        expect(button).to_have_attribute("aria-label", "The browser does not allow it")
        assert visit.errors == []


def test_code_keeps_its_lines_on_a_phone(browser, address):
    """A wrapped line reads as broken Python."""
    with visiting(browser, f"{address}/{PAGE}", width=390) as visit:
        visit.load()
        wrapped = visit.page.eval_on_selector_all(
            "article .cell_input pre, article .highlight-python pre",
            "(all) => all.filter((e) => e.offsetParent &&"
            " getComputedStyle(e).whiteSpace !== 'pre').length",
        )
    assert wrapped == 0


def test_cut_code_is_reached_by_keyboard(browser, address):
    with visiting(browser, f"{address}/{PAGE}", width=390) as visit:
        visit.load()
        # Every second box is made too narrow for its code.
        stops = visit.page.eval_on_selector_all(
            "article pre",
            """async (all) => {
              document.querySelectorAll("details").forEach((e) => { e.open = true; });
              const wide = (e) => e.textContent.trim().length > 20;
              const narrow = all.filter(wide).filter((_, i) => i % 2);
              for (const e of narrow) e.style.cssText = "white-space: pre; width: 3em";
              for (const _ of "123") await new Promise(requestAnimationFrame);
              return all.map((e) => [e.scrollWidth > e.clientWidth,
                e.scrollHeight > e.clientHeight, e.tabIndex, "cut" in e.dataset]);
            }""",
        )
        boxes = visit.page.locator(".cell_output > .output[data-cut]").count()
    assert boxes == 0  # the mark of a cut is for code
    assert {is_wide for is_wide, *_ in stops} == {True, False}
    for is_wide, is_long, stop, mark in stops:
        assert (stop, mark) == (0 if is_wide or is_long else -1, is_wide)


def test_printed_page_is_light_and_whole(browser, address):
    with visiting(browser, f"{address}/{PAGE}", scheme="dark") as visit:
        visit.load()
        answers = visit.page.locator("details.hide .cell_output")
        seen = "(all) => all.filter((e) => e.checkVisibility()).length"
        assert answers.evaluate_all(seen) == 0 < answers.count()
        visit.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        visit.page.emulate_media(media="print")
        assert answers.evaluate_all(seen) == answers.count()
        assert not visit.page.locator("details.hide > summary").first.is_visible()
        # Paper would show the first frame of what fades in, which is nothing.
        moves = "(all) => all.map((e) => getComputedStyle(e).animationName)"
        shown = visit.page.locator("details.hide[open] > :not(summary)")
        assert {*shown.evaluate_all(moves)} == {"none"}
        assert visit.page.evaluate("document.documentElement.dataset.theme") == "light"
        cut = visit.page.eval_on_selector_all(
            "article pre",
            "(all) => all.filter((e) => e.offsetParent"
            " && e.scrollWidth > e.clientWidth + 1).map((e) => e.innerText)",
        )
        assert cut == []
        assert not visit.page.locator(".bd-sidebar-primary").is_visible()
        dead = visit.page.locator(".attn-lab :is(.al-controls, .al-tabs) > *")
        assert dead.count() > 0
        assert dead.evaluate_all(seen) == 0
        # What reads a cell aloud sticks to the window; on paper it would cover numbers.
        stuck = visit.page.eval_on_selector_all(
            ".attn-lab *",
            "(all) => all.filter((e) => e.offsetParent"
            " && getComputedStyle(e).position === 'sticky').length",
        )
        assert visit.page.locator(".attn-lab").count() > 0
        assert stuck == 0
        visit.page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert visit.page.evaluate("document.documentElement.dataset.theme") == "dark"
        assert answers.evaluate_all(seen) == 0


@pytest.mark.parametrize("width", [390, 1280])
def test_a_link_to_a_late_cell_leads_there(width, browser, address):
    """Labs above it come in after the page, less high than what they replace."""
    url = f"{address}/book/05_multi_head_attention.html#same-function"
    place = "() => document.getElementById('same-function').getBoundingClientRect().top"
    with visiting(browser, url, width=width) as visit:
        visit.load()
        # The last lab above may still be coming in on a busy machine.
        there = (
            f"() => {{ const y = ({place})(); return 0 <= y && y < innerHeight / 2 }}"
        )
        visit.page.wait_for_function(there)
        assert visit.page.evaluate("scrollY > 5 * innerHeight")
