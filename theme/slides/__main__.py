"""Write decks of slides from the marks in the pages, into _build/slides.

    python -m theme.slides                one deck for each page that marks slides
    python -m theme.slides --route 90min  one deck for a session, over all these pages
    python -m theme.slides --out DIR      elsewhere

A deck is one HTML file with its notes as another, beside a folder of scripts and style
sheets: nothing comes from a network. theme/slides/marks.py says what a mark looks like.
"""

import argparse
import shutil
from pathlib import Path

import yaml

from theme import labs
from theme.slides import deck, marks

ROOT = Path(__file__).resolve().parents[2]
KIT = Path(__file__).with_name("kit")
ROUTES = {"90min": "Attention in one session"}


def read_pages():
    """Return {name of a page: (title, slides)} of all pages that mark slides."""
    read = {path.stem: marks.read_page(path) for path in _pages()}
    return {name: found for name, found in read.items() if found[1]}


def _pages():
    return sorted((ROOT / "book").glob("*.ipynb"))


def choose_decks(pages, route=None):
    """Return the decks: (file, title, pairs of a page's title and a slide) each.

    Args:
        pages: as :func:`read_pages` returns them.
        route: for one deck over all pages, without the slides marked "page only".
    """
    if route:
        slides = [
            (title, slide)
            for title, found in pages.values()
            for slide in found
            if not slide.page_only
        ]
        return [(route, ROUTES[route], slides)]
    return [
        (name, title, [(title, slide) for slide in slides])
        for name, (title, slides) in pages.items()
    ]


def write_decks(target, decks):
    """Write decks, their notes, and what they need; return the files of the decks."""
    _write_kit(target / "kit")
    for file, title, slides in decks:
        made = deck.write_deck(title, slides)
        (target / f"{file}.html").write_text(made, encoding="utf-8")
        notes = deck.write_sheet(title, slides)
        (target / f"{file}-notes.html").write_text(notes, encoding="utf-8")
    return [target / f"{file}.html" for file, _, _ in decks]


def write_list(target, decks):
    """Write the list of decks; return its file."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    file = target / "decks.html"
    file.write_text(deck.write_list(config["title"], decks), encoding="utf-8")
    return file


def _write_kit(folder):
    """Write the decks' scripts and style sheets, and those of the labs."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in KIT.iterdir():
        shutil.copy(file, folder)
    for name, text in labs.compose_assets().items():
        (folder / name).write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--route", choices=ROUTES, help="one deck for a session")
    parser.add_argument("--out", type=Path, default=ROOT / "_build" / "slides")
    options = parser.parse_args()
    decks = choose_decks(read_pages(), options.route)
    for _, title, slides in decks:
        minutes = sum(slide.minutes for _, slide in slides)
        print(f"{title}: {len(slides)} slides, {minutes:g} minutes")
    (file, *_) = write_decks(options.out, decks)
    if not options.route:
        file = write_list(options.out, decks)
    print(f"file://{file.resolve()}")


if __name__ == "__main__":
    main()
