"""Draw the card that link previews show: theme/static/social-card.svg and its PNG.

The picture is the bank lab's on the first page: from *bank*, a line to each word of its
sentence, as thick as what it takes from that word. The weights are computed here, by
the formula of page 2. The text is set in the site's own face.
"""

import base64
from html import escape
from math import exp
from pathlib import Path

from tools.measure.visit import browser

STATIC = Path(__file__).resolve().parents[1] / "theme" / "static"
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


def main():
    svg = card()
    (STATIC / "social-card.svg").write_text(svg, encoding="utf-8")
    face = base64.b64encode((STATIC / "fonts" / "text.woff2").read_bytes()).decode()
    style = (
        "@font-face{font-family:attention-text;font-weight:400 700;"
        f"src:url(data:font/woff2;base64,{face})}}body{{margin:0}}"
    )
    with browser() as instance:
        page = instance.new_page(viewport=SIZE)
        page.set_content(f"<style>{style}</style><body>{svg}</body>")
        page.evaluate("document.fonts.ready")
        page.screenshot(path=STATIC / "social-card.png")
    print(f"Wrote {STATIC / 'social-card.svg'} and its PNG")


if __name__ == "__main__":
    main()
