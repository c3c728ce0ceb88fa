"""The fused layer computes what the listing computes, with and without a cache."""

import copy
import gc
import pickle
import re

import pytest
import torch
from torch.nn import functional as F

import attention
from attention import FusedMultiHeadAttention, KeyValueCache, MultiHeadAttention
from attention.convert import ungroup_heads
from attention.fused import SHARES_HEADS
from tests.attention.public import conditions, says

pytestmark = pytest.mark.package

CLOSE = {"atol": 2e-6, "rtol": 1e-5}


def random_sizes(seed):
    """Draw b, t, h, d_in, d_out, context_length and qkv_bias."""
    generator = torch.Generator().manual_seed(seed)

    def draw(low, high):
        return int(torch.randint(low, high + 1, (), generator=generator))

    b, t, h = draw(1, 4), draw(1, 33), draw(1, 6)
    return b, t, h, draw(1, 20), h * draw(1, 9), t + draw(0, 5), bool(draw(0, 1))


def twins(seed, dropout=0.0):
    """Build the listing and the fused layer with equal weights, and an input."""
    b, t, h, d_in, d_out, context_length, bias = random_sizes(seed)
    torch.manual_seed(seed)
    listing = MultiHeadAttention(d_in, d_out, context_length, dropout, h, bias)
    torch.manual_seed(seed)
    fused = FusedMultiHeadAttention(d_in, d_out, context_length, dropout, h, bias)
    return listing, fused, torch.randn(b, t, d_in)


@pytest.mark.parametrize("seed", range(20))
def test_fused_equals_the_listing_over_random_sizes(seed):
    listing, fused, x = twins(seed)
    x_fused = x.clone().requires_grad_()
    x.requires_grad_()
    expected, result = listing(x), fused(x_fused)
    torch.testing.assert_close(result, expected, **CLOSE)
    weights = torch.randn_like(expected)
    (expected * weights).sum().backward()
    (result * weights).sum().backward()
    torch.testing.assert_close(x_fused.grad, x.grad, atol=2e-5, rtol=1e-4)
    for a, b in zip(listing.parameters(), fused.parameters(), strict=True):
        torch.testing.assert_close(b.grad, a.grad, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_fused_keeps_the_dtype(dtype):
    listing, fused, x = twins(3)
    listing, fused, x = listing.to(dtype), fused.to(dtype), x.to(dtype)
    result = fused(x)
    assert result.dtype == dtype
    tolerance = 1e-12 if dtype == torch.float64 else 3e-2
    torch.testing.assert_close(result, listing(x), atol=tolerance, rtol=tolerance)


def cut(x):
    """Cut the tokens into a prompt, a second chunk and single tokens."""
    prompt, chunk = x.shape[1] // 3, x.shape[1] // 2
    parts = [x[:, :prompt], x[:, prompt:chunk], *x[:, chunk:].split(1, dim=1)]
    return [part for part in parts if part.shape[1] > 0]


@pytest.mark.parametrize("seed", range(20))
@torch.no_grad()
def test_cached_equals_uncached_over_random_sizes(seed):
    listing, fused, x = twins(seed)
    cache = KeyValueCache()
    parts = [fused(part, cache=cache) for part in cut(x)]
    torch.testing.assert_close(torch.cat(parts, dim=1), listing(x), **CLOSE)
    assert cache.length == x.shape[1]


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
    listing.load_state_dict(ungroup_heads(grouped.state_dict(), 6))
    x = torch.randn(2, 13, 10)
    torch.testing.assert_close(grouped(x), listing(x), **CLOSE)
    cache = KeyValueCache()
    parts = [grouped(part, cache=cache) for part in cut(x)]
    torch.testing.assert_close(torch.cat(parts, dim=1), listing(x), **CLOSE)
    # 2 sequences, keys and values, 13 tokens, heads 4 wide, 4 bytes a number.
    assert cache.num_bytes == 2 * 2 * 13 * num_kv_heads * 4 * 4


@torch.no_grad()
def test_gpt2_sized_decoding_equals_the_uncached_pass_token_by_token():
    torch.manual_seed(123)
    fused = FusedMultiHeadAttention(768, 768, 1024, 0.0, 12, qkv_bias=True).eval()
    x = torch.randn(1, 160, 768)
    cache = KeyValueCache()
    fused(x[:, :64], cache=cache)
    for t in range(64, 160):
        step = fused(x[:, t : t + 1], cache=cache)
        uncached = fused(x[:, : t + 1])[:, -1:]
        torch.testing.assert_close(step, uncached, atol=1e-6, rtol=1e-5)
    assert cache.length == 160


@torch.no_grad()
def test_the_last_position_is_taken_and_the_next_refused():
    fused = FusedMultiHeadAttention(3, 4, 5, 0.0, 2)
    x = torch.randn(1, 6, 3)
    cache = KeyValueCache()
    fused(x[:, :4], cache=cache)
    fused(x[:, 4:5], cache=cache)
    with pytest.raises(ValueError, match=r"holds 5 tokens.*adds 1.*context_length=5"):
        fused(x[:, 5:], cache=cache)
    assert cache.length == 5, "a refused token leaves the cache as it was"


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
    copied = copy.deepcopy(cache)
    fused(torch.randn(1, 1, 3).double(), cache=copied)
    assert (cache.length, copied.length) == (2, 3)
    del fused
    gc.collect()
    assert cache.layer is None


def filled(layer, b=2):
    cache = KeyValueCache()
    with torch.no_grad():
        layer(torch.randn(b, 2, 3), cache=cache)
    return cache


def continue_in_double(layer):
    cache = filled(layer)
    return layer.double()(X.double(), cache=cache)


LAYER = FusedMultiHeadAttention(3, 4, 5, 0.0, 2)
OTHER = FusedMultiHeadAttention(3, 4, 5, 0.0, 2)
ENCODER = FusedMultiHeadAttention(3, 4, 5, 0.0, 2, causal=False)
SHORT = FusedMultiHeadAttention(3, 4, 5, 0.0, 2, window=2)
X, BOOLEANS = torch.randn(2, 1, 3), torch.ones(2, 5).bool()
REFUSED = {
    "batch": (
        lambda: LAYER(X, cache=filled(LAYER, b=3)),
        ValueError,
        ["batch size of the cached tokens, 3", "got 2", "new KeyValueCache()"],
    ),
    "layer": (
        lambda: LAYER(X, cache=filled(OTHER)),
        ValueError,
        ["another layer", "one KeyValueCache() for each layer"],
    ),
    "dtype": (
        lambda: continue_in_double(copy.deepcopy(LAYER)),
        ValueError,
        ["torch.float32 on cpu", "torch.float64 on cpu", "before the first token"],
    ),
    "no cache": (
        lambda: LAYER(X, cache=True),
        TypeError,
        ["cache must be a KeyValueCache", "got bool", "cache=KeyValueCache()"],
    ),
    "cache and memory": (
        lambda: LAYER(X, cache=KeyValueCache(), memory=X),
        ValueError,
        ["cache and memory", "one of the two"],
    ),
    "memory is no tensor": (
        lambda: LAYER(X, memory=[1.0]),
        TypeError,
        ["memory must be a Tensor", "got list"],
    ),
    "memory of integers": (
        lambda: LAYER(X, memory=torch.ones(2, 4, 3, dtype=torch.int64)),
        TypeError,
        ["memory must", "floating-point", "torch.int64", "memory.float()"],
    ),
    "memory of another batch": (
        lambda: LAYER(X, memory=torch.randn(3, 4, 3)),
        ValueError,
        ["b=2 as in x", "d_in=3", "(3, 4, 3)"],
    ),
    "memory of another width": (
        lambda: LAYER(X, memory=torch.randn(2, 4, 5)),
        ValueError,
        ["d_in=3", "(2, 4, 5)"],
    ),
    "memory without a token": (
        lambda: LAYER(X, memory=torch.randn(2, 0, 3)),
        ValueError,
        ["at least one token", "(2, 0, 3)"],
    ),
    "room": (
        lambda: LAYER(torch.randn(2, 4, 3), cache=filled(LAYER)),
        ValueError,
        ["holds 2 tokens", "x adds 4", "context_length=5"],
    ),
    "a cache for an encoder": (
        lambda: ENCODER(X, cache=KeyValueCache()),
        ValueError,
        ["causal=False", "nothing can be cached"],
    ),
    "padding of numbers": (
        lambda: LAYER(X, key_padding_mask=torch.ones(2, 1)),
        TypeError,
        ["booleans", "torch.float32", "(mask == 0)"],
    ),
    "padding is no tensor": (
        lambda: LAYER(X, key_padding_mask=[True]),
        TypeError,
        ["key_padding_mask must be a Tensor", "got list"],
    ),
    "padding of another shape": (
        lambda: ENCODER(X, memory=torch.randn(2, 4, 3), key_padding_mask=BOOLEANS),
        ValueError,
        ["(2, 4)", "(2, 5)"],
    ),
    "three tensors": (
        lambda: LAYER(X, X, X),
        TypeError,
        ["a second tensor", "Write layer(x), or layer(x, memory=other)"],
    ),
    "attn_mask": (
        lambda: LAYER(X, attn_mask=BOOLEANS),
        TypeError,
        ["no argument 'attn_mask'", "key_padding_mask in the call", "window"],
    ),
    "is_causal": (
        lambda: LAYER(X, is_causal=True),
        TypeError,
        ["no argument 'is_causal'", "with causal=True"],
    ),
    "need_weights": (
        lambda: LAYER(X, need_weights=False),
        TypeError,
        ["no argument 'need_weights'", "attention.functional.attention_weights"],
    ),
    "average_attn_weights": (
        lambda: LAYER(X, average_attn_weights=False),
        TypeError,
        ["'average_attn_weights'", "attention.functional.attention_weights"],
    ),
    "an argument of nobody": (
        lambda: LAYER(X, past=None),
        TypeError,
        ["no argument 'past'", "x, cache, memory and key_padding_mask"],
    ),
    "a window for an encoder": (
        lambda: FusedMultiHeadAttention(3, 4, 5, 0.0, 2, causal=False, window=2),
        ValueError,
        ["window=2", "causal=False", "causal=True"],
    ),
    "odd heads to turn": (
        lambda: FusedMultiHeadAttention(3, 6, 5, 0.0, 2, rope_theta=1e4),
        ValueError,
        ["must be even", "6 / 2 = 3"],
    ),
    "theta": (
        lambda: FusedMultiHeadAttention(3, 4, 5, 0.0, 2, rope_theta=0),
        ValueError,
        ["rope_theta must be a positive number", "got 0", "10000.0"],
    ),
    "theta is no number": (
        lambda: FusedMultiHeadAttention(3, 4, 5, 0.0, 2, rope_theta="1e4"),
        ValueError,
        ["rope_theta must be a positive number", "got '1e4'"],
    ),
    "memory for rotary positions": (
        lambda: FusedMultiHeadAttention(3, 4, 5, 0.0, 2, rope_theta=1e4)(X, memory=X),
        ValueError,
        ["memory is another", "rope_theta=None"],
    ),
    "cropped to more": (
        lambda: filled(LAYER).crop(3),
        ValueError,
        ["from 0 to 2", "got 3", "cache.length - 1"],
    ),
    "cropped to no number": (
        lambda: filled(LAYER).crop(None),
        ValueError,
        ["from 0 to 2", "got None"],
    ),
    "cropped to what is forgotten": (
        lambda: filled(SHORT).crop(1),
        ValueError,
        ["from position 1 on", "position 0 is needed", "all tokens again"],
    ),
    "a cache that forgot too much": (
        lambda: LAYER(X, cache=pickle.loads(pickle.dumps(filled(SHORT)))),
        ValueError,
        ["from position 1 on", "position 0 is needed"],
    ),
    "rows of numbers": (
        lambda: filled(LAYER).reorder(torch.ones(2)),
        ValueError,
        ["rows must", "integers", "torch.float32", "(2,)"],
    ),
    "rows in two dimensions": (
        lambda: filled(LAYER).reorder(torch.ones(2, 1, dtype=torch.int64)),
        ValueError,
        ["rows must", "integers", "(2, 1)"],
    ),
    "rows are no tensor": (
        lambda: filled(LAYER).reorder([0, 0]),
        TypeError,
        ["rows must be a Tensor", "got list"],
    ),
    "kv heads": (
        lambda: FusedMultiHeadAttention(3, 12, 5, 0.0, 6, num_kv_heads=4),
        ValueError,
        ["num_kv_heads=4", "num_heads=6", "can be 1, 2, 3, 6"],
    ),
}


@pytest.mark.parametrize(("call", "error", "parts"), REFUSED.values(), ids=REFUSED)
@torch.no_grad()
def test_bad_input_is_refused(call, error, parts):
    with pytest.raises(error) as caught:
        call()
    for part in parts:
        assert part in str(caught.value)


@torch.no_grad()
def test_every_condition_of_the_layer_and_its_cache_is_tried():
    said = []
    for call, error, _ in REFUSED.values():
        with pytest.raises(error) as caught:
            call()
        said.append(str(caught.value))
    untried = {
        name
        for name, condition in conditions(attention.fused, attention.cache).items()
        if not any(says(condition, message) for message in said)
    }
    # Rows are tried without gradients; the test below turns them on.
    assert untried == {"NO_GRADIENTS"}


@pytest.mark.parametrize("trained", ["W_key", "W_value"])
def test_a_cache_refuses_gradients(trained):
    # With one projection trained alone, only the keys or only the values carry one.
    layer = FusedMultiHeadAttention(3, 4, 5, 0.0, 2).requires_grad_(False)
    getattr(layer, trained).requires_grad_(True)
    with pytest.raises(RuntimeError, match=re.escape("torch.no_grad()")):
        layer(X, cache=KeyValueCache())


@pytest.mark.parametrize("t_k", [1, 4, 9])
@torch.no_grad()
def test_cross_attention_sees_the_whole_memory(t_k):
    torch.manual_seed(0)
    layer = FusedMultiHeadAttention(3, 4, 5, 0.0, 2, qkv_bias=True)
    x, memory = torch.randn(2, 4, 3), torch.randn(2, t_k, 3)
    q, k, v = layer.W_query(x), layer.W_key(memory), layer.W_value(memory)
    heads = []
    for i in (slice(0, 2), slice(2, 4)):
        weights = torch.softmax(q[..., i] @ k[..., i].mT / 2**0.5, dim=-1)
        heads.append(weights @ v[..., i])
    expected = layer.out_proj(torch.cat(heads, dim=-1))
    torch.testing.assert_close(layer(x, memory=memory), expected, **CLOSE)


def test_dropout_acts_in_training_only():
    torch.manual_seed(0)
    layer = FusedMultiHeadAttention(6, 8, 9, 0.5, 2)
    x = torch.randn(1, 9, 6)
    sure = MultiHeadAttention(6, 8, 9, 0.0, 2)
    sure.load_state_dict(layer.state_dict())
    assert not torch.allclose(layer(x), layer(x))
    # The expectation over many masks is the value without dropout.
    mean = torch.stack([layer(x) for _ in range(3000)]).mean(dim=0)
    torch.testing.assert_close(mean, sure(x), atol=0.03, rtol=0)
    torch.testing.assert_close(layer.eval()(x), sure(x), **CLOSE)


# Checkpoints.


@pytest.mark.parametrize("options", [{}, {"window": 9, "rope_theta": 1e4}])
@pytest.mark.parametrize("context_length", [1, 1024, 2**40])
def test_nothing_is_kept_beside_the_parameters(context_length, options):
    layer = FusedMultiHeadAttention(3, 4, context_length, 0.0, 2, **options)
    assert list(layer.buffers()) == []
    tensors = [v for v in vars(layer).values() if isinstance(v, torch.Tensor)]
    assert tensors == []
    state, parameters = layer.state_dict(), dict(layer.named_parameters())
    assert list(state) == list(parameters)
    assert sum(t.nbytes for t in state.values()) == (3 * 3 * 4 + 4 * 4 + 4) * 4


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda s: s.update(extra=torch.ones(1)), ["Unexpected key(s)", '"extra"']),
        (lambda s: s.pop("W_key.weight"), ["Missing key(s)", '"W_key.weight"']),
    ],
)
def test_a_wrong_checkpoint_is_refused(change, parts):
    layer = FusedMultiHeadAttention(3, 4, 5, 0.0, 2)
    state = layer.state_dict()
    change(state)
    with pytest.raises(RuntimeError) as caught:
        layer.load_state_dict(state)
    for part in parts:
        assert part in str(caught.value)


# What computes it.


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


def test_the_layer_compiles_into_one_graph():
    torch._dynamo.reset()
    layer = FusedMultiHeadAttention(6, 8, 16, 0.0, 4, num_kv_heads=2)
    one_graph = torch.__version__ >= "2.5"  # earlier ones stop at the cache
    compiled = torch.compile(layer, fullgraph=one_graph, backend="eager")
    x = torch.randn(2, 9, 6)
    torch.testing.assert_close(compiled(x), layer(x))
    with torch.no_grad():
        cache = KeyValueCache()
        parts = [compiled(part, cache=cache) for part in cut(x)]
    torch.testing.assert_close(torch.cat(parts, dim=1), layer(x), **CLOSE)


def test_the_kernel_is_pytorchs_own(monkeypatch):
    calls = []
    real = F.scaled_dot_product_attention

    def spy(*args, **kwargs):
        calls.append(kwargs)
        return real(*args, **kwargs)

    monkeypatch.setattr(F, "scaled_dot_product_attention", spy)
    FusedMultiHeadAttention(3, 4, 5, 0.2, 2).train()(torch.randn(1, 5, 3))
    FusedMultiHeadAttention(3, 4, 5, 0.2, 2).eval()(torch.randn(1, 5, 3))
    assert [call["dropout_p"] for call in calls] == [0.2, 0.0]
    assert all(call["is_causal"] for call in calls)
