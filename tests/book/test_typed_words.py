"""Words of captions and text alternatives that state a fact, typed beside a drawing.

A word such as "left" or "darkest" that is computed from what is drawn cannot be wrong.
One that is typed can. They are counted, and may only become fewer.
"""

import ast
import re
from collections import Counter

import pytest

from tests.book.pages import BOOK, ROOT, pages

WORDS = """
    left right above below upper lower top bottom leftmost rightmost
    first second third fourth fifth last
    largest smallest longest shortest highest lowest darkest palest brightest
    darker paler lighter thicker thinner longer shorter larger smaller higher wider
    two three four five six seven eight nine ten eleven twelve both
"""
# How many there may be. Lower a number when there are fewer; never raise one.
LIMITS = {"pages": 16, "figures": 0}


def typed(source):
    """Return the words of captions and alternatives in code that no code chooses."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            told = [k.value for k in node.keywords if k.arg in ("caption", "alt")]
            if getattr(node.func, "id", "") == "told":
                told += node.args[1:]
        elif isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {getattr(target, "id", "") for target in targets}
            told = [node.value] if names & {"caption", "alt"} else []
        else:
            continue
        for value in told:
            found += _words(value)
    return found


def _words(node):
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [
            w for w in re.findall(r"[a-z]+", node.value.lower()) if w in WORDS.split()
        ]
    # What is put in for a place, or chosen by a condition, is not typed.
    if isinstance(node, ast.FormattedValue | ast.IfExp | ast.Subscript):
        return []
    return [word for child in ast.iter_child_nodes(node) for word in _words(child)]


def on_pages():
    """Count in the Markdown, so that a new caption needn't be executed first."""
    # The solutions repeat the cells of the exercises.
    cells = {
        cell.source: (BOOK / f"{page.name}.md", cell.metadata.get("name"))
        for page in pages()
        for cell in page.source.cells
        if cell.cell_type == "code"
    }
    return Counter(
        (path, f"{path.stem}:{name}", word)
        for source, (path, name) in cells.items()
        for word in typed(source)
    )


def in_figures():
    files = sorted((ROOT / "coding_attention" / "figures").glob("*.py"))
    return Counter(
        (path, path.name, word)
        for path in files
        for word in typed(path.read_text(encoding="utf-8"))
    )


@pytest.mark.parametrize(
    ("where", "found"), [("pages", on_pages), ("figures", in_figures)]
)
def test_fewer_words_of_captions_are_typed_and_never_more(where, found):
    by_place = found()
    # What was written last comes first: there, most likely, is the new one.
    latest = sorted(by_place, key=lambda key: key[0].stat().st_mtime, reverse=True)
    told = ", ".join(f"{by_place[key]} × {key[2]!r} in {key[1]}" for key in latest[:9])
    assert by_place.total() <= LIMITS[where], (
        f"{by_place.total()} words such as 'left' or 'two' are typed in captions and "
        f"text alternatives of {where}, {LIMITS[where]} are allowed. Compute them from "
        f"what is drawn, as coding_attention/figures/words.py does, or write the "
        f"sentence without them. Changed last: {told}."
    )
