"""One switch opens the answer to a prediction: code, output, figure and words.

A quote that opens with **Predict.** asks. The folded cells right after it answer, with
a paragraph after them that opens with **Answer.** All of it goes behind one "Show the
answer". Inside, code is open, except that of a figure, which has a "Show code" of its
own. If the question is about the code below it, tag that cell `hide-output`: its code
stays outside. Outputs fold nowhere else, whatever their tags.
"""

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode

from theme import roles

OPENS = "Answer."
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
    """List the parts of the answer to a question: cells, then at most one paragraph."""
    parts = []
    for node in quote.parent[quote.parent.index(quote) + 1 :]:
        if _is_answer_cell(node):
            parts.append(node)
        else:
            return [*parts, node] if _is_answer_paragraph(node) else parts
    return parts


def _is_answer_cell(node):
    return node.get("hide_mode") in OUTPUT_HIDDEN


def _is_answer_paragraph(node):
    if not isinstance(node, nodes.paragraph):
        return False
    # MyST begins a paragraph with an empty text.
    parts = [part for part in node.children if part.astext()]
    opens = bool(parts) and isinstance(parts[0], nodes.strong)
    return opens and parts[0].astext() == OPENS


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
