"""Pair and execute the pages: book/NAME.md, which people edit, into book/NAME.ipynb.

    python -m tools.notebooks            bring every stale page up to date
    python -m tools.notebooks 02 05      only pages whose names contain 02 or 05
    python -m tools.notebooks --force    execute all, changed or not
    python -m tools.notebooks --words    take over changed words; exit 1 if code changed
    python -m tools.notebooks --check    change nothing; exit 1 if a page is stale

A page is stale when its cells differ from those of its pair, or when a code cell of
the pair was not executed in order. File times do not count: git does not keep them.
It is executed only if its code differs: a change of words keeps the outputs.
"""

import argparse
import html
import os
import re
import sys
import tempfile
from pathlib import Path

import jupytext
import nbformat

from coding_attention import address, published_values, stored
from coding_attention.book import make_slug
from coding_attention.exercises import pages as exercise_pages
from coding_attention.exercises import site

BOOK = Path(__file__).resolve().parent.parent / "book"
# What a reader's Jupyter needs to open the file, and nothing of this machine.
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def paired_pages(book=BOOK):
    """Pages that hold code: Markdown files with a jupytext header."""
    pages = sorted(book.glob("*.md"))
    return [
        p for p in pages if p.read_text(encoding="utf-8").startswith("---\njupytext")
    ]


def read_source(page):
    """Read the Markdown half as a notebook without outputs."""
    notebook = jupytext.read(page)
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    counts = {}
    for cell in notebook.cells:
        cell.id = _cell_id(cell, counts)
        address.fold(cell)
    _add_anchors(notebook.cells, page)
    return address.with_cell(notebook, _repository(page))


def _repository(page):
    # The address in _config.yml, beside the folder of the page; nothing while unset.
    config = page.parent.parent / "_config.yml"
    text = config.read_text(encoding="utf-8") if config.exists() else ""
    found = re.search(r'^repository:\n(?:[ #].*\n)*?  url: "(.*)"', text, re.M)
    return found[1] if found else ""


# A link to a lab may go on with a state: #name?trait=value.
LINK = re.compile(r"\]\(([\w./]*)#([\w-]+)(\?[^)\s]*)?\)")


def _linked(page):
    """Names on this page that some page links, each with all fragments that do."""
    found = {}
    for path in page.parent.glob("*.md"):
        for file, name, state in LINK.findall(path.read_text(encoding="utf-8")):
            if Path(file or path.name).stem == page.stem:
                found.setdefault(name, {name}).add(name + state)
    return found


def _anchor(fragment):
    return f'<a id="{html.escape(fragment)}"></a>'


def _add_anchors(cells, page):
    # The site knows cells by name and headings by slug; Jupyter knows neither, but
    # follows links to anchors of HTML, letter for letter: a state of a lab has one of
    # its own. theme/proofs.py leaves them out of the site.
    wanted, text = _linked(page), None
    for cell in cells:
        name = cell.metadata.get("name")
        if cell.cell_type == "code" and name in wanted and text is not None:
            text.source += "\n\n" + "".join(map(_anchor, sorted(wanted[name])))
        if cell.cell_type == "markdown":
            text = cell
            for heading in re.findall(r"^#+ (.+)$", cell.source, re.M):
                if make_slug(heading) in wanted:
                    line = re.compile(rf"^(#+ {re.escape(heading)})$", re.M)
                    anchor = rf"{_anchor(make_slug(heading))}\n\n\1"
                    cell.source = line.sub(anchor, cell.source, count=1)


def _cell_id(cell, counts):
    # Ids that say something and stay the same when another cell is added.
    words = re.sub(r"<!-- slide\b.*?-->", "", cell.source, flags=re.S)
    text = cell.metadata.get("name") or " ".join(words.split()[:6])
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:48] or "cell"
    counts[slug] = counts.get(slug, 0) + 1
    return slug if counts[slug] == 1 else f"{slug}-{counts[slug]}"


def cells_of(notebook):
    """What both halves of a pair must agree on."""
    return [(c.cell_type, c.source, _written_metadata(c), c.id) for c in notebook.cells]


def _written_metadata(cell):
    # Without the verdicts on published values, which only the executed half has.
    return {key: value for key, value in cell.metadata.items() if key != "published"}


def is_stale(page):
    """Tell whether the executed half is missing or differs from what it must be.

    It also does when a published value has changed, or cells were not run in order.
    """
    pair = _stored(page)
    return (
        pair is None
        or cells_of(pair) != cells_of(read_source(page))
        or any(
            cell.metadata.get("published", {}) != published_values.compare_cell(cell)
            for cell in pair.cells
        )
    )


def needs_execution(page):
    """Tell whether the code of the page differs from the code that was run."""
    pair = _stored(page)
    return pair is None or _code_of(pair) != _code_of(read_source(page))


def _stored(page):
    # The executed half, or nothing where it is missing or was not run in order.
    pair = page.with_suffix(".ipynb")
    if not pair.exists():
        return None
    stored = nbformat.read(pair, as_version=4)
    counts = [c.execution_count for c in stored.cells if c.cell_type == "code"]
    return stored if counts == list(range(1, len(counts) + 1)) else None


def _code_of(notebook):
    # A cell that is told to fail or to be skipped runs otherwise, so its tags count.
    # Those that only fold it do not; the install cell does nothing where we are.
    folds = {"hide-input", "hide-output", "hide-cell"}
    return [
        (c.source, set(c.metadata.get("tags", [])) - folds)
        for c in notebook.cells
        if c.cell_type == "code" and not address.is_install(c)
    ]


def reword(page):
    """Write the executed half anew with the outputs that it has."""
    notebook, stored = read_source(page), _stored(page)
    notebook.metadata = stored.metadata
    ran = {c.id: c for c in stored.cells if c.cell_type == "code"}
    code = (c for c in notebook.cells if c.cell_type == "code")
    for count, cell in enumerate(code, start=1):
        cell.execution_count = count
        cell.outputs = ran[cell.id].outputs if cell.id in ran else []
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = count
    published_values.record_verdicts(notebook)
    nbformat.write(notebook, page.with_suffix(".ipynb"))


def execute(page):
    """Run the page from top to bottom, alone, and write its executed half.

    It runs in an empty folder: all that it needs is in the package.
    """
    from nbclient import NotebookClient  # slow to import, and words need none

    notebook = read_source(page)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(
            notebook,
            timeout=600,
            kernel_name="python3",
            record_timing=False,
            resources={"metadata": {"path": folder}},
        ).execute(env=os.environ | {stored.STORING: "1"})
    _merge_streams(notebook)
    for cell in notebook.cells:
        stored.store(cell.get("outputs", []))
    published_values.record_verdicts(notebook)
    notebook.metadata = nbformat.from_dict(METADATA)
    nbformat.write(notebook, page.with_suffix(".ipynb"))


def _merge_streams(notebook):
    # How many pieces a cell's prints arrive in depends on the load of the machine.
    for cell in notebook.cells:
        merged = []
        for output in cell.get("outputs", []):
            if merged and output.get("name") == merged[-1].get("name") == "stdout":
                merged[-1].text += output.text
            else:
                merged.append(output)
        if cell.cell_type == "code":
            cell.outputs = merged


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of page names; default: all")
    parser.add_argument("--force", action="store_true", help="execute fresh pages too")
    parser.add_argument("--words", action="store_true", help="execute nothing")
    parser.add_argument("--check", action="store_true", help="only report stale pages")
    options = parser.parse_args()
    behind = _exercises(options)
    pages = [
        p for p in paired_pages()
        if not options.names or any(n in p.stem for n in options.names)
    ]  # fmt: skip
    if not pages:
        sys.exit(f"No page in {BOOK} has a name containing {options.names}.")
    stale = [p for p in pages if options.force or is_stale(p)]
    if options.check:
        for page in stale:
            print(f"stale: {page.name} (run: make notebooks)")
        sys.exit(1 if stale or behind else 0)
    changed = [p for p in stale if options.force or needs_execution(p)]
    for page in stale:
        if page not in changed:
            reword(page)
    if options.words:
        names = ", ".join(page.name for page in changed)
        sys.exit(f"To be executed: {names} (make notebooks)" if names else bool(behind))
    _execute_all(changed)
    print(
        f"{len(changed)} of {len(pages)} pages executed, {len(stale) - len(changed)} "
        "reworded with their outputs kept, the rest were up to date."
    )


def _exercises(options):
    """Bring pages and answers up to date with the exercises; return what is not."""
    behind = [file.name for file in exercise_pages.stale()] if options.check else []
    if not options.check:
        exercise_pages.write()
    if site.is_stale():
        if not (options.check or options.words):
            site.write()  # needs PyTorch: right and wrong functions are called
            return []
        behind.append("answers.json")
    for name in behind:
        print(f"stale: {name}, made from exercises/tasks (run: make notebooks)")
    return behind


def _execute_all(pages):
    from nbclient.exceptions import CellExecutionError
    from tqdm import tqdm

    for page in tqdm(pages, desc="executing pages", unit="page", disable=not pages):
        try:
            execute(page)
        except CellExecutionError as error:
            sys.exit(
                f"\n{page.name} stopped at an error; its pair is unchanged.\n{error}"
            )


if __name__ == "__main__":
    main()
