"""What the pages import is what a reader installs: in Binder, nothing else is there."""

import ast
import sys
import tomllib
from functools import cache
from importlib.metadata import distribution, packages_distributions, requires
from pathlib import Path

import pytest
from IPython.core.inputtransformer2 import TransformerManager
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.book.pages import ROOT, pages


def local_file(module):
    """The repository's file of a module, or None for a module from elsewhere."""
    place = ROOT / module.replace(".", "/")
    files = (place.with_suffix(".py"), place / "__init__.py")
    return next((file for file in files if file.exists()), None)


@cache
def imported(source):
    """The modules that running ``source`` imports, those of local modules included.

    Imports inside functions do not count: they run only when someone asks.
    """
    found, waiting = set(), [ast.parse(source)]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.Import):
                found |= {name.name for name in node.names}
            elif isinstance(node, ast.ImportFrom):
                found |= {node.module, *(f"{node.module}.{n.name}" for n in node.names)}
            elif not isinstance(node, ast.FunctionDef):
                waiting.append(node)
    return frozenset(found)


def everything_imported(sources):
    found, waiting = set(), {name for source in sources for name in imported(source)}
    while waiting:
        name = waiting.pop()
        found.add(name)
        parents = {name.rpartition(".")[0]} - {""}
        file = local_file(name)
        inside = imported(file.read_text(encoding="utf-8")) if file else set()
        waiting |= (inside | parents) - found
    return found


def own_requirements(extras):
    """What pyproject.toml asks for, with these extras."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    more = (project["optional-dependencies"][extra] for extra in extras)
    return [*project["dependencies"], *(line for lines in more for line in lines)]


@cache
def installed_with(extra):
    """The distributions that pip installs with an extra of this project."""
    found, waiting = set(), [Requirement(f"coding-attention[{extra}]")]
    while waiting:
        one = waiting.pop()
        seen = {(canonicalize_name(one.name), extra) for extra in ("", *one.extras)}
        if seen <= found:
            continue
        found |= seen
        own = one.name == "coding-attention"
        lines = own_requirements(one.extras) if own else requires(one.name) or ()
        for inner in map(Requirement, lines):
            extras = ("", *one.extras)
            if inner.marker is None or any(
                inner.marker.evaluate({"extra": extra}) for extra in extras
            ):
                waiting.append(inner)
    return {name for name, _ in found}


@cache
def brought_by():
    """The distributions that hold a module, by its name."""
    return packages_distributions()  # reads the files of every one: a second


def is_brought_by(module, there):
    """Whether one of these distributions holds a module: most often its namesake."""
    if canonicalize_name(module) in there:
        place = Path(distribution(module).locate_file(module))
        if place.is_dir() or place.with_suffix(".py").exists():
            return True
    return bool({canonicalize_name(owner) for owner in brought_by()[module]} & there)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_reader_has_what_the_page_imports(page):
    # A cell that installs the package has a line that is not Python.
    python = TransformerManager().transform_cell
    modules = everything_imported(python(cell.source) for cell in page.code_cells)
    tops = {name.partition(".")[0] for name in modules}
    here = {name for name in tops if local_file(name) or (ROOT / name).is_dir()}
    foreign = tops - here - sys.stdlib_module_names
    assert "torch" in foreign
    there = installed_with("pages")
    for name in foreign:
        assert is_brought_by(name, there), f"{name} is not installed with [pages]"


@pytest.mark.parametrize(
    "path", sorted((ROOT / "tests/attention").glob("*.py")), ids=lambda p: p.stem
)
def test_the_package_s_tests_need_little_more_than_the_package(path):
    """`make test TORCH=…` installs no more, and a file that does not load stops all."""
    modules = everything_imported([path.read_text(encoding="utf-8")])
    tops = {name.partition(".")[0] for name in modules}
    here = {name for name in tops if local_file(name) or (ROOT / name).is_dir()}
    assert tops - here - sys.stdlib_module_names <= {"torch", "pytest", "numpy"}
