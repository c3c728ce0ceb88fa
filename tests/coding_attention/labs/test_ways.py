"""Every lab in every way that readers come: one table, lab × way, with no list of labs.

All labs stand on one page. A lab that is added to table.py is opened in all ways.
"""

import io
import math
import re

import pytest
import torch
from PIL import Image

from tests.coding_attention.figures.artists import contrast
from tests.coding_attention.labs.screen import (
    LAPTOP,
    PHONE,
    ask,
    check,
    drawn,
    find,
    find_astray,
    follow,
    on_page,
    open_settings,
    reset,
    set_by_keys,
    set_in_python,
    styled,
)
from tests.coding_attention.labs.table import ROWS
from tools.measure.visit import visiting

pytestmark = pytest.mark.site

WAYS = {
    "laptop": LAPTOP,
    "dark": LAPTOP | {"color_scheme": "dark"},
    "still": LAPTOP | {"reduced_motion": "reduce"},
    "sharp": LAPTOP | {"device_scale_factor": 2},
    "phone": PHONE,
    "still phone": PHONE | {"reduced_motion": "reduce"},
    # A zoom of 200 % halves the pixels that a page has.
    "zoom": {"viewport": {"width": 640, "height": 450}, "device_scale_factor": 2},
}
# On a laptop, a lab is as wide as the column of the book.
COLUMN = "@media (width > 1000px) { .attn-lab { width: 688px !important } }"


def by(*ways):
    """Let a test see each lab in these ways."""
    return pytest.mark.parametrize("way", ways, indirect=True)


@pytest.fixture(scope="module")
def way(request, browser, served):
    """A visit to the page of all labs, in one way."""
    with visiting(browser, **WAYS[request.param]) as visit:
        visit.open(f"{served}/all.html")
        visit.page.locator(".attn-lab").nth(len(ROWS) - 1).wait_for()
        yield visit


@pytest.fixture
def page(way):
    return way.page


@pytest.fixture(params=ROWS)
def name(request):
    return request.param


@pytest.fixture
def root(way, page, name):
    """A lab with all its controls open, alone: each move lays out the whole page."""
    found = on_page(page, name)
    others = f'.attn-lab:not([aria-label="{found.get_attribute("aria-label")}"])'
    with styled(page, f"{others} {{ display: none !important }}"):
        open_settings(found)
        yield found
    assert way.errors == []
    assert way.third_parties() == []


# ---- what it shows, says and keeps ----


@by("laptop")
def test_each_control_is_followed_by_numbers_words_and_link(root, page, name):
    """By keyboard: PyTorch's numbers, sums that hold, and a link that leads back."""
    check(root, ROWS[name].make())
    for kind, label, wanted in ROWS[name].controls:
        lab = ROWS[name].make()
        if label == "by":  # it moves a token only if one is chosen
            root.get_by_label("Change token").select_option(index=1)
            lab.nudged = 0
        control, before = find(root, kind, label), lab.get_state()
        set_by_keys(page, control, kind, wanted)
        set_in_python(lab, control, wanted)
        assert lab.get_state() != before, f"{label} changed nothing"
        check(root, lab)
        check_sums(root, getattr(lab, "tokens", []))
        link = root.locator("input[readonly]").first.input_value()
        reset(root)
        check(root, ROWS[name].make())
        follow(page, "#elsewhere")
        follow(page, f"#{link.partition('#')[2]}")
        check(root, lab)
        reset(root)


# Of each cell: its grid, the heads of its row and column, its text, what is said of it.
SAID = """root => [...root.querySelectorAll('table[role=grid]')]
  .filter(table => table.checkVisibility()).flatMap(table =>
    [...table.tBodies[0].rows].flatMap(row =>
      [...row.querySelectorAll('td')].map(td => {
      const line = td.closest('.mc-board')?.querySelector('.al-line')
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


def check_sums(root, tokens):
    """Require that of each cell its number is said, its tokens, and sums that hold."""
    for grid, row, column, text, said in root.evaluate(SAID):
        where = f"{grid}, {row}, {column}, {text}: {said}"
        assert said, where
        for token in {row, column} & set(tokens):
            assert re.search(rf"\b{token}\b", said), where
        if NUMBER.fullmatch(text) and "hidden" not in said:
            near = [float(x) for x in NUMBER.findall(said)]
            assert text in said or any(
                abs(x - float(text)) <= 1.01 * unit(text) for x in near
            ), where
        for spelled, result in SUM.findall(said):
            found = pytest.approx(float(result), abs=5 * unit(result), nan_ok=True)
            assert compute(spelled) == found, where


def compute(spelled):
    """Compute a sum as labs spell it."""
    plain = re.sub(r"√(\d+)", r"sqrt(\1)", spelled).replace("·", "*")
    return eval(plain, {"exp": math.exp, "sqrt": math.sqrt, "inf": math.inf})


def unit(number):
    """Give what the last digit of a number is worth."""
    return 10.0 ** -len(number.partition(".")[2])


# ---- how it looks ----


@by("laptop", "dark")
def test_all_words_contrast_with_what_is_behind_them(root):
    poor = [t for t in ask(root, "return texts()") if contrast(*t["colors"]) < 4.5]
    assert poor == []


# Controls that are cut off, drawings that are, and controls over another one.
FAULTS = """const start = e => e.outerHTML.slice(0, 80);
const all = controls().filter(e => !e.ownerSVGElement && !e.matches('svg'));
return [
  ...all.filter(e => e.matches('button, select') && e.scrollWidth > e.clientWidth + 3),
  ...[...root.querySelectorAll('.al-draws, .al-draws *')].filter(e =>
    visible(e) && !e.matches('figcaption') && !e.ownerSVGElement
    && getComputedStyle(e).overflow !== 'visible'
    && (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1)),
  ...all.filter((e, i) => all.slice(i + 1).some(f =>
    hits(box(e), box(f)) && !e.contains(f) && !f.contains(e))),
].map(start)"""


@by("laptop", "phone", "zoom")
def test_all_of_it_has_room(root, page):
    with styled(page, COLUMN):
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert ask(root, FAULTS) == []


@by("laptop", "phone")
def test_drawings_hold_what_they_draw_in_letters_to_be_read(root, page):
    assert find_astray(root) == []
    least = 12 if page.viewport_size["width"] > 1000 else 11
    assert [t for t in ask(root, "return texts()") if t["size"] < least - 0.05] == []


@by("phone")
def test_what_a_finger_presses_is_large(root):
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


@by("sharp")
def test_the_image_that_is_saved_is_what_is_on_screen_below_a_title(root, page):
    page.evaluate("navigator.clipboard && (navigator.clipboard.write = undefined)")
    page.mouse.move(0, 0)
    draws = root.locator(".al-draws")
    shot = Image.open(io.BytesIO(draws.screenshot())).convert("RGB")
    with page.expect_download() as download:
        root.get_by_role("button", name="Copy image").click()
    image = Image.open(download.value.path()).convert("RGB")
    width = -(-draws.bounding_box()["width"] // 1)
    assert image.width == 2 * (width + 32)
    size = shot.width // 12, shot.height // 12
    seen, saved = (
        torch.tensor(list(one.resize(size, Image.Resampling.BOX).getdata()))
        for one in (shot, image.crop((32, 88, 32 + shot.width, 88 + shot.height)))
    )
    off = (seen - saved).abs().amax(dim=-1)
    # Letters are set a little otherwise, and words of controls are left out.
    assert (off > 40).float().mean() < 0.03
    assert (off > 80).float().mean() < 0.015


# ---- what moves, and what stays ----

# Uses every control in every way that it has; gives which others moved, and by whom.
MOVED = """async root => {
  let sentence = false; // words of another sentence are another drawing
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
  const height = () => Math.round(root.getBoundingClientRect().height
    - root.querySelector('.al-numbers').getBoundingClientRect().height);
  const found = [];
  const use = async (e, way) => {
    const [before, high] = [all().map(one => [one, at(one)]), height()];
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
  };
  const tell = (e, kind, value) => () => {
    if (kind === 'change') e.selectedIndex = value; else e.value = value;
    e.dispatchEvent(new Event(kind, { bubbles: true }));
  };
  const more = [...root.querySelectorAll('.al-tab:not([hidden])')];
  for (const tab of [...more, ...more]) await use(tab, () => tab.click());
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


@by("still", "still phone")
def test_no_control_moves_another_or_the_height_of_the_lab(root, page):
    with styled(page, COLUMN):
        count, found = root.evaluate(MOVED)
    assert count >= 3
    assert found == []


@by("still")
def test_nothing_moves_by_itself_where_motion_is_not_wanted(root):
    motion = """all => all.filter(e => getComputedStyle(e).transitionDuration !== '0s'
      || getComputedStyle(e).animationName !== 'none').map(e => e.outerHTML)"""
    assert root.locator("*").evaluate_all(motion) == []
    # A play makes one step, and has no timer that would go on.
    for play in root.get_by_role("button", name="Play", exact=True).all():
        play.click()
        assert root.evaluate("e => e.getAnimations({ subtree: true }).length") == 0
        assert not root.get_by_role("button", name="Stop", exact=True).count()
    reset(root)


@pytest.mark.parametrize("lab", ["DropoutLab", "HeadSplitLab", "TinyGptLab"])
def test_a_play_ends_by_itself_within_ten_seconds(lab, visit, served):
    one = visit(fresh=True)  # the clock stays with its context
    one.page.clock.install()
    one.open(f"{served}/{lab}.html")
    play = on_page(one.page, lab).get_by_role("button", name="Play", exact=True)
    play.click()
    assert not play.count()
    one.page.clock.run_for(10_000)
    assert play.count() == 1


# ---- without scripts, and from a folder ----


def test_without_scripts_every_static_figure_stands(visit, served):
    page = visit(java_script_enabled=False).open(f"{served}/all.html")
    figures = page.locator(".attn-static")
    assert figures.count() == len(ROWS)
    for figure in figures.all():
        assert figure.is_visible()
        assert figure.locator("svg, table").count()
    assert page.locator(".attn-lab").count() == 0


def test_from_a_folder_every_lab_works(visit, lab_site):
    one = visit(fresh=True)
    page = one.open(f"file://{lab_site}/all.html")
    page.locator(".attn-lab").nth(len(ROWS) - 1).wait_for()
    for name, row in ROWS.items():
        root, lab = on_page(page, name), row.make()
        open_settings(root)
        kind, label, wanted = row.controls[0]
        control = find(root, kind, label)
        set_by_keys(page, control, kind, wanted)
        set_in_python(lab, control, wanted)
        drawn(page)
        check(root, lab)
    # Fonts of the theme may not load from a folder; the labs must not complain.
    assert not [error for error in one.errors if "_static/labs" in error]
