"""A reader who types only the cells that are not folded gets to the end of a page.

Cells that answer a question are folded as a whole, and opened once it is answered.
"""

import builtins
import symtable

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from tests.book.pages import pages

FOLDED = {"hide-input", "remove-input", "remove-cell"}
GIVEN = {*dir(builtins), "display", "get_ipython", "__name__"}  # before the first cell


def names(source):
    """The global names that a cell reads, and those that it defines."""
    python = TransformerManager().transform_cell(source)
    top = symtable.symtable(python, "cell", "exec")
    tables, read = [top], set()
    for table in tables:
        tables += table.get_children()
        read |= {
            one.get_name()
            for one in table.get_symbols()
            if one.is_referenced() and (one.is_global() or table is top)
        }
    return read, {
        one.get_name()
        for one in top.get_symbols()
        if one.is_assigned() or one.is_imported()
    }


def missing(cells):
    """What visible cells read and no visible cell up to them defines, by cell."""
    known, found = set(GIVEN), {}
    for cell in cells:
        if cell.cell_type == "code" and not FOLDED & {*cell.metadata.get("tags", [])}:
            read, defined = names(cell.source)
            known |= defined
            if read - known:
                found[cell.metadata.name] = read - known
    return found


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_no_visible_cell_needs_a_folded_one(page):
    assert missing(page.source.cells) == {}
