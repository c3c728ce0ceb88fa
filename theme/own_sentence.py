"""A reader's own sentence, at the end of page 03: heads of a trained model read it.

The page has a ``<div class="own-sentence">``. In a notebook it says that the form is on
the site; here ``sentence/form.js`` writes the form into it. The model's weights are one
file of ten megabytes (``sentence/weights.js``), which loads only when a reader asks for
it; its name contains its hash, so that no browser keeps an old one. ``facts.json`` has
what was measured of it. experiments/real/small.py makes both.
"""

import hashlib
import html
import json
import re
from pathlib import Path

from sphinx.errors import ExtensionError

from theme.lean_site.assets import strip_script, strip_sheet

FOLDER = Path(__file__).parent / "sentence"
PLACE = '<div class="own-sentence">'
MODULE = re.compile(r"^import .*\n|^export ", re.MULTILINE)


def read_facts():
    """Read what was measured of the weights."""
    return json.loads((FOLDER / "facts.json").read_text(encoding="utf-8"))


def name_weights():
    """Give the name under which the site serves the weights."""
    return f"sentence-{read_facts()['sha256'][:8]}.js"


def join_script():
    """Join the two modules into one classic script, which works from file://."""
    parts = [(FOLDER / name).read_text("utf-8") for name in ("forward.js", "form.js")]
    joined = "\n".join(MODULE.sub("", part) for part in parts)
    return strip_script(f"(() => {{\n{joined}}})();\n")


def compose_assets():
    """Compose the script, its sheet and the weights, as a mapping of name to text.

    Raises:
        ExtensionError: the weights are missing, as in a source distribution.
    """
    if not (FOLDER / "weights.js").exists():
        raise ExtensionError(
            f"{FOLDER / 'weights.js'} is missing: take it from the repository "
            "(`git checkout -- theme/sentence`)."
        )
    return {
        "sentence.js": join_script(),
        "sentence.css": strip_sheet((FOLDER / "sentence.css").read_text("utf-8")),
        name_weights(): (FOLDER / "weights.js").read_text("utf-8"),
    }


def add_facts(body, address, files=""):
    """Put what the form needs to know into a page's HTML.

    Args:
        body: the page's HTML.
        address: of the weights.
        files: attributes that name the script and its sheet, for late.js.
    """
    known = read_facts()
    facts = {
        "address": address,
        "size": known["bytes"],
        "sum": known["checksum"],
        "transferred": known["transferred"],
        "sentences": known["sentences"],
        "rates": known["rates"],
    }
    data = html.escape(json.dumps(facts))
    return body.replace(PLACE, f'<div class="own-sentence"{files} data-facts="{data}">')


def add_to_page(app, pagename, templatename, context, doctree):
    """Name the form's script and sheet where it stands: late.js fetches them."""
    if PLACE not in context.get("body", ""):
        return

    def address_of(name):
        return context["pathto"](f"_static/{name}", 1)

    def versioned(name):
        # The digest in the address makes browsers ask for a changed file.
        digest = hashlib.sha256(compose_assets()[name].encode()).hexdigest()[:8]
        return f"{address_of(name)}?v={digest}"

    files = (
        f' data-late-script="{versioned("sentence.js")}"'
        f' data-late-sheet="{versioned("sentence.css")}"'
    )
    address = address_of(name_weights())
    context["body"] = add_facts(context["body"], address, files)
