"""Every lab in every way that readers come: one table, lab × way, with no list of labs.

`python -m tests.coding_attention.labs.test_ways` runs it and prints the table. All labs
stand on one page, which each way opens once.
"""

import sys
from contextlib import contextmanager

import pytest

from tests.coding_attention.labs.harness import (
    PHONE,
    check,
    drag,
    drawn,
    press,
    settings,
)
from tests.coding_attention.labs.table import IN_GRIDS, ROWS, class_of
from tools.measure.visit import visiting

pytestmark = pytest.mark.site

LABS = list(ROWS)
# A zoom of 200 % halves the pixels that a page has.
ZOOMED = {"viewport": {"width": 640, "height": 450}, "device_scale_factor": 2}
WIDE = {"viewport": {"width": 1280, "height": 900}}


# What the checks read. `texts`: each visible text with its size on screen and its
# contrast to what is behind it; `drawn`: what a lab draws; `controls`: what one moves.
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
  const light = color => {
    const [r, g, b] = color.map(x => x / 255)
      .map(x => (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
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
      const [a, b] = [light(ink), light(behind(e))].sort((x, y) => y - x);
      found.push({ text, size: parseFloat(style.fontSize) * scale,
        svg: !!e.ownerSVGElement, contrast: (a + 0.05) / (b + 0.05) });
    }
    return found;
  };
  const CONTROLS = 'input, select, button, .al-handle, [tabindex="0"][role]';
  const controls = () => [...root.querySelectorAll(CONTROLS)].filter(e =>
    visible(e) && !e.closest('.al-numbers') && !e.matches('td, [disabled]'));
  const kind = e => e.matches('.al-handle, .bk-handle') ? 'handle' :
    e.matches('input') ? e.type : e.tagName.toLowerCase();
  const drawn = () => [...root.querySelectorAll(
    '.al-stages svg, .al-stages table, .hs-blocks, .bk-both > *, .mh-heads')]
    .filter(e => visible(e) && !e.closest('.al-numbers'));
  const html = e => e.outerHTML.replace(/ tabindex="[^"]*"/g, '');
  return { visible, box, texts, controls, kind, drawn, html, rgb, behind };
}"""


def ask(root, question):
    """Evaluate a question of JavaScript, in which what PARTS gives is at hand."""
    names = "visible, box, texts, controls, kind, drawn, html, rgb, behind"
    return root.evaluate(
        f"async root => {{ const {{ {names} }} = ({PARTS})(root); {question} }}"
    )


STATE = """JSON.stringify([...drawn().map(html),
  ...[...root.querySelectorAll('.al-summary, .al-readout')].map(e => e.textContent),
  ...[...root.querySelectorAll('input')].map(e => e.checked)])"""


# Where there is room: to the right from the least value, else to the left.
WAY = """e => (e.type === 'range' ? e.value === e.min
  : e.getAttribute('aria-valuenow') === e.getAttribute('aria-valuemin')) ? 1 : -1"""


def controls(root):
    root.evaluate(
        f"""root => {{ const {{ controls, kind }} = ({PARTS})(root);
          controls().filter(e => !e.matches('.al-tab'))
            .forEach(e => e.setAttribute('data-kind', kind(e))); }}"""
    )
    return root.locator("[data-kind]").all()


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

    def check(root, page):
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

    return check


def together(root, page):
    """On a phone, one screen holds a control and a drawing that it moves."""
    for control in controls(root):
        kind = control.get_attribute("data-kind")
        if not control.is_visible():
            continue
        control.evaluate("e => e.closest('.attn-lab').moved = e")
        ask(root, "root.before = drawn().map(html);")
        by_keys(page, control, kind)
        drawn(page)
        label, tall = ask(
            root,
            """const { top, bottom } = box(root.moved);
               return [(root.moved.labels?.[0] || root.moved).textContent
                 || root.moved.ariaLabel,
                 drawn().filter((e, i) => html(e) !== root.before[i]).map(box)
                   .map(b => Math.max(b.bottom, bottom) - Math.min(b.top, top))];""",
        )
        assert not tall or min(tall) < 844, f"{label}: {min(tall):.0f} px apart"
        back(root)


def fits(root, page):
    """Nothing is wider than the page, cut off, or over another control."""
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    cut = ask(
        root,
        """return controls().filter(e => e.matches('button, select') &&
             e.scrollWidth > e.clientWidth + 3).map(e => e.textContent)""",
    )
    assert cut == []
    over = ask(
        root,
        """const all = controls().filter(e => !e.ownerSVGElement && !e.matches('svg'))
             .map(e => [e, box(e)]);
           const hits = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 &&
             a.top < b.bottom - 1 && b.top < a.bottom - 1;
           return all.flatMap(([e, a], i) => all.slice(i + 1)
             .filter(([f, b]) => hits(a, b) && !e.contains(f) && !f.contains(e))
             .map(([f]) => [e.outerHTML.slice(0, 80), f.outerHTML.slice(0, 80)]))""",
    )
    assert over == []


def readable(least):
    def check(root, page):
        small = [t for t in ask(root, "return texts()") if t["size"] < least - 0.05]
        assert small == []

    return check


def grows(root, page):
    """Sizes are in rem: twice the reader's size of text is twice the lab's."""
    before = ask(root, "return texts()")
    with styled(page, "html { font-size: 200% !important }"):
        after = ask(root, "return texts()")
        over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    pairs = [(a, b) for a, b in zip(before, after, strict=True) if not a["svg"]]
    assert pairs
    assert [a["text"] for a, b in pairs if b["size"] < 1.9 * a["size"]] == []
    assert over <= 0


def contrasts(root, page):
    poor = [t for t in ask(root, "return texts()") if t["contrast"] < 4.5]
    assert poor == []


def large_targets(root, page):
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


def marks_stay(root, page):
    """With forced colors, no mark has the color of what is behind it."""
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
    contrasts(root, page)


def holds_still(root, page):
    for control in controls(root)[:12]:
        if control.is_visible() and control.get_attribute("data-kind") == "button":
            control.click()
            # The lab's own: what the theme does about a click is not its business.
            moving = "root => root.getAnimations({ subtree: true }).length"
            assert root.evaluate(moving) == 0
            for button in root.get_by_role("button", name="Stop").all():
                button.click()


WAYS = {
    "mouse": ({}, moves(by_mouse)),
    "touch": (PHONE, moves(by_touch)),
    "keyboard": ({}, moves(by_keys)),
    "forced colors": ({"forced_colors": "active", "color_scheme": "dark"}, marks_stay),
    "light": ({}, contrasts),
    "dark": ({"color_scheme": "dark"}, contrasts),
    "still": ({"reduced_motion": "reduce"}, holds_still),
    "zoom 200 %": (ZOOMED, fits),
    "text 200 %": ({}, grows),
    "390 px": (PHONE, fits),
    "together": (PHONE, together),
    "targets": (PHONE, large_targets),
    "12 px": (WIDE, readable(12)),
    "11 px": (PHONE, readable(11)),
}


@pytest.fixture(scope="module", params=WAYS)
def come(request, browser, served):
    """The page of all labs, opened in one way; gives it and what is asked of a lab."""
    options, check = WAYS[request.param]
    with visiting(browser, **options) as visit:
        visit.open(f"{served}/all.html")
        visit.page.locator(".attn-lab").nth(len(LABS) - 1).wait_for()
        yield visit, check


@pytest.mark.parametrize("name", LABS)
def test_lab(come, name):
    visit, check = come
    root = on_page(visit.page, name)
    others = f'.attn-lab:not([aria-label="{class_of(name).title}"])'
    with styled(visit.page, f"{others} {{ display: none !important }}"):
        settings(root)
        check(root, visit.page)
    assert visit.errors == []
    assert visit.third_parties() == []


def on_page(page, name):
    return page.locator(f'.attn-lab[aria-label="{class_of(name).title}"]')


@contextmanager
def styled(page, rules):
    sheet = page.add_style_tag(content=rules)
    try:
        yield
    finally:
        sheet.evaluate("sheet => sheet.remove()")


FAULTS = {
    "12 px": ".attn-lab .al-title { font-size: 0.7rem }",
    "text 200 %": ".attn-lab .al-title { font-size: 14px }",
    "light": ".attn-lab .al-summary { color: #999 }",
    "targets": ".attn-lab .al-button { zoom: 0.3 }",
    "390 px": ".attn-lab .al-controls { width: 900px }",
    "zoom 200 %": ".attn-lab .al-button { margin: -20px !important }",
    "together": ".attn-lab .al-stages { margin: 1200px 0 !important }",
    "forced colors": ".attn-lab .al-curve { stroke: Canvas !important }",
    "still": "@keyframes x { to { opacity: 0 } } form { animation: x 9s }",
}


@pytest.mark.parametrize("way", FAULTS)
def test_a_planted_fault_is_noticed(visit, served, way):
    options, check = WAYS[way]
    page = visit(**options).open(f"{served}/ScaleLab.html")
    page.locator(".attn-lab").wait_for()
    page.add_style_tag(content=FAULTS[way])
    with pytest.raises(AssertionError):
        check(page.locator(".attn-lab"), page)


def test_without_scripts_every_static_figure_stands(visit, served):
    page = visit(java_script_enabled=False).open(f"{served}/all.html")
    figures = page.locator(".attn-static")
    assert figures.count() == len(LABS)
    for figure in figures.all():
        assert figure.is_visible()
        assert figure.locator("svg, table").count()
    assert page.locator(".attn-lab").count() == 0


def test_from_a_folder_every_lab_works(visit, lab_site):
    one = visit(fresh=True)
    page = one.open(f"file://{lab_site}/all.html")
    page.locator(".attn-lab").nth(len(LABS) - 1).wait_for()
    for name in LABS:
        moves(by_keys)(on_page(page, name), page)
    for name in IN_GRIDS:
        check(on_page(page, name), ROWS[name].make())
    # Fonts of the theme may not load from a folder; the labs must not complain.
    assert not [error for error in one.errors if "_static/labs" in error]


class Table:
    """Collects what came of each lab and way, for the table in the end."""

    def __init__(self):
        self.found = {}

    def pytest_runtest_logreport(self, report):
        way, _, name = report.nodeid.partition("[")[2].rstrip("]").rpartition("-")
        if name in LABS and (report.when == "call" or report.outcome != "passed"):
            self.found.setdefault(way, {})[name] = report.outcome

    def show(self):
        signs = {"passed": "yes", "failed": "NO", "skipped": "?"}
        wide = max(map(len, LABS)) - 1  # a name without "Lab", and two spaces
        print(f"{'':14}" + "".join(f"{name[:-3]:>{wide}}" for name in LABS))
        for way, row in self.found.items():
            cells = (f"{signs[row.get(name, 'skipped')]:>{wide}}" for name in LABS)
            print(f"{way:14}" + "".join(cells))


if __name__ == "__main__":
    table = Table()
    # Imported anew below, by pytest, which writes out what its asserts compare.
    del sys.modules["tests.coding_attention.labs.harness"]
    code = pytest.main([__file__, "-q", "--no-header", *sys.argv[1:]], plugins=[table])
    table.show()
    sys.exit(code)
