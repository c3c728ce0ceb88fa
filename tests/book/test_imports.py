"""What the pages import is what a reader installs: in Binder, nothing else is there.

That what is installed brings all that the kit's modules import, tests/tools/
test_environments.py tries in an environment of its own.
"""

import ast
import sys

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from tests.book.pages import ROOT, pages

# What `pip install .[pages]` brings, by the names that pages import.
INSTALLED = {
    "torch", "anywidget", "ipywidgets", "matplotlib", "yaml", "safetensors",
    "numpy", "IPython",  # which matplotlib and ipywidgets need
}  # fmt: skip


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_reader_has_what_the_page_imports(page):
    # A cell that installs the package has a line that is not Python.
    python = TransformerManager().transform_cell
    imported = set()
    for cell in page.code_cells:
        for node in ast.walk(ast.parse(python(cell.source))):
            if isinstance(node, ast.Import):
                imported |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module.partition(".")[0])
    ours = {name for name in imported if (ROOT / name).is_dir()}
    assert imported - ours - sys.stdlib_module_names <= INSTALLED
