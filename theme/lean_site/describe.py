"""Write the title, description, social card and structured data of each page."""

import html
import json
import re

from docutils import nodes

CARD = "social-card.png"  # drawn from the SVG beside it


def describe_page(doctree, fallback):
    """Give the page's first paragraph, cut at a word."""
    paragraph = next(iter(doctree.findall(nodes.paragraph)), None) if doctree else None
    text = " ".join(paragraph.astext().split()) if paragraph is not None else fallback
    if len(text) <= 160:
        return text
    return text[:157].rsplit(" ", 1)[0].rstrip(",.;:") + " …"


def write_tags(app, context):
    """Write the tags of a page, those with full addresses only where one is known."""
    base = app.config.html_baseurl.rstrip("/")
    values = {
        "og:title": _title(context),
        "og:site_name": app.config.html_title,
        "og:description": context["site_description"],
        "og:type": "article",
        "twitter:card": "summary",
    }
    if base:
        # A preview picture needs a full address.
        values |= {
            "og:url": _address(app, context),
            "og:image": f"{base}/_static/{CARD}",
            "og:image:alt": app.config.site_card_alt,
            "twitter:card": "summary_large_image",
        }
    lines = [_meta("name", "description", context["site_description"])]
    lines += [_meta("property", name, value) for name, value in values.items()]
    return "\n".join(lines)


def _title(context):
    return re.sub(r"<[^>]*>", "", html.unescape(context.get("title") or ""))


def _address(app, context):
    base = app.config.html_baseurl.rstrip("/")
    return f"{base}/{context['pagename']}.html" if base else ""


def _meta(kind, name, value):
    return f'<meta {kind}="{name}" content="{html.escape(value)}" />'


def write_data(app, context):
    """Give the data of a page that search engines read."""
    address = _address(app, context)
    data = {
        "@context": "https://schema.org",
        "@type": "LearningResource",
        "name": _title(context),
        "description": context["site_description"],
        "inLanguage": app.config.language,
        "license": "https://creativecommons.org/licenses/by/4.0/",
        "isAccessibleForFree": True,
        "isPartOf": {"@type": "Book", "name": app.config.html_title},
    } | ({"url": address} if address else {})
    return json.dumps(data, ensure_ascii=False, sort_keys=True).replace("</", "<\\/")
