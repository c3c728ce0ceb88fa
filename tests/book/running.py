"""The pages, run in this process: what their comments, formulas and tables speak of."""

import contextlib
import io
import re
from functools import cache

from IPython.core.inputtransformer2 import TransformerManager

from coding_attention.exercises import EXERCISES
from tests.book.pages import Page
from tests.shape_comments import Reader, comments, run, shapes

# nbval runs what starts processes, and what checks hundreds of classes.
COSTLY = {"two-processes", "ring-of-processes"}
LAST = {"checker": "figure-depends"}
STUB = re.compile(r"^def (\w+)\(.*?\):([^\n]*\n(?: +#[^\n]*\n)*) +return None", re.M)


@cache
def ran(page):
    """The names that the cells of a page define, and what its shape comments tell."""
    space, reader = {"__name__": "__main__", "display": lambda *_: None}, Reader(page)
    for cell in Page(page).source.cells:
        name = cell.metadata.get("name")
        if cell.cell_type != "code" or name in COSTLY:
            continue
        source = TransformerManager().transform_cell(cell.source)
        if page == "solutions":
            source = _with_signatures(source)
        may_fail = "raises-exception" in cell.metadata.get("tags", [])
        expected = contextlib.suppress(Exception if may_fail else ())
        with contextlib.redirect_stdout(io.StringIO()), expected:
            run(source, name, space, reader)
        if name == LAST.get(page):
            break
    return space, reader


@cache
def _signatures():
    # The shapes that an exercise promises, by the function that is to be written.
    found = [m for exercise in EXERCISES.values() for m in STUB.finditer(exercise.body)]
    told = {}
    for stub in found:
        given, text = len(list(shapes(stub[2]))), " ".join(stub[2].split())
        if "->" in text:
            told[stub[1]] = text
        # Without an arrow, they are the shapes of what the function is given.
        elif given in (1, stub[0].partition("):")[0].count(",") + 1):
            told[stub[1]] = f"{text} ->"
    return told


def _with_signatures(source):
    # Its solution has to keep the promise.
    for name, told in _signatures().items():
        if comments(f"pass {told}"):
            source = re.sub(rf"(?m)^(def {name}\(.*\):)$", rf"\1  {told}", source)
    return source
