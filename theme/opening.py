"""The way in, on the first page: Start reading, and Run it.

On the root page, the paragraph that is the link "Start reading" becomes a button.
Beside it stands "Run it", which opens the page in the first of the launch services,
where the repository has an address; without one there is nothing to run.
"""

import html

from docutils import nodes
from sphinx.errors import ExtensionError

WORDS, CLASS = "Start reading", "opening"


def mark_way_in(page):
    """Mark the paragraph, so that the style sheet finds it.

    Raises:
        ExtensionError: the first page has no such paragraph, or more than one.
    """
    if page.env.docname != page.config.root_doc:
        return
    found = [p for p in page.document.findall(nodes.paragraph) if p.astext() == WORDS]
    if len(found) != 1:
        raise ExtensionError(
            f"The first page has {len(found)} paragraphs that are the link "
            f"{WORDS!r}, but must have one: theme/opening.py makes a button of it."
        )
    found[0]["classes"].append(CLASS)


def write_run_link(header_buttons):
    """Write "Run it" with the address of the first launch button, or nothing."""
    groups = [b for b in header_buttons if b.get("label") == "launch-buttons"]
    links = [b for group in groups for b in group["buttons"] if b.get("url")]
    if not links:
        return ""
    address = html.escape(links[0]["url"])
    return f' <a class="run" href="{address}" rel="noopener">Run it</a>'


def add_run_link(app, pagename, templatename, context, doctree):
    if pagename != app.config.root_doc or "body" not in context:
        return
    mark = f'<p class="{CLASS}">'
    before, _, rest = context["body"].partition(mark)
    link = write_run_link(context.get("header_buttons", []))
    context["body"] = before + mark + rest.replace("</p>", f"{link}</p>", 1)
    app.add_css_file("opening.css")
