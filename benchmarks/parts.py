"""Where the time goes inside the listing, and what a cache saves."""

import time

import torch
from contestants import D_HEAD, HEADS, SEED, D, build
from timing import interleaved, summarize

from attention import FusedMultiHeadAttention, KeyValueCache

CONTEXT = 1024
POSITIONS = (64, 128, 256, 512, 1024)
HEADS_AT_A_TIME = (1, 2, 3, 4, 6, 12)


@torch.no_grad()
def steps(b, t, rounds):
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
        queries = layer.W_query(x) / D_HEAD**0.5
        keys, values = layer.W_key(x), layer.W_value(x)
        now = lap("projections", now)
        queries, keys, values = (
            part.view(b, t, HEADS, D_HEAD).transpose(1, 2)
            for part in (queries, keys, values)
        )
        scores = queries @ keys.transpose(2, 3)
        now = lap("scores", now)
        scores += torch.where(layer.mask[:t, :t].bool(), -torch.inf, 0.0)
        now = lap("mask", now)
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
def heads_at_a_time(b, t, rounds):
    """Time scores, softmax and weighted sum for a few heads at once.

    The arithmetic is the same; what differs is how many scores are in use together.
    """
    torch.manual_seed(SEED)
    queries, keys, values = torch.randn(3, b, HEADS, t, D_HEAD)
    future = torch.ones(t, t, dtype=torch.bool).triu(1)
    mask = torch.where(future, -torch.inf, 0.0)

    def run(count):
        for i in range(0, HEADS, count):
            part = slice(i, i + count)
            scores = queries[:, part] @ keys[:, part].mT
            scores += mask
            torch.softmax(scores, dim=-1) @ values[:, part]

    functions = {str(n): lambda n=n: run(n) for n in HEADS_AT_A_TIME}
    summary = summarize(
        interleaved(functions, rounds, "heads at a time"), base=str(HEADS)
    )
    for name, row in summary.items():
        row["scores_bytes"] = b * int(name) * t * t * 4
    return {"b": b, "t": t, "heads": summary}


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
