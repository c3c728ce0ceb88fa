"""Exercises are answered on the built page, with no kernel.

Before the cell that checks an exercise, the page gets a `div`. Where the answer is a
number, a shape, a choice or a grid, `practice.js` puts a form there and checks it by
the rules of `answers.json`, which come from the checks in Python. Where the answer is
code, the `div` says so. Without scripts it says what is needed. Below it are a notebook
of this exercise to download, and links to the page in Binder and Colab.

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

# What practice.js writes while nothing is done, so that the page doesn't move then.
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
# After the place, since the script replaces all that is in it.
NOTEBOOK = (
    '<p class="practice-notebook"><a download href="../_static/exercises/{slug}.ipynb">'
    "Download this exercise as a notebook</a>{hosts}.</p>"
)


def _read_script(path):
    text = path.read_text(encoding="utf-8")
    return EXPORT.sub("", IMPORT.sub("", text)).strip()


def read_answers():
    """Give what the site knows of each exercise that it can check, by name."""
    known = json.loads((FOLDER / "answers.json").read_text(encoding="utf-8"))
    del known["made from"]  # how make notebooks knows that the file is stale
    return known


def write_tables():
    """Write the script that defines what read_answers returns, with its functions."""
    known = read_answers()
    derive = {name: entry.pop("derive", "") for name, entry in known.items()}
    return "\n".join([
        f"const tables = {json.dumps(known, ensure_ascii=False)};",
        *(
            f"tables[{json.dumps(name)}].derive = {function};"
            for name, function in derive.items()
            if function
        ),
    ])  # fmt: skip


def compose_assets():
    """Compose the files that the site serves, as a mapping of name to text."""
    here = Path(__file__).parent
    # One classic script, since modules don't load over file://.
    parts = [
        '(() => {\n"use strict";',
        _read_script(FOLDER.parent / "labs" / "core.js"),
        _read_script(FOLDER / "check.js"),
        write_tables(),
        _read_script(here / "practice.js"),
        "})();\n",
    ]
    styles = (here / "practice.css").read_text(encoding="utf-8")
    return {"practice.js": "\n\n".join(parts), "practice.css": styles}


def add_places(body, launch=()):
    """Put a place before each cell that checks, and a line on progress at the top.

    Args:
        body: the page's HTML.
        launch: pairs (name of a host, address) that open the page as a notebook.

    Returns:
        The HTML with the places.
    """
    known = read_answers()
    names = {exercise.slug: name for name, exercise in EXERCISES.items()}

    def place(match):
        slug = match[1]
        name = names[slug]
        words = WITH_SCRIPTS if name in known else IN_PYTHON
        links = [
            f'<a href="{html.escape(url)}{_find_cell(host, slug)}">'
            f"{html.escape(host)}</a>"
            for host, url in launch
        ]
        hosts = f", or open the page in {' or '.join(links)}" if links else ""
        notebook = NOTEBOOK.format(slug=slug, hosts=hosts)
        return words.format(name=name) + notebook + match[0]

    body = CHECK.sub(place, body)
    # The section around the whole page has a class before its id; inner ones don't.
    progress = PROGRESS.format(count=len(known))
    return body.replace("<section id=", f"{progress}<section id=", 1)


def _find_cell(host, slug):
    # Colab scrolls to a cell by its id, which tools/notebooks.py makes of its name.
    return f"#scrollTo=write-{slug}" if host == "Colab" else ""


def build_notebooks(url=""):
    """Build the notebook of each exercise, as a mapping of file to text.

    Args:
        url: the repository, from which a first cell installs the package.
    """
    install = address.source(url, os.environ.get("BOOK_COMMIT") or address.BRANCH)
    return {
        f"exercises/{e.slug}.ipynb": build_notebook(e, install)
        for e in EXERCISES.values()
    }


def _list_hosts(context):
    return [
        (host["text"], host["url"])
        for button in context.get("header_buttons", [])
        if button.get("label") == "launch-buttons"
        for host in button["buttons"]
    ]


def add_to_page(app, pagename, templatename, context, doctree):
    if pagename != PAGE:
        return
    context["body"] = add_places(context["body"], _list_hosts(context))
    app.add_js_file("practice.js", loading_method="defer")
    app.add_css_file("practice.css")
