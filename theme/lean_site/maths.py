"""Formulas as MathML, made at build time.

Replaces MathJax: a script of a third party, and megabytes of fonts. Browsers and screen
readers understand MathML by themselves; copying a formula gives its LaTeX source.
"""

import html
import re
import xml.etree.ElementTree as ET

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.errors import ExtensionError

NAMESPACE = "http://www.w3.org/1998/Math/MathML"
# An index of several letters, as in d_{out}, is a word, not a product of letters.
INDEX = re.compile(r"([_^])\{([A-Za-z]{2,})\}")
OPENING, CLOSING = re.compile(r"[(\[“]+$"), re.compile(r"^[.,;:!?)\]”…]+")


def to_mathml(latex, display="inline"):
    """Write a LaTeX formula as a ``math`` element.

    Args:
        latex: the formula without its dollar signs.
        display: "inline" or "block".

    Returns:
        The element as text, with the source as text alternative and annotation.

    Raises:
        ExtensionError: the formula holds a command that cannot be translated.
    """
    source = " ".join(latex.split())
    ET.register_namespace("", NAMESPACE)
    try:
        worded = INDEX.sub(r"\1{\\mathrm{\2}}", source)
        math = ET.fromstring(convert(worded, display=display))
    except Exception as error:
        raise ExtensionError(
            f"Cannot write the formula {source!r} as MathML ({error}). Use commands "
            "that latex2mathml knows."
        ) from error
    _refuse_unknown_commands(math, source)
    _join_words(math)
    math.set("alttext", source)
    row = list(math)
    semantics = ET.Element(f"{{{NAMESPACE}}}semantics")
    for child in row:
        math.remove(child)
        semantics.append(child)
    note = ET.SubElement(
        semantics, f"{{{NAMESPACE}}}annotation", encoding="application/x-tex"
    )
    note.text = source
    math.append(semantics)
    return ET.tostring(math, encoding="unicode")


def _refuse_unknown_commands(math, source):
    # The converter writes unknown commands as text with a backslash.
    shown = "".join(math.itertext())
    if "\\" in shown:
        raise ExtensionError(
            f"The formula {source!r} holds a command that latex2mathml does not know; "
            f"it would show as {shown!r}."
        )


def _join_words(math):
    """Make one element of the letters of an upright word, such as softmax.

    The converter sets each letter by itself, with the space of a product between.
    """
    for row in list(math.iter()):
        word = None
        for child in list(row):
            upright = child.tag.endswith("}mi") and child.get("mathvariant") == "normal"
            if upright and word is not None:
                word.text += child.text
                row.remove(child)
            else:
                word = child if upright else None
    for name in math.iter(f"{{{NAMESPACE}}}mi"):
        if len(name.text or "") > 1:
            name.attrib.pop("mathvariant", None)  # words are upright by themselves


def keep_together(page):
    """Move the signs beside each formula into its node.

    No line then begins with the full stop behind a formula, nor ends with a bracket.
    """
    for formula in list(page.document.findall(nodes.math)):
        place, parent = formula.parent.index(formula), formula.parent
        before = parent[place - 1] if place else None
        after = parent[place + 1] if place + 1 < len(parent) else None
        if isinstance(after, nodes.Text) and (m := CLOSING.match(after)):
            formula["after"] = m[0]
            parent[place + 1] = nodes.Text(after[m.end() :])
        if isinstance(before, nodes.Text) and (m := OPENING.search(before)):
            formula["before"] = m[0]
            parent[place - 1] = nodes.Text(before[: m.start()])


def _inline(translator, node):
    before, after = node.get("before", ""), node.get("after", "")
    text = to_mathml(node.astext())
    if before or after:
        text = f'<span class="formula">{before}{text}{after}</span>'
    translator.body.append(text)
    raise nodes.SkipNode


def _block(translator, node):
    # A formula wider than the page scrolls, also by keyboard.
    number = f' id="{html.escape(node["ids"][0])}"' if node["ids"] else ""
    translator.body.append(
        f'<div class="math-block" tabindex="0" role="group" aria-label="formula"'
        f"{number}>{to_mathml(node.astext(), 'block')}</div>"
    )
    raise nodes.SkipNode


def add_renderer(app):
    """Offer MathML as a renderer; _config.yml chooses it."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
