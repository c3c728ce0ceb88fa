"""The tool that sets the address of the repository, and what says it."""

import re
import shutil
import tomllib

import nbformat
import pytest
import yaml

from coding_attention import address
from tests.book.pages import BOOK, ROOT, pages
from tools import notebooks, repository

URL = "https://github.com/some-org/some-name"
FORK = "https://github.com/Forker/their-book"
LINKS = re.compile(r"\]\(([^)]+)\)")
KERNEL = [page.name for page in pages()]


def test_setting_an_address_executes_nothing(tmp_path):
    """The cell that installs the package follows, and no other."""
    shutil.copytree(BOOK, tmp_path / "book")
    shutil.copy(ROOT / "_config.yml", tmp_path)
    page = tmp_path / "book" / "02_simple_self_attention.md"
    repository.apply(tmp_path, "", "")
    before = nbformat.read(page.with_suffix(".ipynb"), as_version=4)
    changed = repository.apply(tmp_path, URL, "https://some-org.github.io/some-name")
    assert {p.name for p in changed} == {
        "_config.yml",
        "03_trainable_self_attention.md",  # whose form is on the site alone
        *(f"{n}.ipynb" for n in KERNEL),
    }
    assert not notebooks.is_stale(page)
    stored = nbformat.read(page.with_suffix(".ipynb"), as_version=4)
    code = [c for c in stored.cells if c.cell_type == "code"]
    assert address.is_install(code[0])
    assert f"git+{URL}@main" in code[0].source
    assert len(stored.cells) == len(before.cells)
    for cell, was in zip(stored.cells, before.cells, strict=True):
        assert cell == was or cell is code[0]
    repository.apply(tmp_path, "", "")
    assert nbformat.read(page.with_suffix(".ipynb"), as_version=4) == before


PAGE = "book/03_trainable_self_attention.md"
PLACES = ("pyproject.toml", "CITATION.cff", "README.md", PAGE)


def test_what_is_found_elsewhere_says_the_address(tmp_path):
    """The index, the citation and README; and nothing of it once it is taken back."""
    (tmp_path / "book").mkdir()
    pair = PAGE.replace(".md", ".ipynb")
    for name in ("_config.yml", pair, *PLACES):
        shutil.copy(ROOT / name, tmp_path / name)
    repository.apply(tmp_path, "", "")
    files = [tmp_path / name for name in PLACES]
    before = [file.read_text("utf-8") for file in files]
    assert not any("some-org" in text for text in before)
    for url in (FORK, URL):  # a second address takes the place of the first
        repository.apply(tmp_path, url, "https://book.example")
    texts = [file.read_text("utf-8") for file in files]
    assert not any("Forker" in text for text in texts)
    project, cited, readme, page = texts
    form = "https://book.example/book/03_trainable_self_attention.html"
    assert f"<{form}#your-own-sentence>" in page.split('<div class="own-sentence">')[1]
    assert tomllib.loads(project)["project"]["urls"] == {
        "Homepage": "https://book.example",
        "Repository": URL,
        "Issues": f"{URL}/issues",
        "Changelog": f"{URL}/blob/main/CHANGELOG.md",
    }
    assert yaml.safe_load(cited)["repository-code"] == URL
    assert yaml.safe_load(cited)["url"] == "https://book.example"
    (badges,) = [line for line in readme.splitlines() if line.startswith("[![")]
    assert readme.startswith("# Coding attention\n")
    runs = f"{URL}/actions/workflows/publish.yml"
    assert LINKS.findall(badges) == [
        f"{runs}/badge.svg",
        runs,
        "https://book.example",
        "https://mybinder.org/v2/gh/some-org/some-name/main"
        "?urlpath=lab/tree/book/01_why_attention.ipynb",
        "https://colab.research.google.com/github/some-org/some-name/blob/notebooks/"
        "book/01_why_attention.ipynb",
    ]
    workflow = yaml.safe_load((ROOT / ".github/workflows/publish.yml").read_text())
    assert "push" in workflow[True]  # `on`: so that the badge says something
    repository.apply(tmp_path, "", "")
    assert [file.read_text("utf-8") for file in files] == before


@pytest.mark.parametrize("name", PLACES)
def test_the_files_are_in_step_with_the_configuration(name):
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    url, site = config["repository"]["url"], config["html"]["baseurl"]
    text = (ROOT / name).read_text("utf-8")
    assert repository.write_address(text, name, url, site) == text, (
        "run: tools.repository"
    )


def test_setting_keeps_the_comments():
    text = (ROOT / "_config.yml").read_text("utf-8")
    changed = repository.set_key(text, "repository", "url", URL)
    assert yaml.safe_load(changed)["repository"]["url"] == URL
    current = yaml.safe_load(text)["repository"]["url"]
    assert repository.set_key(changed, "repository", "url", current) == text
    with pytest.raises(ValueError, match="0 keys"):
        repository.set_key(text, "repository", "nothing", URL)
