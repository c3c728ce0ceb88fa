"""Links that can be checked without a build: files, anchors, the order of the pages."""

import html
import re
from functools import cache
from urllib.parse import parse_qsl

import pytest

from coding_attention import labs
from coding_attention.book import list_pages, make_slug
from tests.book.pages import BOOK, ROOT, pages

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PAGES = {page.name: page for page in pages()}


def sources():
    """The text of each page of the contents, by file name."""
    for entry in list_pages():
        path = BOOK / f"{entry.removeprefix('book/')}.md"
        if path.exists():  # test_contents_and_pages_agree names the missing ones
            yield path, path.read_text(encoding="utf-8")


@cache
def anchors(path):
    text = path.with_suffix(".md").read_text(encoding="utf-8")
    headings = {make_slug(h) for h in re.findall(r"^#+ (.+)$", text, re.M)}
    targets = set(re.findall(r"^\(([\w-]+)\)=$", text, re.M))
    return headings | targets | set(re.findall(r"^:name: (\S+)$", text, re.M))


LINKS = [(path, link) for path, text in sources() for link in LINK.findall(text)]
INTERNAL = [(p, link) for p, link in LINKS if "://" not in link]


@pytest.mark.parametrize(
    ("path", "link"), INTERNAL, ids=[f"{p.stem}-{link}" for p, link in INTERNAL]
)
def test_internal_link_resolves(path, link):
    file, _, anchor = link.partition("#")
    target = path.parent / file if file else path
    assert target.exists(), f"{path.name} links {link}, which does not exist"
    if not file.startswith(".."):
        entry = f"book/{target.stem}"
        assert entry in list_pages(), f"{path.name} links {link}: not in the contents"
        # A paired page is opened as its notebook, on the site and in Jupyter alike.
        suffix = ".ipynb" if target.stem in PAGES else ".md"
        assert not file or target.suffix == suffix, f"{link}: link the {suffix}"
    anchor, _, state = anchor.partition("?")
    assert not state or anchor.startswith("lab-"), f"{link}: only a lab has a state"
    if anchor:
        assert anchor in anchors(target), f"{path.name} links {link}: no such anchor"


@pytest.mark.parametrize("name", PAGES)
def test_links_to_a_cell_or_a_heading_are_followed_in_jupyter_too(name):
    """Jupyter goes to anchors of HTML; the names of cells it does not know."""
    for cell in PAGES[name].notebook.cells:
        links = LINK.findall(cell.source) if cell.cell_type == "markdown" else []
        for link in links:
            file, _, anchor = link.partition("#")
            target = PAGES.get(file.removesuffix(".ipynb") if file else name)
            if anchor and "://" not in link and target is not None:
                written = f'<a id="{html.escape(anchor)}"></a>'
                found = [written in text for text in target.prose]
                assert found.count(True) == 1, f"{name}: {link}"


STATES = [(path, link) for path, link in INTERNAL if "?" in link]


def test_a_link_to_an_experiment_sets_what_its_lab_has():
    """What a lab does not know, it leaves out without a word: here it is an error."""
    assert STATES
    for path, link in STATES:
        file, _, anchor = link.partition("#")
        name, _, query = anchor.partition("?")
        page = PAGES[(path.parent / file).stem if file else path.stem]
        cell = next(c for c in page.code_cells if c.metadata.name == name)
        make = getattr(labs, re.search(r"(\w+Lab)\(", cell.source)[1])
        for trait, value in parse_qsl(query, strict_parsing=True):
            assert trait in make.public(), (
                f"{path.name}: {make.__name__} has no {trait}"
            )
            assert value, link


def test_contents_and_pages_agree():
    for entry in list_pages():
        assert (ROOT / f"{entry}.md").exists(), entry
    assert len(list_pages()) == len(set(list_pages()))
    written = {f"book/{p.stem}" for p in BOOK.glob("*.md")}
    assert written == set(list_pages()), "a page is missing in _toc.yml"


@pytest.mark.parametrize("name", list(PAGES))
def test_page_ends_with_a_link_to_the_next(name):
    entries = list_pages()
    position = entries.index(f"book/{name}")
    if position + 1 == len(entries):
        return
    following = entries[position + 1].removeprefix("book/")
    last = [t for p, t in LINKS if p.stem == name and not t.startswith("#")][-1]
    assert last.partition(".")[0] == following, f"{name} ends with a link to {last}"
