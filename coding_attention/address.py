"""The repository's address, and the cell that installs the package from there.

The site and the tool that sets the address (`tools.repository`) both work with them.
"""

import re

URL = re.compile(r"https://github\.com/([\w.-]+)/([\w.-]+?)(?:\.git)?/?")
# The release on the index that pages install. Empty until there is one: before that,
# anyone could put a package there under our name (docs/releasing.md).
RELEASED = ""
BRANCH = "main"  # what a page in the repository goes with; a built one names its commit
NOTEBOOKS = "notebooks"  # the branch with the finished notebooks (`tools.branch`)
CELL_NAME = "install-the-package"
TAGS = ["hide-input", "remove-cell"]  # folded in Jupyter, not on the site
SOURCE = """\
# Installs the book's package where it is missing, as on Colab; else it does nothing.
from importlib import invalidate_caches, metadata
from importlib.util import find_spec
from pathlib import Path


def is_the_books(found):  # seen by its files: importing another one can take long
    folders = (found and found.submodule_search_locations) or []
    return any(Path(folder, "multi_head.py").is_file() for folder in folders)


needed = "attncheck coding_attention anywidget ipywidgets matplotlib safetensors"
here = is_the_books(find_spec("attention")) and all(map(find_spec, needed.split()))
if not here:
"""
INSTALL = """\
    if any(one.name == "attention" for one in metadata.distributions()):
        print("Removing another project's package attention: both have that name.")
        %pip uninstall --quiet --yes attention
    %pip install --quiet "{requirement}"
    invalidate_caches()
    if not (found := find_spec("attention")):
        raise ImportError("The book's package was not installed: pip says why above.")
    if not is_the_books(found):
        raise ImportError(
            f"{{found.origin}} hides the book's package attention. Rename it or remove "
            "it, restart the kernel, and run this page again."
        )
"""
NOWHERE = """\
    raise ImportError(
        "This page needs the book's package: in a copy of the book's repository, run "
        "pip install '.[pages]', and then run this page again."
    )
"""


def source(url, ref=BRANCH):
    """Give the code of the cell that installs the package.

    Args:
        url: the repository; where it is empty, the cell says what to do.
        ref: the branch or commit that the page belongs to.
    """
    if RELEASED:
        requirement = f"coding-attention[pages]=={RELEASED}"
    elif url:
        requirement = f"coding-attention[pages] @ git+{url}@{ref}"
    else:
        return (SOURCE + NOWHERE).rstrip()
    return (SOURCE + INSTALL.format(requirement=requirement)).rstrip()


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


def with_cell(notebook, url, ref=BRANCH):
    """Put the install cell before a notebook's first code cell, or set it anew.

    Args:
        notebook: a page; it is changed.
        url: the repository, or nothing.
        ref: the branch or commit that the page belongs to.

    Returns:
        The notebook.
    """
    import nbformat  # which readers need not have: they import the address alone

    cell = nbformat.v4.new_code_cell(source(url, ref), id=CELL_NAME)
    cell.metadata.update(name=CELL_NAME, tags=list(TAGS))
    fold(cell)
    kept = [c for c in notebook.cells if not is_install(c)]
    first = [c.cell_type for c in kept].index("code")
    notebook.cells = [*kept[:first], cell, *kept[first:]]
    return notebook


def is_install(cell):
    """Tell whether a cell is the one that installs the package."""
    return cell.metadata.get("name") == CELL_NAME
