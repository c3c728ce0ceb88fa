"""The tables of the page "Where every number comes from", built from the data.

Two directives without options: `printed-values` lists every published value with its
sources, the cells that show it and whether ours equals it; `errata-table` lists the
errata. Nothing in the tables is typed in, so nothing in them can go stale.
"""

import re

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from theme import printed_values as data


def table(header, widths, rows, name):
    """Build a table from texts and nodes; widths are shares of the column.

    They are fixed, since a browser that lays out a long table while it arrives would
    move every column with each longer word.
    """
    group = nodes.tgroup("", *[nodes.colspec(colwidth=width) for width in widths])
    group["cols"] = len(header)
    group += nodes.thead("", _row(header))
    group += nodes.tbody("", *[_row(row) for row in rows])
    return nodes.table("", group, classes=["provenance", name, "colwidths-given"])


def _row(cells):
    row = nodes.row()
    for cell in cells:
        parts = cell if isinstance(cell, list) else [cell]
        texts = [nodes.Text(p) if isinstance(p, str) else p for p in parts]
        row += nodes.entry("", nodes.paragraph("", "", *texts))
    return row


def short(page):
    """Name a page in a narrow column: 03Q for 03_questions."""
    number = re.match(r"(\d+)_(questions)?", page)
    return number[1] + ("Q" if number[2] else "") if number else page


def cell_link(page, name):
    """Link to the code cell of a page."""
    text = f"{short(page)}: {name}"
    return nodes.reference("", text, refuri=f"{page}.html#{name}", internal=True)


def verdict(entry, texts):
    """Say whether the cells that claim to show a value show its digits."""
    value_id = entry["id"].partition("@")[0]
    if entry["kind"] == "example":
        return "no seed"
    if not texts:
        return "not shown"
    if not all(data.shows(text, value_id) for text in texts):
        return "NOT EQUAL"
    if "@" in entry["id"]:
        return "equal to one of the two"
    return "holds" if entry["kind"] == "approximate" else "equal"


class PrintedValues(SphinxDirective):
    """Every published value, in the order of the data."""

    def run(self):
        shown = {}
        for page, cell, value_id in data.cells_that_show():
            shown.setdefault(value_id, []).append((page, cell))
            self.env.note_dependency(str(data.ROOT / "book" / f"{page}.ipynb"))
        self.env.note_dependency(str(data.DATA / "printed_values.json"))
        rows = []
        for value_id, entry in data.reference().items():
            cells = shown.get(value_id.partition("@")[0], [])
            links = [cell_link(page, cell.metadata["name"]) for page, cell in cells]
            name = nodes.literal("", value_id, ids=[f"value-{nodes.make_id(value_id)}"])
            rows.append([
                name, entry["section"], entry["how"], ", ".join(entry["printed_by"]),
                _separated(links) or "none: " + entry.get("note", ""),
                verdict(entry, [data.text_of(cell) for _, cell in cells]),
            ])  # fmt: skip
        header = [
            "value",
            "section",
            "how it comes about",
            "printed by",
            "cells",
            "ours",
        ]
        return [table(header, (20, 10, 26, 15, 19, 10), rows, "values")]


def _separated(links):
    parts = []
    for link in links:
        parts += [", ", link] if parts else [link]
    return parts


class ErrataTable(SphinxDirective):
    """Every erratum, with a link to the cell that shows it."""

    def run(self):
        self.env.note_dependency(str(data.DATA / "errata.json"))
        rows = [
            [e["source"], e["says"], e["is"], cell_link(e["page"], e["cell"])]
            for e in data.errata()
        ]
        header = ["where", "what it says", "what is true", "shown by"]
        return [table(header, (20, 30, 30, 20), rows, "errata")]


def setup(app):
    app.add_directive("printed-values", PrintedValues)
    app.add_directive("errata-table", ErrataTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
