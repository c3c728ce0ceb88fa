"""Each displayed formula, evaluated, gives what the code beside it gives."""

import re

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

import attention
from coding_attention.models import seq2seq
from tests.book.claims import prose
from tests.book.formulas import value
from tests.book.running import ran

CLOSE = {"rtol": 1e-4, "atol": 1e-6}


def displayed(page):
    (formula,) = re.findall(r"\$\$(.+?)\$\$", prose(page), re.S)
    return [side.strip() for side in formula.split("=", 1)]


def tables(page):
    """The rows of every table of a page, without its heading."""
    found = re.findall(r"(?:^\|.*\|\n)+", prose(page), re.M)
    rows = [[line.strip("| ").split(" | ") for line in t.splitlines()] for t in found]
    return [[[cell.strip() for cell in row] for row in table] for table in rows]


def code_names():
    """The letter of a tensor -> its name in code, from the page on notation."""
    (table,) = [t for t in tables("notation") if t[0] == ["what", "ours"]]
    return {row[0].split()[-1]: row[1].strip("`").split("`")[0] for row in table[2:]}


@pytest.mark.parametrize(
    "page", ["02_simple_self_attention", "03_trainable_self_attention"]
)
def test_weights_of_a_query(page):
    space, names = ran(page)[0], code_names()
    left, right = displayed(page)
    known = {sign: space[f"{names[sign]}_2"] for sign in "αω"}
    known |= {name: space[name] for name in ("d_in", "d_out", "d_k") if name in space}
    torch.testing.assert_close(value(left, known), value(right, known), **CLOSE)


def five():
    """Queries, keys, values and a mask with sizes of which no two are equal."""
    torch.manual_seed(0)
    q, k, v = torch.randn(5, 7), torch.randn(3, 7), torch.randn(3, 11)
    hidden = torch.arange(3) > torch.arange(5)[:, None]  # every query keeps a key
    return q, k, v, torch.where(hidden, -torch.inf, 0.0)


@pytest.mark.parametrize("page", ["notation", "summary"])
def test_attention_in_one_line(page):
    q, k, v, mask = five()
    names = {"Q": q, "K": k, "V": v, "M": mask, "d_k": 7, "d_in": 13, "d_out": 11}
    left, right = displayed(page)
    assert page == "summary" or re.search(r"\((.*)\)", left)[1] == "Q, K, V"
    given = mask if " M" in right else None
    wanted = scaled_dot_product_attention(q, k, v, given)
    torch.testing.assert_close(value(right, names), wanted, **CLOSE)


def test_the_score_of_bahdanau_is_that_of_the_model():
    look_back, states, state = seq2seq.LookBack(5), torch.randn(3, 5), torch.randn(5)
    (formula,) = re.findall(r"\$\$(.+?)\$\$", prose("01_why_attention"))
    score, shares, mean = (side.split(" = ")[1] for side in formula.split(r", \qquad "))
    names = {"v": look_back.v.weight[0], "s": state}
    names |= {name: getattr(look_back, name).weight for name in "WU"}
    names["e"] = torch.stack([value(score, names | {"h": h}) for h in states])
    names["α"] = value(shares, names)
    context, weights = look_back(state[None], states[None], look_back.U(states)[None])
    torch.testing.assert_close(names["α"], weights[0], **CLOSE)
    made = value(mean, {"α": names["α"], "h": states})
    torch.testing.assert_close(made, context[0], **CLOSE)


def test_weights_masked_after_softmax_cancel_the_future():
    i, j, s = 3, 1, torch.randn(5, 5)
    masked = s[i, : i + 1].softmax(dim=0)[j]
    for side in displayed("04_questions"):
        (k,) = re.findall(r"\\sum_\{(\w) \\le i\}", side)
        plain = re.sub(r"\\sum_\{[^{}]*\}", r"\\sum", side)
        plain = re.sub(r"s_\{(\w+)\}", r"s\1", plain)
        names = {"sij": s[i, j], f"si{k}": s[i, : i + 1], "D": s[i].exp().sum()}
        torch.testing.assert_close(value(plain, names), masked, **CLOSE)


def test_the_key_matrix_of_a_latent_moves_to_the_query():
    names = {"q": torch.randn(3), "U": torch.randn(3, 4), "c": torch.randn(4)}
    left, right = (value(side, names) for side in displayed("10_attention_in_models"))
    torch.testing.assert_close(left, right, **CLOSE)


def test_the_symbols_are_those_of_a_layer():
    """Shapes and formulas of the table, against a layer with sizes of its own."""
    t, d_in, d_k = 5, 7, 3
    layer, x = attention.SelfAttention_v2(d_in, d_k), torch.randn(t, d_in)
    (table,) = [t for t in tables("notation") if t[0][0] == "symbol"]
    names = {"d_k": d_k, "d_in": d_in, "d_out": d_k, "t": t, "x": x}
    told = {"input", "queries", "keys", "values"}
    meaning = {"q": layer.W_query, "k": layer.W_key, "v": layer.W_value}
    words = {"q": "queries", "k": "keys", "v": "values", "x": "input"}
    for symbol, what, shape in table[2:]:
        if symbol in words:
            assert what.split(":")[0] == words[symbol]
            told.remove(words[symbol])
            names[symbol] = meaning[symbol](x) if symbol in meaning else x
        else:
            formula = what.split(", ", 1)[1].removesuffix(" by row")
            names[symbol] = value(formula, names)
        assert tuple(names[symbol].shape) == eval(shape, {}, names)
    assert not told
    torch.testing.assert_close(names["z"], layer(x), **CLOSE)


def test_the_letters_of_pytorch_are_those_of_its_own_description():
    shapes = dict(
        re.findall(
            r"(query|key|value) \(Tensor\).*?shape :math:`\(([^)]*)\)",
            scaled_dot_product_attention.__doc__,
        )
    )
    queries, keys, values = (
        shapes[name].split(", ") for name in ("query", "key", "value")
    )
    wanted = {
        "b": queries[0], "t": f"{queries[-2]} or {keys[-2]}", "t_q": queries[-2],
        "t_k": keys[-2], "d_k": queries[-1], "d_head": values[-1],
    }  # fmt: skip
    (table,) = [t for t in tables("notation") if t[0] == ["ours", "chapter", "PyTorch"]]
    told = {row[0]: row[2] for row in table[2:]}
    assert {name: told[name] for name in wanted} == wanted


def test_every_table_of_names_has_each_letter_once():
    first = [[row[0] for row in t[2:]] for t in tables("notation") if len(t[0][0]) > 1]
    letters = [column for column in first if "d_in" in column]
    assert len(letters) == 3
    for column in letters:
        assert len(set(column)) == len(column)
    same = [{name for name in column if "t_" not in name} for column in letters]
    assert same[0] == same[1] == same[2]


def test_letters_and_names_in_one_row_are_in_the_same_order():
    rows = [row for table in tables("notation") for row in table if len(row) == 2]
    listed = [
        (re.findall(r"\b(?:W_)?([qkv])\b", what), re.findall(r"`(?:W_)?([a-z])", names))
        for what, names in rows
    ]
    lists = [(a, b) for a, b in listed if len(a) == len(b) > 1]
    assert len(lists) == 3
    assert all(letters == names for letters, names in lists)


def test_parameters_on_one_sheet():
    (table,) = tables("summary")
    (row,) = [row for row in table if row[0].startswith("parameters")]
    simple, trainable, causal, multi_head = (cell.split("`") for cell in row[1:])
    d_in, d_out = 5, 6
    count = lambda layer: sum(p.numel() for p in layer.parameters())  # noqa: E731
    one = count(attention.SelfAttention_v2(d_in, d_out))
    masked = count(attention.CausalAttention(d_in, d_out, 4, 0.0))
    several = count(attention.MultiHeadAttention(d_in, d_out, 4, 0.0, num_heads=3))
    assert simple == ["none"]
    assert eval(trainable[1]) == one
    assert (causal == ["the same"]) == (masked == one)
    assert multi_head[0] == "and "
    assert eval(multi_head[1]) == several - one


def test_what_a_token_sees_on_one_sheet():
    (table,) = tables("summary")
    (row,) = [row for row in table if row[0] == "a token sees"]
    layers = [
        attention.simple_self_attention,
        attention.SelfAttention_v2(3, 4),
        attention.CausalAttention(3, 4, 5, 0.0),
        attention.MultiHeadAttention(3, 4, 5, 0.0, num_heads=2),
    ]
    for told, layer in zip(row[1:], layers, strict=True):
        x = torch.randn(1, 5, 3, requires_grad=True)
        layer(x)[0, 2].sum().backward()
        seen = x.grad[0].abs().sum(dim=1) > 0
        future = bool(seen[3:].any())
        assert seen[:3].all()
        assert told == ("all" if future else "itself, the past")
