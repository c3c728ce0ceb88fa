"""The ways to break the book. Each kind draws one mutant from all its places.

A mutant must be wrong, so that a check has to notice it. Where a change could leave
the book as right as it was, the kind's docstring says why it is not drawn: that is
the only way in which a mutant counts as equivalent.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import yaml

from tools.mutants import python_tokens

DIGIT = re.compile(r"\d")
# A number right before the comment that proves it from a cell.
PROVEN = re.compile(r"\d(?=[\d.,]*[%.,;:)]?\s?<!-- (?:=|in) )")
PROOF = re.compile(r"\s?<!-- (?:=|in |fact).*?-->")
LINK = re.compile(r"\]\(((?!\w+://)[^)\s]+)\)")


@dataclass
class Mutant:
    """One broken place: new texts of files, and what a reader of the table sees."""

    kind: str
    where: str
    before: str
    after: str
    edits: dict = field(repr=False, default_factory=dict)
    pages: tuple = ()  # pages whose cells are worth running again
    site: bool = False  # whether the built site may show it


class Book:
    """The unbroken files, read once."""

    def __init__(self, root):
        """Read the pages of the table of contents below ``root``."""
        self.root = Path(root)
        toc = yaml.safe_load(self.text("_toc.yml"))
        files = [toc["root"], *(e["file"] for e in _entries(toc))]
        self.toc = [f.removeprefix("book/") for f in files]
        self.pages = [n for n in self.toc if (self.root / f"book/{n}.ipynb").exists()]

    def text(self, path):
        """Read a file of the repository."""
        return (self.root / path).read_text(encoding="utf-8")

    def notebook(self, page):
        """Read the executed half of a page."""
        return nbformat.reads(self.text(f"book/{page}.ipynb"), as_version=4)


def _entries(node):
    for key in ("parts", "chapters", "sections"):
        for entry in node.get(key, []):
            if "file" in entry:  # a part has a caption in its place
                yield entry
            yield from _entries(entry)


def other_digit(rng, digit):
    """Draw one of the nine other digits."""
    return rng.choice([d for d in "0123456789" if d != digit])


def replaced(text, start, end, new):
    """Put ``new`` in place of text[start:end]."""
    return text[:start] + new + text[end:]


def around(text, position, width=24):
    """Show a place within its line."""
    return text[max(0, position - width) : position + width].replace("\n", "⏎")


def _write(page, notebook):
    return {f"book/{page}.ipynb": nbformat.writes(notebook) + "\n"}


def _is_figure(cell):
    return cell.metadata.get("name", "").startswith("figure-")


def _texts(cell):
    """(holder, key) of each text that a cell has printed or returned."""
    for output in cell.outputs:
        if output.output_type == "stream":
            yield output, "text"
        elif "text/plain" in output.get("data", {}):
            yield output.data, "text/plain"


def _output_place(rng, book, pattern, keep):
    """Draw a match of a pattern in the stored text of a cell, or None."""
    page = rng.choice(book.pages)
    notebook = book.notebook(page)
    places = [
        (cell, holder, key, match)
        for cell in notebook.cells
        if cell.cell_type == "code" and keep(cell)
        for holder, key in _texts(cell)
        for match in pattern.finditer(holder[key])
    ]
    return (page, notebook, *rng.choice(places)) if places else None


def output_digit(rng, book):
    """Change a digit of a stored text output. Every digit counts."""
    place = _output_place(rng, book, DIGIT, lambda cell: not _is_figure(cell))
    if place is None:
        return None
    page, notebook, cell, holder, key, match = place
    return _changed_output(
        rng, "digit of a text output", page, notebook, cell, holder, key, match,
        other_digit(rng, match[0]),
    )  # fmt: skip


def _changed_output(rng, kind, page, notebook, cell, holder, key, match, new):
    old = holder[key]
    holder[key] = replaced(old, match.start(), match.end(), new)
    return Mutant(
        kind, f"{page}, {cell.metadata.name}", around(old, match.start()),
        around(holder[key], match.start()), _write(page, notebook), (page,),
    )  # fmt: skip


def svg_digit(rng, book):
    """Change a digit inside a stored SVG figure: a label, a coordinate, a color."""
    page = rng.choice(book.pages)
    notebook = book.notebook(page)
    figures = [
        (cell, output)
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "<svg" in output.get("data", {}).get("text/html", "")
    ]
    cell, output = rng.choice(figures)
    html = output.data["text/html"]
    start = html.index("<svg")
    places = [m for m in DIGIT.finditer(html) if m.start() > start]
    match = rng.choice(places)
    return _changed_output(
        rng, "digit inside an SVG figure", page, notebook, cell, output.data,
        "text/html", match, other_digit(rng, match[0]),
    )  # fmt: skip


def prose_digit(rng, book):
    """Change a digit of the prose that a cell proves, in both halves.

    A digit whose proof is a reason in words can be checked by people only, and one
    that needs no proof (a section's number) is not held.
    """
    return _in_prose(rng, book, "digit in prose", PROVEN, other_digit)


def proof(rng, book):
    """Take a proof away, in both halves, or on a page without cells."""
    return _in_prose(rng, book, "proof of a digit", PROOF, lambda rng, old: "")


def _in_prose(rng, book, kind, pattern, other):
    name = rng.choice(book.toc)
    if name not in book.pages:
        return _in_prose_file(rng, book, kind, pattern, other, name)
    cells = [c for c in book.notebook(name).cells if c.cell_type == "markdown"]
    places = [(c, m) for c in cells for m in pattern.finditer(c.source)]
    if not places:
        return None
    cell, match = rng.choice(places)
    new = replaced(cell.source, match.start(), match.end(), other(rng, match[0]))
    return _both_halves(book, kind, name, cell, new, match.start())


def _in_prose_file(rng, book, kind, pattern, other, name):
    text = book.text(f"book/{name}.md")
    # The header of a file is no prose.
    body = text.index("\n---\n", 3) if text.startswith("---") else 0
    places = [m for m in pattern.finditer(text) if m.start() > body]
    if not places:
        return None
    match = rng.choice(places)
    new = replaced(text, match.start(), match.end(), other(rng, match[0]))
    return Mutant(
        kind, name, around(text, match.start()), around(new, match.start()),
        {f"book/{name}.md": new}, (), True,
    )  # fmt: skip


def _both_halves(book, kind, page, cell, new, position, site=False):
    """Change a cell's source in the Markdown half and in the notebook alike."""
    source = book.text(f"book/{page}.md")
    if source.count(cell.source) != 1:
        return None  # the Markdown half holds this text twice: draw another place
    notebook = book.notebook(page)
    twin = next(c for c in notebook.cells if c.id == cell.id)
    twin.source = new
    edits = {
        f"book/{page}.md": source.replace(cell.source, new),
        **_write(page, notebook),
    }
    return Mutant(
        kind, f"{page}, {cell.id}", around(cell.source, position),
        around(new, position), edits, (page,), site,
    )  # fmt: skip


def words_digit(rng, book):
    """Change a digit of a stored caption or text alternative.

    The code that computes it is left as it is: no digit is written there.
    """
    place = _output_place(rng, book, DIGIT, _is_figure)
    if place is None:
        return None
    page, notebook, cell, holder, key, match = place
    text = holder[key]
    kind = "digit in a text alternative"
    if match.start() < text.find("\nShown: "):
        kind = "digit in a caption"
    return _changed_output(
        rng, kind, page, notebook, cell, holder, key, match, other_digit(rng, match[0])
    )


def sign(rng, book):
    """Turn the sign of a number in a stored output: -0.0739 for 0.0739.

    A zero is passed over: -0.0000 and 0.0000 are the same number.
    """
    pattern = re.compile(r"(?<![\w.-])-?(?=\d*[1-9]\d*\.\d|\d*\.\d*[1-9])")
    place = _output_place(rng, book, pattern, lambda cell: not _is_figure(cell))
    if place is None:
        return None
    page, notebook, cell, holder, key, match = place
    new = "" if match[0] else "-"
    return _changed_output(rng, "sign", page, notebook, cell, holder, key, match, new)


def listing_token(rng, book):
    """Change a token of a listing cell in both halves, the package left as it is."""
    page = rng.choice(book.pages)
    cells = [
        c for c in book.notebook(page).cells if "listing" in c.metadata.get("tags", [])
    ]
    if not cells:
        return None
    cell = rng.choice(cells)
    change = python_tokens.draw(rng, cell.source)
    if change is None:
        return None
    return _both_halves(
        book, "token of a listing", page, cell, change.text, change.position
    )


def package_token(rng, book):
    """Change a token of attention/*.py, and in the listing cells that show the line.

    So the listing still equals the package, and only a test of values can notice.
    """
    files = sorted((book.root / "attention").glob("*.py"))
    path = rng.choice(files)
    text = path.read_text(encoding="utf-8")
    change = python_tokens.draw(rng, text)
    if change is None:
        return None
    edits = {f"attention/{path.name}": change.text}
    edits |= _in_listings(book, text, change)
    return Mutant(
        "token of the package", f"attention/{path.name}",
        around(text, change.position), around(change.text, change.position), edits,
        tuple(sorted({Path(p).stem for p in edits if p.startswith("book/")})),
    )  # fmt: skip


def _in_listings(book, text, change):
    old_line, new_line = change.lines(text)
    edits = {}
    for page in book.pages:
        notebook = book.notebook(page)
        cells = [
            c for c in notebook.cells
            if "listing" in c.metadata.get("tags", []) and old_line in c.source
        ]  # fmt: skip
        if not cells:
            continue
        source = book.text(f"book/{page}.md")
        for cell in cells:
            new = cell.source.replace(old_line, new_line)
            source = source.replace(cell.source, new)
            cell.source = new
        edits |= {f"book/{page}.md": source, **_write(page, notebook)}
    return edits


def reference_digit(rng, book):
    """Change a digit of a published value in the data."""
    return _reference(rng, book, "digit of a reference value", lambda entry: True)


def erratum_digit(rng, book):
    """Change a digit of an erratum: in the data, or in the output that shows it."""
    if rng.random() < 0.5:
        kinds = lambda entry: entry["kind"] == "erratum"  # noqa: E731
        return _reference(rng, book, "figure of an erratum", kinds)
    ids = {e["id"] for e in _data(book) if e["kind"] == "erratum"}
    shown = lambda cell: ids & set(cell.metadata.get("shows", []))  # noqa: E731
    place = _output_place(rng, book, DIGIT, shown)
    if place is None:
        return None
    page, notebook, cell, holder, key, match = place
    new = other_digit(rng, match[0])
    return _changed_output(
        rng, "figure of an erratum", page, notebook, cell, holder, key, match, new
    )


DATA = "tests/reference/printed_values.json"


def _data(book):
    return json.loads(book.text(DATA))


def _reference(rng, book, kind, keep):
    text = book.text(DATA)
    entry = rng.choice([e for e in _data(book) if keep(e)])
    start = text.index(f'"id": "{entry["id"]}"')
    start = text.index('"values": ', start) + len('"values": ')
    end = text.index('"printed_by"', start)
    match = rng.choice(list(DIGIT.finditer(text, start, end)))
    new = replaced(text, match.start(), match.end(), other_digit(rng, match[0]))
    return Mutant(
        kind, entry["id"], around(text, match.start()), around(new, match.start()),
        {DATA: new}, tuple(book.pages),
    )  # fmt: skip


def half_of_pair(rng, book):
    """Change a letter of a cell in one half of a pair only."""
    page = rng.choice(book.pages)
    notebook = book.notebook(page)
    cell = rng.choice([c for c in notebook.cells if re.search(r"[a-z]", c.source)])
    old = cell.source
    match = rng.choice(list(re.finditer(r"[a-z]", old)))
    letter = rng.choice([c for c in "abcdefghijklmnopqrstuvwxyz" if c != match[0]])
    new = replaced(old, match.start(), match.end(), letter)
    source = book.text(f"book/{page}.md")
    if rng.random() < 0.5 and source.count(old) == 1:
        edits = {f"book/{page}.md": source.replace(old, new)}
    else:
        cell.source = new
        edits = _write(page, notebook)
    return Mutant(
        "one half of a pair", f"{page}, {cell.id}", around(old, match.start()),
        around(new, match.start()), edits, (page,),
    )  # fmt: skip


def dropped_output(rng, book):
    """Drop one stored output of a cell."""
    page = rng.choice(book.pages)
    notebook = book.notebook(page)
    cells = [c for c in notebook.cells if c.cell_type == "code" and c.outputs]
    cell = rng.choice(cells)
    cell.outputs.pop(rng.randrange(len(cell.outputs)))
    return Mutant(
        "output dropped", f"{page}, {cell.metadata.name}", "an output", "none",
        _write(page, notebook), (page,),
    )  # fmt: skip


def never_executed(rng, book):
    """Leave a code cell without execution count and outputs."""
    page = rng.choice(book.pages)
    notebook = book.notebook(page)
    cell = rng.choice([c for c in notebook.cells if c.cell_type == "code"])
    cell.outputs, cell.execution_count = [], None
    return Mutant(
        "cell never executed", f"{page}, {cell.metadata.name}", "executed", "not",
        _write(page, notebook), (page,),
    )  # fmt: skip


def swapped_cells(rng, book):
    """Swap two neighbors: any two in one half, or two code cells in both halves.

    Two pieces of prose that change places in both halves are no mutant: which order
    reads best is no question of right or wrong.
    """
    page = rng.choice(book.pages)
    notebook = book.notebook(page)
    cells = notebook.cells
    i = rng.randrange(len(cells) - 1)
    first, second = cells[i], cells[i + 1]
    edits = {}
    source = book.text(f"book/{page}.md")
    if {first.cell_type, second.cell_type} == {"code"} and source.count(
        first.source
    ) == source.count(second.source) == 1:
        edits[f"book/{page}.md"] = _swap_fences(source, first, second)
    cells[i], cells[i + 1] = second, first
    edits |= _write(page, notebook)
    return Mutant(
        "two cells swapped", page, f"{first.id}, {second.id}",
        f"{second.id}, {first.id}", edits, (page,),
    )  # fmt: skip


def _swap_fences(source, first, second):
    blocks = re.findall(r"^```\{code-cell\}.*?^```$", source, re.M | re.S)
    one = next(b for b in blocks if first.source in b)
    two = next(b for b in blocks if second.source in b)
    return source.replace(one, "\0").replace(two, one).replace("\0", two)


def link(rng, book):
    """Spoil the target of an internal link, in both halves where there are two."""
    name = rng.choice(book.toc)
    text = book.text(f"book/{name}.md")
    places = list(LINK.finditer(text))
    if not places:
        return None
    match = rng.choice(places)
    position = rng.randrange(match.start(1), match.end(1))
    letter = rng.choice([c for c in "abcxyz" if c != text[position]])
    new = replaced(text, position, position + 1, letter)
    edits = {f"book/{name}.md": new}
    if name in book.pages:
        notebook = book.notebook(name)
        old_link, new_link = match[0], new[match.start() : match.end()]
        for cell in notebook.cells:
            if cell.cell_type == "markdown" and cell.source in text:
                cell.source = cell.source.replace(old_link, new_link)
        edits[f"book/{name}.md"] = text.replace(old_link, new_link)
        edits |= _write(name, notebook)
    return Mutant(
        "link or anchor", name, around(text, position), around(new, position), edits,
        (), True,
    )  # fmt: skip


def contents(rng, book):
    """Drop an entry of the table of contents, misspell it, double it, or move it."""
    lines = book.text("_toc.yml").splitlines(keepends=True)
    places = [i for i, line in enumerate(lines) if "- file:" in line]
    i = rng.choice(places)
    after = list(lines)
    ways = ["drop", "misspell", "double", "move"]
    way = rng.choice(ways)
    if way == "drop":
        del after[i]
    elif way == "misspell":
        after[i] = after[i].rstrip("\n") + "x\n"
    elif way == "double":
        after.insert(i, after[i])
    else:
        j = rng.choice([p for p in places if p != i])
        after[i], after[j] = after[j], after[i]
    return Mutant(
        "entry of the contents", way, lines[i].strip(), after[min(i, len(after) - 1)]
        .strip(), {"_toc.yml": "".join(after)}, (), True,
    )  # fmt: skip


KINDS = [
    output_digit, svg_digit, prose_digit, proof, words_digit, sign, listing_token,
    package_token, reference_digit, half_of_pair, dropped_output, never_executed,
    swapped_cells, link, contents, erratum_digit,
]  # fmt: skip


def draw(rng, book, count):
    """Draw ``count`` different mutants, the kinds in turn."""
    mutants, seen = [], set()
    attempts = 0
    while len(mutants) < count:
        kind = KINDS[len(mutants) % len(KINDS)]
        mutant = kind(rng, book)
        attempts += 1
        if attempts > 50 * count:
            raise RuntimeError(f"{kind.__name__} finds no more places to break")
        if mutant is None:
            continue
        fingerprint = tuple(sorted(mutant.edits.items()))
        if fingerprint not in seen:
            seen.add(fingerprint)
            mutants.append(mutant)
    return mutants
