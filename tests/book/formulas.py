"""Read a formula of a page, in TeX or in Unicode, as Python over tensors."""

import re

import torch

GREEK = {r"\alpha": "α", r"\omega": "ω"}
SPELLED = [
    (r"\\(?:mathrm|text|operatorname)\{(\w+)\}", r"\1"),
    (r"\\left\(|\(", "("), (r"\\right\)", ")"), (r"\\(exp|tanh)\b", r"\1"),
    (r"_[ij]\b", ""),  # each entry, so the whole tensor
    (r"\\sqrt\{([^{}]*)\}|√(\w+)", r"(\1\2)**0.5"),
    (r"\\sum (\w+\([^()]*\))", r"(\1).sum()"), (r"\\sum (\w) (\w)\b", r"(\1 @ \2)"),
    (r"\\cdot\b", "@"), (r" \\,/\\, ", " / "),
    (r"\^\\top|ᵀ", ".mT"),
    (r"\\frac\{((?:[^{}]|\{[^{}]*\})*)\}\{((?:[^{}]|\{[^{}]*\})*)\}", r"((\1)/(\2))"),
    # Two factors beside each other.
    (r"(?<=[\w)]) (?=[^\W\d]\w*\b(?!\())", " @ "),
]  # fmt: skip


def python(formula):
    """The expression that a formula stands for."""
    for letter, sign in GREEK.items():
        formula = formula.replace(letter, sign)
    for pattern, code in SPELLED:
        formula = re.sub(pattern, code, formula)
    return formula


def value(formula, names):
    """What a formula gives for the tensors and numbers behind its letters."""
    functions = {"softmax": lambda x: torch.softmax(x, dim=-1), "exp": torch.exp,
                 "tanh": torch.tanh}  # fmt: skip
    return eval(python(formula), functions | names)
