"""Section 3.6: several attention heads side by side."""

from __future__ import annotations

import torch
from torch import nn

from attention import validate
from attention.base import CausalModule, Layer
from attention.causal import CausalAttention
from attention.types import Call


class MultiHeadAttentionWrapper(Layer):
    """Independent causal heads whose outputs are concatenated.

    Section 3.6.1; Vaswani et al. (2017), section 3.2.2, without the output
    projection. Here ``d_out`` is the width of one head: the result is
    num_heads · d_out wide.

    In ``torch.export``, limit a dynamic t to context_length - 1: PyTorch specializes
    for the full mask.

    Args:
        d_in: width of an input token.
        d_out: width of each head's output.
        context_length: maximum number of tokens in a sequence.
        dropout: fraction of attention weights dropped in training, in [0, 1).
        num_heads: h, the number of heads.
        qkv_bias: whether the projections of the heads add a bias.

    Attributes:
        heads: ``nn.ModuleList`` of h :class:`CausalAttention`, created in order.

    Raises:
        TypeError, ValueError: a size is not a positive integer, or ``dropout`` is
            outside [0, 1).

    Example:
        Three heads, each 2 wide, make a result 6 wide.

        >>> import attention, torch
        >>> layer = attention.MultiHeadAttentionWrapper(3, 2, 8, 0.0, num_heads=3)
        >>> layer(torch.randn(1, 8, 3)).shape
        torch.Size([1, 8, 6])
    """

    __call__: Call

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        validate.sizes(num_heads=num_heads)
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)
            for _ in range(num_heads)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute the context vectors of all heads, side by side.

        Args:
            x: token vectors (b, t, d_in), t ≤ context_length, in the parameters' dtype.

        Returns:
            Context vectors (b, t, h · d_out).

        Raises:
            TypeError: ``x`` is not a floating-point tensor, or has another dtype than
                the parameters.
            ValueError: ``x`` has the wrong shape, no tokens, or too many, or is on
                another device.
        """
        return torch.cat([head(x) for head in self.heads], dim=-1)  # (b, t, h · d_out)


class MultiHeadAttention(CausalModule):
    """Causal multi-head attention with one projection that is split into heads.

    Section 3.6.2; Vaswani et al. (2017), section 3.2.2. Here ``d_out`` is the width
    of the whole result, and each head gets d_head = d_out / num_heads of it.

    In ``torch.export``, limit a dynamic t to context_length - 1: PyTorch specializes
    for the full mask.

    Args:
        d_in: width of an input token.
        d_out: width of the result, divisible by ``num_heads``.
        context_length: maximum number of tokens in a sequence.
        dropout: fraction of attention weights dropped in training, in [0, 1).
        num_heads: h, the number of heads.
        qkv_bias: whether the query, key and value projections add a bias.

    Attributes:
        W_query, W_key, W_value: ``nn.Linear(d_in, d_out)``, created in this order.
        out_proj: ``nn.Linear(d_out, d_out)`` with bias, created last.
        mask: buffer (context_length, context_length), 1 where a score is hidden.
        d_out, num_heads, head_dim: integers; head_dim is d_head.

    Raises:
        TypeError, ValueError: a size is not a positive integer, ``num_heads`` does not
            divide ``d_out``, or ``dropout`` is outside [0, 1).

    Example:
        >>> import attention, torch
        >>> layer = attention.MultiHeadAttention(3, 6, 8, 0.0, num_heads=3)
        >>> layer.head_dim
        2
        >>> layer(torch.randn(1, 8, 3)).shape
        torch.Size([1, 8, 6])
    """

    __call__: Call

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        validate.sizes(d_in=d_in, d_out=d_out, context_length=context_length)
        validate.sizes(num_heads=num_heads)
        validate.divisible(d_out=d_out, num_heads=num_heads)
        validate.dropout_rate(dropout)
        self.d_out = d_out
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        mask = torch.triu(torch.ones(context_length, context_length), diagonal=1)
        self.register_buffer("mask", mask)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute a context vector for each token from all heads.

        Args:
            x: token vectors (b, t, d_in), t ≤ context_length, in the parameters' dtype.

        Returns:
            Context vectors (b, t, d_out).

        Raises:
            TypeError: ``x`` is not a floating-point tensor, or has another dtype than
                the parameters.
            ValueError: ``x`` has the wrong shape, no tokens, or too many, or is on
                another device.
        """
        validate.tokens(
            x, self.W_query.in_features, (3,), len(self.mask), self.W_query.weight
        )
        validate.mask_is_there(self.mask, x)
        b, num_tokens, _ = x.shape
        queries: torch.Tensor = self.W_query(x)  # (b, t, d_in) -> (b, t, d_out)
        keys: torch.Tensor = self.W_key(x)
        values: torch.Tensor = self.W_value(x)

        # Split the last axis into heads, then bring the heads before the tokens:
        # (b, t, d_out) -> (b, t, h, d_head) -> (b, h, t, d_head)
        split = (b, num_tokens, self.num_heads, self.head_dim)
        queries = queries.view(split).transpose(1, 2)
        keys = keys.view(split).transpose(1, 2)
        values = values.view(split).transpose(1, 2)

        attn_scores = queries @ keys.transpose(2, 3)  # (b, h, t, t)
        hidden = self.mask[:num_tokens, :num_tokens].bool()  # (t, t), True = future
        attn_scores.masked_fill_(hidden, -torch.inf)
        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)
        attn_weights = self.dropout(attn_weights)

        context = (attn_weights @ values).transpose(1, 2)  # (b, t, h, d_head)
        # Join the heads again; view needs numbers that are evenly spaced in memory.
        context = context.contiguous().view(b, num_tokens, self.d_out)
        return self.out_proj(context)  # type: ignore[no-any-return]
