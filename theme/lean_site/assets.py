"""Scripts and style sheets: only what the page needs, and none that blocks it.

Replaces: Font Awesome and Thebe (loaded on every page, never used); the theme's own
scripts with Bootstrap's and those of the copy buttons, of which the pages use a tenth
(scripts/frame.js and scripts/copy.js do that); style sheets and scripts of extensions
on pages that do not use them; scripts that hold up the first paint; inline scripts,
which a strict policy forbids. One inline script stays, for what must be settled before
anything is painted: the color theme, whether proofs are shown, the faces.
"""

import json
import re
import shutil
from pathlib import Path

from sphinx.errors import ThemeError

from theme.lean_site.change import bare, replace
from theme.lean_site.styles import with_joined_links

# Sets what the theme's own script would set only after the first paint.
THEME_SCRIPT = (
    'const root=document.documentElement;let mode="auto";'
    'try{mode=localStorage.getItem("mode")||mode}catch{}'
    "root.dataset.mode=mode;"
    'root.dataset.theme=mode!=="auto"?mode:'
    'matchMedia("(prefers-color-scheme: dark)").matches?"dark":"light";'
    # Whether proofs are shown, before anything is painted (theme/published.py).
    'try{if(localStorage.getItem("proofs"))root.dataset.proofs=""}catch{}'
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
}  # fmt: skip
# Parts of site.js, beside site.js itself: what a reader may ask for on every page.
ON_EVERY_PAGE = [
    "frame", "copy", "open_search", "published", "place", "offline", "late",
]  # fmt: skip
FOLDED = r'class="(?:[^"]* )?toggle[ "]|class="admonition[^"]*\bdropdown\b'
# File -> what must stand in the page's body for the file to be loaded.
NEEDED_FOR = {
    "togglebutton.js": FOLDED,
    "togglebutton.css": FOLDED,
    "sphinx-design.min.css": r'class="[^"]*\bsd-',
    "design-tabs.js": r'class="[^"]*\bsd-tab',
}
# Inline scripts that set a constant; `site.js` sets those that are needed.
CONSTANTS = (
    "let toggleHint",
    "let toggleOpenOnPrint",
    "var togglebuttonSelector",
    "const THEBE_JS_URL",
    "kernelName =",
    "DOCUMENTATION_OPTIONS.pagename",
    "DOCUMENTATION_OPTIONS.search_as_you_type = false",  # so it is when nothing sets it
)
DEFER = '    <script defer src="%s"></script>\n'
# Fetched with the page and run after it (scripts/late.js): what a lab needs holds up
# neither the first paint nor the page's own controls.
LATE = '    <link rel="preload" as="script" fetchpriority="low" href="%s" />\n'
LABS = re.compile(r"labs(-\w+)?\.js$")
DATA = r'type="application/(?:json"|vnd\.jupyter|ld\+json)'
SCRIPT = r"[ \t]*<script([^>]*)>(.*?)</script>\n?"


def change(text, app, found=None):
    """Rewrite the page's head, and take the inline scripts out of its body."""
    head, mark, body = text.partition("</head>")
    head = _drop_duplicates(head)
    # Without scripts nothing else sets it, and all colors hang on it.
    if "data-theme=" not in head.partition("<head>")[0]:
        head = replace(head, "root", r"<html ", '<html data-theme="light" ')
    if "<math" in body:
        head = replace(head, "root", r"<html ", '<html data-faces="maths" ')
    head = replace(head, "link to a style sheet", r"[ \t]*<link ([^>]*)/?>\n?",
                   lambda match: _link(match, body))  # fmt: skip
    head = with_joined_links(head)
    body = _written_buttons(body, found)
    scripts = [
        *_take(re.findall(SCRIPT, head, re.DOTALL), body, "head"),
        *_take(re.findall(SCRIPT, body, re.DOTALL), body, "body"),
    ]
    head = re.sub(SCRIPT, _keep_data, head, flags=re.DOTALL)
    body = re.sub(SCRIPT, _keep_data, body, flags=re.DOTALL)
    head += f"    <script>{THEME_SCRIPT}</script>\n" + "".join(scripts)
    return head + mark + body


def _name(address):
    return address.partition("?")[0].rpartition("/")[2]


def _needed(name, body):
    return name not in NEVER and (
        name not in NEEDED_FOR or re.search(NEEDED_FOR[name], body) is not None
    )


def _link(match, body):
    attributes = match[1]
    if "preload" in attributes:  # of fonts we drop, of scripts that start at once
        return ""
    address = re.search(r'href="([^"]*)"', attributes)
    if "stylesheet" in attributes and not _needed(_name(address[1]), body):
        return ""
    return match[0]


def _drop_duplicates(head):
    first, mark, rest = head.partition('<meta name="viewport"')
    rest = re.sub(r'\s*<meta name="viewport"[^>]*>', "", rest)
    rest = re.sub(r"\s*<!--.*?-->", "", rest, flags=re.DOTALL)
    return first + mark + rest


def _written_buttons(body, found):
    # The theme writes its buttons by script. As markup they need no exception from the
    # policy and cause no shift; without scripts the style sheet hides them. From
    # pydata-sphinx-theme 0.16 on it writes them as markup itself.
    return replace(
        body,
        "button written by a script",
        r"<script>\s*document\.write\(`(.*?)`\);\s*</script>",
        lambda match: match[1],
        "pydata-sphinx-theme<0.16",
        found,
    )


def _take(scripts, body, where):
    for attributes, inline in scripts:
        address = re.search(r'src="([^"]*)"', attributes)
        if re.search(DATA, attributes) or "x-thebe-config" in attributes:
            continue
        if address and _needed(_name(address[1]), body):
            yield (LATE if LABS.match(_name(address[1])) else DEFER) % address[1]
        elif not address and not _known(inline):
            raise ThemeError(
                f"The page's {where} holds an inline script that "
                "theme/lean_site/assets.py does not know, and that the page's "
                f"policy would block: {inline.strip()[:120]!r}. Move it to a file."
            )


def _known(inline):
    text = inline.strip()
    return (
        not text
        or text.startswith(CONSTANTS)
        or "document.documentElement.dataset.mode" in text  # replaced by ours
        or 'document.querySelector("form.bd-search input")' in text  # in site.js
    )


def _keep_data(match):
    return match[0] if re.search(DATA, match[1]) else ""


def site_script(config):
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
        [*lines, *(bare(file.read_text(encoding="utf-8")) for file in own)]
    )


def _write(app, *_):
    if app.builder.format == "html":
        folder = Path(app.outdir) / "_static"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "site.js").write_text(site_script(app.config), encoding="utf-8")


def _drop_unused(app, error):
    # Not asked for by any page, and most of what would be uploaded.
    if not error and app.builder.format == "html":
        folder = Path(app.outdir) / "_static"
        shutil.rmtree(folder / "vendor", ignore_errors=True)
        for file in folder.rglob("*"):
            # With them the maps from what was packed to its sources.
            if file.name in NEVER or file.suffix == ".map":
                file.unlink()


def setup(app):
    app.connect("builder-inited", _write)
    app.connect("build-finished", _write)
    app.connect("build-finished", _drop_unused)
    app.add_js_file("site.js", priority=400)
    app.add_css_file("site.css", priority=860)
