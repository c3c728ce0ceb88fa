"""What a page lists is what the package runs."""

import ast
import importlib

import pytest

from tests.book.pages import pages

MODULES = ["simple", "trainable", "causal", "multi_head"]
LISTINGS = [
    (page.name, cell)
    for page in pages()
    for cell in page.code_cells
    if "listing" in cell.metadata.get("tags", [])
]
# The chapter's classes and functions: each is written out on a page.
MUST_BE_LISTED = {
    "softmax_naive", "simple_self_attention", "SelfAttention_v1", "SelfAttention_v2",
    "CausalAttention", "MultiHeadAttentionWrapper", "MultiHeadAttention",
}  # fmt: skip


def definitions(source):
    """Classes and functions of a text, by name, without their docstrings."""
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            _drop_docstrings(node)
            found[node.name] = ast.dump(node)
    return found


def _drop_docstrings(node):
    for inner in ast.walk(node):
        if isinstance(inner, (ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(
            inner, clean=False
        ):
            inner.body = inner.body[1:]


def packaged():
    found = {}
    for name in MODULES:
        module = importlib.import_module(f"attention.{name}")
        with open(module.__file__, encoding="utf-8") as file:
            found |= definitions(file.read())
    return found


PACKAGED = packaged()


@pytest.mark.parametrize(
    ("page", "cell"), LISTINGS, ids=[f"{p}-{c.metadata.name}" for p, c in LISTINGS]
)
def test_listing_equals_the_package(page, cell):
    listed = definitions(cell.source)
    assert len(listed) == 1, f"{page}: a listing holds one class or function"
    ((name, tree),) = listed.items()
    assert tree == PACKAGED.get(name), f"{page}: {name} differs from the package"


def test_every_class_is_listed_once():
    listed = [name for _, cell in LISTINGS for name in definitions(cell.source)]
    assert sorted(listed) == sorted(MUST_BE_LISTED)
