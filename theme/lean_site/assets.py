"""Choose scripts and style sheets: only those a page needs, and none that blocks it.

Pages would load Font Awesome and Thebe, which they never use, and scripts of the theme,
Bootstrap and the copy buttons, of which they use a tenth (scripts/frame.js and
scripts/copy.js replace these); files of extensions that no page uses; and inline
scripts, which the policy forbids. One inline script stays (scripts/first.js), for what
must be settled before anything is painted: the color theme and the faces.
"""

import re
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"
NEVER = {
    "sphinx-thebe.js", "sphinx-thebe.css", "all.min.js", "all.min.css",
    "fontawesome.js", # its name since pydata-sphinx-theme 0.16
    # Sphinx's own search (see find.py) and its highlights.
    "sphinx_highlight.js", "searchtools.js", "language_data.js",
    # What frame.js and copy.js do.
    "bootstrap.js", "pydata-sphinx-theme.js", "sphinx-book-theme.js", "doctools.js",
    "documentation_options.js", "clipboard.min.js", "copybutton.js",
    "copybutton_funcs.js", "copybutton.css",
    # What base.css does.
    "basic.css", "theme.css", "bootstrap.css", "pydata-sphinx-theme.css",
    "sphinx-book-theme.css", "pygments.css",
    # Of Jupyter Book's extensions, for folds, cards and tabs that no page has.
    "togglebutton.js", "togglebutton.css", "sphinx-design.min.css", "design-tabs.js",
}  # fmt: skip
# The sheets of every page: the base, and one that static_files.py joins from PARTS. The
# sheets that only some pages need go between the two.
BASE, JOINED = "base.css", "book.css"
PARTS = ["frame.css", "book.css", "search.css", "site.css", "looks.css"]
# The parts of site.js, which every page loads.
ON_EVERY_PAGE = ["shared", "site", "frame", "copy", "open_search", "place", "late"]
LABS = "labs.js"


def strip_script(script):
    """Strip lines that are comments, and indents."""
    return re.sub(r"^ *//.*\n|^ +", "", script, flags=re.MULTILINE)


def strip_sheet(sheet):
    """Strip comments, and the space around braces and semicolons."""
    sheet = re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)
    return re.sub(r"\s*([{};])\s*", r"\1", sheet)


THEME_SCRIPT = strip_script((SCRIPTS / "first.js").read_text("utf-8")).strip()


def is_never_used(name):
    """Tell whether no page asks for a file; MyST-NB numbers its sheet."""
    return name in NEVER or name.startswith("mystnb.")


def choose_sheets(links, own):
    """Choose the sheets of a page: the base, what it needs of others, our own.

    Args:
        links: the addresses of all that extensions would load, in their order.
        own: gives the address of a file of ours.
    """
    names = {link: _name(link) for link in links}
    some = [k for k, n in names.items() if n not in PARTS and not is_never_used(n)]
    return [own(BASE), *some, own(JOINED)]


def _name(address):
    return address.partition("?")[0].rpartition("/")[2]


def choose_files(app, pagename, templatename, context, doctree):
    """Give the template the scripts and sheets that the page needs."""
    body = context.get("body", "")
    version = app.config.site_digest[:8]

    def own(name):
        return f"{context['pathto'](f'_static/{name}', 1)}?v={version}"

    def linked(files, tag, attribute):
        ordered = sorted(files, key=lambda file: file.priority)
        tags = [context[tag](file) for file in ordered if file.filename]
        return [re.search(rf'{attribute}="([^"]*)"', text)[1] for text in tags]

    scripts = [
        link
        for link in linked(context["script_files"], "js_tag", "src")
        if not is_never_used(_name(link))
    ]
    late = [link for link in scripts if _name(link) == LABS]
    links = linked(context["css_files"], "css_tag", "href")
    context |= {
        "first_script": THEME_SCRIPT,
        "has_maths": "<math" in body,
        "sheets": choose_sheets(links, own),
        "scripts": [own("site.js"), *(s for s in scripts if s not in late)],
        "late_scripts": late,
    }


def compose_script():
    """Write the script of every page."""
    files = [SCRIPTS / f"{name}.js" for name in ON_EVERY_PAGE]
    return "\n".join(strip_script(file.read_text(encoding="utf-8")) for file in files)
