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

    In ``torch.export``, limit a dynamic t to context_length - 1: PyTorch specializes
    for the full mask.

    Args:
        d_in: width of an input token.
        d_out: width of queries, keys and values; d_k = d_out.
        context_length: maximum number of tokens in a sequence.
        dropout: fraction of attention weights dropped in training, in [0, 1).
        qkv_bias: whether the three projections add a bias.

    Attributes:
        W_query, W_key, W_value: ``nn.Linear(d_in, d_out)``, created in this order.
        mask: buffer (context_length, context_length), 1 where a score is hidden.

    Raises:
        TypeError, ValueError: a size is not a positive integer, or ``dropout`` is
            outside [0, 1).

    Example:
        Later tokens don't change earlier outputs.

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
        """Compute a context vector for each token from its past and itself.

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
