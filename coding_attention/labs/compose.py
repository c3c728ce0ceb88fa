"""Joins the labs' JavaScript files into the one text that a browser loads.

The files are ES modules that import each other, so that Node and editors read them.
A notebook can hand over only one text: there imports are taken out and the files set
one after another. A page opened from a folder may load only classic scripts: there each
file is a function that hands on what it exports, so that a page loads the labs that it
shows and no others.

This module needs nothing but Python: the site is built without PyTorch.
"""

import re
from pathlib import Path

FOLDER = Path(__file__).parent
SHARED = ("core.js", "share.js", "ui.js")
DRAWING = ("d3.js", "draw.js")  # for the labs that draw, behind what all share

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./([\w.]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)
_NAMES = re.compile(
    r"^export (?:(?:async )?function\*? |const |let |class )(\w+|\{[^}]*\})",
    re.MULTILINE,
)
# What is for people: lines that are comments, and indents.
_COMMENT = re.compile(r"^ *//.*\n|^ +", re.MULTILINE)
_DEFAULT = re.compile(r"^export default ", re.MULTILINE)


def _parts(script):
    text = (FOLDER / script).read_text(encoding="utf-8")
    draws = any(f'"./{name}"' in text for name in DRAWING)
    return (*SHARED, *(DRAWING if draws else ()), script)


def _read(name):
    text = (FOLDER / name).read_text(encoding="utf-8")
    return _EXPORT.sub("", _IMPORT.sub("", text)).strip()


def styles(script):
    """Give the CSS that all labs share, and that of one lab where it has its own."""
    return "\n".join(path.read_text(encoding="utf-8") for path in _sheets([script]))


def sheets(labs=None):
    """Give the style sheets of some labs, by class name; of all unless given."""
    known = scripts()
    return _sheets([known[name] for name in sorted(known if labs is None else labs)])


def _sheets(names):
    own = [FOLDER / Path(name).with_suffix(".css") for name in names]
    return [FOLDER / "labs.css", *(path for path in own if path.exists())]


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


def classic(loader):
    """Give the labs as classic scripts, the form that the site serves.

    Args:
        loader: the script that shows the labs of a page.

    Returns:
        The scripts by file name, in the order in which a page loads them: what all labs
        share, with the loader; what the labs draw with; one for each lab.
    """
    shared = "\n".join([_START, *map(_part, SHARED), loader.strip(), "})();"])
    drawing = "\n".join([*map(_part, DRAWING)])
    files = {"labs.js": shared, "labs-draw.js": drawing}
    for name, script in scripts().items():
        known = f'labParts.labs.{name} = labParts["{script}"].chosen;'
        files[file_of(script)] = f"{_part(script)}\n{known}"
    return {name: f"{text}\n" for name, text in files.items()}


def files_for(labs):
    """Name the files, of those that `classic` gives, which a page with ``labs`` loads.

    Args:
        labs: class names, such as "MaskLab".
    """
    known = [scripts()[name] for name in sorted(set(labs))]
    drawn = any(DRAWING[0] in _parts(script) for script in known)
    return ["labs.js", *(["labs-draw.js"] if drawn else []), *map(file_of, known)]


def file_of(script):
    """Give the name under which the site serves one lab: mask.js is labs-mask.js."""
    return f"labs-{script}"


_START = '(() => {\n"use strict";\nglobalThis.labParts = { labs: {} };'


def _part(name):
    # One module as a function, which hands on what it exports.
    text = (FOLDER / name).read_text(encoding="utf-8")
    # d3's file has a licence in its comments, and nothing else to be saved.
    text = text if name == DRAWING[0] else _COMMENT.sub("", text)
    exported = [n for group in _NAMES.findall(text) for n in re.findall(r"\w+", group)]
    if _DEFAULT.search(text):
        exported.append("chosen")
    text = _IMPORT.sub(r'const \1 = labParts["\2"];\n', text)
    text = _EXPORT.sub("", _DEFAULT.sub("const chosen = ", text)).strip()
    return (
        f'labParts["{name}"] = (() => {{\n"use strict";\n{text}\n'
        f"return {{ {', '.join(exported)} }};\n}})();"
    )
