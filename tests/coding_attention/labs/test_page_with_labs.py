"""Labs on a page together: what it loads, the address, a frame, what goes wrong."""

import pytest

from tests.coding_attention.labs.screen import (
    PHONE,
    check,
    follow,
    on_page,
    open_settings,
    reset,
)
from tests.coding_attention.labs.table import ROWS

pytestmark = pytest.mark.site


def test_each_control_shows_that_it_has_the_focus(visit, served):
    page = visit().open(f"{served}/all.html")
    page.locator(".attn-lab").nth(len(ROWS) - 1).wait_for()
    page.locator(".attn-lab").locator("input, select, button").first.focus()
    outline = """() => { const e = document.activeElement;
      const style = getComputedStyle(e);
      return e.closest('.attn-lab') && style.outlineStyle + style.outlineWidth }"""
    seen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(outline))
    assert set(seen) <= {"solid3px", None}
    assert seen.count("solid3px") > 20


@pytest.mark.parametrize("options", [PHONE, {}], ids=["phone", "laptop"])
def test_a_large_table_can_be_scrolled(visit, served, options):
    page = visit(**options).open(f"{served}/big.html")
    root = page.locator(".attn-lab")
    root.wait_for()
    open_settings(root)
    # A token cannot end the script that holds it.
    first = root.get_by_role("combobox", name="Query").locator("option").first
    assert first.text_content() == "</script>"
    clipped = root.locator(".al-scroll").evaluate_all(
        """all => all.filter(part => part.scrollWidth > part.clientWidth)
                     .map(part => getComputedStyle(part).overflowX)"""
    )
    assert set(clipped) == {"auto"}
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_a_lab_that_fails_leaves_its_figure(visit, served):
    one = visit()
    one.page.add_init_script(
        "Object.fromEntries = (old => pairs => "
        "{ const found = old(pairs); if ('d_k' in found) throw Error('planted'); "
        "return found; })(Object.fromEntries)"
    )
    page = one.open(f"{served}/all.html")
    page.locator(".attn-lab").nth(len(ROWS) - 2).wait_for()
    assert page.locator(".attn-lab").count() == len(ROWS) - 1
    assert page.locator(".attn-static").count() == 1
    assert any("ScaleLab cannot be shown" in error for error in one.errors)


# ---- the address ----


def test_a_state_is_in_the_address_and_a_reload_keeps_it(lab_on_page):
    root, lab, one = lab_on_page("MaskLab")
    root.get_by_label("Fill with").select_option("0")
    root.get_by_label("Change token").select_option("starts")
    kept = "#lab-mask?nudged=starts&fill=0&more=1"
    one.page.wait_for_function(f"location.hash === '{kept}'")
    one.page.reload()
    root.wait_for()
    lab.fill, lab.nudged = "0", 2
    check(root, lab)
    reset(root)
    one.page.wait_for_function("!location.hash.includes('fill')")


def test_a_link_leads_to_an_experiment(visit, served):
    one = visit()
    page = one.open(f"{served}/all.html#lab-mask?fill=0&nudged=step&part=no&nudge=99")
    root = on_page(page, "MaskLab")
    root.wait_for()
    check(root, ROWS["MaskLab"].make(fill="0"))  # what does not fit is left out
    follow(page, "#lab-mask?diagonal=0")
    check(root, ROWS["MaskLab"].make(diagonal=0))
    follow(page, "#lab-attention?inputs=1,0,0;0,1,0&query=one")
    # Two rows do not fit six tokens.
    check(on_page(page, "AttentionLab"), ROWS["AttentionLab"].make(query=4))
    check(root, ROWS["MaskLab"].make(diagonal=0))
    assert one.errors == []


def test_a_link_counts_though_the_lab_writes_its_last_state_just_then(lab_on_page):
    root, _, one = lab_on_page("MaskLab")
    one.page.evaluate(
        """() => new Promise(done => {
          addEventListener("hashchange", done, { once: true });
          const before = location.href;
          location.hash = "#lab-mask?diagonal=0";
          // What the lab does 150 ms after a change; browsers tell of the link later.
          history.replaceState(history.state, "", before);
        }).then(() => null)"""
    )
    check(root, ROWS["MaskLab"].make(diagonal=0))


def test_an_embedded_lab_stands_alone_and_keeps_its_state(visit, served):
    """theme/labs_loader.js takes away what stands around it."""
    page = visit().open(f"{served}/MaskLab.html")
    root = on_page(page, "MaskLab")
    root.wait_for()
    root.get_by_role("button", name="Wrong polarity").click()
    open_settings(root)
    frame = root.get_by_label("Frame", exact=True).input_value()
    source = frame.split('src="')[1].split('"')[0].replace("&amp;", "&")
    other = visit(viewport={"width": 760, "height": 700})
    alone = other.open(source)
    lab = alone.locator(".al-embedded")
    lab.wait_for()
    check(lab, ROWS["MaskLab"].make(part="tril", diagonal=0))
    around = alone.locator("h1, nav, header, footer").filter(visible=True)
    assert around.count() == 0
    link = lab.get_by_role("link")
    assert link.get_attribute("href").startswith(f"{served}/MaskLab.html#lab-mask?")
    box = lab.bounding_box()
    assert (box["x"], box["y"]) < (20, 20)
    assert other.errors == []
