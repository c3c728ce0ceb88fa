"""The same cell in a live JupyterLab: from the front end to the kernel and back."""

import re

import nbformat
import pytest
from playwright.sync_api import expect

from tests import live
from tests.coding_attention.labs.screen import (
    check,
    find,
    open_settings,
    set_by_keys,
    set_in_python,
    wait_until_shown,
)
from tests.coding_attention.labs.table import ROWS
from tests.live import LONG

pytestmark = [pytest.mark.weekly, pytest.mark.timeout(1800)]

# Three cells for each lab: show it, print what the screen set, set something. They
# stand in one notebook: one kernel that imports PyTorch, one JupyterLab to load.
MOVED = {
    name: (moved, wanted, by_kernel)
    for name, row in ROWS.items()
    if row.live
    for moved, by_kernel in [row.live]
    for *control, wanted in row.controls
    if tuple(control) == moved
}
CELLS = {
    name: [
        "from tests.coding_attention.labs.table import ROWS\n"
        f"lab = ROWS['{name}'].make()\nlab",
        f"print([getattr(lab, trait) for trait in {list(wanted)}])",
        "\n".join(f"lab.{trait} = {value!r}" for trait, value in by_kernel.items()),
    ]
    for name, (_, wanted, by_kernel) in MOVED.items()
}
CELLS["AttentionLab"] += ["print('kernel has', lab.query, lab.inputs[0][0])"]
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


def printed(cell):
    """Give what a cell that has run printed: once it is there, it is all."""
    return cell.locator(".jp-OutputArea-output").inner_text().strip()


def test_keys_that_mean_something_to_a_notebook_stay_in_the_lab(page, run):
    root = run("AttentionLab", 0).locator(".attn-lab")
    root.wait_for()
    root.locator("table.al-heat").locator('[tabindex="0"]').first.focus()
    for key in ("ArrowDown", "ArrowDown", "b", "a", "x", "d", "d", "Enter"):
        page.keyboard.press(key)
    where = "() => !!document.activeElement.closest('.attn-lab td')"
    assert page.evaluate(where)
    assert root.count() == 1
    query = root.get_by_role("combobox", name="Query")
    assert query.input_value() == "starts"  # the third row
    assert page.locator(".jp-Notebook .jp-CodeCell").count() == len(SOURCES)
    # So do numbers; all of it comes to the kernel.
    open_settings(root)
    root.get_by_label("Inputs x, Your, 1").fill("0.5")
    root.get_by_label("Inputs x, Your, 1").blur()
    assert printed(run("AttentionLab", 3)) == "kernel has 2 0.5"


@pytest.mark.parametrize("name", MOVED)
def test_every_lab_goes_to_the_kernel_and_back(page, run, name):
    (kind, label), wanted, by_kernel = MOVED[name]
    root = run(name, 0).locator(".attn-lab")
    root.wait_for()
    lab = ROWS[name].make()
    check(root, lab)

    open_settings(root)
    control = find(root, kind, label)
    assert control.is_visible(), f"{name} has no {kind} {label!r}"
    set_by_keys(page, control, kind, wanted)
    set_in_python(lab, control, wanted)
    check(root, lab)
    assert printed(run(name, 1)) == str([getattr(lab, trait) for trait in wanted])

    run(name, 2)
    for trait, value in by_kernel.items():
        setattr(lab, trait, value)
    wait_until_shown(root, lab)
