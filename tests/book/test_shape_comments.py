"""A comment such as `# (t, d_in) @ (d_in, t) -> (t, t)` tells the shape of its tensor.

Pages are run once. A line that assigns one name, at the top of a cell or inside a
function of the page, is compared with the tensor behind that name. The shape behind
`->`, or the only one, has as many axes, its numbers are equal, and a letter stands for
one size within a cell or a call.
"""

import ast
import contextlib
import io
import re
import sys

import pytest
import torch
from IPython.core.inputtransformer2 import TransformerManager

from tests.book.pages import pages

SHAPE = re.compile(r"(?<!\w)\(([\w.]+(?:, [\w.·* ]+)+|\w+,)\)")
MAIN = [page for page in pages() if re.match(r"0[2-6]_(?!questions)", page.name)]


def told(source):
    """Give the shape of each commented line that assigns one name, by function."""
    lines, found = source.split("\n"), {}
    scopes = [("<module>", ast.parse(source))]
    while scopes:
        scope, tree = scopes.pop()
        for node in ast.iter_child_nodes(tree):
            is_function = isinstance(node, ast.FunctionDef)
            scopes.append((node.name if is_function else scope, node))
            if not isinstance(node, ast.Assign):
                continue
            comment = lines[node.end_lineno - 1].partition("#")[2]
            shapes = SHAPE.findall(comment.rpartition("->")[2])
            target = node.targets[0]
            if len(shapes) == 1 and isinstance(target, ast.Name):
                entries = [entry.strip() for entry in shapes[0].split(",")]
                entries = tuple(filter(None, entries))
                found.setdefault(scope, []).append((target.id, entries))
    # A name that is assigned twice in one scope tells only its last value.
    return {scope: dict(pairs) for scope, pairs in found.items()}


def differences(shapes, names):
    """Say which comments don't fit the tensors behind the names."""
    sizes = {}
    for name, entries in shapes.items():
        value = names.get(name)
        if not isinstance(value, torch.Tensor):
            continue
        shape = tuple(value.shape)
        fits = len(entries) == len(shape) and all(
            int(entry) == size if entry.isdigit()
            else not entry.isidentifier() or sizes.setdefault(entry, size) == size
            for entry, size in zip(entries, shape, strict=True)
        )  # fmt: skip
        if not fits:
            yield f"{name} is {shape}; its comment says ({', '.join(entries)})"


def run_cell(source, name, space):
    """Run a cell; give what its comments tell falsely."""
    shapes, wrong = told(source), []
    code = compile(source, f"<cell {name}>", "exec")

    def enter(frame, event, _):
        known = shapes.get(frame.f_code.co_name)
        if frame.f_code.co_filename != code.co_filename or not known:
            return None  # what Python calls elsewhere isn't followed
        frame.f_trace_lines = False
        return leave

    def leave(frame, event, _):
        if event == "return":
            known = shapes[frame.f_code.co_name]
            wrong.extend(differences(known, frame.f_locals))
        return leave

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        exec(code, space)
    finally:
        sys.settrace(before)
    return [f"{name}: {what}" for what in dict.fromkeys(wrong)]


@pytest.mark.site
@pytest.mark.parametrize("page", MAIN, ids=lambda page: page.name)
def test_shape_comments_are_true(page):
    space, wrong = {"__name__": "__main__", "display": lambda *_: None}, []
    for cell in page.source.cells:
        name = cell.metadata.get("name", "")
        if cell.cell_type != "code" or name.startswith(("figure-", "lab-")):
            continue
        source = TransformerManager().transform_cell(cell.source)
        may_fail = "raises-exception" in cell.metadata.get("tags", [])
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                wrong += run_cell(source, name, space)
            except Exception:
                if not may_fail:
                    raise
    assert not wrong, "\n".join(wrong)
