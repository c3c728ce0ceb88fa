"""Exercises on the sizes of multi-head attention: right answers, named mistakes."""

import torch
from torch import nn

from attention import CausalAttention, MultiHeadAttention, MultiHeadAttentionWrapper
from tests.book.pages import BOOK


def layer(d, heads, context_length=1024, qkv_bias=False):
    with torch.device("meta"):
        return MultiHeadAttention(d, d, context_length, 0.0, heads, qkv_bias)


def wrapper(d_out, num_heads=2, d_in=3, context_length=6):
    return MultiHeadAttentionWrapper(d_in, d_out, context_length, 0.0, num_heads)


SMALL, LARGE = layer(768, 12), layer(1600, 25)
COUNTS = 2_360_064, 10_241_600


def broken_class(*repairs):
    """The class that the page asks to repair, with some of its lines repaired."""
    page = (BOOK / "exercises.md").read_text(encoding="utf-8")
    source = page.partition(":name: broken-class\n\n")[2].partition("```")[0]
    for wrong, right in repairs:
        assert source.count(wrong) == 1, wrong
        source = source.replace(wrong, right)
    names = {"torch": torch, "nn": nn}
    exec(source, names)
    return names["Broken"]


FILL = "[:t, :t], 0.0", "[:t, :t], -torch.inf"
SCALE = "self.d_out**0.5", "self.head_dim**0.5"
JOIN = "context.reshape", "context.transpose(1, 2).reshape"

RIGHT = {
    "3.2": {
        "dict": {"d_out": 1}, "call": dict(d_out=1, num_heads=2), "text": "d_out=1",
        "text with blanks": " d_out = 1,", "wrapper": wrapper(1),
        "all arguments": dict(d_in=3, d_out=1, context_length=6, dropout=0.0,
                              num_heads=2),
    },
    "3.3": {
        "layers": (SMALL, LARGE), "counts": COUNTS, "list": list(COUNTS),
        "dict": {"smallest": SMALL, "largest": LARGE},
        "with biases": (layer(768, 12, qkv_bias=True), 10_246_400),
    },
    "repair": {
        "the class, repaired": broken_class(FILL, SCALE, JOIN),
        "an instance": broken_class(FILL, SCALE, JOIN)(8, 8, 8, 0.0, 2),
    },
}  # fmt: skip
WRONG = {
    "3.2": {
        "one head": ({"num_heads": 1}, "but one head is left"),
        "one head, built": (wrapper(2, num_heads=1), "but one head is left"),
        "unchanged": (wrapper(2), "two heads make four"),
        "d_out=2": ("d_out=2", "two heads make four"),
        "four": ({"d_out": 4}, "make a result 8 wide"),
        "heads": ({"num_heads": 4, "d_out": 1}, "There are to be two heads, not 4"),
        "d_in": ({"d_in": 2}, "does not touch the width"),
        "other class": (MultiHeadAttention(3, 2, 6, 0.0, 2), "This is MultiHeadAtt"),
        "no such": ({"width": 1}, "The wrapper has no argument 'width'"),
        "value alone": (1, "Which argument gets the value 1?"),
        "argument alone": ("d_out", "And to which value?"),
        "one half": ({"d_out": 0.5}, "must be a whole number"),
        "causal": (CausalAttention(3, 2, 6, 0.0), "One argument and its value"),
    },
    "3.3": {
        "mask counted": ((COUNTS[0] + 1024**2, COUNTS[1]), "The mask is counted"),
        "whole model": ((12 * COUNTS[0], 48 * COUNTS[1]), "layers of the whole model"),
        "times heads": ((12 * COUNTS[0], 25 * COUNTS[1]), "layers of the whole model"),
        "times heads, large": ((COUNTS[0], 25 * COUNTS[1]), "share the width d_out"),
        "no bias": ((4 * 768**2, COUNTS[1]), "The bias of out_proj is missing"),
        "no out_proj": ((3 * 768**2, COUNTS[1]), "out_proj is missing: a fourth"),
        "one matrix": ((768**2, COUNTS[1]), "one of the four matrices"),
        "exchanged": (COUNTS[::-1], "the other way round"),
        "layers exchanged": ((LARGE, SMALL), "the other way round"),
        "unlike": ((COUNTS[0], 10_246_400), "Count both alike"),
        "heads": ((layer(768, 16), LARGE), "num_heads=12, but your layer has 16"),
        "context": ((SMALL, layer(1600, 25, 512)), "context_length=1024, but"),
        "unknown": ((7, COUNTS[1]), "The smallest one does not have 7 parameters"),
        "one": ((SMALL,), "A pair, for the smallest and the largest"),
    },
    "repair": {
        "as it is": (broken_class(), "Findings after this one: "),
        "not filled": (broken_class(SCALE, JOIN), "Hidden scores are set to 0"),
        "not scaled": (broken_class(FILL, JOIN), "the root of d_out, not of d_head"),
        "not joined": (
            broken_class(FILL, SCALE), "Heads are joined without transposing back"
        ),
        "the package": (MultiHeadAttention, "the book's own MultiHeadAttention"),
        "not attention": (nn.Identity, "Tokens do not see each other"),
    },
}  # fmt: skip
