"""Run named cells of a page, so that a test can ask them more than the page does."""

from tests.book.pages import Page


def run_cells(page, *names):
    """Run cells in the order of the page; return the names that they define."""
    by_name = {c.metadata.name: c.source for c in Page(page).source.cells
               if c.cell_type == "code"}  # fmt: skip
    space = {}
    for name in names:
        exec(compile(by_name[name], f"{page}, cell {name}", "exec"), space)
    return space
