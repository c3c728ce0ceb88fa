"""What only a run of the page can tell: shapes in comments, places and counts in prose.

Every comment that tells a shape tells that of the tensor on its line. In prose, the
comment `<!-- at: by_loop[at].equal(x0[0]) -->` proves "the first row", and
`<!-- n: mha.num_heads == n -->` proves "two heads": `at` is the index, and `n` the
number, of the nearest such word before it in the paragraph. Of other words that have an
opposite, such as "larger", the expression says which `word` is right.
"""

import re

import pytest
import torch

import attention
from coding_attention.exercises.files import NUMBERS
from tests.book.claims import COMMENT, blocks, prose
from tests.book.pages import pages
from tests.book.running import ran
from tests.shape_comments import Reader, run
from tools.mutants.places import WORDS


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_shape_comments_are_true(page):
    wrong = list(ran(page.name)[1].wrong())
    assert not wrong, "\n".join(wrong)


def test_no_letter_of_an_exercise_stands_for_another():
    """Its functions run with several sizes, so each letter can be held."""
    twins = list(ran("solutions")[1].twins())
    assert not twins, "\n".join(twins)


AT = {"first": 0, "second": 1, "third": 2, "last": -1}
VALUES = {
    "at": AT,
    "n": {word: n for n, word in enumerate(NUMBERS)} | {"both": 2},
    "word": dict(zip(WORDS, WORDS, strict=True)),
}
WORD = {
    kind: re.compile(rf"\b({'|'.join(words)})\b", re.IGNORECASE)
    for kind, words in VALUES.items()
}
HELD = re.compile(r"<!--\s*(at|n|word):\s*(.+?)\s*-->", re.DOTALL)
# The pages of the six lessons, without those of questions.
MAIN = [p.name for p in pages() if re.match(r"0[1-6]_(?!questions)", p.name)]
PLACE = re.compile(rf"\b({'|'.join(AT)}) (?:token|row|column|state)\b", re.IGNORECASE)


def places(block):
    """(the match of the word, which of VALUES, the expression) of each such comment."""
    told = COMMENT.sub(lambda match: " " * len(match[0]), block)
    for comment in HELD.finditer(block):
        kind, expression = comment.groups()
        before = list(WORD[kind].finditer(told, 0, comment.start()))
        assert before, f"no word before {comment[0]}"
        yield before[-1], kind, expression


def false(page, block):
    """Say which words do not hold on the page, or would hold whatever they said."""
    for word, kind, expression in places(block):
        value = VALUES[kind][word[0].lower()]
        other = (
            WORDS[value] if kind == "word"
            else value + 1 if kind == "n"
            else 0 if value else -1
        )  # fmt: skip
        for number, holds in ((value, True), (other, False)):
            if bool(eval(expression, ran(page)[0] | {kind: number})) != holds:
                yield (
                    f"{page} says {word[0]!r}, but with {kind} = {number} "
                    f"{expression} is {not holds}: …{block[:90]}…"
                )


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_place_and_a_count_in_prose_are_those_of_the_page(page):
    told = [block for _, block in blocks(prose(page.name)) if HELD.search(block)]
    assert not [what for block in told for what in false(page.name, block)]


@pytest.mark.parametrize("name", MAIN)
def test_first_token_or_last_row_has_its_proof(name):
    for line, block in blocks(prose(name)):
        proven = {word.start() for word, *_ in places(block)}
        told = COMMENT.sub(lambda match: " " * len(match[0]), block)
        for match in PLACE.finditer(told):
            assert match.start() in proven, (
                f"book/{name}.md, paragraph of line {line}: behind {match[0]!r} write "
                "<!-- at: … -->, an expression in the page's names and the index `at`"
            )


AXIS = re.compile(r"\b(row|column)<!-- at: [^\[]*\[(:?)")


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_row_is_proven_as_a_row_and_a_column_as_a_column(page):
    for axis, all_rows in AXIS.findall(prose(page.name)):
        assert (axis == "column") == bool(all_rows)


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("the last row<!-- at: by_loop[at].allclose(x0.mean(0).double()) -->", "first"),
        ("all eight<!-- n: len(x0) == n --> tokens", "seven"),
        ("a larger<!-- word: (word == 'larger') == (len(x0) > 1) --> one", "smaller"),
    ],
)
def test_a_wrong_place_or_count_is_noticed(said, wrong):
    assert list(false("06_averaging", said)) == []
    right = said.split("<")[0].split()[1]
    assert len(list(false("06_averaging", said.replace(right, wrong, 1)))) == 2


def test_a_proof_of_any_word_is_none():
    assert len(list(false("06_averaging", "the last row<!-- at: True -->"))) == 1


def test_shapes_and_results_on_one_sheet():
    """The sheet's program runs, and its last line is the package's last class."""
    t, heads, d_head = 7, 3, 11
    wide = heads * d_head
    sizes = {"b": 2, "t": t, "h": heads, "d_in": 5, "d_out": wide, "d_head": d_head}
    layer = attention.MultiHeadAttention(5, wide, t, 0.0, heads)
    names = {"torch": torch, "x": torch.randn(2, t, 5), "dropout": layer.dropout}
    parts = ("W_query", "W_key", "W_value", "out_proj")
    names |= sizes | {name: getattr(layer, name) for name in parts}
    fence = re.search(r"```\{code-block\} python\n(.*?)```", prose("summary"), re.S)
    reader = Reader("summary", sizes)
    run(fence[1], "sheet", names, reader)
    wrong = list(reader.wrong())
    assert not wrong, "\n".join(wrong)
    torch.testing.assert_close(names["result"], layer(names["x"]))
