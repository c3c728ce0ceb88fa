"""Writes decks as HTML: slides, the notes sheet to print, the list of decks."""

import html
import re
import textwrap

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from coding_attention.published_values import text_of
from coding_attention.stored import html_of
from theme.lean_site.maths import to_mathml
from theme.slides.marks import MarkError, Shown
from theme.stored import write_lab

DECK = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="kit/labs.css">
<link rel="stylesheet" href="kit/slides.css">
<script defer src="kit/labs.js"></script>
<script defer src="kit/slides.js"></script>
</head>
<body>
<main>
{slides}
</main>
</body>
</html>
"""
SHEET = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<link rel="stylesheet" href="kit/sheet.css">
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""
HELP = """<p>Right and left arrows move, S opens the notes with a clock beside the plan,
and printing gives one slide a page. In a lab, Page Up and Page Down move. Nothing needs
a network: copy this whole folder to take it along. Text and figures: CC BY 4.0.</p>"""
LONG, NEWLINE = 20, "\n"  # code of more lines is set smaller
FIGURE = re.compile(
    r'<figure class="attention-figure".*?aria-label="([^"]*)"(.*?)'
    r"<figcaption[^>]*>(.*?)</figcaption></figure>",
    re.S,
)


def _write_formula(source, options):
    return to_mathml(source, "block" if options["display_mode"] else "inline")


MARKDOWN = MarkdownIt("commonmark").enable("table")
MARKDOWN.use(dollarmath_plugin, renderer=_write_formula, allow_space=False)


def render(text, inline=False):
    """Return Markdown as HTML."""
    return MARKDOWN.renderInline(text) if inline else MARKDOWN.render(text)


def write_deck(title, slides):
    """Return the HTML of a deck.

    Args:
        title: of the deck.
        slides: pairs of a page's title and one slide of it.
    """
    made = "\n".join(_write_slide(slide, page) for page, slide in slides)
    return DECK.format(title=html.escape(title), slides=made)


def _write_slide(slide, page):
    parts = "\n".join(_write_part(part, slide.title) for part in slide.parts)
    return f"""<section data-minutes="{slide.minutes:g}">
<h2>{render(slide.title, inline=True)}</h2>
<div class="body">
{parts}
</div>
<footer>Coding attention: {html.escape(page)}. CC BY 4.0</footer>
<aside>{render(slide.note)}</aside>
</section>"""


def _write_part(part, title):
    if not isinstance(part, Shown):
        return f'<div class="words">{render(part)}</div>'
    cell, name = part.cell, part.cell.metadata.name
    if name.startswith("lab-"):
        made = "".join(map(_write_lab, cell.outputs))
    elif name.startswith("figure-"):
        made = "".join(map(_write_figure, cell.outputs))
    else:
        texts = {"code": cell.source, "output": text_of(cell).rstrip("\n")}
        if part.part not in ("", *texts):
            texts = {"code": _method(cell.source, part.part)}
        made = "".join(
            f'<pre class="{kind}{" long" if text.count(NEWLINE) > LONG else ""}">'
            f"<code>{html.escape(text)}</code></pre>"
            for kind, text in texts.items()
            if text and part.part in ("", kind, *_methods(cell.source))
        )
    if not made:
        raise MarkError(
            f"the slide {title!r} shows {part.part or 'all'} of the cell {name!r}, "
            f"which is nothing. Write code, output, or the name of a method."
        )
    return f'<div class="shown{" step" if part.later else ""}">{made}</div>'


def _methods(source):
    return re.findall(r"^    def (\w+)", source, re.M)


def _method(source, name):
    """Return one method of a class, without the indent that it has there."""
    found = re.search(rf"^    def {name}\b.*?(?=^    def |\Z)", source, re.M | re.S)
    return textwrap.dedent(found[0]).rstrip() if found else ""


def _write_figure(output):
    alt, drawn, caption = FIGURE.search(html_of(output)).groups()
    drawings = "".join(re.findall(r"<svg\b.*?</svg>", drawn, re.S))
    return (
        f'<figure class="drawing"><div role="img" aria-label="{alt}">{drawings}</div>'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _write_lab(output):
    """Return a lab as the site's pages have it: theme/labs_loader.js shows it."""
    return f'<div class="lab">{write_lab(output)}</div>'


def write_sheet(title, slides):
    """Return the HTML of the notes of a deck, to print: each with its time."""
    rows, start = [], 0.0
    for number, (_, slide) in enumerate(slides, 1):
        rows.append(
            f"<tr><td>{write_clock(start)}</td><td>{number}</td>"
            f"<th>{render(slide.title, inline=True)}</th>"
            f"<td>{render(slide.note)}</td></tr>"
        )
        start += slide.minutes
    body = f"<table>{''.join(rows)}</table><p>Ends at {write_clock(start)}.</p>"
    return SHEET.format(title=f"Notes: {html.escape(title)}", body=body)


def write_clock(minutes):
    """Return minutes as hours and minutes on a clock."""
    return f"{int(minutes) // 60}:{int(minutes) % 60:02}"


def write_list(title, decks):
    """Return the HTML of the list of decks: (file, title, slides) each."""
    rows = "".join(
        f'<tr><th><a href="{file}.html">{html.escape(name)}</a></th>'
        f"<td>{len(slides)} slides</td>"
        f"<td>{sum(slide.minutes for _, slide in slides):g} minutes</td>"
        f'<td><a href="{file}-notes.html">Notes</a></td></tr>'
        for file, name, slides in decks
    )
    body = f"<table>{rows}</table>{HELP}"
    return SHEET.format(title=f"Slides: {html.escape(title)}", body=body)
