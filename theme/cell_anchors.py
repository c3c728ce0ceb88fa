"""Give every named code cell an anchor, so that prose and tables can link to it.

A cell's `name` stands in its metadata. MyST resolves a link such as `[shown](#name)`
within a page, or `[shown](page.ipynb#name)` from another one, and warns when no cell of
that name exists. A link to a lab may go on with a state, `#name?trait=value`: the
browser gets it as it is.
"""

from docutils import nodes
from sphinx.addnodes import pending_xref
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
        self._keep_states()

    def _keep_states(self):
        for node in list(self.document.findall(pending_xref)):
            if "?" in (node.get("reftargetid") or ""):
                page = node["reftarget"].rpartition("/")[2]  # all pages share a folder
                uri = f"{page}.html#{node['reftargetid']}"
                link = nodes.reference("", "", *node.children, refuri=uri)
                node.replace_self(link)
        for node in self.document.findall(nodes.reference):
            if "?" in node.get("refuri", "") and node.get("id_link"):
                del node["id_link"]  # nothing is left for MyST to resolve


def setup(app):
    app.add_transform(CellAnchors)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
