"""Masks, grouped heads, a cache, a batch: what each costs or saves."""

import torch
from contestants import D_HEAD, HEADS, SEED, D, build
from timing import interleaved, summarize
from torch.nn import functional as F
from torch.nn.functional import scaled_dot_product_attention as sdpa

from attention import FusedMultiHeadAttention, KeyValueCache

CONTEXT = 1024
POSITIONS = (64, 128, 256, 512, 1024)
BATCHES = (1, 4, 16)
KEY_HEADS = (12, 4, 1)


@torch.no_grad()
def masks(rounds, t=4096, window=128):
    """Time PyTorch's kernel with masks, and two ways to skip what a window hides."""
    torch.manual_seed(SEED)
    q, k, v = torch.randn(3, 1, HEADS, t, D_HEAD)
    now, past = torch.arange(t).unsqueeze(1), torch.arange(t)
    causal = past <= now  # True: may look
    seen = causal & (now - past < window)
    functions = {
        "causal": lambda: sdpa(q, k, v, is_causal=True),
        "causal, as a matrix": lambda: sdpa(q, k, v, attn_mask=causal),
        "window, as a matrix": lambda: sdpa(q, k, v, attn_mask=seen),
        "window, cut into bands": lambda: banded(q, k, v, window),
        **flex_window(q, k, v, window),
    }
    expected = functions["window, as a matrix"]()
    for name in [name for name in functions if name.startswith("window")]:
        torch.testing.assert_close(functions[name](), expected, atol=1e-5, rtol=1e-4)
    seconds = interleaved(functions, rounds, f"masks, t = {t}")
    summary = summarize(seconds, base="causal")
    return {"t": t, "window": window, "masks": summary}


def flex_window(q, k, v, window):
    """Give the window as FlexAttention computes it, if this PyTorch can compile it."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def sees(b, h, query, key):
        return (key <= query) & (query - key < window)

    t = q.shape[2]
    blocks = create_block_mask(sees, None, None, t, t, device=q.device.type)
    compiled = torch.compile(flex_attention)
    try:
        compiled(q, k, v, block_mask=blocks)
    except Exception as error:  # no compiler, or none that PyTorch can use
        print(f"FlexAttention is left out: {type(error).__name__}")
        return {}
    return {"window, FlexAttention": lambda: compiled(q, k, v, block_mask=blocks)}


def banded(q, k, v, window):
    """Let blocks of queries meet only their own block of keys and the one before."""
    b, h, t, d = q.shape

    def blocks(x):  # (b, h, t, d) -> (b, h, t / window, window, d)
        return x.view(b, h, t // window, window, d)

    def pairs(x):  # with the block before: (b, h, t / window, 2 window, d)
        before = F.pad(blocks(x), (0, 0, 0, 0, 1, 0))[:, :, :-1]
        return torch.cat([before, blocks(x)], dim=3)

    now, past = torch.arange(window).unsqueeze(1), torch.arange(-window, window)
    seen = (past <= now) & (now - past < window)
    # There is no block before the first one.
    exists = (torch.arange(t // window) > 0).view(-1, 1, 1) | (past >= 0)
    z = sdpa(blocks(q), pairs(k), pairs(v), attn_mask=seen & exists)
    return z.view(b, h, t, d)


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
    fused = FusedMultiHeadAttention(D, D, CONTEXT, 0.0, HEADS)
    x = torch.randn(1, CONTEXT, D)
    listing = build("listing", CONTEXT)
    fused.load_state_dict(listing.state_dict())
    rows = []
    for t in POSITIONS:
        functions = {
            "fused, recomputed": lambda t=t: fused(x[:, :t]),
            "listing, recomputed": lambda t=t: listing(x[:, :t]),
        }
        cache = KeyValueCache()
        fused(x[:, : t - 1], cache=cache)
        functions["cached"] = lambda t=t, c=cache: one_step(fused, c, x, t)
        minimal = build("minimal", CONTEXT)
        room = torch.zeros(2, 1, HEADS, CONTEXT, D_HEAD)
        minimal(x[:, : t - 1], room)
        functions["minimal, cached"] = lambda t=t, a=minimal, r=room: a(
            x[:, t - 1 : t], r, t - 1
        )
        seconds = interleaved(functions, rounds, f"one more token, t = {t}")
        summary = summarize(seconds, base="cached")
        rows.append({"t": t, "steps": summary})
    return {"rows": rows}


@torch.no_grad()
def batched(rounds, t=1024):
    """Time one more token of b sequences: what reads parameters, what reads caches."""
    functions = {}
    for b in BATCHES:
        layer = build("minimal", t)
        x, heads = torch.randn(b, 1, D), torch.randn(b, HEADS, 1, D_HEAD)
        kept = torch.randn(2, b, HEADS, t, D_HEAD)
        four = (layer.W_query, layer.W_key, layer.W_value, layer.out_proj)
        functions[f"parameters {b}"] = lambda x=x, four=four: [part(x) for part in four]
        functions[f"cache {b}"] = lambda q=heads, kv=kept: sdpa(q, *kv)
    seconds = interleaved(functions, rounds, f"a batch, t = {t}")
    return {
        "t": t,
        "batches": list(BATCHES),
        "steps": {
            kind: summarize(
                {str(b): seconds[f"{kind} {b}"] for b in BATCHES}, base=str(BATCHES[0])
            )
            for kind in ("parameters", "cache")
        },
    }


def one_step(layer, cache, x, t):
    cache.length = t - 1  # forget the token of the round before
    return layer(x[:, t - 1 : t], cache=cache)
