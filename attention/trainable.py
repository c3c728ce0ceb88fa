"""Section 3.4: self-attention with trainable weights."""

from __future__ import annotations

import torch
from torch import nn

from attention import validate
from attention.base import DrawnModule, Layer
from attention.types import Call


class SelfAttention_v1(DrawnModule):
    """Scaled dot-product self-attention with plain parameters.

    Section 3.4.2; Vaswani et al. (2017), equation 1: softmax(Q Kᵀ / √d_k) V.

    Args:
        d_in: width of an input token.
        d_out: width of queries, keys and values; d_k = d_out.

    Attributes:
        W_query, W_key, W_value: parameters (d_in, d_out), drawn in this order with
            ``torch.rand``, uniform over [0, 1).

    Raises:
        TypeError, ValueError: a size is not a positive integer.

    Example:
        >>> import attention, torch
        >>> layer = attention.SelfAttention_v1(d_in=3, d_out=2)
        >>> layer(torch.randn(6, 3)).shape
        torch.Size([6, 2])
    """

    __call__: Call

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        validate.sizes(d_in=d_in, d_out=d_out)
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute a context vector for each token.

        Args:
            x: token vectors (t, d_in) or (b, t, d_in), in the dtype of the parameters.

        Returns:
            Context vectors (t, d_out) or (b, t, d_out).

        Raises:
            TypeError: ``x`` is not a floating-point tensor, or has another dtype than
                the parameters.
            ValueError: ``x`` has the wrong shape or no tokens, or is on another device.
        """
        validate.tokens(x, self.W_query.shape[0], (2, 3), weight=self.W_query)
        queries = x @ self.W_query  # (…, t, d_in) @ (d_in, d_out) -> (…, t, d_out)
        keys = x @ self.W_key
        values = x @ self.W_value
        attn_scores = queries @ keys.transpose(-2, -1)  # (…, t, t)
        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)
        return attn_weights @ values  # (…, t, t) @ (…, t, d_out) -> (…, t, d_out)


class SelfAttention_v2(Layer):
    """Scaled dot-product self-attention with linear layers.

    Section 3.4.2; Vaswani et al. (2017), equation 1. The same function as
    :class:`SelfAttention_v1`, but ``nn.Linear`` stores each matrix transposed,
    (d_out, d_in), and draws it uniformly within ±1/√d_in.

    Args:
        d_in: width of an input token.
        d_out: width of queries, keys and values; d_k = d_out.
        qkv_bias: whether the three layers add a bias.

    Attributes:
        W_query, W_key, W_value: ``nn.Linear(d_in, d_out)``, created in this order.

    Raises:
        TypeError, ValueError: a size is not a positive integer.

    Example:
        One class's parameters, transposed, are the other's.

        >>> import attention, torch
        >>> v1, v2 = attention.SelfAttention_v1(3, 2), attention.SelfAttention_v2(3, 2)
        >>> state = v1.state_dict()
        >>> v2.load_state_dict({f"{name}.weight": w.T for name, w in state.items()})
        <All keys matched successfully>
        >>> x = torch.randn(6, 3)
        >>> torch.allclose(v1(x), v2(x), atol=1e-6)
        True
    """

    __call__: Call

    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        validate.sizes(d_in=d_in, d_out=d_out)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute a context vector for each token.

        Args:
            x: token vectors (t, d_in) or (b, t, d_in), in the dtype of the parameters.

        Returns:
            Context vectors (t, d_out) or (b, t, d_out).

        Raises:
            TypeError: ``x`` is not a floating-point tensor, or has another dtype than
                the parameters.
            ValueError: ``x`` has the wrong shape or no tokens, or is on another device.
        """
        validate.tokens(x, self.W_query.in_features, (2, 3), weight=self.W_query.weight)
        queries: torch.Tensor = self.W_query(x)  # (…, t, d_in) -> (…, t, d_out)
        keys: torch.Tensor = self.W_key(x)
        values: torch.Tensor = self.W_value(x)
        attn_scores = queries @ keys.transpose(-2, -1)  # (…, t, t)
        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)
        return attn_weights @ values  # (…, t, t) @ (…, t, d_out) -> (…, t, d_out)
