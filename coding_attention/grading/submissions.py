"""Reads what was handed in; whatever it is, the result is a row of the report."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

MEGABYTES = 20  # a notebook with all figures of a page has one or two

# The hand-out says in its first cell whose sizes it has.
HANDED_OUT = re.compile(r"""check_exercise_of\(\s*["']([^"'\n]{1,200})["']""")


@dataclass
class Submission:
    """One file that was handed in.

    Attributes:
        file: where it lies.
        cells: the sources of its code cells, in order.
        problem: why it cannot be run, or nothing.
        variant: whose sizes it was handed out with, "COURSE/STUDENT", or nothing.
    """

    file: Path
    cells: list = field(default_factory=list)
    problem: str = ""
    variant: str = ""

    def student(self, course=""):
        """Return who handed it in: whom it was handed out to, or the file's name."""
        named = self.variant.removeprefix(f"{course}/")
        return named if course and named != self.variant else self.file.stem


def find_files(places):
    """Return the files that the command line names; a folder gives its notebooks."""
    files = []
    for place in map(Path, places):
        inside = place.rglob("*.ipynb") if place.is_dir() else [place]
        files += sorted(f for f in inside if ".ipynb_checkpoints" not in f.parts)
    return files


def read(file):
    """Return the :class:`Submission` of a file."""
    try:
        return Submission(file, cells := _cells(file), variant=_variant(cells))
    except _UnreadableError as error:
        return Submission(file, problem=str(error))


class _UnreadableError(Exception):
    """The file is no notebook that can be run; the message says why."""


def _cells(file):
    notebook = _parsed(_text(file))
    cells = notebook.get("cells")
    if not isinstance(cells, list):
        raise _UnreadableError("not a notebook: it has no list of cells")
    code = [c for c in cells if isinstance(c, dict) and c.get("cell_type") == "code"]
    sources = [_source(cell, number) for number, cell in enumerate(code, 1)]
    if not any(source.strip() for source in sources):
        raise _UnreadableError("a notebook without any code")
    return sources


def _text(file):
    try:
        # A pipe or a device would be read for ever.
        if not file.is_file():
            raise _UnreadableError("no such file")
        size = file.stat().st_size
        if size > MEGABYTES * 1e6:
            raise _UnreadableError(
                f"{size / 1e6:.0f} MB, over the limit of {MEGABYTES}. Clear outputs."
            )
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _UnreadableError("not a notebook: it isn't UTF-8 text") from None
    except OSError as error:
        raise _UnreadableError(f"cannot be read: {error.strerror}") from None


def _parsed(text):
    if not text.strip():
        raise _UnreadableError("an empty file")
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError):
        raise _UnreadableError("not a notebook: it isn't JSON") from None
    if not isinstance(notebook, dict):
        raise _UnreadableError("not a notebook: it has no list of cells")
    return notebook


def _source(cell, number):
    source = cell.get("source", "")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise _UnreadableError(f"code cell {number} has no readable text")
    return source


def _variant(cells):
    named = HANDED_OUT.search("\n".join(cells))
    return named[1] if named else ""
