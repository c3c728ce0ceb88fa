"""Where published values come from: the tables of "Sources and checks", and counts.

The verdicts on values were stored in the pages' cells when these were executed
(coding_attention/published_values.py). Here they are only shown: all of them in a
table, and the count of a page in a line at its end.

Directives without options: `sources` lists who is spoken of and where to find it,
`printed-values` every published value with its evidence, the cells that show it and
whether ours equals it, `concordance` what each source has and where it is here,
`project-card` what the project was asked to be, and `errata-table` the errata. Nothing
in the tables is typed in, so nothing in them can go stale.
"""

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from coding_attention import published_values as data
from coding_attention.book import number_page

PAGE = "book/provenance"


def make_table(header, widths, rows, name):
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


def link_cell(page, name):
    """Link to a code cell, or a heading, of a page."""
    text = f"{number_page(page) or page}: {name}"
    return nodes.reference("", text, refuri=f"{page}.html#{name}", internal=True)


def choose_verdict(entry, verdicts):
    """Choose the verdict of a row: the worst that a cell got."""
    if data.NOT_EQUAL in verdicts:
        return data.NOT_EQUAL.upper()
    if verdicts:
        return verdicts[0]
    return data.NO_SEED if entry["kind"] == "example" else "not shown"


class PrintedValues(SphinxDirective):
    """Every published value, in the order of the data."""

    def run(self):
        shown = {}
        for page, cell, value_id, verdict in data.read_verdicts():
            shown.setdefault(value_id, []).append((link_cell(page, cell), verdict))
            self.env.note_dependency(str(data.ROOT / "book" / f"{page}.ipynb"))
        self.env.note_dependency(str(data.DATA / "printed_values.json"))
        rows = []
        for value_id, entry in data.read_values().items():
            cells = shown.get(value_id.partition("@")[0], [])
            # Both rows of a dropout result link the same cell.
            links = [link.deepcopy() for link, _ in cells]
            name = nodes.literal("", value_id, ids=[f"value-{nodes.make_id(value_id)}"])
            rows.append([
                name, entry["section"], entry["how"], _evidence(value_id),
                _separated(links) or "none: " + entry.get("note", ""),
                choose_verdict(entry, [verdict for _, verdict in cells]),
            ])  # fmt: skip
        header = [
            "value",
            "section",
            "how it comes about",
            "source, cell, line",
            "cells",
            "ours",
        ]
        return [make_table(header, (17, 9, 21, 26, 18, 9), rows, "values")]


def _evidence(value_id):
    parts = []
    for source, place in data.read_sources()["places"][value_id].items():
        parts += ["; ", _source(source)] if parts else [_source(source)]
        if "cell" in place:
            parts += [f", cell {place['cell']}: ", nodes.literal("", place["line"])]
        if not place["printed"]:
            code_of = data.read_values()[value_id].get("code_of", [])
            ran = source in code_of
            parts.append(", what its code prints when run" if ran else ", typed in")
    return parts


def _source(key):
    source = data.read_sources()["sources"][key]
    if not source["address"]:
        return source["name"]
    return nodes.reference("", source["name"], refuri=source["address"])


class Sources(SphinxDirective):
    """Every source: what it is, and its address or why there is none."""

    def run(self):
        rows = []
        for source in data.read_sources()["sources"].values():
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
        header = ["source", "what it is", "where"]
        return [make_table(header, (18, 40, 42), rows, "sources")]


class Concordance(SphinxDirective):
    """Every section, figure, listing, exercise and note, with its place here."""

    def run(self):
        sources, rows = data.read_sources()["sources"], []
        for row in data.read_sources()["concordance"]:
            links = [_place(at) for at in row.get("at", [])]
            here = _separated(links) or f"left out, because {row['left_out']}"
            rows.append(
                [sources[row["source"]]["name"], row["kind"], row["item"], here]
            )
        header = ["source", "kind", "what it has", "where it is here"]
        return [make_table(header, (14, 10, 38, 38), rows, "concordance")]


def _place(at):
    page, _, name = at.partition("#")
    if name:
        return link_cell(page, name)
    text = number_page(page) or page
    return nodes.reference("", text, refuri=f"{page}.html", internal=True)


class Card(SphinxDirective):
    """What the project was asked to be, in its own words, and what honors each part."""

    def run(self):
        rows = []
        for line in data.read_sources()["card"]:
            honored = []
            for part, file in line["kept_by"]:
                honored += [f"; {part}: " if honored else f"{part}: "]
                honored += [nodes.literal("", file)]
            rows.append([line["of"], line["words"], honored])
        header = ["line", "the card", "honored by"]
        return [make_table(header, (15, 38, 47), rows, "card")]


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
            [_said_by(e), e["says"], e["is"], link_cell(e["page"], e["cell"])]
            for e in data.read_errata()
        ]
        header = ["where", "what it says", "what is true", "shown by"]
        return [make_table(header, (20, 30, 30, 20), rows, "errata")]


def _said_by(erratum):
    source = data.read_sources()["sources"][erratum["source"]]
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


def add_count(page):
    """Write how many published values a page reproduces, at its end."""
    verdicts = {}
    for cell in page.document.findall(nodes.container):
        verdicts |= cell.get("cell_metadata", {}).get("published", {})
    if verdicts:
        link = page.app.builder.get_relative_uri(page.env.docname, PAGE)
        section = next(page.document.findall(nodes.section))
        section.append(count_values(verdicts, link))


def count_values(verdicts, link):
    """Write the line with the count.

    Args:
        verdicts: the verdict on each value that the page shows, by its id.
        link: the address of the page with all values.
    """
    found = list(verdicts.values())
    equal = sum(verdict in data.REPRODUCED for verdict in found)
    words = f"{equal} of {len(found)} published values reproduced"
    if drawn := found.count(data.NO_SEED):
        words += f"; {drawn} {'was' if drawn == 1 else 'were'} printed without a seed"
    where = nodes.reference(
        "", "where each comes from", refuri=f"{link}#published-values"
    )
    line = nodes.paragraph("", f"{words} (", classes=["reproduced"])
    line += [where, nodes.Text(").")]
    return line
