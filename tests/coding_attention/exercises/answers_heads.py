"""Exercises on splitting heads and on other uses: right answers and named mistakes."""

import torch
from torch import nn
from torch.nn import functional as F

from attention import MultiHeadAttention

NAMES = ("W_query", "W_key", "W_value")


def split(x, h):
    return x.view(*x.shape[:2], h, -1).transpose(1, 2)


def move(wrapper, layer, join=torch.cat, names=NAMES, out=True, bias=True):
    for name in names:
        parts = [getattr(head, name).weight for head in wrapper.heads]
        getattr(layer, name).weight = nn.Parameter(join(parts).detach())
    if out:
        nn.init.eye_(layer.out_proj.weight)
    if bias:
        nn.init.zeros_(layer.out_proj.bias)


def move_by_rows(wrapper, layer):
    d_head = wrapper.heads[0].d_out
    with torch.no_grad():
        for i, head in enumerate(wrapper.heads):
            rows = slice(i * d_head, (i + 1) * d_head)
            for name in NAMES:
                getattr(layer, name).weight[rows] = getattr(head, name).weight
        layer.out_proj.weight.copy_(torch.eye(layer.d_out))
        layer.out_proj.bias.zero_()
    return layer


def move_into_new(wrapper, layer):
    d_in = layer.W_query.in_features
    args = len(layer.mask), 0.0, len(wrapper.heads)
    fresh = MultiHeadAttention(d_in, layer.d_out, *args)
    move(wrapper, fresh)
    return fresh


def variant(**changes):
    return lambda wrapper, layer: move(wrapper, layer, **changes)


def mixed_up(wrapper, layer):
    move(wrapper, layer)
    layer.W_key.weight = layer.W_query.weight


def backwards(wrapper, layer):
    for name in NAMES:
        for head in wrapper.heads:
            nn.init.zeros_(getattr(head, name).weight)


def cross(x, m, q, k, v, scale=2**0.5):
    return torch.softmax((x @ q) @ (m @ k).transpose(1, 2) / scale, dim=-1) @ (m @ v)


def cross_by_torch(x, m, q, k, v):
    return F.scaled_dot_product_attention(x @ q, m @ k, m @ v)


def cross_values_of_x(x, m, q, k, v):
    return torch.softmax((x @ q) @ (m @ k).mT / 2**0.5, dim=-1) @ (x @ v)


def cross_masked(x, m, q, k, v):
    future = torch.ones(x.shape[1], m.shape[1]).triu(1).bool()
    scores = ((x @ q) @ (m @ k).mT).masked_fill(future, -torch.inf)
    return torch.softmax(scores / 2**0.5, dim=-1) @ (m @ v)


def append(new, past):
    return torch.cat([past, new], dim=2)


def step(q, k, v, past_k, past_v):
    keys, values = append(k, past_k), append(v, past_v)
    weights = torch.softmax(q @ keys.mT / q.shape[-1] ** 0.5, dim=-1)
    return weights @ values, keys, values


def step_by_torch(q, k, v, past_k, past_v):
    keys, values = append(k, past_k), append(v, past_v)
    return [F.scaled_dot_product_attention(q, keys, values), keys, values]


def step_causal(q, k, v, past_k, past_v):
    keys, values = append(k, past_k), append(v, past_v)
    out = F.scaled_dot_product_attention(q, keys, values, is_causal=True)
    return out, keys, values


def step_before(q, k, v, past_k, past_v):
    return step(q, past_k, past_v, k, v)


RIGHT = {
    "split-heads": {
        "view": split,
        "stack": lambda x, h: torch.stack(x.chunk(h, dim=-1), dim=1),
        "unflatten": lambda x, h: x.unflatten(-1, (h, -1)).permute(0, 2, 1, 3),
    },
    "wrapper-is-split": {
        "cat": move, "rows": move_by_rows, "new layer": move_into_new,
    },
    "cross-attention": {"by hand": cross, "torch": cross_by_torch},
    "cache-step": {"by hand": step, "torch": step_by_torch},
}  # fmt: skip
WRONG = {
    "split-heads": {
        "one view": (lambda x, h: x.view(len(x), h, x.shape[1], -1), "one view cuts"),
        "no transpose": (
            lambda x, h: x.view(*x.shape[:2], h, -1), "bring them before the tokens"
        ),
        "interleaved": (
            lambda x, h: x.unflatten(-1, (-1, h)).permute(0, 3, 1, 2), "every h-th"
        ),
        "last two": (lambda x, h: split(x, h).mT, "last two axes are exchanged"),
        "heads first": (lambda x, h: split(x, h).transpose(0, 1), "before the batch"),
        "exchanged": (
            lambda x, h: x.unflatten(-1, (-1, h)).transpose(1, 2),
            "h and d_head have changed places",
        ),
        "raises": (lambda x, h: x.view(5, h, -1), "It raised RuntimeError"),
        "one argument": (lambda x: x, "It raised TypeError"),
    },
    "wrapper-is-split": {
        "reversed": (variant(join=lambda p: torch.cat(p[::-1])), "in reverse order"),
        "turns": (
            variant(join=lambda p: torch.stack(p, 1).flatten(0, 1)), "take turns"
        ),
        "axis 1": (variant(join=lambda p: torch.cat(p, 1)), "stacked along axis 0"),
        "one head": (variant(join=lambda p: p[0]), "stacked along axis 0"),
        "mean": (
            variant(join=lambda p: torch.cat(p) + 1), "is not the stack of the heads'"
        ),
        "key forgotten": (
            variant(names=("W_query", "W_value")), "W_key of the layer still has"
        ),
        "mixed up": (mixed_up, "W_key got the weights of W_query"),
        "out_proj": (variant(out=False), "which matrix changes nothing?"),
        "bias": (variant(bias=False), "still adds its bias"),
        "backwards": (backwards, "The wrapper has changed"),
        "raises": (lambda wrapper, layer: wrapper.W_query, "It raised AttributeError"),
    },
    "cross-attention": {
        "exchanged": (lambda x, m, *w: cross(m, x, *w), "have changed places"),
        "self": (lambda x, m, *w: cross(x, x, *w), "this is self-attention"),
        "memory alone": (lambda x, m, *w: cross(m, m, *w), "x is not used"),
        "values of x": (cross_values_of_x, "The values come from x"),
        "keys of x": (
            lambda x, m, q, k, v: (
                torch.softmax((x @ q) @ (x @ k).mT / 2**0.5, -1) @ (m @ v)
            ),
            "The keys come from x",
        ),
        "masked": (cross_masked, "A causal mask hides part of memory"),
        "not scaled": (lambda *a: cross(*a, scale=1), "are not divided"),
        "no root": (lambda *a: cross(*a, scale=2), "Its root is meant"),
        "d_in": (lambda *a: cross(*a, scale=3**0.5), "the root of d_in"),
        "queries": (
            lambda x, m, q, k, v: ((x @ q) @ (m @ k).mT / 2**0.5).softmax(1) @ (m @ v),
            "runs over the queries",
        ),
    },
    "cache-step": {
        "old returned": (lambda *a: (step(*a)[0], *a[3:]), "are the old ones"),
        "past only": (
            lambda q, k, v, pk, pv: (
                F.scaled_dot_product_attention(q, pk, pv), append(k, pk), append(v, pv)
            ),
            "does not see itself",
        ),
        "new not used": (
            lambda q, k, v, pk, pv: (F.scaled_dot_product_attention(q, pk, pv), pk, pv),
            "The new key and value are not used",
        ),
        "itself only": (
            lambda q, k, v, pk, pv: (v, append(k, pk), append(v, pv)),
            "The token sees itself only",
        ),
        "past not used": (lambda q, k, v, pk, pv: (v, k, v), "The past is not used"),
        "before": (step_before, "stands before the past"),
        "causal": (step_causal, "nothing is to be hidden from it"),
        "not scaled": (
            lambda q, *a: step(q * q.shape[-1] ** 0.5, *a), "are not divided"
        ),
        "no root": (
            lambda q, *a: step(q / q.shape[-1] ** 0.5, *a), "Its root is meant"
        ),
        "alone": (lambda *a: step(*a)[0], "This is the context vector alone"),
        "order": (
            lambda *a: tuple(step(*a)[i] for i in (0, 2, 1)), "in the wrong order"
        ),
        "heads": (
            lambda q, k, v, pk, pv: (q, torch.cat([pk, k], 1), torch.cat([pv, v], 1)),
            "The new key is joined along the heads",
        ),
    },
}  # fmt: skip
