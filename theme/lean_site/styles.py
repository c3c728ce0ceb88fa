"""Style sheets: only rules that can apply to a page of this book, in few files.

Replaces: most of Bootstrap's style sheet and of MyST-NB's, which styles what no
page holds. A selector goes when it asks for a class whose name occurs nowhere in the
pages or in the scripts. That keeps too much rather than too little: any word counts.
Then go the variables that nothing asks for, most of both themes' colors. What every
page asks for is joined into two files: nothing is painted before the last sheet has
come, and on a slow line each one is a way there and back. The face of the text comes
within the second, as data.
"""

import base64
import hashlib
import json
import re
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path

import tinycss2

NAME = re.compile(r"-{0,2}[A-Za-z_][\w-]*")
LICENSE = re.compile("^!|licen[cs]e", re.IGNORECASE)
GROUPS = {"media", "supports"}
VARIABLE = re.compile(r"--[\w-]+")
# What is joined, in the order in which the pages ask for it. Between both stands what
# only some pages need. A sheet that is not named here keeps its own file.
JOINED = {
    "theme.css": [
        "styles/theme.css",
        "styles/bootstrap.css",
        "styles/pydata-sphinx-theme.css",
        "pygments.css",
        "styles/sphinx-book-theme.css",
        "mystnb.*.css",
    ],
    "book.css": ["book.css", "icons.css", "search.css", "site.css", "looks.css"],
}
IMPORT = re.compile(r'@import (?:url\()?"?([^")]+)"?\)?;|@charset [^;]*;')
WITHIN = re.compile(r'url\("(fonts/text\.woff2)"\)')
SET = re.compile(
    r"""(?<=[{;])\s*(--[\w-]+)\s*:((?:"[^"]*"|'[^']*'|[^;{}"'])*)(?:;|(?=}))"""
)


def joined_in(name):
    for target, parts in JOINED.items():
        if any(fnmatch(name, part) for part in parts):
            return target
    return None


def join(folder):
    """Write the joined sheets of a folder, and take the parts away."""
    for target, parts in JOINED.items():
        files = [file for part in parts for file in sorted(folder.glob(part))]
        text = "\n".join([_with_imports(file) for file in files])
        text = WITHIN.sub(lambda match: _data(folder / match[1]), text)
        for file in files:
            file.unlink(missing_ok=True)
        if files:
            (folder / target).write_text(text, encoding="utf-8")


def _data(face):
    # The face of the text comes with its sheet, which the first paint waits for: every
    # visitor sees it, and no line moves.
    held = base64.b64encode(face.read_bytes()).decode()
    return f"url(data:font/woff2;base64,{held})"


def _with_imports(file):
    # A sheet that is imported would be asked for only when the first one has come.
    def imported(match):
        if not match[1]:
            return ""
        other = (file.parent / match[1]).resolve()
        text = _with_imports(other)
        other.unlink()
        return text

    return IMPORT.sub(imported, file.read_text(encoding="utf-8"))


def words(files):
    """Every word of these files that could be the name of a class."""
    found = set()
    for file in files:
        found.update(NAME.findall(file.read_text(encoding="utf-8", errors="replace")))
    return found


def lean(css, known):
    """Drop the selectors of a style sheet that ask for a class not in ``known``."""
    return "".join(_rules(tinycss2.parse_stylesheet(css), known))


def _rules(nodes, known):
    for node in nodes:
        if node.type == "comment":
            if LICENSE.search(node.value):
                yield node.serialize()
        elif node.type == "qualified-rule":
            kept = [s for s in _selectors(node.prelude) if _classes(s) <= known]
            if kept:
                selectors = ",".join(tinycss2.serialize(s).strip() for s in kept)
                yield f"{selectors}{{{tinycss2.serialize(node.content).strip()}}}"
        elif node.type == "at-rule" and node.lower_at_keyword in GROUPS:
            inner = tinycss2.parse_rule_list(node.content)
            if rules := "".join(_rules(inner, known)):
                condition = tinycss2.serialize(node.prelude)
                yield f"@{node.at_keyword}{condition}{{{rules}}}"
        elif node.type != "whitespace" and not _is_dropped_face(node):
            yield node.serialize()


def _is_dropped_face(node):
    # Our icons are drawings (icons.py), and the theme's font for them is not published.
    face = node.type == "at-rule" and node.lower_at_keyword == "font-face"
    return face and "fontawesome" in node.serialize()


def _selectors(prelude):
    """Split a list of selectors at its commas; those inside brackets do not count."""
    selectors = [[]]
    for token in prelude:
        if token == ",":
            selectors.append([])
        else:
            selectors[-1].append(token)
    return selectors


def _classes(selector):
    """The classes that an element must have; what stands inside ``:not()`` is none."""
    pairs = pairwise(selector)
    return {t.value for dot, t in pairs if dot == "." and t.type == "ident"}


def without_unused_variables(sheets, others):
    """Drop the variables that no rule, page or script asks for.

    Args:
        sheets: the style sheets, as a mapping of anything to text.
        others: the variables that pages and scripts name.

    Returns:
        The same mapping with shorter texts. What only a dropped variable asked for is
        dropped, too.
    """
    while (lean := _asked_for(sheets, others)) != sheets:
        sheets = lean
    return sheets


def _asked_for(sheets, others):
    asked = set(others)
    for text in sheets.values():
        asked.update(VARIABLE.findall(SET.sub(r"\2", text)))

    def kept(match):
        return match[0] if match[1] in asked else ""

    return {key: SET.sub(kept, text) for key, text in sheets.items()}


def write(app, error):
    if error is not None or app.builder.name != "html":
        return
    site = Path(app.outdir)
    scripts = (site / "_static").rglob("*.js")
    known = words([*site.rglob("*.html"), *scripts])
    memory = Path(app.doctreedir) / "styles.json"
    before = json.loads(memory.read_text("utf-8")) if memory.exists() else {}
    now, sheets = {}, {}
    for sheet in (site / "_static").rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        key = _question(text, known)
        now[key] = before[key] if key in before else lean(text, known)
        sheets[sheet] = now[key]
    named = {word for word in known if word.startswith("--")}
    for sheet, text in without_unused_variables(sheets, named).items():
        sheet.write_text(text, encoding="utf-8")
    join(site / "_static")
    memory.write_text(json.dumps(now), encoding="utf-8")


def _question(text, known):
    # All that the answer depends on. To parse the theme's sheets again takes longer
    # than to write a page; the classes in them, and those of the pages, seldom change.
    asked = sorted(known.intersection(NAME.findall(text)))
    code = Path(__file__).read_text(encoding="utf-8")
    return hashlib.sha256("\n".join([code, text, *asked]).encode()).hexdigest()
