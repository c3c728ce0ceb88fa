"""A reader who types only the cells that are not folded gets to the end of a page.

Cells that answer a question are folded as a whole, and opened once it is answered.
"""

import builtins
import json
import os
import subprocess
import symtable
import sys

import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager

from tests.book.pages import IN_SMALL, ROOT, pages

FOLDED = {"hide-input", "remove-input", "remove-cell"}
GIVEN = {*dir(builtins), "display", "get_ipython", "__name__"}  # before the first cell


def visible(cells):
    code = [cell for cell in cells if cell.cell_type == "code"]
    return [cell for cell in code if not FOLDED & {*cell.metadata.get("tags", [])}]


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
    for cell in visible(cells):
        read, defined = names(cell.source)
        known |= defined
        if read - known:
            found[cell.metadata.name] = read - known
    return found


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_no_visible_cell_needs_a_folded_one(page):
    assert missing(page.source.cells) == {}


def test_what_stands_in_a_folded_cell_is_missed():
    sources = {
        "imports": "import torch\nfrom attention import validate as check",
        "function": "def twice(x):\n    check(x)\n    return torch.cat([x, x])",
        "use": "[twice(row) for row in range(3)]",
    }
    cells = [
        nbformat.v4.new_code_cell(source, metadata={"name": name})
        for name, source in sources.items()
    ]
    assert missing(cells) == {}
    cells[0].metadata.tags = ["hide-input"]
    assert missing(cells) == {"function": {"check", "torch"}}


# The shell of a kernel without the kernel: no message that could be lost on the way.
SHELL = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for name, source, may_fail in json.load(sys.stdin):
    if not shell.run_cell(source, store_history=True).success and not may_fail:
        sys.exit(f"{name} has failed")
"""


def run_alone(cells, folder):
    """Run cells one after the other in a Python of their own; give what came of it."""
    asked = [
        (c.metadata.name, c.source, "raises-exception" in c.metadata.get("tags", []))
        for c in cells
    ]
    home = {"IPYTHONDIR": str(folder / ".ipython"), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", SHELL], input=json.dumps(asked), cwd=folder, text=True,
        env={**os.environ, **home}, capture_output=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
@pytest.mark.timeout(1800)  # of the clock, and a page may train ten models
def test_the_visible_cells_run_alone(page, tmp_path):
    cells = visible(page.source.cells)
    if page.name in IN_SMALL:
        small = nbformat.v4.new_code_cell(IN_SMALL[page.name])
        small.metadata.name = "in small"
        cells.insert(0, small)
    result = run_alone(cells, tmp_path)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]


def test_a_visible_cell_that_fails_is_told(tmp_path):
    cells = [
        nbformat.v4.new_code_cell(source, metadata={"name": name, "tags": tags})
        for name, source, tags in (
            ("meant", "1 / 0", ["raises-exception"]),
            ("stops", "undefined", []),
            ("later", "raise SystemError", []),
        )
    ]
    result = run_alone(cells, tmp_path)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == "stops has failed"
