"""The model of the chapter's next chapter, around our layers: GPT-2's shape.

Its layers are made in that chapter's order, so that its seeds print its values; the
keys of the config are that chapter's, too.
"""

import torch
from torch import nn

from attention import MultiHeadAttention, convert

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
def most_likely(model, ids, count, context_length):
    """Append the token with the highest score, ``count`` times."""
    for _ in range(count):
        logits = model(ids[:, -context_length:])[:, -1]  # (b, v)
        ids = torch.cat((ids, logits.argmax(dim=-1, keepdim=True)), dim=1)
    return ids


def size(model):
    return sum(parameter.numel() for parameter in model.parameters())


def to_transformers(state, n_layers):
    """Rename and turn our weights into those of GPT2LMHeadModel."""
    pairs = {"tok_emb.weight": "wte.weight", "pos_emb.weight": "wpe.weight"}
    turned = {}
    for i in range(n_layers):
        ours, theirs = f"trf_blocks.{i}.", f"h.{i}."
        att = {k.removeprefix(f"{ours}att."): v for k, v in state.items()
               if k.startswith(f"{ours}att.")}  # fmt: skip
        turned |= convert.from_ours(
            att, convert.GPT2, prefix=f"transformer.{theirs}attn."
        )
        for a, b in (("norm1", "ln_1"), ("norm2", "ln_2")):
            pairs |= {f"{ours}{a}.{p}": f"{theirs}{b}.{p}" for p in ("weight", "bias")}
        for a, b in (("ff.0", "mlp.c_fc"), ("ff.2", "mlp.c_proj")):
            pairs[f"{ours}{a}.bias"] = f"{theirs}{b}.bias"
            # Their linear layers keep the matrix as it is multiplied from the right.
            turned[f"transformer.{theirs}{b}.weight"] = state[f"{ours}{a}.weight"].T
    pairs |= {f"final_norm.{p}": f"ln_f.{p}" for p in ("weight", "bias")}
    turned |= {f"transformer.{theirs}": state[ours] for ours, theirs in pairs.items()}
    return turned | {"lm_head.weight": state["out_head.weight"]}
