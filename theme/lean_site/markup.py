"""The article's markup, where it fails accessibility checks or the policy.

What surrounds the article is a template of ours. What is in it comes from docutils, the
theme and MyST-NB; all that is to be mended there is found in one pass.
"""

import re
from pathlib import Path
from typing import NamedTuple

from sphinx.errors import ThemeError

DATA = re.compile(r'type="application/(?:json"|vnd\.|ld\+json)')
GONE = (
    "No page of the site has {what}, which theme/lean_site/markup.py mends. The theme "
    "has probably changed: adapt the pattern {pattern!r}, or drop the row."
)


class Row(NamedTuple):
    """What is mended: in words, where it stands, how, and by what one sees that."""

    what: str
    pattern: str
    mended: object  # a text, or a function of the match
    sign: str = ""  # stands on some page of every book afterwards


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


ROWS = [
    Row(
        "script that runs where it stands",
        r"<script(?P<attributes>[^>]*)>(?P<inline>.*?)</script>",
        _script,
    ),
    Row(
        "heading whose name ends in the sign of its link",
        r"<(?P<tag>h[1-6])>(?P<title>(?:(?!</?h[1-6]).)*?)"
        r'<a class="headerlink" href="#(?P<anchor>[^"]*)" title="[^"]*">#</a>',
        _heading,
        'aria-label="# link to this section"',
    ),
    Row(
        "table that scrolls but cannot be reached by keyboard",
        '<div class="pst-scrollable-table-container">',
        '<div class="pst-scrollable-table-container" tabindex="0" role="group" '
        'aria-label="table">',
        'tabindex="0" role="group" aria-label="table"',
    ),
    Row(
        "folded cell with a name that its words do not show",
        '<summary aria-label="Toggle hidden content">',
        "<summary>",
        '<summary>\n<p class="collapsed admonition-title">',
    ),
    Row(  # docutils writes a role that no longer exists and does not fit into a list
        "entry of the literature that is no item of its list",
        'role="doc-biblioentry"',
        'role="listitem"',
    ),
]
ANY = re.compile("|".join(f"(?P<r{i}>{r.pattern})" for i, r in enumerate(ROWS)), re.S)


def mend(body):
    """Give an article's HTML with all rows mended, in one pass."""

    def one(match):
        row = ROWS[int(match.lastgroup[1:])]
        return row.mended if isinstance(row.mended, str) else row.mended(match)

    return ANY.sub(one, body)


def mend_body(app, pagename, templatename, context, doctree):
    """Mend the body of a page."""
    if context.get("body"):
        context["body"] = mend(context["body"])


def find_missing(pages):
    """Give the rows that no page shows to have been mended.

    Args:
        pages: the HTML of all pages.
    """
    texts = list(pages)
    return [row for row in ROWS if not any(row.sign in text for text in texts)]


def require_all(app, error):
    """Require that each row stood on some page.

    Raises:
        ThemeError: one stood on none.
    """
    if error or app.builder.name != "html":
        return
    folder = Path(app.outdir)
    files = (folder / f"{name}.html" for name in app.env.found_docs)
    for row in find_missing(f.read_text(encoding="utf-8") for f in files if f.exists()):
        raise ThemeError(GONE.format(what=row.what, pattern=row.pattern))
