"""What must hold when a lab is moved: its numbers follow, and its controls stay.

Each check gets the lab's root on the page of all labs, the page, and the lab's name.
"""

from tests.coding_attention.labs.harness import (
    COLUMN,
    ask,
    check,
    controls,
    drag,
    drawn,
    find,
    press,
    read_output,
    reset,
    set_in_python,
)
from tests.coding_attention.labs.table import ROWS, bounded

# ---- every control that the table names, against PyTorch ----


def numbers_follow(hand):
    """Require PyTorch's numbers after each control, and the first ones after Reset."""

    def asked(root, page, name):
        lab = ROWS[name].make()
        check(root, lab)
        for kind, label, wanted in ROWS[name].controls:
            if label == "by":  # it moves a token only if one is chosen
                root.get_by_label("Change token").select_option(index=1)
                lab.nudged = 0
            control = find(root, kind, label)
            before = lab.get_state()
            hand(page, control, kind, wanted)
            set_in_python(lab, control, kind, wanted)
            assert lab.get_state() != before, f"{label} changed nothing"
            check(root, lab)
            reset(root)
            lab = ROWS[name].make()
            check(root, lab)

    return asked


def reaches_both_ends(root, page, name):
    """Require sliders and fields to reach what Python takes, and no more."""
    ends = dict(bounded(ROWS[name].make()))
    for kind, label, wanted in ROWS[name].controls:
        if kind not in ("range", "number"):
            continue
        control = find(root, kind, label)
        for which, (end, _) in enumerate(ends[next(iter(wanted))]):
            if kind == "range":
                control.press(("Home", "End")[which])
                assert read_output(control, float) == end, label
            else:
                assert float(control.get_attribute(("min", "max")[which])) == end


# ---- every control that the lab has, whatever it is ----

STATE = """JSON.stringify([...drawn().map(html),
  ...[...root.querySelectorAll('.al-summary, .al-readout')].map(e => e.textContent),
  ...[...root.querySelectorAll('input')].map(e => e.checked)])"""
# Where there is room: to the right from the least value, else to the left.
WAY = """e => (e.type === 'range' ? e.value === e.min
  : e.getAttribute('aria-valuenow') === e.getAttribute('aria-valuemin')) ? 1 : -1"""


def by_mouse(page, control, kind, touch=False):
    if kind == "select":
        count = control.locator("option").count()
        now = control.evaluate("e => e.selectedIndex")
        return control.select_option(index=(now + 1) % count)
    if kind in ("number", "text"):
        control.fill("2" if kind == "number" else "one")
        return control.blur()
    if kind == "handle":
        way = control.evaluate(WAY)
        return drag(page, control, 45 * way, 45, touch)
    if kind == "range":
        control.scroll_into_view_if_needed()
        box = control.bounding_box()
        at = box["width"] * (0.5 + 0.4 * control.evaluate(WAY))
        return page.mouse.click(box["x"] + at, box["y"] + box["height"] / 2)
    return control.tap() if touch else control.click()


def by_touch(page, control, kind):
    return by_mouse(page, control, kind, touch=True)  # lists are the system's own


def by_keys(page, control, kind):
    if kind == "select":
        return by_mouse(page, control, kind)
    if kind in ("number", "text"):
        press(page, control, "Control+a")
        return page.keyboard.type("2" if kind == "number" else "one")
    arrow = "ArrowRight" if control.evaluate(WAY) > 0 else "ArrowLeft"
    keys = {"range": [arrow], "handle": [arrow, f"Shift+{arrow}"]}
    keys |= {"radio": ["ArrowRight"], "checkbox": ["Space"]}
    return press(page, control, *keys.get(kind, ["Enter"]))


def back(root):
    for name in ("Stop", "Reset"):
        for button in root.get_by_role("button", name=name, exact=True).all():
            button.click()


def moves(hand):
    """Require that of each kind of control at least one changes what is drawn."""

    def asked(root, page, name):
        changed = {}
        for control in controls(root):
            kind = control.get_attribute("data-kind")
            start = control.text_content() == "Reset"
            if changed.get(kind) or start or not control.is_visible():
                continue
            ask(root, f"root.before = {STATE};")
            hand(page, control, kind)
            drawn(page)
            changed[kind] = ask(root, f"return {STATE} !== root.before")
            back(root)
        idle = [kind for kind, moved in changed.items() if not moved]
        assert changed, "there is nothing to move"
        assert not idle, f"nothing drawn or told follows these controls: {idle}"

    return asked


# ---- what plays, and what holds still ----

# Plays to the end at once: how long each step waits, and how many steps there are.
PLAYED = """async button => {
  const [set, clear] = [setInterval, clearInterval];
  const waits = [];
  let step = null;
  window.setInterval = (next, wait) => { step = next; waits.push(wait); return 1; };
  window.clearInterval = () => (step = null);
  button.click();
  let count = 1;
  for (; step && count < 999; count++) { step(); await null; }
  [window.setInterval, window.clearInterval] = [set, clear];
  return [...waits, count];
}"""


def plays_at_a_pace_that_eyes_follow(root, page, name):
    """Require a play of ten seconds at most, which ends by itself."""
    for play in root.get_by_role("button", name="Play", exact=True).all():
        wait, count = play.evaluate(PLAYED)
        assert 100 <= wait <= (1500 if count < 10 else 200), "milliseconds"
        assert wait * count <= 10_000
        assert play.text_content() == "Play"


def holds_still(root, page, name):
    """Require that nothing glides, blinks or plays on where motion is not wanted."""
    styled = """all => all.filter(e => getComputedStyle(e).transitionDuration !== '0s'
      || getComputedStyle(e).animationName !== 'none').map(e => e.outerHTML)"""
    assert root.locator("*").evaluate_all(styled) == []
    for control in controls(root)[:12]:
        kind = control.get_attribute("data-kind")
        if not control.is_visible() or kind not in ("button", "select"):
            continue
        by_mouse(page, control, kind)
        # The lab's own: what the theme does about a click is not its business.
        moving = "root => root.getAnimations({ subtree: true }).length"
        assert root.evaluate(moving) == 0
        # A play makes one step, and has no timer that would go on.
        assert not root.get_by_role("button", name="Stop", exact=True).count()


# ---- controls stay where they are ----

# Uses every control in every way that it has; gives which others moved, and by whom.
MOVED = """async root => {
  // Words of another sentence are another drawing.
  let sentence = false;
  const all = () => [...root.querySelectorAll('input, select, button')].filter(e =>
    e.checkVisibility() && !e.closest('[role=grid]')
    && !(sentence && e.matches('.lk-word')));
  const at = e => {
    const [box, home] = [e, root].map(one => one.getBoundingClientRect());
    return [box.x - home.x, box.y - home.y, box.width].map(Math.round).join();
  };
  const name = e => e.labels?.[0]?.textContent || e.textContent || e.type;
  const wait = () => new Promise(done =>
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))));
  const found = [];
  const tables = root.querySelector('.al-numbers');
  const height = () => Math.round(root.getBoundingClientRect().height
    - tables.getBoundingClientRect().height);
  const use = async (e, way) => {
    const before = all().map(one => [one, at(one)]);
    const high = height();
    way();
    await wait();
    // What is on demand may take room, and other sizes may be another drawing.
    if (!e.closest('.al-tabs, .al-panel') && height() !== high) {
      found.push(`${name(e)} makes the lab ${height()} high, after ${high}`);
    }
    for (const [one, was] of before) {
      if (one.isConnected && one.checkVisibility() && at(one) !== was) {
        found.push(`${name(e)} moves ${name(one)}: ${was} to ${at(one)}`);
      }
    }
    if (e.textContent === 'Stop') e.click();
  };
  const tell = (e, kind, value) => () => {
    if (kind === 'change') e.selectedIndex = value; else e.value = value;
    e.dispatchEvent(new Event(kind, { bubbles: true }));
  };
  for (const tab of root.querySelectorAll('.al-tab:not([hidden], [disabled])')) {
    for (let n = 0; n < 2; n++) await use(tab, () => tab.click());
  }
  const open = [...root.querySelectorAll('.al-tab:not([hidden])')]
    .find(tab => tab.textContent === 'More');
  open?.click();
  await wait();
  const list = all().filter(e => !e.matches('.al-tab, [type=text]'));
  for (const e of list) {
    if (!e.isConnected || !e.checkVisibility() || e.disabled) continue;
    sentence = e.textContent === 'Another sentence' || name(e).startsWith('Head');
    if (e.matches('select')) {
      for (let i = 0; i < e.options.length; i++) await use(e, tell(e, 'change', i));
    } else if (e.matches('[type=range], [type=number]')) {
      for (const value of [e.min, e.max, e.min]) await use(e, tell(e, 'input', value));
    } else await use(e, () => e.click());
    [...root.querySelectorAll('button')].find(b => b.textContent === 'Reset')?.click();
    await wait();
  }
  return [list.length, found];
}"""


def no_control_moves(root, page, name):
    """Require that no control moves another one, or changes how high the lab is."""
    page.emulate_media(reduced_motion="reduce")
    if page.viewport_size["width"] > 1000:
        page.add_style_tag(content=COLUMN)
    tab = root.get_by_role("button", name="More", exact=True, expanded=True)
    if tab.count():
        tab.click()
    count, found = root.evaluate(MOVED)
    assert count >= 3
    assert found == []
