"""Every digit in the prose has a proof beside it; every digit of a caption is computed.

numerals.py says which digits need no proof.
"""

import ast
import re

import pytest

from tests.book import claims, numerals
from tests.book.pages import is_figure, pages

NAMES = claims.names()


@pytest.mark.parametrize("name", NAMES)
def test_every_digit_has_its_proof(name):
    missing = list(claims.report(name))
    assert missing == [], "\n" + "\n".join(missing)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_numbers_of_captions_are_computed(page):
    written = {
        f"{page.name}, {cell.metadata.name}: {text!r}"
        for cell in page.code_cells
        if is_figure(cell)
        for text in written_digits(cell.source)
    }
    assert not written, "put the tensor's number into an f-string, or say # fact: why"


def written_digits(source):
    """Texts of captions and text alternatives that hold a digit as it stands."""
    tree = ast.parse(source)
    assigned = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    lines = source.split("\n")
    for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call)):
        for keyword in call.keywords:
            if keyword.arg in ("caption", "alt"):
                for text in _texts(keyword.value, assigned):
                    around = "\n".join(lines[max(0, text.lineno - 2) : text.end_lineno])
                    if numerals.found(str(text.value)) and "# fact: " not in around:
                        yield str(text.value)


def _texts(node, assigned):
    # Constants whose value becomes part of the text as it is written.
    if isinstance(node, ast.Constant):
        yield node
    elif isinstance(node, ast.Name):
        yield from _texts(assigned.pop(node.id, None), assigned)
    elif isinstance(node, ast.FormattedValue):
        if isinstance(node.value, ast.Constant | ast.JoinedStr):
            yield from _texts(node.value, assigned)
    elif isinstance(node, ast.JoinedStr | ast.BinOp | ast.IfExp | ast.Call):
        for child in ast.iter_child_nodes(node):
            yield from _texts(child, assigned)
    elif isinstance(node, ast.GeneratorExp | ast.ListComp):
        yield from _texts(node.elt, assigned)
    elif isinstance(node, ast.Tuple | ast.List):
        for child in node.elts:
            yield from _texts(child, assigned)


def test_no_proof_hides_in_a_cell():
    """A comment within code proves nothing."""
    for page in pages():
        for cell in page.code_cells:
            assert not re.search(r"<!--", cell.source), cell.metadata.name
