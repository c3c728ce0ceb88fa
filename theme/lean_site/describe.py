"""Title, description, social card and structured data of each page."""

import html
import json
import re

from docutils import nodes

from theme.lean_site.change import replace

CARD = "_static/social-card.png"


def description(doctree, fallback):
    """Give the page's first paragraph, cut at a word."""
    paragraph = next(iter(doctree.findall(nodes.paragraph)), None) if doctree else None
    text = " ".join(paragraph.astext().split()) if paragraph is not None else fallback
    if len(text) <= 160:
        return text
    return text[:157].rsplit(" ", 1)[0].rstrip(",.;:") + " …"


def _note(app, pagename, templatename, context, doctree):
    context["site_description"] = description(doctree, app.config.site_description)


def tags(app, context):
    """Write the tags of a page, those with full addresses only where one is known."""
    title = re.sub(r"<[^>]*>", "", html.unescape(context.get("title") or ""))
    base = app.config.html_baseurl.rstrip("/")
    values = {
        "og:title": title,
        "og:site_name": app.config.html_title,
        "og:description": context["site_description"],
        "og:type": "article",
        "twitter:card": "summary_large_image",
    }
    address = ""
    if base:
        address = f"{base}/{context['pagename']}.html"
        values |= {"og:url": address, "og:image": f"{base}/{CARD}"}
        values["og:image:alt"] = app.config.site_card_alt
    lines = [_meta("name", "description", context["site_description"])]
    lines += [_meta("property", name, value) for name, value in values.items()]
    lines.append(_structured(app, context, title, address))
    return "".join(f"    {line}\n" for line in lines)


def _meta(kind, name, value):
    return f'<meta {kind}="{name}" content="{html.escape(value)}" />'


def _structured(app, context, title, address):
    book = {"@type": "Book", "name": app.config.html_title}
    data = {
        "@context": "https://schema.org",
        "@type": "LearningResource",
        "name": title,
        "description": context["site_description"],
        "inLanguage": app.config.language,
        "license": "https://creativecommons.org/licenses/by/4.0/",
        "isAccessibleForFree": True,
        "isPartOf": book,
    } | ({"url": address} if address else {})
    text = json.dumps(data, ensure_ascii=False, sort_keys=True).replace("</", "<\\/")
    return f'<script type="application/ld+json">{text}</script>'


def change(text, app, context):
    """Put the tags behind the title."""
    return replace(
        text, "title", r"</title>", lambda m: f"{m[0]}\n{tags(app, context)}"
    )


def setup(app):
    app.add_config_value("site_description", "", "html")
    app.add_config_value("site_card_alt", "", "html")
    app.connect("html-page-context", _note)
