"""Labs on screen: read them, check them against PyTorch, and hands to move them.

For the small site of the tests, the built book and a live front end alike.
"""

import time

import torch

from coding_attention import labs
from tests.coding_attention.labs.table import ROWS, texts
from tools.measure.visit import DRAWN

# As wide as the column of the book on a laptop.
COLUMN = ".attn-lab { width: 688px !important }"
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}

# ---- what is on screen ----

# What the checks read. `texts`: each visible text with its size on screen, its color
# and that of what is behind it; `drawn`: what a lab draws; `controls`: what one moves;
# `hits`: whether two boxes overlap by more than this.
PARTS = """root => {
  const visible = e => e.checkVisibility({ visibilityProperty: true });
  const box = e => e.getBoundingClientRect();
  const canvas = new OffscreenCanvas(1, 1)
    .getContext('2d', { willReadFrequently: true });
  const rgb = color => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const behind = e => {
    for (; e; e = e.parentElement) {
      const color = rgb(getComputedStyle(e).backgroundColor);
      if (color[3] > 250) return color;
    }
    return [255, 255, 255];
  };
  const texts = () => {
    const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    const found = [];
    while (walk.nextNode()) {
      const e = walk.currentNode.parentElement;
      const text = walk.currentNode.data.trim();
      if (!text || !visible(e) || e.closest('option')) continue;
      const style = getComputedStyle(e);
      const scale = e.ownerSVGElement ? e.getScreenCTM().a : 1;
      if (parseFloat(style.fontSize) === 0) continue;
      const ink = rgb(e.ownerSVGElement ? style.fill : style.color);
      const colors = [ink, behind(e)].map(c => c.slice(0, 3).map(x => x / 255));
      found.push({ text, size: parseFloat(style.fontSize) * scale,
        svg: !!e.ownerSVGElement, colors });
    }
    return found;
  };
  const CONTROLS = 'input, select, button, .al-handle, [tabindex="0"][role]';
  const controls = () => [...root.querySelectorAll(CONTROLS)].filter(e =>
    visible(e) && !e.closest('.al-numbers, .al-share') && !e.matches('td, [disabled]'));
  const kind = e => e.matches('.al-handle, .bk-handle') ? 'handle' :
    e.matches('input') ? e.type : e.tagName.toLowerCase();
  const drawn = () => [...root.querySelectorAll(
    '.al-stages svg, .al-stages table, .hs-blocks, .bk-both > *, .mh-heads')]
    .filter(e => visible(e) && !e.closest('.al-numbers'));
  const html = e => e.outerHTML.replace(/ tabindex="[^"]*"/g, '');
  const hits = (a, b, x = 1, y = x) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > x
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > y;
  return { visible, box, texts, controls, kind, drawn, html, rgb, behind, hits };
}"""


def ask(root, question):
    """Evaluate a question of JavaScript, in which what PARTS gives is at hand."""
    names = "visible, box, texts, controls, kind, drawn, html, rgb, behind, hits"
    return root.evaluate(
        f"async root => {{ const {{ {names} }} = ({PARTS})(root); {question} }}"
    )


def controls(root):
    root.evaluate(
        f"""root => {{ const {{ controls, kind }} = ({PARTS})(root);
          controls().filter(e => !e.matches('.al-tab'))
            .forEach(e => e.setAttribute('data-kind', kind(e))); }}"""
    )
    return root.locator("[data-kind]").all()


# Numbers are on demand: the reader opens them.
READ = """root => {
  [...root.querySelectorAll('.al-tab[aria-expanded=false]:not([hidden])')]
    .filter(tab => tab.textContent === 'More').forEach(tab => tab.click());
  return Object.fromEntries([...root.querySelectorAll('table[role=grid]')]
  .filter(table => table.checkVisibility() && !table.matches('.al-heat, .al-bars'))
  .map(table => [table.getAttribute('aria-label'), [...table.tBodies[0].rows].map(
    row => [...row.querySelectorAll('td')].map(
      cell => cell.firstElementChild?.value ?? cell.textContent))])) }
"""
# What squares and bars are drawn as: the share of color or length, and their name.
READ_DRAWN = """root => Object.fromEntries(
  [...root.querySelectorAll('.al-heat, .al-bars')]
  .filter(table => table.checkVisibility())
  .map(table => [table.getAttribute('aria-label').replace(', drawn', ''),
    [...table.tBodies[0].rows].map(row => [...row.querySelectorAll('td')].map(
      cell => [cell.getAttribute('aria-label'),
               parseFloat(cell.style.getPropertyValue('--tone')) || 0]))]))
"""
# What a failure says, of the lab's row in table.py.
TITLES = "the titles on screen on the left, on the right those of its row's"
BOTH = (
    "on screen on the left, by PyTorch on the right. If all of it differs, its row may "
    "make another value of a control than the screen does."
)


def row_of(lab):
    return ROWS[type(lab).__name__]


def on_page(page, name):
    return page.locator(f'.attn-lab[aria-label="{getattr(labs, name).title}"]')


def check(root, lab):
    """Require the lab on screen to show PyTorch's numbers, in grids or its own way."""
    row = row_of(lab)
    if row.shows:
        return row.shows(root, lab)
    if not row.numbers:
        return None
    expected = row.numbers(lab)
    found = root.evaluate(READ)
    assert set(found) == set(expected), f"{lab}: {TITLES} `numbers`"
    for label, rows in expected.items():
        assert found[label] == rows, f"{lab}: {label}: {BOTH}"
    return check_drawn(root, lab)


def check_drawn(root, lab):
    """Require squares and bars to be as dark or long as PyTorch's numbers are large."""
    found = root.evaluate(READ_DRAWN)
    expected = row_of(lab).drawn(lab)
    if expected:
        assert set(found) == set(expected), f"{lab}: {TITLES} `drawn`"
    for title, (values, shares) in expected.items():
        cells = [cell for row in found[title] for cell in row]
        words = values if isinstance(values, list) else texts(values)
        names = [word for row in words for word in row]
        assert [name for name, _ in cells] == names, f"{lab}: {title}: {BOTH}"
        wanted = (
            100 * torch.as_tensor(shares).nan_to_num(0, 0, 0).clamp(-1, 1).flatten()
        )
        tones = torch.tensor([tone for _, tone in cells], dtype=torch.float64)
        torch.testing.assert_close(tones, wanted.double(), atol=0.051, rtol=0)


def wait_until_shown(root, lab, seconds=600):
    """Require what ``check`` does, once a message from a kernel has come."""
    end = time.monotonic() + seconds
    while True:
        try:
            return check(root, lab)
        except AssertionError:
            if time.monotonic() > end:
                raise
        root.page.wait_for_timeout(250)


def drawn(page):
    """Wait until all that was asked for so far is on the screen."""
    page.evaluate(DRAWN)


def settings(root):
    """Open what is on demand among the controls, where the lab has it."""
    tab = root.get_by_role("button", name="More", exact=True, expanded=False)
    if tab.count():
        tab.click()


def text_of(root, kind):
    """Give what the lab says: its "summary", "readout" or "task"."""
    return root.locator(f".al-{kind}").text_content()


def reset(root):
    root.get_by_role("button", name="Reset", exact=True).click()


# ---- hands that set what a row of the table says ----


def find(root, kind, label):
    if kind == "range":  # its name ends with its value, since the label holds both
        text_ = root.page.locator(f'span:text-is("{label}")')
        return root.locator("label.al-control").filter(has=text_).locator("input")
    role = {"select": "combobox", "number": "spinbutton"}.get(kind, kind)
    return root.get_by_role(role, name=label, exact=True)


def read_output(control, kind):
    words = control.evaluate("bar => bar.parentElement.querySelector('output').value")
    return kind(float(words.split()[0]))


def with_mouse(page, control, kind, wanted):
    if kind == "range":
        control.scroll_into_view_if_needed()
        box = control.bounding_box()
        page.mouse.click(box["x"] + box["width"] * 0.8, box["y"] + box["height"] / 2)
    elif kind == "select":
        control.select_option(index=next(iter(wanted.values()))[0])
    elif kind == "number":
        control.click(click_count=3)
        page.keyboard.type(str(next(iter(wanted.values()))))
    else:
        control.click()


def with_keyboard(page, control, kind, wanted):
    control.focus()
    if kind == "range":
        page.keyboard.press("ArrowRight")
    elif kind == "select":
        way = next(iter(wanted.values()))[0] - control.evaluate("e => e.selectedIndex")
        for _ in range(abs(way)):
            page.keyboard.press("ArrowDown" if way > 0 else "ArrowUp")
    elif kind == "number":
        page.keyboard.press("Control+a")
        page.keyboard.type(str(next(iter(wanted.values()))))
    elif kind == "radio":
        # From the chosen one, as a reader would go.
        way = control.evaluate(
            """box => { const all = [...box.form.querySelectorAll('input[type=radio]')];
              const checked = all.findIndex(one => one.checked);
              all[checked].focus();
              return all.indexOf(box) - checked }"""
        )
        for _ in range(abs(way)):
            page.keyboard.press("ArrowRight" if way > 0 else "ArrowLeft")
    else:
        page.keyboard.press("Enter" if kind == "button" else "Space")


def set_in_python(lab, control, kind, wanted):
    for name, value in wanted.items():
        if callable(value):
            value = read_output(control, value)
        elif isinstance(value, tuple):
            value = value[1]
        setattr(lab, name, value)


# ---- hands that move something ----


def press(page, control, *keys):
    control.focus()
    for key in keys:
        page.keyboard.press(key)


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


# Three ways to move a mark to the left and down.
HANDS = {
    "mouse": lambda page, mark: drag(page, mark, -40, 60),
    "touch": lambda page, mark: drag(page, mark, -40, 60, touch=True),
    "keys": lambda page, mark: press(
        page, mark, "ArrowLeft", "ArrowDown", "Shift+ArrowDown"
    ),
}
