"""One visit to each lab of the book, as its page shows it: PyTorch's numbers, and keys.

The pages' own states, from what the site stores: what a reader meets first is right.
On a phone, their own sentences and sizes fit one screen.
"""

import json

import anywidget
import pytest

from coding_attention import labs
from coding_attention.stored import LAB
from tests.coding_attention.labs.screen import (
    PHONE,
    check,
    drawn,
    find,
    reset,
    set_by_keys,
    set_in_python,
)
from tests.coding_attention.labs.table import ROWS
from tools.measure.visit import LABS_CAME, visiting

pytestmark = pytest.mark.site


def stored_labs(site):
    """Give the address of each page with labs, and what it stores of them in order."""
    for path in sorted(site.rglob("*.html")):
        parts = path.read_text(encoding="utf-8").split(f'<script type="{LAB}">')[1:]
        if parts:
            stored = [json.loads(part.partition("</script>")[0]) for part in parts]
            yield path.relative_to(site).as_posix(), stored


def remake(name, traits):
    """Give the lab in Python with the traits that the page stores."""
    kind = getattr(labs, name)
    lab = kind.__new__(kind)
    anywidget.AnyWidget.__init__(lab, **traits)
    return lab


# With each move, a browser would lay out the whole page anew: two thirds of the time.
LABS_ALONE = """() => [...document.body.querySelectorAll('*')]
  .filter(e => !e.closest('.attn-lab') && !e.querySelector('.attn-lab'))
  .forEach(e => e.style.display = 'none')"""


def use_first_control(root, page, lab):
    """Require numbers to follow a control of the lab's row, and Reset to end it."""
    kind, label, wanted = next(
        (kind, label, wanted)
        for kind, label, wanted in ROWS[type(lab).__name__].controls
        if find(root, kind, label).is_visible()  # the reader's layer keeps its heads
    )
    control = find(root, kind, label)
    before = {trait: getattr(lab, trait) for trait in wanted}
    set_by_keys(page, control, kind, wanted)
    set_in_python(lab, control, wanted)
    assert before != {trait: getattr(lab, trait) for trait in wanted}
    drawn(page)
    check(root, lab)
    lab.set_state(before)
    reset(root)
    check(root, lab)


def test_each_lab_shows_pytorchs_numbers_and_answers_the_keys(browser, site, serving):
    seen = set()
    home = serving(site)
    for page, stored in stored_labs(site):
        with visiting(browser, f"{home}/{page}") as visit:
            visit.load()
            assert visit.page.locator(".attn-static").count() == 0
            visit.page.evaluate(LABS_ALONE)
            roots = visit.page.locator(".attn-lab").all()
            for root, one in zip(roots, stored, strict=True):
                lab = remake(one["lab"], json.loads(one["traits"]))
                check(root, lab)
                use_first_control(root, visit.page, lab)
                seen.add(one["lab"])
            assert visit.third_parties() == []
            assert visit.errors == []
    assert seen == set(ROWS)


# How far below its top a lab begins to draw, and how high it is.
SIZES = """root => {
  const top = e => e.getBoundingClientRect().top;
  const all = [...root.querySelectorAll(
    '.al-draws :is(svg, table), .hs-blocks, .lk-board, .tg-bars')];
  const high = Math.min(...all.filter(e => e.checkVisibility()).map(top));
  return [high - top(root), root.getBoundingClientRect().height];
}"""


def test_each_lab_of_the_book_fits_a_phone_and_draws_at_its_top(visit, site, serving):
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
