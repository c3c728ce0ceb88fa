"""Open-ended exercises: right classes and named mistakes."""

import torch
from torch import nn
from torch.nn import functional as F

from attention import CausalAttention, FusedMultiHeadAttention


class Window(nn.Module):
    """Causal attention that sees a few tokens, with room for a mistake."""

    def __init__(self, d_in, d_out, context_length, dropout, window):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        place = torch.arange(context_length)
        self.register_buffer("mask", self.hides(place[:, None] - place, window))

    def hides(self, far, window):
        return (far < 0) | (far >= window)

    def forward(self, x):
        t = x.shape[1]
        if t > len(self.mask):
            raise ValueError("too many tokens")
        queries, keys = self.W_query(x), self.W_key(x)
        scores = (queries @ keys.mT).masked_fill(self.mask[:t, :t], -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        return self.dropout(weights) @ self.W_value(x)


class WindowByBand(Window):
    def hides(self, far, window):
        ones = torch.ones_like(far)
        return ~(ones.tril() * ones.triu(1 - window)).bool()


class OneTooMany(Window):
    def hides(self, far, window):
        return (far < 0) | (far > window)


class NoWindow(Window):
    def hides(self, far, window):
        return far < 0


class BothSides(Window):
    def hides(self, far, window):
        return far.abs() >= window


class AlwaysThree(Window):
    def hides(self, far, window):
        return (far < 0) | (far >= 3)


def rotate(x, base=10000.0, neighbors=False):
    d = x.shape[-1]
    steps = torch.arange(0, d, 2, device=x.device, dtype=x.dtype)
    places = torch.arange(x.shape[-2], device=x.device, dtype=x.dtype)
    angles = places[:, None] * base ** (-steps / d)
    cos, sin = angles.cos(), angles.sin()
    if neighbors:
        one, two = x[..., ::2], x[..., 1::2]
        turned = [one * cos - two * sin, two * cos + one * sin]
        return torch.stack(turned, -1).flatten(-2)
    one, two = x.chunk(2, dim=-1)
    return torch.cat([one * cos - two * sin, two * cos + one * sin], dim=-1)


class Rotary(nn.Module):
    """Multi-head attention with rotary positions, with room for a mistake."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        self.num_heads, self.context_length = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def turned(self, q, k, v):
        return rotate(q), rotate(k), v

    def forward(self, x):
        b, t, _ = x.shape
        if t > self.context_length:
            raise ValueError("too many tokens")
        q, k, v = (
            layer(x).view(b, t, self.num_heads, -1).transpose(1, 2)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        q, k, v = self.turned(q, k, v)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        future = torch.ones(t, t, device=x.device).triu(1).bool()
        weights = scores.masked_fill(future, -torch.inf).softmax(-1)
        z = (self.dropout(weights) @ v).transpose(1, 2)
        return self.out_proj(z.reshape(b, t, -1))


class RotaryByComplex(Rotary):
    def turned(self, q, k, v):
        def turn(x):
            d = x.shape[-1] // 2
            rate = 10000.0 ** (-torch.arange(d, device=x.device).double() / d)
            place = torch.arange(x.shape[-2], device=x.device).double()
            angles = place[:, None] * rate
            both = torch.complex(x[..., :d].double(), x[..., d:].double())
            both = both * torch.polar(torch.ones_like(angles), angles)
            return torch.cat([both.real, both.imag], dim=-1).to(x.dtype)

        return turn(q), turn(k), v


class NotRotated(Rotary):
    def turned(self, q, k, v):
        return q, k, v


class KeysNotRotated(Rotary):
    def turned(self, q, k, v):
        return rotate(q), k, v


class ValuesRotated(Rotary):
    def turned(self, q, k, v):
        return rotate(q), rotate(k), rotate(v)


class Neighbors(Rotary):
    def turned(self, q, k, v):
        return rotate(q, neighbors=True), rotate(k, neighbors=True), v


class OtherBase(Rotary):
    def turned(self, q, k, v):
        return rotate(q, 100.0), rotate(k, 100.0), v


class Grouped(nn.Module):
    """Grouped heads with a cache, with room for a mistake."""

    early = False  # repeat before the cache

    def __init__(self, d_in, d_out, context_length, num_heads, num_kv_heads):
        super().__init__()
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.context_length = context_length
        width = d_out // num_heads * num_kv_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, width, bias=False)
        self.W_value = nn.Linear(d_in, width, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def repeat(self, x):
        return x.repeat_interleave(self.num_heads // self.num_kv_heads, dim=1)

    def joined(self, past, new):
        return torch.cat([past, new], dim=2)

    def hidden(self, t, all_, device):
        now = torch.arange(all_ - t, all_, device=device)[:, None]
        return torch.arange(all_, device=device) > now

    def forward(self, x, past=None):
        b, t, _ = x.shape
        q = self.W_query(x).view(b, t, self.num_heads, -1).transpose(1, 2)
        k = self.W_key(x).view(b, t, self.num_kv_heads, -1).transpose(1, 2)
        v = self.W_value(x).view(b, t, self.num_kv_heads, -1).transpose(1, 2)
        if self.early:
            k, v = self.repeat(k), self.repeat(v)
        if past is not None:
            k, v = self.joined(past[0], k), self.joined(past[1], v)
        if k.shape[2] > self.context_length:
            raise ValueError("too many tokens")
        past = k, v
        if not self.early:
            k, v = self.repeat(k), self.repeat(v)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        hidden = self.hidden(t, k.shape[2], x.device)
        weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
        z = (weights @ v).transpose(1, 2).reshape(b, t, -1)
        return self.out_proj(z), past


class GroupedByKernel(Grouped):
    def forward(self, x, past=None):
        b, t, _ = x.shape
        q = self.W_query(x).view(b, t, self.num_heads, -1).transpose(1, 2)
        k = self.W_key(x).view(b, t, self.num_kv_heads, -1).transpose(1, 2)
        v = self.W_value(x).view(b, t, self.num_kv_heads, -1).transpose(1, 2)
        if past is not None:
            k, v = self.joined(past[0], k), self.joined(past[1], v)
        if k.shape[2] > self.context_length:
            raise ValueError("too many tokens")
        keep = ~self.hidden(t, k.shape[2], x.device)
        z = F.scaled_dot_product_attention(
            q, self.repeat(k), self.repeat(v), attn_mask=keep
        )
        return self.out_proj(z.transpose(1, 2).reshape(b, t, -1)), (k, v)


class KeptForEachHead(Grouped):
    early = True


class Tiled(Grouped):
    """The keys in another order than the values."""

    def repeat(self, x):
        self.calls = getattr(self, "calls", 0) + 1
        if self.calls % 2:
            return x.repeat(1, self.num_heads // self.num_kv_heads, 1, 1)
        return super().repeat(x)


class NotKept(Grouped):
    def joined(self, past, new):
        return new


class MaskFromZero(Grouped):
    def hidden(self, t, all_, device):
        now = torch.arange(t, device=device)[:, None]
        return torch.arange(all_, device=device) > (now if t > 1 else all_)


class NoMask(Grouped):
    def hidden(self, t, all_, device):
        return torch.zeros(t, all_, dtype=torch.bool, device=device)


class NewestFirst(Grouped):
    def joined(self, past, new):
        return torch.cat([new, past], dim=2)


RIGHT = {
    "window": {"comparison": Window, "band": WindowByBand},
    "rope": {"halves": Rotary, "complex": RotaryByComplex},
    "grouped-cache": {"by hand": Grouped, "kernel": GroupedByKernel},
}
WRONG = {
    "window": {
        "one too many": (OneTooMany, "The window has another size"),
        "none": (NoWindow, "The window has no effect"),
        "both sides": (BothSides, "The future leaks"),
        "always three": (AlwaysThree, "right for a window of 3, but not"),
        "built": (Window(8, 8, 8, 0.0, 3), "Hand in the class itself"),
        "the package": (CausalAttention, "The window has no effect"),
        "a function": (rotate, "A class derived from nn.Module"),
    },
    "rope": {
        "not rotated": (NotRotated, "Rotary positions have no effect"),
        "keys not": (KeysNotRotated, "Only the queries or only the keys"),
        "values too": (ValuesRotated, "The values are rotated too"),
        "neighbors": (Neighbors, "turn other pairs of numbers"),
        "base": (OtherBase, "the wrong frequencies"),
        "a function": (rotate, "A class derived from nn.Module"),
    },
    "grouped-cache": {
        "kept for each head": (KeptForEachHead, "holds 2 times"),
        "tiled": (Tiled, "shared in different ways"),
        "not kept": (NotKept, "The cache has no effect"),
        "mask from zero": (MaskFromZero, "ignores what is in the cache"),
        "no mask": (NoMask, "The future leaks"),
        "newest first": (NewestFirst, "ignores what is in the cache"),
        "the package": (FusedMultiHeadAttention, "pair (context, past)"),
    },
}
