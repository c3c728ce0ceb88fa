"""Attention written in other ways, all of them right: the checker must find nothing.

``VARIANTS`` pairs a short description with a class and the arguments of its check.
"""

# ruff: noqa: D102 (each forward does what its class says)

import math

import torch
from torch import nn
from torch.nn import functional as F

from coding_attention.gallery.planted import BASES, HEADER, compiled


def _refuse_long(x, limit):
    if x.shape[1] > limit:
        raise ValueError(f"{x.shape[1]} tokens given, {limit} allowed")


class Einsum(nn.Module):
    """Plain parameters, one slice for each head, all products as einsum."""

    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        d_head = d_out // num_heads
        shape = (num_heads, d_in, d_head)
        self.W_query = nn.Parameter(torch.randn(shape) / d_in**0.5)
        self.W_key = nn.Parameter(torch.randn(shape) / d_in**0.5)
        self.W_value = nn.Parameter(torch.randn(shape) / d_in**0.5)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        q = torch.einsum("btd,hde->bhte", x, self.W_query)
        k = torch.einsum("btd,hde->bhte", x, self.W_key)
        v = torch.einsum("btd,hde->bhte", x, self.W_value)
        scores = torch.einsum("bhie,bhje->bhij", q, k) / math.sqrt(q.shape[-1])
        t = x.shape[1]
        future = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(future, -torch.inf).softmax(dim=-1)
        context = torch.einsum("bhij,bhje->bihe", weights, v)
        return self.out_proj(context.flatten(2))


class CombinedQKV(nn.Module):
    """One projection for queries, keys and values, as in GPT-2."""

    def __init__(self, n_embd, n_head, block_size, dropout):
        super().__init__()
        self.n_head = n_head
        self.block_size = block_size
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.attn_dropout = nn.Dropout(dropout)
        self.resid_dropout = nn.Dropout(dropout)
        keep = torch.tril(torch.ones(block_size, block_size))
        self.register_buffer("bias", keep.view(1, 1, block_size, block_size))

    def forward(self, x):
        _refuse_long(x, self.block_size)
        b, t, c = x.shape
        q, k, v = (
            part.view(b, t, self.n_head, c // self.n_head).transpose(1, 2)
            for part in self.c_attn(x).split(c, dim=2)
        )
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.bias[:, :, :t, :t] == 0, float("-inf"))
        weights = self.attn_dropout(F.softmax(scores, dim=-1))
        y = (weights @ v).transpose(1, 2).contiguous().view(b, t, c)
        return self.resid_dropout(self.c_proj(y))


class HeadByHeadQKV(nn.Module):
    """One projection whose rows hold query, key and value of each head in turn."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim, bias=False)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        b, t, d = x.shape
        qkv = self.qkv(x).view(b, t, self.num_heads, 3, d // self.num_heads)
        q, k, v = qkv.permute(3, 0, 2, 1, 4)
        context = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(context.transpose(1, 2).flatten(2))


class PreScaledQueries(nn.Module):
    """The queries are scaled, not the scores; the names are other people's."""

    def __init__(self, hidden_size, num_attention_heads, attention_dropout=0.0):
        super().__init__()
        self.num_heads = num_attention_heads
        self.scaling = (hidden_size // num_attention_heads) ** -0.5
        self.q_proj = nn.Linear(hidden_size, hidden_size)
        self.k_proj = nn.Linear(hidden_size, hidden_size)
        self.v_proj = nn.Linear(hidden_size, hidden_size)
        self.o_proj = nn.Linear(hidden_size, hidden_size)
        self.attention_dropout = nn.Dropout(attention_dropout)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (
            y.view(b, t, self.num_heads, -1).transpose(1, 2)
            for y in (self.q_proj(x) * self.scaling, self.k_proj(x), self.v_proj(x))
        )
        scores = q @ k.mT
        future = torch.ones_like(scores, dtype=torch.bool).triu(1)
        weights = torch.softmax(scores.masked_fill(future, -torch.inf), dim=-1)
        return self.o_proj((self.attention_dropout(weights) @ v).mT.reshape(b, d, t).mT)


class AdditiveMask(nn.Module):
    """A buffer of 0 and -inf is added to the scores; single head."""

    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.query = nn.Linear(d_in, d_out, bias=False)
        self.key = nn.Linear(d_in, d_out, bias=False)
        self.value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        mask = torch.full((context_length, context_length), -torch.inf).triu(1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):
        t = x.shape[1]
        _refuse_long(x, len(self.mask))
        q, k, v = self.query(x), self.key(x), self.value(x)
        scores = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5 + self.mask[:t, :t]
        return self.dropout(scores.softmax(dim=-1)) @ v


class LowestNumber(nn.Module):
    """Hidden scores get the lowest number of their dtype, which never leaks."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_q = nn.Linear(d_in, d_out, bias=False)
        self.W_k = nn.Linear(d_in, d_out, bias=False)
        self.W_v = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        t = x.shape[1]
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        scores = q @ k.mT / k.shape[-1] ** 0.5
        future = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        lowest = torch.finfo(scores.dtype).min
        return scores.masked_fill(future, lowest).softmax(dim=-1) @ v


class Renormalized(nn.Module):
    """Softmax, then the mask, then a division by the row sums: the longer way."""

    def __init__(self, d_in, d_out, context_length):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.register_buffer("keep", torch.ones(context_length, context_length).tril())

    def forward(self, x):
        t = x.shape[1]
        _refuse_long(x, len(self.keep))
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        # The largest visible score is subtracted, so that no row sums to 0.
        scores = q @ k.mT / k.shape[-1] ** 0.5
        keep = self.keep[:t, :t].to(scores.dtype)
        scores = scores.masked_fill(keep == 0, torch.finfo(scores.dtype).min)
        weights = torch.softmax(scores, dim=-1) * keep
        return weights / weights.sum(dim=-1, keepdim=True) @ v


class SoftmaxByHand(nn.Module):
    """exp and a division, with the largest score subtracted first."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        t = x.shape[1]
        q, k, v = x @ self.W_query, x @ self.W_key, x @ self.W_value
        scores = q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5
        future = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        scores = scores.masked_fill(future, -torch.inf)
        powers = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
        return powers / powers.sum(dim=-1, keepdim=True) @ v


class RowByRow(nn.Module):
    """No mask at all: a loop gives each token its past and nothing else."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.q = nn.Linear(d_in, d_out)
        self.k = nn.Linear(d_in, d_out)
        self.v = nn.Linear(d_in, d_out)

    def forward(self, x):
        rows = []
        for i in range(x.shape[1]):
            past = x[:, : i + 1]
            scores = self.q(x[:, i : i + 1]) @ self.k(past).mT
            weights = torch.softmax(scores / self.q.out_features**0.5, dim=-1)
            rows.append(weights @ self.v(past))
        return torch.cat(rows, dim=1)


class ReturnsWeights(nn.Module):
    """Returns the attention weights as well, and keeps them for plotting."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out)
        self.W_key = nn.Linear(d_in, d_out)
        self.W_value = nn.Linear(d_in, d_out)
        self.last_weights = None

    def forward(self, x):
        t = x.shape[1]
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        future = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        scores = (q @ k.mT / k.shape[-1] ** 0.5).masked_fill(future, -torch.inf)
        weights = scores.softmax(dim=-1)
        self.last_weights = weights
        return weights @ v, weights


class LibraryLayer(nn.Module):
    """nn.MultiheadAttention inside, with its mask made in forward."""

    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        self.attn = nn.MultiheadAttention(
            embed_dim, num_heads, dropout=dropout, batch_first=True
        )

    def forward(self, x):
        t = x.shape[1]
        hidden = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        return self.attn(x, x, x, attn_mask=hidden, need_weights=False)[0]


class TokensFirst(nn.Module):
    """Takes (t, b, d), as PyTorch's own layer does by default."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.attn = nn.MultiheadAttention(embed_dim, num_heads)

    def forward(self, x):
        t = x.shape[0]
        hidden = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        return self.attn(x, x, x, attn_mask=hidden, need_weights=False)[0]


def _base(name):
    """Return a right class that mistakes are planted in, too."""
    return compiled(HEADER + BASES[name][0], f"{name}.py")


VARIANTS = [
    ("einsum with a weight for each head", Einsum, {}),
    ("one combined projection, with dropout", CombinedQKV, {}),
    ("combined projection, head by head", HeadByHeadQKV, {}),
    ("scaled_dot_product_attention", _base("fused"), {}),
    ("scaled_dot_product_attention with bias", _base("fused"), {"qkv_bias": True}),
    ("grouped heads", _base("grouped"), {}),
    ("multi-query heads", _base("grouped"), {"n_kv_heads": 1}),
    ("scaled ahead of the product", PreScaledQueries, {}),
    ("additive mask", AdditiveMask, {}),
    ("finfo.min for -inf", LowestNumber, {}),
    ("renormalized", Renormalized, {}),
    ("softmax by hand, safely", SoftmaxByHand, {}),
    ("a loop over positions, no mask", RowByRow, {}),
    ("a list of heads", _base("wrapper"), {}),
    ("returns and keeps the weights", ReturnsWeights, {}),
    ("nn.MultiheadAttention inside", LibraryLayer, {}),
    ("nn.MultiheadAttention", nn.MultiheadAttention, {"batch_first": True}),
    ("tokens first", TokensFirst, {"layout": "tbd"}),
    (
        "nn.MultiheadAttention without a mask",
        nn.MultiheadAttention,
        {"batch_first": True, "causal": False},
    ),
]
