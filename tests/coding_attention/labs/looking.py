"""What a lab must look like in every way: readable, inside, nothing over another.

Each check gets the lab's root on the page of all labs, the page, and the lab's name.
"""

import io
from contextlib import contextmanager

import torch
from PIL import Image

from tests.coding_attention.figures.artists import contrast
from tests.coding_attention.labs.harness import COLUMN, ask


@contextmanager
def styled(page, rules):
    sheet = page.add_style_tag(content=rules)
    try:
        yield
    finally:
        sheet.evaluate("sheet => sheet.remove()")


# ---- words ----


def readable(least):
    def asked(root, page, name):
        small = [t for t in ask(root, "return texts()") if t["size"] < least - 0.05]
        assert small == []

    return asked


def grows(root, page, name):
    """Require sizes in rem: twice the reader's size of text is twice the lab's."""
    before = ask(root, "return texts()")
    with styled(page, "html { font-size: 200% !important }"):
        after = ask(root, "return texts()")
        over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    pairs = [(a, b) for a, b in zip(before, after, strict=True) if not a["svg"]]
    assert pairs
    assert [a["text"] for a, b in pairs if b["size"] < 1.9 * a["size"]] == []
    assert over <= 0


def contrasts(root, page, name):
    poor = [t for t in ask(root, "return texts()") if contrast(*t["colors"]) < 4.5]
    assert poor == []
    # The frame of a cell that is pointed out.
    frames = ask(
        root,
        """const ring = /^(.+\\)) 0px 0px 0px 2px inset/;
           return [...root.querySelectorAll('td')].filter(visible)
             .map(e => [e, ring.exec(getComputedStyle(e).boxShadow)])
             .filter(([, found]) => found).map(([e, found]) =>
               [rgb(found[1]), behind(e)]
                 .map(color => color.slice(0, 3).map(x => x / 255)))""",
    )
    assert name != "DropoutLab" or frames
    assert all(contrast(*pair) >= 3 for pair in frames)


def marks_stay(root, page, name):
    """Require that with forced colors no mark has the color of what is behind it."""
    lost = ask(
        root,
        """const page = rgb(getComputedStyle(document.body).backgroundColor).join();
           const shapes = '.al-stages :is(path, circle, rect, line)';
           return [...root.querySelectorAll(shapes)].filter(visible).filter(e => {
             const style = getComputedStyle(e);
             const inks = [style.fill, style.stroke].filter(x => x !== 'none')
               .map(rgb).filter(x => x[3] > 0).map(x => x.join());
             return inks.length && inks.every(ink => ink === page);
           }).map(e => e.outerHTML)""",
    )
    assert lost == []
    assert ask(root, "return drawn().length"), "no svg and no table in lab.stages"
    contrasts(root, page, name)


# ---- room ----


def fits(root, page, name):
    """Require nothing wider than the page, cut off, or over another control."""
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    cut = ask(
        root,
        """return controls().filter(e => e.matches('button, select') &&
             e.scrollWidth > e.clientWidth + 3).map(e => e.textContent)""",
    )
    assert cut == []
    clipped = ask(
        root,
        """return [...root.querySelectorAll('.al-draws, .al-draws *')].filter(e =>
             visible(e) && !e.matches('figcaption') && !e.ownerSVGElement
             && getComputedStyle(e).overflow !== 'visible'
             && (e.scrollWidth > e.clientWidth + 1
                 || e.scrollHeight > e.clientHeight + 1))
             .map(e => e.outerHTML.slice(0, 80))""",
    )
    assert clipped == []
    over = ask(
        root,
        """const all = controls().filter(e => !e.ownerSVGElement && !e.matches('svg'));
           return all.flatMap((e, i) => all.slice(i + 1)
             .filter(f => hits(box(e), box(f)) && !e.contains(f) && !f.contains(e))
             .map(f => [e.outerHTML.slice(0, 80), f.outerHTML.slice(0, 80)]))""",
    )
    assert over == []


def fits_a_column(root, page, name):
    """Require that all of it has room in the book's column, without scrolling."""
    with styled(page, COLUMN):
        fits(root, page, name)


# How far below its top a lab begins to draw, and how high it is.
SIZES = """root => {
  const top = e => e.getBoundingClientRect().top;
  const all = [...root.querySelectorAll(
    '.al-draws :is(svg, table), .hs-blocks, .lk-board, .tg-bars')];
  const high = Math.min(...all.filter(e => e.checkVisibility()).map(top));
  return [high - top(root), root.getBoundingClientRect().height];
}"""


def fits_a_phone(root, page, name):
    """Require a drawing first, and with settings closed one screen for all of it."""
    fits(root, page, name)
    tab = root.get_by_role("button", name="More", exact=True, expanded=True)
    if tab.count():
        tab.click()
    top, height = root.evaluate(SIZES)
    assert top <= 80
    assert height <= 844


def large_targets(root, page, name):
    small = ask(
        root,
        """const cells = [...root.querySelectorAll('.al-heat td, .al-bars td')];
           return [...controls(), ...cells.filter(visible)]
             .filter(e => !e.closest('.al-numbers') && !e.matches('svg, table, div'))
             .map(e => {
               const small = e.matches('[type=checkbox], [type=radio]');
               const b = box(small ? e.labels[0] : e);
               return [e.outerHTML.slice(0, 90), b.width, b.height] })
             .filter(([, width, height]) => width < 23.9 || height < 23.9)""",
    )
    assert small == []


# ---- drawings ----

# What is outside its drawing, and names over another name, a mark or a tick.
ASTRAY = """return [...root.querySelectorAll('.al-stages svg[viewBox]')].filter(visible)
  .flatMap(svg => {
    const home = box(svg);
    const out = b => b.left < home.left - 3 || b.right > home.right + 3
      || b.top < home.top - 3 || b.bottom > home.bottom + 3;
    const all = kinds => [...svg.querySelectorAll(kinds)].filter(visible);
    const texts = all('text').filter(e => e.textContent.trim());
    const shapes = all('path.al-curve, circle, rect:not(.al-reach)');
    // What is moved may cover the name of an axis, which has its place.
    const named = texts.filter(e => e.closest('.al-axes') || e.matches('.al-name')
      || e.parentNode.matches('.al-drawing'));
    const marks = all('.al-dot, .al-mean');
    const told = e => e.textContent.trim() || e.outerHTML.slice(0, 60);
    return [
      ...[...texts, ...shapes.filter(e => !e.matches('.al-reach'))]
        .filter(e => out(box(e))).map(e => `${told(e)} is outside`),
      ...named.flatMap((a, i) => [...named.slice(i + 1),
          ...(a.matches('.al-name') ? marks : [])]
        // The box of a text holds air above and below its letters.
        .filter(b => hits(box(a), box(b), 0.5, 5))
        .map(b => `${told(a)} is over ${told(b)}`)),
    ];
  })"""


def astray(root):
    """Give what is drawn outside of its drawing, and each name over another."""
    return ask(root, ASTRAY)


# What stands before something that comes later on the page, for the Tab key.
ORDER = """root => [...root.querySelectorAll('[tabindex]')]
  .filter(e => ![0, -1].includes(e.tabIndex)).map(e => e.outerHTML.slice(0, 90))"""


def holds_what_it_draws(root, page, name):
    assert astray(root) == []
    assert root.evaluate(ORDER) == []


def image_is_the_lab(root, page, name):
    """Require the image that is saved to be what is on the screen, below a title."""
    page.evaluate("navigator.clipboard && (navigator.clipboard.write = undefined)")
    page.mouse.move(0, 0)
    draws = root.locator(".al-draws")
    shot = Image.open(io.BytesIO(draws.screenshot())).convert("RGB")
    with page.expect_download() as download:
        root.get_by_role("button", name="Copy image").click()
    with open(download.value.path(), "rb") as file:
        image = Image.open(io.BytesIO(file.read())).convert("RGB")
    width = -(-draws.bounding_box()["width"] // 1)
    assert image.width == 2 * (width + 32)
    # Of the image the part below its title, within its edges; then what it says.
    below = image.crop((32, 88 + shot.height, image.width, image.height))
    assert len(below.getcolors(1 << 20)) > 2
    image = image.crop((32, 88, 32 + shot.width, 88 + shot.height))
    size = shot.width // 12, shot.height // 12
    seen, saved = (
        torch.tensor(list(one.resize(size, Image.Resampling.BOX).getdata()))
        for one in (shot, image)
    )
    off = (seen - saved).abs().amax(dim=-1)
    # Letters are set a little otherwise, and words of controls are left out.
    assert (off > 40).float().mean() < 0.03
    assert (off > 80).float().mean() < 0.015
