"""What the tests of the published site share."""

import re
import shutil
from pathlib import Path

import nbformat
import pytest

from coding_attention.book import list_pages
from tests.coding_attention.labs.conftest import node
from tools.measure.server import serving

__all__ = ["node"]
ROOT = Path(__file__).resolve().parents[2]
# Pages that Sphinx and the extension add to those of the table of contents.
SECTION = "Words.\n\n## Section\n\n| a |\n|---|\n| b |\n"
ADDED = ["404", "genindex", "search"]
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv*", "_build", "node_modules", ".pytest_cache", ".ruff_cache"
)


def site_pages():
    """Every page of the site, by its path without the ending."""
    return [*list_pages(), *ADDED]


@pytest.fixture(scope="session")
def address(site):
    """The address at which the built site is served on this machine."""
    with serving(site) as url:
        yield url


@pytest.fixture(scope="session")
def copy_of_book(tmp_path_factory):
    """Everything that a build of the site needs, in a folder that tests may change."""
    target = tmp_path_factory.mktemp("copy") / "repo"
    shutil.copytree(ROOT, target, ignore=LEFT_OUT)
    return target


def shorten(root):
    """Leave of each page its title and two cells: enough for what stands around it.

    A section with a table stays: the build stops when no page has what it repairs.
    """
    for path in sorted((root / "book").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        title = re.search("^# .+$", text, re.MULTILINE)[0]
        # The first page's way in, which theme/opening.py asks for.
        title = "\n\n".join([title, *re.findall(r"^\*\*\[Start reading.*", text, re.M)])
        path.write_text(f"{title}\n\n{SECTION}", encoding="utf-8")
        pair = path.with_suffix(".ipynb")
        if pair.exists():
            notebook = nbformat.read(pair, as_version=4)
            # The one that installs the package, and the first that the site shows.
            code = [c for c in notebook.cells if c.cell_type == "code"][:2]
            notebook.cells = [nbformat.v4.new_markdown_cell(title), *code]
            nbformat.write(notebook, pair)
