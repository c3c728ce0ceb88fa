"""Every lab in every way that readers come: one table, lab × way, with no list of labs.

`python -m tests.coding_attention.labs.test_all_labs` runs it and prints the table. That
the numbers on screen are PyTorch's is the business of the other tests.
"""

import importlib
import sys
from pathlib import Path

import pytest

from coding_attention.labs import compose
from tests.coding_attention.labs import test_live, test_tiny_gpt
from tests.coding_attention.labs.conftest import build, page_of
from tests.coding_attention.labs.on_screen import training_lab
from tools.measure.visit import DRAWN

pytestmark = pytest.mark.browser

LABS = compose.scripts()  # class name: script
NEED_MORE = {"TrainingLab": training_lab, "TinyGptLab": test_tiny_gpt.lab}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
# A zoom of 200 % halves the pixels that a page has.
ZOOMED = {"viewport": {"width": 640, "height": 450}, "device_scale_factor": 2}


def class_of(name):
    module = importlib.import_module(f"coding_attention.labs.{Path(LABS[name]).stem}")
    return getattr(module, name)


def make(name):
    return NEED_MORE.get(name, class_of(name))()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A small site with a page for each lab."""
    made = {name: page_of(make(name)) for name in LABS}
    return build(tmp_path_factory.mktemp("all"), made)


# What the checks read. `texts`: each visible text with its size on screen and its
# contrast to what is behind it; `drawn`: what a lab draws; `controls`: what one moves.
READ = """root => {
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
  const CONTROLS = 'input, select, button, summary, .al-handle, [tabindex="0"][role]';
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
    """Evaluate a question of JavaScript, in which what READ gives is at hand."""
    names = "visible, box, texts, controls, kind, drawn, html, rgb, behind"
    return root.evaluate(
        f"async root => {{ const {{ {names} }} = ({READ})(root); {question} }}"
    )


STATE = """return [...drawn().map(html),
  ...[...root.querySelectorAll('.al-summary, .al-readout')].map(e => e.textContent),
  ...[...root.querySelectorAll('input')].map(e => e.checked)];"""


# Where there is room: to the right from the least value, else to the left.
WAY = """e => (e.type === 'range' ? e.value === e.min
  : e.getAttribute('aria-valuenow') === e.getAttribute('aria-valuemin')) ? 1 : -1"""


def controls(root):
    root.evaluate(
        f"""root => {{ const {{ controls, kind }} = ({READ})(root);
          controls().forEach(e => e.setAttribute('data-kind', kind(e))); }}"""
    )
    return root.locator("[data-kind]").all()


def by_mouse(page, control, kind):
    if kind == "select":
        count = control.locator("option").count()
        now = control.evaluate("e => e.selectedIndex")
        return control.select_option(index=(now + 1) % count)
    if kind in ("number", "text"):
        control.fill("2" if kind == "number" else "one")
        return control.blur()
    control.scroll_into_view_if_needed()
    box = control.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    if kind == "range":
        share = 0.5 + 0.4 * control.evaluate(WAY)
        return page.mouse.click(box["x"] + box["width"] * share, y)
    if kind == "handle":
        way = control.evaluate(WAY)
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + 20 * way, y + 20, steps=3)
        page.mouse.move(x + 45 * way, y + 45, steps=3)
        return page.mouse.up()
    return control.click()


def by_touch(page, control, kind):
    if kind in ("select", "number", "text", "range"):
        return by_mouse(page, control, kind)  # the system's own way to choose
    control.scroll_into_view_if_needed()
    if kind != "handle":
        return control.tap()
    box = control.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    session = page.context.new_cdp_session(page)
    way = control.evaluate(WAY)
    for event, far in (("touchStart", 0), ("touchMove", 20), ("touchMove", 45)):
        points = [{"x": x + far * way, "y": y + far}]
        session.send("Input.dispatchTouchEvent", {"type": event, "touchPoints": points})
    return session.send(
        "Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []}
    )


def by_keys(page, control, kind):
    if kind == "select":
        return by_mouse(page, control, kind)
    control.focus()
    if kind in ("number", "text"):
        page.keyboard.press("Control+a")
        return page.keyboard.type("2" if kind == "number" else "one")
    arrow = "ArrowRight" if control.evaluate(WAY) > 0 else "ArrowLeft"
    keys = {"range": [arrow], "handle": [arrow, f"Shift+{arrow}"]}
    keys |= {"radio": ["ArrowRight"], "checkbox": ["Space"]}
    for key in keys.get(kind, ["Enter"]):
        page.keyboard.press(key)
    return None


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
            before = ask(root, STATE)
            hand(page, control, kind)
            page.evaluate(DRAWN)
            changed[kind] = ask(root, STATE) != before
            back(root)
        changed.pop("summary", None)  # Numbers: they are not drawn
        assert changed
        assert all(changed.values()), changed

    return check


def together(root, page):
    """On a phone, one screen holds a control and a drawing that it moves."""
    for control in controls(root):
        kind = control.get_attribute("data-kind")
        if not control.is_visible() or kind == "summary":
            continue
        control.evaluate("e => e.setAttribute('data-moved', '')")
        before = root.evaluate(
            f"root => ({READ})(root).drawn().map(({READ})(root).html)"
        )
        by_keys(page, control, kind)
        page.evaluate(DRAWN)
        tall = root.evaluate(
            f"""(root, before) => {{ const {{ drawn, html, box }} = ({READ})(root);
              const {{ top, bottom }} = box(root.querySelector('[data-moved]'));
              return drawn().filter((e, i) => html(e) !== before[i]).map(box)
                .map(b => Math.max(b.bottom, bottom) - Math.min(b.top, top)) }}""",
            before,
        )
        words = "e => (e.labels?.[0] || e).textContent || e.ariaLabel"
        label = control.evaluate(words)
        control.evaluate("e => e.removeAttribute('data-moved')")
        assert not tall or min(tall) < 844, f"{label}: {min(tall):.0f} px apart"
        back(root)


def fits(root, page):
    """Nothing is wider than the page, cut off, or over another control."""
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    cut = ask(
        root,
        """return controls().filter(e => e.matches('button, select, summary') &&
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
    page.add_style_tag(content="html { font-size: 200% !important }")
    after = ask(root, "return texts()")
    pairs = [(a, b) for a, b in zip(before, after, strict=True) if not a["svg"]]
    assert pairs
    assert [a["text"] for a, b in pairs if b["size"] < 1.9 * a["size"]] == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


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
    assert ask(root, "return drawn().length") > 0
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


def works(root, page):
    assert ask(root, "return drawn().length") > 0


WAYS = {
    "mouse": ({}, moves(by_mouse)),
    "touch": (PHONE, moves(by_touch)),
    "keyboard": ({}, moves(by_keys)),
    "file": ({}, works),
    "forced colors": ({"forced_colors": "active", "color_scheme": "dark"}, marks_stay),
    "light": ({}, contrasts),
    "dark": ({"color_scheme": "dark"}, contrasts),
    "still": ({"reduced_motion": "reduce"}, holds_still),
    "zoom 200 %": (ZOOMED, fits),
    "text 200 %": ({}, grows),
    "390 px": (PHONE, fits),
    "together": (PHONE, together),
    "targets": (PHONE, large_targets),
    "12 px": ({"viewport": {"width": 1280, "height": 900}}, readable(12)),
    "11 px": (PHONE, readable(11)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", LABS)
def test_lab(visit, pages, serving, name, way):
    options, check = WAYS[way]
    one = visit(**options)
    home = f"file://{pages}" if way == "file" else serving(pages)
    page = one.open(f"{home}/{name}.html", until="domcontentloaded")
    root = page.locator(".attn-lab")
    root.wait_for()
    check(root, page)
    # Fonts of the theme may not load from a folder; the labs must not complain.
    assert [error for error in one.errors if way != "file" or "/labs." in error] == []
    assert way == "file" or one.third_parties() == []


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
def test_a_planted_fault_is_noticed(visit, pages, serving, way):
    options, check = WAYS[way]
    page = visit(**options).open(f"{serving(pages)}/ScaleLab.html")
    page.locator(".attn-lab").wait_for()
    page.add_style_tag(content=FAULTS[way])
    with pytest.raises(AssertionError):
        check(page.locator(".attn-lab"), page)


@pytest.mark.parametrize("way", ["no scripts"])
@pytest.mark.parametrize("name", LABS)
def test_static(visit, pages, serving, name, way):
    one = visit(java_script_enabled=False)
    page = one.open(f"{serving(pages)}/{name}.html", until="domcontentloaded")
    figure = page.locator(".attn-static")
    assert figure.is_visible()
    assert figure.locator("svg, table").count()
    assert page.locator(".attn-lab").count() == 0


@pytest.mark.parametrize("way", ["JupyterLab"])
@pytest.mark.parametrize("name", LABS)
def test_live_too(name, way):
    assert name in test_live.CELLS, "no test shows it in JupyterLab"


class Table:
    """Collects what came of each lab and way, for the table in the end."""

    def __init__(self):
        self.found = {}

    def pytest_runtest_logreport(self, report):
        name, _, way = report.nodeid.partition("[")[2].rstrip("]").partition("-")
        if name in LABS and (report.when == "call" or report.outcome != "passed"):
            self.found.setdefault(way, {})[name] = report.outcome

    def show(self):
        signs = {"passed": "yes", "failed": "NO", "skipped": "?"}
        print(f"{'':14}" + "".join(f"{name[:-3]:>11}" for name in LABS))
        for way, row in self.found.items():
            cells = (f"{signs[row.get(name, 'skipped')]:>11}" for name in LABS)
            print(f"{way:14}" + "".join(cells))


if __name__ == "__main__":
    table = Table()
    code = pytest.main([__file__, "-q", "--no-header", *sys.argv[1:]], plugins=[table])
    table.show()
    sys.exit(code)
