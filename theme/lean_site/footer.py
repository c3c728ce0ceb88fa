"""The foot of each page: what the book is, how it is checked, what one may do with it.

Replaces the theme's line with the author's name and its empty places.
"""

import html
import posixpath
from pathlib import Path

import yaml

from theme.lean_site.change import replace

ROOT = Path(__file__).resolve().parents[2]
SOURCES = "book/provenance"
PARTS = {
    "How this book is checked": "how-the-book-is-checked",
    "Every number": "published-values",
}
TEXT = ("CC BY 4.0", "https://creativecommons.org/licenses/by/4.0/")
CODE = ("Apache 2.0", "https://www.apache.org/licenses/LICENSE-2.0")


def edition():
    """Give the version of the book, as its citation names it."""
    return yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["version"]


def foot(title, author, links, issues=""):
    """Write the foot of a page.

    Args:
        title: of the book.
        author: of the book.
        links: pairs (words, address) of pages about the book itself.
        issues: where mistakes are reported, if there is such a place.

    Returns:
        HTML.
    """
    if issues:
        links = [*links, ("Report a mistake", issues)]
    pages = "".join(f'<a href="{h(target)}">{h(words)}</a>' for words, target in links)
    licenses = ", ".join(
        f'{what} <a href="{target}" rel="license noopener">{name}</a>'
        for what, (name, target) in (("Text and figures:", TEXT), ("code:", CODE))
    )
    return (
        '<div class="bd-footer-content__inner book-foot">'
        f"<p><strong>{h(title)}</strong>, edition {edition()}, by {h(author)}. "
        f"{licenses}. No cookies, no trackers, nothing from other hosts.</p>"
        f'<nav aria-label="About this book">{pages}</nav></div>'
    )


def h(text):
    """Escape a text for an attribute or an element."""
    return html.escape(text)


def change(text, app, context):
    """Put our foot in the place of the theme's."""

    def address(name):
        folder = posixpath.dirname(context["pagename"])
        return posixpath.relpath(name, folder or ".")

    known = app.env.found_docs
    links = [
        (words, address(f"{SOURCES}.html#{part}"))
        for words, part in PARTS.items()
        if SOURCES in known
    ]
    url = app.config.html_theme_options.get("repository_url", "")
    written = foot(
        app.config.html_title, app.config.author, links, f"{url}/issues" if url else ""
    )
    return replace(
        text, "foot of the theme",
        r'(<footer class="bd-footer-content">).*?(</footer>)',
        lambda m: f"{m[1]}{written}{m[2]}",
    )  # fmt: skip
