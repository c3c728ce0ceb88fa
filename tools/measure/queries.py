"""Ask the book's search what learners ask, and say where it leads.

    python -m tools.measure.queries FILE [--site DIR]

FILE is JSON: a list of {"query": …, "page": …}. A page may name a place, too, as in
"05_questions#why-contiguous"; where several answer, it is a list of them. For each
query it prints the first hit, and at which rank the page stands; then how often it
stood first.
"""

import argparse
import json
from pathlib import Path

from tools.measure.server import serving
from tools.measure.visit import browser, visiting

SITE = Path(__file__).resolve().parents[2] / "_build" / "html"
START = "book/02_simple_self_attention.html"
HITS = "(all) => all.map((a) => [a.getAttribute('href'), a.innerText])"


def hits_of(page, queries):
    """Type each query into the open search of a page.

    Returns:
        For each query its hits, as pairs of address and text.
    """
    field = page.locator(".search-dialog input")
    found = {}
    for query in queries:
        field.fill(query)  # a field of one line drops the line ends of what is pasted
        page.wait_for_function(
            "(q) => document.querySelector('.search-answer')?.dataset.query === q",
            arg=field.input_value().strip(),
        )
        found[query] = page.eval_on_selector_all(".search-hits a", HITS)
    return found


def leads(address, place):
    """Tell whether a hit's address is a page, and where one is named a place on it."""
    page, _, anchor = place.partition("#")
    page = page.rpartition("/")[2].removesuffix(".html")
    return f"/{page}.html" in f"/{address}" and (
        not anchor or address.endswith(f"#{anchor}")
    )


def rank(hits, place):
    """Give the rank of a page among the hits, from 1; 0 where it is not there.

    Args:
        hits: pairs of address and text.
        place: a page or a place on it, or a list of those that answer equally well.
    """
    places = [place] if isinstance(place, str) else place
    ranks = (
        i
        for i, (address, _) in enumerate(hits, 1)
        if any(leads(address, one) for one in places)
    )
    return next(ranks, 0)


def wanted(row):
    """Name the pages of a query as one text."""
    return row["page"] if isinstance(row["page"], str) else " or ".join(row["page"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--site", type=Path, default=SITE, help="folder of the HTML")
    options = parser.parse_args()
    asked = json.loads(options.file.read_text(encoding="utf-8"))
    with (
        serving(options.site) as address,
        browser() as instance,
        visiting(instance, f"{address}/{START}") as visit,
    ):
        visit.load()
        visit.page.keyboard.press("Control+k")
        found = hits_of(visit.page, [row["query"] for row in asked])
    ranks = []
    for row in asked:
        hits = found[row["query"]]
        ranks.append(rank(hits, row["page"]))
        first = hits[0][0].rpartition("/")[2] if hits else "nothing"
        told = {0: "not found", 1: ""}.get(ranks[-1], f"rank {ranks[-1]}")
        print(f"{told:9} {row['query']!r}: {first}   (wanted: {wanted(row)})")
    print(f"right page first in {ranks.count(1)} of {len(ranks)}")


if __name__ == "__main__":
    main()
