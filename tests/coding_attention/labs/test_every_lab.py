"""What holds for every lab: what it says of a cell, its marks, its links, its image.

All labs stand on one page. A lab that is added is measured as the others are.
"""

import io
import math
import re
from urllib.parse import unquote

import pytest
import torch
from PIL import Image
from traitlets import TraitError

from coding_attention.labs import base
from tests.coding_attention.labs.harness import (
    find,
    follow,
    read_output,
    settings,
    with_keyboard,
)
from tests.coding_attention.labs.table import ROWS
from tests.coding_attention.labs.test_ways import LABS, on_page
from tools.measure.visit import visiting

pytestmark = pytest.mark.site


@pytest.fixture(scope="module")
def page(browser, served):
    """The page of all labs, of light colors and two pixels a pixel."""
    with visiting(browser, device_scale_factor=2) as visit:
        page = visit.open(f"{served}/all.html")
        page.locator(".attn-lab").nth(len(LABS) - 1).wait_for()
        for name in LABS:
            settings(on_page(page, name))
        yield page
        assert visit.errors == []


@pytest.fixture
def root(page, request):
    """The lab of this name, as at first."""
    root = on_page(page, request.param)
    yield root
    root.get_by_role("button", name="Reset", exact=True).click()


each_lab = pytest.mark.parametrize("root", LABS, indirect=True)


# ---- what is said of a cell ----

# Of each cell: its grid, the heads of its row and column, its text, what is told of it.
SAID = """root => [...root.querySelectorAll('table[role=grid]')]
  .filter(table => table.checkVisibility()).flatMap(table =>
    [...table.tBodies[0].rows].flatMap(row =>
      [...row.querySelectorAll('td')].map(td => {
      const board = td.closest('.mc-board');
      const line = board?.querySelector('.al-line')
        ?? root.querySelector('.al-readout');
      line.textContent = '';
      td.dispatchEvent(new PointerEvent('pointerover', { bubbles: true }));
      return [table.ariaLabel, row.cells[0].textContent,
        table.tHead.rows[0].cells[td.cellIndex].textContent,
        td.firstElementChild?.value ?? (td.ariaLabel || td.textContent),
        line.textContent];
    })))"""
NUMBER = re.compile(r"-?(?:\d+\.?\d*|inf\b|nan\b)")
# A sum and its result: 0.5·0.2 + 1·0.1 = 0.2, exp(1) / (exp(1) + exp(2)) = 0.2689.
SUM = re.compile(
    r"(?:(?<=[:;=] )|(?<=so ))((?:exp|√|\(|-?\d)[-\d.()·+*/ √expinf]*) = (-?[\d.]+)"
)


def value(spelled):
    """Give the value of a sum as labs spell it."""
    plain = re.sub(r"√(\d+)", r"sqrt(\1)", spelled).replace("·", "*")
    return eval(plain, {"exp": math.exp, "sqrt": math.sqrt, "inf": math.inf})


def unit(number):
    """Give what the last digit of a number is worth."""
    return 10.0 ** -len(number.partition(".")[2])


def check_said(root, tokens):
    """Require that of each cell its number is told, its tokens, and sums that hold."""
    silent = set()
    for grid, row, column, text, said in root.evaluate(SAID):
        where = f"{grid}, {row}, {column}, {text}: {said}"
        if not said:
            silent.add(grid)
            continue
        for token in {row, column} & set(tokens):
            assert re.search(rf"\b{token}\b", said), where
        if NUMBER.fullmatch(text) and "hidden" not in said:
            told = [float(x) for x in NUMBER.findall(said)]
            found = [x for x in told if abs(x - float(text)) <= 1.01 * unit(text)]
            assert found or text in said, where
        for spelled, result in SUM.findall(said):
            near = pytest.approx(float(result), abs=5 * unit(result), nan_ok=True)
            assert value(spelled) == near, where
    assert silent <= {"Scores"}  # of the training lab: they are what they are


@each_lab
def test_every_number_is_told_and_every_sum_holds(root, page, request):
    name = request.node.callspec.params["root"]
    lab = ROWS[name].make()
    for fold in ("Numbers", "Look inside"):
        tab = root.get_by_role("button", name=fold, exact=True, expanded=False)
        if tab.count():
            tab.click()
    tokens = getattr(lab, "tokens", [])
    check_said(root, tokens)
    for kind, label, wanted in ROWS[name].controls:
        control = find(root, kind, label)
        with_keyboard(page, control, kind, wanted)
        check_said(root, tokens)
        root.get_by_role("button", name="Reset", exact=True).click()


# ---- marks that are moved ----

# A mark: its middle on screen, its numbers, and the ends of its way where it has one.
MARK = """mark => {
  const dot = mark.querySelector('.bk-dot, .al-point') || mark.querySelector('.al-dot')
    || mark;
  const { x, y, width, height } = dot.getBoundingClientRect();
  const [min, max] = ['min', 'max'].map(end => mark.getAttribute(`aria-value${end}`));
  const told = mark.getAttribute('aria-valuetext') || mark.ariaLabel.split(': ')[1];
  return { x: x + width / 2, y: y + height / 2, told, now: Number(mark.ariaValueNow),
    ends: max && [Number(min), Number(max)] };
}"""
# Where ticks stand on the screen, by their text, of the drawing that a mark is in.
TICKS = """mark => Object.fromEntries(
  [...mark.ownerSVGElement.querySelectorAll('.al-axes text[text-anchor=middle]')]
  .map(e => [e.textContent, e.getBoundingClientRect()])
  .map(([text, { x, width }]) => [text, x + width / 2]))"""


# Presses keys, each followed by what the lab makes of it; gives where the mark is then.
# "all KEY" presses as many times as it takes until nothing moves, and gives each.
PRESS = f"""async (mark, keys) => {{
  const at = {MARK};
  const press = async key => {{
    mark.dispatchEvent(new KeyboardEvent('keydown', {{ bubbles: true,
      key: key.replace('Shift+', ''), shiftKey: key.startsWith('Shift+') }}));
    await null;
    await null;
    return at(mark);
  }};
  const found = [];
  for (const key of keys) {{
    const all = [await press(key.replace('all ', ''))];
    for (let n = 0; key.startsWith('all ') && n < 300; n++) {{
      all.push(await press(key.replace('all ', '')));
      if (JSON.stringify(all.at(-1)) === JSON.stringify(all.at(-2))) break;
    }}
    found.push(key.startsWith('all ') ? all : all[0]);
  }}
  return found;
}}"""
FAR = ("Shift+ArrowLeft", "Shift+ArrowDown", "Shift+ArrowRight", "Shift+ArrowUp")


def marks(root, line):
    """Give the marks on a line, or those in a plane."""
    found = [m for m in root.locator(".al-handle, .bk-handle").all() if m.is_visible()]
    return [m for m in found if bool(m.evaluate(MARK)["ends"]) == line]


def numbers(at):
    return [float(x) for x in NUMBER.findall(at["told"])]


def pull(page, mark, x, y):
    """Take a mark by its middle to a place on the screen, and let it go there."""
    at = mark.evaluate(MARK)
    page.mouse.move(at["x"], at["y"])
    page.mouse.down()
    page.mouse.move(x, y)
    page.mouse.up()
    return mark.evaluate(MARK)


@each_lab
def test_a_line_has_two_ends_and_stands_at_the_stop_next_to_the_hand(root, page):
    for mark in marks(root, line=True):
        mark.scroll_into_view_if_needed()
        low, high = mark.evaluate(MARK)["ends"]
        ((*_, start),) = mark.evaluate(PRESS, ["all Shift+ArrowLeft"])
        assert start["now"] == low
        keys = ["ArrowRight", "ArrowUp", "ArrowLeft", "ArrowDown", "Shift+ArrowRight"]
        *_, up, _, back, far = mark.evaluate(PRESS, keys)
        assert back == start
        again = mark.evaluate(PRESS, ["Shift+ArrowLeft", *["ArrowRight"] * 4])
        assert again[-1] == far
        assert up == again[2], "up is to the right"
        mark.evaluate(PRESS, ["all Shift+ArrowLeft"])
        (stops,) = mark.evaluate(PRESS, ["all ArrowRight"])
        stops = [start, *stops[:-1]]
        values = [stop["now"] for stop in stops]
        assert values == sorted(set(values))
        assert values[-1] == high
        ticks = mark.evaluate(TICKS)
        for stop in stops:
            assert f"{stop['now']:.0f}" in stop["told"]
            at = ticks.get(f"{stop['now']:.0f}", stop["x"])
            assert stop["x"] == pytest.approx(at, abs=0.6)
        left, right = start["x"], stops[-1]["x"]
        for share in (0.13, 0.42, 0.91):
            x = left + share * (right - left)
            now = pull(page, mark, x, start["y"])
            assert abs(now["x"] - x) <= min(abs(s["x"] - x) for s in stops) + 0.6
        assert pull(page, mark, left - 200, start["y"] + 90)["now"] == low
        assert pull(page, mark, right + 200, start["y"] - 90)["now"] == high


@each_lab
def test_a_mark_in_the_plane_goes_with_the_hand_and_stays_inside(root, page):
    for mark in marks(root, line=False)[-1:]:
        mark.scroll_into_view_if_needed()
        start = mark.evaluate(MARK)
        svg = mark.locator("xpath=ancestor::*[local-name()='svg'][1]")
        box = svg.bounding_box()
        x, y = box["x"] + 0.6 * box["width"], box["y"] + 0.4 * box["height"]
        at = pull(page, mark, x, y)
        assert (at["x"], at["y"]) == pytest.approx((x, y), abs=3)
        link = root.locator("input[readonly]").first.input_value()
        assert re.search(r"\.\d", link)
        assert not re.search(r"\.\d{3}", link), "a link of two decimals"
        a, b = numbers(at)
        digit = 1.01 * unit(at["told"].split(",")[0])
        # Each arrow, near and far, from there and back.
        steps = []
        for far in ("", "Shift+"):
            keys = [f"{far}Arrow{way}" for way in ("Right", "Up", "Left", "Down")]
            right, up, left, down = map(numbers, mark.evaluate(PRESS, keys))
            steps.append(step := right[0] - a)
            ways = [*right, *up, *left, *down]
            wanted = [a + step, b, a + step, b + step, a, b + step, a, b]
            assert ways == pytest.approx(wanted, abs=digit)
        assert 0 < 4 * steps[0] <= steps[1]
        ends = mark.evaluate(PRESS, [f"all {key}" for key in FAR])
        low, high = ends[1][-1], ends[3][-1]
        lower = box["x"] - 4, box["y"] + box["height"] + 4
        upper = box["x"] + box["width"] + 4, box["y"] - 4
        for corner, end in ((lower, low), (upper, high)):
            pulled = pull(page, mark, *corner)
            check_drawings(root)
            for axis in "xy":
                assert pulled[axis] == pytest.approx(end[axis], abs=1)
            mark.evaluate(PRESS, [f"all {key}" for key in FAR[2:]])
            assert box["x"] <= end["x"] <= box["x"] + box["width"]
            assert box["y"] <= end["y"] <= box["y"] + box["height"]
        # Nearly all of the plane is in reach.
        assert high["x"] - low["x"] > 0.7 * box["width"]
        assert low["y"] - high["y"] > 0.7 * box["height"]
        assert start["told"] != low["told"] != high["told"]


# ---- drawings ----

OUTSIDE = """root => [...root.querySelectorAll('.al-stages svg[viewBox]')]
  .filter(svg => svg.checkVisibility()).flatMap(svg => {
    const home = svg.getBoundingClientRect();
    const box = e => e.getBoundingClientRect();
    const out = b => b.left < home.left - 3 || b.right > home.right + 3
      || b.top < home.top - 3 || b.bottom > home.bottom + 3;
    const texts = [...svg.querySelectorAll('text')].filter(e =>
      e.textContent.trim() && e.checkVisibility({ visibilityProperty: true }));
    const labels = texts.filter(e => e.closest('.al-axes'));
    const hits = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.5
      && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 6;
    const shapes = [...svg.querySelectorAll(
      'path.al-curve, .al-bin, .al-point, .al-dot, .al-mean, .al-now, .al-frame')];
    return [
      ...texts.filter(e => out(box(e))).map(e => `${e.textContent} is outside`),
      ...shapes.filter(e => e.checkVisibility() && out(box(e)))
        .map(e => `${e.outerHTML.slice(0, 60)} is outside`),
      ...labels.flatMap((a, i) => labels.slice(i + 1).filter(b => hits(box(a), box(b)))
        .map(b => `${a.textContent} is over ${b.textContent}`)),
    ];
  })"""
# Each tick of an axis and its number: how far apart, along the axis and across.
TICK_GAPS = """root => [...root.querySelectorAll('.al-axes')]
  .filter(g => g.checkVisibility()).flatMap(g =>
    [...g.querySelectorAll('path + text')].filter(e => e.textContent).map(e => {
      const [t, p] = [e, e.previousSibling].map(one => one.getBBox());
      return /v4$/.test(e.previousSibling.getAttribute('d'))
        ? [t.x + t.width / 2 - p.x, t.y - p.y - 4]
        : [t.y + t.height / 2 - p.y, p.x - t.x - t.width];
    }).slice(0, -1))"""


# What does not stand where it should, of each drawing.
ASTRAY = """root => {
  const [bars] = [...root.querySelectorAll('.al-bars')].map(table =>
    [...table.querySelectorAll('td')].map(td => Number(td.ariaLabel)));
  return [...root.querySelectorAll('.al-stages svg[viewBox]')].flatMap(svg => {
    const found = [];
    const all = kind => [...svg.querySelectorAll(kind)]
      .filter(e => e.checkVisibility());
    const box = e => {
      const { x, y, width, height } = e.getBBox();
      return { left: x, right: x + width, top: y, bottom: y + height, width, height,
        x: x + width / 2, y: y + height / 2 };
    };
    const near = (a, b, by = 0.6) => Math.abs(a - b) <= by;
    const want = (good, e, what) =>
      good || found.push(`${what}: ${e.outerHTML.slice(0, 90)}`);
    const within = (a, b, by = 1) => a.left >= b.left - by && a.right <= b.right + by
      && a.top >= b.top - by && a.bottom <= b.bottom + by;
    if (svg.matches('.lk-lines, .mc-strip') || !svg.checkVisibility()) return [];
    const [ink, frame] = [box(svg), svg.viewBox.baseVal];
    want(Math.max(ink.left, ink.top, frame.width - ink.right,
      frame.height - ink.bottom) < 24, svg, 'it leaves room at an edge');
    // Charts: all within the axes, from one end to the other.
    const areas = all('.al-axes > path:first-child').map(box);
    const own = e => areas.find(area => within(box(e), area));
    for (const axis of all('.al-axes')) {
      for (const end of ['v4', 'h4']) {
        const count = axis.querySelectorAll(`path[d$=${end}]`).length;
        want(end === 'v4' ? count === 0 || count > 2 : count > 1 && count < 6,
          axis, `${count} ticks`);
      }
    }
    for (const e of all('.al-curve, .al-point:not(.al-now)')) {
      want(own(e) || e.matches('.al-point'), e, 'it is beyond the axes');
    }
    for (const e of all('.al-rule')) {
      want(areas.some(a => near(a.left, box(e).left) && near(a.right, box(e).right)),
        e, 'it does not reach from end to end');
    }
    const curves = all('.al-curve');
    for (const e of all('circle.al-bin, .al-point:not(.al-now)')) {
      const at = new DOMPoint(e.cx.baseVal.value, e.cy.baseVal.value);
      want(curves.some(curve => curve.isPointInStroke(at)), e, 'it is on no curve');
      want(e.r.baseVal.value <= 5, e, 'it is as large as a mark to be moved');
    }
    all('rect.al-bin').forEach((e, i, bins) => {
      const [b, area] = [box(e), own(e)];
      want(area && near(b.bottom, area.bottom), e, 'it does not stand on the axis');
      const step = area?.width / bins.length;
      want(near(b.x, area?.left + (i + 0.5) * step), e, 'it is not at its place');
      want(b.width > 0.7 * step && b.width <= step, e, 'it is too wide or thin');
    });
    // Marks: in the middle of what a hand can take, which is no larger than a finger.
    for (const e of all('.al-reach')) {
      const [b, size] = [box(e), e.tagName === 'rect' ? 'rect' : 'circle'];
      want(b.width >= 24 && b.width <= 32, e, 'it is too wide or thin for a hand');
      const dots = [...e.parentNode.querySelectorAll('circle:not(.al-reach)')];
      for (const dot of dots) {
        want(near(box(dot).x, b.x) && within(box(dot), b), e, 'its mark is not in it');
      }
      const lines = [...e.parentNode.querySelectorAll('line')];
      if (!lines.length) continue;
      want(lines.length === areas.length && lines.every((one, i) =>
        near(box(one).top, areas[i].top) && near(box(one).bottom, areas[i].bottom)),
        e, 'its lines are not as long as the axes');
      const [from, to] = [areas[0].top, areas.at(-1).bottom];
      want(dots.every(dot => box(dot).top >= from && box(dot).bottom <= to / 2),
        e, 'its dot is not at the top');
      want(b.top <= from && b.top >= from - 10 && b.bottom >= to && b.bottom <= to + 10,
        e, 'it does not reach along its lines');
    }
    // Planes: arrows from the middle to the marks, bands from these to the mean.
    const [cross] = all('.al-cross');
    if (cross) {
      const c = box(cross);
      want(near(c.left, c.top, 1) && near(frame.width - c.right, c.left, 1)
        && near(frame.height - c.bottom, c.top, 1), cross, 'it is not in the middle');
      const at = all('.al-dot').map(e => e.parentNode.transform.baseVal[0].matrix);
      const ends = e => ['x1', 'y1', 'x2', 'y2'].map(name => e[name].baseVal.value);
      const arrows = all('.al-arrow').map(ends);
      const [mean] = all('.al-mean').map(box);
      for (const [x, y] of arrows) {
        const middle = new DOMPoint(x, y);
        want(cross.isPointInStroke(middle), cross, 'an arrow begins elsewhere');
        want(near(x, arrows[0][0]) && near(y, arrows[0][1]), cross, 'two beginnings');
      }
      for (const { e: x, f: y } of at) {
        want(arrows.some(([, , a, b]) => near(a, x) && near(b, y)), svg, 'no arrow');
      }
      const names = all('.al-name, .al-cross ~ text:not(.al-name)')
        .filter(e => e.textContent).map(box);
      const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2
        && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
      names.forEach((a, i) => want(!names.slice(i + 1).some(b => over(a, b))
        && !all('.al-dot').some((e, k) => over(a, { left: at[k].e - 6,
          right: at[k].e + 6, top: at[k].f - 6, bottom: at[k].f + 6 })), svg,
        'a name is over another or a mark'));
      if (mean) all('.al-band').forEach((e, i) => {
        const [, , x, y] = ends(e);
        want(near(x, mean.x) && near(y, mean.y), e, 'it does not end at the mean');
        const thick = Number(e.getAttribute('stroke-width'));
        want(near(thick, mean.width * bars[i], 0.01), e, 'not as thick as its weight');
      });
    }
    for (const e of all('rect.bk-ground')) {
      const [b, text] = [e, e.parentNode.querySelector('text')].map(box);
      want(within(text, b, 2) && b.width - text.width < 30 && near(text.y, b.y, 4), e,
        'it is not the ground of its word');
    }
    for (const e of all('.bk-end')) {
      const [b, text] = [e, e.nextSibling].map(box);
      want(near(b.x, text.x, 2) && near(b.y, text.y, 2), e, 'its number is not in it');
    }
    // Of words: each at its dot, on top of that or of another, and of no part of it.
    const names = all('.bk-handle text');
    const screen = e => e.getBoundingClientRect();
    names.forEach((e, i) => {
      const [a, others] = [screen(e), names.filter(one => one !== e).map(screen)];
      const [dot, reach] = [...e.parentNode.querySelectorAll('circle')].reverse();
      const [d, r] = [dot, reach].map(box);
      want(r.width >= 24 && r.width <= 32 && near(r.x, d.x) && near(r.y, d.y), reach,
        'it is too large or too small for a hand');
      const { left, right } = box(e);
      want(left > 6 && left < 14 || right < -6 && right > -14, e, 'it is far off');
      const below = b => Math.min(a.right, b.right) > Math.max(a.left, b.left) + 2
        && b.bottom > a.top + 4;
      const gap = b => (b.top - a.bottom) / a.height;
      want(others.every(b => !below(b) || gap(b) > -0.4), e, 'it is over another');
      const up = (screen(dot).top + screen(dot).height / 2 - a.bottom) / a.height;
      want(up > -0.4 && up < 0.6 || others.some(b => below(b) && gap(b) < 0.6), e,
        'it is neither at its dot nor on top of another name');
    });
    // Patterns: squares side by side, and a frame around some of a row.
    if (svg.matches('.al-pattern')) {
      const cells = all('g rect').map(box);
      const side = 100 / ((Math.sqrt(8 * cells.length + 1) - 1) / 2);
      const [one] = cells;
      want(one.width >= 0.9 * side && one.width < side, svg, 'gaps');
      let [i, j] = [0, 0];
      for (const { left, top, width, height } of cells) {
        want(near(left, j * side, 0.01) && near(top, i * side, 0.01)
          && width === one.width && height === one.height, svg, 'a cell is astray');
        [i, j] = j === i ? [i + 1, 0] : [i, j + 1];
      }
      for (const e of all('.al-frame')) {
        const b = box(e);
        const rows = cells.filter(cell =>
          near(cell.top, b.top, 0.01) && near(cell.bottom, b.bottom, 0.01));
        want(!b.width || (rows.some(cell => near(cell.left, b.left, 0.01))
          && rows.some(cell => near(cell.right, b.right, 0.01))), e, 'no cell in it');
      }
    }
    return found;
  });
}"""


# Each stop of the Tab key is where it stands on the page.
ORDER = """root => [...root.querySelectorAll('[tabindex]')]
  .filter(e => ![0, -1].includes(e.tabIndex)).map(e => e.outerHTML.slice(0, 90))"""


def check_drawings(root):
    assert root.evaluate(ORDER) == []
    assert root.evaluate(OUTSIDE) == []
    assert root.evaluate(ASTRAY) == []


@each_lab
def test_drawings_hold_what_they_draw(root, page):
    check_drawings(root)
    for along, across in root.evaluate(TICK_GAPS):
        assert abs(along) <= 2
        assert -1 <= across <= 6


# ---- links ----

# Read together with another trait, or told by another name: see their labs' tests.
READ_OTHERWISE = {
    ("HeadSplitLab", "d_out"), ("HeadSplitLab", "num_heads"),
    ("TrainingLab", "at"), ("TinyGptLab", "at"),
}  # fmt: skip


# Of traits that are lists: at the ends of what they may hold, and beyond.
TAKEN = {
    "AttentionLab": ["inputs=" + ";".join(["999999,0,-999999"] * 6)],
    "BankLab": ["vectors=loan:2.5,0", "vectors=loan:0,2.5"],
    "MultiHeadLab": ["silenced=0", "silenced=0,3"],
    "TinyGptLab": ["silenced=0", "silenced=0,3"],
}
REFUSED = {
    "AttentionLab": [
        "inputs=" + ";".join(rows)
        for rows in (["0,0,0"] * 5, ["0,0"] * 6, *(
            [*["0,0,0"] * 5, f"0,0,{x}"] for x in ("1000001", "-1000001", "x")
        ))
    ],
    "BankLab": ["vectors=nobody:1,1", *(
        f"vectors=loan:{at}" for at in ("2.6,0", "0,2.6", "-1,0", "1", "1,1,1", "x,1")
    )],
    "MultiHeadLab": ["silenced=4", "silenced=-1", "silenced=0.5", "silenced=0,x"],
    "TinyGptLab": ["silenced=4", "silenced=-1", "silenced=0.5", "silenced=0,x"],
}  # fmt: skip


def takes(lab, trait, value):
    try:
        lab.set_trait(trait, value)
    except TraitError:
        return False
    return True


def bounded(lab):
    """Give each trait that is a number: least, greatest, and one beyond each."""
    for trait, kind in lab.traits().items():
        if not isinstance(kind, (base.Int, base.Float)) or trait.startswith("_"):
            continue
        first, found = getattr(lab, trait), []
        step = 1 if isinstance(kind, base.Int) else 0.1
        for way in (-step, step):
            at = first
            while takes(lab, trait, round(at + way, 6)):
                at = round(at + way, 6)
            found.append((at, round(at + way, 6)))
        lab.set_trait(trait, first)
        yield trait, found


@each_lab
def test_a_link_may_say_what_python_takes_and_no_more(root, page, request):
    name = request.node.callspec.params["root"]
    lab = ROWS[name].make()
    parts = re.findall("[A-Z][a-z]+", name.removesuffix("Lab"))
    place = f"lab-{''.join(parts).lower()}"
    share = root.get_by_role("button", name="Share", exact=True)
    share.click()
    link = root.get_by_label("Link", exact=True)
    for trait, both in bounded(lab):
        if (name, trait) in READ_OTHERWISE:
            continue
        for end, beyond in both:
            for value in (end, beyond):
                follow(page, f"#{place}?{trait}={value}")
                told = f"{trait}=" in link.input_value()
                assert told == (value == end != getattr(lab, trait)), (trait, value)
    for query in TAKEN.get(name, ()):
        follow(page, f"#{place}?{query}")
        assert f"?{query}" in unquote(link.input_value())
    for query in REFUSED.get(name, ()):
        follow(page, f"#{place}?{query}")
        assert f"{query.partition('=')[0]}=" not in link.input_value(), query
    share.click()


@each_lab
def test_a_control_reaches_both_ends_of_what_python_takes(root, page, request):
    name = request.node.callspec.params["root"]
    ends = dict(bounded(ROWS[name].make()))
    settings(root)  # it closes when Share opens
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


# ---- what plays ----

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


@each_lab
def test_it_plays_at_a_pace_that_eyes_follow(root, page):
    for play in root.get_by_role("button", name="Play", exact=True).all():
        assert not page.evaluate("matchMedia('(prefers-reduced-motion)').matches")
        wait, count = play.evaluate(PLAYED)
        assert 100 <= wait <= (1500 if count < 10 else 200), "milliseconds"
        assert wait * count <= 10_000


# ---- the image ----

# Keeps what an image is made of.
KEEP = """() => {
  const src = Object.getOwnPropertyDescriptor(HTMLImageElement.prototype, 'src');
  Object.defineProperty(HTMLImageElement.prototype, 'src',
    { ...src, set(value) { window.source = value; src.set.call(this, value); } });
}"""
# What of the image does not stand where the screen has it, or not below the other.
MISPLACED = r"""root => {
  const text = decodeURIComponent(source.split(',').slice(1).join());
  const svg = new DOMParser().parseFromString(text, 'image/svg+xml').documentElement;
  svg.style = 'position: fixed; left: 0; top: 0';
  document.body.append(svg);
  const found = [];
  const draws = root.querySelector('.al-draws');
  const home = draws.getBoundingClientRect();
  const place = (b, x = 0, y = 0) => ({ left: b.left - x, right: b.right - x,
    top: b.top - y, bottom: b.bottom - y });
  const there = e => place(e.getBoundingClientRect(), home.x - 16, home.y - 44);
  const image = e => place(e.getBoundingClientRect());
  const within = (a, b, by) => a.left >= b.left - by && a.right <= b.right + by
    && a.top >= b.top - by && a.bottom <= b.bottom + by;
  const same = (a, b, by) => within(a, b, by) && within(b, a, by);
  const want = (good, what) => good || found.push(what);
  const own = [...svg.children];
  // Words: where the first of each line stands.
  const words = {};
  const walk = document.createTreeWalker(draws, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) for (const word of walk.currentNode.data.matchAll(/\S+/g)) {
    const range = document.createRange();
    range.setStart(walk.currentNode, word.index);
    range.setEnd(walk.currentNode, word.index + word[0].length);
    (words[word[0]] ??= []).push(there(range));
  }
  const texts = own.filter(e => e.tagName === 'text');
  const [title, ...lines] = texts.filter(e => e.getAttribute('font-size') === '13');
  for (const e of texts) {
    if (e === title || lines.includes(e)) continue;
    const [a, [first]] = [image(e), e.textContent.split(' ')];
    const near = b => Math.abs((a.top + a.bottom - b.top - b.bottom) / 2) < 3.5
      && Math.abs(e.transform.baseVal.length
        ? (a.left + a.right - b.left - b.right) / 2 : a.left - b.left) < 3.5;
    want(words[first]?.some(near), `${first} is elsewhere`);
  }
  // The title above, and below it all what is said, line by line.
  const all = [title, ...lines].map(image);
  all.forEach((b, i) => {
    want(Math.abs(b.left - 16) < 2, 'a line begins elsewhere');
    const gap = i > 1 ? b.top - all[i - 1].bottom : 2;
    want(gap >= 0 && gap < 8, 'lines are on each other, or apart');
  });
  want(all[0].top > 8 && all[0].bottom < 36, 'the title is not above');
  want(title.getAttribute('font-weight') === 'bold', 'the title is not bold');
  lines.forEach((e, i) => want((i === lines.length - 1) === e.hasAttribute('opacity'),
    'the address is not pale'));
  const end = home.height + 44;
  want(all[1].top > end && all[1].top < end + 28, 'words on the drawing, or far off');
  const rest = svg.height.baseVal.value - all.at(-1).bottom;
  want(rest > 4 && rest < 32, 'the last line is not at the bottom');
  // Boxes: each within a part of the page, each drawing where it is on the screen.
  const shapes = own.slice(1).filter(one => one.matches('rect, path'))
    .map(e => [e, image(e)]);
  const parts = [...draws.querySelectorAll('*')].map(there);
  for (const [e, b] of shapes) {
    want(parts.some(part => within(b, part, 1)), `${e.outerHTML} is of no part`);
  }
  for (const [e] of shapes) {
    if (e.getAttribute('fill') !== 'none') continue;
    const [x, y, w, h, ink] = ['x', 'y', 'width', 'height', 'stroke-width']
      .map(name => Number(e.getAttribute(name)));
    const b = { left: x - ink / 2, right: x + w + ink / 2, top: y - ink / 2,
      bottom: y + h + ink / 2 };
    want(parts.some(one => same(b, one, 0.1)), 'a frame around nothing');
  }
  for (const td of [...draws.querySelectorAll('td')].filter(e => e.checkVisibility())) {
    const b = there(td);
    const wide = b.right - b.left;
    const share = parseFloat(td.style.getPropertyValue('--tone')) / 100;
    if (td.matches('.al-bars td') && share) {
      const half = td.matches('.al-signed td');
      const from = half ? (b.left + b.right) / 2 : b.left;
      const to = from + share * wide * (half ? 0.5 : 1);
      const bar = { ...b, left: Math.min(from, to), right: Math.max(from, to) };
      want(shapes.some(([e, one]) => same(bar, one, 0.3)), 'a bar is missing');
    }
    const lines = shapes.filter(([e, one]) => e.tagName === 'path'
      && Math.abs(one.left - b.left) < 0.5
      && within({ ...one, bottom: one.top }, b, 0.5));
    if (td.matches('.al-out')) {
      want(lines.length === 2 && lines.every(([, one]) => same(one, b, 0.5)),
        'it is not crossed out');
    } else if (td.matches('.al-hidden')) {
      want(lines.length > 2 && lines.every(([, one], i) => same(one,
        { ...b, right: b.left + wide * (i + 1) / lines.length,
          bottom: b.top + (b.bottom - b.top) * (i + 1) / lines.length }, 0.5)),
        'it is not striped evenly');
    } else want(!lines.length, 'lines in a cell');
  }
  const pictures = [...draws.querySelectorAll('svg')]
    .filter(e => e.checkVisibility() && !e.parentElement.closest('svg')).map(there);
  own.filter(e => e.tagName === 'svg').forEach((e, i) => {
    const b = pictures[i];
    const [x, y, width, height] = ['x', 'y', 'width', 'height']
      .map(name => Number(e.getAttribute(name)));
    want(same({ left: x, right: x + width, top: y, bottom: y + height }, b, 1),
      `drawing ${i} is elsewhere`);
  });
  svg.remove();
  return [...new Set(found)];
}"""


@each_lab
def test_the_image_looks_like_the_lab(root, page):
    page.evaluate("navigator.clipboard && (navigator.clipboard.write = undefined)")
    page.evaluate(KEEP)
    page.mouse.move(0, 0)
    draws = root.locator(".al-draws")
    shot = Image.open(io.BytesIO(draws.screenshot())).convert("RGB")
    root.get_by_role("button", name="Share", exact=True, expanded=False).click()
    with page.expect_download() as download:
        root.get_by_role("button", name="Copy image").click()
    with open(download.value.path(), "rb") as file:
        image = Image.open(io.BytesIO(file.read())).convert("RGB")
    size = re.search(r'width="(\d+)" height="(\d+)"', unquote(page.evaluate("source")))
    assert image.size == tuple(2 * int(x) for x in size.groups())
    assert root.evaluate(MISPLACED) == []
    # Of the image the part below its title, within its edges.
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
