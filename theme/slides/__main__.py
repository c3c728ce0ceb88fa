"""Write decks of slides, from the pages' own cells, into _build/slides.

    python -m theme.slides                the first page's, and those of 01 to 10
    python -m theme.slides 04             only pages whose names contain 04
    python -m theme.slides --route 90min  one deck, with its run sheet, for a session
    python -m theme.slides --out DIR      elsewhere

A deck is one HTML file beside a copy of reveal.js; nothing comes from a network. Code,
outputs, figures, questions and the speaker's notes (key S) are those of the page. A
route is a paragraph of the page for teachers that names its command: the sections and
cells that it links are its slides. DECK.html?print-pdf prints one slide a page;
&showNotes=separate-page adds the notes.
"""

import argparse
import re
import shutil
from functools import cache
from pathlib import Path

import nbformat
import yaml
from sphinx_external_toc.parsing import parse_toc_yaml

from theme import labs
from theme.slides import deck
from theme.slides.page import Slide, slides_of

ROOT = Path(__file__).resolve().parents[2]
KIT = Path(__file__).with_name("kit")
PAGE = re.compile(r"book/(index|\d\d_(?!questions)\w+)")
LINK = re.compile(r"\]\((\w+)\.ipynb#([\w-]+)\)")


def pages():
    """Return the names of the pages that have a deck, in the order of the book."""
    return [m[1] for m in map(PAGE.fullmatch, parse_toc_yaml(ROOT / "_toc.yml")) if m]


@cache
def of_page(name):
    """Return the slides of a page, its title first."""
    notebook = nbformat.read(ROOT / "book" / f"{name}.ipynb", as_version=4)
    return slides_of(notebook, name)


def routes():
    """Return the routes of the page for teachers: {name: (title, links)}."""
    text = (ROOT / "book" / "teaching.md").read_text(encoding="utf-8")
    found = {}
    for paragraph in re.split(r"\n\n+", text):
        named = re.search(r"`make slides ROUTE=(\w+)`", paragraph)
        title = re.match(r"\*\*(.+?)\.?\*\*", paragraph)
        if named and title:
            found[named[1]] = (title[1], LINK.findall(paragraph))
    return found


def of_route(name):
    """Return the title of a route and its slides, each with its page's title.

    Raises:
        SystemExit: the route links to a place without a slide.
    """
    title, links = routes()[name]
    chosen = [(title, Slide(title, "", "title"))]
    for page, place in links:
        slides = [s for s in of_page(page) if place in s.of and s.kind != "exercise"]
        if not slides:
            raise SystemExit(
                f"The route {name} links to {page}#{place}, where the deck of that "
                f"page has no slide. Link to a section or a cell in book/teaching.md."
            )
        chosen += [(of_page(page)[0].title, slide) for slide in slides]
    return title, chosen


def write(target, names):
    """Write the decks of pages, what they need, and a list of them."""
    _copy_kit(target)
    decks, files = [], []
    for name in names:
        slides = of_page(name)
        title = slides[0].title
        made = deck.written(title, [(title, slide) for slide in slides])
        files.append(_file(target / f"{name}.html", made))
        decks.append((name, title, slides))
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    return [*files, _file(target / "decks.html", deck.listed(config["title"], decks))]


def write_route(target, name):
    """Write the deck of a route and its run sheet."""
    _copy_kit(target)
    title, slides = of_route(name)
    sheet = deck.run_sheet(title, slides)
    return [
        _file(target / f"{name}.html", deck.written(title, slides)),
        _file(target / f"{name}-run-sheet.html", sheet),
    ]


def _copy_kit(target):
    (target / "kit").mkdir(parents=True, exist_ok=True)
    for file in KIT.iterdir():
        shutil.copy(file, target / "kit")
    sheets = [text for name, text in labs.assets().items() if name.endswith(".css")]
    _file(target / "kit" / "labs.css", "\n".join(sheets))


def _file(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of names of pages")
    parser.add_argument("--route", choices=routes(), help="one deck for a session")
    parser.add_argument("--out", type=Path, default=ROOT / "_build" / "slides")
    options = parser.parse_args()
    if options.route:
        files = write_route(options.out, options.route)
    else:
        some = [n for n in pages() if any(p in n for p in options.names)]
        files = write(options.out, some if options.names else pages())
    for file in files[-2:] if options.route else files[-1:]:
        print(f"file://{file.resolve()}")


if __name__ == "__main__":
    main()
