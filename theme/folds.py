"""Fold a run of cells that some readers skip behind one line.

A quote that opens with "**The published example**" is that line. Everything below it
folds, words and cells alike, up to the next heading or the next rule (`***`), which
disappears. In Jupyter both stay, and mark where the run begins and ends. Unlike the
answer to a prediction, a run is no secret: the search has it, and a link, a print or
the box "Show the proofs" opens it.
"""

import html

from docutils import nodes

OPENS = "The published example"


def opening(quote):
    """Tell whether a quote is the line that a run folds behind."""
    first = next(iter(quote.findall(nodes.strong)), None)
    return first is not None and first.astext().startswith(OPENS)


def fold(page):
    """Put the runs of a page between the tags of ``<details>``."""
    for quote in filter(opening, list(page.document.findall(nodes.block_quote))):
        parent, start = quote.parent, quote.parent.index(quote)
        end = start + 1
        ends = (nodes.section, nodes.transition)
        while end < len(parent) and not isinstance(parent[end], ends):
            end += 1
        if end < len(parent) and isinstance(parent[end], nodes.transition):
            del parent[end]
        bold = next(iter(quote.findall(nodes.strong))).astext()
        rest = quote.astext().partition(bold)[2]
        line = f"<strong>{html.escape(bold)}</strong>{html.escape(rest)}"
        parent.insert(end, _html("</details>"))
        parent[start] = _html(f'<details class="run"><summary>{line}</summary>')


def _html(text):
    return nodes.raw("", text, format="html")
