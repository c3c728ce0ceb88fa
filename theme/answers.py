"""One switch opens the answer to a prediction: code, output, figure and words.

A quote that opens with **Predict.** asks. The folded cells right after it answer, with
the words after them in `<details><summary>Answer</summary>`, which folds in Jupyter.
All of it goes behind one "Show the answer". Inside, code is open, except that of a
figure, which has a "Show code" of its own. If the question is about the code below it,
tag that cell `hide-output`: its code stays outside. Outputs fold nowhere else, whatever
their tags.
"""

import itertools

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.errors import ExtensionError

from theme import roles

OPENS, CLOSES = "<details><summary>Answer</summary>", "</details>"
OUTPUT_HIDDEN = {"all", "input+output", "output"}
SHOW, HIDE = "Show the answer", "Hide the answer"


def fold_answers(page):
    """Put the answer to each prediction of a page into one fold, and open the rest."""
    for quote in list(page.document.findall(nodes.block_quote)):
        if roles.find_role(quote) == "predict" and (parts := list_parts(quote)):
            _fold(parts)
    for cell in page.document.findall(nodes.container):
        if cell.get("hide_mode") in OUTPUT_HIDDEN:
            figure = cell.attributes.pop("hide_mode") == "input+output"
            cell.attributes |= {"hide_mode": "input"} if figure else {}


def list_parts(quote):
    """List the parts of the answer to a question: cells, then words."""
    parent = quote.parent
    behind = parent[parent.index(quote) + 1 :]
    parts = list(itertools.takewhile(_is_answer_cell, behind))
    rest = behind[len(parts) :]
    if rest and rest[0].astext().strip() == OPENS:
        parts += _open_words(parent, rest)
    return parts


def _is_answer_cell(node):
    return node.get("hide_mode") in OUTPUT_HIDDEN


def _open_words(parent, nodes_behind):
    """Take away the fold that Jupyter shows, and give the paragraphs in it."""
    texts = [node.astext().strip() for node in nodes_behind]
    if CLOSES not in texts:
        raise ExtensionError(f"{parent.document['source']}: an answer has no {CLOSES}")
    end = texts.index(CLOSES)
    words = nodes_behind[1:end]
    words[0].insert(0, [nodes.strong("", "Answer."), nodes.Text(" ")])
    parent.remove(nodes_behind[0])
    parent.remove(nodes_behind[end])
    return words


def _fold(parts):
    box = HideCodeCellNode(classes=["answer"], prompt_show=SHOW, prompt_hide=HIDE)
    first = parts[0]
    if first.get("hide_mode") == "output":
        # The question is about this code, so only its output is the answer.
        parts[0] = first.children[-1]
    parts[0].parent.replace(parts[0], box)
    for part in parts[1:]:
        part.parent.remove(part)
    box.extend(parts)
