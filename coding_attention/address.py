"""The repository's address, and the cell that installs the package from there.

The site and the tool that sets the address (``make repository``) both work with them.
"""

import re

import nbformat

URL = re.compile(r"https://github\.com/([\w.-]+)/([\w.-]+?)(?:\.git)?/?")
CELL_NAME = "install-the-package"
TAGS = ["hide-input"]
SOURCE = """# Colab brings PyTorch, but not this book's package.
from importlib.util import find_spec

# Another package has the import name `attention`; only ours has a checker.
if not find_spec("attention") or not find_spec("attncheck"):
    source = "git+{url}"
    %pip install --quiet "coding-attention[figures,labs] @ {{source}}"
"""


def parse_url(text):
    """Split an address into its plain form, owner and name.

    Raises:
        ValueError: it is no address of a GitHub repository.
    """
    match = URL.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{text!r} is no address of a GitHub repository. Give one such as "
            "https://github.com/ORG/NAME; Binder and Colab open files from there."
        )
    owner, name = match.groups()
    return f"https://github.com/{owner}/{name}", owner, name


def pages_site(owner, name):
    """Give the address at which GitHub Pages publishes a repository."""
    host = f"{owner.lower()}.github.io"
    return f"https://{host}" if name.lower() == host else f"https://{host}/{name}"


def fold(cell):
    """Fold a cell in Jupyter and in Colab, as its tags fold it on the site."""
    tags = set(cell.metadata.get("tags", []))
    hidden = {}
    if tags & {"hide-input", "hide-cell"}:
        hidden["source_hidden"] = True
        cell.metadata["cellView"] = "form"
    if tags & {"hide-output", "hide-cell"}:
        hidden["outputs_hidden"] = True
    if hidden:
        cell.metadata["jupyter"] = hidden


def with_cell(notebook, url):
    """Put the install cell before a notebook's first code cell, or take it out.

    Args:
        notebook: the executed half of a page; it is changed.
        url: the repository; empty takes the cell out.

    Returns:
        The notebook, its code cells counted anew.
    """
    notebook.cells = [c for c in notebook.cells if c.metadata.get("name") != CELL_NAME]
    if url:
        kinds = [c.cell_type for c in notebook.cells] + ["code"]
        notebook.cells.insert(kinds.index("code"), _install_cell(url))
    code_cells = (c for c in notebook.cells if c.cell_type == "code")
    for count, cell in enumerate(code_cells, start=1):
        cell.execution_count = count
    return notebook


def _install_cell(url):
    cell = nbformat.v4.new_code_cell(SOURCE.format(url=url).rstrip(), id=CELL_NAME)
    cell.metadata.update(name=CELL_NAME, tags=list(TAGS))
    fold(cell)
    return cell
