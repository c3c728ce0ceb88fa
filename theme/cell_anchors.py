"""Give every named code cell an anchor, so that prose and tables can link to it.

A cell's `name` stands in its metadata. MyST resolves a link such as `[shown](#name)`
within a page, or `[shown](page.ipynb#name)` from another one, and warns when no cell of
that name exists.
"""

from docutils import nodes
from sphinx.transforms import SphinxTransform


class CellAnchors(SphinxTransform):
    """Turn `name` metadata of cells into targets before links are resolved."""

    default_priority = 400

    def apply(self, **kwargs):
        page = self.env.metadata[self.env.docname]
        # Where MyST looks when another page links here; it knows headings only.
        anchors = page["myst_slugs"] = dict(page.get("myst_slugs", {}))
        for cell in self.document.findall(nodes.container):
            name = cell.get("cell_metadata", {}).get("name")
            if cell.get("nb_element") == "cell_code" and name:
                cell["ids"].append(name)
                cell["names"].append(name)
                self.document.note_explicit_target(cell)
                anchors[name] = (cell.line, name, name)


def setup(app):
    app.add_transform(CellAnchors)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
