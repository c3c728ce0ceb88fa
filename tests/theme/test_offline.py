"""Without the network, at a wrong address, and coming back: in a Chromium."""

import re
import shutil
from contextlib import ExitStack, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from theme.lean_site import extras, offline
from tools.measure.server import serving
from tools.measure.visit import LABS_CAME, visiting

READ = "book/02_simple_self_attention.html"
UNREAD = "book/04_causal_attention.html"


@contextmanager
def stoppable(folder):
    """Serve a folder; once stopped, no connection that was kept open answers."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def copy(site, tmp_path):
    """A site that a test may change, served until the test stops it."""
    shutil.copytree(site, tmp_path / "site")
    with ExitStack() as stack:
        yield (
            tmp_path / "site",
            stack.enter_context(stoppable(tmp_path / "site")),
            stack,
        )


def read(page, url):
    """Read a page until the worker has kept it."""
    page.goto(url)
    page.wait_for_selector(".keep-book [role=status]", state="attached")
    page.wait_for_selector("html[data-kept]", state="attached")


@pytest.mark.site
def test_a_page_that_was_read_is_there_without_a_network(browser, copy):
    _, address, server = copy
    with visiting(browser, f"{address}/{READ}", fresh=True) as visit:
        page = visit.page
        read(page, visit.url)
        assert visit.errors == []
        server.close()
        page.goto(f"{address}/{READ}#which-dim")
        assert page.locator("h1").first.inner_text().startswith("Simple self-attention")
        # With its styles and scripts.
        ground = (
            "getComputedStyle(document.querySelector('.search-button-field')).display"
        )
        assert page.evaluate(ground) == "flex"
        page.locator(".theme-switch-button").click()
        # What was not read says so, and names what was.
        page.goto(f"{address}/{UNREAD}")
        page.wait_for_url("**/offline.html")
        assert page.locator("#kept-pages a").all_inner_texts() == [
            "Simple self-attention"
        ]
        page.locator("#kept-pages a").click()
        page.wait_for_url(f"**/{READ}")
        assert visit.third_parties() == []


@pytest.mark.site
def test_the_whole_book_is_kept_on_demand_with_its_search(browser, copy):
    _, address, server = copy
    with visiting(browser, f"{address}/{READ}", fresh=True) as visit:
        page = visit.page
        read(page, visit.url)
        button = page.locator(".keep-book button")
        assert re.search(r"\d\.\d MB", button.inner_text())
        # Once is enough: the button rests until the book is there.
        assert button.evaluate("(e) => { e.click(); return e.disabled; }")
        page.wait_for_selector("text=The whole book is kept on this device.")
        assert not button.is_visible()
        server.close()
        page.goto(f"{address}/{UNREAD}")
        assert page.locator("h1").first.inner_text().startswith("Causal attention")
        page.keyboard.press("Control+k")
        page.keyboard.type("roofline")
        page.wait_for_selector(".search-hits a")
        page.keyboard.press("Enter")
        page.wait_for_url("**/07_where_the_time_goes.html#the-roofline")


@pytest.mark.site
def test_a_new_build_replaces_what_was_kept(browser, copy):
    site, address, server = copy
    caches = "async () => (await caches.keys()).length"
    with visiting(browser, f"{address}/{READ}", fresh=True) as visit:
        page = visit.page
        read(page, visit.url)
        old = (site / READ).read_text("utf-8")
        (site / READ).write_text(old.replace("plain mean", "plain wheel"), "utf-8")
        (site / "sw.js").write_text(offline.worker(site), "utf-8")
        # The reader is on another page; the one read before is fetched anew.
        answer = page.goto(f"{address}/book/notation.html")
        assert answer.from_service_worker
        # What is downloaded is not kept.
        with page.expect_response("**/shares.ipynb") as download:
            page.evaluate("fetch('../_static/exercises/shares.ipynb').then(() => 0)")
        assert download.value.ok
        assert not download.value.from_service_worker
        waiting = "async () => Boolean((await navigator.serviceWorker.ready).waiting)"
        page.evaluate("navigator.serviceWorker.ready.then((r) => r.update())")
        page.wait_for_function(waiting)
        assert page.evaluate(caches) == 2
        # With the last page closed, the new worker takes over. When a page is gone for
        # the browser only the browser knows: it is asked, from a page of nobody's.
        page.close()
        page = visit.page = visit.page.context.new_page()
        states = _worker_states(page)
        while sorted({*states.values()} - {"redundant"}) != ["activated"]:
            page.evaluate("new Promise(requestAnimationFrame)")
        page.goto(f"{address}/book/errata.html")
        assert page.evaluate(caches) == 1
        server.close()
        page.goto(f"{address}/{READ}")
        assert "plain wheel" in page.locator("article").inner_text()


def _worker_states(page):
    """Give the states of the workers by their version, kept up by the browser."""
    states = {}

    def note(event):
        for version in event["versions"]:
            states[version["versionId"]] = version["status"]

    session = page.context.new_cdp_session(page)
    session.on("ServiceWorker.workerVersionUpdated", note)
    session.send("ServiceWorker.enable")
    return states


@pytest.mark.site
def test_a_page_is_asked_for_again_where_the_browser_takes_its_copy_for_fresh(
    browser, copy, monkeypatch
):
    site, address, _ = copy
    ended = SimpleHTTPRequestHandler.end_headers

    def for_an_hour(handler):
        handler.send_header("Cache-Control", "max-age=3600")
        ended(handler)

    monkeypatch.setattr(SimpleHTTPRequestHandler, "end_headers", for_an_hour)
    with visiting(browser, f"{address}/{READ}", fresh=True) as visit:
        read(visit.page, visit.url)
        visit.page.goto(f"{address}/book/notation.html")
        old = (site / READ).read_text("utf-8")
        (site / READ).write_text(old.replace("plain mean", "plain wheel"), "utf-8")
        visit.page.goto(f"{address}/{READ}")
        assert "plain wheel" in visit.page.locator("article").inner_text()


@pytest.mark.site
def test_a_browser_that_keeps_nothing_reads_the_page_as_before(browser, address):
    with visiting(browser, f"{address}/{READ}", fresh=True) as visit:
        visit.page.add_init_script("delete Navigator.prototype.serviceWorker")
        visit.page.goto(visit.url)
        assert visit.page.evaluate("'serviceWorker' in navigator") is False
        assert visit.errors == []


def test_the_worker_keeps_what_it_should(node):
    done = node("--test", Path(__file__).with_name("worker.test.mjs"))
    assert done.returncode == 0, done.stdout


def test_another_build_is_another_version(site, tmp_path):
    shutil.copytree(site, tmp_path / "site")
    copy = tmp_path / "site"
    before = offline.worker(copy)
    assert before == offline.worker(site) == (site / "sw.js").read_text("utf-8")
    page = copy / "book" / "notation.html"
    page.write_text(page.read_text("utf-8") + " ", "utf-8")
    assert offline.worker(copy).splitlines()[0] != before.splitlines()[0]


def test_kept_files_exist_and_are_all_that_pages_ask_for(site):
    files = offline.kept_files(site)
    core = offline.core_files((site / "offline.html").read_text("utf-8"))
    assert set(core) <= set(files)
    for name in files:
        assert (site / name).is_file()
    asked = set()
    for page in (site / name for name in files if name.endswith(".html")):
        found = re.findall(r'(?:href|src)="([^"?#]*_static/[^"?#]*)', page.read_text())
        asked |= {re.sub(r"^.*_static/", "_static/", name) for name in found}
    assert asked - {"_static/social-card.png"} <= set(files)


@pytest.mark.site
def test_the_page_for_wrong_addresses_has_menu_and_search(browser, site, tmp_path):
    # At a depth that no page has, and in a folder of the host.
    shutil.copytree(site, tmp_path / "some-name")
    page = (site / "404.html").read_text("utf-8")
    page = page.replace('="/', '="./')  # as it is before it gets its root
    served = tmp_path / "some-name" / "old" / "chapters"
    served.mkdir(parents=True)
    text = extras.from_root(page, "/some-name")
    (served / "causal_atention.html").write_text(text, "utf-8")
    with serving(tmp_path) as address:
        url = f"{address}/some-name/old/chapters/causal_atention.html"
        with visiting(browser, url) as visit:
            visit.load()
            first = visit.page.locator(".search-hits a").first
            assert (
                first.get_attribute("href")
                == "/some-name/book/04_causal_attention.html"
            )
            visit.page.locator(".bd-docs-nav summary", has_text="Reference").click()
            link = visit.page.locator(".bd-sidebar-primary nav a", has_text="Notation")
            assert visit.errors == []
            link.click()
            visit.page.wait_for_url("**/some-name/book/notation.html")


def test_links_begin_at_the_root():
    page = (
        '<html data-content_root="./"><a href="book/x.html#y"><a href="#main">'
        '<a href="https://a.b/"><img src="_static/x.svg"><img src="data:,">'
        '<form action="search.html"><a href="/there">'
    )
    assert extras.from_root(page, "/name") == (
        '<html data-content_root="/name/"><a href="/name/book/x.html#y">'
        '<a href="#main">'
        '<a href="https://a.b/"><img src="/name/_static/x.svg"><img src="data:,">'
        '<form action="/name/search.html"><a href="/there">'
    )


@pytest.mark.site
@pytest.mark.parametrize("scheme", ["http", "file"])
def test_the_first_page_offers_where_one_was(scheme, browser, address, site):
    base = address if scheme == "http" else site.as_uri()
    with visiting(browser, f"{base}/book/index.html") as visit:
        page = visit.page
        visit.load()
        assert page.locator(".continue-reading").count() == 0  # nothing to continue
        page.goto(f"{base}/book/04_causal_attention.html#dropout-on-the-weights-3-5-2")
        page.wait_for_function(LABS_CAME)
        visit.drawn()
        page.goto(visit.url)
        link = page.locator(".continue-reading")
        assert "Causal attention: Dropout on the weights (3.5.2)" in link.inner_text()
        assert page.evaluate("window.seen.cls") < 0.01
        link.click()
        page.wait_for_url("**/04_causal_attention.html#dropout-on-the-weights-3-5-2")
        assert page.context.cookies() == []
        assert visit.third_parties() == []
        assert visit.errors == []


@pytest.mark.site
@pytest.mark.parametrize("width", [390, 1280])
def test_the_first_page_stays_where_a_slow_device_begins_it(
    width, browser, address, site
):
    start = (
        (site / "book/index.html").read_text("utf-8").partition('<p class="opening"')[0]
    )

    def places(cut):
        with visiting(browser, f"{address}/book/index.html", width=width) as visit:
            if cut:
                visit.page.route(
                    visit.url,
                    lambda route: route.fulfill(body=start, content_type="text/html"),
                )
            visit.page.goto(visit.url)
            return visit.page.locator(".bd-sidebar-primary, h1, h1 + p").evaluate_all(
                "(all) => all.map((one) => [getComputedStyle(one).visibility,"
                " Math.round(one.getBoundingClientRect().left)])"
            )

    assert places(cut=True) == places(cut=False)


@pytest.mark.site
def test_a_page_read_to_its_end_is_marked_on_every_page(browser, address):
    read = ".bd-docs-nav li.is-read > a"
    with visiting(browser, f"{address}/book/summary.html") as visit:
        page = visit.page
        visit.load()
        assert page.locator(read).count() == 0
        page.locator(".prev-next-area").last.scroll_into_view_if_needed()
        page.locator(read).first.wait_for(state="attached")
        for other in ("search", "book/index"):  # one without an end, and another
            page.goto(f"{address}/{other}.html")
            assert page.locator(read).count() == 1
            assert page.locator(read).get_attribute("href").endswith("summary.html")
        assert visit.errors == []


@pytest.mark.site
@pytest.mark.parametrize("width", [390, 1280])
def test_the_offer_fits_the_bar(width, browser, address):
    with visiting(browser, f"{address}/book/index.html", width=width) as visit:
        visit.page.add_init_script(
            "localStorage.setItem('coding-attention-place', JSON.stringify({page:"
            " 'book/05_multi_head_attention.html', title: 'Multi-head attention', id:"
            " 'x', heading: 'What does one view straight to the target mix up?'}))"
        )
        visit.load()
        box = visit.page.locator(".continue-reading").bounding_box()
        buttons = visit.page.locator(".article-header-buttons").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= buttons["x"]
        assert visit.page.locator(".continue-reading").is_visible()
        over = "document.documentElement.scrollWidth - innerWidth"
        assert visit.page.evaluate(over) <= 0
