"""Sphinx extension: leave HTML comments and Jupyter's anchors out of the site.

The pages hold the proofs of their digits in comments. They are for whoever edits a
page, not for its readers, the search, or the weight of the site. The notebooks hold
anchors for the links between their cells, which the site makes itself.
"""

import re

from docutils import nodes
from sphinx.transforms import SphinxTransform

COMMENT = re.compile(r"\s*(<!--.*?-->\s*)+", re.DOTALL)


class WithoutComments(SphinxTransform):
    """Drop raw HTML that is nothing but comments, before titles are collected."""

    default_priority = 300

    def apply(self, **kwargs):
        for raw in list(self.document.findall(nodes.raw)):
            if raw.get("format") == "html" and COMMENT.fullmatch(raw.astext()):
                raw.parent.remove(raw)


ANCHOR = re.compile(r'<a id="[^"]+">(</a>)?')


class WithoutAnchors(SphinxTransform):
    """Drop ``<a id="…"></a>``, and the paragraph that held nothing else."""

    default_priority = 299

    def apply(self, **kwargs):
        for raw in list(self.document.findall(nodes.raw)):
            if not ANCHOR.fullmatch(raw.astext()):
                continue
            parent, place = raw.parent, raw.parent.index(raw)
            after = parent[place + 1 : place + 2]
            if after and after[0].astext() == "</a>":
                parent.remove(after[0])
            parent.remove(raw)
            if isinstance(parent, nodes.paragraph) and not parent.astext().strip():
                parent.parent.remove(parent)


def setup(app):
    app.add_transform(WithoutAnchors)
    app.add_transform(WithoutComments)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
