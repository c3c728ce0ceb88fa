"""Formulas as MathML, made at build time.

Replaces MathJax: a script of a third party, and megabytes of fonts. Browsers and screen
readers understand MathML by themselves; copying a formula gives its LaTeX source.
"""

import html
import xml.etree.ElementTree as ET

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.errors import ExtensionError

NAMESPACE = "http://www.w3.org/1998/Math/MathML"


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
        math = ET.fromstring(convert(source, display=display))
    except Exception as error:
        raise ExtensionError(
            f"Cannot write the formula {source!r} as MathML ({error}). Use commands "
            "that latex2mathml knows."
        ) from error
    _refuse_unknown_commands(math, source)
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
    # The converter passes on what it does not know, as text with a backslash.
    shown = "".join(math.itertext())
    if "\\" in shown:
        raise ExtensionError(
            f"The formula {source!r} holds a command that latex2mathml does not know; "
            f"it would show as {shown!r}."
        )


def _inline(translator, node):
    translator.body.append(to_mathml(node.astext()))
    raise nodes.SkipNode


def _block(translator, node):
    # A formula wider than the page scrolls, by keyboard too.
    number = f' id="{html.escape(node["ids"][0])}"' if node["ids"] else ""
    translator.body.append(
        f'<div class="math-block" tabindex="0" role="group" aria-label="formula"'
        f"{number}>{to_mathml(node.astext(), 'block')}</div>"
    )
    raise nodes.SkipNode


def _use(app, config):
    config.html_math_renderer = "mathml"


def setup(app):
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("config-inited", _use)
