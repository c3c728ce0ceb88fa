"""Joins the labs' JavaScript files into the one text that a browser loads.

The files are ES modules that import each other, so that Node and editors read them.
A notebook can hand over only one text, and a page opened from a folder may load
only classic scripts. So imports are taken out and the files set one after another.

This module needs nothing but Python: the site is built without PyTorch.
"""

import re
from pathlib import Path

FOLDER = Path(__file__).parent
SHARED = ("core.js", "ui.js")
DRAWING = ("d3.js", "draw.js")  # for the labs that draw, behind what all share

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./[\w.]+";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)
_DEFAULT = re.compile(r"^export default ", re.MULTILINE)
_COMMENT = re.compile(r"^ *//.*\n", re.MULTILINE)


def _parts(script):
    draws = '"./draw.js"' in (FOLDER / script).read_text(encoding="utf-8")
    return (*SHARED, *(DRAWING if draws else ()), script)


def _read(name):
    text = (FOLDER / name).read_text(encoding="utf-8")
    return _EXPORT.sub("", _IMPORT.sub("", text)).strip()


def styles(script=None):
    """Give the CSS that all labs share, and that of one lab where it has its own."""
    own = [FOLDER / Path(script).with_suffix(".css")] if script else []
    files = [FOLDER / "labs.css", *(path for path in own if path.exists())]
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


def all_styles():
    """Give the CSS of all labs, as the site serves it."""
    own = sorted(path.name for path in FOLDER.glob("*.css") if path.stem != "labs")
    return "\n".join((FOLDER / name).read_text("utf-8") for name in ("labs.css", *own))


def module(script):
    """Give one lab as one ES module, the form that anywidget loads."""
    return "\n\n".join(_read(name) for name in _parts(script)) + "\n"


def scripts():
    """Map each lab's class name to its file: AttentionLab to attention.js."""
    parts = (*SHARED, *DRAWING)
    names = sorted(p.name for p in FOLDER.glob("*.js") if p.name not in parts)
    return {_class_name(name): name for name in names}


def _class_name(script):
    return "".join(word.title() for word in script[:-3].split("_")) + "Lab"


def _lean(name):
    # d3's first lines are its licence.
    return _read(name) if name == "d3.js" else _COMMENT.sub("", _read(name))


def classic(loader):
    """Give all labs and ``loader`` as one classic script, the form the site serves.

    Comments stay in the files and in the notebooks: they are nearly a tenth.
    """
    parts = ['(() => {\n"use strict";', *map(_lean, (*SHARED, *DRAWING))]
    parts.append("const labs = {};")
    for name, script in scripts().items():
        body = _DEFAULT.sub("return ", _lean(script))
        parts.append(f"labs.{name} = (() => {{\n{body}\n}})();")
    return "\n\n".join([*parts, loader.strip(), "})();"]) + "\n"
