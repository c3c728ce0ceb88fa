"""What the tests of the book share: its pages and their cells."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat

from coding_attention.book import list_pages
from coding_attention.published_values import text_of
from coding_attention.stored import html_of
from tools import notebooks as tool

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
# What is run once more in another way does in small what takes long: nbval holds all
# of it.
IN_SMALL = {
    "checker": """\
from coding_attention.gallery.planted import PLANTED
for place, name in enumerate([*PLANTED]):
    if place % 8 and name not in ("heads_viewed", "scale_missing"):  # the page's own
        del PLANTED[name]""",
    # Its processes run in nbval, and in a test of their own.
    "08_past_one_device": """\
from coding_attention import ranks as processes
processes.launch = lambda *_, **__: None""",
}


@dataclass(frozen=True)
class Page:
    """One paired page: the Markdown that people edit and the notebook that runs."""

    name: str

    @property
    def source(self):
        return _source(self.name)

    @property
    def notebook(self):
        return _notebook(self.name)

    @property
    def code_cells(self):
        return [c for c in self.notebook.cells if c.cell_type == "code"]

    @property
    def prose(self):
        return [c.source for c in self.notebook.cells if c.cell_type == "markdown"]


# Read once in a run, whoever asks: reading is the slowest part of these tests.
@cache
def _source(name):
    return tool.read_source(BOOK / f"{name}.md")


@cache
def _notebook(name):
    return nbformat.read(BOOK / f"{name}.ipynb", as_version=4)


def pages():
    """Every page of the table of contents that holds cells."""
    names = [entry.removeprefix("book/") for entry in list_pages()]
    return [Page(n) for n in names if (BOOK / f"{n}.ipynb").exists()]


def all_output(cell):
    """Everything that a code cell has stored, its figures' SVG included."""
    return "\n".join([text_of(cell), *map(html_of, cell.outputs)])


def is_figure(cell):
    return cell.metadata.get("name", "").startswith("figure-")
