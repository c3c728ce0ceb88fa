"""Drawings as large as a slide has room for, and code that fits it."""

import html
import re

# Pixels for drawings above their sentence, and beside it.
ROOM, TALL = (1168, 455), (820, 625)
# A line that begins something, and a text whose lines do so without an empty one.
BEGINS, OUTPUT = re.compile(r"[^\s)\]}]"), re.compile(r"(?:[\w ]+: )?tensor\(")
GAP, MOST = 28, 3.2  # pixels between two drawings, and for a point
SMALLEST, STRETCH = 18, 1.15  # pixels of a letter, and what its drawing can stand
WIDTH, HEIGHT = 1168, 550  # pixels below the title
LINE, LETTER, FRAME = 1.32, 0.603, 34  # of a line and a letter to the size; around code
SIZES = (28, 24, 20, 18)
UPRIGHT = re.compile(
    r'(<text style="font-size: ([\d.]+)px[^>]*translate\([\d.]+ ([\d.]+)\)'
    r' rotate\(-90\)"[^>]*>)([^<]*)'
)
LEVEL = re.compile(r"<text (?:(?!rotate\(-90)[^>])*>([^<]*)")
FONT = re.compile(r"font(?:-size)?: ?(?:[a-z]+ |\d00 )*([\d.]+)px")


def drawings_of(markup):
    """Return the drawings in a cell's HTML."""
    return re.findall(r"<svg\b.*?</svg>", markup, re.S)


def box(drawing):
    """Return the width and the height of a drawing, in its own units."""
    found = re.search(r'<svg[^>]*viewBox="([^"]*)"', drawing)[1]
    return tuple(map(float, found.split()[2:]))


def with_whole_labels(drawing):
    """Give the columns of a lab's grid the names of its rows, which it had cut off."""
    cut_off, rows = UPRIGHT.findall(drawing), LEVEL.findall(drawing)
    names = rows[: len(cut_off)]
    pairs = list(zip(names, cut_off, strict=False))
    if len(names) < len(cut_off) or not all(n.startswith(c[3]) for n, c in pairs):
        return drawing
    left = iter(names)
    drawing = UPRIGHT.sub(lambda found: found[1] + next(left), drawing)
    longest = [len(n) * float(c[1]) * LETTER - float(c[2]) for n, c in pairs]
    above = max([0.0, *longest])
    width, height = box(drawing)
    return re.sub(
        r'viewBox="[^"]*"',
        f'viewBox="0 {-above:.1f} {width:g} {height + above:.1f}"',
        drawing,
        count=1,
    )


def figures(drawings, alt, sentence):
    """Lay drawings out on slides, so that no letter is too small to be read.

    Args:
        drawings: SVG, each with its view box.
        alt: the text alternative, escaped.
        sentence: what stands with them.

    Returns:
        The figure of each slide, and whether the sentence stands beside it.
    """
    boxes = [box(drawing) for drawing in drawings]
    letters = min([float(s) for d in drawings for s in FONT.findall(d)], default=9)
    ways = []
    for beside, room in ((False, ROOM), (True, TALL)):
        factor, in_a_row = scale(boxes, _said(sentence, len(boxes)), room)
        ways.append((factor * letters, beside, factor, in_a_row))
    enough = [way for way in ways if way[0] >= SMALLEST]
    if not enough and len(drawings) > 1 and max(ways)[0] * STRETCH < SMALLEST:
        half = (len(drawings) + 1) // 2
        return [
            made
            for part in (drawings[:half], drawings[half:])
            for made in figures(part, alt, "")
        ]
    _, beside, factor, in_a_row = enough[0] if enough else max(ways)
    return [(_figure(drawings, alt, factor, in_a_row), beside)]


def _figure(drawings, alt, factor, in_a_row):
    drawn = [_sized(drawing, factor) for drawing in drawings]
    rows = "".join(
        f'<div class="row">{"".join(drawn[i : i + in_a_row])}</div>'
        for i in range(0, len(drawn), in_a_row)
    )
    return f'<figure><div role="img" aria-label="{alt}">{rows}</div></figure>'


def _sized(drawing, factor):
    width, height = (side * factor for side in box(drawing))
    start, rest = drawing.split(">", 1)
    start = re.sub(r' (?:style|width|height)="[^"]*"', "", start)
    least = SMALLEST / factor  # a letter that is still smaller gets this size

    def readable(found):
        size = max(float(found[1]), least)
        return found[0].replace(f"{found[1]}px", f"{size:.2f}px")

    rest = FONT.sub(readable, rest)
    return f'{start} style="width: {width:.0f}px; height: {height:.0f}px">{rest}'


def _said(sentence, number):
    """Return how many drawings may make a row, if the sentence says where each is."""
    if re.search(r"\b(above|below|upper|lower)\b", sentence, re.I):
        return [1]
    if re.search(r"\b(left|right|beside)\b", sentence, re.I):
        return [number]
    return range(1, number + 1)


def scale(boxes, in_a_row, room):
    """Return the largest scale of drawings of these sizes, and how many make a row."""
    width, height = room

    def fits(n):
        rows = [boxes[i : i + n] for i in range(0, len(boxes), n)]
        wide = max(sum(w for w, _ in row) for row in rows)
        high = sum(max(h for _, h in row) for row in rows)
        gaps = GAP * (min(n, len(boxes)) - 1), GAP * (len(rows) - 1)
        return min((width - gaps[0]) / wide, (height - gaps[1]) / high, MOST)

    # Of equal ones, the fewest rows, and those as full as each other.
    def order(n):
        return round(fits(n), 3), len(boxes) // -n, -n

    best = max(in_a_row, key=order)
    return fits(best), best


def rows_of(text, size):
    """Return how many lines a text takes where long ones are broken."""
    letters = int((WIDTH - FRAME - 14) / (size * LETTER))
    return sum(max(1, -(-len(line) // letters)) for line in text.split("\n"))


def pre(text, size, classes=""):
    """Return a block of code or output."""
    names = f"s{size} {classes}".strip()
    return f'<pre class="{names}"><code>{html.escape(text)}</code></pre>'


def high(text, size):
    """Return the height of such a block, with the room above it."""
    return rows_of(text, size) * size * LINE + FRAME + 16 if text else 0


def paragraph(text, size=26, letter=0.49):
    """Return the height of words, about."""
    return (-(-len(text) * size * letter // WIDTH)) * size * 1.35 + 14 if text else 0


def size_of(texts, taken=0):
    """Return the largest size at which code and its output fit one slide, or none."""

    def unbroken(text, size):
        return rows_of(text, size) == len(text.split("\n"))

    sizes = [
        size
        for size in SIZES
        if taken + sum(high(text, size) for text in texts) <= HEIGHT
        and unbroken(texts[0], size)  # a line of code is not broken
    ]
    # Nor one of output, if letters above the smallest are enough for that.
    whole = [s for s in sizes if s > SMALLEST and all(unbroken(t, s) for t in texts)]
    return next(iter(whole or sizes), None)


def columns(code, output, taken=0):
    """Return the largest size at which the output fits beside its code, or none."""
    wide = sum(max(map(len, text.split("\n"))) for text in (code, output))
    for size in SIZES:
        fits = wide * size * LETTER + 2 * FRAME + 40 <= WIDTH
        if fits and taken + max(high(code, size), high(output, size)) <= HEIGHT:
            return size
    return None


def cut(text, taken=0, size=SMALLEST):
    """Split code or output into parts that fit a slide each, at empty lines if it can.

    Args:
        text: lines.
        taken: pixels that something above the first part needs.
        size: of its letters.
    """
    lines = text.split("\n")
    room = int((HEIGHT - taken - FRAME - 16) / (size * LINE))
    rows = [rows_of(line, size) for line in lines]
    if sum(rows) <= room or len(lines) == 1:
        return [text.strip("\n")]
    most = max(n for n in range(1, len(lines)) if sum(rows[:n]) <= room or n == 1)
    later = int((HEIGHT - FRAME - 16) / (size * LINE))
    alike = min(most, -(-len(lines) // (1 + -(-(sum(rows) - room) // later))))
    empty = [n for n in range(1, most + 1) if not lines[n].strip()]
    begins = [n for n in range(1, most + 1) if BEGINS.match(lines[n])]
    after_empty = [n for n in begins if n - 1 in empty]
    end = alike
    for places in (after_empty, begins if OUTPUT.match(text) else [], empty):
        nearest = min(places, key=lambda n: abs(n - alike), default=0)
        if nearest and abs(nearest - alike) <= alike / 2:
            end = nearest
            break
    rest = "\n".join(lines[end:]).lstrip("\n")
    return ["\n".join(lines[:end]).strip("\n"), *cut(rest, 0, size)]
