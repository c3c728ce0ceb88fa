"""The next chapter's model on our layers: its published numbers, and its behavior."""

import pytest
import torch
from torch import nn

from attention import FusedMultiHeadAttention, MultiHeadAttention
from tests.attention.small_gpt import (
    GPT_124M,
    GPTModel,
    TransformerBlock,
    most_likely,
    size,
    to_transformers,
)
from tests.attention.test_real_models import transformers

pytestmark = [pytest.mark.package, pytest.mark.filterwarnings("ignore")]

LAYERS = [MultiHeadAttention, FusedMultiHeadAttention]
TINY = GPT_124M | {"vocab_size": 50, "context_length": 12, "emb_dim": 32}
TINY |= {"n_heads": 4, "n_layers": 2, "drop_rate": 0.0, "qkv_bias": True}


def tiny(attention=MultiHeadAttention):
    """Give a small model with weights wide enough to tell tokens apart."""
    torch.manual_seed(0)
    model = GPTModel(TINY, attention)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model.eval()


# What chapter 4 and its exercises print, for GPT-2's sizes without biases for queries,
# keys and values: all parameters, and those but for the output layer.
PUBLISHED = {
    (768, 12, 12): (163_009_536, 124_412_160),
    (1024, 24, 16): (406_212_608, 354_749_440),
    (1280, 36, 20): (838_220_800, 773_891_840),
    (1600, 48, 25): (1_637_792_000, 1_557_380_800),
}


@pytest.mark.parametrize("attention", LAYERS)
@pytest.mark.parametrize(("sizes", "published"), PUBLISHED.items())
def test_as_many_parameters_as_published(sizes, published, attention):
    width, blocks, heads = sizes
    cfg = GPT_124M | {"emb_dim": width, "n_layers": blocks, "n_heads": heads}
    with torch.device("meta"):
        model = GPTModel(cfg, attention)
    assert (size(model), size(model) - size(model.out_head)) == published


@pytest.mark.parametrize("attention", LAYERS)
def test_the_parts_of_a_block_are_as_large_as_published(attention):
    with torch.device("meta"):
        block = TransformerBlock(GPT_124M, attention)
    assert (size(block.ff), size(block.att)) == (4_722_432, 2_360_064)


@torch.no_grad()
def test_the_untrained_model_writes_what_the_chapter_prints():
    """Seed 123, evaluation mode, from "Hello, I am": six more tokens, by both."""
    torch.manual_seed(123)
    model = GPTModel(GPT_124M).eval()
    start, published = [15496, 11, 314, 716], [27018, 24086, 47843, 30961, 42348, 7267]
    assert (
        most_likely(model, torch.tensor([start]), 6, 1024)[0, 4:].tolist() == published
    )
    for block in model.trf_blocks:
        fused = FusedMultiHeadAttention(768, 768, 1024, 0.1, num_heads=12).eval()
        fused.load_state_dict(block.att.state_dict())
        block.att = fused
    assert (
        most_likely(model, torch.tensor([start]), 6, 1024)[0, 4:].tolist() == published
    )


@torch.no_grad()
def test_a_block_adds_to_what_comes_in():
    torch.manual_seed(0)
    block, x = TransformerBlock(TINY).eval(), torch.randn(2, 12, 32)
    after = x + block.att(block.norm1(x))
    expected = after + block.ff(block.norm2(after))
    torch.testing.assert_close(block(x), expected, atol=0, rtol=0)
    for out in (block.att.out_proj, block.ff[2]):  # both halves silent
        nn.init.zeros_(out.weight)
        nn.init.zeros_(out.bias)
    torch.testing.assert_close(block(x), x, atol=0, rtol=0)


@pytest.mark.parametrize("attention", LAYERS)
@pytest.mark.parametrize("late", [1, 7, 11])
@torch.no_grad()
def test_a_late_token_changes_no_earlier_score(attention, late):
    model, ids = tiny(attention), torch.randint(50, (2, 12))
    changed = ids.clone()
    changed[:, late] = (ids[:, late] + 1) % 50
    before, after = model(ids), model(changed)
    torch.testing.assert_close(after[:, :late], before[:, :late], atol=1e-5, rtol=0)
    assert (after[:, late:] - before[:, late:]).abs().amax(dim=(0, 2)).min() > 1e-3


@torch.no_grad()
def test_the_fused_layer_gives_the_same_scores():
    listing, fused = tiny(), tiny(FusedMultiHeadAttention)
    for parameter in fused.parameters():
        nn.init.zeros_(parameter)
    fused.load_state_dict(listing.state_dict())
    ids = torch.randint(50, (2, 12))
    torch.testing.assert_close(fused(ids), listing(ids), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("attention", LAYERS)
def test_it_learns_a_sequence_by_heart(attention):
    """The gradient goes through all of it: from guessing to no doubt."""
    torch.manual_seed(0)
    model, ids = GPTModel(TINY, attention), torch.randperm(50)[:24].view(2, 12)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(100):
        logits = model(ids[:, :-1]).flatten(0, 1)
        losses.append(nn.functional.cross_entropy(logits, ids[:, 1:].flatten()))
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
    assert losses[0] > 3  # guessing among 50: 3.9
    assert losses[-1] < 0.1
    assert torch.equal(most_likely(model.eval(), ids[:, :1], 11, 12), ids)


@transformers
@pytest.mark.parametrize("attention", LAYERS)
@torch.no_grad()
def test_equals_the_gpt2_of_transformers(attention):
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        n_layer=2, n_head=4, n_embd=32, n_positions=12, vocab_size=50,
        bos_token_id=0, eos_token_id=0, tie_word_embeddings=False,
    )  # fmt: skip
    ours, theirs = tiny(attention), GPT2LMHeadModel(config).eval()
    theirs.load_state_dict(to_transformers(ours.state_dict(), 2))
    ids = torch.randint(50, (2, 12))
    expected = theirs(ids, use_cache=False).logits
    torch.testing.assert_close(ours(ids), expected, atol=1e-4, rtol=1e-4)
