"""The tables of the page "Sources and checks", built from the data.

Directives without options: `sources` lists who is spoken of and where to find it,
`printed-values` every published value with its evidence, the cells that show it and
whether ours equals it, `concordance` what each source has and where it is here,
`project-card` what the project was asked to be, and `errata-table` the errata. Nothing
in the tables is typed in, so nothing in them can go stale.
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
    """Link to a code cell, or a heading, of a page."""
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
                name, entry["section"], entry["how"], _evidence(value_id),
                _separated(links) or "none: " + entry.get("note", ""),
                verdict(entry, [data.text_of(cell) for _, cell in cells]),
            ])  # fmt: skip
        header = [
            "value",
            "section",
            "how it comes about",
            "source, cell, line",
            "cells",
            "ours",
        ]
        return [table(header, (17, 9, 21, 26, 18, 9), rows, "values")]


def _evidence(value_id):
    parts = []
    for source, place in data.sources()["places"][value_id].items():
        parts += ["; ", _source(source)] if parts else [_source(source)]
        if "cell" in place:
            parts += [f", cell {place['cell']}: ", nodes.literal("", place["line"])]
        if not place["printed"]:
            code_of = data.reference()[value_id].get("code_of", [])
            ran = source in code_of
            parts.append(", what its code prints when run" if ran else ", typed in")
    return parts


def _source(key):
    source = data.sources()["sources"][key]
    if not source["address"]:
        return source["name"]
    return nodes.reference("", source["name"], refuri=source["address"])


class Sources(SphinxDirective):
    """Every source: what it is, and its address or why there is none."""

    def run(self):
        rows = []
        for source in data.sources()["sources"].values():
            where = source.get("because", "")
            if source["address"]:
                where = nodes.reference(
                    "", source["address"].split("/")[-1], refuri=source["address"]
                )
                where = [where, f", read: {source['read']}"]
            version = source.get("printed_with")
            what = source["what"] + (
                f"; it prints PyTorch {version}" if version else ""
            )
            rows.append([source["name"], what, where])
        return [table(["source", "what it is", "where"], (18, 40, 42), rows, "sources")]


class Concordance(SphinxDirective):
    """Every section, figure, listing, exercise and note, with its place here."""

    def run(self):
        names, rows = data.source_names(), []
        for row in data.sources()["concordance"]:
            links = [_place(at) for at in row.get("at", [])]
            here = _separated(links) or f"left out, because {row['left_out']}"
            rows.append([names[row["source"]], row["kind"], row["item"], here])
        header = ["source", "kind", "what it has", "where it is here"]
        return [table(header, (14, 10, 38, 38), rows, "concordance")]


def _place(at):
    page, _, name = at.partition("#")
    if name:
        return cell_link(page, name)
    return nodes.reference("", short(page), refuri=f"{page}.html", internal=True)


class Card(SphinxDirective):
    """What the project was asked to be, in its own words, and what honors each part."""

    def run(self):
        rows = []
        for line in data.sources()["card"]:
            honored = []
            for part, file in line["kept_by"]:
                honored += [f"; {part}: " if honored else f"{part}: "]
                honored += [nodes.literal("", file)]
            rows.append([line["of"], line["words"], honored])
        return [table(["line", "the card", "honored by"], (15, 38, 47), rows, "card")]


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
            [_said_by(e), e["says"], e["is"], cell_link(e["page"], e["cell"])]
            for e in data.errata()
        ]
        header = ["where", "what it says", "what is true", "shown by"]
        return [table(header, (20, 30, 30, 20), rows, "errata")]


def _said_by(erratum):
    source = data.sources()["sources"][erratum["source"]]
    if "address" not in erratum:
        return [_source(erratum["source"]), f": {erratum['where']}"]
    link = nodes.reference("", source["name"], refuri=erratum["address"])
    return [link, f": {erratum['where']}"]


def add_directives(app):
    """Let a page place the tables."""
    app.add_directive("sources", Sources)
    app.add_directive("concordance", Concordance)
    app.add_directive("project-card", Card)  # "card" is one of sphinx-design
    app.add_directive("printed-values", PrintedValues)
    app.add_directive("errata-table", ErrataTable)
