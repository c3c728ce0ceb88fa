"""Section 3.5: attention that cannot see the future."""

from __future__ import annotations

import torch
from torch import nn

from attention import validate
from attention.base import CausalModule
from attention.types import Call


class CausalAttention(CausalModule):
    """One head of self-attention whose tokens see only themselves and their past.

    Section 3.5.3; the mask of Vaswani et al. (2017), section 3.2.3.

    In ``torch.export``, bound a dynamic t by context_length - 1: PyTorch treats the
    whole mask as a case of its own.

    Args:
        d_in: width of a token on the way in.
        d_out: width of queries, keys and values, so d_k = d_out.
        context_length: the most tokens that one sequence may have.
        dropout: share of the attention weights that is dropped in training, [0, 1).
        qkv_bias: whether the three projections add a bias.

    Attributes:
        W_query, W_key, W_value: ``nn.Linear(d_in, d_out)``, made in this order.
        mask: buffer (context_length, context_length), 1 where a score is hidden.

    Raises:
        TypeError, ValueError: a size is no positive integer, or ``dropout`` is
            outside [0, 1).

    Example:
        What comes later changes nothing before it.

        >>> import attention, torch
        >>> layer = attention.CausalAttention(3, 2, context_length=6, dropout=0.0)
        >>> x = torch.randn(1, 6, 3)
        >>> torch.allclose(layer(x)[:, :4], layer(x[:, :4]), atol=1e-6)
        True
    """

    __call__: Call

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        validate.sizes(d_in=d_in, d_out=d_out, context_length=context_length)
        validate.dropout_rate(dropout)
        self.d_out = d_out
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        mask = torch.triu(torch.ones(context_length, context_length), diagonal=1)
        self.register_buffer("mask", mask)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Give each token the context vector of its past and itself.

        Args:
            x: token vectors (b, t, d_in), t ≤ context_length, in the weights' dtype.

        Returns:
            Context vectors (b, t, d_out).

        Raises:
            TypeError: ``x`` is no floating-point tensor.
            ValueError: ``x`` has another shape, no token, or too many.
        """
        validate.tokens(x, self.W_query.in_features, context_length=len(self.mask))
        validate.mask_is_there(self.mask, x)
        num_tokens = x.shape[1]
        queries: torch.Tensor = self.W_query(x)  # (b, t, d_in) -> (b, t, d_out)
        keys: torch.Tensor = self.W_key(x)
        values: torch.Tensor = self.W_value(x)
        attn_scores = queries @ keys.transpose(1, 2)  # (b, t, t)
        hidden = self.mask[:num_tokens, :num_tokens].bool()  # (t, t), True = future
        attn_scores.masked_fill_(hidden, -torch.inf)
        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)
        attn_weights = self.dropout(attn_weights)
        # (b, t, t) @ (b, t, d_out) -> (b, t, d_out)
        return attn_weights @ values  # type: ignore[no-any-return]
