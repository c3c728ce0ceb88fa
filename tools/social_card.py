"""Draw the cards that link previews show, from the built site.

    make book && .venv/bin/python -m tools.social_card [PAGE …]

The book's own, theme/static/social-card.svg and its PNG, is drawn here: the bank lab's
picture on the first page. From *bank*, a line to each word of its sentence, as thick as
what it takes from that word. The weights are computed by the formula of page 2.

Each other page has its title above the first figure that it shows, or above its first
sentences where it shows none; theme/static/cards/cards.json says what is on it. The
text is set in the site's own face.
"""

import argparse
import base64
import io
import json
from html import escape
from math import exp
from pathlib import Path

import yaml
from PIL import Image, ImageChops

from tools.measure.visit import browser, visiting

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "_build" / "html"

STATIC = ROOT / "theme" / "static"
CARDS = STATIC / "cards"
MOST_BYTES = 25_000
SIZE = {"width": 1200, "height": 630}
# As on the first page: how much a word has to do with nature, and with money.
MEANING = {
    "the": (0, 0), "bank": (1, 1), "river": (2, 0), "flooded": (2, 0),
    "approved": (0, 2), "loan": (0, 2),
}  # fmt: skip
SENTENCES = ["the river bank flooded", "the bank approved the loan"]
TITLE = "Coding attention"
PROMISE = "Build the attention inside GPT|in small steps, with every|number checked."
INK, PAPER, BLUE, WARM, PALE = "#16324f", "#fefdfb", "#3f93c4", "#a34a00", "#4b5d6e"
WIDEST, LEFT, RIGHT = 44, 610, 1150  # a line of weight one; where the sentences stand


def weights(words, query="bank"):
    """Give what ``query`` takes from each word: a softmax over dot products."""
    (nature, money), vectors = MEANING[query], [MEANING[word] for word in words]
    scores = [nature * a + money * b for a, b in vectors]
    total = sum(map(exp, scores))
    return [exp(score) / total for score in scores]


def context(words, shares):
    """Give the meaning that the word ends with."""
    return [
        sum(share * MEANING[word][i] for word, share in zip(words, shares, strict=True))
        for i in (0, 1)
    ]


def sentence(text, y):
    """Draw one sentence: its words, and the lines from *bank* to them."""
    words = text.split()
    shares = weights(words)
    # Room for each word by its length, and as much between all of them.
    sizes = [17 * len(word) for word in words]
    gap = (RIGHT - LEFT - sum(sizes)) / (len(words) - 1)
    middles = [
        LEFT + sum(sizes[:i]) + gap * i + size / 2 for i, size in enumerate(sizes)
    ]
    here = middles[words.index("bank")]
    parts = []
    for word, middle, share in zip(words, middles, shares, strict=True):
        height = 60 + 0.28 * abs(middle - here)
        path = (
            f"M {here:.0f} {y - 38} C {here:.0f} {y - 38 - height:.0f} "
            f"{middle:.0f} {y - 38 - height:.0f} {middle:.0f} {y - 38}"
        )
        if word == "bank":  # it looks at itself, too
            path = f"M {here - 12:.0f} {y - 38} c -34 -62 58 -62 24 0"
        parts.append(
            f'<path d="{path}" fill="none" stroke="{BLUE}" stroke-linecap="round" '
            f'stroke-width="{WIDEST * share:.1f}"/>'
        )
    for word, middle, share in zip(words, middles, shares, strict=True):
        bold = ' font-weight="700"' if word == "bank" else ""
        color = WARM if word == "bank" else INK
        parts.append(written(word, middle, y, 34, color, f'text-anchor="middle"{bold}'))
        parts.append(
            written(f"{share:.2f}", middle, y + 34, 22, PALE, 'text-anchor="middle"')
        )
    nature, money = context(words, shares)
    told = f"bank: nature {nature:.2f}, money {money:.2f}"
    parts.append(written(told, RIGHT, y + 76, 24, WARM, 'text-anchor="end"'))
    return "".join(parts)


def written(text, x, y, size, color, more=""):
    """Set a line of text."""
    return (
        f'<text x="{x:.0f}" y="{y}" font-size="{size}" fill="{color}" {more}>'
        f"{escape(text)}</text>"
    )


def card():
    """Give the card as SVG."""
    mark = (STATIC / "logo-light.svg").read_text(encoding="utf-8")
    mark = mark.replace("<svg ", '<svg x="56" y="64" ', 1)
    mark = mark.replace('width="64" height="64"', 'width="96" height="96"')
    lines = [
        written(line, 64, 360 + 44 * i, 32, INK)
        for i, line in enumerate(PROMISE.split("|"))
    ]
    return "\n".join([
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1200 630" width="1200" '
        'height="630" font-family="attention-text, Georgia, serif">',
        f'<rect width="1200" height="630" fill="{PAPER}"/>',
        '<rect width="1200" height="12" fill="#0b5cc0"/>',
        mark.strip(),
        written(TITLE, 60, 270, 64, INK, 'font-weight="600" letter-spacing="-1"'),
        *lines,
        written("An executable chapter with PyTorch", 64, 566, 24, PALE),
        sentence(SENTENCES[0], 190),
        sentence(SENTENCES[1], 480),
        "</svg>\n",
    ])  # fmt: skip


# The first drawing that stands open, with what it shows in words.
FIRST_FIGURE = """() => {
  const shown = [...document.querySelectorAll(".bd-article figure.attention-figure")]
    .find((one) => !one.closest("details"));
  if (!shown) return null;
  document.querySelectorAll("figcaption, .figure-number").forEach((e) => e.remove());
  const named = shown.querySelector("[role=img], svg[aria-label], img[alt]") ?? shown;
  shown.setAttribute("data-card", "");
  return named.getAttribute("aria-label") || named.getAttribute("alt") || "";
}"""
ABOUT = """() => ({
  title: document.querySelector("h1 > span").textContent,
  about: document.querySelector("meta[name=description]").content,
})"""
PAGE = """<style>{face} * {{ box-sizing: border-box; margin: 0 }}
body {{ width: 1200px; height: 630px; padding: 40px 64px 36px; background: {paper};
  color: {ink}; border-top: 12px solid #0b5cc0; display: flex; flex-direction: column;
  font-family: attention-text, Georgia, serif }}
header {{ display: flex; align-items: center; gap: 18px; font-size: 26px;
  color: {pale} }} header svg {{ width: 44px; height: 44px }}
h1 {{ font-size: 60px; line-height: 1.1; font-weight: 600; margin: 14px 0 24px }}
p {{ font-size: 38px; line-height: 1.35; max-width: 1000px }}
div {{ flex: 1; min-height: 0 }}
img {{ width: 100%; height: 100%; object-fit: contain;
  object-position: left top }}</style>
<header>{mark}<span>Coding attention</span></header><h1>{title}</h1>{shown}"""


def style():
    """Give the site's face as a rule of a style sheet."""
    face = base64.b64encode((STATIC / "fonts" / "text.woff2").read_bytes()).decode()
    return (
        "@font-face{font-family:attention-text;font-weight:400 700;"
        f"src:url(data:font/woff2;base64,{face})}}"
    )


def small(png):
    """Give a picture with as many colors as fit into the bytes that a card may have."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    for colors in (128, 64, 32, 16, 8):
        out = io.BytesIO()
        picture.quantize(colors, dither=Image.Dither.NONE).save(
            out, "PNG", optimize=True
        )
        if out.tell() <= MOST_BYTES:
            break
    return out.getvalue()


def trimmed(png):
    """Give a picture without what is as its first corner all around."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    paper = Image.new("RGB", picture.size, picture.getpixel((0, 0)))
    out = io.BytesIO()
    picture.crop(ImageChops.difference(picture, paper).getbbox()).save(out, "PNG")
    return out.getvalue()


def short(text, most=300):
    """Cut a text at a word."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[:most].rpartition(" ")[0] + " …"


def page_card(instance, address):
    """Draw the card of one page.

    Returns:
        The picture, its title, and what it shows in words.
    """
    # Twice the size: a small drawing grows to the width of the card.
    options = {"fresh": True, "device_scale_factor": 2}
    with visiting(instance, address, **options) as visit:
        visit.load()
        told = visit.page.evaluate(ABOUT)
        alt = visit.page.evaluate(FIRST_FIGURE)
        if alt is None:
            shown = f"<p>{escape(told['about'])}</p>"
        else:
            figure = trimmed(visit.page.locator("[data-card]").screenshot())
            data = base64.b64encode(figure).decode()
            shown = f'<div><img src="data:image/png;base64,{data}"></div>'
    mark = (STATIC / "logo-light.svg").read_text(encoding="utf-8")
    page = instance.new_page(viewport=SIZE)
    page.set_content(PAGE.format(
        face=style(), paper=PAPER, ink=INK, pale=PALE, mark=mark,
        title=escape(told["title"]), shown=shown,
    ))  # fmt: skip
    page.evaluate("document.fonts.ready")
    png = page.screenshot()
    page.close()
    words = told["about"] if alt is None else alt
    return small(png), told["title"], short(f"{told['title']}. {words}")


def draw_book(instance):
    """Draw the book's own card."""
    svg = card()
    (STATIC / "social-card.svg").write_text(svg, encoding="utf-8")
    page = instance.new_page(viewport=SIZE)
    page.set_content(f"<style>{style()}body{{margin:0}}</style><body>{svg}</body>")
    page.evaluate("document.fonts.ready")
    (STATIC / "social-card.png").write_bytes(small(page.screenshot()))
    page.close()


def entries():
    """Give every page but the first one, which has the book's own card."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    return [page["file"] for part in toc["parts"] for page in part["chapters"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", help="parts of page names; default: all")
    options = parser.parse_args()
    CARDS.mkdir(exist_ok=True)
    table = CARDS / "cards.json"
    known = json.loads(table.read_text("utf-8")) if table.exists() else {}
    with browser() as instance:
        if not options.pages:
            draw_book(instance)
        for entry in entries():
            if options.pages and not any(name in entry for name in options.pages):
                continue
            address = (SITE / f"{entry}.html").as_uri()
            picture, title, alt = page_card(instance, address)
            name = entry.rpartition("/")[2]
            (CARDS / f"{name}.png").write_bytes(picture)
            known[entry] = {"title": title, "alt": alt}
            print(f"{name}: {len(picture) / 1000:.0f} kB")
    for entry in set(known) - set(entries()):
        del known[entry]
        (CARDS / f"{entry.rpartition('/')[2]}.png").unlink(missing_ok=True)
    text = json.dumps(known, indent=1, sort_keys=True, ensure_ascii=False)
    table.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
