"""The buttons above a page: Binder, Colab and download where there is a notebook.

Where BOOK_PDF names the PDF, each page has a button for it, too.

Replaces the theme's full-screen and print buttons, which run inline code that the
policy forbids (every browser has both), and its download menu of one entry.

The address stands in _config.yml (`tools.repository` sets it). The workflow that
publishes names the repository it runs in by BOOK_REPOSITORY and, where its site has a
domain of its own, BOOK_SITE. These override the file, so a fork's site leads to the
fork. BOOK_COMMIT is the commit that is built: Binder builds it, too, and notebooks that
are downloaded or opened in Colab install the package from it. Colab opens the finished
notebooks from a branch of their own (`tools.branch`).
"""

import os
import re
from pathlib import Path

import nbformat

from coding_attention import address


def keep_buttons(header, is_notebook):
    """Keep some of the theme's buttons.

    Args:
        header: the theme's button descriptions.
        is_notebook: whether the page has a kernel.

    Returns:
        Launch menu and download link of a notebook; nothing on other pages.
    """
    if not is_notebook:
        return []
    kept = []
    for button in header:
        if button.get("label") == "download-buttons":
            kept += [
                _make_download(b) for b in button["buttons"] if b["text"] == ".ipynb"
            ]
        elif button.get("label") == "launch-buttons":
            hosts = [_open_finished(host) for host in button["buttons"]]
            kept.append({**button, "buttons": hosts})
    return kept


def _open_finished(host):
    # Colab has nothing installed, and only a finished notebook installs the package.
    if host["text"] != "Colab":
        return host
    branch = f"/blob/{address.NOTEBOOKS}/"
    return {**host, "url": re.sub("/blob/[^/]+/", branch, host["url"], count=1)}


def _make_download(button):
    # An icon alone; the tooltip names it, so the link needs no text.
    return {
        **button,
        "text": None,
        "icon": "fas fa-download",
        "tooltip": "Download this notebook",
    }


def _make_pdf(context, name):
    return {
        "type": "link",
        "url": context["pathto"](name, 1),
        "text": None,
        "icon": "fas fa-file-pdf",
        "tooltip": "The whole book as PDF",
    }


def choose_buttons(app, pagename, templatename, context, doctree):
    source = context.get("page_source_suffix", "")
    header = context.get("header_buttons", [])
    context["header_buttons"] = keep_buttons(header, is_notebook=source == ".ipynb")
    if app.config.site_pdf:
        context["header_buttons"].append(_make_pdf(context, app.config.site_pdf))


def read_addresses(environment):
    """Read the repository and the site that a workflow names, or nothing."""
    if not environment.get("BOOK_REPOSITORY"):
        return None
    url, owner, name = address.parse_url(environment["BOOK_REPOSITORY"])
    site = environment.get("BOOK_SITE") or address.pages_site(owner, name)
    return url, site.rstrip("/")


def set_address(app, config):
    options = config.html_theme_options
    if found := read_addresses(os.environ):
        options["repository_url"], config.html_baseurl = found
        options["repository_branch"] = os.environ.get("BOOK_COMMIT") or address.BRANCH
    # The theme fails when it is to launch something from nowhere.
    if not options.get("repository_url"):
        options["launch_buttons"] = {}


def install_in_downloads(app, error):
    # A downloaded notebook has no repository around it, so its first cell installs the
    # package from the commit that the site was built from.
    url = app.config.html_theme_options.get("repository_url")
    if error or app.builder.format != "html":
        return
    ref = os.environ.get("BOOK_COMMIT") or address.BRANCH
    for path in sorted((Path(app.outdir) / "_sources").rglob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        nbformat.write(address.with_cell(notebook, url, ref), path)


def add_settings(app):
    # Set where the PDF is printed and published with the site: publish.yml.
    app.add_config_value("site_pdf", os.environ.get("BOOK_PDF", ""), "html")
