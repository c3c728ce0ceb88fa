"""Exercises are answered on the built page, with no kernel.

Before the cell that checks an exercise, the page gets a place. Where the answer is a
number, a shape, a choice or a grid, `practice.js` puts a form there and checks it by
the rules of `answers.json`, which come from the checks in Python. Where the answer is
code, the place says so. Without scripts it says what is needed. Each exercise has a
notebook of its own to download, and a way to its cell on the hosts that the site knows.

PyTorch is not imported.
"""

import html
import json
import os
import re
from pathlib import Path

from coding_attention import address
from coding_attention.exercises import EXERCISES
from coding_attention.exercises.notebook import build_notebook

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "coding_attention" / "exercises"
PAGE = "book/exercises"
CHECK = re.compile(r'<div class="cell[^"]*" id="check-([\w-]+)">')
IMPORT = re.compile(r'^import \{[^}]*\} from "[./\w]+";\n', re.MULTILINE)
EXPORT = re.compile(r"^export ", re.MULTILINE)

# As practice.js writes it while nothing is done, so that nothing moves.
PROGRESS = (
    '<p class="practice-progress">{count} exercises of this page can be answered here, '
    "by a script in the page; the others need Python. Which ones you did is kept in "
    "this browser and sent nowhere.</p>"
)
WITH_SCRIPTS = (
    '<div class="practice" data-exercise="{name}"><p class="practice-note">To be '
    "answered here, this exercise needs scripts. Without them, write your answer into "
    "the cell above, in a notebook.</p></div>"
)
IN_PYTHON = (
    '<div class="practice practice-python" data-python="{name}"><p>This one needs '
    "Python.</p></div>"
)
# Outside the place, whose contents the script replaces.
NOTEBOOK = (
    '<p class="practice-notebook"><a download href="../_static/exercises/{slug}.ipynb">'
    "Download this exercise as a notebook</a>{hosts}.</p>"
)


def _plain(path):
    text = path.read_text(encoding="utf-8")
    return EXPORT.sub("", IMPORT.sub("", text)).strip()


def answers():
    """Give what the site knows of each exercise that it can check, by name."""
    known = json.loads((FOLDER / "answers.json").read_text(encoding="utf-8"))
    del known["made from"]  # how make notebooks knows that the file is stale
    return known


def tables():
    """Give the script that defines what answers() gives, its functions as functions."""
    known = answers()
    derive = {name: entry.pop("derive", "") for name, entry in known.items()}
    return "\n".join([
        f"const tables = {json.dumps(known, ensure_ascii=False)};",
        *(
            f"tables[{json.dumps(name)}].derive = {function};"
            for name, function in derive.items()
            if function
        ),
    ])  # fmt: skip


def assets():
    """Give the files that the site serves, as a mapping of name to text."""
    here = Path(__file__).parent
    # Of the labs' arithmetic and nothing else, as one classic script.
    parts = [
        '(() => {\n"use strict";',
        _plain(FOLDER.parent / "labs" / "core.js"),
        _plain(FOLDER / "check.js"),
        tables(),
        _plain(here / "practice.js"),
        "})();\n",
    ]
    styles = (here / "practice.css").read_text(encoding="utf-8")
    return {"practice.js": "\n\n".join(parts), "practice.css": styles}


def with_places(body, launch=()):
    """Put a place before each cell that checks, and a line on progress at the top.

    Args:
        body: the page's HTML.
        launch: pairs (name of a host, address) that open the page as a notebook.

    Returns:
        The HTML with the places.
    """
    known = answers()
    names = {exercise.slug: name for name, exercise in EXERCISES.items()}

    def place(match):
        slug = match[1]
        name = names[slug]
        words = WITH_SCRIPTS if name in known else IN_PYTHON
        hosts = "".join(
            f', or open the page in <a href="{html.escape(url)}{_at(host, slug)}">'
            f"{html.escape(host)}</a>"
            for host, url in launch
        )
        notebook = NOTEBOOK.format(slug=slug, hosts=hosts)
        return words.format(name=name) + notebook + match[0]

    body = CHECK.sub(place, body)
    # The page's own section has a class; the first one without is the first part.
    progress = PROGRESS.format(count=len(known))
    return body.replace("<section id=", f"{progress}<section id=", 1)


def _at(host, slug):
    # Colab scrolls to a cell by its id, which tools/notebooks.py makes of its name.
    return f"#scrollTo=write-{slug}" if host == "Colab" else ""


def notebooks(url=""):
    """Give the notebook of each exercise, as a mapping of file to text.

    Args:
        url: the repository, from which a first cell installs the package.
    """
    install = address.source(url, os.environ.get("BOOK_COMMIT") or address.BRANCH)
    return {
        f"exercises/{e.slug}.ipynb": build_notebook(e, install)
        for e in EXERCISES.values()
    }


def _launch(context):
    for button in context.get("header_buttons", []):
        if button.get("label") == "launch-buttons":
            for one in button["buttons"]:
                yield one["text"], one["url"]


def add_to_page(app, pagename, templatename, context, doctree):
    if pagename != PAGE:
        return
    context["body"] = with_places(context["body"], _launch(context))
    app.add_js_file("practice.js", loading_method="defer")
    app.add_css_file("practice.css")
