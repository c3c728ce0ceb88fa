"""Every page in JupyterLab and in Notebook, in a browser: the table of docs/running.md.

Cells are run, labs moved and links followed; what is seen must be what the notebook
asks for.
"""

import copy
import json
import re

import nbformat
import pytest

from coding_attention.stored import HTML, LAB, NEEDS_KERNEL, PICTURE, VIEW, html_of
from tests import live
from tests.book.pages import BOOK, IN_SMALL, pages
from tests.book.test_links import LINK

pytestmark = [pytest.mark.weekly, pytest.mark.timeout(3600)]

PAGES = {page.name: page for page in pages()}
EMPTY, UNTRUSTED = "empty.ipynb", "untrusted-{}.ipynb"
# Each code cell as it is on screen.
LOOK = """() => jupyterapp.shell.currentWidget.content.widgets
  .filter(cell => cell.model.type === 'code').map(cell => ({
    name: cell.model.getMetadata('name'),
    ran: cell.model.executionCount !== null,
    errors: cell.model.outputs.toJSON().filter(o => o.output_type === 'error').length,
    folded: cell.inputHidden,
    closed: cell.outputHidden,
    drawings: cell.node.querySelectorAll('.attention-figure svg').length,
    pictures: cell.node.querySelectorAll('.jp-RenderedImage img').length,
    asked: cell.model.outputs.toJSON().filter(o => o.data?.[VIEW]).length,
    widgets: cell.node.querySelectorAll(
      '.attn-lab, .jp-OutputArea-output > .jupyter-widgets').length,
  }))""".replace("VIEW", f"'{VIEW}'")
COME = f"() => ({LOOK})().every(cell => cell.widgets >= cell.asked)"
OPEN = "() => jupyterapp.commands.execute('notebook:show-all-cell-outputs')"
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
# A lab computes in the page: it has answered within frames, or it never will.
ANSWERS = f"""async (lab, before) => {{
  for (let frame = 0; frame < 600; frame++) {{
    if (({SHOWN})(lab) !== before) return true;
    await new Promise(requestAnimationFrame);
  }}
  return false;
}}"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A Jupyter that serves all pages, an empty one, and one that nobody ran."""
    folder = tmp_path_factory.mktemp("hosts")
    for name, page in PAGES.items():
        notebook = copy.deepcopy(page.notebook)
        first = next(c for c in notebook.cells if c.cell_type == "code")
        first.source = "\n".join([IN_SMALL.get(name, ""), first.source]).lstrip()
        nbformat.write(notebook, folder / f"{name}.ipynb")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 + 1")])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, folder / EMPTY)
    # Of their own content: Jupyter trusts what it has signed, under any name, and it
    # signs a page whose cells have run when it saves it.
    for name in PAGES:
        unseen = nbformat.read(BOOK / f"{name}.ipynb", as_version=4)
        unseen.metadata.title = UNTRUSTED
        nbformat.write(unseen, folder / UNTRUSTED.format(name))
    with live.jupyter(folder) as address:
        yield address


@pytest.fixture(scope="module")
def own_errors(browser, address, once):
    """What each host complains about by itself: an empty notebook, run once for all."""

    def note(file):
        found = {}
        for host in live.HOSTS:
            with live.opened(browser, address, host, EMPTY) as visit:
                assert visit.page.evaluate(RUN)
                found[host] = visit.failures
        file.write_text(json.dumps(found), encoding="utf-8")

    told = json.loads(once("own-errors.json", note).read_text(encoding="utf-8"))
    return {host: set(failures) for host, failures in told.items()}


def names_where(cells, wanted):
    return [cell["name"] for cell in cells if wanted(cell)]


def tagged(page, *tags):
    return [
        c.metadata.name
        for c in page.code_cells
        if {*tags} & {*c.metadata.get("tags", [])}
    ]


def stored(page, what):
    """How often each cell's stored outputs have something, by its name."""
    return {
        cell.metadata.name: sum(
            what(mime, text)
            for output in cell.outputs
            for mime, text in {**output.get("data", {}), HTML: html_of(output)}.items()
        )
        for cell in page.code_cells
    }


def drawings(mime, text):
    return text.count("<svg") if mime == HTML else 0


def widgets(mime, text):
    return mime == LAB or text == NEEDS_KERNEL


def figures_of(page):
    """The number of drawings of each cell without a widget, by the stored outputs."""
    shown = stored(page, widgets)
    return {n: k for n, k in stored(page, drawings).items() if k and not shown[n]}


def drawn_in(cells):
    return {c["name"]: c["drawings"] for c in cells if c["drawings"]}


def links_within(page):
    text = "\n".join(page.prose)
    return [link for link in LINK.findall(text) if link.startswith("#")]


MOVABLE = (
    "select, input[type=range], input[type=radio]:not(:checked), [type=checkbox], "
    "button[aria-pressed=false], svg [aria-valuemax]"
)

# The key that moves it, whichever end it stands at.
KEY = """control => {
  const { ariaValueNow, ariaValueMax } = control;
  if (control.closest('svg'))
    return ariaValueNow === ariaValueMax ? 'ArrowLeft' : 'ArrowRight';
  if (control.localName === 'select')
    return control.selectedIndex + 1 < control.length ? 'ArrowDown' : 'ArrowUp';
  if (control.type === 'range')
    return control.valueAsNumber > control.min ? 'ArrowDown' : 'ArrowUp';
  return 'Space';
}"""


def move(page, lab):
    """Move the first control that has a state, as a reader would; the lab answers."""
    lab.scroll_into_view_if_needed()
    before = lab.evaluate(SHOWN)
    controls = lab.locator(f":is({MOVABLE}):visible")
    assert controls.count(), "nothing to move"
    controls.first.focus()
    key = controls.first.evaluate(KEY)
    page.keyboard.press(key)
    assert lab.evaluate(ANSWERS, before), f"no answer to {key}"


class Seen:
    """A page in a host: as it was opened, and once its cells have run."""

    def __init__(self, visit, name):
        self.visit, self.page = visit, PAGES[name]
        self.opened = visit.page.evaluate(LOOK)
        self.ran = visit.page.evaluate(RUN)
        if self.ran:  # below a cell that failed, no lab will come
            visit.page.wait_for_function(COME)
        self.cells = visit.page.evaluate(LOOK)


HOSTS = list(live.HOSTS)


def check_cells(seen):
    """All have run to the end, and are folded as their tags say."""
    assert seen.ran
    assert names_where(seen.cells, lambda cell: not cell["ran"]) == []
    meant = tagged(seen.page, "raises-exception")
    assert names_where(seen.cells, lambda cell: cell["errors"]) == meant
    inputs = names_where(seen.opened, lambda cell: cell["folded"])
    assert inputs == tagged(seen.page, "hide-input", "hide-cell")
    outputs = names_where(seen.opened, lambda cell: cell["closed"])
    assert outputs == tagged(seen.page, "hide-output", "hide-cell")


def check_figures_and_labs(seen):
    """Figures are drawn, and labs answer the keyboard."""
    assert drawn_in(seen.cells) == figures_of(seen.page)
    shown = {cell["name"]: cell["widgets"] for cell in seen.cells}
    assert shown == stored(seen.page, widgets)
    for lab in seen.visit.page.locator(".attn-lab").all():
        move(seen.visit.page, lab)


def check_prose(seen):
    """Formulas are set, no markup is left, and links lead to their place."""
    text = seen.visit.page.evaluate(PROSE)
    assert not re.search(r":::|\{[a-z:]+\}`|\$", text)
    formulas = seen.visit.page.evaluate(MATHS)
    shown = re.sub(r"<!--.*?-->", "", "".join(seen.page.prose), flags=re.DOTALL)
    assert bool(formulas) == ("$" in shown)
    for link in links_within(seen.page):
        anchors = seen.visit.page.locator(f'.jp-RenderedMarkdown a[href$="{link}"]')
        assert anchors.count(), f"{link} is no link"
        assert anchors.first.evaluate(FOLLOW), f"{link} leads nowhere"


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("host", HOSTS)
def test_every_page_works(browser, address, own_errors, host, name):
    own = own_errors[host]
    with live.opened(browser, address, host, f"{name}.ipynb", own) as visit:
        seen = Seen(visit, name)
        check_cells(seen)
        check_figures_and_labs(seen)
        check_prose(seen)
        # Last, of all that was done: no error but the host's own.
        assert set(visit.failures) <= own
        assert not visit.page.locator(".jp-Dialog").count()


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("host", HOSTS)
def test_stored_figures_are_there_before_a_cell_has_run(
    browser, address, own_errors, host, name
):
    """As pictures, and untrusted: Jupyter shows no drawing of a page it didn't run.

    A lab is one of them; of its widget nothing is stored, which would be an error.
    """
    with live.opened(browser, address, host, UNTRUSTED.format(name)) as visit:
        visit.page.evaluate(OPEN)  # the folded answers, too
        cells = visit.page.evaluate(LOOK)
        pictures = stored(PAGES[name], lambda mime, text: mime == PICTURE)
        assert {c["name"]: c["pictures"] for c in cells} == pictures
        assert drawn_in(cells) == {}
        assert set(visit.failures) <= own_errors[host]
