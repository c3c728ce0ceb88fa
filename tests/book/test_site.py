"""The built HTML: no warnings, every page and link there, every value readable."""

import re
from functools import cache
from urllib.parse import unquote, urlparse

import pytest
import yaml
from bs4 import Comment

from coding_attention import address
from coding_attention.book import list_pages
from coding_attention.published_values import NOT_EQUAL, compare
from tests.book.pages import ROOT, pages

LINKING = {"a": "href", "link": "href", "script": "src", "img": "src"}


@pytest.fixture(scope="module")
def soups(site, soup):
    return {
        path: soup(path.relative_to(site).with_suffix("").as_posix())
        for path in sorted(site.rglob("*.html"))
        if "_static" not in path.parts
    }


@pytest.fixture(scope="module")
def anchors(site, soups, anchors):
    """The elements of each page that have an id, by the page's path and that id."""
    return {
        path: anchors(path.relative_to(site).with_suffix("").as_posix())
        for path in soups
    }


def test_builds_without_warnings(site_log):
    assert "build succeeded." in site_log
    assert "WARNING" not in site_log


def test_no_proof_reaches_the_site(site, soups):
    """The proofs of the digits are for editors: no page and no search holds them."""
    for entry in list_pages():
        comments = soups[site / f"{entry}.html"].article.find_all(string=_is_comment)
        assert comments == [], entry
    search = (site / "_static" / "search-texts.js").read_text(encoding="utf-8")
    # One page shows how proofs are written.
    assert "<!--" not in search.replace("<!-- = weights:2 -->", "")


def _is_comment(string):
    return isinstance(string, Comment)


def test_every_page_of_the_contents_is_reachable(site, soups):
    for entry in list_pages():
        assert site / f"{entry}.html" in soups, entry
    start = site / "book" / "index.html"
    links = {target.resolve() for target, _ in _internal_links(start, soups[start])}
    for entry in list_pages():
        assert (site / f"{entry}.html").resolve() in links, (
            f"index does not link {entry}"
        )


def test_every_internal_link_and_anchor_resolves(soups, anchors):
    broken = []
    for path, soup in soups.items():
        for target, anchor in _internal_links(path, soup):
            if not target.exists():
                broken.append(f"{path.name} -> {target.name}")
            elif anchor and target in anchors and anchor not in anchors[target]:
                broken.append(f"{path.name} -> {target.name}#{anchor}")
    assert broken == []


def _internal_links(path, soup):
    for element in soup.find_all(list(LINKING)):
        url = urlparse(element.get(LINKING[element.name]) or "")
        if url.scheme or url.netloc or not (url.path or url.fragment):
            continue
        # The 404 page is shown at any address, so its links begin at the root,
        # which is a folder of the host once the site has an address.
        base = _root(path) if url.path.startswith("/") else path.parent
        file = unquote(url.path).removeprefix(_published_below()).lstrip("/")
        target = (base / file).resolve() if file else path
        anchor = unquote(url.fragment)
        # A lab's state stands behind its name; its own tests hold what it may say.
        yield target, anchor.partition("?")[0] if anchor.startswith("lab-") else anchor


@cache
def _published_below():
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    return urlparse(config["html"]["baseurl"]).path


def _root(path):
    return next(folder for folder in path.parents if folder.name == "html")


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_value_stands_in_the_html(page, site, anchors):
    boxes = anchors[site / "book" / f"{page.name}.html"]
    for cell in page.code_cells:
        name = cell.metadata.name
        if name == address.CELL_NAME:
            continue  # for notebooks alone
        assert name in boxes, f"{page.name}: no anchor for {name}"
        if "shows" not in cell.metadata:
            continue
        text = "\n".join(o.get_text() for o in boxes[name].select(".cell_output"))
        for value_id in cell.metadata.shows:
            assert compare(text, value_id) != NOT_EQUAL, f"{page.name}: {value_id}"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_prose_reaches_the_reader(page, site, soups):
    """No markup is left raw, and no admonition lost its words."""
    article = soups[site / "book" / f"{page.name}.html"].find("article")
    text = "".join(s for s in article.strings if not s.find_parent(["pre", "code"]))
    for raw in (":::", "```", "](", "$$"):
        assert raw not in text, f"{raw!r} shows in {page.name}"
    for box in article.select(".admonition"):
        assert len(box.find_all(recursive=False)) > 1, box.get_text()


def test_every_figure_has_words(soups):
    for path, soup in soups.items():
        for image in soup.find_all("img"):
            assert image.get("alt") is not None, f"{path.name}: {image}"
        for figure in soup.select("figure.attention-figure"):
            label = figure.find(attrs={"role": "img"}).get("aria-label", "")
            assert len(label.split()) >= 8, f"{path.name}: {label!r} says too little"
            assert figure.find("figcaption").get_text().strip(), path.name


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_quote_that_opens_with_a_bold_word_has_its_look(page, soup):
    opened = re.findall(r"^> \*\*(\w+?)s?\.\*\*", "\n".join(page.prose), re.M)
    built = soup(f"book/{page.name}").select("blockquote.role")
    assert [f"role-{word.lower()}" for word in opened] == [q["class"][1] for q in built]
