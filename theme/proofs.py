"""Sphinx extension: leave HTML comments out of the site.

The pages hold the proofs of their digits in comments. They are for whoever edits a
page, not for its readers, the search, or the weight of the site.
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


def setup(app):
    app.add_transform(WithoutComments)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
