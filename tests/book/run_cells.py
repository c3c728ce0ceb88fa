"""Run named cells of a page, so that a test can ask them more than the page does."""

import io
from contextlib import redirect_stdout

import torch
from torch.nn import functional as F

from tests.book.pages import Page


def run_cells(page, *names, **given):
    """Run cells in the order of ``names``; return what they define.

    Args:
        page: the page's name.
        names: of its cells. What they print is dropped.
        given: names that these cells read, with other values than on the page.
            ``torch`` and ``F`` are there anyway.
    """
    by_name = {c.metadata.name: c.source for c in Page(page).source.cells
               if c.cell_type == "code"}  # fmt: skip
    space = {"torch": torch, "F": F, **given}
    with redirect_stdout(io.StringIO()):
        for name in names:
            exec(compile(by_name[name], f"{page}, cell {name}", "exec"), space)
    return space
