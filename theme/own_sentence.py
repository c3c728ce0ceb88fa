"""A reader's own sentence, at the end of page 03: heads of a trained model read it.

The page has a ``<div class="own-sentence">``, which in a notebook says where the form
is. Here it gets the form (``sentence/form.js``). What it computes with is one file of
ten megabytes (``sentence/weights.js``), which the page asks for only when a reader
does; its name holds its hash, so that no browser keeps an old one. ``facts.json`` says
what was measured of it. experiments/real/small.py makes both.
"""

import html
import json
import re
from pathlib import Path

from sphinx.errors import ExtensionError

from theme.lean_site.assets import strip_script

FOLDER = Path(__file__).parent / "sentence"
PLACE = '<div class="own-sentence">'
MODULE = re.compile(r"^import .*\n|^export ", re.MULTILINE)


def facts():
    """Read what was measured of the weights."""
    return json.loads((FOLDER / "facts.json").read_text(encoding="utf-8"))


def weights_name():
    """Give the name under which the site serves the weights."""
    return f"sentence-{facts()['sha256'][:8]}.js"


def script():
    """Join the two modules into one classic script, which works from file://."""
    parts = [(FOLDER / name).read_text("utf-8") for name in ("forward.js", "form.js")]
    joined = "\n".join(MODULE.sub("", part) for part in parts)
    return strip_script(f"(() => {{\n{joined}}})();\n")


def assets():
    """Give the script, its sheet and the weights, as a mapping of name to text.

    Raises:
        ExtensionError: the weights are missing, as they are from what is on the index.
    """
    if not (FOLDER / "weights.js").exists():
        raise ExtensionError(
            f"{FOLDER / 'weights.js'} is missing: take it from the repository "
            "(`git checkout -- theme/sentence`)."
        )
    return {
        "sentence.js": script(),
        "sentence.css": (FOLDER / "sentence.css").read_text("utf-8"),
        weights_name(): (FOLDER / "weights.js").read_text("utf-8"),
    }


def with_facts(body, address):
    """Give a page's HTML with what its form needs to know."""
    known = facts()
    told = {
        "address": address,
        "size": known["bytes"],
        "sum": known["checksum"],
        "transferred": known["transferred"],
        "sentences": known["sentences"],
        "rates": known["rates"],
    }
    data = html.escape(json.dumps(told))
    return body.replace(PLACE, f'<div class="own-sentence" data-facts="{data}">')


def add_to_page(app, pagename, templatename, context, doctree):
    """Let the page with the form ask for its script and sheet."""
    if PLACE not in context.get("body", ""):
        return
    address = context["pathto"](f"_static/{weights_name()}", 1)
    context["body"] = with_facts(context["body"], address)
    app.add_js_file("sentence.js", loading_method="defer")
    app.add_css_file("sentence.css")
