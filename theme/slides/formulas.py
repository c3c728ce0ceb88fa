"""The formula of a line of a listing, from its code and the page on notation."""

import ast
import re
from functools import cache
from pathlib import Path

NOTATION = Path(__file__).resolve().parents[2] / "book" / "notation.md"
LATEX = {"ω": r"\omega", "α": r"\alpha"}
# Axes are moved with these; a formula has one letter for a tensor in either order.
SAME = {"contiguous", "view", "reshape"}


class NoFormulaError(Exception):
    """A line computes nothing that the notation has a sign for."""


@cache
def letters():
    """Return what the book calls a tensor in formulas, by its name in code."""
    text = NOTATION.read_text(encoding="utf-8")
    table = re.search(r"\| what \| ours \|\n\|[-|]+\n((?:\|.*\n)+)", text)[1]
    found = {"x": "x", "hidden": r"\text{hidden}"}
    for row in table.splitlines():
        what, names = (cell.strip() for cell in row.strip("|").split("|"))
        names = re.findall(r"`(\w+)`", names)
        signs = re.findall(r"(?<!\S)[A-Za-zωα](?:_\w)?(?=,|$)", what)
        if signs:  # several names of one thing have its one sign
            signs += signs[-1:] * (len(names) - len(signs))
            signs = [LATEX.get(sign, sign) for sign in signs]
            found |= zip(names, signs, strict=True)
    return found


def formula(line):
    """Return the LaTeX of a statement, or nothing where there is no formula for it.

    Args:
        line: the syntax tree of one statement, such as that of
            ``attn_scores = queries @ keys.T``.
    """
    try:
        return _statement(line)
    except NoFormulaError:
        return ""


def _statement(line):
    if isinstance(line, ast.Return):
        right = _value(line.value)
        return f"z = {right}" if LATEX["α"] in right else right
    if isinstance(line, ast.Expr) and _called(line.value) == "masked_fill_":
        sign, (where, filled) = _value(line.value.func.value), line.value.args
        value = ast.unparse(filled).replace("torch.inf", r"\infty")
        return rf"{sign} = {value} \text{{ where }} {_value(where)}"
    if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
        left, right = _value(line.targets[0]), _value(line.value)
        return f"{left} = {right}" if left != right else ""
    raise NoFormulaError


def _called(node):
    if not isinstance(node, ast.Call):
        return None
    return node.func.attr if isinstance(node.func, ast.Attribute) else None


def _value(node):
    match node:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self"), attr=name):
            if name in letters():
                return letters()[name]
        case ast.BinOp(op=ast.MatMult()):
            return f"{_value(node.left)} {_value(node.right)}"
        case ast.BinOp(op=ast.Div()):
            return rf"{_value(node.left)} / {_value(node.right)}"
        case ast.BinOp(op=ast.Pow(), right=ast.Constant(value=0.5)):
            if ast.unparse(node.left) == "keys.shape[-1]":
                return r"\sqrt{d_k}"
        case ast.Call():
            return _call(node)
    raise NoFormulaError


def _call(node):
    name = _called(node)
    if name == "softmax":
        return rf"\mathrm{{softmax}}({_value(node.args[0])})"
    if name == "dropout":
        return rf"\mathrm{{dropout}}({_value(node.args[0])})"
    if name == "exp":
        return f"e^{{{_value(node.args[0])}}}"
    if name == "sum":
        return rf"\sum {_value(node.func.value)}"
    if name == "cat" and isinstance(node.args[0], ast.ListComp):
        return r"[\, z_1 \ldots z_h \,]"  # what the heads give, side by side
    if name == "transpose":
        return _transposed(node.func.value)
    if name in SAME:
        return _value(node.func.value)
    if name in letters() and node.args:  # a linear layer: a product from the right
        bias = " + b_o" if name == "out_proj" else ""
        return f"{_value(node.args[0])} {_value(node.func)}{bias}"
    raise NoFormulaError


def _transposed(node):
    # Only of a tensor that a product reads is the order of its axes the formula's.
    if isinstance(node, ast.Name):
        return rf"{_value(node)}^\top"
    return _value(node)
