"""Leave HTML comments and Jupyter's anchors out of the site.

In comments, pages say where their digits come from. Only those who edit a page need
them. In anchors, notebooks have targets for links between cells; the site makes its own
(cell_anchors.py).
"""

import re

from docutils import nodes

ANCHOR = re.compile(r'<a id="[^"]+">(</a>)?|</a>')  # whole, or in two parts
COMMENT = re.compile(r"\s*(<!--.*?-->\s*)+", re.DOTALL)


def drop_comments(page):
    """Drop raw HTML that is nothing but comments, before titles are collected."""
    for raw in list(page.document.findall(nodes.raw)):
        if raw.get("format") == "html" and COMMENT.fullmatch(raw.astext()):
            raw.parent.remove(raw)


def drop_anchors(page):
    """Drop ``<a id="…"></a>``, and the paragraph that held nothing else."""
    for raw in list(page.document.findall(nodes.raw)):
        if not ANCHOR.fullmatch(raw.astext()):
            continue
        parent = raw.parent
        parent.remove(raw)
        if isinstance(parent, nodes.paragraph) and not parent.astext().strip():
            parent.parent.remove(parent)
