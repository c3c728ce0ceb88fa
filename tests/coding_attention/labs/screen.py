"""Labs on screen: read them, hold them against PyTorch, and move them.

For the small site of the tests and for the built book.
"""

from contextlib import contextmanager

import torch

from coding_attention import labs
from tests.coding_attention.labs.table import ROWS, texts
from tools.measure.visit import DRAWN

LAPTOP = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}


# ---- find ----


def on_page(page, name):
    """Find the lab of a class on a page."""
    return page.locator(f'.attn-lab[aria-label="{getattr(labs, name).title}"]')


def find(root, kind, label):
    """Find a control of a lab by its kind and label, as table.py has them."""
    if kind == "range":  # its name ends with its value, since the label holds both
        text = root.page.locator(f'span:text-is("{label}")')
        return root.locator("label.al-control").filter(has=text).locator("input")
    role = {"select": "combobox", "number": "spinbutton"}.get(kind, kind)
    return root.get_by_role(role, name=label, exact=True)


# ---- read ----

# The numbers of each open grid, by its title.
READ = """root => Object.fromEntries([...root.querySelectorAll('table[role=grid]')]
  .filter(table => table.checkVisibility() && !table.matches('.al-heat, .al-bars'))
  .map(table => [table.getAttribute('aria-label'), [...table.tBodies[0].rows].map(
    row => [...row.querySelectorAll('td')].map(
      cell => cell.firstElementChild?.value ?? cell.textContent))]))
"""
# What squares and bars are drawn as: their name, and the share of color or length.
READ_DRAWN = """root => Object.fromEntries(
  [...root.querySelectorAll('.al-heat, .al-bars')]
  .filter(table => table.checkVisibility())
  .map(table => [table.getAttribute('aria-label').replace(', drawn', ''),
    [...table.tBodies[0].rows].flatMap(row => [...row.querySelectorAll('td')].map(
      cell => [cell.getAttribute('aria-label'),
               parseFloat(cell.style.getPropertyValue('--tone')) || 0]))]))
"""
# What a failure says, of the lab's row in table.py.
TITLES = "the titles on screen on the left, on the right those of its row's"
BOTH = (
    "on screen on the left, by PyTorch on the right. If all of it differs, its row may "
    "make another value of a control than the screen does."
)


def check(root, lab):
    """Require the lab on screen to show PyTorch's numbers, in grids or its own way."""
    row = ROWS[type(lab).__name__]
    if row.shows:
        return row.shows(root, lab)
    open_settings(root)  # the grids open with them
    expected, found = row.numbers(lab), root.evaluate(READ)
    assert set(found) == set(expected), f"{lab}: {TITLES} `numbers`"
    for title, rows in expected.items():
        assert found[title] == rows, f"{lab}: {title}: {BOTH}"
    return check_drawn(root, lab, row.drawn(lab))


def check_drawn(root, lab, expected):
    """Require squares and bars to be as dark or long as PyTorch's numbers are large."""
    found = root.evaluate(READ_DRAWN)
    assert set(found) == set(expected), f"{lab}: {TITLES} `drawn`"
    for title, (values, shares) in expected.items():
        names, tones = zip(*found[title], strict=True)
        words = values if isinstance(values, list) else texts(values)
        assert [*names] == [word for row in words for word in row], f"{title}: {BOTH}"
        wanted = torch.as_tensor(shares).double().nan_to_num(0, 0, 0).clamp(-1, 1)
        torch.testing.assert_close(
            torch.tensor(tones).double(), 100 * wanted.flatten(), atol=0.051, rtol=0
        )


def drawn(page):
    """Wait until all that was asked for so far is on the screen."""
    page.evaluate(DRAWN)


# ---- move ----


def open_settings(root):
    """Open what is on demand among the controls, where the lab has it."""
    tab = root.get_by_role("button", name="More", exact=True, expanded=False)
    if tab.count():
        tab.click()


def reset(root):
    root.get_by_role("button", name="Reset", exact=True).click()


def set_by_keys(page, control, kind, wanted):
    """Set a control to what its row in table.py says, with the keyboard alone."""
    control.focus()
    first = next(iter(wanted.values()))
    if kind == "range":
        page.keyboard.press("ArrowRight")
    elif kind == "select":
        way = first[0] - control.evaluate("e => e.selectedIndex")
        for _ in range(abs(way)):
            page.keyboard.press("ArrowDown" if way > 0 else "ArrowUp")
    elif kind == "number":
        page.keyboard.press("Control+a")
        page.keyboard.type(str(first))
    else:
        page.keyboard.press("Enter" if kind == "button" else "Space")


def set_in_python(lab, control, wanted):
    """Set the lab in Python to what the control's row says; sliders say their value."""
    for name, value in wanted.items():
        if callable(value):
            value = value(read_output(control))
        elif isinstance(value, tuple):
            value = value[1]
        setattr(lab, name, value)


def read_output(slider):
    """Read the number beside a slider."""
    words = slider.evaluate("bar => bar.parentElement.querySelector('output').value")
    return float(words.split()[0])


def drag(page, mark, dx, dy, touch=False):
    """Drag a mark by some pixels, by the mouse or by a finger."""
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    way = [(x + dx * share, y + dy * share) for share in (0, 0.25, 1)]
    if not touch:
        page.mouse.move(x, y)
        page.mouse.down()
        for at in way[1:]:
            page.mouse.move(*at, steps=3)
        return page.mouse.up()
    session = page.context.new_cdp_session(page)
    for kind, (a, b) in zip(("Start", "Move", "Move"), way, strict=True):
        event = {"type": f"touch{kind}", "touchPoints": [{"x": a, "y": b}]}
        session.send("Input.dispatchTouchEvent", event)
        drawn(page)
    end = {"type": "touchEnd", "touchPoints": []}
    session.send("Input.dispatchTouchEvent", end)
    return session.detach()


def follow(page, link):
    """Follow a link within the page, and wait until the lab has heard of it."""
    page.evaluate(
        """link => new Promise(done => {
          addEventListener('hashchange', done, { once: true });  // after the lab's own
          location.hash = link;
        }).then(() => null)""",
        link,
    )
    drawn(page)


@contextmanager
def styled(page, rules):
    """Add a style sheet to the page for a while."""
    sheet = page.add_style_tag(content=rules)
    try:
        yield
    finally:
        sheet.evaluate("sheet => sheet.remove()")


# ---- look ----

# What questions about the looks are asked with. `texts`: each visible text with its
# size on screen, its color and that of what is behind it; `controls`: what one moves;
# `hits`: whether two boxes overlap by more than this.
TOOLS = """const visible = e => e.checkVisibility({ visibilityProperty: true });
const box = e => e.getBoundingClientRect();
const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
const rgb = color => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = color;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data].map(x => x / 255);
};
const behind = e => {
  for (; e; e = e.parentElement) {
    const color = rgb(getComputedStyle(e).backgroundColor);
    if (color[3] > 0.98) return color;
  }
  return [1, 1, 1, 1];
};
const texts = () => {
  const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    const text = walk.currentNode.data.trim();
    const style = getComputedStyle(e);
    const scale = e.ownerSVGElement ? e.getScreenCTM().a : 1;
    const size = parseFloat(style.fontSize) * scale;
    if (!text || !visible(e) || e.closest('option') || !size) continue;
    const colors = [rgb(e.ownerSVGElement ? style.fill : style.color), behind(e)];
    found.push({ text, size, colors: colors.map(color => color.slice(0, 3)) });
  }
  return found;
};
const CONTROLS = 'input, select, button, .al-handle, [tabindex="0"][role]';
const controls = () => [...root.querySelectorAll(CONTROLS)].filter(e =>
  visible(e) && !e.closest('.al-numbers, .al-share') && !e.matches('td, [disabled]'));
const hits = (a, b, x = 1, y = x) =>
  Math.min(a.right, b.right) - Math.max(a.left, b.left) > x
  && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > y;
"""


def ask(root, question):
    """Evaluate JavaScript that returns something, with TOOLS and ``root`` at hand."""
    return root.evaluate(f"async root => {{ {TOOLS} {question} }}")


# What is outside its drawing, and names over another name, a mark or a tick.
ASTRAY = """return [...root.querySelectorAll('.al-stages svg[viewBox]')].filter(visible)
  .flatMap(svg => {
    const home = box(svg);
    const out = b => b.left < home.left - 3 || b.right > home.right + 3
      || b.top < home.top - 3 || b.bottom > home.bottom + 3;
    const all = kinds => [...svg.querySelectorAll(kinds)].filter(visible);
    const texts = all('text').filter(e => e.textContent.trim());
    const shapes = all('path.al-curve, :is(circle, rect):not(.al-reach)');
    // What is moved may cover the name of an axis, which has its place.
    const names = texts.filter(e => e.closest('.al-axes') || e.matches('.al-name')
      || e.parentNode.matches('.al-drawing'));
    const marks = all('.al-dot, .al-mean');
    const call = e => e.textContent.trim() || e.outerHTML.slice(0, 60);
    return [
      ...[...texts, ...shapes].filter(e => out(box(e)))
        .map(e => `${call(e)} is outside`),
      ...names.flatMap((a, i) => [...names.slice(i + 1),
          ...(a.matches('.al-name') ? marks : [])]
        // The box of a text holds air above and below its letters.
        .filter(b => hits(box(a), box(b), 0.5, 5))
        .map(b => `${call(a)} is over ${call(b)}`)),
    ];
  })"""


def find_astray(root):
    """Give what is drawn outside of its drawing, and each name over another."""
    return ask(root, ASTRAY)
