"""The side bar: numbered pages with their number, and the sections that they cover.

The chapter stands first and open. Every other part folds, and the one that the reader
is in is open.

The number is the one that its figures and listings have: page 03, Figure 03b. The
sections are those of the chapter that the page says it covers.
"""

import re

from docutils import nodes

from coding_attention.book import list_parts, number_page

COVERS = re.compile(r"covers sections? (3[.\d]*)(?: and (3[.\d]*))?")


def find_sections(text):
    """Give the sections that a page covers, as short as "3.4" or "3.1, 3.2"."""
    match = COVERS.search(text)
    found = (
        [".".join(s.strip(".").split(".")[:2]) for s in match.groups() if s]
        if match
        else []
    )
    return ", ".join(dict.fromkeys(found))


def note_sections(page):
    """Keep what a page says that it covers."""
    for paragraph in page.document.findall(nodes.paragraph):
        if found := find_sections(" ".join(paragraph.astext().split())):
            page.env.metadata[page.env.docname]["covers"] = found
            return


def list_contents(env, here):
    """List the parts of the book with their pages, as the page `here` shows them."""
    parts = []
    for caption, names in list_parts():
        pages = [_page(env, name, here) for name in names]
        parts.append(
            {
                "caption": caption,
                "pages": pages,
                "open": any(page["here"] for page in pages),
                "numbered": any(page["number"] for page in pages),
            }
        )
    return parts


def _page(env, name, here):
    number = number_page(name)
    return {
        "name": name,
        "title": env.titles[name].astext(),
        "number": number.lstrip("0") if number.isdigit() else "",
        "sections": env.metadata.get(name, {}).get("covers", ""),
        "here": name == here,
    }
