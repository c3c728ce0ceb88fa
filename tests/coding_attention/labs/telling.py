"""What a lab tells: the sum behind each number, and its state as a link.

Each check gets the lab's root on the page of all labs, the page, and the lab's name.
"""

import math
import re

import pytest

from tests.coding_attention.labs.harness import (
    check,
    find,
    follow,
    reset,
    set_in_python,
    with_keyboard,
)
from tests.coding_attention.labs.table import ROWS

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
            near = [x for x in told if abs(x - float(text)) <= 1.01 * unit(text)]
            assert near or text in said, where
        for spelled, result in SUM.findall(said):
            near = pytest.approx(float(result), abs=5 * unit(result), nan_ok=True)
            assert value(spelled) == near, where
    assert silent <= {"Scores"}  # of the training lab: they are what they are


def sums_hold(root, page, name):
    """Require every number to be told, and every sum to hold, after each control."""
    tab = root.get_by_role("button", name="More", exact=True, expanded=False)
    if tab.count():
        tab.click()
    tokens = getattr(ROWS[name].make(), "tokens", [])
    check_said(root, tokens)
    for kind, label, wanted in ROWS[name].controls:
        with_keyboard(page, find(root, kind, label), kind, wanted)
        check_said(root, tokens)
        reset(root)


# ---- links ----


def links_restore(root, page, name):
    """Require the link of each control's state to lead back there after Reset."""
    for kind, label, wanted in ROWS[name].controls:
        lab, control = ROWS[name].make(), find(root, kind, label)
        with_keyboard(page, control, kind, wanted)
        set_in_python(lab, control, kind, wanted)
        link = root.locator("input[readonly]").first.input_value()
        reset(root)
        follow(page, "#elsewhere")
        follow(page, f"#{link.partition('#')[2]}")
        check(root, lab)
        reset(root)
