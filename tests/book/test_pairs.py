"""Both halves of a page agree, every cell was run, and nothing of a machine is left."""

import getpass
import platform
import re

import pytest

from coding_attention.book import make_slug
from tests.book.pages import BOOK, all_output, pages, tool

PAGES = pages()
FORBIDDEN = {
    "an address in memory": re.compile(r"\b0x[0-9a-fA-F]{6,}"),
    "a path": re.compile(
        r"(?<![\w/<.])(?:/(?:home|root|tmp|usr|work|opt|Users)/|[A-Z]:\\)"
    ),
    "a date": re.compile(r"\b(?:19|20)\d\d-[01]\d-[0-3]\d\b"),
    "a version of PyTorch": re.compile(r"\b2\.\d+\.\d+(?:\+\w+)?\b"),
    "an error": re.compile(r"Traceback \(most recent call last\)"),
    "a warning": re.compile(r"\b\w*Warning:"),
}


# Names of users and hosts that a page may hold as words of its own: a square root.
ORDINARY = {"", "root", "user", "runner", "main", "localhost"}
# Its digit is the one thing in an output that nbval's normalization leaves unread.
GRADIENT = re.compile(r"grad_fn=(?!<[A-Za-z]+Backward0>)")


def ids(page):
    return page.name


def test_every_pair_is_whole_and_in_the_contents():
    paired = {page.stem for page in tool.paired_pages()}
    assert paired == {page.name for page in PAGES}
    assert paired == {p.stem for p in BOOK.glob("*.ipynb")}


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_cells_are_equal(page):
    assert tool.cells_of(page.notebook) == tool.cells_of(page.source)


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_every_cell_was_executed_in_order(page):
    counts = [cell.execution_count for cell in page.code_cells]
    assert counts == list(range(1, len(counts) + 1))


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_outputs_are_stored(page):
    """A cell that ends in an expression, or prints, has an output to show for it."""
    for cell in page.code_cells:
        if _says_something(cell.source):
            assert cell.outputs, f"{page.name}: {cell.metadata.get('name')} is silent"
        for output in cell.outputs:
            assert output.output_type != "error", cell.metadata.get("name")
            # Results carry the number of their cell; a moved one does not fit.
            if output.output_type == "execute_result":
                assert output.execution_count == cell.execution_count


def _says_something(source):
    last = source.rstrip().splitlines()[-1]
    return "print(" in source or re.fullmatch(r"[\w.]+(\(.*\))?\)?", last) is not None


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_outputs_hold_nothing_of_this_machine(page):
    here = {
        what: re.compile(rf"\b{re.escape(name)}\b")
        for what, name in (
            ("the user", getpass.getuser()),
            ("the host", platform.node()),
        )
        if name not in ORDINARY
    }
    for cell in page.code_cells:
        for what, pattern in (FORBIDDEN | here).items():
            found = pattern.search(all_output(cell))
            assert not found, (
                f"{page.name}, {cell.metadata.get('name')}: {what} {found}"
            )


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_names_of_gradients_are_whole(page):
    for cell in page.code_cells:
        assert not GRADIENT.search(all_output(cell)), cell.metadata.get("name")


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_notebook_metadata_is_of_no_machine(page):
    assert page.notebook.metadata == tool.METADATA


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_names_of_cells_are_unique(page):
    names = [cell.metadata.get("name") for cell in page.code_cells]
    assert None not in names, f"{page.name}: every code cell has a name to link to"
    assert len(names) == len(set(names))
    headings = re.findall(r"^#+ (.+)$", "\n".join(page.prose), re.M)
    assert set(names) & {make_slug(h) for h in headings} == set(), "a heading's anchor"
