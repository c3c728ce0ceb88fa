"""Ask for every outside link of the built site once, and name those that fail.

    python -m tools.links [SITE]

Links within the site are tested by tests/book/test_site.py, without a network.
"""

import sys
import urllib.error
import urllib.request
from pathlib import Path

from bs4 import BeautifulSoup

SITE = Path(__file__).resolve().parent.parent / "_build" / "html"
# What hosts answer to programs that they do not want, though a reader gets the page.
NOT_FOR_PROGRAMS = {403, 405, 406, 418, 429, 503}
AGENT = {"User-Agent": "Mozilla/5.0 (link check of an open book)"}


def outside_links(site):
    """Map each outside address to the pages that link it."""
    found = {}
    for page in sorted(Path(site).rglob("*.html")):
        soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
        for link in soup.find_all("a", href=True):
            address = link["href"].partition("#")[0]
            if address.startswith(("http://", "https://")):
                found.setdefault(address, set()).add(page.name)
    return found


def failure(address, timeout=30):
    """Say why an address cannot be read, or give None."""
    request = urllib.request.Request(address, headers=AGENT)
    try:
        with urllib.request.urlopen(request, timeout=timeout):
            return None
    except urllib.error.HTTPError as error:
        return None if error.code in NOT_FOR_PROGRAMS else f"answers {error.code}"
    except OSError as error:
        return f"cannot be reached: {error}"


def main():
    site = Path(sys.argv[1]) if len(sys.argv) > 1 else SITE
    if not site.is_dir():
        sys.exit(f"{site} is no folder. Build the book first: make book")
    links = outside_links(site)
    broken = 0
    for address, pages in sorted(links.items()):
        reason = failure(address)
        if reason:
            broken += 1
            print(f"{address} {reason} (on {', '.join(sorted(pages))})")
    print(f"{len(links)} outside links, {broken} broken")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
