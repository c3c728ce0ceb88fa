"""Every page in JupyterLab and in Notebook, in a browser: what README's table says.

A small page is opened in every run; all of them by `make hosts`. Cells are run, labs
moved and links followed; what is seen must be what the notebook asks for.
"""

import re
import shutil
import subprocess
import sys

import nbformat
import pytest

from tests import live
from tests.book.pages import BOOK, ROOT, pages
from tests.book.test_links import LINK

pytestmark = [pytest.mark.browser, pytest.mark.timeout(3600)]

PAGES = {page.name: page for page in pages()}
SMALL = "index"
EMPTY, TRUSTED = "empty.ipynb", "trusted.ipynb"
# Each code cell as it is on screen.
LOOK = """() => jupyterapp.shell.currentWidget.content.widgets
  .filter(cell => cell.model.type === 'code').map(cell => ({
    name: cell.model.getMetadata('name'),
    ran: cell.model.executionCount !== null,
    errors: cell.model.outputs.toJSON().filter(o => o.output_type === 'error').length,
    folded: cell.inputHidden,
    closed: cell.outputHidden,
    drawings: cell.node.querySelectorAll('.attention-figure svg').length,
    captions: cell.node.querySelectorAll('figcaption').length,
    labs: cell.node.querySelectorAll('.attn-lab').length,
  }))"""
RUN = "() => jupyterapp.commands.execute('notebook:run-all-cells')"
PROSE = """() => [...document.querySelectorAll('.jp-RenderedMarkdown')]
  .map(cell => cell.textContent).join('\\n')"""
MATHS = """() => document.querySelectorAll(
  '.jp-RenderedMarkdown mjx-container, .jp-RenderedMarkdown .MathJax').length"""
# Follow a link within the page; tell whether its target has come into view.
FOLLOW = """async link => {
  const id = decodeURIComponent(link.hash.slice(1));
  const target = document.querySelector(`[id="${id}"], [data-jupyter-id="${id}"]`);
  if (!target) return false;
  const panel = target.closest('.jp-WindowedPanel-outer');
  link.click();
  for (let frame = 0; frame < 600; frame++) {
    const [at, from] = [target.getBoundingClientRect(), panel.getBoundingClientRect()];
    if (at.top >= from.top - 5 && at.top <= from.bottom) return true;
    await new Promise(requestAnimationFrame);
  }
  return false;
}"""
# All that a lab shows, apart from where its controls stand.
SHOWN = """lab => lab.textContent + [...lab.querySelectorAll('*')]
  .map(part => (part.getAttribute('style') ?? '') + (part.getAttribute('d') ?? '')
    + (part.getAttribute('class') ?? '') + (part.getAttribute('aria-label') ?? ''))"""
CHANGED = f"([lab, before]) => ({SHOWN})(lab) !== before"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A Jupyter that serves all pages, an empty one, and one that is trusted."""
    folder = tmp_path_factory.mktemp("hosts")
    for name in PAGES:
        shutil.copy(BOOK / f"{name}.ipynb", folder)
    empty = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 + 1")])
    empty.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(empty, folder / EMPTY)
    shutil.copy(BOOK / "06_averaging.ipynb", folder / TRUSTED)
    with live.jupyter(folder) as address:
        command = [sys.executable, "-m", "jupyter", "trust", TRUSTED]
        home = {"HOME": str(folder / ".home"), "PATH": ""}
        subprocess.run(command, cwd=folder, env=home, check=True, capture_output=True)
        yield address


@pytest.fixture(scope="module")
def own_errors(browser, address):
    """What each host complains about by itself: an empty notebook, run."""
    found = {}
    for host in live.HOSTS:
        with live.opened(browser, address, host, EMPTY) as visit:
            assert visit.page.evaluate(RUN)
            found[host] = set(visit.failures)
    return found


def names_where(cells, wanted):
    return [cell["name"] for cell in cells if wanted(cell)]


def tagged(page, tag):
    return [
        c.metadata.name for c in page.code_cells if tag in c.metadata.get("tags", [])
    ]


def stored(page, what):
    """How often each cell's stored outputs have something, by its name."""
    return {
        cell.metadata.name: sum(
            what(mime, text)
            for output in cell.outputs
            for mime, text in output.get("data", {}).items()
        )
        for cell in page.code_cells
    }


def drawings(mime, text):
    return text.count("<svg") if mime == "text/html" else 0


def widgets(mime, text):
    return mime == "application/vnd.jupyter.widget-view+json"


def links_within(page):
    text = "\n".join(page.prose)
    return [link for link in LINK.findall(text) if link.startswith("#")]


def move(page, lab):
    """Move the first control that has a state, as a reader would; the lab answers."""
    lab.scroll_into_view_if_needed()
    before = lab.evaluate(SHOWN)
    states = (
        "select, input[type=range], input[type=radio]:not(:checked), [type=checkbox]"
    )
    control = lab.locator(f":is({states}, button):enabled:visible").first
    control.focus()
    tag, kind = control.evaluate("e => [e.localName, e.type]")
    arrow = tag == "select" or kind == "range"
    page.keyboard.press("ArrowDown" if arrow else "Space")
    if arrow:  # it stood at its end
        page.keyboard.press("ArrowUp") if lab.evaluate(SHOWN) == before else None
    page.wait_for_function(CHANGED, arg=[lab.element_handle(), before])


def check_page(browser, address, own_errors, host, name):
    page = PAGES[name]
    with live.opened(browser, address, host, f"{name}.ipynb") as visit:
        opened = visit.page.evaluate(LOOK)
        assert names_where(opened, lambda c: c["folded"]) == tagged(page, "hide-input")
        assert names_where(opened, lambda c: c["closed"]) == tagged(page, "hide-output")

        assert visit.page.evaluate(RUN), f"{name} stopped in {host}"
        labs = visit.page.locator(".attn-lab")
        if any(stored(page, widgets).values()):
            labs.nth(sum(stored(page, widgets).values()) - 1).wait_for()
        cells = visit.page.evaluate(LOOK)
        assert names_where(cells, lambda c: not c["ran"]) == []
        meant = tagged(page, "raises-exception")
        assert names_where(cells, lambda c: c["errors"]) == meant
        assert {c["name"]: c["drawings"] for c in cells} == stored(page, drawings)
        assert {c["name"]: c["labs"] for c in cells} == stored(page, widgets)
        for lab in labs.all():
            move(visit.page, lab)

        assert not re.search(r":::|\{[a-z:]+\}`|\$", visit.page.evaluate(PROSE))
        assert (visit.page.evaluate(MATHS) > 0) == ("$" in "".join(page.prose))
        for link in links_within(page):
            anchor = visit.page.locator(f'.jp-RenderedMarkdown a[href$="{link}"]').first
            assert anchor.evaluate(FOLLOW), f"{name}: {link} leads nowhere in {host}"
        assert set(visit.failures) <= own_errors[host]
        assert not visit.page.locator(".jp-Dialog").count()


@pytest.mark.parametrize("host", live.HOSTS)
def test_a_small_page_works(browser, address, own_errors, host):
    check_page(browser, address, own_errors, host, SMALL)


@pytest.mark.hosts
@pytest.mark.parametrize("name", [name for name in PAGES if name != SMALL])
@pytest.mark.parametrize("host", live.HOSTS)
def test_every_page_works(browser, address, own_errors, host, name):
    check_page(browser, address, own_errors, host, name)


@pytest.mark.parametrize("host", live.HOSTS)
def test_stored_figures_are_drawn_once_the_notebook_is_trusted(browser, address, host):
    expected = stored(PAGES["06_averaging"], drawings)
    with live.opened(browser, address, host, "06_averaging.ipynb") as visit:
        cells = visit.page.evaluate(LOOK)
        assert not any(cell["drawings"] for cell in cells)
        # What stays are the words.
        assert all(c["captions"] for c in cells if expected[c["name"]])
    with live.opened(browser, address, host, TRUSTED) as visit:
        cells = visit.page.evaluate(LOOK)
        assert {c["name"]: c["drawings"] for c in cells} == expected


def test_readme_says_in_which_hosts_pages_were_opened():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    head, _, *rows = re.search(r"^\| in .*\n(?:\|.*\n)+", text, re.M)[0].splitlines()
    assert [cell.strip() for cell in head.split("|")[2:-1]] == [
        *live.HOSTS, "Colab, VS Code, GitHub"
    ]  # fmt: skip
    assert len(rows) >= 7
    for row in rows:
        *_, first, second, other = [cell.strip() for cell in row.strip("|").split("|")]
        assert first == second
        assert other == "not tried"
