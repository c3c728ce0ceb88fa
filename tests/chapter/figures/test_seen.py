"""Every figure of every page in a browser, with the letters that readers see there.

test_readable.py holds what each function draws from made-up data; here is what the
notebooks store, from the book's own words and numbers, at the size of the page.
"""

import pytest

from tests.chapter.figures.test_on_pages import FIGURES

pytestmark = pytest.mark.browser
every_figure = pytest.mark.parametrize("name", FIGURES)

# For each drawing: texts that lie on each other, that leave the drawing, and that a line
# goes through which is not below a filled cell. Measured at the width of the drawing.
LOOK = """figures => figures.map(figure => [...figure.querySelectorAll('svg')].map(svg => {
  // The box of a text holds air around its letters: above, below, and a pixel beside.
  const letters = text => {
    const b = text.getBoundingClientRect();
    const upright = b.height > 1.2 * b.width && text.textContent.trim().length > 1;
    const [x, y] = upright ? [b.width / 4, 1] : [1, b.height / 4];
    return {left: b.left + x, right: b.right - x, top: b.top + y, bottom: b.bottom - y};
  };
  const inside = (p, b) => p.x > b.left && p.x < b.right && p.y > b.top && p.y < b.bottom;
  const all = [...svg.querySelectorAll('*')];
  const texts = all.filter(e => e.tagName === 'text' && e.textContent.trim())
    .map(e => ({e, box: letters(e), words: e.textContent.trim(), z: all.indexOf(e)}));
  const [on, out, struck] = [[], [], []];
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
  return {on, out, struck};
}))"""
# Lines that cross out words on purpose: what a model wrote and the language forbids.
CROSSED_OUT = ("04_causal_attention:figure-cheat",)


@pytest.fixture(scope="module")
def seen(browser):
    """What LOOK finds in each figure of the book, by its name."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_content(
        "<style>body { font-family: sans-serif; width: 688px }</style>"
        + "".join(FIGURES.values())
    )
    figures = page.locator(".attention-figure")
    assert figures.count() == len(FIGURES)
    found = figures.evaluate_all(LOOK)
    page.close()
    return dict(zip(FIGURES, found, strict=True))


@every_figure
def test_no_text_lies_on_another(seen, name):
    assert [drawing["on"] for drawing in seen[name] if drawing["on"]] == []


@every_figure
def test_no_text_is_cut_off(seen, name):
    assert [drawing["out"] for drawing in seen[name] if drawing["out"]] == []


@every_figure
def test_no_line_goes_through_a_text(seen, name):
    if name in CROSSED_OUT:
        return
    assert [drawing["struck"] for drawing in seen[name] if drawing["struck"]] == []
