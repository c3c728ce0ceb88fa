"""The buttons above a page: Binder, Colab and download where there is a notebook.

Replaces the theme's full-screen and print buttons, which run inline code that the
policy forbids (every browser has both), and its download menu of one entry.
"""

import os


def buttons(header, is_notebook):
    """Choose among the theme's buttons.

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
            kept += [_download(b) for b in button["buttons"] if b["text"] == ".ipynb"]
        elif button.get("label") == "launch-buttons":
            kept.append(button)
    return kept


def _download(button):
    # An icon alone; the tooltip names it, so the link needs no text.
    return {
        **button,
        "text": None,
        "icon": "fas fa-download",
        "tooltip": "Download this notebook",
    }


def _pdf(context, name):
    return {
        "type": "link",
        "url": context["pathto"](name, 1),
        "text": None,
        "icon": "fas fa-file-pdf",
        "tooltip": "The whole book as PDF",
    }


def _choose(app, pagename, templatename, context, doctree):
    source = context.get("page_source_suffix", "")
    context["header_buttons"] = buttons(
        context.get("header_buttons", []), source == ".ipynb"
    )
    if app.config.site_pdf:
        context["header_buttons"].append(_pdf(context, app.config.site_pdf))


def _without_repository(app, config):
    # The theme fails when it is to launch something from nowhere.
    if not config.html_theme_options.get("repository_url"):
        config.html_theme_options["launch_buttons"] = {}


def setup(app):
    # The PDF is printed from the finished site, so only who prints it sets this.
    app.add_config_value("site_pdf", os.environ.get("BOOK_PDF", ""), "html")
    app.connect("config-inited", _without_repository, priority=900)
    # The theme collects its buttons at priorities up to 502.
    app.connect("html-page-context", _choose, priority=900)
