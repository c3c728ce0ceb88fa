"""A printed number that was published says so, where it stands.

A cell whose metadata names published values (`shows`) gets a line below its output that
opens: what the value is, who printed it, which digits, whether ours equal them, which
other cells show it, and the lab that can be set to it. The digits themselves are
marked; a click on one opens the line at its value. The line is plain markup, so it
works without scripts; for keyboards and screen readers it is one stop a cell, since a
button at each number would drown the numbers.

Proofs are for those who ask. A page says once, below its title, how many of its
published values are reproduced, and has a box there that shows the lines and marks;
its choice holds on every page (scripts/published.js).

The line stands outside of the cell's output: what is in there, the page printed itself.
"""

import html
import re

from docutils import nodes

from theme import lab_states
from theme import printed_values as data

TABLE = "book/provenance"  # has a row for each value
MOST_DIGITS = 12
PIECE = re.compile(r"(<[^>]*>|&[^;\s]+;)")


def shown_cells(document):
    """Give each cell that shows published values: its name, their ids, its node."""
    for cell in document.findall(nodes.container):
        metadata = cell.get("cell_metadata", {})
        if cell.get("nb_element") == "cell_code" and metadata.get("shows"):
            yield metadata["name"], metadata["shows"], cell


def verdict(text, value_id):
    """Say in a word and in a sentence how a cell's text compares with a value."""
    entries = data.published(value_id)
    found = data.numbers(text)
    equal = [e for e in entries if data.place(found, e) is not None]
    if entries[0]["kind"] == "example":
        return "no seed", (
            "Printed without a seed, so nobody can compute these digits again. What "
            "must hold for any draw holds here."
        )
    if not equal:
        return "not equal", "Ours differs."
    if len(entries) > 1:
        return "equal to one of two", (
            "Two results are published, one for each kind of processor, and both are "
            "right. Ours equals one of them to every printed digit."
        )
    if entries[0]["kind"] == "approximate":
        return "equal", "Ours agrees to one in the last printed digit."
    return "equal", "Ours equals it to every printed digit."


def _join(words):
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _digits(entry):
    digits = data.flatten(entry["values"])
    rest = len(digits) - MOST_DIGITS
    text = ", ".join(digits[:MOST_DIGITS])
    return f"{text} and {rest} more" if rest > 0 else text


def _who(entry):
    names = data.source_names()
    if entry["printed_by"]:
        return "Printed by " + _join([names[source] for source in entry["printed_by"]])
    told = _join([names[source] for source in entry["code_of"]])
    return f"Not printed: what the code of {told} prints when it is run"


def _entry(value_id, text, others, table, lab):
    _, sentence = verdict(text, value_id)
    entries = data.published(value_id)
    printed = "; or ".join(f"{_who(e)}: <code>{_digits(e)}</code>" for e in entries)
    also = ""
    if others:
        links = [f'<a href="{link}">{html.escape(name)}</a>' for name, link in others]
        also = f" Also shown by {_join(links)}."
    anchor = f"value-{nodes.make_id(entries[0]['id'])}"
    return (
        f'<li data-value="{value_id}"><p><code>{value_id}</code>: '
        f"{html.escape(entries[0]['how'].rstrip('.'))}. "
        f"<strong>{sentence}</strong>{also}</p>"
        f"<p>{printed}. "
        f'<a href="{table}#{anchor}">In the table of all values</a>{_see(lab)}</p></li>'
    )


def _see(lab):
    if not lab:
        return ""
    link, name = lab
    return f' · <a href="{html.escape(link)}">Set the {name} to it</a>'


def line(values, text, others, table, labs=None):
    """Write the line below a cell's output, closed.

    Args:
        values: the ids that the cell shows.
        text: what it printed.
        others: for each id, name and link of the other cells that show it.
        table: the address of the page with all values.
        labs: for each id that a lab shows, the address of that state and its name.

    Returns:
        HTML.
    """
    words = list(dict.fromkeys(verdict(text, value)[0] for value in values))
    count = "Published value" if len(values) == 1 else f"{len(values)} published values"
    labs = labs or {}
    entries = "".join(
        _entry(v, text, others.get(v, []), table, labs.get(v)) for v in values
    )
    return (
        f'<details class="published"><summary>{count}: {_join(words)}</summary>'
        f"<ul>{entries}</ul></details>"
    )


def summary(told):
    """Write the line below the title: how many published values the page reproduces.

    Args:
        told: the verdict on each value that the page shows, by its id.

    Returns:
        HTML, with the box that shows the proofs.
    """
    drawn = sum(word == "no seed" for word in told.values())
    equal = sum(word.startswith("equal") for word in told.values())
    words = f"{equal} of {len(told)} published values reproduced"
    if drawn:
        words += f"; {drawn} {'was' if drawn == 1 else 'were'} printed without a seed"
    return (
        f'<p class="reproduced">{words}<label><input type="checkbox" id="show-proofs" '
        'autocomplete="off"> Show the proofs</label></p>'
    )


def mark(box, values):
    """Mark the digits of published values in the outputs of a cell.

    Args:
        box: the HTML of the cell.
        values: the ids that it shows.

    Returns:
        The HTML with one span for each line of digits.
    """
    before, output, after = box.partition('<div class="cell_output')
    pieces, inside, spots = PIECE.split(after), False, []
    for i, piece in enumerate(pieces):
        inside = (inside or piece.startswith("<pre")) and piece != "</pre>"
        if inside and not PIECE.fullmatch(piece):
            spots += [(i, match) for match in data.NUMBER.finditer(piece)]
    owner = _owners([match[0] for _, match in spots], values)
    runs = {}
    for (i, match), value in zip(spots, owner, strict=True):
        if value:
            row = pieces[i].count("\n", 0, match.start())
            start, _ = runs.get((i, row, value), match.span())
            runs[i, row, value] = (start, match.end())
    # From the end, so that the places before it stay right.
    for (i, _, value), (start, end) in sorted(runs.items(), reverse=True):
        text = pieces[i]
        span = f'<span class="published-number" data-value="{value}">'
        pieces[i] = f"{text[:start]}{span}{text[start:end]}</span>{text[end:]}"
    return before + output + "".join(pieces)


def _owners(found, values):
    owner = [None] * len(found)
    for value in values:
        for entry in data.published(value):
            start = data.place(found, entry)
            if start is None:
                continue
            for i in range(start, start + len(data.flatten(entry["values"]))):
                owner[i] = owner[i] or value
    return owner


def collect(page):
    """Note which cells of a page show which values, for the other pages."""
    page.env.metadata[page.env.docname]["published"] = {
        name: values for name, values, _ in shown_cells(page.document)
    }


def add_lines(page):
    """Put the line below the output, outside of what a page folds."""
    verdicts = {}
    for name, values, cell in shown_cells(page.document):
        text = "\n".join(
            block.astext()
            for box in cell.findall(nodes.container)
            if box.get("nb_element") == "cell_code_output"
            for block in box.findall(nodes.literal_block)
        )
        others = {value: _others(page, name, value) for value in values}
        labs = {value: _lab(page, value) for value in values}
        told = line(values, text, others, _link(page, TABLE), labs)
        cell += nodes.raw("", told, format="html")
        verdicts |= {value: verdict(text, value)[0] for value in values}
    page.document["verdicts"] = verdicts


def _others(page, own, value):
    here = page.env.docname
    return [
        (name, f"{_link(page, other)}#{name}")
        for other, metadata in sorted(page.env.metadata.items())
        for name, values in metadata.get("published", {}).items()
        if value in values and (other, name) != (here, own)
    ]


def _lab(page, value):
    state = lab_states.state_of(value)
    if not state or state[0] not in page.env.found_docs:
        return None
    target, anchor, name = state
    return f"{_link(page, target)}#{anchor}", name


def _link(page, target):
    return page.app.builder.get_relative_uri(page.env.docname, target)


def mark_page(app, pagename, templatename, context, doctree):
    shown = app.env.metadata.get(pagename, {}).get("published", {})
    if not shown or not context.get("body"):
        return
    boxes = re.split(r'(?=<div class="cell )', context["body"])
    for i, box in enumerate(boxes):
        name = re.match(r'<div class="cell [^>]*id="([^"]*)"', box)
        if name and name[1] in shown:
            boxes[i] = mark(box, shown[name[1]])
    below = summary(doctree["verdicts"])
    context["body"] = "".join(boxes).replace("</h1>", f"</h1>\n{below}", 1)
