"""The foot of a page says how many of its published values the page reproduces.

A cell whose metadata names published values (`shows`) prints them. Who published which
digits, and which cells show them, is in the table that the line links to.
"""

from docutils import nodes

from theme import printed_values as data

TABLE = "book/provenance"  # has a row for each value


def add_count(page):
    """Write the line at the end of a page that shows published values."""
    verdicts = {}
    for values, text in read_cells(page.document):
        verdicts |= {value: judge(text, value) for value in values}
    if verdicts:
        link = page.app.builder.get_relative_uri(page.env.docname, TABLE)
        next(page.document.findall(nodes.section)).append(write_line(verdicts, link))


def read_cells(document):
    """Give the published values that each cell shows, and what the cell printed."""
    for cell in document.findall(nodes.container):
        values = cell.get("cell_metadata", {}).get("shows")
        if values and cell.get("nb_element") == "cell_code":
            outputs = [
                block.astext()
                for box in cell.findall(nodes.container)
                if box.get("nb_element") == "cell_code_output"
                for block in box.findall(nodes.literal_block)
            ]
            yield values, "\n".join(outputs)


def judge(text, value_id):
    """Compare what a cell printed with a value: equal, not equal, or no seed."""
    if data.published(value_id)[0]["kind"] == "example":
        return "no seed"  # nobody can compute these digits again
    return "equal" if data.shows(text, value_id) else "not equal"


def write_line(verdicts, link):
    """Write the line.

    Args:
        verdicts: the verdict on each value that the page shows, by its id.
        link: the address of the page with all values.
    """
    found = list(verdicts.values())
    words = f"{found.count('equal')} of {len(found)} published values reproduced"
    if drawn := found.count("no seed"):
        words += f"; {drawn} {'was' if drawn == 1 else 'were'} printed without a seed"
    where = nodes.reference(
        "", "where each comes from", refuri=f"{link}#published-values"
    )
    line = nodes.paragraph("", f"{words} (", classes=["reproduced"])
    line += [where, nodes.Text(").")]
    return line
