"""The same cell in a live JupyterLab: from the front end to the kernel and back."""

import os
import re

import nbformat
import pytest
from playwright.sync_api import expect

from tests import live
from tests.coding_attention.labs.on_screen import (
    CONTROLS,
    MAKE,
    check,
    find,
    set_in_python,
    wait_until_shown,
    with_keyboard,
)
from tests.live import LONG

pytestmark = [pytest.mark.browser, pytest.mark.timeout(1800)]

# Lab, the control that is moved on screen, and what the kernel then sets.
ROUND_TRIPS = [
    ("MaskLab", ("checkbox", "Divide rows by their sum"), {"part": "tril"}),
    ("ScaleLab", ("number", "exactly"), {"seed": 3}),
    ("DropoutLab", ("button", "Draw once"), {"p": 0.25}),
    ("HeadSplitLab", ("radio", "3. scores"), {"num_tokens": 4}),
    ("MultiHeadLab", ("range", "num_heads"), {"d_head": 1}),
    ("TrainingLab", ("select", "Head"), {"at": 2}),
]


def wanted_by(name, moved):
    return next(row[3] for row in CONTROLS if row[:3] == (name, *moved))


# Three cells for each lab: show it, print what the screen set, set something. They
# stand in one notebook: one kernel that imports PyTorch, one JupyterLab to load.
CELLS = {
    "AttentionLab": [
        "from coding_attention.labs import AttentionLab\nlab = AttentionLab()\nlab",
        "print('kernel has', lab.query, lab.causal, lab.inputs[0][0])",
        "lab.query = 4",
    ]
} | {
    name: [
        "from tests.coding_attention.labs.on_screen import MAKE\n"
        f"lab = MAKE['{name}']()\nlab",
        f"print([getattr(lab, trait) for trait in {list(wanted_by(name, moved))}])",
        "\n".join(f"lab.{trait} = {value!r}" for trait, value in by_kernel.items()),
    ]
    for name, moved, by_kernel in ROUND_TRIPS
}
# Labs whose controls are of their own kind: what is pressed, what the kernel then has,
# and what is on screen once the kernel has set something.
OWN = {
    "BankLab": (
        ["from coding_attention.labs import BankLab\nlab = BankLab()\nlab",
         "print(lab.vectors['flooded'])",
         "lab.vectors = lab.vectors | {'river': [0.5, 0.5]}"],
        ({"name": re.compile("^flooded: ")}, "ArrowLeft", "[1.9, 0.0]"),
        {"name": re.compile(r"^river: .*0\.5.*0\.5")},
    ),
    "TinyGptLab": (
        ["from tests.coding_attention.labs.test_tiny_gpt import lab as make\n"
         "lab = make()\nlab",
         "print(lab.silenced)",
         "lab.silenced = [1]"],
        ({"name": "block 1, head 1"}, "Enter", "[0]"),
        {"name": "block 1, head 2", "pressed": False},
    ),
}  # fmt: skip
CELLS |= {name: cells for name, (cells, _, _) in OWN.items()}
SOURCES = [source for sources in CELLS.values() for source in sources]


@pytest.fixture(scope="module")
def jupyterlab(tmp_path_factory):
    """The address of a Jupyter with a notebook of all cells."""
    folder = tmp_path_factory.mktemp("live")
    cells = [nbformat.v4.new_code_cell(source) for source in SOURCES]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, folder / "labs.ipynb")
    with live.jupyter(folder) as address:
        yield address


@pytest.fixture(scope="module")
def page(browser, jupyterlab):
    """The notebook in JupyterLab, once its kernel has answered."""
    size = {"width": 1300, "height": 1400}
    with live.opened(
        browser, jupyterlab, "JupyterLab", "labs.ipynb", viewport=size
    ) as visit:
        visit.page.locator(".jp-Notebook .jp-CodeCell").nth(len(SOURCES) - 1).wait_for()
        yield visit.page


@pytest.fixture
def run(page):
    """Run the i-th cell of a lab with the keyboard; gives the cell once it has run."""

    def run_(name, i):
        cells = page.locator(".jp-Notebook .jp-CodeCell")
        cell = cells.nth(SOURCES.index(CELLS[name][i]))
        dialog = page.locator(".jp-Dialog")
        assert dialog.count() == 0, dialog.all_inner_texts()
        cell.locator(".cm-content").click()
        page.keyboard.press("Shift+Enter")
        # `[ ]` before, `[*]` while it runs.
        has_run = re.compile(r"\[\d+\]")
        expect(cell.locator(".jp-InputPrompt")).to_have_text(has_run, timeout=LONG)
        return cell

    return run_


def test_round_trip(page, run):
    root = run("AttentionLab", 0).locator(".attn-lab")
    root.wait_for()
    assert root.get_by_label("journey", exact=True).is_checked()
    root.locator("summary", has_text="Numbers").click()

    # Front end to kernel.
    root.get_by_label("Causal mask").check()
    root.get_by_label("journey", exact=True).focus()
    page.keyboard.press("ArrowRight")
    root.get_by_label("Inputs x, Your, 1").fill("0.5")
    printed = run("AttentionLab", 1).locator(".jp-OutputArea-output")
    printed.wait_for()
    assert printed.inner_text().strip() == "kernel has 2 True 0.5"

    # Kernel to front end.
    run("AttentionLab", 2)
    expect(root.get_by_label("one", exact=True)).to_be_checked(timeout=LONG)
    assert "one attends most to" in root.locator(".al-summary").inner_text()

    # Keys that mean something to a notebook stay in the lab.
    root.locator("table.al-heat").locator('[tabindex="0"]').first.focus()
    for key in ("ArrowDown", "ArrowDown", "b", "a", "x", "d", "d", "Enter"):
        page.keyboard.press(key)
    where = "() => !!document.activeElement.closest('.attn-lab td')"
    assert page.evaluate(where)
    assert root.count() == 1
    assert root.get_by_label("starts", exact=True).is_checked()  # the third row
    assert page.locator(".jp-Notebook .jp-CodeCell").count() == len(SOURCES)
    if os.environ.get("LABS_SHOTS"):
        page.screenshot(path=f"{os.environ['LABS_SHOTS']}/live.png")


@pytest.mark.parametrize(("name", "moved", "by_kernel"), ROUND_TRIPS)
def test_every_lab_goes_to_the_kernel_and_back(page, run, name, moved, by_kernel):
    kind, label = moved
    wanted = wanted_by(name, moved)
    root = run(name, 0).locator(".attn-lab")
    root.wait_for()
    lab = MAKE[name]()
    check(root, lab)

    control = find(root, kind, label)
    with_keyboard(page, control, kind, wanted)
    set_in_python(lab, control, kind, wanted)
    check(root, lab)
    printed = run(name, 1).locator(".jp-OutputArea-output")
    expect(printed).to_have_text(
        str([getattr(lab, trait) for trait in wanted]), timeout=LONG
    )

    run(name, 2)
    for trait, value in by_kernel.items():
        setattr(lab, trait, value)
    wait_until_shown(page, root, lab, seconds=600)
    if os.environ.get("LABS_SHOTS"):
        root.screenshot(path=f"{os.environ['LABS_SHOTS']}/live-{name}.png")


@pytest.mark.parametrize("name", OWN)
def test_labs_of_their_own_kind_go_to_the_kernel_and_back(page, run, name):
    _, (which, key, kernel_has), shown = OWN[name]
    root = run(name, 0).locator(".attn-lab")
    root.wait_for()
    root.get_by_role("button", **which).focus()
    page.keyboard.press(key)
    printed = run(name, 1).locator(".jp-OutputArea-output")
    expect(printed).to_have_text(kernel_has, timeout=LONG)
    assert root.get_by_role("button", **shown).count() == 0
    run(name, 2)
    expect(root.get_by_role("button", **shown)).to_have_count(1, timeout=LONG)
