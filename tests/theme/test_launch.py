"""The launch links in a build with a repository set, and the tool that sets it."""

import re
import shutil
import tomllib

import nbformat
import pytest
import yaml
from bs4 import BeautifulSoup

from coding_attention import address
from tests.book.pages import BOOK, ROOT, pages, toc_entries
from tests.theme.conftest import build, shorten
from theme.lean_site import launch
from tools import notebooks, repository

URL = "https://github.com/some-org/some-name"
FORK = "https://github.com/Forker/their-book"
KERNEL = [page.name for page in pages()]


@pytest.fixture(scope="module")
def set_site(copy_of_book):
    repository.apply(copy_of_book, URL, "https://some-org.github.io/some-name")
    shorten(copy_of_book)
    return build(copy_of_book)


@pytest.fixture(scope="module")
def fork_site(set_site, copy_of_book, tmp_path_factory):
    """The same files, published by the workflow of a fork."""
    output = tmp_path_factory.mktemp("fork")
    return build(copy_of_book, output, BOOK_REPOSITORY=FORK, BOOK_SITE="")


def links(site, entry):
    return buttons(BeautifulSoup((site / f"{entry}.html").read_text(), "html.parser"))


def buttons(soup):
    box = soup.find(class_="article-header-buttons")
    return [a["href"] for a in box.find_all("a", href=True)]


@pytest.mark.parametrize("name", KERNEL)
def test_notebook_page_launches_its_own_notebook(name, set_site):
    path = f"book/{name}.ipynb"
    binder, colab, download = links(set_site, f"book/{name}")
    assert binder == (
        "https://mybinder.org/v2/gh/some-org/some-name/main?urlpath=lab/tree/" + path
    )
    assert colab == (
        "https://colab.research.google.com/github/some-org/some-name/blob/main/" + path
    )
    assert (ROOT / path).is_file()
    assert (set_site / "book" / download).resolve().is_file()
    assert download.endswith(f"{name}.ipynb")


def test_pages_without_a_kernel_launch_nothing(set_site, soup):
    plain = [e for e in toc_entries() if e.removeprefix("book/") not in KERNEL]
    assert plain
    for entry in plain:
        assert links(set_site, entry) == []
        assert buttons(soup(entry)) == []


def opening(soup):
    """The buttons of the first page, as (words, address)."""
    return [(a.get_text(), a["href"]) for a in soup.select("article p.opening a")]


def test_first_page_runs_where_there_is_an_address(set_site, soup):
    entry = toc_entries()[0]
    start = ("Start reading", "01_why_attention.html")
    assert opening(soup(entry)) == [start], "nothing to run without an address"
    page = BeautifulSoup((set_site / f"{entry}.html").read_text("utf-8"), "html.parser")
    assert opening(page) == [start, ("Run it", buttons(page)[0])]
    assert buttons(page)[0].startswith("https://mybinder.org/")


def test_full_addresses_are_given_where_they_are_known(set_site):
    base = "https://some-org.github.io/some-name"
    entry = toc_entries()[0]
    soup = BeautifulSoup((set_site / f"{entry}.html").read_text("utf-8"), "html.parser")
    assert soup.find("link", rel="canonical")["href"] == f"{base}/{entry}.html"
    card = soup.find("meta", property="og:image")["content"]
    assert (set_site / card.removeprefix(f"{base}/")).is_file()
    listed = re.findall("<loc>(.*?)</loc>", (set_site / "sitemap.xml").read_text())
    assert sorted(listed) == sorted(f"{base}/{e}.html" for e in toc_entries())
    missing = BeautifulSoup((set_site / "404.html").read_text(), "html.parser")
    toc = missing.select(".bd-sidebar-primary nav a")
    assert {link["href"].split("/")[1] for link in toc} == {"some-name"}


def test_a_fork_leads_to_itself_with_no_edit(fork_site, set_site):
    """The upstream's address stands in its files, and the workflow's goes before."""
    base = "https://forker.github.io/their-book"
    for name in KERNEL:
        page = fork_site / "book" / f"{name}.html"
        binder, colab, download = links(fork_site, f"book/{name}")
        assert "/gh/Forker/their-book/main?" in binder
        assert colab.startswith(
            "https://colab.research.google.com/github/Forker/their-book/blob/main/book/"
        )
        notebook = nbformat.read((page.parent / download).resolve(), as_version=4)
        code = [c.source for c in notebook.cells if c.cell_type == "code"]
        assert f'"git+{FORK}"' in code[0]
        assert "some-org" not in page.read_text("utf-8") + "".join(code)
        soup = BeautifulSoup(page.read_text("utf-8"), "html.parser")
        assert soup.find("link", rel="canonical")["href"] == f"{base}/book/{name}.html"
    assert (
        f"<loc>{base}/book/index.html</loc>" in (fork_site / "sitemap.xml").read_text()
    )
    assert f"Sitemap: {base}/" in (fork_site / "robots.txt").read_text()
    assert 'href="/their-book/book/' in (fork_site / "404.html").read_text("utf-8")
    assert "some-org.github.io" in (set_site / "sitemap.xml").read_text()


def test_the_publishing_workflow_names_where_it_runs():
    path = ROOT / ".github" / "workflows" / "publish.yml"
    steps = yaml.safe_load(path.read_text("utf-8"))["jobs"]["build"]["steps"]
    named = next(s["env"] for s in steps if s.get("run") == "make book")
    assert named["BOOK_REPOSITORY"] == (
        "${{ github.server_url }}/${{ github.repository }}"
    )
    assert named["BOOK_SITE"] == "${{ vars.BOOK_SITE }}"


def test_addresses_of_a_workflow():
    assert launch.addresses({}) is None
    assert launch.addresses({"BOOK_REPOSITORY": FORK, "BOOK_SITE": ""}) == (
        FORK, "https://forker.github.io/their-book"
    )  # fmt: skip
    own = {"BOOK_REPOSITORY": FORK, "BOOK_SITE": "https://book.example/"}
    assert launch.addresses(own) == (FORK, "https://book.example")
    with pytest.raises(ValueError, match="such as https"):
        launch.addresses({"BOOK_REPOSITORY": "Forker/their-book"})


def test_colab_is_offered_only_where_the_notebook_installs_the_package():
    entries = [{"text": "Binder"}, {"text": "Colab"}]
    menu = [{"label": "launch-buttons", "buttons": entries}]
    assert launch.buttons(menu, True, installs=True) == menu
    (kept,) = launch.buttons(menu, True, installs=False)
    assert [b["text"] for b in kept["buttons"]] == ["Binder"]


def test_setting_an_address_executes_nothing(tmp_path):
    """Both halves of a page get the cell, so the page is not stale; and lose it."""
    shutil.copytree(BOOK, tmp_path / "book")
    shutil.copy(ROOT / "_config.yml", tmp_path)
    page = tmp_path / "book" / "02_simple_self_attention.md"
    halves = (page, page.with_suffix(".ipynb"))
    repository.apply(tmp_path, "", "")
    before = [half.read_text("utf-8") for half in halves]
    stale = notebooks.is_stale(page)
    changed = repository.apply(tmp_path, URL, "https://some-org.github.io/some-name")
    assert {p.name for p in changed} == {"_config.yml"} | {
        f"{name}.{ending}" for name in KERNEL for ending in ("md", "ipynb")
    }
    assert not notebooks.needs_execution(page)
    assert notebooks.is_stale(page) == stale  # no more than its words were before
    stored = nbformat.read(halves[1], as_version=4)
    cells = [c for c in stored.cells if c.cell_type == "code"]
    assert cells[0].id == address.CELL_NAME
    assert f'"git+{URL}"' in cells[0].source
    assert [c.execution_count for c in cells] == list(range(1, len(cells) + 1))
    assert any(c.outputs for c in cells)
    repository.apply(tmp_path, "", "")
    assert [half.read_text("utf-8") for half in halves] == before


def test_repository_and_pages_are_in_step(soup):
    """In this repository as it stands: launch and install line together, or neither."""
    url = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["repository"]["url"]
    for name in KERNEL:
        text = (BOOK / f"{name}.md").read_text("utf-8")
        assert text == repository.with_install_cell(text, url), f"run the tool: {name}"
        hosts = [link for link in buttons(soup(f"book/{name}")) if "://" in link]
        assert len(hosts) == (2 if url else 0), hosts


TOLD = ("pyproject.toml", "CITATION.cff", "README.md")


def test_what_is_found_elsewhere_says_the_address(tmp_path):
    """The index, the citation and README; and nothing of it once it is taken back."""
    (tmp_path / "book").mkdir()
    for name in ("_config.yml", "book/teaching.md", *TOLD):
        shutil.copy(ROOT / name, tmp_path / name)
    repository.apply(tmp_path, "", "")
    files = [tmp_path / name for name in ("book/teaching.md", *TOLD)]
    before = [file.read_text("utf-8") for file in files]
    assert not any("some-org" in text for text in before)
    for url in (FORK, URL):  # a second address takes the place of the first
        repository.apply(tmp_path, url, "https://book.example")
    teaching, project, cited, readme = [file.read_text("utf-8") for file in files]
    assert "Forker" not in teaching + project + cited + readme
    assert tomllib.loads(project)["project"]["urls"] == {
        "Homepage": "https://book.example",
        "Repository": URL,
        "Issues": f"{URL}/issues",
        "Changelog": f"{URL}/blob/main/CHANGELOG.md",
    }
    assert yaml.safe_load(cited)["repository-code"] == URL
    assert yaml.safe_load(cited)["url"] == "https://book.example"
    assert "url     = {https://book.example}" in teaching
    title, _, badges, *_ = readme.splitlines()
    assert title == "# Coding attention"
    assert f"[![CI]({URL}/actions/workflows/ci.yml/badge.svg)]" in badges
    assert "/v2/gh/some-org/some-name/main?urlpath=lab/tree/book/index.ipynb" in badges
    assert badges.endswith("[Read the book](https://book.example)")
    repository.apply(tmp_path, "", "")
    assert [file.read_text("utf-8") for file in files] == before


@pytest.mark.parametrize("name", TOLD)
def test_the_files_are_in_step_with_the_configuration(name):
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    url, site = config["repository"]["url"], config["html"]["baseurl"]
    text = (ROOT / name).read_text("utf-8")
    assert repository.told(text, name, url, site) == text, "run: make repository"


def test_install_cell_comes_changes_and_goes():
    page = "# Title\n\nWords.\n\n```{code-cell} ipython3\n:name: a\n\n1 + 1\n```\n"
    first = repository.with_install_cell(page, URL)
    assert first.index("install-the-package") < first.index(":name: a")
    assert f'"git+{URL}"' in first
    other = repository.with_install_cell(first, "https://github.com/a/b")
    assert other.count("%pip") == 1
    assert "some-org" not in other
    assert repository.with_install_cell(other, "") == page


def test_install_cell_leaves_an_installed_package_alone():
    from unittest.mock import patch

    cell = repository.CELL.split("\n\n", 1)[1].removesuffix("```\n\n")
    code = cell.format(url=URL).replace("%pip install", "install(source) #")
    calls = []
    exec(code, {"install": calls.append})
    assert calls == []
    with patch("importlib.util.find_spec", return_value=None):
        exec(code, {"install": calls.append})
    assert calls == [f"git+{URL}"]
    # Another package of that name is not ours.
    with patch("importlib.util.find_spec", lambda name: name == "attention"):
        exec(code, {"install": calls.append})
    assert calls == [f"git+{URL}"] * 2


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        (URL, (URL, "some-org", "some-name")),
        (URL + ".git", (URL, "some-org", "some-name")),
        (URL + "/", (URL, "some-org", "some-name")),
    ],
)
def test_addresses_are_understood(text, parsed):
    assert address.parse_url(text) == parsed


@pytest.mark.parametrize(
    "text", ["", "github.com/a/b", "https://gitlab.com/a/b", URL + "/x"]
)
def test_other_addresses_are_refused(text):
    with pytest.raises(ValueError, match="such as https"):
        address.parse_url(text)


def test_site_of_a_repository():
    assert address.pages_site("Org", "book") == "https://org.github.io/book"
    assert address.pages_site("Org", "org.github.io") == "https://org.github.io"


def test_setting_keeps_the_comments():
    text = (ROOT / "_config.yml").read_text("utf-8")
    changed = repository.set_key(text, "repository", "url", URL)
    assert yaml.safe_load(changed)["repository"]["url"] == URL
    current = yaml.safe_load(text)["repository"]["url"]
    assert repository.set_key(changed, "repository", "url", current) == text
    with pytest.raises(ValueError, match="0 keys"):
        repository.set_key(text, "repository", "nothing", URL)
