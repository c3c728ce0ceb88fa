"""The pairing of pages: what keeps a page's outputs, and what runs it again."""

import subprocess
import sys

import nbformat
import pytest

from coding_attention import published_values
from tests.book.pages import ROOT
from tools import notebooks

PAGE = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# A page

Words of it.

```{code-cell} ipython3
:name: sum

print(1 + 1)
```

```{code-cell} ipython3
:name: six

6
```
"""


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """The text of a page's executed half, as a kernel left it."""
    page = tmp_path_factory.mktemp("executed") / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    notebooks.execute(page)
    first = page.with_suffix(".ipynb").read_bytes()
    notebooks.execute(page)
    assert page.with_suffix(".ipynb").read_bytes() == first
    return first


@pytest.fixture
def changed(executed, tmp_path):
    """A function that changes one text of the page; gives the page."""

    def change(old, new):
        assert PAGE.count(old) == 1
        page = tmp_path / "page.md"
        page.write_text(PAGE.replace(old, new), encoding="utf-8")
        page.with_suffix(".ipynb").write_bytes(executed)
        return page

    return change


def outputs(page):
    cells = nbformat.read(page.with_suffix(".ipynb"), as_version=4).cells
    return [(c.source, c.outputs, c.execution_count) for c in cells if "outputs" in c]


def test_an_unchanged_page_is_fresh(changed):
    assert not notebooks.is_stale(changed("Words", "Words"))


def test_changed_words_keep_the_outputs(changed):
    page = changed("Words of it.", "Other words.")
    assert notebooks.is_stale(page)
    assert not notebooks.needs_execution(page)
    before = outputs(page)
    assert before[1][1][0].text == "2\n"  # behind the cell that installs
    notebooks.reword(page)
    assert not notebooks.is_stale(page)
    assert outputs(page) == before
    text = page.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert "Other words." in text
    assert "Words of it." not in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("print(1 + 1)", "print(1 + 2)"),
        (":name: six\n", ":name: six\n:tags: [raises-exception]\n"),
        ("```{code-cell} ipython3\n:name: six\n\n6\n```\n", ""),
    ],
)
def test_changed_code_is_to_be_executed(changed, old, new):
    assert notebooks.needs_execution(changed(old, new))


@pytest.mark.parametrize(
    ("tags", "folded"),
    [
        ("hide-input", ["source_hidden"]),
        ("hide-output", ["outputs_hidden"]),
        ("hide-cell", ["source_hidden", "outputs_hidden"]),
        ("hide-input, hide-output", ["source_hidden", "outputs_hidden"]),
    ],
)
def test_tags_that_fold_a_cell_keep_the_outputs(changed, tags, folded):
    page = changed(":name: six\n", f":name: six\n:tags: [{tags}]\n")
    assert notebooks.is_stale(page)
    assert not notebooks.needs_execution(page)
    before = outputs(page)
    notebooks.reword(page)
    assert outputs(page) == before
    cell = nbformat.read(page.with_suffix(".ipynb"), as_version=4).cells[-1]
    assert cell.metadata.jupyter == dict.fromkeys(folded, True)


def test_the_verdict_on_a_published_value_is_stored_anew(changed, monkeypatch):
    """When the page says what a cell shows, and when a published value changes."""
    page = changed(":name: six\n", ":name: six\n:shows: [width]\n")
    published = {"id": "width", "kind": "output", "values": "6"}
    monkeypatch.setattr(published_values, "read_values", lambda: {"width": published})
    for digits, verdict in (("6", "equal"), ("7", "not equal")):
        published["values"] = digits
        assert notebooks.is_stale(page)
        assert not notebooks.needs_execution(page)
        notebooks.reword(page)
        assert not notebooks.is_stale(page)
        cell = nbformat.read(page.with_suffix(".ipynb"), as_version=4).cells[-1]
        assert cell.metadata.published == {"width": verdict}


def test_a_page_whose_cells_ran_out_of_order_is_to_be_executed(changed):
    page = changed("Words", "Words")
    pair = page.with_suffix(".ipynb")
    text = pair.read_text(encoding="utf-8")
    pair.write_text(text.replace('"execution_count": 2', '"execution_count": 3'))
    assert notebooks.needs_execution(page)


def run(monkeypatch, page, *arguments):
    monkeypatch.setattr(notebooks, "BOOK", page.parent)
    monkeypatch.setattr(notebooks, "paired_pages", lambda: [page])
    monkeypatch.setattr(sys, "argv", ["notebooks.py", *arguments])
    notebooks.main()


def test_words_alone_execute_nothing(changed, monkeypatch):
    monkeypatch.setattr(notebooks, "execute", None)
    page = changed("Words of it.", "Other words.")
    with pytest.raises(SystemExit) as stop:
        run(monkeypatch, page, "--words")
    assert not stop.value.code
    assert not notebooks.is_stale(page)
    page = changed("print(1 + 1)", "print(3)")
    with pytest.raises(SystemExit, match=r"To be executed: page\.md"):
        run(monkeypatch, page, "--words")
    assert notebooks.is_stale(page)


def test_pairing_imports_nothing_that_executes():
    """`make book` pairs pages where only what the site needs is installed."""
    code = (
        "import sys; from tools import notebooks\n"
        "print({'torch', 'tqdm', 'nbclient', 'attention'} & set(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
    )
    assert result.stdout.strip() == "set()", result.stderr


def test_a_page_runs_alone(tmp_path):
    """So whatever it needs comes from the package, wherever it is opened."""
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace("print(1 + 1)", "import os; print(os.listdir())"))
    (tmp_path / "beside.txt").write_text("not for the page")
    notebooks.execute(page)
    assert outputs(page)[1][1][0]["text"] == "[]\n"


def test_the_pieces_of_a_print_are_joined_up_to_what_comes_between():
    def printed(text, name="stdout"):
        return nbformat.v4.new_output("stream", text=text, name=name)

    shown = nbformat.v4.new_output("display_data", data={"text/plain": "x"})
    cell = nbformat.v4.new_code_cell()
    cell.outputs = [printed("a"), printed("b"), shown, printed("c"), printed("d"),
                    printed("e"), printed("f", "stderr")]  # fmt: skip
    notebooks._merge_streams(nbformat.v4.new_notebook(cells=[cell]))
    assert [output.get("text") for output in cell.outputs] == ["ab", None, "cde", "f"]
