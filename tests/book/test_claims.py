"""Every digit in words has its proof beside it; every one of a caption is computed.

What is no number, or needs no proof, is said in numerals.py and on the page
"Sources and checks". Number words ("six tokens") are held where a proof stands behind
them (test_shape_comments.py) or a turn of phrase says what they count.
"""

import ast
import re

import pytest

from tests.book import claims, numerals
from tests.book.claims import Cell
from tests.book.pages import is_figure, pages

NAMES = claims.names()


@pytest.mark.parametrize("name", NAMES)
def test_every_digit_has_its_proof(name):
    missing = list(claims.report(name))
    assert missing == [], "\n" + "\n".join(missing)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_numbers_of_captions_are_computed(page):
    written = {
        f"{page.name}, {cell.metadata.name}: {text!r}"
        for cell in page.code_cells
        if is_figure(cell)
        for text in written_digits(cell.source)
    }
    assert not written, "put the tensor's number into an f-string, or say # fact: why"


def written_digits(source):
    """Texts of captions and text alternatives that hold a digit as it stands."""
    tree = ast.parse(source)
    assigned = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    lines = source.split("\n")
    for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call)):
        for keyword in call.keywords:
            if keyword.arg in ("caption", "alt"):
                for text in _texts(keyword.value, assigned):
                    around = "\n".join(lines[max(0, text.lineno - 2) : text.end_lineno])
                    if numerals.found(str(text.value)) and "# fact: " not in around:
                        yield str(text.value)


def _texts(node, assigned):
    # Constants whose value becomes part of the text as it is written.
    if isinstance(node, ast.Constant):
        yield node
    elif isinstance(node, ast.Name):
        yield from _texts(assigned.pop(node.id, None), assigned)
    elif isinstance(node, ast.FormattedValue):
        if isinstance(node.value, ast.Constant | ast.JoinedStr):
            yield from _texts(node.value, assigned)
    elif isinstance(node, ast.JoinedStr | ast.BinOp | ast.IfExp | ast.Call):
        for child in ast.iter_child_nodes(node):
            yield from _texts(child, assigned)
    elif isinstance(node, ast.GeneratorExp | ast.ListComp):
        yield from _texts(node.elt, assigned)
    elif isinstance(node, ast.Tuple | ast.List):
        for child in node.elts:
            yield from _texts(child, assigned)


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ('show(f, caption="6 rows", alt="")', ["6 rows"]),
        ('show(f, caption=f"{n} rows of {w:.2f}", alt="W_2 (3.5.1), GPT-2")', []),
        ('text = "a: 0.5"\nshow(f, caption=text)', ["a: 0.5"]),
        ('show(f, caption=f"{6} rows")', ["6"]),
        ('show(f, alt=", ".join(f"{w:.4f} and 7" for w in weights[1]))', [" and 7"]),
        ('show(f, alt="On " + "rank 0 "\n# fact: its name\n"is the first.")', []),
        ('show(f, alt="rank 0 "  # fact: its name\n"has {n}")', []),
        ('show(matrix(w, "head 0"), caption="Weights.")', []),
    ],
)
def test_a_written_caption_is_seen(source, written):
    assert list(written_digits(source)) == written


@pytest.fixture
def page(monkeypatch):
    """A page with two cells that a test can tell something about."""
    cells = {
        "row": Cell(
            numerals.outputs("tensor([ 0.4419, 0.6515, -0.5683])\n"), "x = 1_024"
        ),
        "sizes": Cell(numerals.outputs("1,024 tokens, 124439808, 12.5%, 0.1667"), ""),
    }
    code = "layer.transpose(1, 2) float99 diagonal=1 torch.Size([2, 6]) sizes:1"
    monkeypatch.setattr(claims, "cells", lambda name: cells)
    monkeypatch.setattr(claims, "code_of", lambda name: numerals.tokens(code))

    def wrong(text):
        return [what.strip() for _, what, _ in claims.problems("page", text)]

    return wrong


PROVEN = [
    "It is 0.4419 <!-- = row:1 --> there.",
    "It is 0.44 and 0.7. <!-- = row:1, 2 -->",
    "They are 0.44, 0.65 and -0.568. <!-- = row:1-3 -->",
    "It is minus 0.568 or −0.57. <!-- = row:3, 3 -->",
    "Of 0.44, 1024 and 1,024. <!-- = row:1, sizes:1, 1 -->",
    "It has 124 million or 0.12 billion. <!-- = sizes:2, 2 -->",
    "That is 44 %, 44.2% or 44 percent, <!-- = row:1, 1, 1 --> or 12.5 %. "
    "<!-- = sizes:3 -->",
    "A weight of 1/6. <!-- = sizes:4 -->",
    "A width of 1024. <!-- in row -->",
    "Since 1998, <!-- fact: year of the paper --> or 3 and 4 <!-- fact 2: both --> on.",
    "Six tokens, the second row, half of them.",
    "It covers section 3.5 with 3.5.1, and sections 3.3, 3.4 and 3.6 of chapter 3.",
    "## Hiding (3.5.1)\n\nsee (Vaswani et al., 2017), GPT-2 in float16",
    "### Exercise 3.3: sizes, by [Vaswani et al. 2017](https://arxiv.org/abs/1706.1)",
    "See [there](page.ipynb#row-2) and <https://example.org/12>.",
    "1. Use `transpose(1, 2)`, `diagonal=1`, `float99` or `[2, 6]`.",
    "With $W_2$, $x_{31}$, $\\frac{1}{2}$ and $x^2$.",
    "| a | b |\n|---|---|\n| 0.44 <!-- = row:1 --> | 0.65 <!-- = row:2 --> |",
    "```\nrun 7\n\nrun 8\n```\n<!-- fact 2: a program -->",
    "<!-- a note of ours -->",
    "Write `<!-- = sizes:1 -->` for 0.44, <!-- = row:1 --> the code `sizes`.",
    "It is 0.44\nand 0.65. <!-- = row:1, 2 -->",
]


@pytest.mark.parametrize("text", PROVEN)
def test_a_proven_text_is_let_through(page, text):
    assert page(text) == []


WRONG = [
    ("It is 0.4419 there.", ["0.4419"]),
    ("It is 0.4418 <!-- = row:1 --> there.", ["0.4418"]),
    ("It is 0.45 <!-- = row:1 --> there.", ["0.45"]),
    ("It is 0.568 <!-- = row:3 --> there.", ["0.568"]),  # the sign
    ("It is -0.4419 <!-- = row:1 --> there.", ["-0.4419"]),
    ("It is 0.6515 <!-- = row:1 --> there.", ["0.6515"]),  # the wrong place
    ("They are 0.65 and 0.44. <!-- = row:1, 2 -->", ["0.65", "0.44"]),
    ("It is 0.4419 <!-- = row:4 --> there.", ["0.4419"]),  # no such number
    ("It is 0.4419 <!-- = rows:1 --> there.", ["0.4419"]),  # no such cell
    ("There are 1,025 <!-- = sizes:1 --> there.", ["1,025"]),
    ("It has 125 million. <!-- = sizes:2 -->", ["125 million"]),
    ("It has 124. <!-- = sizes:2 -->", ["124"]),
    ("That is 45 %. <!-- = row:1 -->", ["45 %"]),
    ("That is 0.4419 %. <!-- = row:1 -->", ["0.4419 %"]),
    ("That is 12.5. <!-- = sizes:3 -->", ["12.5"]),
    ("A weight of 1/7. <!-- = sizes:4 -->", ["1/7"]),
    ("A width of 1025. <!-- in row -->", ["1025"]),
    ("Two: 0.44 and 0.65. <!-- = row:2 -->", ["0.44"]),
    ("It is 7. <!-- fact 0: none -->", ["<!-- fact 0: none -->", "7"]),
    ("It is 7. <!-- = row:3-1 -->", ["<!-- = row:3-1 -->", "7"]),
    ("Not here. <!-- = row:1 -->", ["<!-- = row:1 -->"]),
    ("It is 0.44.\n\n<!-- = row:1 -->", ["<!-- = row:1 -->", "0.44"]),
    ("It is 0.44 <!-- = 1 --> there.", ["<!-- = 1 -->", "0.44"]),
    ("It is 7 <!-- fact: --> there.", ["<!-- fact: -->", "7"]),
    ("It is 0.44\n<!-- = row:1 --> there.", ["<!-- = row:1 -->"]),
    ("It is 0.44 <!-- = row:1 -->.", ["<!-- = row:1 -->"]),
    ("It covers section 3.7 and 3.5.4.", ["3.7", "3.5.4"]),
    ("Exercise 3.4 and (3.9)", ["3.4", "3.9"]),
    ("A factor of 3.4 of chapter 4.", ["3.4", "4"]),
    ("(Vaswani et al., 1917)", ["1917"]),
    ("Use `transpose(1, 3)`.", ["3"]),
    ("Use `diagonal=2` and `[2, 7]`.", ["2", "7"]),
    ("In float61 and GPT-7.", ["float61", "GPT-7"]),
    ("With $d_k = 64$.", ["64"]),
    ("```\nrun 7\n```", ["7"]),
]


@pytest.mark.parametrize(("text", "wrong"), WRONG)
def test_a_wrong_digit_is_seen(page, text, wrong):
    assert sorted(page(text)) == sorted(wrong)


def test_the_report_quotes_the_line_and_says_what_to_write(page, monkeypatch):
    monkeypatch.setattr(claims, "prose", lambda name: "A title\n\nIt is 0.65 here.")
    assert list(claims.report("page")) == [
        "book/page.md:3: 0.65 has no proof; perhaps <!-- = row:2 -->\n"
        "    …It is 0.65 here.…"
    ]


def test_a_cell_of_another_page_can_prove():
    name = "02_simple_self_attention"
    cell, shown = next((c, v) for c, v in claims.cells(name).items() if v.outputs)
    told = shown.outputs[0]
    text = f"It is {told} <!-- = {name}/{cell}:1 --> there."
    assert claims.problems("notation", text) == []
    assert claims.problems("notation", text.replace("It is ", "It is 9")) != []


def test_no_proof_hides_in_a_cell():
    """A comment within code proves nothing."""
    for page in pages():
        for cell in page.code_cells:
            assert not re.search(r"<!--", cell.source), cell.metadata.name
