"""Which class loads whose checkpoint, with a mask or without, from wherever it comes.

The chapter's classes are the pages' listings: plain ``nn.Module``, with a mask that a
strict load asks for.
"""

import re
from pathlib import Path

import pytest
import torch
from torch import nn

from attention import FusedMultiHeadAttention, convert
from tests.attention.public import (
    CAUSAL,
    EVERY_LAYER,
    LAYERS,
    build,
    build_drawn,
    tokens,
)

pytestmark = pytest.mark.package

BOOK = Path(__file__).resolve().parents[2] / "book"
X = tokens(2, 6, 3)


# Ours and the chapter's --------------------------------------------------------------


def listings():
    """Run the pages' listings; give their classes by name."""
    space = {"torch": torch, "nn": nn}
    for page in sorted(BOOK.glob("0[2-5]_*.md")):
        text = page.read_text(encoding="utf-8")
        for cell in re.findall(r"^```{code-cell}.*\n((?:.*\n)*?)```$", text, re.M):
            if ":tags: [listing]" in cell:
                exec(cell.partition("\n\n")[2], space)
    return space


CHAPTER = listings()


def layer_of(whose, name):
    """Build a class of ours or of the chapter, with the sizes of ``build``."""
    ours = build(name, bias=True)
    if whose == "ours":
        return ours.double()
    arguments = {
        "SelfAttention_v1": (3, 2),
        "SelfAttention_v2": (3, 2, True),
        "CausalAttention": (3, 2, 6, 0.0, True),
        "MultiHeadAttentionWrapper": (3, 2, 6, 0.0, 2, True),
        "MultiHeadAttention": (3, 4, 6, 0.0, 2, True),
    }
    return CHAPTER[name](*arguments[name]).double()


def as_it_is(state):
    return state


def with_mask(state):
    return convert.to_ours(state, convert.OURS, context_length=6)


def from_heads(state):
    return convert.to_ours(state, convert.wrapper(2))


WRAPPER, LISTING = "MultiHeadAttentionWrapper", "MultiHeadAttention"
FUSED = "FusedMultiHeadAttention"
LISTED = [name for name in LAYERS if name in CHAPTER]
# Whose class writes the checkpoint, whose class reads it, and what is done between.
EXCHANGES = [
    *[("ours", name, "ours", name, as_it_is) for name in LAYERS],
    *[("chapter", name, "ours", name, as_it_is) for name in LISTED],
    *[("ours", name, "chapter", name, as_it_is) for name in LISTED],
    ("ours", LISTING, "ours", FUSED, as_it_is),
    ("ours", FUSED, "ours", LISTING, as_it_is),
    ("chapter", LISTING, "ours", FUSED, as_it_is),
    ("ours", FUSED, "chapter", LISTING, with_mask),
    ("ours", WRAPPER, "ours", LISTING, from_heads),
    ("ours", WRAPPER, "ours", FUSED, from_heads),
    ("chapter", WRAPPER, "ours", FUSED, from_heads),
]


@pytest.mark.parametrize(
    ("whose", "source", "to_whose", "target", "between"),
    EXCHANGES,
    ids=[f"{a} {b} to {c} {d}" for a, b, c, d, _ in EXCHANGES],
)
def test_a_checkpoint_is_taken_strictly(whose, source, to_whose, target, between):
    torch.manual_seed(0)
    one, two = layer_of(whose, source), layer_of(to_whose, target)
    expected = one(X)
    assert not torch.allclose(two(X), expected)
    state = one.state_dict()
    names = list(state)
    # In a model, where names have a prefix.
    changed = {f"0.{name}": tensor for name, tensor in between(state).items()}
    nn.Sequential(two).load_state_dict(changed, strict=True)
    torch.testing.assert_close(two(X), expected)
    assert list(state) == names, "loading changes no checkpoint"


def test_a_layer_that_sees_all_refuses_the_checkpoint_of_one_that_must_not():
    # The parameters have the same names, and without the mask they do another thing.
    causal, both = (
        layer_of("ours", "CausalAttention"),
        layer_of("ours", "SelfAttention_v2"),
    )
    with pytest.raises(RuntimeError, match=r'Unexpected key.*"mask"'):
        both.load_state_dict(causal.state_dict(), strict=True)
    causal.load_state_dict(both.state_dict(), strict=True)
    torch.testing.assert_close(causal(X)[:, -1], both(X)[:, -1])


@EVERY_LAYER
def test_a_key_too_many_or_too_few_is_refused(name):
    good = build(name).state_dict()
    first = next(key for key in good if not key.endswith("mask"))
    with pytest.raises(RuntimeError, match="Missing key"):
        build(name).load_state_dict({k: v for k, v in good.items() if k != first})
    with pytest.raises(RuntimeError, match="Unexpected key"):
        build(name).load_state_dict({**good, "extra": torch.zeros(1)})


@pytest.mark.skipif(torch.__version__ < "2.3", reason="older APIs have other names")
@EVERY_LAYER
def test_pytorchs_checkpoint_api_takes_and_gives_every_layer(name):
    from torch.distributed.checkpoint import state_dict

    one, two = (nn.Sequential(build(name, bias=True)).double() for _ in range(2))
    state = state_dict.get_model_state_dict(one)
    assert set(state) == set(one.state_dict())
    assert not torch.equal(two(X), one(X))
    state_dict.set_model_state_dict(two, state)
    assert torch.equal(two(X), one(X))


# The mask, and memory without numbers ------------------------------------------------

MASKED = pytest.mark.parametrize(
    "name", [name for name in CAUSAL if list(build(name).buffers())]
)


def without_masks(layer):
    state = layer.state_dict()
    return {name: w for name, w in state.items() if not name.endswith("mask")}


def on_meta(name):
    with torch.device("meta"):
        return build(name).double()


@MASKED
@pytest.mark.parametrize("assign", [True, False])
def test_a_mask_that_the_checkpoint_lacks_is_restored(name, assign):
    full, empty = nn.Sequential(build(name).double()), nn.Sequential(on_meta(name))
    if not assign:
        empty.to_empty(device="cpu")
    for mask in empty.buffers():
        mask.zero_()  # whatever the memory held: here, nothing hidden
    state = without_masks(full)
    names = list(state)
    empty.load_state_dict(state, strict=True, assign=assign)
    assert torch.equal(empty(X), full(X))
    assert list(state) == names, "loading changes no checkpoint"


@MASKED
def test_a_mask_of_the_readers_own_is_kept_by_moves_and_loads(name):
    layer, other = build(name), build(name)
    for mask in layer.buffers():
        mask.zero_()
    assert not any(mask.any() for mask in layer.double().buffers())
    with pytest.warns(UserWarning, match="every token will see the future"):
        other.load_state_dict(layer.state_dict())
    assert not any(mask.any() for mask in other.buffers())


@pytest.mark.parametrize(
    ("theirs", "name", "advice"),
    [
        (nn.MultiheadAttention(4, 2), "MultiHeadAttention", "convert.TORCH"),
        (nn.MultiheadAttention(4, 2), "FusedMultiHeadAttention", "convert.TORCH"),
        (
            build("MultiHeadAttentionWrapper"),
            "MultiHeadAttention",
            "wrapper(num_heads)",
        ),
        (build("SelfAttention_v1"), "SelfAttention_v2", "w.T for name, w"),
    ],
)
def test_weights_of_another_layer_are_named_with_their_conversion(theirs, name, advice):
    for prefix, ours in (("", build(name)), ("0.", nn.Sequential(build(name)))):
        state = {prefix + name: w for name, w in theirs.state_dict().items()}
        with pytest.raises(RuntimeError) as caught:
            ours.load_state_dict(state)
        assert advice in str(caught.value)
        assert "These are the weights of" in str(caught.value)


@EVERY_LAYER
@pytest.mark.parametrize("left", [None, float("nan"), 1e30, 0.0])
def test_empty_layers_start_anew(name, left):
    """From the meta device, in memory as it comes, or with something left in it."""
    sums = set()
    for _ in range(20 if left is None else 2):
        layer = on_meta(name).to_empty(device="cpu")
        for tensor in layer.state_dict().values() if left is not None else ():
            tensor.fill_(left)
        for part in layer.modules():
            if hasattr(part, "reset_parameters"):
                part.reset_parameters()
        out = layer(X)
        assert out.isfinite().all()
        sums.add(out.sum().item())
        if name in CAUSAL:
            torch.testing.assert_close(layer(X[:, :3]), out[:, :3])
    assert len(sums) > 1, "each is drawn by itself"


@MASKED
def test_memory_from_the_meta_device_has_its_mask_whoever_fills_the_parameters(name):
    layer, model = on_meta(name), build(name)
    left = [torch.full_like(b, 7.0, device="cpu") for b in layer.buffers()]
    del left  # what the allocator may hand out again
    layer.to_empty(device="cpu")
    masks = zip(layer.buffers(), model.buffers(), strict=True)
    assert all(torch.equal(mask, right.double()) for mask, right in masks)


@pytest.mark.parametrize("name", ["SelfAttention_v1", FUSED])
def test_parameters_are_drawn_again_as_they_were_drawn(name):
    layer = build_drawn(name, bias=True)
    expected = [parameter.clone() for parameter in layer.parameters()]
    layer.reset_parameters()
    assert not any(map(torch.equal, layer.parameters(), expected))
    torch.manual_seed(7)
    layer.reset_parameters()
    assert all(map(torch.equal, layer.parameters(), expected))


@MASKED
def test_shapes_can_still_be_worked_out_on_the_meta_device(name):
    layer = on_meta(name)
    assert layer(torch.empty(2, 6, 3, device="meta", dtype=torch.float64)).is_meta


def test_factory_arguments_decide_where_and_in_which_type():
    sizes = {"device": "meta", "dtype": torch.bfloat16}
    layer = FusedMultiHeadAttention(6, 8, 9, 0.0, 4, True, 2, **sizes)
    kinds = {(p.device.type, p.dtype) for p in layer.parameters()}
    assert kinds == {("meta", torch.bfloat16)}
    assert len(list(layer.parameters())) == 8
