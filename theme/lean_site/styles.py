"""Style sheets: only rules that can apply to a page of this book, in few files.

Replaces: most of Bootstrap's style sheet and of MyST-NB's, which styles what no page
holds. Each part of a selector, such as `ul.nav` in `.bar > ul.nav:hover`, must fit an
element of some page; a name that stands in a string of a script fits anything, since
scripts make elements. Then go the variables that nothing asks for, most of both themes'
colors, and what is written for people: comments and spaces. What every page asks for is
joined into two files: nothing is painted before the last sheet has come, and on a slow
line each one is a way there and back. The face of the text comes within the second, as
data.
"""

import base64
import hashlib
import json
import re
import shutil
from fnmatch import fnmatch
from pathlib import Path

import tinycss2

NAME = re.compile(r"-{0,2}[A-Za-z_][\w-]*")
NAMED = re.compile(r"""\s([^\s"'<>/=]+)(?==|\s|$)""")
TAG = re.compile(
    r"""<([A-Za-z][\w-]*)((?:\s+[^\s"'<>/=]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'<>]+))?)*)"""
)
ATTRIBUTE = re.compile(r"""\s(class|id)="([^"]*)\"""")
# In a script: a string that is one word, a list of classes, an element, a selector.
LIKE_A_NAME = [
    re.compile(r"""["'`]([\w-]+)["'`]"""),
    re.compile(r"""class(?:Name)?\s*=\s*["'`]([^"'`]*)"""),
    re.compile(r"<(\w+)"),
    re.compile(
        r"""["'` ,>([](?:\w+)?[.#](-?[A-Za-z][\w-]*)(?=[\w .#:,>\[-]*[\])"'`])"""
    ),
]
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
    "book.css": [
        "frame.css",
        "book.css",
        "icons.css",
        "search.css",
        "site.css",
        "looks.css",
    ],
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


def keep(folder, store):
    """Remember the parts that will be joined, and bring back those that are not there.

    Sphinx writes a file again only where it changed, so a build on top of another one
    lacks the parts that the first one joined.
    """
    store.mkdir(parents=True, exist_ok=True)
    for part in [part for parts in JOINED.values() for part in parts]:
        place, _, name = part.rpartition("/")
        mark = f"{place}-" if place else ""
        known = {file: mark + file.name for file in (folder / place).glob(name)}
        if not known:
            for file in store.glob(mark + name):
                (folder / place).mkdir(exist_ok=True)
                shutil.copy(file, folder / place / file.name.removeprefix(mark))
            continue
        for old in store.glob(mark + name):
            old.unlink()
        for file, kept in known.items():
            shutil.copy(file, store / kept)


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


class Known:
    """What rules can apply to: the elements of all pages, and the words of scripts."""

    def __init__(self, pages=(), scripts=(), ours=True):
        """Read the start tags of pages, and what scripts may make.

        Args:
            pages: texts of HTML.
            scripts: texts of JavaScript.
            ours: whether the sheets are written for these scripts. Then any word of
                theirs may be a name; else those alone that stand like one, since a
                theme styles words such as `row` and `first`.
        """
        tags = {tag for page in pages for tag in TAG.findall(page)}
        self.elements = {_element(name, rest) for name, rest in tags}
        self.elements.add(frozenset({"tbody"}))  # browsers add it to tables
        patterns = [NAME] if ours else LIKE_A_NAME
        found = {m for text in scripts for p in patterns for m in p.findall(text)}
        self.words = {word for words in found for word in NAME.findall(words)}
        # A word that is an element's name is no class of a theme's.
        self.tags = set() if ours else {name.lower() for name, _ in tags}
        named = {n for _, rest in tags for n in NAMED.findall(rest)}
        self.attributes = named | {n for t in scripts for n in NAME.findall(t)}

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
        return word in self.words and not (name[0] == "." and word in self.tags)


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
        elif node.type != "whitespace" and not _is_dropped_face(node):
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
    keep(site / "_static", Path(app.doctreedir) / "sheets")
    pages = [file.read_text("utf-8") for file in site.rglob("*.html")]
    scripts = [f.read_text("utf-8") for f in (site / "_static").rglob("*.js")]
    ours, theirs = Known(pages, scripts), Known(pages, scripts, ours=False)
    memory = Path(app.doctreedir) / "styles.json"
    before = json.loads(memory.read_text("utf-8")) if memory.exists() else {}
    now, sheets = {}, {}
    for sheet in (site / "_static").rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        name = sheet.relative_to(site / "_static").as_posix()
        known = theirs if joined_in(name) == "theme.css" else ours
        key = _question(text, known)
        now[key] = before[key] if key in before else lean(text, known)
        sheets[sheet] = now[key]
    named = {name for text in [*pages, *scripts] for name in VARIABLE.findall(text)}
    for sheet, text in without_unused_variables(sheets, named).items():
        sheet.write_text(text, encoding="utf-8")
    join(site / "_static")
    memory.write_text(json.dumps(now), encoding="utf-8")


def _question(text, known):
    # All that the answer depends on. To parse the theme's sheets again takes longer
    # than to write a page; the classes in them, and those of the pages, seldom change.
    asked = set(NAME.findall(text))
    elements = {
        " ".join(sorted(n for n in element if n.lstrip(".#") in asked))
        for element in known.elements
    }
    code = Path(__file__).read_text(encoding="utf-8")
    lines = [code, text, *sorted(elements), *sorted(known.words & asked)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
