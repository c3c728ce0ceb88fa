"""Says what to write instead in the names that the reader's own lines have."""

import ast
import linecache
import re

from attncheck.trace import Line

QUOTED = re.compile(r"`[^`]*`")


def in_their_names(text: str, place: Line | None) -> str:
    """Return a text with the names of the function that a line is in, for ours.

    Only what stands between backticks is code. Where a name can't be told from what
    its function does, ours stays.
    """
    if place is None:
        return text
    names = _names_in(*place[:2])

    def renamed(code: re.Match[str]) -> str:
        made = code[0]
        for ours, theirs in names.items():
            made = re.sub(rf"(?<![\w.]){ours}\b", theirs, made)
        return made

    return QUOTED.sub(renamed, text) if names else text


def _names_in(file: str, number: int) -> dict[str, str]:
    """Return {our name: theirs} of what the function around a line computes."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return {}
    inside = [
        one
        for one in ast.walk(tree)
        if isinstance(one, ast.FunctionDef)
        and one.lineno <= number <= (one.end_lineno or one.lineno)
    ]
    names: dict[str, str] = {}
    for node in ast.walk(inside[-1]) if inside else ():
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            softmax = _softmax_in(node.value)
            if softmax is not None:
                names.setdefault("weights", node.targets[0].id)
            if isinstance(softmax, ast.Name):
                names.setdefault("scores", softmax.id)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            turned = ast.unparse(node.right)
            known = re.fullmatch(r"(\w+)\.(transpose\(.*\)|permute\(.*\)|mT|T)", turned)
            if known and isinstance(node.left, ast.Name):
                names.setdefault("queries", node.left.id)
                names.setdefault("keys", known[1])
    return names


def _softmax_in(value: ast.expr) -> ast.expr | None:
    """Return what softmax is taken of in an expression, or None."""
    for node in ast.walk(value):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called.endswith(".softmax") and called.split(".")[0] in (
                "torch", "F", "nn",
            ):  # fmt: skip
                return node.args[0] if node.args else None
            if called.endswith(".softmax") and isinstance(node.func, ast.Attribute):
                return node.func.value
    return None
