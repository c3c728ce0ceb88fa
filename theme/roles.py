"""Mark what each part of a page is for, so that style sheets can show it.

    listing     framed and titled, "Listing 04a · CausalAttention"; the number is that
                of its page and its place there, the name that of its class
    check       a cell that only compares known values is quiet
    predict …   a quote that opens with a bold word, such as Predict, has its own look
    cell        each named cell has a link to itself beside its code

A page writes none of this but the tag `listing`; in Jupyter it reads as before.
"""

import ast
import re

from docutils import nodes

from theme.figure_numbers import make_label

COMPARES = re.compile(r"assert|\ballclose\(|\bequal\(")
ROLES = {"predict", "exercise", "question", "try", "answer"}


def find_defined_name(source):
    """Give the name of the first class or function that code defines."""
    match = re.search(r"^(?:class|def) (\w+)", source, re.MULTILINE)
    return match[1] if match else None


def only_checks(source):
    """Tell whether code does nothing but compare known values."""
    try:
        body = ast.parse(source).body
    except SyntaxError:  # a magic of Jupyter's
        return False
    return bool(body) and all(map(_is_check, body))


def _is_check(statement):
    if isinstance(statement, ast.Expr):
        return COMPARES.search(ast.unparse(statement)) is not None
    return isinstance(statement, ast.Assert)


def find_role(quote):
    """Give the role of a quote by the bold word that it opens with."""
    first = next(iter(quote.findall(nodes.paragraph)), None)
    parts = [part for part in first.children if part.astext()] if first else []
    if not parts or not isinstance(parts[0], nodes.strong):
        return None
    word = re.match(r"\w*", parts[0].astext().lower())[0].removesuffix("s")
    return word if word in ROLES else None


def _source(cell):
    code = next(iter(cell.findall(nodes.literal_block)), None)
    return code.astext() if code is not None else ""


def mark_roles(page):
    """Mark quotes and cells by what they are for."""
    for quote in page.document.findall(nodes.block_quote):
        if found := find_role(quote):
            quote["classes"] += ["role", f"role-{found}"]
    for cell in _named_cells(page.document):
        if only_checks(_source(cell)):
            cell["classes"].append("cell-check")


def add_titles(page):
    """Write the titles of listings and the links of cells.

    MyST-NB folds a cell's first child as its code, so this comes after the folds.
    """
    listings = 0
    for cell in _named_cells(page.document):
        name = cell["cell_metadata"]["name"]
        if "listing" in cell["cell_metadata"].get("tags", []):
            listings += 1
            title = f"Listing {make_label(page.env.docname, listings)}"
            cell.insert(0, _html(_title(name, title, find_defined_name(_source(cell)))))
        elif not name.startswith("figure-"):
            cell.insert(0, _html(_permalink(name)))


def _named_cells(document):
    return [
        cell
        for cell in document.findall(nodes.container)
        if cell.get("nb_element") == "cell_code"
        and cell.get("cell_metadata", {}).get("name")
    ]


def _title(name, title, defined):
    what = f" · <code>{defined}</code>" if defined else ""
    return f'<p class="listing-title"><a href="#{name}">{title}{what}</a></p>'


def _permalink(name):
    # A cell has one tab stop, its copy button, so the link has none.
    return (
        f'<a class="cell-link" href="#{name}" tabindex="-1">#<span class="unseen"> '
        f"link to the cell {name}</span></a>"
    )


def _html(text):
    return nodes.raw("", text, format="html")
