"""Style sheets: only rules that can apply to a page of this book, in few files.

Replaces: the sheets of the themes, Bootstrap, MyST-NB and Pygments, by one of our own
(static/base.css). Of the others, each part of a selector, such as `ul.nav` in
`.bar > ul.nav:hover`, must fit an element of some page; a name that stands in a string
of a script fits anything, since scripts make elements. Then go the variables that
nothing asks for, and what is written for people: comments and spaces. What every page
asks for is two files, the base and what is joined below: nothing is painted before the
last sheet has come, and on a slow line each one is a way there and back. The face of
the text comes within the second, as data.
"""

import base64
import re
from pathlib import Path

import tinycss2

NAME = re.compile(r"-{0,2}[A-Za-z_][\w-]*")
NAMED = re.compile(r"""\s([^\s"'<>/=]+)(?==|\s|$)""")
TAG = re.compile(
    r"""<([A-Za-z][\w-]*)((?:\s+[^\s"'<>/=]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'<>]+))?)*)"""
)
ATTRIBUTE = re.compile(r"""\s(class|id)="([^"]*)\"""")
LICENSE = re.compile("^!|licen[cs]e", re.IGNORECASE)
GROUPS = {"media", "supports"}
VARIABLE = re.compile(r"--[\w-]+")
# What is joined, in the order of the cascade. Between the base and this stands what
# only some pages need; each of those sheets keeps its own file.
BASE, JOINED = "base.css", "book.css"
PARTS = ["frame.css", "book.css", "search.css", "site.css", "looks.css"]
WITHIN = re.compile(r'url\("(fonts/text\.woff2)"\)')
SET = re.compile(
    r"""(?<=[{;])\s*(--[\w-]+)\s*:((?:"[^"]*"|'[^']*'|[^;{}"'])*)(?:;|(?=}))"""
)


def join(folder):
    """Write the joined sheet of a folder, and take its parts away."""
    files = [file for name in PARTS if (file := folder / name).exists()]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    for file in files:
        file.unlink()
    text = WITHIN.sub(lambda match: _data(folder / match[1]), text)
    (folder / JOINED).write_text(text, encoding="utf-8")


def _data(face):
    # The face of the text comes with its sheet, which the first paint waits for: every
    # visitor sees it, and no line moves.
    held = base64.b64encode(face.read_bytes()).decode()
    return f"url(data:font/woff2;base64,{held})"


class Known:
    """What rules can apply to: the elements of all pages, and the words of scripts."""

    def __init__(self, pages=(), scripts=()):
        """Read the start tags of pages, and what scripts may make: any word of theirs.

        Args:
            pages: texts of HTML.
            scripts: texts of JavaScript.
        """
        tags = {tag for page in pages for tag in TAG.findall(page)}
        self.elements = {_element(name, rest) for name, rest in tags}
        self.elements.add(frozenset({"tbody"}))  # browsers add it to tables
        self.words = {word for text in scripts for word in NAME.findall(text)}
        named = {n for _, rest in tags for n in NAMED.findall(rest)}
        self.attributes = named | self.words

    def fits(self, part):
        """Tell whether some element can be what a part of a selector asks for.

        Args:
            part: its names with their signs before them, such as {"ul", ".nav"}.
        """
        wanted = {name for name in part if not self._may_be_made(name)}
        return not wanted or any(wanted <= element for element in self.elements)

    def _may_be_made(self, name):
        word = name.lstrip(".#[")
        if name.startswith("["):
            return word in self.attributes or _as_property(word) in self.attributes
        return word in self.words


def _as_property(attribute):
    # A script writes data-in-words as dataset.inWords.
    first, *others = attribute.removeprefix("data-").split("-")
    return first + "".join(word.title() for word in others)


def _element(name, rest):
    found = {name.lower()}
    for attribute, value in ATTRIBUTE.findall(rest):
        sign = "." if attribute == "class" else "#"
        found.update(sign + word for word in value.split())
    return frozenset(found)


def lean(css, known):
    """Drop the selectors of a style sheet that can apply to nothing that is known.

    Args:
        css: the sheet.
        known: a `Known`.
    """
    return "".join(_rules(tinycss2.parse_stylesheet(css), known))


def _rules(nodes, known):
    for node in nodes:
        if node.type == "comment":
            if LICENSE.search(node.value):
                yield node.serialize()
        elif node.type == "qualified-rule":
            kept = [s for s in _selectors(node.prelude) if _applies(s, known)]
            if kept:
                selectors = ",".join(_short(s) for s in kept)
                yield f"{selectors}{{{_declarations(node.content)}}}"
        elif node.type == "at-rule" and node.lower_at_keyword in GROUPS:
            inner = tinycss2.parse_rule_list(node.content)
            if rules := "".join(_rules(inner, known)):
                yield f"@{node.at_keyword} {_short(node.prelude)}{{{rules}}}"
        elif node.type != "whitespace":
            yield node.serialize()


def _applies(selector, known):
    return all(known.fits(part) for part in _parts(selector))


def _parts(selector):
    """Split a selector at its combinators, into the names that each element must have.

    Of ``[open]``, the attribute is asked for; of ``:not(.on)``, nothing.
    """
    part, before = set(), ""
    for token in selector:
        if token.type == "whitespace" or token in (">", "+", "~"):
            yield part
            part = set()
        elif token.type == "[] block":
            part.add(f"[{next(t.value for t in token.content if t.type == 'ident')}")
        elif token.type == "hash":
            part.add(f"#{token.value}")
        elif token.type == "ident" and before != ":":
            part.add(f".{token.value}" if before == "." else token.lower_value)
        before = token.value if token.type == "literal" else ""
    yield part


def _declarations(content):
    """Write the declarations of a rule, and the rules within it, without spaces."""
    parts = []
    for node in tinycss2.parse_blocks_contents(
        content, skip_comments=True, skip_whitespace=True
    ):
        if node.type == "declaration":
            important = "!important" if node.important else ""
            # A variable may be set to nothing, which is a space.
            value = _short(node.value) or " "
            parts.append(f"{node.name}:{value}{important};")
        else:
            parts.append(node.serialize())
    return "".join(parts).removesuffix(";")


def _short(tokens):
    """Write tokens without comments, and with as few spaces as they need."""
    tokens = [token for token in tokens if token.type != "comment"]
    kept = [
        token
        for before, token in zip([None, *tokens], tokens, strict=False)
        if token.type != "whitespace" or before not in (",", ">")
    ]
    text = [
        " " if token.type == "whitespace" else token.serialize()
        for token, after in zip(kept, [*kept[1:], None], strict=True)
        if token.type != "whitespace" or after not in (",", ">")
    ]
    return "".join(text).strip()


def _selectors(prelude):
    """Split a list of selectors at its commas; those inside brackets do not count."""
    selectors = [[]]
    for token in prelude:
        if token == ",":
            selectors.append([])
        else:
            selectors[-1].append(token)
    return selectors


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
    join(site / "_static")
    pages = [file.read_text("utf-8") for file in site.rglob("*.html")]
    scripts = [f.read_text("utf-8") for f in (site / "_static").rglob("*.js")]
    known = Known(pages, scripts)
    sheets = {
        sheet: lean(sheet.read_text(encoding="utf-8"), known)
        for sheet in (site / "_static").rglob("*.css")
    }
    named = {name for text in [*pages, *scripts] for name in VARIABLE.findall(text)}
    for sheet, text in without_unused_variables(sheets, named).items():
        sheet.write_text(text, encoding="utf-8")
