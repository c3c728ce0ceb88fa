"""The same cell in a live JupyterLab: from the front end to the kernel and back."""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from functools import partial
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import expect

from tests.chapter.labs.on_screen import (
    CONTROLS,
    MAKE,
    check,
    find,
    set_in_python,
    wait_until_shown,
    with_keyboard,
)

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[3]
CELLS = [
    "from attention.chapter.labs import AttentionLab\nlab = AttentionLab()\nlab",
    "print('kernel has', lab.query, lab.causal, lab.inputs[0][0])",
    "lab.query = 4",
]


@pytest.fixture(scope="module")
def jupyterlab(tmp_path_factory):
    """A JupyterLab; gives a function from a notebook's cells to its address."""
    pytest.importorskip("jupyterlab")
    folder = tmp_path_factory.mktemp("live")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", f"--port={port}",
        "--ip=127.0.0.1", "--IdentityProvider.token=",
        f"--ServerApp.root_dir={folder}",
        "--LabApp.extension_manager=readonly", "--allow-root",
    ]  # fmt: skip
    # Its own home: the reader's settings and layouts stay as they are.
    env = {**os.environ, "HOME": str(folder / "home"), "PYTHONPATH": str(ROOT)}
    env |= {"PYTHONWARNINGS": "ignore", "PYTHONDONTWRITEBYTECODE": "1"}
    address = f"http://127.0.0.1:{port}"

    def open_at(name, sources):
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        notebook = nbformat.v4.new_notebook(cells=cells)
        notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
        nbformat.write(notebook, folder / f"{name}.ipynb")
        # A workspace of its own: JupyterLab would open the last notebook, too.
        return f"{address}/lab/workspaces/{name}/tree/{name}.ipynb"

    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        try:
            _wait_for(address + "/api", folder / "log")
            yield open_at
        finally:
            server.terminate()  # ends its kernels, too
            server.wait(timeout=30)


def _wait_for(address, log):
    for _ in range(240):
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            time.sleep(0.25)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text()[-2000:]}")


def _run(page, cells, i):
    """Run cell i; JupyterLab drops the request while its kernel is not connected.

    Its status line says "Idle" before that, so only the cell's prompt tells: `[*]` or
    a number once the kernel has the cell, `[ ]` when the keys were lost.
    """
    prompt = cells.nth(i).locator(".jp-InputPrompt")
    taken = re.compile(r"\[(\*|\d+)\]")
    for _ in range(20):
        cells.nth(i).locator(".cm-content").click()
        page.keyboard.press("Shift+Enter")
        try:
            expect(prompt).to_have_text(taken, timeout=5_000)
            return
        except AssertionError:
            continue
    pytest.fail(f"the kernel never took cell {i}:\n{page.inner_text('body')[-1000:]}")


@pytest.fixture
def notebook(visit, jupyterlab):
    """Open a notebook of these cells; gives its page, the cells, and what runs one."""

    def open_(name, sources):
        page = visit(viewport={"width": 1300, "height": 1400}).open(
            jupyterlab(name, sources)
        )
        cells = page.locator(".jp-Notebook .jp-CodeCell")
        cells.nth(len(sources) - 1).wait_for(timeout=60_000)
        return page, cells, partial(_run, page, cells)

    return open_


def test_round_trip(notebook):
    page, cells, run = notebook("attention", CELLS)
    run(0)
    root = page.locator(".attn-lab")
    root.wait_for(timeout=120_000)
    assert root.get_by_label("journey", exact=True).is_checked()

    # Front end to kernel.
    root.get_by_label("Causal mask").check()
    root.get_by_label("journey", exact=True).focus()
    page.keyboard.press("ArrowRight")
    root.get_by_label("Inputs x, Your, 1").fill("0.5")
    run(1)
    printed = cells.nth(1).locator(".jp-OutputArea-output")
    printed.wait_for(timeout=60_000)
    assert printed.inner_text().strip() == "kernel has 2 True 0.5"

    # Kernel to front end.
    run(2)
    root.get_by_label("one", exact=True).and_(page.locator(":checked")).wait_for()
    assert "one attends most to" in root.locator(".al-summary").inner_text()

    # Keys that mean something to a notebook stay in the lab.
    root.get_by_role("grid").nth(1).locator('[tabindex="0"]').focus()
    for key in ("ArrowDown", "ArrowDown", "b", "a", "x", "d", "d", "Enter"):
        page.keyboard.press(key)
    where = "() => !!document.activeElement.closest('.attn-lab td')"
    assert page.evaluate(where)
    count = cells.count()
    assert root.count() == 1
    assert root.get_by_label("starts", exact=True).is_checked()  # the third row
    assert count == 4  # the three and the one that running the last cell adds
    if os.environ.get("LABS_SHOTS"):
        page.screenshot(path=f"{os.environ['LABS_SHOTS']}/live.png")


# Lab, the control that is moved on screen, and what the kernel then sets.
ROUND_TRIPS = [
    ("MaskLab", ("checkbox", "Divide rows by their sum"), {"part": "tril"}),
    ("ScaleLab", ("number", "exactly"), {"seed": 3}),
    ("DropoutLab", ("button", "Draw again"), {"p": 0.25}),
    ("HeadSplitLab", ("radio", "3. scores"), {"num_tokens": 4}),
    ("MultiHeadLab", ("range", "num_heads"), {"d_head": 1}),
    ("TrainingLab", ("select", "Head"), {"at": 2}),
]


@pytest.mark.parametrize(("name", "moved", "by_kernel"), ROUND_TRIPS)
def test_every_lab_goes_to_the_kernel_and_back(notebook, name, moved, by_kernel):
    kind, label = moved
    _, _, _, wanted = next(row for row in CONTROLS if row[:3] == (name, *moved))
    page, cells, run = notebook(
        name,
        [
            "from tests.chapter.labs.on_screen import MAKE\n"
            f"lab = MAKE['{name}']()\nlab",
            f"print([getattr(lab, trait) for trait in {list(wanted)}])",
            "\n".join(f"lab.{trait} = {value!r}" for trait, value in by_kernel.items()),
        ],
    )
    run(0)
    root = page.locator(".attn-lab")
    root.wait_for(timeout=120_000)
    lab = MAKE[name]()
    check(root, lab)

    control = find(root, kind, label)
    with_keyboard(page, control, kind, wanted)
    set_in_python(lab, control, kind, wanted)
    check(root, lab)
    run(1)
    printed = cells.nth(1).locator(".jp-OutputArea-output")
    expect(printed).to_have_text(str([getattr(lab, trait) for trait in wanted]))

    run(2)
    for trait, value in by_kernel.items():
        setattr(lab, trait, value)
    wait_until_shown(page, root, lab)
    if os.environ.get("LABS_SHOTS"):
        root.screenshot(path=f"{os.environ['LABS_SHOTS']}/live-{name}.png")
