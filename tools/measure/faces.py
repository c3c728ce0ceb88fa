"""Load pages with nothing kept, and see in which face their text is set.

    python -m tools.measure.faces [--times 5] [--site DIR]

Three pages, on a quick line and on a slow one, with and without scripts, each as often
as asked: one second after the page has loaded, the browser says which face it drew the
first paragraph with. Exits with 1 where that was not the book's own.
"""

import argparse
import sys
from itertools import product
from pathlib import Path

from tqdm import tqdm

from tools.measure.server import serving
from tools.measure.visit import SLOW, browser

SITE = Path(__file__).resolve().parents[2] / "_build" / "html"
PAGES = ("index", "02_simple_self_attention", "05_multi_head_attention")
LINES = {"quick": None, "slow 4G": SLOW}
SCRIPTS = {"with scripts": True, "without": False}


def is_own(session, selector="article section > p:not([class])"):
    """Tell whether all letters of an element are drawn with a face of the page's own.

    Asked of the browser, which answers for pages without scripts, too.
    """
    root = session.send("DOM.getDocument")["root"]["nodeId"]
    where = {"nodeId": root, "selector": selector}
    node = session.send("DOM.querySelector", where)["nodeId"]
    fonts = session.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]
    return bool(fonts) and all(font["isCustomFont"] for font in fonts)


def load(instance, url, line, scripts):
    """Load a page with nothing kept of it, and tell whether the face is ours."""
    context = instance.new_context(java_script_enabled=scripts)
    try:
        page = context.new_page()
        session = context.new_cdp_session(page)
        for domain in ("Network", "DOM", "CSS"):
            session.send(f"{domain}.enable")
        if line:
            session.send("Network.emulateNetworkConditions", line)
        page.goto(url, timeout=120_000)
        page.wait_for_timeout(1000)
        return is_own(session)
    finally:
        context.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=5, help="loads of each kind")
    parser.add_argument("--site", type=Path, default=SITE, help="folder of the HTML")
    options = parser.parse_args()
    kinds = list(product(LINES, SCRIPTS))
    found = dict.fromkeys(kinds, 0)
    with serving(options.site) as address, browser() as instance:
        visits = list(product(kinds, PAGES, range(options.times)))
        for (line, scripts), page, _ in tqdm(visits, unit="load"):
            url = f"{address}/book/{page}.html"
            found[line, scripts] += load(instance, url, LINES[line], SCRIPTS[scripts])
    each = len(PAGES) * options.times
    for (line, scripts), count in found.items():
        print(f"{line:8} {scripts:13} {count} of {each}")
    print(f"the book's own face in {sum(found.values())} of {each * len(kinds)}")
    sys.exit(sum(found.values()) < each * len(kinds))


if __name__ == "__main__":
    main()
