"""Every figure of every page in a browser, with the letters that readers see there.

Drawn from the book's own words and numbers, as the notebooks store them, at the size
of the page.
"""

from pathlib import Path

import pytest

from coding_attention.figures.shown import COLUMN, WHOLE
from tests.coding_attention.figures.artists import contrast
from tests.coding_attention.figures.test_on_pages import FIGURES, PHONE

ROOT = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.site
every_figure = pytest.mark.parametrize("name", FIGURES)

# For each drawing: texts that lie on each other, that leave the drawing, that a line
# goes through which is not below a filled cell, and that have no air in their cell;
# and marks, such as those of a legend, that leave the drawing.
LOOK = """figures => figures.map(one => [...one.querySelectorAll('svg')].map(svg => {
  // The box of a text holds air around its letters: above, below, and a pixel beside.
  const letters = text => {
    const b = text.getBoundingClientRect();
    const upright = b.height > 1.2 * b.width && text.textContent.trim().length > 1;
    const [x, y] = upright ? [b.width / 4, 1] : [1, b.height / 4];
    return {left: b.left + x, right: b.right - x,
            top: b.top + y, bottom: b.bottom - y};
  };
  const inside = (p, b) =>
    p.x > b.left && p.x < b.right && p.y > b.top && p.y < b.bottom;
  const all = [...svg.querySelectorAll('*')];
  const texts = all.filter(e => e.tagName === 'text' && e.textContent.trim())
    .map(e => ({e, box: letters(e), words: e.textContent.trim(), z: all.indexOf(e)}));
  const [on, out, struck, tight, gone] = [[], [], [], [], []];
  texts.forEach((a, i) => texts.slice(i + 1).forEach(b => {
    const wide = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
    const high = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
    if (wide > 0 && high > 0) on.push(`${a.words} | ${b.words}`);
  }));
  const frame = svg.getBoundingClientRect();
  texts.forEach(({box, words}) => {
    const over = Math.max(frame.left - box.left, box.right - frame.right,
                          frame.top - box.top, box.bottom - frame.bottom);
    if (over > 0) out.push(words);
  });
  const shapes = all.filter(e => e.getTotalLength && !e.closest('defs, clipPath'));
  const filled = shapes.filter(e => getComputedStyle(e).fill !== 'none')
    .map(e => ({box: e.getBoundingClientRect(), z: all.indexOf(e)}));
  for (const shape of shapes) {
    const style = getComputedStyle(shape);
    const length = shape.getTotalLength();
    if (style.stroke === 'none' || !length) continue;
    const matrix = shape.getScreenCTM();
    const z = all.indexOf(shape);
    const count = Math.min(600, Math.ceil(length / 2));
    const points = Array.from({length: count + 1}, (_, k) =>
      shape.getPointAtLength(length * k / count).matrixTransform(matrix));
    for (const text of texts) {
      const middle = {x: (text.box.left + text.box.right) / 2,
                      y: (text.box.top + text.box.bottom) / 2};
      if (!points.some(p => inside(p, text.box))) continue;
      if (filled.some(f => f.z > z && f.z < text.z && inside(middle, f.box))) continue;
      struck.push(text.words);
    }
  }
  for (const e of shapes) {
    if (e.closest('[clip-path]') || getComputedStyle(e).fill === 'none') continue;
    const b = e.getBoundingClientRect();
    const over = Math.max(frame.left - b.left, b.right - frame.right,
                          frame.top - b.top, b.bottom - frame.bottom);
    if (b.width > 1 && b.height > 1 && over > 0.5) gone.push(e.outerHTML.slice(0, 90));
  }
  for (const text of texts) {
    const middle = {x: (text.box.left + text.box.right) / 2,
                    y: (text.box.top + text.box.bottom) / 2};
    const own = filled.filter(f => f.z < text.z && inside(middle, f.box)).at(-1);
    if (!own) continue;
    const air = Math.min(text.box.left - own.box.left, own.box.right - text.box.right);
    if (air < 1) tight.push(text.words);
  }
  return {on, out, struck, tight, gone};
}))"""
# Lines that cross out words on purpose: what a model wrote and the language forbids.
CROSSED_OUT = ("04_causal_attention:figure-cheat",)


# Where drawings and caption stand in the figure, and the smallest letters, in pixels.
MEASURE = """figures => figures.map(one => {
  const box = e => e.getBoundingClientRect().toJSON();
  const svgs = [...one.querySelectorAll('svg')];
  const letters = svgs.flatMap(svg => [...svg.querySelectorAll('text')].map(text =>
    parseFloat(getComputedStyle(text).fontSize) * svg.getScreenCTM().a));
  return {figure: box(one), drawings: svgs.map(box),
          caption: box(one.querySelector('figcaption')), letters: Math.min(...letters),
          scales: svgs.map(svg => svg.getScreenCTM().a)};
})"""
# Of each figure: the color of every filled cell of 36 square pixels or more, as it is
# painted; and of each text that has a color of its own, which is not the page's: that
# color and the one of the cell that it stands on. `bare` and `inked` name texts that
# have no cell although their color is meant for one, or the page's color on a cell.
PAINT = """figures => figures.map(one => {
  const paint = document.createElement('canvas').getContext('2d');
  const rgb = color => {
    paint.fillStyle = color;
    paint.fillRect(0, 0, 1, 1);
    return [...paint.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const all = [...one.querySelectorAll('svg *')];
  const cells = all.filter(e => e.getTotalLength && !e.closest('defs, clipPath')
    && getComputedStyle(e).fill !== 'none').map(e =>
      ({e, box: e.getBoundingClientRect(), fill: rgb(getComputedStyle(e).fill)}));
  const [texts, bare, inked] = [[], [], []];
  for (const e of all.filter(e => e.localName === 'text' && e.textContent.trim())) {
    const b = e.getBoundingClientRect();
    const [x, y] = [(b.left + b.right) / 2, (b.top + b.bottom) / 2];
    const cell = cells.filter(({e: other, box}) => box.left < x && x < box.right
      && box.top < y && y < box.bottom
      && other.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING).at(-1);
    const own = e.getAttribute('style').includes('currentColor');
    if (own && cell) inked.push(e.textContent);
    else if (!own && !cell) bare.push(e.textContent);
    else if (cell) texts.push([rgb(getComputedStyle(e).fill), cell.fill]);
  }
  return {cells: cells.filter(({box}) => box.width * box.height >= 36)
    .map(cell => cell.fill), texts, bare, inked};
})"""


@pytest.fixture(scope="module")
def looked_at(browser):
    """A function that evaluates a script over all figures of the book, by name."""

    def look(script, screen=1280, theme="light", figures=FIGURES):
        styles = (ROOT / "theme/static/book.css").read_text("utf-8")
        page = browser.new_page(viewport={"width": screen, "height": 900})
        column = WHOLE if screen > PHONE * 2 else PHONE
        page.set_content(
            f"<html data-theme='{theme}'><style>{styles}</style>"
            f"<style>body {{ font-family: sans-serif; width: {column}px; margin: 0;"
            f" --text: {COLUMN}px; --whole: {WHOLE}px }}</style>"
            + "".join(figures.values())
        )
        shown = page.locator(".attention-figure")
        assert shown.count() == len(figures)
        found = shown.evaluate_all(script)
        page.close()
        return dict(zip(figures, found, strict=True))

    return look


@pytest.fixture(scope="module")
def seen(looked_at):
    return looked_at(LOOK)


@pytest.fixture(scope="module")
def on_a_desk(looked_at):
    return looked_at(MEASURE)


@pytest.fixture(scope="module")
def on_a_phone(looked_at):
    return looked_at(MEASURE, screen=390)


@pytest.fixture(scope="module")
def painted(looked_at):
    return {theme: looked_at(PAINT, theme=theme) for theme in ("light", "dark")}


@every_figure
def test_nothing_is_cut_off_or_lies_on_a_text(seen, name):
    for drawing in seen[name]:
        if name in CROSSED_OUT:
            drawing.pop("struck")
        assert {fault: found for fault, found in drawing.items() if found} == {}


@every_figure
def test_drawings_and_caption_take_the_column(on_a_desk, name):
    """With the test below, this prints the table of all figures: pytest -s."""
    found = on_a_desk[name]
    figure, caption, drawings = found["figure"], found["caption"], found["drawings"]
    widths = [round(one["right"] - one["left"]) for one in drawings]
    print(f"1280 | {name} | {widths} of {COLUMN} px | text {found['letters']:.1f} px")
    assert figure["right"] - figure["left"] == pytest.approx(WHOLE, abs=1)
    assert min(one["left"] for one in drawings) == pytest.approx(figure["left"], abs=1)
    right = max(one["right"] for one in drawings)
    assert right <= figure["right"] + 1
    if caption["top"] >= max(one["bottom"] for one in drawings) - 1:
        assert caption["left"] == pytest.approx(figure["left"], abs=1)
    else:  # in the margin, right of the text
        assert caption["top"] == pytest.approx(drawings[0]["top"], abs=1)
        assert 0 < caption["left"] - (figure["left"] + COLUMN) <= 40
        assert right <= figure["left"] + COLUMN + 1
        assert caption["right"] == pytest.approx(figure["right"], abs=1)
    assert found["letters"] >= 12


@every_figure
def test_a_phone_shows_it_whole_and_legible(on_a_phone, name):
    found = on_a_phone[name]
    widths = [round(one["right"] - one["left"]) for one in found["drawings"]]
    print(f" 390 | {name} | {widths} of {PHONE} px | text {found['letters']:.1f} px")
    assert (
        max(one["right"] for one in found["drawings"]) <= found["figure"]["right"] + 1
    )
    assert found["caption"]["left"] == pytest.approx(found["figure"]["left"], abs=1)
    assert found["letters"] >= 11


@every_figure
def test_all_drawings_of_a_figure_have_one_scale(on_a_desk, on_a_phone, name):
    for found in (on_a_desk[name], on_a_phone[name]):
        assert max(found["scales"]) <= 1.02 * min(found["scales"])


@every_figure
def test_cells_follow_the_page_into_the_dark(painted, name):
    # The mean of red, green and blue: of the lightest ground by day, and of the most
    # that a dark page shows in bars and lines.
    pairs = zip(*(painted[theme][name]["cells"] for theme in painted), strict=True)
    for light, dark in pairs:
        assert light != dark, f"{light} does not follow the page"
        assert sum(dark) / 3 < 190, f"{dark} is nearly white on a dark page"


@every_figure
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_can_be_read_on_their_cells(painted, theme, name):
    """The page's own color, which is light on a dark page, is for the bare page."""
    found = painted[theme][name]
    assert found["bare"] == found["inked"] == []
    for pair in found["texts"]:
        ink, cell = ([part / 255 for part in color] for color in pair)
        assert contrast(ink, cell) >= 4.5, pair
