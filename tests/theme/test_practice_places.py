"""The places for answers in the HTML of the page: with an address, and without."""

import ast

import nbformat
from bs4 import BeautifulSoup

from theme import practice

CELL = '<div class="cell docutils container" id="check-{}">…</div>'
BODY = (
    '<section class="tex2jax_ignore" id="exercises"><h1>Exercises</h1>'
    f'<section id="a">{CELL.format("3-2")}{CELL.format("causal-class")}</section>'
    '<section id="b"></section></section>'
)


def test_without_an_address_there_is_a_notebook_to_download_and_no_host():
    html = practice.add_places(BODY)
    assert html.count("<a ") == html.count("<a download href=") == 2
    assert "../_static/exercises/causal-class.ipynb" in html
    assert "../_static/exercises/3-2.ipynb" in html


def test_with_an_address_each_exercise_links_the_hosts_and_colab_at_its_cell():
    binder = "https://mybinder.org/v2/gh/o/n/main?urlpath=lab/tree/x.ipynb&y=1"
    colab = "https://c.example/x.ipynb"
    buttons = [{"text": "Binder", "url": binder}, {"text": "Colab", "url": colab}]
    context = {"header_buttons": [{"label": "launch-buttons", "buttons": buttons}]}
    html = practice.add_places(BODY, practice._list_hosts(context))
    places = BeautifulSoup(html, "html.parser").select(".practice-notebook")
    assert [[a["href"] for a in place.find_all("a")[1:]] for place in places] == [
        [binder, f"{colab}#scrollTo=write-3-2"],
        [binder, f"{colab}#scrollTo=write-causal-class"],
    ]
    assert practice._list_hosts({}) == []


def test_each_exercise_has_a_notebook_that_runs_to_its_check():
    for name, text in practice.build_notebooks().items():
        notebook = nbformat.reads(text, as_version=4)
        nbformat.validate(notebook)
        task, *cells = notebook.cells
        assert task.source.startswith("### ")
        code = [cell.source for cell in cells if cell.cell_type == "code"]
        names = {}
        # Figures aside, which draw what the page shows; the first installs the package.
        for source in (c for c in code if "figures.show(" not in c):
            exec(source, names)
        check = ast.parse(code[-1]).body[0].value
        assert check.func.id == "check_exercise"
        verdict = eval(code[-1], names)
        assert verdict.outcome == "nothing yet", name
        assert "solutions.ipynb" not in text


def test_a_notebook_first_installs_the_package_or_says_what_to_do():
    url = "https://github.com/org/name"
    for text in practice.build_notebooks(url).values():
        code = [c for c in nbformat.reads(text, 4).cells if c.cell_type == "code"]
        assert f"git+{url}" in code[0].source
        assert "import torch" in code[1].source
    without = "".join(practice.build_notebooks().values())
    assert without.count("pip install '.[pages]'") == len(practice.build_notebooks())
    assert "%pip" not in without
