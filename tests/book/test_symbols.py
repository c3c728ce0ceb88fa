"""Each symbol in a sentence or a table stands for what the words beside it say."""

import inspect
import re

import torch
from torch.nn.functional import scaled_dot_product_attention

import attention
from tests.book.claims import prose
from tests.book.formulas import value
from tests.book.pages import pages
from tests.book.test_formulas import CLOSE, five, tables

# No two sizes are equal but d_head and d_k, so each letter counts one thing.
SIZES = {"b": 2, "t": 5, "d_in": 11, "h": 3, "d_head": 4, "d_k": 4, "d_out": 12}


def in_sentence(page, place):
    """What the symbol counts that stands in a sentence, at SYMBOL."""
    (symbol,) = re.findall(place.replace("SYMBOL", r"\$([^$]+)\$"), prose(page))
    return SIZES[symbol]


def head():
    torch.manual_seed(0)
    layer = attention.SelfAttention_v2(SIZES["d_in"], SIZES["d_k"])
    return layer, torch.randn(SIZES["b"], SIZES["t"], SIZES["d_in"])


def letters(table):
    return {row[0]: row[1:] for row in table[2:]}


def test_scores_are_divided_by_the_root_of_a_keys_width():
    layer, x = head()
    place = "square root of SYMBOL, the width of a key"
    width = in_sentence("03_trainable_self_attention", place)
    assert width == layer.W_key(x).shape[-1]


def test_the_rank_of_two_thin_matrices():
    layer, _ = head()
    product = layer.W_query.weight.T @ layer.W_key.weight  # (d_in, d_in)
    rank = in_sentence("03_questions", "rank of their product can't exceed SYMBOL")
    assert rank == torch.linalg.matrix_rank(product)


def test_a_score_has_as_many_products_as_a_key_has_numbers():
    layer, x = head()
    products = layer.W_query(x[0, 0]) * layer.W_key(x[0, 1])
    count = in_sentence("03_questions", "A score is a sum of SYMBOL products")
    assert count == products.numel()


def test_the_sizes_are_counted_on_a_layer():
    single, x = head()
    widths = SIZES["d_in"], SIZES["d_out"]
    layer = attention.MultiHeadAttention(*widths, SIZES["t"], 0.0, SIZES["h"])
    counts = {
        "sequences in a batch": x.shape[0], "tokens in a sequence": x.shape[1],
        "coordinates of an input token": x.shape[2],
        "coordinates of an output token": layer(x).shape[2],
        "heads": layer.num_heads, "coordinates of a token in one head": layer.head_dim,
        "coordinates of a key": single.W_key(x).shape[2],
    }  # fmt: skip
    (table,) = [t for t in tables("notation") if t[0] == ["ours", "counts"]]
    for letter, (words,) in letters(table).items():
        if letter in SIZES:
            what, _, formula = words.partition(", ")
            assert SIZES[letter] == counts.pop(what)
            assert not formula or value(formula, SIZES) == SIZES[letter]
    assert not counts


def test_queries_and_keys_may_be_of_different_numbers():
    (table,) = [t for t in tables("notation") if t[0] == ["ours", "counts"]]
    (row,) = [row for row in table if ", " in row[0]]
    told = dict(zip(row[0].split(", "), row[1].split("; "), strict=True))
    q, k, *_ = five()
    assert len(q) != len(k)
    assert told["t_q"] == "queries"
    assert told["t_k"].startswith("keys and values")


def test_names_of_the_chapter_are_in_its_class():
    (table,) = [t for t in tables("notation") if t[0] == ["ours", "chapter", "PyTorch"]]
    source = inspect.getsource(attention.MultiHeadAttention)
    for ours, (chapter, _) in letters(table).items():
        for name in re.findall("`([^`]+)`", chapter):
            assert re.search(rf"\b{re.escape(name)}", source)
            assert name not in SIZES or name == ours


def test_a_letter_that_the_paper_shares_means_the_same():
    (table,) = [t for t in tables("notation") if t[0] == ["ours", "notes", "paper"]]
    shared = {ours: row[1] for ours, row in letters(table).items() if row[1] in SIZES}
    assert len(shared) >= 2
    assert all(ours == paper for ours, paper in shared.items())


def test_a_row_of_names_is_called_the_same_in_every_table():
    named = [t for t in tables("notation") if t[0][0] == "what"]
    first = {label.removeprefix("projections ") for label in letters(named[0])}
    new = [{*letters(table)} - first for table in named[1:]]
    assert new == [{"output projection"}, {"output projection"}]
    (symbols,) = [t for t in tables("notation") if t[0][0] == "symbol"]
    for label in first:
        if found := re.search(r"(scores|weights|vectors) (\w)$", label):
            assert found[1] in letters(symbols)[found[2]][0].split(", ")[0]


def test_the_letters_of_notes_and_paper_are_in_our_order():
    (table,) = [t for t in tables("notation") if t[0] == ["what", "notes", "paper"]]
    told = letters(table)
    for row in ("W_q, W_k, W_v", "q, k, v"):
        for names in told[row]:
            assert re.findall(r"(?:W\^|`|\b)([qkvQKV])", names.lower()) == list("qkv")


def test_the_papers_scores():
    q, k, *_ = five()
    (table,) = [t for t in tables("notation") if t[0] == ["what", "notes", "paper"]]
    paper = letters(table)["scores ω"][1]
    torch.testing.assert_close(value(paper, {"Q": q, "K": k}), q @ k.T, **CLOSE)


def test_what_is_added_to_the_scores():
    q, k, v, mask = five()
    (table,) = [t for t in tables("notation") if t[0][0] == "mask"]
    (told,) = [row[2] for row in table[2:] if row[2].startswith("added to")]
    scores = told.removeprefix("added to ").partition(";")[0]
    scores = value(scores, {"ω": q @ k.T, "α": torch.softmax(q @ k.T, -1),
                            "d_k": q.shape[1], "d_in": 13})  # fmt: skip
    made = torch.softmax(scores + mask, dim=-1) @ v
    torch.testing.assert_close(
        made, scaled_dot_product_attention(q, k, v, mask), **CLOSE
    )


def test_rows_of_a_pattern_are_queries():
    """Whose change moves which row of the weights, as captions say it."""
    q, k, *_ = five()
    other = q.clone()
    other[1] += 1
    moved = torch.softmax(q @ k.T, -1) != torch.softmax(other @ k.T, -1)
    rows = moved[1].all() and not moved[[0, 2, 3, 4]].any()
    wanted = ("queries", "keys") if rows else ("keys", "queries")
    said = [
        words
        for page in pages()
        for words in re.findall(
            r"Rows are (\w+)[;,] columns are (\w+)", str(page.source)
        )
        if "outputs" not in words
    ]
    assert len(said) >= 3
    assert set(said) == {wanted}
    (layers,) = [p for p in pages() if p.name == "10_attention_in_models"]
    sees = re.search(r"What a (\w+) may see", str(layers.source))
    assert sees[1] == {"queries": "query", "keys": "key"}[wanted[0]]
