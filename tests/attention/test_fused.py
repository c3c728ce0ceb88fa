"""What the fused layer has and the listing hasn't: a cache, shared heads, encoders.

That the two compute the same is held with all other layers.
"""

import copy
import gc
import pickle
import re

import pytest
import torch
from torch import nn

from attention import (
    FusedMultiHeadAttention,
    KeyValueCache,
    MultiHeadAttention,
    convert,
)
from attention.fused import SHARES_HEADS
from tests.attention.public import CLOSE, message_of

pytestmark = pytest.mark.package


def cut(x):
    """Cut the tokens into a prompt, a second chunk and single tokens."""
    prompt, chunk = x.shape[1] // 3, x.shape[1] // 2
    parts = [x[:, :prompt], x[:, prompt:chunk], *x[:, chunk:].split(1, dim=1)]
    return [part for part in parts if part.shape[1] > 0]


@pytest.mark.parametrize("num_kv_heads", [1, 2, 3, 6])
@pytest.mark.parametrize("shares_heads", sorted({SHARES_HEADS, False}))
@torch.no_grad()
def test_grouped_heads_equal_repeated_heads(num_kv_heads, shares_heads, monkeypatch):
    monkeypatch.setattr("attention.fused.SHARES_HEADS", shares_heads)
    torch.manual_seed(num_kv_heads)
    grouped = FusedMultiHeadAttention(
        10, 24, 16, 0.0, 6, qkv_bias=True, num_kv_heads=num_kv_heads
    )
    listing = MultiHeadAttention(10, 24, 16, 0.0, 6, qkv_bias=True)
    listing.load_state_dict(convert.ungroup_heads(grouped.state_dict(), 6))
    x = torch.randn(2, 13, 10)
    torch.testing.assert_close(grouped(x), listing(x), **CLOSE)
    cache = KeyValueCache()
    parts = [grouped(part, cache=cache) for part in cut(x)]
    torch.testing.assert_close(torch.cat(parts, dim=1), listing(x), **CLOSE)
    # 2 sequences, keys and values, 13 tokens, heads 4 wide, 4 bytes a number.
    assert cache.num_bytes == 2 * 2 * 13 * num_kv_heads * 4 * 4


def test_no_scores_are_kept_for_the_backward_pass():
    layer = FusedMultiHeadAttention(8, 8, 256, 0.0, 2)
    sizes = []

    def note(tensor):
        sizes.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        layer(torch.randn(1, 256, 8))
    assert sizes
    assert max(sizes) == 256 * 8


def test_a_printed_layer_shows_what_its_projections_do_not():
    layer = FusedMultiHeadAttention(6, 8, 9, 0.5, 4, num_kv_heads=2, window=3)
    shown = ["num_heads=4", "num_kv_heads=2", "context_length=9", "window=3"]
    assert [part for part in shown if part not in str(layer)] == []


# Encoders, memories, padding --------------------------------------------------------


def encoder(d_in=6):
    torch.manual_seed(0)
    return FusedMultiHeadAttention(d_in, 8, 9, 0.0, 4, True, causal=False)


def in_torch(layer, x, key_padding_mask=None):
    """Compute with nn.MultiheadAttention and the same weights."""
    theirs = nn.MultiheadAttention(8, 4, batch_first=True).eval()
    theirs.load_state_dict(convert.from_ours(layer, convert.TORCH))
    mask = key_padding_mask
    return theirs(x, x, x, key_padding_mask=mask, need_weights=True)[0]


@pytest.mark.parametrize("lengths", [(7, 7, 7), (7, 1, 4), (2, 6, 3)])
def test_an_encoder_is_that_of_torch_with_and_without_padding(lengths):
    layer, x = encoder(d_in=8), torch.randn(3, 7, 8)
    torch.testing.assert_close(layer(x), in_torch(layer, x), **CLOSE)
    padding = torch.arange(7) >= torch.tensor(lengths)[:, None]
    ours = layer(x, key_padding_mask=padding)
    torch.testing.assert_close(ours, in_torch(layer, x, padding), **CLOSE)


@pytest.mark.parametrize("t_k", [1, 4, 9])
@pytest.mark.parametrize("padded", [0, 3])
@torch.no_grad()
def test_cross_attention_sees_the_whole_memory_but_its_padding(t_k, padded):
    torch.manual_seed(0)
    layer = FusedMultiHeadAttention(3, 4, 5, 0.0, 2, qkv_bias=True)
    x, memory = torch.randn(2, 4, 3), torch.randn(2, t_k, 3)
    q, k, v = layer.W_query(x), layer.W_key(memory), layer.W_value(memory)
    heads = []
    for i in (slice(0, 2), slice(2, 4)):
        weights = torch.softmax(q[..., i] @ k[..., i].mT / 2**0.5, dim=-1)
        heads.append(weights @ v[..., i])
    expected = layer.out_proj(torch.cat(heads, dim=-1))
    result = layer(x, memory=memory)
    torch.testing.assert_close(result, expected, **CLOSE)
    longer = torch.cat([memory, torch.randn(2, padded, 3)], dim=1)
    padding = (torch.arange(t_k + padded) >= t_k).expand(2, -1)
    result = layer(x, memory=longer, key_padding_mask=padding)
    torch.testing.assert_close(result, expected, **CLOSE)


@pytest.mark.skipif(torch.__version__ < "2.5", reason="nan before PyTorch 2.5")
def test_a_query_with_nothing_to_see_gets_zeros():
    layer = encoder()
    out = layer(torch.randn(1, 3, 6), key_padding_mask=torch.ones(1, 3).bool())
    torch.testing.assert_close(out, layer.out_proj.bias.expand(1, 3, 8))


# Caches ------------------------------------------------------------------------------


def test_a_cache_of_inference_mode_goes_on_without_it():
    layer, x = FusedMultiHeadAttention(3, 4, 5, 0.0, 2), torch.randn(1, 5, 3)
    cache = KeyValueCache()
    with torch.inference_mode():
        first = layer(x[:, :2], cache=cache)
    with torch.no_grad():
        parts = [first, *(layer(x[:, i : i + 1], cache=cache) for i in range(2, 5))]
        torch.testing.assert_close(torch.cat(parts, dim=1), layer(x), **CLOSE)


@torch.no_grad()
def test_dropout_while_a_cache_fills_is_told():
    layer, x = FusedMultiHeadAttention(3, 4, 5, 0.1, 2), torch.randn(1, 5, 3)
    with pytest.warns(UserWarning, match="training mode"):
        layer(x, cache=KeyValueCache())
    layer.eval()(x, cache=KeyValueCache())  # warnings are errors here


@torch.no_grad()
def test_a_cleared_cache_starts_again():
    fused = FusedMultiHeadAttention(3, 4, 5, 0.0, 2)
    cache = KeyValueCache()
    fused(torch.randn(1, 5, 3), cache=cache)
    cache.clear()
    assert (cache.length, cache.num_bytes, cache.layer) == (0, 0, None)
    x = torch.randn(2, 3, 3)
    torch.testing.assert_close(fused(x, cache=cache), fused(x))


@torch.no_grad()
def test_a_cache_follows_dtype_and_keeps_no_layer_alive():
    fused = FusedMultiHeadAttention(3, 4, 5, 0.0, 2).double()
    cache = KeyValueCache()
    fused(torch.randn(1, 2, 3).double(), cache=cache)
    assert (cache.dtype, cache.device.type) == (torch.float64, "cpu")
    assert cache.layer is fused
    del fused
    gc.collect()
    assert cache.layer is None


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda cache: pickle.loads(pickle.dumps(cache))],
    ids=["copy", "deepcopy", "pickle"],
)
@pytest.mark.parametrize("window", [None, 3])  # with one, it has forgotten tokens
@torch.no_grad()
def test_a_cache_that_was_copied_goes_on(duplicate, window):
    torch.manual_seed(0)
    layer = FusedMultiHeadAttention(3, 4, 9, 0.0, 2, window=window)
    x = torch.randn(2, 9, 3)
    cache = KeyValueCache()
    layer(x[:, :5], cache=cache)
    other = duplicate(cache)
    rest = layer(x[:, 5:], cache=other)
    torch.testing.assert_close(rest, layer(x)[:, 5:], **CLOSE)
    assert (cache.length, other.length) == (5, 9)
    # The first one is as it was: another continuation starts from the same tokens.
    again = layer(x[:, 5:6], cache=cache)
    torch.testing.assert_close(again, rest[:, :1], **CLOSE)
    assert duplicate(KeyValueCache()).length == 0


@torch.no_grad()
def test_a_pickle_holds_the_tokens_and_neither_the_layer_nor_free_room():
    layer = FusedMultiHeadAttention(3, 4, 4096, 0.0, 2)
    cache = KeyValueCache()
    layer(torch.randn(1, 2, 3), cache=cache)
    stored = pickle.dumps(cache)
    assert len(stored) < 5000
    assert b"FusedMultiHeadAttention" not in stored
    read = pickle.loads(stored)
    assert (read.length, read.layer, read.num_bytes) == (2, None, cache.num_bytes)
    with pytest.raises(ValueError, match="batch size"):
        layer(torch.randn(2, 1, 3), cache=read)
    layer(torch.randn(1, 1, 3), cache=read)
    assert read.layer is layer


@torch.no_grad()
def test_a_layer_compiles_with_a_cache():
    torch._dynamo.reset()
    layer = FusedMultiHeadAttention(6, 8, 16, 0.0, 4, num_kv_heads=2)
    one_graph = torch.__version__ >= "2.5"  # earlier ones stop at the cache
    compiled = torch.compile(layer, fullgraph=one_graph, backend="eager")
    x, cache = torch.randn(2, 9, 6), KeyValueCache()
    parts = [compiled(part, cache=cache) for part in cut(x)]
    torch.testing.assert_close(torch.cat(parts, dim=1), layer(x), **CLOSE)


@pytest.mark.parametrize("trained", ["W_key", "W_value"])
def test_a_cache_refuses_gradients(trained):
    # With one projection trained alone, only the keys or only the values carry one.
    layer = FusedMultiHeadAttention(3, 4, 5, 0.0, 2).requires_grad_(False)
    getattr(layer, trained).requires_grad_(True)
    with pytest.raises(RuntimeError, match=re.escape("torch.no_grad()")):
        layer(X, cache=KeyValueCache())


# What is refused ---------------------------------------------------------------------


def filled(layer, b=2):
    cache = KeyValueCache()
    with torch.no_grad():
        layer(torch.randn(b, 2, 3), cache=cache)
    return cache


def continue_in_double(layer):
    cache = filled(layer)
    return layer.double()(X.double(), cache=cache)


def fused(d_out=4, num_heads=2, **options):
    return FusedMultiHeadAttention(3, d_out, 5, 0.0, num_heads, **options)


LAYER, OTHER, ENCODER, SHORT = fused(), fused(), fused(causal=False), fused(window=2)
X, BOOLEANS = torch.randn(2, 1, 3), torch.ones(2, 5).bool()
REFUSED = [
    (lambda: LAYER(X, cache=filled(LAYER, b=3)), ValueError,
     ["batch size of the cached tokens, 3", "got 2", "new KeyValueCache()"]),
    (lambda: LAYER(X, cache=filled(OTHER)), ValueError,
     ["another layer", "one KeyValueCache() for each layer"]),
    (lambda: continue_in_double(copy.deepcopy(LAYER)), ValueError,
     ["torch.float32 on cpu", "torch.float64 on cpu", "before the first token"]),
    (lambda: LAYER(X, cache=True), TypeError,
     ["cache must be a KeyValueCache", "got bool", "cache=KeyValueCache()"]),
    (lambda: LAYER(X, cache=KeyValueCache(), memory=X), ValueError,
     ["cache and memory", "one of the two"]),
    (lambda: LAYER(X, memory=[1.0]), TypeError,
     ["memory must be a Tensor", "got list"]),
    (lambda: LAYER(X, memory=torch.ones(2, 4, 3, dtype=torch.int64)), TypeError,
     ["memory must", "floating-point", "torch.int64", "memory.float()"]),
    (lambda: LAYER(X, memory=torch.randn(3, 4, 3)), ValueError,
     ["b=2 as in x", "d_in=3", "(3, 4, 3)"]),
    (lambda: LAYER(X, memory=torch.randn(2, 4, 5)), ValueError,
     ["d_in=3", "(2, 4, 5)"]),
    (lambda: LAYER(X, memory=torch.randn(2, 0, 3)), ValueError,
     ["at least one token", "(2, 0, 3)"]),
    (lambda: LAYER(torch.randn(2, 4, 3), cache=filled(LAYER)), ValueError,
     ["holds 2 tokens", "x adds 4", "context_length=5"]),
    (lambda: ENCODER(X, cache=KeyValueCache()), ValueError,
     ["causal=False", "nothing can be cached"]),
    (lambda: LAYER(X, key_padding_mask=torch.ones(2, 1)), TypeError,
     ["booleans", "torch.float32", "(mask == 0)"]),
    (lambda: LAYER(X, key_padding_mask=[True]), TypeError,
     ["key_padding_mask must be a Tensor", "got list"]),
    (lambda: ENCODER(X, memory=torch.randn(2, 4, 3), key_padding_mask=BOOLEANS),
     ValueError, ["(2, 4)", "(2, 5)"]),
    (lambda: LAYER(X, X, X), TypeError,
     ["a second tensor", "Write layer(x), or layer(x, memory=other)"]),
    (lambda: LAYER(X, attn_mask=BOOLEANS), TypeError,
     ["no argument 'attn_mask'", "key_padding_mask in the call", "window"]),
    (lambda: LAYER(X, is_causal=True), TypeError,
     ["no argument 'is_causal'", "with causal=True"]),
    (lambda: LAYER(X, need_weights=False), TypeError,
     ["no argument 'need_weights'", "attention.functional.attention_weights"]),
    (lambda: LAYER(X, average_attn_weights=False), TypeError,
     ["'average_attn_weights'", "attention.functional.attention_weights"]),
    (lambda: LAYER(X, past=None), TypeError,
     ["no argument 'past'", "x, cache, memory and key_padding_mask"]),
    (lambda: fused(causal=False, window=2), ValueError,
     ["window=2", "causal=False", "causal=True"]),
    (lambda: fused(d_out=6, rope_theta=1e4), ValueError,
     ["must be even", "6 / 2 = 3"]),
    (lambda: fused(rope_theta=0), ValueError,
     ["rope_theta must be a positive number", "got 0", "10000.0"]),
    (lambda: fused(rope_theta="1e4"), ValueError,
     ["rope_theta must be a positive number", "got '1e4'"]),
    (lambda: fused(rope_theta=True), ValueError,
     ["rope_theta must be a positive number", "got True"]),
    (lambda: fused(rope_theta=1e4)(X, memory=X), ValueError,
     ["memory is another", "rope_theta=None"]),
    (lambda: filled(LAYER).crop(3), ValueError,
     ["from 0 to 2", "got 3", "cache.length - 1"]),
    (lambda: filled(LAYER).crop(None), ValueError, ["from 0 to 2", "got None"]),
    (lambda: filled(SHORT).crop(1), ValueError,
     ["from position 1 on", "position 0 is needed", "all tokens again"]),
    (lambda: LAYER(X, cache=pickle.loads(pickle.dumps(filled(SHORT)))), ValueError,
     ["from position 1 on", "position 0 is needed"]),
    (lambda: filled(LAYER).reorder(torch.ones(2)), ValueError,
     ["rows must", "integers", "torch.float32", "(2,)"]),
    (lambda: filled(LAYER).reorder(torch.ones(2, 1, dtype=torch.int64)), ValueError,
     ["rows must", "integers", "(2, 1)"]),
    (lambda: filled(LAYER).reorder([0, 0]), TypeError,
     ["rows must be a Tensor", "got list"]),
    (lambda: fused(d_out=12, num_heads=6, num_kv_heads=4), ValueError,
     ["num_kv_heads=4", "num_heads=6", "can be 1, 2, 3, 6"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "error", "parts"), REFUSED, ids=[" ".join(row[2]) for row in REFUSED]
)
@torch.no_grad()
def test_bad_input_is_refused(call, error, parts):
    message = message_of(call, error)
    assert [part for part in parts if part not in message] == [], message
