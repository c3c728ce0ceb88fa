"""A listing in steps: its lines as they come, with the formula beside them."""

import ast
import html

from theme.lean_site.maths import to_mathml
from theme.slides import fitted, formulas

BESIDE = 13  # sizes of a letter that the longest formula takes


def steps(source):
    """Split a listing into the steps in which it is told.

    Returns:
        A list of lists, one for each slide's worth of the class: pairs of some lines
        and the formulas of them. Statements that do the same to other names are one
        step. A method begins a new list.
    """
    lines = source.split("\n")
    (defined,) = ast.parse(source).body
    methods = defined.body if isinstance(defined, ast.ClassDef) else [defined]
    made, start = [], 0
    for method in methods:
        groups, kind = [], None
        for statement in method.body:
            alike = _kind(statement)
            if not groups or alike != kind or not groups[-1][2]:
                groups.append([start, statement.end_lineno, []])
            groups[-1][1] = start = statement.end_lineno
            groups[-1][2].append(formulas.formula(statement))
            kind = alike
        made.append(
            [
                ("\n".join(lines[first:last]), [f for f in found if f])
                for first, last, found in groups
            ]
        )
    return made


def _kind(statement):
    # What a statement does, whatever the names are.
    kind = ast.dump(statement)
    for node in ast.walk(statement):
        for name in (getattr(node, "id", None), getattr(node, "attr", None)):
            if name in formulas.letters():
                kind = kind.replace(f"'{name}'", "''")
    return kind


def bodies(source):
    """Return the HTML of the slides that build a listing up."""
    whole = steps(source)
    if _fits([step for part in whole for step in part]):
        whole = [[step for part in whole for step in part]]
    return [_body(some) for part in whole for some in _split(part)]


def _split(part):
    """Split steps that do not fit one slide where the halves are most alike."""
    if _fits(part) or len(part) == 1:
        return [part]
    middle = min(
        range(1, len(part)), key=lambda n: max(_lines(part[:n]), _lines(part[n:]))
    )
    return [*_split(part[:middle]), *_split(part[middle:])]


def _lines(part):
    return sum(text.strip("\n").count("\n") + 1 for text, _ in part)


def _fits(part, size=fitted.SMALLEST):
    lines = [line for text, _ in part for line in text.strip("\n").split("\n")]
    wide = max(map(len, lines)) * fitted.LETTER * size + BESIDE * size
    high = len(lines) * fitted.LINE * size + 4 * len(part)
    return high <= fitted.HEIGHT and (size == fitted.SMALLEST or wide <= fitted.WIDTH)


def _body(part):
    rows = []
    for number, (text, found) in enumerate(part):
        step = ' class="fragment"' if number else ""
        signs = "".join(f"<p>{to_mathml(f, 'inline')}</p>" for f in found)
        # Three products of one kind stand beside three lines of code.
        rows.append(
            f"<tr{step}><td><pre><code>{html.escape(text.strip(chr(10)))}</code></pre></td>"
            f"<td>{signs}</td></tr>"
        )
    size = next(s for s in fitted.SIZES if s == fitted.SMALLEST or _fits(part, s))
    return f'<table class="listing s{size}">{"".join(rows)}</table>'
