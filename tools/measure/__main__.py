"""Measure the pages of the built site and hold them against site_budget.json.

    python -m tools.measure                     every page of _build/html
    python -m tools.measure --site DIR          another build
    python -m tools.measure --against DIR       two builds in one run, before and after
    python -m tools.measure --against-theme     before: the theme as it comes
    python -m tools.measure --slow              times on a slow phone as well
    python -m tools.measure --only 05 index     pages whose names contain 05 or index

Exits with 1 when a page exceeds the budget. Nothing but 127.0.0.1 is reached.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from tqdm import tqdm

from tools.measure.budget import exceeded, figures, read_budget
from tools.measure.page import measure
from tools.measure.plain import build_plain
from tools.measure.server import serving
from tools.measure.visit import browser

SITE = Path(__file__).resolve().parents[2] / "_build" / "html"


def site_pages(site):
    """Give the addresses of all pages below the site's root, without copies."""
    pages = sorted(p.relative_to(site) for p in Path(site).rglob("*.html"))
    # The root's index only leads to the first page of the book.
    return [
        p.as_posix()
        for p in pages
        if p.parts[0] not in ("_static", "_sources") and p.as_posix() != "index.html"
    ]


def measure_site(instance, site, names=(), slow=False):
    """Measure the pages of one build, as a mapping of page to what was found."""
    pages = [p for p in site_pages(site) if not names or any(n in p for n in names)]
    with serving(site) as address:
        return {
            page: measure(instance, f"{address}/{page}", slow)
            for page in tqdm(pages, desc=f"measuring {site}", unit="page")
        }


def table(found):
    """Write one line a page."""
    rows = {page: figures(seen) for page, seen in found.items()}
    heads = list(next(iter(rows.values())))
    width = max(map(len, rows))
    lines = [" ".join([f"{'page':{width}}", *heads])]
    for page, numbers in rows.items():
        cells = [f"{numbers[head]:>{len(head)}}" for head in heads]
        lines.append(" ".join([f"{page:{width}}", *cells]))
    return "\n".join(lines)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--site", type=Path, default=SITE, help="folder of the HTML")
    before = parser.add_mutually_exclusive_group()
    before.add_argument("--against", type=Path, help="an earlier build to compare with")
    before.add_argument(
        "--against-theme", action="store_true", help="compare with the bare theme"
    )
    parser.add_argument("--only", nargs="+", default=(), help="parts of page names")
    parser.add_argument("--slow", action="store_true", help="also times, slow line")
    parser.add_argument("--json", type=Path, help="write all that was found here")
    return parser.parse_args()


def main():
    options = parse()
    with tempfile.TemporaryDirectory() as folder:
        before = options.against
        if options.against_theme:
            print("building the book with the theme as it comes ...", file=sys.stderr)
            before = build_plain(Path(folder))
        report(options, before)


def report(options, before):
    """Measure, print a table for each build, and exit with the verdict."""
    sites = {"this build": options.site}
    if before:
        sites = {"before": before, "after": options.site}
    for site in sites.values():
        if not site_pages(site):
            sys.exit(f"{site} holds no pages. Build the book first: make book")
    with browser() as instance:
        found = {
            name: measure_site(instance, site, options.only, options.slow)
            for name, site in sites.items()
        }
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    for name, pages in found.items():
        if not pages:
            sys.exit(f"No page has a name containing one of {list(options.only)}.")
        print(f"\n{name}\n{table(pages)}")
    over = [
        f"{page}: {line}"
        for page, seen in list(found.values())[-1].items()
        for line in exceeded(seen, read_budget())
    ]
    print("\n" + ("\n".join(over) or "Every page is within the budget."))
    sys.exit(1 if over else 0)


if __name__ == "__main__":
    main()
