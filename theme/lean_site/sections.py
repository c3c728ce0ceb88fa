"""Cut a page into what a search can lead to: sections and cells.

Reading the finished HTML keeps what is folded (a hint, the code of a figure) out of the
index, whoever folded it. Only the answer to a prediction is in the index, since a link
to it opens it.
"""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"br", "img", "input", "hr", "meta", "link", "wbr", "col", "source"}
HIDDEN = {
    "details", "summary", "svg", "script", "style", "template", "nav", "button", "math",
}  # fmt: skip
HIDDEN_CLASSES = {
    "headerlink",
    "reproduced",
    "am-strip",
    "cell-link",
    "visually-hidden",
    "sr-only",
}
BLOCKS = {"p", "div", "li", "td", "th", "dt", "dd", "tr", "figcaption", "pre"}
# The numbers worth indexing: nobody searches for a whole number or one decimal.
PRINTED = re.compile(r"-?\d+\.\d{3,}")
SIGNS = {
    "top": "ᵀ", "cdot": "·", "sum": "Σ", "infty": "∞", "times": "×", "le": "≤",
    "ge": "≥", "ne": "≠", "to": "→", "in": "∈", "approx": "≈", "dots": "…",
    "ldots": "…", "cdots": "…", "omega": "ω", "alpha": "α", "sigma": "σ", "mu": "μ",
    "varepsilon": "ε", "epsilon": "ε", "gamma": "γ", "beta": "β", "theta": "θ",
    "pm": "±", "odot": "⊙", "partial": "∂", "left": "", "right": "", "quad": " ",
}  # fmt: skip


@dataclass
class Piece:
    """A section, or a named cell in it."""

    kind: str  # page, section, cell, figure, listing, name
    anchor: str
    title: str = ""
    parts: dict = field(default_factory=lambda: {"text": [], "code": [], "shown": []})

    def words(self, part):
        """Give one part as a line of text."""
        return " ".join("".join(self.parts[part]).split())

    def lines(self):
        """Give its code, line by line, without empty lines and indents."""
        lines = "".join(self.parts["code"]).splitlines()
        return "\n".join(line.strip() for line in lines if line.strip())

    def numbers(self):
        """Give each number that its outputs print, once."""
        return list(dict.fromkeys(PRINTED.findall(self.words("shown"))))


def spell_formula(latex):
    """Write a formula as one would type it into a search."""
    text = re.sub(r"\\(?:text|mathrm|operatorname|mathbf)\*?{([^{}]*)}", r"\1", latex)
    text = re.sub(r"\\sqrt{([^{}]*)}", r"√\1", text).replace(r"\sqrt", "√")
    text = re.sub(r"\\d?frac{([^{}]*)}{([^{}]*)}", r"\1/\2", text)
    text = re.sub(r"\\([A-Za-z]+)", lambda m: SIGNS.get(m[1], m[1]), text)
    return re.sub(r"\s+", " ", re.sub(r"[{}\\&]", "", text)).strip()


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.pieces, self.open, self.elements = [], [], []
        self.skipped = 0  # how many open elements are hidden
        self.title = False

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        classes = set((attributes.get("class") or "").split())
        if tag == "math" and not self.skipped:
            self._add_text(f" {spell_formula(attributes.get('alttext') or '')} ")
        if tag in VOID:
            return
        hides = _hides(tag, attributes, classes)
        piece = None if self.skipped or hides else self._begins(
            tag, attributes.get("id") or "", classes
        )  # fmt: skip
        if piece:
            self.pieces.append(piece)
            self.open.append(piece)
        self._take_signature(tag, attributes, classes)
        self.elements.append((tag, hides, piece, classes))
        self.skipped += hides
        self.title = self.title or tag in {"h1", "h2", "h3", "h4", "h5"}
        if tag in BLOCKS:
            self._add_text(" ")

    def _begins(self, tag, anchor, classes):
        if tag == "section" and anchor:
            return Piece("section" if self.pieces else "page", anchor)
        if tag == "div" and "cell" in classes and anchor:
            kind = "figure" if anchor.startswith("figure-") else "cell"
            kind = "listing" if "tag_listing" in classes else kind
            name = anchor.removeprefix(f"{kind}-").replace("-", " ")
            return Piece(kind, anchor, name)
        if tag == "dl" and "py" in classes:
            return Piece("name", "")
        return None

    def _take_signature(self, tag, attributes, classes):
        if tag == "dt" and "sig" in classes and self.open and attributes.get("id"):
            piece = self.open[-1]
            if piece.kind == "name" and not piece.anchor:
                piece.anchor = piece.title = attributes["id"]

    def handle_endtag(self, tag):
        # Like browsers, accept elements that were never closed.
        while self.elements:
            name, hides, piece, _ = self.elements.pop()
            self.skipped -= hides
            if piece:
                self.open.pop()
            if name == tag:
                break
        self.title = self.title and tag not in {"h1", "h2", "h3", "h4", "h5"}
        if tag in BLOCKS:
            self._add_text(" ")

    def handle_data(self, data):
        self._add_text(data)

    def _add_text(self, text):
        if self.skipped or not self.open:
            return
        piece = self.open[-1]
        if self.title:
            piece.title += text
            return
        classes = set().union(*(c for *_, c in self.elements))
        part = "code" if "cell_input" in classes or self._inside("pre") else "text"
        if "cell_output" in classes and not self._inside("figcaption"):
            part = "shown"
        piece.parts[part].append(text)

    def _inside(self, tag):
        return any(element[0] == tag for element in self.elements)


def _hides(tag, attributes, classes):
    return (
        (tag in HIDDEN and "open" not in attributes and "answer" not in classes)
        or "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or attributes.get("role") == "img"  # a drawing's letters are no sentence
        or bool(classes & HIDDEN_CLASSES)
    )


def cut_page(page):
    """Cut a page into its sections and cells.

    Args:
        page: the HTML of a page.

    Returns:
        A list of `Piece`, in the order of the page; the first is the page itself.
    """
    start, end = page.find("<article"), page.find("</article>")
    body = re.sub(r"<(svg|script)\b.*?</\1>", "", page[start:end], flags=re.DOTALL)
    reader = _Reader()
    reader.feed(body)
    reader.close()
    for piece in reader.pieces:
        piece.title = " ".join(piece.title.split())
    return [piece for piece in reader.pieces if piece.anchor and piece.title]
