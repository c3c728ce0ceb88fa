"""Which class loads whose checkpoint, strictly: ours, and those of the chapter.

The chapter's classes are the pages' listings: plain ``nn.Module``, with a mask that a
strict load asks for.
"""

import re
from pathlib import Path

import pytest
import torch
from torch import nn

import attention
from attention import convert
from tests.attention.public import build, tokens

pytestmark = pytest.mark.package

BOOK = Path(__file__).resolve().parents[2] / "book"
CONTEXT, HEADS = 6, 2


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
    ours = build(name, context_length=CONTEXT, h=HEADS, bias=True)
    if whose == "ours":
        return ours.double()
    arguments = [3, 4 if hasattr(ours, "out_proj") else 2]
    if name != "SelfAttention_v2":
        arguments += [CONTEXT, 0.0]
    if name.startswith("Multi"):
        arguments += [HEADS]
    if name == "SelfAttention_v1":
        return CHAPTER[name](3, 2).double()
    return CHAPTER[name](*arguments, True).double()


def as_it_is(state):
    return state


def with_mask(state):
    return convert.to_ours(state, convert.OURS, context_length=CONTEXT)


def from_heads(state):
    return convert.to_ours(state, convert.wrapper(HEADS))


V1, V2, CAUSAL = "SelfAttention_v1", "SelfAttention_v2", "CausalAttention"
WRAPPER, LISTING = "MultiHeadAttentionWrapper", "MultiHeadAttention"
FUSED = "FusedMultiHeadAttention"
PLAIN = (V1, V2, CAUSAL, WRAPPER, LISTING)
# Whose class writes the checkpoint, whose class reads it, and what is done between.
EXCHANGES = [
    *[("ours", name, "ours", name, as_it_is) for name in (*PLAIN, FUSED)],
    *[("chapter", name, "ours", name, as_it_is) for name in PLAIN],
    *[("ours", name, "chapter", name, as_it_is) for name in PLAIN],
    ("ours", LISTING, "ours", FUSED, as_it_is),
    ("ours", FUSED, "ours", LISTING, as_it_is),
    ("chapter", LISTING, "ours", FUSED, as_it_is),
    ("ours", FUSED, "chapter", LISTING, with_mask),
    ("ours", WRAPPER, "ours", LISTING, from_heads),
    ("ours", WRAPPER, "ours", FUSED, from_heads),
    ("chapter", WRAPPER, "ours", FUSED, from_heads),
]
ROWS = pytest.mark.parametrize(
    ("whose", "source", "to_whose", "target", "between"),
    EXCHANGES,
    ids=[f"{a} {b} to {c} {d}" for a, b, c, d, _ in EXCHANGES],
)


@ROWS
@pytest.mark.parametrize("depth", ["layer", "model"])
def test_a_checkpoint_is_taken_strictly(
    whose, source, to_whose, target, between, depth
):
    torch.manual_seed(0)
    one, two = layer_of(whose, source), layer_of(to_whose, target)
    x = tokens(2, CONTEXT, 3)
    expected = one(x)
    assert not torch.allclose(two(x), expected)
    if depth == "model":
        one, two = nn.Sequential(one), nn.Sequential(two)
    state = one.state_dict()
    names = list(state)
    if depth == "layer":
        changed = between(state)
    else:
        inner = {name.removeprefix("0."): tensor for name, tensor in state.items()}
        changed = {f"0.{name}": tensor for name, tensor in between(inner).items()}
    two.load_state_dict(changed, strict=True)
    torch.testing.assert_close(two(x), expected)
    assert list(state) == names, "loading changes no checkpoint"


def test_a_layer_that_sees_all_refuses_the_checkpoint_of_one_that_must_not():
    # The parameters have the same names, and without the mask they do another thing.
    causal, both = layer_of("ours", CAUSAL), layer_of("ours", V2)
    with pytest.raises(RuntimeError, match=r'Unexpected key.*"mask"'):
        both.load_state_dict(causal.state_dict(), strict=True)
    causal.load_state_dict(both.state_dict(), strict=True)
    x = tokens(2, CONTEXT, 3)
    torch.testing.assert_close(causal(x)[:, -1], both(x)[:, -1])


def test_every_class_of_the_package_is_exchanged():
    layers = {n for n in attention.__all__ if isinstance(getattr(attention, n), type)}
    layers.discard("KeyValueCache")
    ours = {name for whose, name, *_ in EXCHANGES if whose == "ours"}
    read = {name for _, _, whose, name, _ in EXCHANGES if whose == "ours"}
    assert ours == read == layers
