"""One visit to each lab of the book, as its page shows it: PyTorch's numbers, and keys.

The pages' own states, from what the site stores: what a reader meets first is right.
"""

import json

import anywidget
import pytest

from tests.coding_attention.labs import harness, test_bank, test_look, test_tiny_gpt
from tests.coding_attention.labs.table import ROWS, class_of
from tests.coding_attention.labs.test_ways import by_keys, moves
from theme.labs import STATE_TYPE, VIEW
from tools.measure.visit import visiting

CHECKS = {
    "BankLab": test_bank.check,
    "LookLab": test_look.check,
    "TinyGptLab": test_tiny_gpt.check,
}


def stored_labs(site):
    """Give the address of each page with labs, and their states in order."""
    for path in sorted(site.rglob("*.html")):
        parts = path.read_text(encoding="utf-8").split(f'<script type="{STATE_TYPE}">')
        if len(parts) > 1:
            state = json.loads(parts[1].partition("</script>")[0])["state"]
            views = [part.partition("</script>")[0] for part in _views(parts)]
            ids = [json.loads(view)["model_id"] for view in views]
            yield path.relative_to(site).as_posix(), [state[one] for one in ids]


def _views(parts):
    return "".join(parts).split(f'<script type="{VIEW}">')[1:]


def remake(name, state):
    """Give the lab in Python with the traits that the page stores."""
    kind = class_of(name)
    lab = kind.__new__(kind)
    anywidget.AnyWidget.__init__(lab, **state)
    return lab


# With each move, a browser would lay out the whole page anew: two thirds of the time.
LABS_ALONE = """() => [...document.body.querySelectorAll('*')]
  .filter(e => !e.closest('.attn-lab') && !e.querySelector('.attn-lab'))
  .forEach(e => e.style.display = 'none')"""


@pytest.mark.site
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
                lab = remake(one["lab"], one["state"])
                check = CHECKS.get(one["lab"], harness.check)
                check(root, lab)
                moves(by_keys)(root, visit.page)
                check(root, lab)  # Reset brings it back
                seen.add(one["lab"])
            assert visit.third_parties() == []
            assert visit.errors == []
    assert seen == set(ROWS)
