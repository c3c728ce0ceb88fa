"""The search: a dialog of the site's own, over an index of sections and named cells.

Replaces Sphinx's search, which finds whole pages, knows words but no misspelled ones,
shows what the pages hide, and leaves its highlights behind.

The engine is MiniSearch: 6 kB gzipped, one plain script, forgiving with typing errors.
Pagefind needs WebAssembly, so an exception from the policy, and fetches its pieces,
which a page from file:// may not. Lunr is larger, has no index that can be searched as
one types without its wildcards, and is no longer maintained. The words of the book are
collected here, when the site is built; the engine turns them into its index in the
browser, in less time than a stored index, which is several times their size, would
take to arrive. Both are loaded when the dialog is opened, as scripts, so that they come
from file:// too.
"""

import json
from pathlib import Path

import yaml

from coding_attention.book import list_pages, list_parts
from theme.lean_site import sections
from theme.lean_site.assets import strip_script

HERE = Path(__file__).parent / "scripts"
WORDS = Path(__file__).with_name("search_words.yml")
TITLES = 4  # of a piece: its page, kind, anchor and title; then come its texts
# By part of _toc.yml: people look for the chapter first, not for its exercises.
WEIGHTS = {
    "The chapter": 1.25, "Beyond": 1.1, "Practice": 0.6, "Reference": 0.75,
}  # fmt: skip
# Entries of this page are short, so without a low weight they would rank first.
CODES, OF_CODES = "book/codes", 0.4
PAGE = """<section id="search-page">
<h1>Search</h1>
<form id="book-search" role="search" action="search.html" method="get">
<label for="book-search-input">Sections, cells, names in code, printed numbers</label>
<input id="book-search-input" type="search" name="q" autocomplete="off"
 autocapitalize="off" spellcheck="false" />
</form>
<noscript><p>The search needs scripts. Without them, the list of pages and the
browser's own search within a page do what they can.</p></noscript>
</section>
"""


def collect_index(site):
    """Collect what can be found.

    Args:
        site: the folder of the built site.

    Returns:
        The pages, as address, title and weight; and the pieces, each as the number of
        its page, kind, anchor, title, text, code and printed numbers.
    """
    listed, found = [], []
    for name, weight in _weigh_pages().items():
        cut = sections.cut_page((site / f"{name}.html").read_text(encoding="utf-8"))
        for piece in cut:
            found.append([
                len(listed), piece.kind, piece.anchor, piece.title,
                piece.words("text"), piece.lines(), " ".join(piece.numbers()),
            ])  # fmt: skip
        listed.append([f"{name}.html", cut[0].title, weight])
    return {"pages": listed, "pieces": found}


def _weigh_pages():
    # A page of questions ranks below the page that they are about.
    first, *_ = list_pages()
    weights = {first: WEIGHTS["The chapter"]}
    for part in list_parts():
        for page in part.pages:
            less = 0.1 if page.endswith("_questions") else 0
            weights[page] = WEIGHTS[part.caption] - less
    weights[CODES] = OF_CODES
    return weights


def read_words(found):
    """Give what readers type and how the book says it, from search_words.yml.

    Args:
        found: what `collect_index` gives.

    Returns:
        The table, with the number of its piece in the place of each address. Where a
        heading has changed, that is the number of its page.
    """
    table = yaml.safe_load(WORDS.read_text(encoding="utf-8"))
    number = number_pieces(found)
    for part in ("answers", "messages", "symbols"):
        table[part] = [
            [number.get(address, number.get(address.partition("#")[0])), phrases]
            for address, phrases in table[part].items()
        ]
        table[part] = [row for row in table[part] if row[0] is not None]
    return table


def number_pieces(found):
    """Give the number of each piece by its address, such as book/index#the-pages."""
    number = {}
    for i, (page, kind, anchor, *_) in enumerate(found["pieces"]):
        address = found["pages"][page][0].removesuffix(".html")
        number[f"{address}#{anchor}"] = i
        if kind == "page":
            number[address] = i
    return number


def replace_search(app):
    """Keep Sphinx from making a search of its own."""
    if app.builder.format == "html":
        app.builder.search = False


def add_page(app):
    """Add the page that shows the hits of a query in its address."""
    yield "search", {"title": "Search", "body": PAGE}, "page.html"


def _short(data):
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def write_index(app, error):
    """Write the engine and what it searches, from the finished pages."""
    if error or app.builder.format != "html":
        return
    site = Path(app.outdir)
    found = collect_index(site)
    found["words"] = read_words(found)
    texts = [piece[TITLES:] for piece in found["pieces"]]
    titles = found | {"pieces": [piece[:TITLES] for piece in found["pieces"]]}
    files = {
        "search-titles.js": f"globalThis.bookIndex = {_short(titles)};\n",
        "search-texts.js": f"globalThis.bookTexts = {_short(texts)};\n",
        "search.js": "".join(
            strip_script((HERE / name).read_text(encoding="utf-8"))
            for name in ("minisearch.js", "search.js")
        ),
    }
    for name, text in files.items():
        (site / "_static" / name).write_text(text, encoding="utf-8")
    (site / "searchindex.js").unlink(missing_ok=True)  # of an earlier build
