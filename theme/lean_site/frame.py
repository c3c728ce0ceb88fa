"""Fill our own template, the frame around an article."""

import hashlib
import posixpath
from importlib.metadata import version
from pathlib import Path

import yaml

from theme.lean_site import contents, describe, icons
from theme.lean_site.policy import write_policy

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FILES = {".py", ".js", ".css", ".svg", ".png", ".woff2", ".html"}
# The packages that write the pages and their sheets.
MADE_WITH = ("sphinx-book-theme", "pydata-sphinx-theme", "myst-nb", "pygments")
SOURCES = "book/provenance"
ABOUT = {
    "How this book is checked": "how-the-book-is-checked",
    "Every number": "published-values",
}


def add_settings(app):
    """Name our settings."""
    app.add_config_value("site_digest", "", "html")
    for name in ("site_description", "site_card_alt"):
        app.add_config_value(name, "", "html")


def use_templates(app, config):
    """Let our frame go before the theme's.

    Sphinx writes all pages again when a setting has changed. So one setting is a digest
    of our files and of the packages' versions.
    """
    config.templates_path.append(str(HERE / "templates"))
    files = sorted(f for f in HERE.parent.rglob("*") if f.suffix in FILES)
    texts = [f.read_bytes() for f in files]
    texts += [version(name).encode() for name in MADE_WITH]
    config.site_digest = hashlib.sha256(b"".join(texts)).hexdigest()


def read_edition():
    """Give the version of the book, as its citation names it."""
    return yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["version"]


def fill_template(app, pagename, templatename, context, doctree):
    """Give the template what it shows around the article."""

    def address(name):
        folder = posixpath.dirname(pagename)
        return posixpath.relpath(name, folder or ".")

    url = app.config.html_theme_options.get("repository_url", "")
    about = {
        words: address(f"{SOURCES}.html#{part}")
        for words, part in ABOUT.items()
        if SOURCES in app.env.found_docs
    }
    context["site_description"] = describe.describe_page(
        doctree, app.config.site_description
    )
    context |= {
        "about": about | ({"Report a mistake": f"{url}/issues"} if url else {}),
        "author": app.config.author,
        "edition": read_edition(),
        "icon": icons.write_icon,
        "logo": app.config.html_theme_options["logo"],
        "page_contents": _page_contents(context),
        "parts": contents.list_contents(app.env, pagename),
        "policy": write_policy(),
        "social_tags": describe.write_tags(app, context),
        "structured_data": describe.write_data(app, context),
    }


def _page_contents(context):
    # The theme gives nothing or an empty text where a page has none.
    make = context.get("generate_toc_html")
    return str(make() or "") if make and context.get("toc") else ""
