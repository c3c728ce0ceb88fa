"""Every lab in every way that readers come: one table, lab × way, with no list of labs.

All labs stand on one page, which each way opens once. A lab that is added to table.py
is opened in all of them.
"""

from contextlib import contextmanager

import pytest

from tests.coding_attention.labs import looking, moving, telling
from tests.coding_attention.labs.harness import (
    PHONE,
    check,
    on_page,
    settings,
    with_keyboard,
    with_mouse,
)
from tests.coding_attention.labs.table import ROWS
from tools.measure.visit import visiting

pytestmark = pytest.mark.site

LABS = list(ROWS)
# A zoom of 200 % halves the pixels that a page has.
ZOOMED = {"viewport": {"width": 640, "height": 450}, "device_scale_factor": 2}
LAPTOP = {"viewport": {"width": 1280, "height": 900}}
SHARP = {"device_scale_factor": 2}
FORCED = {"forced_colors": "active", "color_scheme": "dark"}

# Each way: options of the browser, and what is asked of a lab, by its root, page, name.
WAYS = {
    "numbers by mouse": ({}, moving.numbers_follow(with_mouse)),
    "numbers by keyboard": ({}, moving.numbers_follow(with_keyboard)),
    "touch": (PHONE, moving.moves(moving.by_touch)),
    "keyboard": ({}, moving.moves(moving.by_keys)),
    "ends of controls": ({}, moving.reaches_both_ends),
    "playing": ({}, moving.plays_at_a_pace_that_eyes_follow),
    "still": ({"reduced_motion": "reduce"}, moving.holds_still),
    "controls in place": (LAPTOP, moving.no_control_moves),
    "controls on a phone": (PHONE, moving.no_control_moves),
    "sums": ({}, telling.sums_hold),
    "links": ({}, telling.links_restore),
    "light": ({}, looking.contrasts),
    "dark": ({"color_scheme": "dark"}, looking.contrasts),
    "forced colors": (FORCED, looking.marks_stay),
    "laptop": (LAPTOP, looking.fits_a_column),
    "zoom 200 %": (ZOOMED, looking.fits),
    "text 200 %": ({}, looking.grows),
    "390 px": (PHONE, looking.fits_a_phone),
    "drawings": (SHARP, looking.holds_what_it_draws),
    "drawings on a phone": (PHONE, looking.holds_what_it_draws),
    "image": (SHARP, looking.image_is_the_lab),
    "targets": (PHONE, looking.large_targets),
    "12 px": (LAPTOP, looking.readable(12)),
    "11 px": (PHONE, looking.readable(11)),
}


@pytest.fixture(scope="module", params=WAYS)
def come(request, browser, served):
    """The page of all labs, opened in one way; gives it and what is asked of a lab."""
    options, asked = WAYS[request.param]
    with visiting(browser, **options) as visit:
        visit.open(f"{served}/all.html")
        visit.page.locator(".attn-lab").nth(len(LABS) - 1).wait_for()
        yield visit, asked


@pytest.mark.parametrize("name", LABS)
def test_lab(come, name):
    visit, asked = come
    root = on_page(visit.page, name)
    with alone(visit.page, root):
        settings(root)
        asked(root, visit.page, name)
    assert visit.errors == []
    assert visit.third_parties() == []


@contextmanager
def alone(page, root):
    """Hide the other labs: a browser lays out the whole page at each move."""
    title = root.get_attribute("aria-label")
    others = f'.attn-lab:not([aria-label="{title}"])'
    with looking.styled(page, f"{others} {{ display: none !important }}"):
        yield


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
        root = on_page(page, name)
        moving.moves(moving.by_keys)(root, page, name)
        check(root, ROWS[name].make())
    # Fonts of the theme may not load from a folder; the labs must not complain.
    assert not [error for error in one.errors if "_static/labs" in error]
