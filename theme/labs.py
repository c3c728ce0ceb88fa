"""The labs work on the built page, with no kernel and no CDN.

MyST-NB would load require.js and a widget manager from two other hosts. A stored page
has no widgets, but each lab's name and traits beside its static figure; the site's own
script makes the lab of them. Without JavaScript, the static figure is shown.

Neither PyTorch nor the package is imported.
"""

import json
from pathlib import Path

from coding_attention.stored import HTML, LAB

HERE = Path(__file__).parent
LABS = HERE.parent / "coding_attention" / "labs"


def assets():
    """Give the files that the site serves, as a mapping of name to text."""
    script = (LABS / "bundle.js").read_text(encoding="utf-8")
    loader = (HERE / "labs_loader.js").read_text(encoding="utf-8")
    files = sorted(LABS.glob("*.css"), key=lambda path: path.name != "labs.css")
    sheets = [path.read_text("utf-8") for path in files]
    return {
        "labs.js": f"{script}(() => {{\n{loader}}})();\n",
        "labs.css": "\n".join(sheets),
    }


def set_beside_figures(app, name, source):
    """Set what a lab's script reads beside its figure, as an element of its own."""
    if LAB not in source[0]:
        return
    notebook = json.loads(source[0])
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if LAB in data:
                # "</script>" within a trait must not end the element that holds it.
                lab = json.dumps(data.pop(LAB), sort_keys=True).replace("</", "<\\/")
                figure = "".join(data.get(HTML, ""))
                data[HTML] = f'{figure}<script type="{LAB}">{lab}</script>'
    source[0] = json.dumps(notebook)


def add_to_page(app, pagename, templatename, context, doctree):
    if f'<script type="{LAB}">' in context.get("body", ""):
        app.add_js_file("labs.js", loading_method="defer")
        app.add_css_file("labs.css")
