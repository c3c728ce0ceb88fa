"""Write the files beside the pages: entry page, page for wrong addresses, site map.

Also the last version of the service worker that earlier readers may have installed.
"""

import html
import re
from pathlib import Path
from urllib.parse import urlparse

from theme.lean_site.policy import hash_source, write_policy

WORKER = Path(__file__).parent / "scripts" / "sw.js"
STYLE = (
    "body{font:1.1rem/1.5 system-ui,sans-serif;max-width:32rem;margin:15vh auto;"
    "padding:0 1rem;color:#14202b;background:#fff}a{color:#0b5cc0}"
    "@media(prefers-color-scheme:dark){body{color:#eee;background:#121212}"
    "a{color:#7db0f2}}"
)
PAGE = """<!DOCTYPE html>
<html lang="{language}">
  <head>
    <meta charset="utf-8" />
    <meta http-equiv="Content-Security-Policy" content="{policy}" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <link rel="icon" href="data:," />
    <title>{title}</title>{head}
    <style>{style}</style>
  </head>
  <body>
    <main>
      <h1>{heading}</h1>
      <p>{words} <a href="{target}">{link}</a></p>
    </main>
  </body>
</html>
"""
# Pages that are now part of others, for links from other sites.
MOVED = {"book/field_study.html": "checker.html#code-we-had-never-seen"}
MISSING = """<section id="not-found">
<h1>There is no such page</h1>
<p>It may have moved. The menu lists all pages. This looks for the words of the
address:</p>
<form id="book-search" role="search" action="search.html" method="get">
<label for="book-search-input">Search the book</label>
<input id="book-search-input" type="search" name="q" autocomplete="off"
 autocapitalize="off" spellcheck="false" data-from-address />
</form>
</section>
"""


def write_small_page(app, title, heading, words, link, target, head=""):
    """Write a page that needs no other file."""
    rules = write_policy(**{"script-src": "'none'", "style-src": hash_source(STYLE)})
    return PAGE.format(
        language=app.config.language, policy=rules, title=html.escape(title),
        head=head, style=STYLE, heading=html.escape(heading),
        words=html.escape(words), link=html.escape(link), target=html.escape(target),
    )  # fmt: skip


def write_leading_page(app, words, target):
    """Lead to another page: from the site's root to the first, or from a moved one."""
    name = app.config.html_title
    refresh = f'\n    <meta http-equiv="refresh" content="0; url={target}" />'
    return write_small_page(app, name, name, words, name, target, refresh)


def make_links_absolute(page, path):
    """Make the links of a page begin at the host's root, not at the page.

    Args:
        page: the HTML of a page in the site's root.
        path: where on its host the site is, without a slash at the end.

    Returns:
        The page as it can be served at any depth.
    """
    return re.sub(
        r'\b(href|src|action|data-content_root)="(?![a-z]+:|[#/])(?:\./)?([^"]*)"',
        rf'\1="{path}/\2"',
        page,
    )


def write_site_map(base, pages):
    """List the pages for search engines."""
    entries = "".join(
        f"  <url><loc>{html.escape(f'{base}/{page}.html')}</loc></url>\n"
        for page in pages
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        f"{entries}</urlset>\n"
    )


def add_missing_page(app):
    """Add the page for wrong addresses."""
    yield "404", {"title": "Not found", "body": MISSING}, "page.html"


def write_files(app, error):
    """Write the files beside the pages."""
    if error or app.builder.format != "html":
        return
    folder, root = Path(app.outdir), f"{app.config.root_doc}.html"
    files = {
        "index.html": write_leading_page(app, "The book begins here:", root),
        **{
            old: write_leading_page(app, "This is now in", new)
            for old, new in MOVED.items()
        },
        # Hosts serve it at any depth, so its links begin at the root.
        "404.html": make_links_absolute(
            (folder / "404.html").read_text(encoding="utf-8"),
            urlparse(app.config.html_baseurl).path.rstrip("/"),
        ),
        # Without it, GitHub Pages skips folders that begin with an underscore.
        ".nojekyll": "",
        "sw.js": WORKER.read_text(encoding="utf-8"),
    }
    base = app.config.html_baseurl.rstrip("/")
    if base:
        files["sitemap.xml"] = write_site_map(base, sorted(app.env.found_docs))
        files["robots.txt"] = f"User-agent: *\nAllow: /\nSitemap: {base}/sitemap.xml\n"
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
