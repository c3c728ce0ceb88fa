"""What a page lists is what the package runs.

A listing is the plainest code: docstrings, annotations and checks of input are left
aside on both sides, and everything else is compared as a syntax tree. The package is
read, not imported: the check of one page is to take seconds.
"""

import ast
import re
from pathlib import Path

import pytest

from tests.book.pages import pages

PACKAGE_DIR = Path(__file__).resolve().parents[2] / "attention"

LISTINGS = [
    (page.name, cell)
    for page in pages()
    for cell in page.code_cells
    if "listing" in cell.metadata.get("tags", [])
]


# What explains wrong calls, and lets a class start from memory that nobody has filled:
# no page is about either.
OUR_BASES = (["CausalModule"], ["DrawnModule"], ["Layer"])


class Plain(ast.NodeTransformer):
    """Leave out what the package has for its users and a reader does not need."""

    def visit_Expr(self, node):
        docstring = isinstance(node.value, ast.Constant)
        return None if docstring or _checks_input(node.value) else node

    def visit_arg(self, node):
        return ast.arg(node.arg)

    def visit_ClassDef(self, node):
        if [ast.unparse(base) for base in node.bases] in OUR_BASES:
            node.bases = [ast.parse("nn.Module", mode="eval").body]
        return self.generic_visit(node)

    def visit_FunctionDef(self, node):
        self.generic_visit(node)
        node.returns = None
        return node

    def visit_AnnAssign(self, node):
        if node.value is None:  # a declaration, such as `mask: Tensor`
            return None
        return ast.Assign([node.target], node.value)

    def visit_If(self, node):
        for_type_checkers = ast.unparse(node.test) == "TYPE_CHECKING"
        return None if for_type_checkers else self.generic_visit(node)


def _checks_input(call):
    return isinstance(call, ast.Call) and ast.unparse(call.func).startswith("validate.")


def definitions(source):
    """Classes and functions of a text, by name, as plain as a listing."""
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            found[node.name] = ast.dump(Plain().visit(node))
    return found


def public_names():
    """The names in the package's `__all__`."""
    for node in ast.parse((PACKAGE_DIR / "__init__.py").read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    raise AssertionError("attention/__init__.py has no __all__")


def of_the_chapter():
    """Public names in modules for one section, "Section 3.4: …", with their code."""
    found = {}
    for path in PACKAGE_DIR.glob("*.py"):
        source = path.read_text(encoding="utf-8")
        if re.match(r"Section 3\.\d: ", ast.get_docstring(ast.parse(source)) or ""):
            found |= definitions(source)
    return {name: found[name] for name in public_names() if name in found}


PACKAGED = of_the_chapter()


@pytest.mark.parametrize(
    ("page", "cell"), LISTINGS, ids=[f"{p}-{c.metadata.name}" for p, c in LISTINGS]
)
def test_listing_equals_the_package(page, cell):
    listed = definitions(cell.source)
    assert len(listed) == 1, f"{page}: a listing holds one class or function"
    ((name, tree),) = listed.items()
    assert name in PACKAGED, f"{page}: {name} is no public name of a section"
    assert tree == PACKAGED[name], f"{page}: {name} differs from the package"


def test_every_class_is_listed_once():
    listed = [name for _, cell in LISTINGS for name in definitions(cell.source)]
    assert sorted(listed) == sorted(PACKAGED)
