"""Figures have numbers, and their code is a small link below them.

A figure is the output of a cell whose name begins with ``figure-``. Its number is that
of its page and a letter, so that people can refer to it: Figure 03b is the second of
page 03. Pages without a number have a letter, and count: Figure A2. The number links
to the figure, so that its address can be copied. A link whose text is "figure", such as
``[figure](#figure-one-query)``, reads as that figure's number on the site; in Jupyter,
where nothing counts, the word is left.
"""

import posixpath
import re
from string import ascii_lowercase

from docutils import nodes
from sphinx.errors import ExtensionError

from coding_attention.book import number_page

LETTERS = {
    "index": "A", "checker": "C", "errata": "E", "find_the_bug": "F", "solutions": "S",
    "exercises": "X",
}  # fmt: skip
CAPTION = re.compile(r"<figcaption[^>]*>")


def make_label(page, count):
    """Name the n-th figure or listing of a page: 03b, or A2 where pages have letters.

    A dot between them would name figures and listings of the published chapter, whose
    numbers are 3.1, 3.2 and so on.

    Raises:
        ExtensionError: the page has neither a number nor a letter.
    """
    if number := number_page(page):
        return f"{number}{ascii_lowercase[count - 1]}"
    name = posixpath.basename(page)
    if name not in LETTERS:
        raise ExtensionError(
            f"The page {name} has figures, but neither a number nor a letter to count "
            f"them by. Give it one in LETTERS of theme/figure_numbers.py."
        )
    return f"{LETTERS[name]}{count}"


def find_figure_cells(document):
    """Find the cells named figure-..., each with the raw HTML of its figures."""
    for cell in document.findall(nodes.container):
        name = cell.get("cell_metadata", {}).get("name", "")
        if cell.get("nb_element") == "cell_code" and name.startswith("figure-"):
            raws = [r for r in cell.findall(nodes.raw) if CAPTION.search(r.astext())]
            yield name, cell, raws


def number_figures(page):
    """Write each figure's number before its caption."""
    docname = page.env.docname
    numbers = page.env.metadata[docname]["figure_numbers"] = {}
    counted = 0
    for name, _, raws in find_figure_cells(page.document):
        for raw in raws:
            counted += 1
            named = f"Figure {make_label(docname, counted)}"
            numbers.setdefault(name, named)
            link = f'<a href="#{name}">{named}</a>'
            number = f'<span class="figure-number">{link}.</span> '
            text = CAPTION.sub(lambda m, n=number: m[0] + n, raw.astext(), count=1)
            raw.children = [nodes.Text(text)]
            raw.rawsource = text


def number_links(page):
    """Turn links that read "figure" into the numbers of the figures they lead to."""
    for link in page.document.findall(nodes.reference):
        if link.astext().lower() != "figure":
            continue
        target, _, name = (link.get("refuri") or "").partition("#")
        name = link.get("refid") or name
        here = posixpath.dirname(page.env.docname)
        target = posixpath.normpath(posixpath.join(here, target.removesuffix(".html")))
        target = target if link.get("refuri", "#")[0] != "#" else page.env.docname
        numbers = page.env.metadata[target].get("figure_numbers", {})
        if name in numbers:
            link.children = []
            link += nodes.Text(numbers[name])


def put_code_below(page):
    """Call every fold of code "Show code", below the figure or lab that it draws."""
    for cell in page.document.findall(nodes.container):
        if cell.get("hide_mode") != "input":
            continue
        fold = cell.children[0]
        fold["prompt_show"], fold["prompt_hide"] = "Show code", "Hide code"
        if cell["cell_metadata"].get("name", "").startswith(("figure-", "lab-")):
            cell.remove(fold)
            cell.append(fold)
