"""Wrong addresses, coming back, and a worker that takes itself away."""

import re
import shutil

import pytest
from bs4 import BeautifulSoup

from theme import moved
from theme.lean_site import extras, policy
from tools.measure.server import serving
from tools.measure.visit import LABS_CAME, visiting

pytestmark = pytest.mark.site


@pytest.mark.parametrize("old", extras.MOVED)
def test_a_moved_page_leads_to_its_heading(site, soup, old):
    entry = BeautifulSoup((site / old).read_text("utf-8"), "html.parser")
    page, heading = entry.find("a")["href"].split(".html#")
    refresh = entry.find("meta", {"http-equiv": "refresh"})["content"]
    assert refresh.endswith(f"url={page}.html#{heading}")
    assert soup(f"book/{page}").find(id=heading)


@pytest.mark.parametrize("page", moved.MOVED)
def test_old_names_of_a_page_lead_to_a_place_on_it(soup, page):
    for place, old in moved.MOVED[page].items():
        there = soup(f"book/{page}").find(id=place)
        assert set(old.split()) <= {n["id"] for n in there.find_all(id=True)}, place


def test_the_entry_page_leads_to_the_first_and_meets_its_policy(site):
    entry = BeautifulSoup((site / "index.html").read_text("utf-8"), "html.parser")
    target = entry.find("a")["href"]
    assert (site / target).is_file()
    assert target in entry.find("meta", {"http-equiv": "refresh"})["content"]
    style = policy.hash_source(entry.find("style").string)
    assert style in entry.find("meta", {"http-equiv": True})["content"]


def test_the_page_for_wrong_addresses_asks_from_the_root(soup):
    links = [a["href"] for a in soup("404").find_all(["a", "link"], href=True)]
    links += [script["src"] for script in soup("404").find_all("script", src=True)]
    assert len(links) > 30
    assert [link for link in links if not re.match(r"/|#|https:|data:", link)] == []


def test_the_page_for_wrong_addresses_has_menu_and_search(browser, site, tmp_path):
    # At a depth that no page has, and in a folder of the host.
    shutil.copytree(site, tmp_path / "some-name")
    page = (site / "404.html").read_text("utf-8")
    page = page.replace('="/', '="./')  # as it is before it gets its root
    served = tmp_path / "some-name" / "old" / "chapters"
    served.mkdir(parents=True)
    text = extras.make_links_absolute(page, "/some-name")
    (served / "causal_atention.html").write_text(text, "utf-8")
    with serving(tmp_path) as address:
        url = f"{address}/some-name/old/chapters/causal_atention.html"
        with visiting(browser, url) as visit:
            visit.load()
            first = visit.page.locator(".search-hits a").first
            there = "/some-name/book/04_causal_attention.html"
            assert first.get_attribute("href") == there
            visit.page.locator(".bd-docs-nav summary", has_text="Reference").click()
            visit.page.locator(".bd-docs-nav a", has_text="Notation").click()
            visit.page.wait_for_url("**/some-name/book/notation.html")
            assert visit.errors == []


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
        assert page.evaluate("window.shift()") < 0.01
        box = link.bounding_box()
        buttons = page.locator(".article-header-buttons").bounding_box()
        assert 0 <= box["x"] <= box["x"] + box["width"] <= buttons["x"]
        link.click()
        page.wait_for_url("**/04_causal_attention.html#dropout-on-the-weights-3-5-2")
        assert page.context.cookies() == []
        assert visit.third_parties() == []
        assert visit.errors == []


def test_the_worker_of_old_takes_away_what_it_kept_and_itself(browser, address):
    with visiting(browser, f"{address}/book/notation.html", fresh=True) as visit:
        visit.load()
        left = visit.page.evaluate("""async (root) => {
          await caches.open(`coding-attention ${root}/ an-old-build`);
          await caches.open("of something else");
          await navigator.serviceWorker.register(`${root}/sw.js`);
          while ((await navigator.serviceWorker.getRegistrations()).length)
            await new Promise(requestAnimationFrame);
          return caches.keys();
        }""", address)  # fmt: skip
        assert left == ["of something else"]
