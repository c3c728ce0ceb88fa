"""Layers in real programs: masks that are missing, encoders, padding, pickles."""

import copy
import pickle

import pytest
import torch
from torch import nn

from attention import (
    FusedMultiHeadAttention,
    KeyValueCache,
    MultiHeadAttention,
    convert,
)
from tests.attention import public
from tests.attention.public import CAUSAL, LAYERS, build, tokens

pytestmark = pytest.mark.package

CLOSE = {"atol": 2e-6, "rtol": 1e-5}
KEEPS_A_MASK = [name for name in CAUSAL if list(build(name).buffers())]
MASKED = pytest.mark.parametrize("name", KEEPS_A_MASK)


def without_masks(layer):
    state = layer.state_dict()
    return {name: w for name, w in state.items() if not name.endswith("mask")}


def on_meta(name):
    with torch.device("meta"):
        return build(name).double()


# The mask ------------------------------------------------------------------------


@MASKED
@pytest.mark.parametrize("depth", ["layer", "model"])
def test_a_mask_that_the_checkpoint_lacks_is_restored(name, depth):
    full, empty, x = build(name).double(), on_meta(name), tokens(2, 6, 3)
    expected = full(x)
    if depth == "model":
        full, empty = nn.Sequential(full), nn.Sequential(empty)
    empty.load_state_dict(without_masks(full), strict=True, assign=True)
    assert torch.equal(empty(x), expected)


@MASKED
def test_an_empty_mask_is_filled_when_weights_are_copied_in(name):
    full, x = build(name).double(), tokens(2, 6, 3)
    empty = on_meta(name).to_empty(device="cpu")
    for buffer in empty.buffers():
        buffer.zero_()  # whatever the memory held: here, nothing hidden
    empty.load_state_dict(without_masks(full), strict=True)
    assert torch.equal(empty(x), full(x))


@MASKED
def test_loading_adds_nothing_to_the_checkpoint(name):
    state = without_masks(build(name))
    names = list(state)
    build(name).load_state_dict(state)
    assert list(state) == names


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("left", [None, float("nan"), 1e30, 0.0])
def test_a_hundred_empty_layers_that_start_anew(name, left):
    """From the meta device, in memory as it comes, or with something left in it."""
    x, names = tokens(2, 6, 3), set()
    for _ in range(100 if left is None else 2):
        layer = on_meta(name).to_empty(device="cpu")
        for tensor in layer.state_dict().values() if left is not None else ():
            tensor.fill_(left)
        for part in layer.modules():
            if hasattr(part, "reset_parameters"):
                part.reset_parameters()
        out = layer(x)
        assert out.isfinite().all()
        names.add(out.sum().item())
        if name in CAUSAL:
            torch.testing.assert_close(layer(x[:, :3]), out[:, :3])
    assert len(names) > 1, "each is drawn by itself"


@pytest.mark.parametrize("name", ["SelfAttention_v1", "FusedMultiHeadAttention"])
def test_parameters_are_drawn_again_as_they_were_drawn(name):
    torch.manual_seed(3)
    layer = build(name, bias=True)
    expected = [parameter.clone() for parameter in layer.parameters()]
    layer.reset_parameters()
    parameters = list(layer.parameters())
    assert not any(map(torch.equal, parameters, expected))
    torch.manual_seed(3)
    layer.reset_parameters()
    assert all(map(torch.equal, parameters, expected))


@MASKED
def test_memory_from_the_meta_device_has_its_mask_whoever_fills_the_parameters(name):
    layer, model = on_meta(name), build(name)
    left = [torch.full_like(b, 7.0, device="cpu") for b in layer.buffers()]
    del left  # what the allocator may hand out again
    layer.to_empty(device="cpu")
    masks = zip(layer.buffers(), model.buffers(), strict=True)
    assert all(torch.equal(mask, right.double()) for mask, right in masks)


@MASKED
def test_a_mask_of_the_readers_own_stays_when_the_layer_moves(name):
    layer = build(name)
    for mask in layer.buffers():
        mask.zero_()
    assert not any(mask.any() for mask in layer.double().buffers())


@MASKED
def test_a_mask_is_written_again_in_a_layer_at_work(name):
    layer, x = build(name).double(), tokens(2, 6, 3)
    expected = layer(x)
    for part in public.parts_of(layer):
        part.mask.zero_()
        part.reset_parameters()
    assert torch.equal(layer(x), expected)


def test_factory_arguments_decide_where_and_in_which_type():
    sizes = {"device": "meta", "dtype": torch.bfloat16}
    layer = FusedMultiHeadAttention(6, 8, 9, 0.0, 4, True, 2, **sizes)
    kinds = {(p.device.type, p.dtype) for p in layer.parameters()}
    assert kinds == {("meta", torch.bfloat16)}
    assert len(list(layer.parameters())) == 8


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "num_heads=4, context_length=9, causal=True"),
        ({"causal": False}, "num_heads=4, context_length=9, causal=False"),
        (
            {"num_kv_heads": 2, "window": 3, "rope_theta": 1e4},
            "num_heads=4, num_kv_heads=2, context_length=9, causal=True, window=3, "
            "rope_theta=10000.0, rope_interleaved=False",
        ),
    ],
)
def test_a_printed_layer_shows_what_its_projections_do_not(options, told):
    shown = str(FusedMultiHeadAttention(6, 8, 9, 0.5, 4, **options)).splitlines()
    assert shown[1].strip() == told
    assert "Dropout(p=0.5" in shown[-2]


# Checkpoint APIs ---------------------------------------------------------------------


@pytest.mark.skipif(torch.__version__ < "2.3", reason="older APIs have other names")
@pytest.mark.parametrize("depth", ["layer", "model"])
@pytest.mark.parametrize("name", LAYERS)
def test_pytorchs_checkpoint_api_takes_and_gives_every_layer(name, depth):
    from torch.distributed.checkpoint import state_dict

    made = [build(name, bias=True).double() for _ in range(2)]
    x, expected = tokens(2, 6, 3), made[0](tokens(2, 6, 3))
    one, two = (
        nn.Sequential(nn.ModuleDict({"attention": m})["attention"])
        if depth == "model"
        else m
        for m in made
    )
    state = state_dict.get_model_state_dict(one)
    assert set(state) == set(one.state_dict())
    assert not torch.equal(two(x), expected)
    state_dict.set_model_state_dict(two, state)
    assert torch.equal(two(x), expected)


@MASKED
def test_a_mask_in_the_checkpoint_is_taken_as_it_is(name):
    layer = build(name)
    state = {
        key: torch.zeros_like(w) if key.endswith("mask") else w
        for key, w in layer.state_dict().items()
    }
    layer.load_state_dict(state)
    assert not any(buffer.any() for buffer in layer.buffers())


@MASKED
def test_a_mask_without_numbers_is_refused(name):
    full, empty = build(name).double(), on_meta(name)
    for part, model in zip(public.parts_of(empty), public.parts_of(full), strict=True):
        for weight, parameter in model.named_parameters():
            holder, _, leaf = weight.rpartition(".")
            copied = nn.Parameter(parameter.detach().clone())
            setattr(part.get_submodule(holder), leaf, copied)
    with pytest.raises(ValueError, match="meta device") as caught:
        empty(tokens(2, 6, 3))
    assert "load_state_dict(state, assign=True)" in str(caught.value)


@MASKED
def test_shapes_can_still_be_worked_out_on_the_meta_device(name):
    layer = on_meta(name)
    assert layer(torch.empty(2, 6, 3, device="meta", dtype=torch.float64)).is_meta


# Encoders and padding ---------------------------------------------------------------


def encoder(seed=0, **options):
    torch.manual_seed(seed)
    return FusedMultiHeadAttention(6, 8, 9, 0.0, 4, True, causal=False, **options)


def in_torch(layer, x, key_padding_mask=None):
    """Compute with nn.MultiheadAttention and the same weights."""
    theirs = nn.MultiheadAttention(8, 4, batch_first=True).eval()
    theirs.load_state_dict(convert.from_ours(layer, convert.TORCH))
    mask = key_padding_mask
    return theirs(x, x, x, key_padding_mask=mask, need_weights=True)[0]


def padded(b, t, seed):
    """Draw a mask that leaves at least the first key of each row."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, t + 1, (b, 1), generator=generator)
    return torch.arange(t) >= lengths


@pytest.mark.parametrize("seed", range(5))
def test_an_encoder_is_that_of_torch_with_and_without_padding(seed):
    torch.manual_seed(seed)
    layer = FusedMultiHeadAttention(8, 8, 9, 0.0, 4, True, causal=False)
    x, mask = torch.randn(3, 7, 8), padded(3, 7, seed)
    torch.testing.assert_close(layer(x), in_torch(layer, x), **CLOSE)
    ours = layer(x, key_padding_mask=mask)
    torch.testing.assert_close(ours, in_torch(layer, x, mask), **CLOSE)


@pytest.mark.parametrize("seed", range(5))
def test_padding_changes_nothing_for_real_tokens(seed):
    torch.manual_seed(seed)
    layer, x = FusedMultiHeadAttention(6, 8, 9, 0.0, 4), torch.randn(3, 7, 6)
    mask = padded(3, 7, seed)
    out = layer(x, key_padding_mask=mask)
    for row, hidden in zip(range(3), mask, strict=True):
        length = int((~hidden).sum())
        alone = layer(x[row : row + 1, :length])
        torch.testing.assert_close(out[row : row + 1, :length], alone, **CLOSE)


@torch.no_grad()
def test_padding_on_the_left_with_a_cache():
    torch.manual_seed(0)
    layer, x = FusedMultiHeadAttention(6, 8, 9, 0.0, 4), torch.randn(2, 7, 6)
    mask = torch.zeros(2, 7, dtype=torch.bool)
    mask[0, :2] = True
    cache = KeyValueCache()
    layer(x[:, :4], cache=cache, key_padding_mask=mask[:, :4])
    steps = [
        layer(x[:, i : i + 1], cache=cache, key_padding_mask=mask[:, : i + 1])
        for i in range(4, 7)
    ]
    alone = layer(x[:1, 2:])[:, 2:]
    torch.testing.assert_close(torch.cat(steps, dim=1)[:1], alone, **CLOSE)


def test_padding_of_a_memory():
    torch.manual_seed(0)
    layer, x = encoder(), torch.randn(2, 3, 6)
    memory, mask = torch.randn(2, 5, 6), padded(2, 5, 3)
    mask[:, 3:] = True
    expected = layer(x, memory=memory[:1, : int((~mask[0]).sum())].expand(2, -1, -1))
    out = layer(x, memory=memory, key_padding_mask=mask)
    torch.testing.assert_close(out[0], expected[0], **CLOSE)


@pytest.mark.skipif(torch.__version__ < "2.5", reason="nan before PyTorch 2.5")
def test_a_query_with_nothing_to_see_gets_zeros():
    layer = encoder()
    out = layer(torch.randn(1, 3, 6), key_padding_mask=torch.ones(1, 3).bool())
    torch.testing.assert_close(out, layer.out_proj.bias.expand(1, 3, 8))


def test_an_encoder_is_told_nothing_about_a_mask():
    layer, x = encoder(), torch.randn(2, 7, 6)
    listing = MultiHeadAttention(6, 8, 9, 0.0, 4, True)
    layer.load_state_dict(listing.state_dict(), strict=True)
    causal = FusedMultiHeadAttention(6, 8, 9, 0.0, 4, True)
    causal.load_state_dict(layer.state_dict(), strict=True)
    torch.testing.assert_close(layer(x)[:, -1], causal(x)[:, -1])  # sees all
    with pytest.raises(ValueError, match="x has 10 tokens") as caught:
        layer(torch.randn(1, 10, 6))
    assert "mask" not in str(caught.value)


# Caches ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda cache: pickle.loads(pickle.dumps(cache))],
    ids=["copy", "deepcopy", "pickle"],
)
@torch.no_grad()
def test_a_cache_that_was_copied_goes_on(duplicate):
    torch.manual_seed(0)
    layer, x = FusedMultiHeadAttention(3, 4, 9, 0.0, 2), torch.randn(2, 9, 3)
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
