"""Sphinx extension: a quote that opens with a bold word is an admonition.

A page holds `> **Predict.** …`, which every front end of notebooks shows as a quote.
Directives such as `:::{admonition}` most of them show as they stand.
"""

from docutils import nodes
from sphinx.transforms import SphinxTransform


class Callouts(SphinxTransform):
    """Turn `> **Title.** Text` into an admonition with that title."""

    default_priority = 400

    def apply(self, **kwargs):
        for quote in list(self.document.findall(nodes.block_quote)):
            if title := _take_title(quote):
                admonition = nodes.admonition("", nodes.title("", title))
                admonition["classes"].append(f"admonition-{nodes.make_id(title)}")
                admonition += quote.children
                quote.replace_self(admonition)


def _take_title(quote):
    """Take the bold words that open a quote out of it; give them without their stop."""
    said = [node for node in quote[0].children if node.astext()]
    if not said or not isinstance(said[0], nodes.strong):
        return None
    title = said[0].astext()
    if not title.endswith("."):
        return None
    quote[0].remove(said[0])
    if len(said) > 1 and isinstance(said[1], nodes.Text):
        quote[0].replace(said[1], nodes.Text(said[1].astext().lstrip()))
    return title.removesuffix(".")


def setup(app):
    app.add_transform(Callouts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
