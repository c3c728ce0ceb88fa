"""What is measured against what: the same function, from the same weights.

Only the floor computes something else: the matrix products that all others have in
common, and nothing around them.
"""

import torch
from torch import nn
from torch.nn import functional as F

from attention import (
    FusedMultiHeadAttention,
    MultiHeadAttention,
    MultiHeadAttentionWrapper,
    convert,
)

D, HEADS = 768, 12  # GPT-2 small
D_HEAD = D // HEADS
SEED = 123
# What is done to the listing, one thing after the other.
STEPS = {
    "combined": (),
    "queries": ("queries",),
    "added": ("queries", "added"),
    "sdpa": ("fused",),
}


class Floor:
    """The matrix products alone: no mask, no softmax, no moving of heads.

    Results go into memory that is there already, and nothing is recorded for
    gradients: backward consists of the two products that each product asks for.
    """

    def __init__(self, b, t):
        tokens, weight = torch.randn(b * t, D), torch.randn(D, D)
        heads = torch.randn(b * HEADS, t, D_HEAD)
        weights = torch.randn(b * HEADS, t, t)
        projections = [(tokens, weight)] * 4
        pairs = [*projections, (heads, heads.mT), (weights, heads)]
        self.products = [(a, c, a @ c) for a, c in pairs]
        self.gradients = [(torch.empty_like(a), torch.empty_like(c)) for a, c in pairs]

    def forward(self):
        """Compute three projections, scores, weighted sum and output projection."""
        for a, c, result in self.products:
            torch.matmul(a, c, out=result)

    def forward_backward(self):
        """Compute the gradients of all factors, too."""
        self.forward()
        for (a, c, result), (a_grad, c_grad) in zip(
            self.products, self.gradients, strict=True
        ):
            # Any numbers of the right shape do as the gradient of a result.
            torch.matmul(result, c.mT, out=a_grad)
            torch.matmul(a.mT, result, out=c_grad)


class Combined(nn.Module):
    """The listing, made faster one step at a time.

    Args:
        t: the most tokens of a sequence.
        steps: which steps are taken, of "queries" (they are divided, not the scores),
            "added" (the mask is added, not filled in) and "fused" (PyTorch's kernel,
            which does both by itself). One linear layer for queries, keys and values
            is the first step, and taken always.
    """

    def __init__(self, t, steps=()):
        super().__init__()
        self.steps = steps
        self.qkv = nn.Linear(D, 3 * D, bias=False)
        self.out_proj = nn.Linear(D, D)
        mask = torch.triu(torch.ones(t, t), diagonal=1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):  # noqa: D102
        b, t, _ = x.shape
        qkv = self.qkv(x).view(b, t, 3, HEADS, D_HEAD)
        context = self.attend(*qkv.permute(2, 0, 3, 1, 4))  # (b, h, t, d_head) each
        return self.out_proj(context.transpose(1, 2).reshape(b, t, D))

    def attend(self, queries, keys, values):
        """Give the context of all heads, (b, h, t, d_head)."""
        if "fused" in self.steps:
            return F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        t, scale = queries.shape[2], 1.0
        if "queries" in self.steps:
            queries = queries / D_HEAD**0.5
        else:
            scale = D_HEAD**0.5
        scores = queries @ keys.transpose(2, 3)
        hidden = self.mask[:t, :t].bool()
        if "added" in self.steps:
            scores += torch.where(hidden, -torch.inf, 0.0)
        else:
            scores.masked_fill_(hidden, -torch.inf)
        if scale != 1.0:
            scores = scores / scale
        return torch.softmax(scores, dim=-1) @ values


class Minimal(nn.Module):
    """What a reader would write: four linear layers around PyTorch's kernel."""

    def __init__(self):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (
            nn.Linear(D, D, bias=False) for _ in range(3)
        )
        self.out_proj = nn.Linear(D, D)

    def split(self, x):
        """Give each head its features: (b, t, D) -> (b, h, t, d_head)."""
        return x.view(*x.shape[:2], HEADS, D_HEAD).transpose(1, 2)

    def forward(self, x, kept=None, past=0):
        """Compute the layer; with ``kept``, keys and values (2, b, h, t, d_head)."""
        queries = self.split(self.W_query(x))
        keys, values = self.split(self.W_key(x)), self.split(self.W_value(x))
        if kept is not None:
            here = past + x.shape[1]
            kept[0, :, :, past:here], kept[1, :, :, past:here] = keys, values
            keys, values = kept[:, :, :, :here]
        context = F.scaled_dot_product_attention(
            queries, keys, values, is_causal=x.shape[1] > 1
        )
        return self.out_proj(context.transpose(1, 2).reshape(x.shape))


class TorchAttention(nn.Module):
    """``nn.MultiheadAttention``, with its causal mask.

    PyTorch computes it in one of two ways. Without gradients it takes its *fast path*,
    unless that is switched off.
    """

    def __init__(self, context_length, need_weights, fast_path=True):
        super().__init__()
        self.inner = nn.MultiheadAttention(D, HEADS, batch_first=True)
        mask = torch.ones(context_length, context_length, dtype=torch.bool).triu(1)
        self.register_buffer("mask", mask)
        self.need_weights, self.fast_path = need_weights, fast_path

    def forward(self, x):  # noqa: D102
        mask, options = self.mask[: x.shape[1], : x.shape[1]], {}
        if not self.need_weights:
            options = {"is_causal": True}
        torch.backends.mha.set_fastpath_enabled(self.fast_path)
        try:
            return self.inner(
                x, x, x, attn_mask=mask, need_weights=self.need_weights, **options
            )[0]
        finally:
            torch.backends.mha.set_fastpath_enabled(True)


def build(name, t):
    """Build one contestant for up to t tokens."""
    torch.manual_seed(SEED)
    listing = MultiHeadAttention(D, D, t, 0.0, HEADS)
    nn.init.zeros_(listing.out_proj.bias)
    state = listing.state_dict()
    if name in ("listing", "fused"):
        kinds = {"listing": MultiHeadAttention, "fused": FusedMultiHeadAttention}
        layer = kinds[name](D, D, t, 0.0, HEADS)
        layer.load_state_dict(state)
    elif name in STEPS:
        layer = Combined(t, STEPS[name])
        layer.load_state_dict(convert.from_ours(state, convert.combined()))
    elif name in ("torch", "torch_slow", "torch_weights"):
        layer = TorchAttention(t, name == "torch_weights", name != "torch_slow")
        layer.inner.load_state_dict(convert.from_ours(state, convert.TORCH))
    elif name == "minimal":
        layer = Minimal()
        state.pop("mask", None)
        layer.load_state_dict(state)
    else:
        # The wrapper has no output projection; it gets one, to do the same work.
        wrapper = MultiHeadAttentionWrapper(D, D_HEAD, t, 0.0, HEADS)
        no_output = dict(state)
        no_output["out_proj.weight"] = torch.eye(D)
        wrapper.load_state_dict(convert.from_ours(no_output, convert.wrapper(HEADS)))
        layer = nn.Sequential(wrapper, listing.out_proj)
    return layer


TORCH = ("torch", "torch_slow", "torch_weights")
NAMES = ("listing", *STEPS, "fused", "minimal", "wrapper", *TORCH)
