"""What every lab has in common: its drawing, controls that stay, a state to share.

Measured in a browser, for each lab and each of its controls.
"""

import io
import json
from itertools import pairwise
from urllib.parse import urlsplit

import pytest
from PIL import Image

from coding_attention.models import real
from tests.coding_attention.labs.harness import PHONE, drawn, settings
from tests.coding_attention.labs.table import ROWS
from tests.coding_attention.labs.test_on_the_book import stored_labs
from tests.coding_attention.labs.test_ways import LABS, ask, controls, on_page
from tools.measure.visit import LABS_CAME

pytestmark = pytest.mark.site

WIDE = {"viewport": {"width": 1280, "height": 900}}
# Of a laptop, the column of the book is 688 pixels wide.
COLUMN = ".attn-lab { width: 688px !important }"
SIZES = """root => {
  const top = e => e.getBoundingClientRect().top;
  const all = [...root.querySelectorAll(
    '.al-draws :is(svg, table), .hs-blocks, .lk-board, .tg-bars')];
  const high = Math.min(...all.filter(e => e.checkVisibility()).map(top));
  return [high - top(root), root.getBoundingClientRect().height];
}"""
# Uses every control in every way that it has; gives which others moved, and by whom.
MOVED = """async root => {
  const ALL = 'input, select, button';
  const all = () => [...root.querySelectorAll(ALL)].filter(e => e.checkVisibility()
    && !e.closest('[role=grid]') && !e.matches(sentence ? '.lk-word' : 'x'));
  // Words of another sentence are another drawing.
  let sentence = false;
  const at = e => {
    const [box, home] = [e, root].map(one => one.getBoundingClientRect());
    return [box.x - home.x, box.y - home.y, box.width].map(Math.round).join();
  };
  const name = e => e.labels?.[0]?.textContent || e.textContent || e.type;
  const wait = () => new Promise(done =>
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))));
  const found = [];
  const use = async (e, way) => {
    const before = all().map(one => [one, at(one)]);
    way();
    await wait();
    for (const [one, was] of before) {
      if (one.isConnected && one.checkVisibility() && at(one) !== was
        && !(sentence && one.matches('.lk-word'))) {
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
    .find(tab => tab.textContent === 'Settings');
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


@pytest.fixture(scope="module", params=[WIDE, PHONE], ids=["laptop", "phone"])
def all_labs(request, browser, served):
    from tools.measure.visit import visiting

    with visiting(browser, reduced_motion="reduce", **request.param) as visit:
        page = visit.open(f"{served}/all.html")
        page.locator(".attn-lab").nth(len(LABS) - 1).wait_for()
        if request.param is WIDE:
            page.add_style_tag(content=COLUMN)
        yield page, request.param is PHONE


@pytest.mark.parametrize("name", LABS)
def test_the_drawing_comes_first_and_no_control_moves(all_labs, name):
    page, phone = all_labs
    root = on_page(page, name)
    top, height = root.evaluate(SIZES)
    assert top <= 80
    assert not phone or height <= 844
    count, found = root.evaluate(MOVED)
    assert count >= (1 if name == "BankLab" else 3)
    assert found == []


def test_each_lab_of_the_book_fits_a_phone_and_draws_at_its_top(visit, site, serving):
    """As the pages show them: their own sentences, sizes and settings."""
    home = serving(site)
    for page, stored in stored_labs(site):
        one = visit(**PHONE)
        one.open(f"{home}/{page}")
        one.page.wait_for_function(LABS_CAME)
        one.drawn()
        roots = one.page.locator(".attn-lab").all()
        assert len(roots) == len(stored)
        for root in roots:
            top, height = root.evaluate(SIZES)
            assert top <= 80, (page, root.get_attribute("class"))
            assert height <= 844, (page, root.get_attribute("class"))


# ---- to share ----


def change(root, page):
    """Press, choose and push what the lab has, so that it shows another state."""
    settings(root)
    for control in controls(root):
        kind = control.get_attribute("data-kind")
        if not control.is_visible() or control.text_content() in ("Reset", "Play"):
            continue
        if kind == "select":
            count = control.locator("option").count()
            control.select_option(index=count - 1)
        elif kind in ("range", "handle"):
            control.focus()
            page.keyboard.press("ArrowRight")
        elif kind in ("checkbox", "button"):
            control.focus()
            page.keyboard.press("Space")
    drawn(page)


# Each part of the drawing with what it looks like. Order does not count: of marks and
# lines, the one that was used last lies on top.
DRAWN = """const shown = e => [e.tagName, e.childElementCount ? '' : e.textContent,
    ...[...e.attributes].map(a => a.name === 'class'
        ? [...e.classList].filter(c => !['al-followed', 'al-seen'].includes(c)).sort()
        : `${a.name}=${a.value}`)
      .flat().filter(a => !/^(data-|tabindex|aria-(value|selected))/.test(a)).sort()];
  return JSON.stringify([...drawn().flatMap(e => [e, ...e.querySelectorAll('*')])
    .filter(visible).map(e => shown(e).join(' ')).sort(),
    root.querySelector('.al-summary').textContent])"""


@pytest.mark.parametrize("name", LABS)
def test_a_link_restores_an_equal_drawing(visit, served, name):
    one = visit()
    page = one.open(f"{served}/{name}.html")
    root = on_page(page, name)
    root.wait_for()
    first = ask(root, DRAWN)
    change(root, page)
    page.mouse.move(0, 0)
    root.get_by_role("button", name="Share").click()
    link = root.get_by_label("Link", exact=True).input_value()
    state = ask(root, DRAWN)
    assert state != first
    assert urlsplit(link).fragment.startswith("lab-")
    other = visit(fresh=True)
    opened = on_page(other.open(link), name)
    opened.wait_for()
    drawn(other.page)
    again = ask(opened, DRAWN)
    assert json.loads(again) == json.loads(state)
    assert other.errors == []


@pytest.mark.parametrize("name", LABS)
def test_an_image_is_the_drawing(visit, served, name):
    page = visit(color_scheme="dark").open(f"{served}/{name}.html")
    root = on_page(page, name)
    root.wait_for()
    page.evaluate("navigator.clipboard && (navigator.clipboard.write = undefined)")
    root.get_by_role("button", name="Share").click()
    with page.expect_download() as download:
        root.get_by_role("button", name="Copy image").click()
    with open(download.value.path(), "rb") as file:
        image = Image.open(io.BytesIO(file.read())).convert("RGB")
    body = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert f"rgb{image.getpixel((0, 0))}" == body
    width = root.locator(".al-draws").bounding_box()["width"]
    assert image.width == 2 * (-(-width // 1) + 32)
    colors = {color for count, color in image.getcolors(1 << 20) if count > 40}
    assert len(colors) >= 6, "the drawing has more colors than the page and its ink"
    assert root.locator(".al-said").text_content() == "Image saved."


def test_an_image_has_the_numbers_colors_and_words_of_the_lab(visit, served):
    page = visit(**PHONE).open(f"{served}/MaskLab.html")
    root = on_page(page, "MaskLab")
    root.wait_for()
    page.evaluate(
        """() => { const set = Object.getOwnPropertyDescriptor(
             HTMLImageElement.prototype, 'src');
           Object.defineProperty(HTMLImageElement.prototype, 'src', { ...set,
             set(value) { window.source = value; set.set.call(this, value); } }); }"""
    )
    root.get_by_role("button", name="Share").click()
    root.get_by_role("button", name="Copy image").click()
    page.wait_for_function("window.source?.startsWith('data:image/svg+xml,')")
    found = page.evaluate(
        """() => { const text = decodeURIComponent(source.split(',').slice(1).join());
          const svg = new DOMParser().parseFromString(text, 'image/svg+xml');
          return [[...svg.querySelectorAll('text')].map(e => e.textContent.trim()),
            [...svg.querySelectorAll('rect')].map(e => e.getAttribute('fill')),
            [...svg.querySelectorAll('rect[fill=none]')].map(
              e => [e.getAttribute('stroke-width'), e.getAttribute('rx')]),
            svg.documentElement.width.baseVal.value,
            // What hatches a cell that is hidden: a slope of its own size.
            [...svg.querySelectorAll('path[stroke-opacity]')].map(e =>
              e.getAttribute('d').match(/[\\d.]+/g).map(Number))]; }"""
    )
    texts, fills, rings, width, hatches = found
    hidden = root.locator(".al-draws .al-hidden").first.bounding_box()
    assert hatches
    for x1, y1, x2, y2 in hatches:
        assert 0 < x2 - x1 <= hidden["width"] + 1
        assert 0 < y1 - y2 <= hidden["height"] + 1
    style = """all => all.map(getComputedStyle).map(style =>
        [style.boxShadow.split('px ')[3], style.borderTopLeftRadius.split('px')[0]])"""
    edges = root.locator(".al-draws td").evaluate_all(style)
    assert len(edges) >= 36
    assert edges[0] == ["1", "2"]
    assert [ring for ring in rings if ring[0] == "1"] == edges
    assert texts[0] == "Mask lab"
    assert {"Your", "journey", "moves", "sum"} <= set(texts)
    summary = root.locator(".al-summary").text_content()
    assert summary in " ".join(texts)
    assert texts[-1].endswith("MaskLab.html#lab-mask")
    # Below the drawing, as many words on a line as fit, at 7 pixels a letter.
    start = next(i for i in range(len(texts)) if " ".join(texts[i:-1]) == summary)
    lines = texts[start:-1]
    assert len(lines) > 1
    for line, after in pairwise([*lines, ""]):
        assert 7 * len(line) <= width
        assert not after or 7 * len(f"{line} {after.split()[0]}") > width
    cells = root.locator(".al-heat td")
    shades = cells.evaluate_all(
        "all => all.map(e => getComputedStyle(e).backgroundColor)"
    )
    # Two that a screen cannot tell apart may have one color in the image.
    assert 10 < len(set(shades)) <= len(set(fills)) + 2


def test_an_embedded_lab_stands_alone_and_keeps_its_state(visit, served):
    """theme/labs_loader.js takes away what stands around it."""
    page = visit().open(f"{served}/MaskLab.html")
    root = on_page(page, "MaskLab")
    root.wait_for()
    root.get_by_role("button", name="Wrong polarity").click()
    root.get_by_role("button", name="Share").click()
    frame = root.get_by_label("Frame", exact=True).input_value()
    source = frame.split('src="')[1].split('"')[0].replace("&amp;", "&")
    other = visit(viewport={"width": 760, "height": 700})
    alone = other.open(source)
    lab = alone.locator(".al-embedded")
    lab.wait_for()
    assert "is nan" in lab.locator(".al-summary").text_content()
    around = alone.locator("h1, nav, header, footer").filter(visible=True)
    assert around.count() == 0
    link = lab.get_by_role("link")
    assert link.get_attribute("href").startswith(f"{served}/MaskLab.html#lab-mask?")
    box = lab.bounding_box()
    assert (box["x"], box["y"]) < (20, 20)
    assert other.errors == []


# ---- the machine ----


def test_the_machine_shows_what_the_head_computes(lab_on_page):
    import torch

    from attention import SelfAttention_v2

    root, _, one = lab_on_page("LookLab")
    assert not root.locator(".mc-board").is_visible()
    root.get_by_role("button", name="Look inside").click()
    sentence = "the workers watched the piano until they left"
    words, x = real.states("3.1", sentence)
    layer = real.load_head(SelfAttention_v2(384, 32, qkv_bias=True), "3.1")
    asked = words.index("they")
    with torch.no_grad():
        q, k, v = layer.W_query(x), layer.W_key(x), layer.W_value(x)
        scores = (q @ k.T / 32**0.5)[asked]
        weights = scores.softmax(dim=-1)
        z = layer(x)[asked]
    rows = root.locator(".mc-board tbody tr")
    assert rows.count() == len(words)
    for i, row in enumerate(rows.all()):
        told = row.locator("td").all_text_contents()
        assert float(told[1]) == pytest.approx(scores[i].item(), abs=0.011)
        assert float(told[3]) == pytest.approx(weights[i].item(), abs=0.011)
    shares = """e => [...e.querySelectorAll('rect')].map(r =>
      (r.classList.contains('mc-below') ? -1 : 1)
      * parseFloat(r.style.getPropertyValue('--tone')))"""
    strips = {
        "thead .mc-strip": q[asked], "tfoot .mc-strip": z,
        "tbody tr:nth-child(3) .al-k": k[2], "tbody tr:nth-child(3) .al-v": v[2],
    }  # fmt: skip
    for where, vector in strips.items():
        found = root.locator(f".mc-board {where}").evaluate(shares)
        wanted = (100 * vector / vector.abs().max()).tolist()
        assert found == pytest.approx(wanted, abs=2.5), where
    heads = root.locator(".mc-head").evaluate_all(
        "all => all.map(e => [e.matches('.mc-own'), e.childElementCount])"
    )
    assert heads == [[h == 1, int(h == 1)] for h in range(384 // 32)]
    rows.nth(2).locator("td").nth(1).hover()
    line = root.locator(".mc-board .al-line").text_content()
    assert line.startswith("they · workers: q · k / √32 = ")
    root.get_by_role("button", name="Swap “they” for “it”").click()
    assert root.locator(".mc-board thead").text_content().count("2 it")
    # Of the other heads, no queries and keys are stored.
    settings(root)
    root.get_by_role("combobox", name="Head").select_option(index=1)
    assert root.get_by_role("button", name="Look inside").is_disabled()
    assert not root.locator(".mc-board").is_visible()
    assert one.errors == []


# ---- goals that no other test reaches ----


def test_a_word_moved_brings_both_meanings_of_bank_together(lab_on_page):
    root, _, one = lab_on_page("BankLab")
    task = root.locator(".al-task")
    assert not root.locator(".al-done").count()
    root.get_by_role("button", name="flooded:").focus()
    for _ in range(5):
        one.page.keyboard.press("Shift+ArrowLeft")
        one.page.keyboard.press("Shift+ArrowUp")
    assert task.text_content().startswith("Done: both sentences now turn bank")


def test_heads_switched_off_change_the_next_word(lab_on_page):
    root, _lab, _ = lab_on_page("TinyGptLab")
    assert not root.locator(".al-done").count()
    for button in root.locator(".tg-switch").all():
        button.click()
        if root.locator(".al-done").count():
            break
    done = root.locator(".al-task").text_content()
    assert done.startswith("Done: without block 1, head 1")


def test_every_lab_has_a_goal():
    from pathlib import Path

    from coding_attention.labs import compose

    for name, script in compose.scripts().items():
        text = (Path(compose.FOLDER) / script).read_text(encoding="utf-8")
        assert "lab.ask(" in text, name
        assert name in ROWS
