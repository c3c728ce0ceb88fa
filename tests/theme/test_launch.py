"""The launch links in a build with a repository set, and the tool that sets it."""

import re

import nbformat
import pytest
import yaml
from bs4 import BeautifulSoup

from coding_attention import address
from coding_attention.book import list_pages
from tests.book.pages import ROOT, pages
from tests.conftest import build_book
from tests.theme.conftest import shorten
from theme.lean_site import launch
from tools import branch, repository
from tools.measure.visit import visiting

URL = "https://github.com/some-org/some-name"
FORK = "https://github.com/Forker/their-book"
KERNEL = [page.name for page in pages()]


@pytest.fixture(scope="module")
def set_site(copy_of_book):
    """The site that the workflow of a fork publishes; its files name the upstream."""
    repository.apply(copy_of_book, URL, "https://some-org.github.io/some-name")
    shorten(copy_of_book)
    fork = {"BOOK_REPOSITORY": FORK, "BOOK_SITE": "", "BOOK_COMMIT": "1a2b"}
    done = build_book(copy_of_book, copy_of_book, **fork)
    assert done.returncode == 0, done.stdout[-3000:]
    return copy_of_book / "_build" / "html"


@pytest.fixture(scope="module")
def set_branch(set_site, tmp_path_factory):
    """The tree of the branch that the same workflow pushes."""
    folder = tmp_path_factory.mktemp("branch")
    branch.write_tree(set_site, folder)
    return folder


def links(site, entry):
    return buttons(BeautifulSoup((site / f"{entry}.html").read_text(), "html.parser"))


def buttons(soup):
    box = soup.find(class_="article-header-buttons")
    return [a["href"] for a in box.find_all("a", href=True)]


@pytest.mark.parametrize("name", KERNEL)
def test_notebook_page_launches_its_own_notebook(name, set_site, set_branch):
    """The upstream's address stands in the files, and the workflow's goes before."""
    path = f"book/{name}.ipynb"
    binder, colab, download = links(set_site, f"book/{name}")
    assert binder == (
        "https://mybinder.org/v2/gh/Forker/their-book/1a2b?urlpath=lab/tree/" + path
    )
    assert colab == (
        "https://colab.research.google.com/github/Forker/their-book/blob/notebooks/"
        + path
    )
    assert (ROOT / path).is_file()
    page = set_site / "book" / f"{name}.html"
    finished = (set_branch / path).read_text("utf-8")
    assert finished == (page.parent / download).resolve().read_text("utf-8")
    notebook = nbformat.reads(finished, as_version=4)
    code = [c.source for c in notebook.cells if c.cell_type == "code"]
    assert f"git+{FORK}@1a2b" in code[0]
    assert "some-org" not in page.read_text("utf-8") + "".join(code)


@pytest.mark.site
def test_the_launch_menu_goes_by_keys_and_closes_when_left(set_site, browser):
    url = f"{set_site.as_uri()}/book/02_simple_self_attention.html"
    with visiting(browser, url) as visit:
        visit.load()
        page = visit.page
        button = page.locator("[data-bs-toggle='dropdown']").first
        menu = button.locator("xpath=..").locator(".dropdown-menu")
        items = menu.locator("a, button").all_inner_texts()
        assert len(items) > 1

        def state():
            return menu.is_visible(), button.get_attribute("aria-expanded")

        button.focus()
        for key, at in (("Down", 0), ("Down", 1), ("Up", 0), ("Up", -1), ("Down", 0)):
            page.keyboard.press(f"Arrow{key}")
            assert state() == (True, "true")
            assert page.evaluate("document.activeElement.innerText") == items[at]
        page.keyboard.press("Escape")
        assert state() == (False, "false")
        assert button.evaluate("e => e === document.activeElement")
        for leave in (
            lambda: page.locator("h1").first.click(position={"x": 1, "y": 1}),
            lambda: page.locator(".theme-switch-button").focus(),
            button.click,
        ):
            button.click()
            assert state() == (True, "true")
            leave()
            page.mouse.move(1, 500)  # what is pointed at shows its menu, too
            assert state() == (False, "false")


def test_pages_without_a_kernel_launch_nothing(set_site, soup):
    plain = [e for e in list_pages() if e.removeprefix("book/") not in KERNEL]
    assert plain
    for entry in plain:
        assert links(set_site, entry) == []
        assert buttons(soup(entry)) == []


def opening(soup):
    """The buttons of the first page, as (words, address)."""
    return [(a.get_text(), a["href"]) for a in soup.select("article p.opening a")]


def test_first_page_runs_where_there_is_an_address(set_site, soup):
    entry = list_pages()[0]
    start = ("Start reading", "01_why_attention.html")
    assert opening(soup(entry)) == [start], "nothing to run without an address"
    page = BeautifulSoup((set_site / f"{entry}.html").read_text("utf-8"), "html.parser")
    assert opening(page) == [start, ("Run it", buttons(page)[0])]
    assert buttons(page)[0].startswith("https://mybinder.org/")


def test_full_addresses_are_given_where_they_are_known(set_site):
    base = "https://forker.github.io/their-book"
    entry = list_pages()[0]
    soup = BeautifulSoup((set_site / f"{entry}.html").read_text("utf-8"), "html.parser")
    assert soup.find("link", rel="canonical")["href"] == f"{base}/{entry}.html"
    card = soup.find("meta", property="og:image")["content"]
    assert (set_site / card.removeprefix(f"{base}/")).is_file()
    listed = re.findall("<loc>(.*?)</loc>", (set_site / "sitemap.xml").read_text())
    assert sorted(listed) == sorted(f"{base}/{e}.html" for e in list_pages())
    assert f"Sitemap: {base}/" in (set_site / "robots.txt").read_text()
    missing = BeautifulSoup((set_site / "404.html").read_text(), "html.parser")
    toc = missing.select(".bd-sidebar-primary nav a")
    assert {link["href"].split("/")[1] for link in toc} == {"their-book"}


def test_the_publishing_workflow_names_where_it_runs():
    path = ROOT / ".github" / "workflows" / "publish.yml"
    steps = yaml.safe_load(path.read_text("utf-8"))["jobs"]["build"]["steps"]
    named = next(s["env"] for s in steps if s.get("run") == "make pdf")
    assert named["BOOK_REPOSITORY"] == (
        "${{ github.server_url }}/${{ github.repository }}"
    )
    assert named["BOOK_COMMIT"] == "${{ github.sha }}"
    assert named["BOOK_SITE"] == "${{ vars.BOOK_SITE }}"


def test_addresses_of_a_workflow():
    assert launch.read_addresses({}) is None
    assert launch.read_addresses({"BOOK_REPOSITORY": FORK, "BOOK_SITE": ""}) == (
        FORK, "https://forker.github.io/their-book"
    )  # fmt: skip
    own = {"BOOK_REPOSITORY": FORK, "BOOK_SITE": "https://book.example/"}
    assert launch.read_addresses(own) == (FORK, "https://book.example")
    with pytest.raises(ValueError, match="such as https"):
        launch.read_addresses({"BOOK_REPOSITORY": "Forker/their-book"})


def test_repository_and_pages_are_in_step(soup):
    """In this repository as it stands: launch and install line together, or neither."""
    url = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["repository"]["url"]
    for page in pages():
        assert page.code_cells[0].source == address.source(url), "run: tools.repository"
    for name in KERNEL:
        hosts = [link for link in buttons(soup(f"book/{name}")) if "://" in link]
        assert len(hosts) == (2 if url else 0), hosts
