"""The pages of the package and of the literature: complete, and nothing made up."""

import dataclasses
import importlib
import inspect
import re
import subprocess
import sys

import pytest
from bs4 import BeautifulSoup
from pybtex.database import parse_file

from tests.book.pages import BOOK, ROOT

LISTED = ("attention", "attncheck")  # those with an __all__
# Every public function counts.
OPEN = ("attention.functional", "attention.convert", "attention.parallel")
WORKS = parse_file(str(BOOK / "references.bib")).entries
ARXIV = re.compile(r"\d{4}\.\d{4,5}")
NAME = r"\b([A-Z][\w-]+)"
YEAR = r"((?:19|20)\d\d)\b"
# Name et al. (year); Name et al., *Title* (year); Name and Name (year); Name, year.
CITED = re.compile(
    rf"{NAME} et al\.,?(?: \*[^*]*\*)? \(?{YEAR}"
    rf"|{NAME} and [A-Z][\w-]+,? \(?{YEAR}"
    rf"|{NAME}(?:,| \() ?{YEAR}"
)
CITED_WITHOUT_YEAR = re.compile(rf"{NAME} (?:and others|et al\.)")
ODDITIES = ("Mock", "Instance", "<factory>", "object at 0x", "api.")


def public_names():
    """Every name that the package means to be imported, with its module."""
    for name in LISTED:
        module = importlib.import_module(name)
        yield from (f"{name}.{public}" for public in module.__all__)
    for name in OPEN:
        module = importlib.import_module(name)
        for public, value in inspect.getmembers(module, inspect.isfunction):
            if value.__module__ == name and not public.startswith("_"):
                yield f"{name}.{public}"


NAMES = list(public_names())


# `attncheck.check` only points at the function of the same name above it.
TWICE = "attncheck.check"


def value_of(name):
    place, _, public = name.rpartition(".")
    return getattr(importlib.import_module(place), public)


NO_SIGNATURE = {TWICE, "attncheck.CheckFailed"}
CALLABLE = [n for n in NAMES if callable(value_of(n)) and n not in NO_SIGNATURE]
FORWARD = [f"{n}.forward" for n in NAMES if hasattr(value_of(n), "forward")]
METHODS = [*FORWARD]
METHODS += [f"attention.KeyValueCache.{name}" for name in ("append", "crop", "reorder")]


@pytest.fixture(scope="module")
def api(site):
    return soup(site, "api")


@pytest.fixture(scope="module")
def literature(site):
    return soup(site, "references")


def soup(site, page):
    text = (site / "book" / f"{page}.html").read_text(encoding="utf-8")
    return BeautifulSoup(text, "html.parser").find("article")


def entry(api, name):
    """Give the head and the body of what stands about a name."""
    head = api.find("dt", id=name)
    assert head is not None, f"{name} has no place of its own in book/api.md"
    return head, head.find_next_sibling("dd")


def told(body, *headings):
    """Give the names that a list under one of the headings explains."""
    names = set()
    for fields in body.find_all("dl", class_="field-list", recursive=False):
        for label in fields.find_all("dt", recursive=False):
            if label.get_text().rstrip(":") in headings:
                bold = label.find_next_sibling("dd").select("p > strong:first-child")
                names |= {n for b in bold for n in b.get_text().split(", ")}
    return {name.lstrip("*") for name in names}


@pytest.mark.parametrize("name", NAMES)
def test_public_name_has_a_place_and_words(name, api):
    head, body = entry(api, name)
    assert head.find("a", class_="headerlink")["href"] == f"#{name}"
    assert len(body.get_text().split()) >= 5, f"{name}: nothing is said about it"


@pytest.mark.parametrize("name", CALLABLE)
def test_signature_is_the_real_one(name, api):
    head, _ = entry(api, name)
    shown = [p.get_text() for p in head.select("em.sig-param")]
    names = [re.match(r"[*]*(\w*)", text)[1] for text in shown]
    real = list(inspect.signature(value_of(name)).parameters)
    assert [n for n in names if n] == real


@pytest.mark.parametrize("name", [*CALLABLE, *METHODS])
def test_every_argument_is_explained(name, api):
    _, body = entry(api, name)
    missing = arguments(name) - told(body, "Parameters", "Attributes")
    assert missing == set(), f"{name} does not say what these are"


def arguments(name):
    place, _, method = name.rpartition(".")
    value = getattr(value_of(place), method) if name in METHODS else value_of(name)
    if dataclasses.is_dataclass(value):
        return {f.name for f in dataclasses.fields(value)}
    return set(inspect.signature(value).parameters) - {"self"}


def test_nothing_shows_of_how_the_page_is_made(api):
    text = api.get_text()
    assert [word for word in ODDITIES if word in text] == []
    bases = {p.get_text() for p in api.find_all("p") if "Bases:" in p.get_text()}
    names = ("CausalModule", "DrawnModule", "Layer")
    ours = {f"Bases: attention.base.{name}" for name in names}
    assert bases == {"Bases: torch.nn.Module", *ours, "Bases: AssertionError"}


def test_package_is_read_without_what_it_imports():
    """As the site is built where PyTorch is not installed: mocked, and no trace."""
    code = (
        "import sys\n"
        "from theme import api\n"
        "api.import_package()\n"
        "import attention\n"
        "print('torch' in sys.modules)\n"
        "base = attention.SelfAttention_v2.__mro__[2]\n"
        "print(base.__module__)\n"
        "from sphinx.ext.autodoc.importer import get_class_members\n"
        "get_class_members(attention.CausalAttention, ['x'], getattr)\n"
        "print('torch' in sys.modules)\n"  # autodoc would look for the base's source
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
    )
    assert result.stdout.split() == ["False", "torch.nn", "False"], result.stderr


# Literature


def surname(person):
    return " ".join(person.prelast_names + person.last_names)


def sources():
    """Every text that may cite: docstrings, comments and pages, without line breaks."""
    files = [*BOOK.glob("*.md")]
    files += [
        f
        for d in ("attention", "attncheck", "coding_attention")
        for f in (ROOT / d).rglob("*.py")
    ]
    for path in sorted(files):
        text = re.sub(r"\s*\n[\s#]*", " ", path.read_text(encoding="utf-8"))
        yield path.relative_to(ROOT), text


def citations(text):
    for match in CITED.finditer(text):
        name, year = [group for group in match.groups() if group]
        yield name, year


KNOWN = {(surname(w.persons["author"][0]), w.fields["year"]) for w in WORKS.values()}
PUBLISHED = {(w.fields.get("publisher"), w.fields["year"]) for w in WORKS.values()}


def test_every_cited_work_has_an_entry():
    found = {
        (str(path), cited) for path, text in sources() for cited in citations(text)
    }
    assert len(found) >= 8, "the pattern no longer finds what is cited"
    assert sorted(f for f in found if f[1] not in KNOWN | PUBLISHED) == []


def test_every_name_cited_without_a_year_has_an_entry():
    names = {name for name, _ in KNOWN}
    for path, text in sources():
        for name in CITED_WITHOUT_YEAR.findall(text):
            assert name in names, f"{path} names {name}"


@pytest.mark.parametrize("key", WORKS)
def test_work_can_be_found(key):
    fields = WORKS[key].fields
    assert {"doi", "eprint", "url"} & set(fields), f"{key}: where does one read it?"
    if "eprint" in fields:
        assert fields["archiveprefix"] == "arXiv"
        assert ARXIV.fullmatch(fields["eprint"])
    assert fields.get("url", "https://").startswith("https://")
    assert fields.get("doi", "10.").startswith("10.")


@pytest.mark.parametrize("key", WORKS)
def test_work_stands_once_on_the_page(key, literature):
    title = re.sub(r"[{}]", "", WORKS[key].fields["title"])
    works = literature.select("[role=list] > [role=listitem]")
    found = [work for work in works if title in work.get_text()]
    assert len(found) == 1, f"{key} stands {len(found)} times on the page"
    label = found[0].select_one(".label").get_text()
    assert surname(WORKS[key].persons["author"][0]) in label
    assert WORKS[key].fields["year"] in label
    assert found[0].find("a", class_="external")
