"""Sphinx extension: a site that is small, private and readable by everyone.

The theme's pages load their icons, mathematics and live-code tools from large scripts
or from other hosts. This extension leaves the theme's files as they are and changes
what the pages ask for. One module for each concern; each says what it replaces:

    maths     formulas as MathML, made at build time, in place of MathJax
    icons     the icons in use as inline SVG, in place of Font Awesome
    assets    scripts and styles: those the page needs, none that blocks it
    styles    of those style sheets, only the rules that can apply to a page
    repair    markup of the theme that fails accessibility checks
    contents  the side bar, with the numbers of pages and sections
    footer    the foot: edition, licenses, how the book is checked
    policy    a Content-Security-Policy that the page itself meets
    describe  title, description, social card and structured data
    launch    the buttons that open a page elsewhere
    offline   a service worker that keeps pages for reading without a network
    extras    the entry page, the page for wrong addresses, the site map
    find      the search, with its index of sections and cells (`sections` cuts them)

A change that no longer finds what it replaces stops the build, so that an upgrade of
the theme cannot undo it in silence (`change`).
"""

import hashlib
from importlib.metadata import version
from pathlib import Path

from theme.lean_site import (
    assets,
    change,
    contents,
    describe,
    extras,
    find,
    icons,
    launch,
    maths,
    offline,
    styles,
    templates,
)

FILES = {".py", ".js", ".css", ".svg", ".png", ".woff2"}
THEME = Path(__file__).resolve().parents[1]


def _digest(app, config):
    # Sphinx writes a page again when the page or the configuration changed. The
    # digest makes a change of these files, and another theme, a change of it.
    files = sorted(f for f in THEME.rglob("*") if f.suffix in FILES)
    texts = [f.read_bytes() for f in files]
    texts += [version(name).encode() for name in change.THEMES]
    config.site_digest = hashlib.sha256(b"".join(texts)).hexdigest()


def setup(app):
    app.add_config_value("site_digest", "", "html")
    app.connect("config-inited", _digest)
    parts = (
        templates,
        contents,
        maths,
        icons,
        assets,
        describe,
        launch,
        extras,
        find,
        offline,
        styles,
    )
    for module in parts:
        module.setup(app)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
