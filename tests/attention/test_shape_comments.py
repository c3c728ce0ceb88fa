"""Shape comments of the package are true, at sizes of which no two are equal."""

import importlib
import inspect

import torch

import attention
from tests.shape_comments import Reader, run

B, T, D_IN, HEADS, D_HEAD = 2, 7, 5, 3, 11
SIZES = {"b": B, "d_in": D_IN}


def traced(module, **sizes):
    """The names of a module of the package, with comments that are read as it runs."""
    source = inspect.getsource(importlib.import_module(f"attention.{module}"))
    reader = Reader(module, sizes)
    space = {"__name__": f"attention.{module}", "__package__": "attention"}
    return run(source, module, space, reader), reader


def wrong(reader):
    return "\n".join(reader.wrong())


def test_trainable():
    space, reader = traced("trainable", **SIZES, t=T, d_out=D_HEAD)
    for name in ("SelfAttention_v1", "SelfAttention_v2"):
        space[name](D_IN, D_HEAD)(torch.randn(B, T, D_IN))
    assert not wrong(reader)


def test_causal():
    space, reader = traced("causal", **SIZES, t=T, d_out=D_HEAD)
    space["CausalAttention"](D_IN, D_HEAD, T, 0.0)(torch.randn(B, T, D_IN))
    assert not wrong(reader)


def test_multi_head():
    space, reader = traced("multi_head", **SIZES, t=T, h=HEADS, d_head=D_HEAD)
    x = torch.randn(B, T, D_IN)
    space["MultiHeadAttentionWrapper"](D_IN, D_HEAD, T, 0.0, HEADS)(x)
    space["MultiHeadAttention"](D_IN, HEADS * D_HEAD, T, 0.0, HEADS)(x)
    assert not wrong(reader)


def test_fused():
    space, reader = traced("fused", **SIZES, h=HEADS, d_head=D_HEAD, h_kv=1)
    layer = space["FusedMultiHeadAttention"](
        D_IN, HEADS * D_HEAD, T, 0.0, HEADS, num_kv_heads=1
    )
    x = torch.randn(B, T, D_IN)
    layer(x, key_padding_mask=torch.zeros(B, T, dtype=torch.bool))
    with torch.no_grad():
        layer.eval()(x, cache=attention.KeyValueCache())
    # Two comments stand in branches for other releases of PyTorch and other masks.
    assert not [line for line in reader.wrong() if "never read" not in line]


def test_a_wrong_letter_is_seen():
    program = "def f(x):  # (b, t, d_in)\n    s = x @ x.mT  # (b, t, t)\n    return s\n"
    for told, right in (("(b, t, t)", True), ("(b, d_in, d_in)", False)):
        reader = Reader("program")
        space = run(program.replace("(b, t, t)", told), "f", {}, reader)
        space["f"](torch.randn(2, 7, 5))
        assert (not wrong(reader)) == right
