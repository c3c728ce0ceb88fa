"""Repair an article's markup where it fails accessibility checks or the policy.

The frame around the article is our own template. The article comes from docutils, the
theme and MyST-NB; one pass finds everything to repair.
"""

import re
from pathlib import Path
from typing import NamedTuple

from sphinx.errors import ThemeError

DATA = re.compile(r'type="application/(?:json"|vnd\.|ld\+json)')
GONE = (
    "No page of the site has {what}, which theme/lean_site/markup.py repairs. The "
    "theme has probably changed: adapt the pattern {pattern!r}, or drop the repair."
)


class Repair(NamedTuple):
    """What is wrong, the pattern that finds it, its replacement, and a sign of it."""

    what: str
    pattern: str
    replacement: object  # a text, or a function of the match
    sign: str = ""  # a text that shows on some page that the repair was made


def _script(match):
    if DATA.search(match["attributes"]):
        return match[0]
    text = match["inline"].strip()
    if "x-thebe-config" in match["attributes"] or not text:
        return ""
    if text.startswith("kernelName ="):  # of Thebe, which is not loaded
        return ""
    raise ThemeError(
        "The page's body holds an inline script that theme/lean_site/markup.py does "
        f"not know, and that the page's policy would block: {text[:120]!r}. Move it to "
        "a file."
    )


def _heading(match):
    tag, anchor = match["tag"], match["anchor"]
    return (
        f'<{tag} aria-labelledby="{anchor}--title">'
        f'<span id="{anchor}--title">{match["title"]}</span>'
        f'<a class="headerlink" href="#{anchor}" title="Link to this section" '
        f'aria-label="# link to this section">#</a>'
    )


REPAIRS = [
    Repair(
        "script that runs where it stands",
        r"<script(?P<attributes>[^>]*)>(?P<inline>.*?)</script>",
        _script,
    ),
    Repair(
        "heading whose name ends in the sign of its link",
        r"<(?P<tag>h[1-6])>(?P<title>(?:(?!</?h[1-6]).)*?)"
        r'<a class="headerlink" href="#(?P<anchor>[^"]*)" title="[^"]*">#</a>',
        _heading,
        'aria-label="# link to this section"',
    ),
    Repair(
        "table that scrolls but cannot be reached by keyboard",
        '<div class="pst-scrollable-table-container">',
        '<div class="pst-scrollable-table-container" tabindex="0" role="group" '
        'aria-label="table">',
        'tabindex="0" role="group" aria-label="table"',
    ),
    Repair(
        "folded cell with a name that its words do not show",
        '<summary aria-label="Toggle hidden content">',
        "<summary>",
        '<summary>\n<p class="collapsed admonition-title">',
    ),
    Repair(  # docutils writes a role that no longer exists and does not fit into a list
        "entry of the literature that is no item of its list",
        'role="doc-biblioentry"',
        'role="listitem"',
    ),
]
ANY = re.compile(
    "|".join(f"(?P<r{i}>{r.pattern})" for i, r in enumerate(REPAIRS)), re.S
)


def repair_markup(body):
    """Repair an article's HTML, in one pass."""

    def replace(match):
        new = REPAIRS[int(match.lastgroup[1:])].replacement
        return new if isinstance(new, str) else new(match)

    return ANY.sub(replace, body)


DRAWING = re.compile(r"<svg.*?</svg>", re.S)
UNSEEN = re.compile(r' transform="rotate\(-0 [^"]*\)"|(?<=>)\s*\n\s*(?=<)')
# A rectangle, corner by corner; and a group of a single path.
RECTANGLE = re.compile(
    r'"M ([\d.]+) ([\d.]+) +L ([\d.]+) \2 +L \3 ([\d.]+) +L \1 \4 +(?:L \1 \2 +)?z ?"'
)
SINGLE = re.compile(r"<g>(<path[^>]*/>)</g>")


def shorten_drawings(body):
    """Write briefly what Matplotlib writes hundreds of times a page, drawn the same."""
    return DRAWING.sub(lambda drawing: _shorten(drawing[0]), body)


def _shorten(drawing):
    drawing = RECTANGLE.sub(r'"M\1 \2H\3V\4H\1z"', UNSEEN.sub("", drawing))
    return SINGLE.sub(r"\1", drawing)


def repair_body(app, pagename, templatename, context, doctree):
    """Repair the body of a page, and shorten its drawings."""
    if context.get("body"):
        context["body"] = shorten_drawings(repair_markup(context["body"]))


def find_missing(pages):
    """Find the repairs that show on no page.

    Args:
        pages: the HTML of all pages.
    """
    texts = list(pages)
    return [r for r in REPAIRS if not any(r.sign in text for text in texts)]


def require_all(app, error):
    """Require that each repair was made on some page.

    Raises:
        ThemeError: one was made on none, so the theme has changed.
    """
    if error or app.builder.name != "html":
        return
    folder = Path(app.outdir)
    files = (folder / f"{name}.html" for name in app.env.found_docs)
    pages = (file.read_text(encoding="utf-8") for file in files if file.exists())
    for repair in find_missing(pages):
        raise ThemeError(GONE.format(what=repair.what, pattern=repair.pattern))
