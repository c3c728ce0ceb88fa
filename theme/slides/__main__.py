"""Write a deck of slides for each page, from its own figures, into _build/slides.

    python -m theme.slides              every page of the chapter
    python -m theme.slides 04           only pages whose names contain 04
    python -m theme.slides --out DIR    elsewhere

A deck is one HTML file beside a copy of reveal.js; nothing comes from a network.
Titles, sentences and the speaker's notes (key S) are those of the page.
DECK.html?print-pdf prints one slide a page; &showNotes=separate-page adds the notes.
"""

import argparse
import html
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import nbformat
import yaml
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from sphinx_external_toc.parsing import parse_toc_yaml

from theme.lean_site.maths import to_mathml

ROOT = Path(__file__).resolve().parents[2]
KIT = Path(__file__).with_name("kit")
PAGE = re.compile(r"book/(index|0\d_(?!questions)\w+)")
HEADING = re.compile(r"^(#{1,3}) (.+?)\s*$", re.M)
PREDICT = re.compile(r"^> \*\*Predict\.\*\* (.+?)$", re.M)
FIGURE = re.compile(
    r'(<figure class="attention-figure".*?)'
    r"<figcaption[^>]*>(.*?)</figcaption></figure>",
    re.S,
)
LONG, MANY = 230, 5  # letters of a sentence, entries of a list: set smaller beyond
LINES, LETTERS = 12, 88  # of the code that fits beside a question
ROOM, GAP, MOST = (1168, 470), 28, 3.2  # pixels for drawings, between two, a point

DECK = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="kit/reveal.css">
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
  controls: false, pdfMaxPagesPerSlide: 1, plugins: [RevealNotes],
}});
</script>
</body>
</html>
"""
LIST = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Slides</title></head>
<body><h1>Slides: {title}</h1><ul>
{items}
</ul>
<p>Arrows to move, S for the speaker's notes, O for an overview. To print, add
<code>?print-pdf</code> to the address; the notes come, too, with
<code>?print-pdf&amp;showNotes=separate-page</code>. Text and figures: CC BY 4.0.</p>
</body></html>
"""


@dataclass
class Slide:
    """One slide: what stands on it, and what the speaker may say."""

    title: str
    body: str
    notes: str = ""
    kind: str = "h2"


def _formula(source, options):
    return to_mathml(source, "block" if options["display_mode"] else "inline")


def _markdown():
    made = MarkdownIt("commonmark").enable("table")
    made.use(dollarmath_plugin, renderer=_formula, allow_space=False)
    return made


MARKDOWN = _markdown()


def rendered(text, inline=False):
    """Return Markdown as HTML, without comments and without links into the book."""
    text = re.sub(r"\s*<!--.*?-->", "", text, flags=re.S)
    made = MARKDOWN.renderInline(text) if inline else MARKDOWN.render(text)
    return re.sub(r"</?a\b[^>]*>", "", made)


def slides_of(notebook):
    """Return the slides of a page: its title, questions, figures and summary."""
    slides, heading, told = [], "", []
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            for title, text in _sections(cell.source):
                heading = title or heading
                told = told if title is None else []
                if title and not slides:
                    first = text.split("\n\n")[0]
                    body = f'<div class="lead">{rendered(first)}</div>'
                    slides.append(Slide(title, body, rendered(text), "h1"))
                elif heading == "Summary" and title:
                    slides.append(_summary(text))
                code = _code_after(notebook.cells, place)
                slides += [_question(heading, q, code) for q in PREDICT.findall(text)]
                told.append(_prose(text))
        elif cell.cell_type == "code":
            for figure in _figures(cell):
                notes = rendered("\n\n".join(part for part in told if part))
                slides.append(Slide(heading, figure, notes))
                told = []
    return slides


def _sections(source):
    """Split a cell at its headings: pairs of a heading, or none, and its text."""
    matches = list(HEADING.finditer(source))
    before = source[: matches[0].start()] if matches else source
    if before.strip():
        yield None, before.strip()
    ends = [*(match.start() for match in matches[1:]), len(source)]
    for match, end in zip(matches, ends, strict=False):
        yield match[2], source[match.end() : end].strip()


def _prose(text):
    # What is asked has a slide of its own; what is folded or listed is to be read.
    text = re.sub(r"^>.*$\n?", "", text, flags=re.M)
    return re.sub(r"<details>.*?</details>", "", text, flags=re.S).strip()


def _code_after(cells, place):
    """Return the code that a question is about, where it fits on a slide."""
    cell = next((c for c in cells[place + 1 :] if c.cell_type == "code"), None)
    if cell is None or cell.metadata.get("name", "").startswith(("figure-", "lab-")):
        return ""
    lines = cell.source.splitlines()
    fits = len(lines) <= LINES and max(map(len, lines), default=0) <= LETTERS
    return cell.source if fits else ""


def _question(heading, text, code):
    lone = "" if code else " lone"
    body = f'<p class="question{lone}">{rendered(text, inline=True)}</p>'
    if code:
        body += f"<pre><code>{html.escape(code)}</code></pre>"
    return Slide(heading, body, "Let the class answer before you open the cell.")


def _summary(text):
    points = re.findall(r"^- (.+)$", text, re.M)
    items = "".join(f"<li>{rendered(_bare(p), inline=True)}</li>" for p in points)
    many = ' class="many"' if len(points) > MANY else ""
    rest = re.sub(r"^- .+$\n?", "", text, flags=re.M).strip()
    return Slide("Summary", f"<ul{many}>{items}</ul>", rendered(rest))


def _bare(point):
    # "([shown here](#cell))": there is no such cell on a slide.
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", point)
    return re.sub(r"\s*\((?:\w+ )?here[^()]*\)", "", words)


def _figures(cell):
    if not cell.metadata.get("name", "").startswith("figure-"):
        return
    for output in cell.outputs:
        found = FIGURE.search(output.get("data", {}).get("text/html", ""))
        if found:
            long = " long" if len(found[2]) > LONG else ""
            sentence = f'<p class="sentence{long}">{found[2]}</p>'
            yield _fitted(found[1], found[2]) + sentence


def _fitted(figure, sentence):
    """Give the drawings the room that title and sentence leave, at one scale."""
    boxes = [
        tuple(map(float, box.split()[2:]))
        for box in re.findall(r'<svg[^>]*viewBox="([^"]*)"', figure)
    ]
    scale, in_a_row = _scale(boxes, _said(sentence, len(boxes)))
    sizes = [f"width: {w * scale:.0f}px; height: {h * scale:.0f}px" for w, h in boxes]
    given = iter(sizes)
    figure = re.sub(
        r'(<svg\b[^>]*?style=")[^"]*', lambda match: match[1] + next(given), figure
    )
    alt = re.search(r'role="img" aria-label="([^"]*)"', figure)[1]
    drawings = re.findall(r"<svg\b.*?</svg>", figure, re.S)
    rows = "".join(
        f'<div class="row">{"".join(drawings[i : i + in_a_row])}</div>'
        for i in range(0, len(drawings), in_a_row)
    )
    return f'<figure><div role="img" aria-label="{alt}">{rows}</div></figure>'


def _said(sentence, number):
    """Return how many drawings may make a row, if the sentence says where each is."""
    if re.search(r"\b(above|below|upper|lower)\b", sentence, re.I):
        return [1]
    if re.search(r"\b(left|right|beside)\b", sentence, re.I):
        return [number]
    return range(1, number + 1)


def _scale(boxes, in_a_row):
    """Return the largest scale of drawings of these sizes, and how many make a row."""
    width, height = ROOM

    def scale(n):
        rows = [boxes[i : i + n] for i in range(0, len(boxes), n)]
        wide = max(sum(w for w, _ in row) for row in rows)
        high = sum(max(h for _, h in row) for row in rows)
        gaps = GAP * (min(n, len(boxes)) - 1), GAP * (len(rows) - 1)
        return min((width - gaps[0]) / wide, (height - gaps[1]) / high, MOST)

    # Of equal ones, the fewest rows, and those as full as each other.
    def order(n):
        return round(scale(n), 3), len(boxes) // -n, -n

    best = max(in_a_row, key=order)
    return scale(best), best


def deck(notebook):
    """Return the HTML of a page's deck."""
    slides = slides_of(notebook)
    title = slides[0].title
    made = []
    for slide in slides:
        notes = f'<aside class="notes">{slide.notes}</aside>' if slide.notes else ""
        head = f"<{slide.kind}>{rendered(slide.title, inline=True)}</{slide.kind}>"
        source = (
            f'<p class="from">Coding attention: {html.escape(title)}. CC BY 4.0</p>'
        )
        whole = f'<div class="page">{head}{slide.body}{source}</div>'
        made.append(f"<section>{whole}{notes}</section>")
    return DECK.format(title=html.escape(title), slides="\n".join(made))


def pages():
    """Return the names of the pages that have a deck, in the order of the book."""
    return [m[1] for m in map(PAGE.fullmatch, parse_toc_yaml(ROOT / "_toc.yml")) if m]


def write(target, names):
    """Write the decks, what they need, and a list of them; return the decks."""
    (target / "kit").mkdir(parents=True, exist_ok=True)
    for file in KIT.iterdir():
        shutil.copy(file, target / "kit")
    files, items = [], []
    for name in names:
        notebook = nbformat.read(ROOT / "book" / f"{name}.ipynb", as_version=4)
        files.append(target / f"{name}.html")
        files[-1].write_text(deck(notebook), encoding="utf-8")
        title = html.escape(slides_of(notebook)[0].title)
        items.append(f'<li><a href="{name}.html">{title}</a></li>')
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    listed = LIST.format(title=html.escape(config["title"]), items="\n".join(items))
    (target / "decks.html").write_text(listed, encoding="utf-8")
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of names of pages")
    parser.add_argument("--out", type=Path, default=ROOT / "_build" / "slides")
    options = parser.parse_args()
    names = [
        n for n in pages() if not options.names or any(p in n for p in options.names)
    ]
    files = write(options.out, names)
    print(f"{len(files)} decks: file://{(options.out / 'decks.html').resolve()}")


if __name__ == "__main__":
    main()
