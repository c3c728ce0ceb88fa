"""The files of a deck: its HTML, the list of decks, the run sheet of a route."""

import html
import re

from theme.slides import minutes
from theme.slides.page import rendered

DECK = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="kit/reveal.css">
<link rel="stylesheet" href="kit/labs.css">
<link rel="stylesheet" href="kit/slides.css">
</head>
<body>
<div class="reveal"><div class="slides">
{slides}
</div></div>
<script src="kit/reveal.js"></script>
<script src="kit/notes.js"></script>
<script>
Reveal.initialize({{
  width: 1280, height: 720, margin: 0, center: false, hash: true, transition: "none",
  controls: false, pdfMaxPagesPerSlide: 1, pdfSeparateFragments: false,
  plugins: [RevealNotes],
}});
</script>
</body>
</html>
"""
PLAIN = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>body {{ max-width: 50rem; margin: 2rem auto; font: 16px/1.5 sans-serif; }}
td, th {{ padding: 0.2rem 0.8rem; text-align: left; vertical-align: top; }}
td.number {{ text-align: right; }}</style></head>
<body><h1>{title}</h1>
{body}
</body></html>
"""
HELP = """<p>Arrows to move, S for the speaker's notes, O for an overview. To print, add
<code>?print-pdf</code> to the address; the notes come, too, with
<code>?print-pdf&amp;showNotes=separate-page</code>. Minutes are a plan: {rule}
Text and figures: CC BY 4.0.</p>"""
RULE = (
    f"words are told at {minutes.WORDS} a minute, a cell takes {minutes.CELL} minute, "
    f"a question {minutes.QUESTION} more, a lab {minutes.LAB} more."
)
ASK = {
    "question": "Let the class answer, then reveal.",
    "lab": "Open the lab from the slide.",
    "exercise": "Let the class work.",
}


def told(slides):
    """Return the minutes of slides, the exercises on them aside."""
    return sum(slide.minutes for slide in slides if slide.kind != "exercise")


def written(title, slides):
    """Return the HTML of a deck: pairs of a page's title and one slide of it."""
    made = "\n".join(_section(slide, page) for page, slide in slides)
    return DECK.format(title=html.escape(title), slides=made)


def _section(slide, page):
    level = "h1" if slide.kind == "title" else "h2"
    head = f"<{level}>{rendered(slide.title, inline=True)}</{level}>"
    source = f'<p class="from">Coding attention: {html.escape(page)}. CC BY 4.0</p>'
    kind = "page beside" if slide.beside else "page"
    whole = f'<div class="{kind}">{head}{slide.body}{source}</div>'
    notes = f'<aside class="notes">{_notes(slide)}</aside>'
    return f'<section data-timing="{slide.minutes * 60:.0f}">{whole}{notes}</section>'


def _notes(slide):
    # What is asked stands on the slide.
    said = re.sub(r"^>.*$\n?", "", slide.said, flags=re.M)
    said = re.sub(r"<details>.*?</details>", "", said, flags=re.S)
    first = " ".join(filter(None, [plan(slide.minutes), ASK.get(slide.kind)]))
    answer = f'<div class="answer"><p>Answer:</p>{slide.answer}</div>'
    return f"<p>{first}</p>{rendered(said)}{answer if slide.answer else ''}"


def plan(spent):
    """Say the minutes of one slide."""
    return f"{max(1, round(spent))} min." if spent >= 0.75 else "Half a minute."


def run_sheet(title, slides):
    """Return the HTML of a table: when each slide begins, and what to do with it."""
    rows, start = [], 0.0
    for number, (page, slide) in enumerate(slides, 1):
        what = rendered(slide.title, inline=True)
        asked = re.search(r'<p class="question">(.*?)</p>', slide.body, re.S)
        doing = asked[1] if asked else ASK.get(slide.kind, "")
        clock = f"{int(start) // 60}:{int(start) % 60:02}"
        rows.append(
            f'<tr><td class="number">{clock}</td><td class="number">{number}</td>'
            f"<td>{html.escape(page)}: {what} ({slide.kind})</td><td>{doing}</td></tr>"
        )
        start += slide.minutes
    head = "<tr><th>from</th><th>slide</th><th>what</th><th></th></tr>"
    body = f"<table>{head}{''.join(rows)}</table><p>In all {start:.0f} minutes. "
    return PLAIN.format(title=html.escape(title), body=f"{body}A plan: {RULE}</p>")


def listed(title, decks):
    """Return the HTML of the list of decks: their files, titles, slides and times."""
    items = "".join(
        f'<tr><td><a href="{file}.html">{html.escape(name)}</a></td>'
        f'<td class="number">{len(slides)}</td>'
        f'<td class="number">{minutes.rounded(told(slides))}</td>'
        f'<td class="number">{sum(s.minutes for s in slides if s.kind == "exercise")}'
        "</td></tr>"
        for file, name, slides in decks
    )
    head = "<tr><th></th><th>slides</th><th>min.</th><th>exercises, min.</th></tr>"
    body = f"<table>{head}{items}</table>{HELP.format(rule=RULE)}"
    return PLAIN.format(title=f"Slides: {html.escape(title)}", body=body)
