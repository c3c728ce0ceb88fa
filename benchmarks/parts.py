"""Where the time goes inside the listing, and what a cache saves."""

import time

import torch
from contestants import D_HEAD, HEADS, SEED, D, build
from timing import interleaved, summarize

from attention import FusedMultiHeadAttention, KeyValueCache

CONTEXT = 1024
POSITIONS = (64, 128, 256, 512, 1024)
KEY_HEADS = (12, 4, 1)


@torch.no_grad()
def shares(b, t, rounds):
    """Time each step of the listing's forward pass.

    Returns:
        Names of the steps and their share of the sum of median times.
    """
    layer, x = build("listing", b, t), torch.randn(b, t, D)
    seconds = {}

    def lap(name, start):
        seconds.setdefault(name, []).append(time.perf_counter() - start)
        return time.perf_counter()

    for _ in range(rounds + 1):
        now = time.perf_counter()
        queries, keys, values = layer.W_query(x), layer.W_key(x), layer.W_value(x)
        now = lap("projections", now)
        queries, keys, values = (
            part.view(b, t, HEADS, D_HEAD).transpose(1, 2)
            for part in (queries, keys, values)
        )
        scores = queries @ keys.transpose(2, 3)
        now = lap("scores", now)
        scores.masked_fill_(layer.mask[:t, :t].bool(), -torch.inf)
        now = lap("mask", now)
        scores = scores / D_HEAD**0.5
        now = lap("dividing", now)
        weights = torch.softmax(scores, dim=-1)
        now = lap("softmax", now)
        context = weights @ values
        now = lap("weighted sum", now)
        context = context.transpose(1, 2).contiguous().view(b, t, D)
        now = lap("joining the heads", now)
        layer.out_proj(context)
        lap("output projection", now)
    # The first round sets things up.
    medians = {name: sorted(s[1:])[rounds // 2] for name, s in seconds.items()}
    whole = sum(medians.values())
    return {
        "b": b,
        "t": t,
        "median_s": whole,
        "shares": {name: median / whole for name, median in medians.items()},
    }


@torch.no_grad()
def grouped(rounds, t=8192):
    """Time one query of each head over many keys, for fewer and fewer key heads."""
    torch.manual_seed(SEED)
    query = torch.randn(1, HEADS, 1, D_HEAD)
    functions = {}
    for count in KEY_HEADS:
        keys, values = torch.randn(2, 1, count, t, D_HEAD)
        functions[str(count)] = lambda k=keys, v=values: one_query(query, k, v)
    seconds = interleaved(functions, rounds, f"key heads, t = {t}")
    return {"t": t, "heads": summarize(seconds, base=str(HEADS))}


def one_query(query, keys, values):
    # Rows of queries that share a key head are computed in one product.
    group = query.view(1, keys.shape[1], -1, D_HEAD)
    weights = torch.softmax(group @ keys.mT / D_HEAD**0.5, dim=-1)
    return (weights @ values).view_as(query)


@torch.no_grad()
def decoding(rounds):
    """Time one more token at several positions, with and without a cache."""
    torch.manual_seed(SEED)
    layers = {
        "cached": FusedMultiHeadAttention(D, D, CONTEXT, 0.0, HEADS),
        "cached, 4 key heads": FusedMultiHeadAttention(
            D, D, CONTEXT, 0.0, HEADS, num_kv_heads=4
        ),
    }
    x = torch.randn(1, CONTEXT, D)
    listing = build("listing", 1, CONTEXT)
    layers["cached"].load_state_dict(listing.state_dict())
    rows = []
    for t in POSITIONS:
        functions = {
            "fused, recomputed": lambda t=t: layers["cached"](x[:, :t]),
            "listing, recomputed": lambda t=t: listing(x[:, :t]),
        }
        kept = {}
        for name, layer in layers.items():
            cache = KeyValueCache()
            layer(x[:, : t - 1], cache=cache)
            functions[name] = lambda t=t, a=layer, c=cache: one_step(a, c, x, t)
            kept[name] = cache.num_bytes // cache.length
        seconds = interleaved(functions, rounds, f"one more token, t = {t}")
        summary = summarize(seconds, base="cached")
        rows.append({"t": t, "steps": summary, "cache_bytes_per_token": kept})
    return {"rows": rows, "largest_difference": difference(layers["cached"], x)}


def one_step(layer, cache, x, t):
    cache.length = t - 1  # forget the token of the round before
    return layer(x[:, t - 1 : t], cache=cache)


def difference(layer, x):
    """Decode token by token from 64 on; give the largest difference to one pass."""
    cache = KeyValueCache()
    parts = [layer(x[:, :64], cache=cache)]
    parts += [layer(token, cache=cache) for token in x[:, 64:].split(1, dim=1)]
    return (torch.cat(parts, dim=1) - layer(x)).abs().max().item()
