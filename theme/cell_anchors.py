"""Give every named code cell an anchor, so that prose and tables can link to it.

A cell's `name` is in its metadata. MyST resolves a link such as `[shown](#name)` within
a page, or `[shown](page.ipynb#name)` from another page, and warns if there is no such
cell. A link to a lab may carry a state, `#name?trait=value`, which reaches the browser
unchanged.
"""

from docutils import nodes
from sphinx.addnodes import pending_xref


def add_anchors(page):
    """Turn `name` metadata of cells into targets before links are resolved."""
    known = page.env.metadata[page.env.docname]
    # MyST looks here when another page links to this one, and knows only headings.
    anchors = known["myst_slugs"] = dict(known.get("myst_slugs", {}))
    for cell in page.document.findall(nodes.container):
        name = cell.get("cell_metadata", {}).get("name")
        if cell.get("nb_element") == "cell_code" and name:
            cell["ids"].append(name)
            cell["names"].append(name)
            page.document.note_explicit_target(cell)
            anchors[name] = (cell.line, name, name)
    _keep_states(page.document)


def _keep_states(document):
    for node in list(document.findall(pending_xref)):
        if "?" in (node.get("reftargetid") or ""):
            page = node["reftarget"].rpartition("/")[2]  # all pages share a folder
            uri = f"{page}.html#{node['reftargetid']}"
            link = nodes.reference("", "", *node.children, refuri=uri)
            node.replace_self(link)
    for node in document.findall(nodes.reference):
        if "?" in node.get("refuri", "") and node.get("id_link"):
            del node["id_link"]  # or MyST would look for an anchor with the state
