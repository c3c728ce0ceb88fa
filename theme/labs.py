"""The labs work on the built page, with no kernel and no CDN.

A stored page has no widget, for which MyST-NB would load require.js and a manager from
two other hosts. It has each lab's name and traits behind its static picture (see
stored.py), and `labs_loader.js` makes the lab from them. Without JavaScript, the
picture is shown.

Neither PyTorch nor the package is imported.
"""

from pathlib import Path

from coding_attention.stored import LAB
from theme.lean_site.assets import strip_sheet

HERE = Path(__file__).parent
LABS = HERE.parent / "coding_attention" / "labs"


def compose_assets():
    """Compose the files that the site serves, as a mapping of name to text."""
    script = (LABS / "bundle.js").read_text(encoding="utf-8")
    loader = (HERE / "labs_loader.js").read_text(encoding="utf-8")
    files = sorted(LABS.glob("*.css"), key=lambda path: path.name != "labs.css")
    sheets = [path.read_text("utf-8") for path in files]
    return {
        "labs.js": f"{script}(() => {{\n{loader}}})();\n",
        "labs.css": strip_sheet("\n".join(sheets)),
    }


def add_to_page(app, pagename, templatename, context, doctree):
    if f'<script type="{LAB}">' in context.get("body", ""):
        app.add_js_file("labs.js", loading_method="defer")
        app.add_css_file("labs.css")
