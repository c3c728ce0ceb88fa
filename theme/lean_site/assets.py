"""Scripts and style sheets: only what the page needs, and none that blocks it.

Replaces: Font Awesome and Thebe (loaded on every page, never used); the theme's own
scripts with Bootstrap's and those of the copy buttons, of which the pages use a tenth
(scripts/frame.js and scripts/copy.js do that); style sheets and scripts of extensions
on pages that do not use them; scripts that hold up the first paint; inline scripts,
which a strict policy forbids. One inline script stays, for what must be settled before
anything is painted: the color theme, the faces.
"""

import json
import re
from pathlib import Path

# Sets what the theme's own script would set only after the first paint.
THEME_SCRIPT = (
    'const root=document.documentElement;let mode="auto";'
    'try{mode=localStorage.getItem("mode")||mode}catch{}'
    "root.dataset.mode=mode;"
    'root.dataset.theme=mode!=="auto"?mode:'
    'matchMedia("(prefers-color-scheme: dark)").matches?"dark":"light";'
    # The text's face came with its sheet, as data, which browsers read only after the
    # first paint: the lines would move. Handed over like this, it is there before. The
    # rules of a sheet from file:// may not be read, so there it comes as it comes.
    "try{for(const sheet of document.styleSheets)for(const rule of sheet.cssRules)"
    "if(rule instanceof CSSFontFaceRule){"
    'const data=/base64,([^")]+)/.exec(rule.style.getPropertyValue("src"));'
    'if(data)document.fonts.add(new FontFace("attention-text",'
    "Uint8Array.from(atob(data[1]),(c)=>c.charCodeAt(0)),"
    "{weight:rule.style.fontWeight}))}}catch{}"
    # The face of formulas comes late, or is left to the next page (looks.css). On a
    # quick line it is asked for now, and is there in time; on a slow one the words
    # would wait for it, up to a second. From file:// browsers refuse to preload. That
    # the first lines came within 200 ms of being asked for tells the two apart.
    'const asked=performance.getEntriesByType("navigation")[0]?.requestStart;'
    'if(root.dataset.faces&&location.protocol!=="file:"&&performance.now()-asked<200){'
    'const face=document.createElement("link");'
    'face.rel="preload";face.as="font";face.type="font/woff2";face.crossOrigin="";'
    "face.href=`${root.dataset.content_root}_static/fonts/${root.dataset.faces}.woff2`;"
    "document.head.append(face)}"
)
NEVER = {
    "sphinx-thebe.js", "sphinx-thebe.css", "all.min.js", "all.min.css",
    "fontawesome.js", # its name since pydata-sphinx-theme 0.16
    # Sphinx's own search (see find.py), and the highlights that it leaves behind.
    "sphinx_highlight.js", "searchtools.js", "language_data.js",
    # What frame.js and copy.js do.
    "bootstrap.js", "pydata-sphinx-theme.js", "sphinx-book-theme.js", "doctools.js",
    "documentation_options.js", "clipboard.min.js", "copybutton.js",
    "copybutton_funcs.js", "copybutton.css",
    # What base.css does.
    "basic.css", "theme.css", "bootstrap.css", "pydata-sphinx-theme.css",
    "sphinx-book-theme.css", "pygments.css",
}  # fmt: skip
# The sheets of every page: the base, and one joined from these in this order. Between
# the two stand those that only some pages need (static_files.py).
BASE, JOINED = "base.css", "book.css"
PARTS = ["frame.css", "book.css", "search.css", "site.css", "looks.css"]
# Parts of site.js, beside site.js itself: what a reader may ask for on every page.
ON_EVERY_PAGE = ["frame", "copy", "open_search", "place", "late"]
FOLDED = r'class="(?:[^"]* )?toggle[ "]|class="admonition[^"]*\bdropdown\b'
# File -> what must stand in the page's body for the file to be loaded.
NEEDED_FOR = {
    "togglebutton.js": FOLDED,
    "togglebutton.css": FOLDED,
    "sphinx-design.min.css": r'class="[^"]*\bsd-',
    "design-tabs.js": r'class="[^"]*\bsd-tab',
}
LABS = "labs.js"


def strip_script(script):
    """Leave out what is for people: lines that are comments, and indents."""
    return re.sub(r"^ *//.*\n|^ +", "", script, flags=re.MULTILINE)


def is_needed(name, body):
    """Tell whether a page with this body asks for a file."""
    return not is_never_used(name) and (
        name not in NEEDED_FOR or re.search(NEEDED_FOR[name], body) is not None
    )


def is_never_used(name):
    """Tell whether no page asks for a file; MyST-NB numbers its sheet."""
    return name in NEVER or name.startswith("mystnb.")


def choose_sheets(links, body, own):
    """Choose the sheets of a page: the base, what it needs of others, our own.

    Args:
        links: the addresses of all that extensions would load, in their order.
        body: the HTML of the article.
        own: gives the address of a file of ours.
    """
    names = {link: _name(link) for link in links}
    some = [k for k, n in names.items() if n not in PARTS and is_needed(n, body)]
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
        if is_needed(_name(link), body)
    ]
    late = [link for link in scripts if _name(link) == LABS]
    links = linked(context["css_files"], "css_tag", "href")
    context |= {
        "first_script": THEME_SCRIPT,
        "has_maths": "<math" in body,
        "sheets": choose_sheets(links, body, own),
        "scripts": [own("site.js"), *(s for s in scripts if s not in late)],
        "late_scripts": late,
    }


def compose_script(config):
    """Write the constants of the theme's extensions, then the site's own script."""
    constants = {
        "toggleHintShow": str(config.togglebutton_hint),
        "toggleHintHide": str(config.togglebutton_hint_hide),
        "toggleOpenOnPrint": str(config.togglebutton_open_on_print).lower(),
        "togglebuttonSelector": config.togglebutton_selector,
    }
    lines = [f"var {name} = {json.dumps(value)};" for name, value in constants.items()]
    here = Path(__file__).parent
    own = [
        here / "site.js",
        *(here / "scripts" / f"{name}.js" for name in ON_EVERY_PAGE),
    ]
    return "\n".join(
        [*lines, *(strip_script(file.read_text(encoding="utf-8")) for file in own)]
    )
