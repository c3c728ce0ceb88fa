"""The right classes that mistakes are planted in.

Each is complete but for ``HEADER``, and named ``Attention``.
"""

from typing import Any

HEADER = """\
import torch
from torch import nn
from torch.nn import functional as F

"""

_CHAPTER = """\
class Attention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.d_out = d_out
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
"""
MULTI_HEAD = (
    _CHAPTER
    + """\
        self.dropout = nn.Dropout(dropout)
        mask = torch.triu(torch.ones(context_length, context_length), diagonal=1)
        self.register_buffer("mask", mask)

    def forward(self, x):
        b, t, _ = x.shape
        if t > self.context_length:
            raise ValueError(f"{t} tokens, {self.context_length} allowed")
        queries = self.W_query(x)
        keys = self.W_key(x)
        values = self.W_value(x)

        queries = queries.view(b, t, self.num_heads, self.head_dim).transpose(1, 2)
        keys = keys.view(b, t, self.num_heads, self.head_dim).transpose(1, 2)
        values = values.view(b, t, self.num_heads, self.head_dim).transpose(1, 2)

        scores = queries @ keys.transpose(2, 3)
        hidden = self.mask[:t, :t].bool()
        scores = scores.masked_fill(hidden, -torch.inf)
        weights = torch.softmax(scores / self.head_dim**0.5, dim=-1)
        weights = self.dropout(weights)

        context = weights @ values
        context = context.transpose(1, 2).reshape(b, t, self.d_out)
        return self.out_proj(context)
"""
)

FUSED = (
    _CHAPTER
    + """\
        self.p = dropout

    def forward(self, x):
        b, t, _ = x.shape
        if t > self.context_length:
            raise ValueError(f"{t} tokens, {self.context_length} allowed")
        p = self.p if self.training else 0.0
        shape = (b, t, self.num_heads, self.head_dim)
        queries = self.W_query(x).view(shape).transpose(1, 2)
        keys = self.W_key(x).view(shape).transpose(1, 2)
        values = self.W_value(x).view(shape).transpose(1, 2)
        context = F.scaled_dot_product_attention(
            queries, keys, values, dropout_p=p, is_causal=True
        )
        context = context.transpose(1, 2).reshape(b, t, self.d_out)
        return self.out_proj(context)
"""
)

WRAPPER = """\
class Head(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        mask = torch.triu(torch.ones(context_length, context_length), diagonal=1)
        self.register_buffer("mask", mask)

    def forward(self, x):
        b, t, d_in = x.shape
        if t > self.context_length:
            raise ValueError(f"{t} tokens, {self.context_length} allowed")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:t, :t].bool(), -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        return self.dropout(weights) @ values


class Attention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        heads = [Head(d_in, d_out, context_length, dropout) for _ in range(num_heads)]
        self.heads = nn.ModuleList(heads)

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)
"""

LIBRARY = """\
class Attention(nn.Module):
    def __init__(self, d_in, num_heads):
        super().__init__()
        self.attn = nn.MultiheadAttention(d_in, num_heads, batch_first=True)

    def forward(self, x):
        return self.attn(x, x, x, need_weights=False)[0]
"""

GROUPED = """\
class Attention(nn.Module):
    def __init__(self, d_model, n_heads, n_kv_heads=2):
        super().__init__()
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        self.head_dim = d_model // n_heads
        self.wq = nn.Linear(d_model, n_heads * self.head_dim, bias=False)
        self.wk = nn.Linear(d_model, n_kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(d_model, n_kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(n_heads * self.head_dim, d_model, bias=False)

    def forward(self, x):
        b, t, _ = x.shape
        q = self.wq(x).view(b, t, self.n_heads, self.head_dim).transpose(1, 2)
        k = self.wk(x).view(b, t, self.n_kv_heads, self.head_dim).transpose(1, 2)
        v = self.wv(x).view(b, t, self.n_kv_heads, self.head_dim).transpose(1, 2)
        repeats = self.n_heads // self.n_kv_heads
        k = k.repeat_interleave(repeats, dim=1)
        v = v.repeat_interleave(repeats, dim=1)
        context = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(context.transpose(1, 2).reshape(b, t, -1))
"""

_FOUR = """\
class Attention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads, self.d_head = n_heads, d_model // n_heads
        self.wq = nn.Linear(d_model, d_model, bias=False)
        self.wk = nn.Linear(d_model, d_model, bias=False)
        self.wv = nn.Linear(d_model, d_model, bias=False)
        self.wo = nn.Linear(d_model, d_model, bias=False)
"""

_ROTATE = """\
def rotate(x, base=10000.0):
    d = x.shape[-1]
    fine = torch.promote_types(x.dtype, torch.float32)  # bfloat16 counts to 256
    steps = torch.arange(0, d, 2, device=x.device, dtype=fine)
    places = torch.arange(x.shape[-2], device=x.device, dtype=fine)
    angles = places[:, None] * base ** (-steps / d)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    one, two = x.chunk(2, dim=-1)
    return torch.cat([one * cos - two * sin, two * cos + one * sin], dim=-1)
"""
ROPE = (
    _ROTATE
    + "\n\n"
    + _FOUR
    + """\

    def forward(self, x):
        b, t, _ = x.shape
        q = self.wq(x).view(b, t, self.n_heads, -1).transpose(1, 2)
        k = self.wk(x).view(b, t, self.n_heads, -1).transpose(1, 2)
        v = self.wv(x).view(b, t, self.n_heads, -1).transpose(1, 2)
        q, k = rotate(q), rotate(k)
        context = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(context.transpose(1, 2).reshape(b, t, -1))
"""
)

SCORED = (
    _FOUR
    + """\

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (
            layer(x).view(b, t, self.n_heads, -1).transpose(1, 2)
            for layer in (self.wq, self.wk, self.wv)
        )
        i = torch.arange(t, device=x.device)
        far = i[:, None] - i
        scores = q @ k.transpose(2, 3) / self.d_head**0.5
        hidden = far < 0
        scores = scores.masked_fill(hidden, -torch.inf)
        weights = scores.softmax(dim=-1)
        return self.wo((weights @ v).transpose(1, 2).reshape(b, t, -1))
"""
)

_HIDDEN = "        hidden = far < 0\n"
WINDOW = SCORED.replace(_HIDDEN, "        hidden = (far < 0) | (far >= 3)\n")
NORMED = SCORED.replace(
    "        self.wo =",
    """\
        self.q_norm = nn.LayerNorm(self.d_head)
        self.k_norm = nn.LayerNorm(self.d_head)
        self.wo =""",
).replace(
    "        scores = q @",
    "        q, k = self.q_norm(q), self.k_norm(k)\n        scores = q @",
)

SINK = (
    SCORED.replace(
        "        self.wo =",
        "        self.sinks = nn.Parameter(torch.zeros(n_heads))\n        self.wo =",
    )
    .replace(
        "        weights = scores",
        """\
        sink = self.sinks.view(-1, 1, 1).expand(b, -1, t, 1)
        scores = torch.cat([scores, sink], dim=-1)
        weights = scores""",
    )
    .replace("(dim=-1)\n        return", "(dim=-1)[..., :-1]\n        return")
)
PACKED = SCORED.replace("forward(self, x)", "forward(self, x, document)").replace(
    _HIDDEN,
    """\
        apart = document[:, :, None] != document[:, None, :]
        hidden = (far < 0) | apart[:, None]
""",
)
LATENT = (
    _ROTATE
    + """\


class Attention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        r, d_rope = d_model // 2, d_model // n_heads // 2
        self.W_query = nn.Linear(d_model, d_model, bias=False)
        self.W_dkv = nn.Linear(d_model, r, bias=False)
        self.W_uk = nn.Linear(r, d_model, bias=False)
        self.W_uv = nn.Linear(r, d_model, bias=False)
        self.W_qr = nn.Linear(d_model, n_heads * d_rope, bias=False)
        self.W_kr = nn.Linear(d_model, d_rope, bias=False)
        self.out_proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x):
        b, t, _ = x.shape
        c = self.W_dkv(x)  # the latent
        q, q_turned, k, v = (
            y.view(b, t, self.n_heads, -1).transpose(1, 2)
            for y in (self.W_query(x), self.W_qr(x), self.W_uk(c), self.W_uv(c))
        )
        k_turned = rotate(self.W_kr(x)[:, None]).expand(-1, self.n_heads, -1, -1)
        q = torch.cat([q, rotate(q_turned)], dim=-1)
        k = torch.cat([k, k_turned], dim=-1)
        context = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(context.transpose(1, 2).reshape(b, t, -1))
"""
)

_COMBINED = """\
class Attention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads, self.d_head = n_heads, d_model // n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out = nn.Linear(d_model, d_model, bias=False)
"""
CACHED = (
    _COMBINED
    + """\

    def forward(self, x, past=None):
        b, t, _ = x.shape
        q, k, v = (
            part.view(b, t, self.n_heads, -1).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        if past is not None:
            k = torch.cat([past[0], k], dim=2)
            v = torch.cat([past[1], v], dim=2)
        old = k.shape[2] - t
        i = torch.arange(old, old + t, device=x.device)[:, None]
        j = torch.arange(k.shape[2], device=x.device)
        scores = q @ k.transpose(2, 3) / self.d_head**0.5
        weights = scores.masked_fill(j > i, -torch.inf).softmax(dim=-1)
        y = (weights @ v).transpose(1, 2).reshape(b, t, -1)
        return self.out(y), (k, v)
"""
)

PADDED = (
    _COMBINED
    + """\

    def forward(self, x, padding_mask=None):
        b, t, _ = x.shape
        q, k, v = (
            part.view(b, t, self.n_heads, -1).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(2, 3) / self.d_head**0.5
        future = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        hidden = future.expand(b, 1, t, t)
        if padding_mask is not None:
            hidden = hidden | padding_mask[:, None, None, :]
        itself = torch.eye(t, dtype=torch.bool, device=x.device)
        hidden = hidden & ~itself
        weights = scores.masked_fill(hidden, -torch.inf).softmax(dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, t, -1))
"""
)

CROSS = (
    _FOUR
    + """\

    def forward(self, x, memory):
        b, t_q, _ = x.shape
        t_k = memory.shape[1]
        q = self.wq(x).view(b, t_q, self.n_heads, -1).transpose(1, 2)
        k = self.wk(memory).view(b, t_k, self.n_heads, -1).transpose(1, 2)
        v = self.wv(memory).view(b, t_k, self.n_heads, -1).transpose(1, 2)
        context = F.scaled_dot_product_attention(q, k, v)
        return self.wo(context.transpose(1, 2).reshape(b, t_q, -1))
"""
)


# name: (source, arguments of the check)
BASES: dict[str, tuple[str, dict[str, Any]]] = {
    "multi_head": (MULTI_HEAD, {}),
    "fused": (FUSED, {}),
    "wrapper": (WRAPPER, {}),
    "library": (LIBRARY, {"causal": False}),
    "grouped": (GROUPED, {}),
    "rope": (ROPE, {"rope": "halves"}),
    "window": (WINDOW, {"window": 3}),
    "normed": (NORMED, {"qk_norm": "layer"}),
    "sink": (SINK, {"sink": True}),
    "packed": (PACKED, {"documents": True}),
    "latent": (LATENT, {"rope": "halves"}),
    "cached": (CACHED, {}),
    "padded": (PADDED, {}),
    "cross": (CROSS, {"memory": 6}),
}
