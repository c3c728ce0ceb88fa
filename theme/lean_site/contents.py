"""The side bar: numbered pages with their number, and the sections that they cover.

Every part but the chapter folds, and the one that the reader is in is open.

The number is the one that its figures and listings have: page 03, Figure 03b. The
sections are those of the chapter that the page says it covers.
"""

import html
import posixpath
import re

from docutils import nodes
from sphinx.transforms import SphinxTransform

COVERS = re.compile(r"covers sections? (3[.\d]*)(?: and (3[.\d]*))?")
ENTRY = re.compile(
    r'(<li class="toctree-l1[^"]*"><a class="[^"]*" href="([^"]*)">)([^<]*)(</a>)'
)
GROUP = re.compile(
    r'<p [^>]*class="caption"[^>]*><span class="caption-text">([^<]*)</span></p>\s*'
    r'(<ul class="(?:current )?nav bd-sidenav">.*?</ul>)',
    re.DOTALL,
)
CHAPTER = "The chapter"  # in _toc.yml


def sections(text):
    """Give the sections that a page covers, as short as "3.4" or "3.1, 3.2"."""
    match = COVERS.search(text)
    found = (
        [".".join(s.strip(".").split(".")[:2]) for s in match.groups() if s]
        if match
        else []
    )
    return ", ".join(dict.fromkeys(found))


def number(docname):
    """Give a page's number, 3 of 03_trainable; none for questions and the rest."""
    match = re.match(r"0*(\d+)_(?!questions)", posixpath.basename(docname))
    return match[1] if match else ""


class Note(SphinxTransform):
    """Keep what each page says that it covers."""

    default_priority = 412

    def apply(self, **kwargs):
        for paragraph in self.document.findall(nodes.paragraph):
            if found := sections(" ".join(paragraph.astext().split())):
                self.env.metadata[self.env.docname]["covers"] = found
                return


def change(text, app, context):
    """Write the numbers into the side bar."""
    here = context["pagename"]

    def entry(match):
        head, target, title, tail = match.groups()
        page = target.partition("#")[0].removesuffix(".html")
        page = posixpath.normpath(posixpath.join(posixpath.dirname(here), page))
        page = page if target.partition("#")[0] else here
        before = f'<span class="toc-number">{n}</span> ' if (n := number(page)) else ""
        covers = app.env.metadata.get(page, {}).get("covers", "")
        after = (
            f' <span class="toc-section">{html.escape(covers)}</span>' if covers else ""
        )
        return f"{head}{before}<span>{title}</span>{after}{tail}"

    def group(match):
        caption, pages = match.groups()
        if caption == CHAPTER:
            return match[0]
        is_open = " open" if 'class="toctree-l1 current' in pages else ""
        return f"<details{is_open}><summary>{caption}</summary>{pages}</details>"

    return GROUP.sub(group, ENTRY.sub(entry, text))


def setup(app):
    app.add_transform(Note)
