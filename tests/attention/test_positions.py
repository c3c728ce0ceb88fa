"""Rotary positions, windows and caches that forget, against plain arithmetic."""

import math

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from attention import FusedMultiHeadAttention, KeyValueCache
from attention.functional import causal_mask, rotary_angles, rotate

pytestmark = pytest.mark.package

T, HEADS, D_HEAD = 23, 4, 6
CLOSE = {"atol": 2e-6, "rtol": 1e-5}
SPLITS = {"one by one": [1] * T, "in chunks": [7, 1, 1, 5, 9], "prompt": [20, 1, 1, 1]}
THETAS = pytest.mark.parametrize("theta", [None, 100.0])
KEY_HEADS = pytest.mark.parametrize("num_kv_heads", [1, 4])
# Less, as many and more than T tokens; 1 sees itself alone.
WINDOWS = pytest.mark.parametrize("window", [None, 1, 2, 5, T, 30])


@pytest.fixture(params=[64, 1], ids=["one chunk", "many"])
def chunks(request, monkeypatch):
    """Few tokens would never be cut into chunks."""
    monkeypatch.setattr("attention.fused.SMALLEST_CHUNK", request.param)


def layer_with(seed=0, num_kv_heads=HEADS, context_length=T, **options):
    torch.manual_seed(seed)
    d = HEADS * D_HEAD
    return FusedMultiHeadAttention(
        d, d, context_length, 0.0, HEADS, True, num_kv_heads, **options
    )


def tokens(b=2, t=T, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(b, t, HEADS * D_HEAD, generator=generator)


def turned(numbers, position, theta, interleaved):
    """Turn one query or key, a list, pair by pair: the definition."""
    d, result = len(numbers), [0.0] * len(numbers)
    for i in range(d // 2):
        a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + d // 2)
        angle = position * theta ** (-2 * i / d)
        result[a] = numbers[a] * math.cos(angle) - numbers[b] * math.sin(angle)
        result[b] = numbers[a] * math.sin(angle) + numbers[b] * math.cos(angle)
    return result


def written_out(layer, x, hidden=None):
    """Compute the layer query by query, with lists of the keys that each one sees."""
    group, theta = layer.num_heads // layer.num_kv_heads, layer.rope_theta
    q, k, v = layer.W_query(x), layer.W_key(x), layer.W_value(x)
    out = torch.zeros(len(x), x.shape[1], layer.d_out)
    for b, i, h in torch.cartesian_prod(*map(torch.arange, (*x.shape[:2], HEADS))):
        own, shared = (slice(n * D_HEAD, (n + 1) * D_HEAD) for n in (h, h // group))
        first = 0 if layer.window is None else max(0, int(i) + 1 - layer.window)
        seen = [
            j for j in range(first, int(i) + 1) if hidden is None or not hidden[b, j]
        ]
        if seen:
            query, keys = q[b, i, own], k[b, seen, shared]
            if theta is not None:
                turn = (theta, layer.rope_interleaved)
                query = torch.tensor(turned(query.tolist(), int(i), *turn))
                rows = zip(keys.tolist(), seen, strict=True)
                keys = torch.tensor([turned(key, j, *turn) for key, j in rows])
            weights = torch.softmax(keys @ query / D_HEAD**0.5, dim=0)
            out[b, i, own] = weights @ v[b, seen, shared]
    return layer.out_proj(out)


def in_steps(layer, x, sizes, cache=None, padding=None):
    cache, parts = cache or KeyValueCache(), []
    for part in x.split(sizes, dim=1):
        stop = cache.length + part.shape[1]
        hidden = None if padding is None else padding[:, :stop]
        parts.append(layer(part, cache=cache, key_padding_mask=hidden))
    return torch.cat(parts, dim=1)


# The functions ------------------------------------------------------------------------


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotate_turns_each_pair_by_the_angle_of_its_position(interleaved):
    x, positions = torch.randn(2, 3, 5, 8).double(), torch.tensor([0, 1, 7, 7, 300])
    angles = rotary_angles(positions.double(), 8, theta=500.0)
    result = rotate(x, angles, interleaved)
    for b, h, i in torch.cartesian_prod(*map(torch.arange, x.shape[:3])):
        expected = turned(x[b, h, i].tolist(), int(positions[i]), 500.0, interleaved)
        torch.testing.assert_close(result[b, h, i], torch.tensor(expected).double())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_angles_are_exact_enough_and_the_dtype_stays(dtype):
    positions = torch.arange(2000, 2003)
    exact = rotary_angles(positions.double(), 8)
    torch.testing.assert_close(rotary_angles(positions, 8), exact.float())
    # bfloat16 has no 2001: positions made in it would turn three tokens alike.
    x = torch.ones(3, 8, dtype=dtype)
    result = rotate(x, rotary_angles(positions, 8))
    assert result.dtype == dtype
    close = 1e-2 if dtype.itemsize == 2 else 1e-3
    expected = rotate(x.double(), exact)
    torch.testing.assert_close(result.double(), expected, atol=close, rtol=close)


@pytest.mark.parametrize("window", [1, 2, 3, 9])
@pytest.mark.parametrize(("t_q", "t_k"), [(5, 5), (2, 5), (1, 4)])
def test_a_window_hides_the_future_and_the_far_past(t_q, t_k, window):
    hidden = causal_mask(t_q, t_k, window=window)
    places = range(t_k - t_q, t_k)  # of the queries, the last of the tokens
    expected = [[not i - window < j <= i for j in range(t_k)] for i in places]
    assert hidden.tolist() == expected


# The layer ----------------------------------------------------------------------------


@KEY_HEADS
@THETAS
@WINDOWS
@torch.no_grad()
def test_the_layer_is_what_is_written_out(window, theta, num_kv_heads, chunks):
    options = {"window": window, "rope_theta": theta, "num_kv_heads": num_kv_heads}
    layer, x = layer_with(**options), tokens(b=1)
    torch.testing.assert_close(layer(x), written_out(layer, x), **CLOSE)


@torch.no_grad()
def test_neighbors_turn_together_where_they_should():
    layer, x = layer_with(rope_theta=100.0, rope_interleaved=True), tokens(b=1)
    expected = written_out(layer, x)
    torch.testing.assert_close(layer(x), expected, **CLOSE)
    assert not torch.allclose(layer_with(rope_theta=100.0)(x), expected, atol=1e-2)


@torch.no_grad()
def test_an_encoder_may_have_rotary_positions():
    layer, x = layer_with(rope_theta=100.0, causal=False), tokens()
    causal = layer_with(rope_theta=100.0)
    torch.testing.assert_close(layer(x)[:, -1], causal(x)[:, -1], **CLOSE)
    assert not torch.allclose(layer(x)[:, 0], causal(x)[:, 0], atol=1e-2)


@pytest.mark.parametrize("sizes", SPLITS.values(), ids=SPLITS)
@KEY_HEADS
@THETAS
@WINDOWS
@torch.no_grad()
def test_decoding_equals_the_whole_layer(window, theta, num_kv_heads, sizes, chunks):
    options = {"window": window, "rope_theta": theta, "num_kv_heads": num_kv_heads}
    layer, x = layer_with(**options), tokens()
    torch.testing.assert_close(in_steps(layer, x, sizes), layer(x), **CLOSE)


@pytest.mark.skipif(torch.__version__ < "2.5", reason="nan before PyTorch 2.5")
@pytest.mark.parametrize("sizes", SPLITS.values(), ids=SPLITS)
@pytest.mark.parametrize("window", [None, 5])
@torch.no_grad()
def test_padding_hides_the_same_keys_in_a_window_and_with_a_cache(
    window, sizes, chunks
):
    layer, x = layer_with(window=window, rope_theta=100.0), tokens()
    padding = torch.zeros(2, T, dtype=torch.bool)
    padding[0, :4] = padding[1, 9:11] = True
    expected = written_out(layer, x, padding)
    torch.testing.assert_close(layer(x, key_padding_mask=padding), expected, **CLOSE)
    result = in_steps(layer, x, sizes, padding=padding)
    torch.testing.assert_close(result, expected, **CLOSE)


@pytest.mark.parametrize("window", [5, 100])
def test_a_window_has_the_gradients_of_its_mask(window):
    t = 150  # chunks of 64, then of 100
    layer = layer_with(window=window, context_length=t).double()
    x = tokens(t=t).double().requires_grad_()
    layer(x).square().sum().backward()
    found, x.grad = x.grad, None
    parts = (layer._split(w(x), HEADS) for w in (layer.W_query, layer.W_key))
    queries, keys = parts
    hidden = causal_mask(t, window=window)
    weights = (queries @ keys.mT / D_HEAD**0.5).masked_fill(hidden, -torch.inf)
    context = weights.softmax(dim=-1) @ layer._split(layer.W_value(x), HEADS)
    joined = context.transpose(1, 2).flatten(2)
    layer.out_proj(joined).square().sum().backward()
    torch.testing.assert_close(found, x.grad)


def test_a_window_never_makes_a_tensor_of_t_by_t():
    layer, sizes = layer_with(window=16, context_length=1024), []

    def note(tensor):
        sizes.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        layer(tokens(b=1, t=1024))
    assert max(sizes) < 1024 * 1024 / 8


# The cache ----------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", SPLITS.values(), ids=SPLITS)
@pytest.mark.parametrize("window", [1, 2, 5])
@torch.no_grad()
def test_a_window_bounds_what_a_cache_keeps(window, sizes):
    cache = KeyValueCache()
    in_steps(layer_with(window=window), tokens(), sizes, cache)
    # Keys and values of 2 sequences, 4 heads 6 wide, 4 bytes a number.
    assert cache.num_bytes == 2 * (window - 1) * 2 * HEADS * D_HEAD * 4
    assert cache.length == T
    assert cache._keys.shape[2] <= 2 * window, "what it holds is bounded, too"


@pytest.mark.parametrize("back_to", [0, 1, 9, 15])
@THETAS
@torch.no_grad()
def test_a_cropped_cache_goes_on_as_if_the_rest_had_not_come(back_to, theta):
    layer, x, cache = layer_with(rope_theta=theta), tokens(), KeyValueCache()
    layer(x[:, :15], cache=cache)
    other = x.clone()
    other[:, back_to:] = tokens(seed=3)[:, back_to:]
    cache.crop(back_to)
    assert cache.length == back_to
    rest = layer(other[:, back_to:], cache=cache)
    torch.testing.assert_close(rest, layer(other)[:, back_to:], **CLOSE)


@torch.no_grad()
def test_a_cache_cropped_to_nothing_takes_another_batch():
    layer, cache = layer_with(), KeyValueCache()
    layer(tokens(b=2), cache=cache)
    cache.crop(0)
    torch.testing.assert_close(layer(tokens(b=3), cache=cache), layer(tokens(b=3)))


@torch.no_grad()
def test_a_bounded_cache_is_cropped_while_nothing_is_forgotten():
    layer, x, cache = layer_with(window=9), tokens(), KeyValueCache()
    layer(x[:, :8], cache=cache)
    cache.crop(3)
    rest = layer(x[:, 3:], cache=cache)
    torch.testing.assert_close(rest, layer(x)[:, 3:], **CLOSE)
    cache.crop(T)  # as long as it is: nothing to forget
    with pytest.raises(ValueError, match="position 14 is needed"):
        cache.crop(T - 1)


@pytest.mark.parametrize("rows", [[1, 0], [0, 0], [1, 1, 0, 1], [1]])
@pytest.mark.parametrize("window", [None, 5])
@torch.no_grad()
def test_beams_go_on_from_the_sequences_that_they_choose(rows, window):
    layer, x = layer_with(window=window, rope_theta=100.0), tokens()
    cache, rows = KeyValueCache(), torch.tensor(rows)
    layer(x[:, :14], cache=cache)
    cache.reorder(rows)
    more = tokens(b=len(rows), seed=2)[:, 14:]
    result = in_steps(layer, more, [1] * (T - 14), cache)
    whole = torch.cat([x[rows, :14], more], dim=1)
    torch.testing.assert_close(result, layer(whole)[:, 14:], **CLOSE)


def test_an_empty_cache_has_no_sequences_to_reorder():
    cache = KeyValueCache()
    cache.reorder(torch.tensor([0, 0]))
    assert cache.length == 0


# What PyTorch does with it ------------------------------------------------------------

FULL = {"num_kv_heads": 2, "window": 5, "rope_theta": 100.0}


def exported(layer, x):
    return torch.export.export(layer, (x,)).module()(x)


def compiled(layer, x):
    torch.compiler.reset()
    return torch.compile(layer, backend="aot_eager", fullgraph=True)(x)


def vmapped(layer, x):
    return torch.func.vmap(layer)(x[None])[0]


@pytest.mark.parametrize(
    "way", [exported, compiled, vmapped], ids=lambda way: way.__name__
)
@pytest.mark.skipif(torch.__version__ < "2.5", reason="older ones export otherwise")
@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
def test_a_layer_with_all_of_it_is_a_layer_like_others(way, monkeypatch):
    monkeypatch.setattr("attention.fused.SMALLEST_CHUNK", 4)
    layer, x = layer_with(**FULL).eval(), tokens()
    torch.testing.assert_close(way(layer, x), layer(x), **CLOSE)


@torch.no_grad()
def test_positions_stay_exact_in_half_precision():
    # Near 2,000 bfloat16 is 8 apart: positions in it would turn neighbors alike.
    layer = layer_with(rope_theta=100.0, context_length=2200)
    x, cache, exact = tokens(b=1, t=2100), KeyValueCache(), KeyValueCache()
    # The fast kernel for so many tokens refuses bfloat16 where PyTorch is told to do
    # without vector instructions that the processor has.
    with torch.autocast("cpu", torch.bfloat16), sdpa_kernel(SDPBackend.MATH):
        near = in_steps(layer, x, [2090, 10], cache)
    expected = in_steps(layer, x, [2090, 10], exact)
    apart = (near.float() - expected)[:, -10:].abs().max()
    assert near.dtype == torch.bfloat16
    assert apart < 0.05 * expected[:, -10:].abs().max()
