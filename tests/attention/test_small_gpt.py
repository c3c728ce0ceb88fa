"""The model of the chapter's next chapter on our layers: its published numbers.

It has GPT-2's shape. Its layers are made in that chapter's order, so that its seeds
print its values; the keys of the config are that chapter's, too.
"""

import pytest
import torch
from torch import nn

from attention import FusedMultiHeadAttention, MultiHeadAttention

pytestmark = pytest.mark.package

LAYERS = [MultiHeadAttention, FusedMultiHeadAttention]
GPT_124M = {
    "vocab_size": 50257,
    "context_length": 1024,
    "emb_dim": 768,
    "n_heads": 12,
    "n_layers": 12,
    "drop_rate": 0.1,
    "qkv_bias": False,
}


class TransformerBlock(nn.Module):
    """Attention, then four times as wide and back, each added to what came in."""

    def __init__(self, cfg, attention=MultiHeadAttention):
        super().__init__()
        width = cfg["emb_dim"]
        self.att = attention(
            width, width, cfg["context_length"], cfg["drop_rate"],
            num_heads=cfg["n_heads"], qkv_bias=cfg["qkv_bias"],
        )  # fmt: skip
        self.ff = nn.Sequential(
            nn.Linear(width, 4 * width),
            nn.GELU(approximate="tanh"),
            nn.Linear(4 * width, width),
        )
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.drop_shortcut = nn.Dropout(cfg["drop_rate"])

    def forward(self, x):  # (b, t, d) -> (b, t, d)
        x = x + self.drop_shortcut(self.att(self.norm1(x)))
        return x + self.drop_shortcut(self.ff(self.norm2(x)))


class GPTModel(nn.Module):
    """Ids of tokens (b, t) to a score for each token of the vocabulary (b, t, v)."""

    def __init__(self, cfg, attention=MultiHeadAttention):
        super().__init__()
        width = cfg["emb_dim"]
        self.tok_emb = nn.Embedding(cfg["vocab_size"], width)
        self.pos_emb = nn.Embedding(cfg["context_length"], width)
        self.drop_emb = nn.Dropout(cfg["drop_rate"])
        self.trf_blocks = nn.Sequential(
            *[TransformerBlock(cfg, attention) for _ in range(cfg["n_layers"])]
        )
        self.final_norm = nn.LayerNorm(width)
        self.out_head = nn.Linear(width, cfg["vocab_size"], bias=False)

    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.drop_emb(self.tok_emb(ids) + self.pos_emb(places))  # (b, t, d)
        return self.out_head(self.final_norm(self.trf_blocks(x)))


@torch.no_grad()
def write_tokens(model, ids, count):
    """Give the tokens with the highest scores, one after another."""
    for _ in range(count):
        logits = model(torch.tensor([ids]))[0, -1]  # (v,)
        ids = [*ids, logits.argmax().item()]
    return ids[-count:]


def size(model):
    return sum(parameter.numel() for parameter in model.parameters())


# What chapter 4 and its exercises print, for GPT-2's sizes without biases for queries,
# keys and values: all parameters, and those but for the output layer.
PUBLISHED = {
    (768, 12, 12): (163_009_536, 124_412_160),
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


@pytest.mark.site  # draws 124 million parameters
def test_the_untrained_model_writes_what_the_chapter_prints():
    """Seed 123, evaluation mode, from "Hello, I am": six more tokens, by both."""
    torch.manual_seed(123)
    model = GPTModel(GPT_124M).eval()
    start, published = [15496, 11, 314, 716], [27018, 24086, 47843, 30961, 42348, 7267]
    assert write_tokens(model, start, 6) == published
    for block in model.trf_blocks:
        fused = FusedMultiHeadAttention(768, 768, 1024, 0.1, num_heads=12).eval()
        fused.load_state_dict(block.att.state_dict())
        block.att = fused
    assert write_tokens(model, start, 6) == published
