"""Attention itself: the weights, and the weighted sum of values.

The classes of sections 3.3 to 3.6 write these lines out, because that is what they
teach. Figures, labs and models call them here. What a mask hides is True, as in
``nn.MultiheadAttention`` and the opposite of ``scaled_dot_product_attention``.
"""

from __future__ import annotations

import torch


def causal_mask(
    t_q: int, t_k: int | None = None, device: torch.device | str | None = None
) -> torch.Tensor:
    """Hide the future: every key that comes later than the query.

    Args:
        t_q: the number of queries. They are the last of the t_k tokens, as they are
            after a cache.
        t_k: the number of keys; ``None`` means as many as queries.
        device: where to make the mask; ``None`` means PyTorch's default.

    Returns:
        Booleans (t_q, t_k), True where a score is hidden.

    Example:
        >>> from attention.functional import causal_mask
        >>> causal_mask(2, 3)
        tensor([[False, False,  True],
                [False, False, False]])
    """
    t_k = t_q if t_k is None else t_k
    hidden = torch.ones(t_q, t_k, dtype=torch.bool, device=device)
    return hidden.triu(t_k - t_q + 1)


def attention_weights(
    queries: torch.Tensor,
    keys: torch.Tensor,
    hidden: torch.Tensor | None = None,
    scale: float | None = None,
) -> torch.Tensor:
    """Turn queries and keys into weights that sum to 1 over the keys.

    Vaswani et al. (2017), equation 1 without its values: softmax(Q Kᵀ / √d_k).

    Args:
        queries: floating-point queries (…, t_q, d_k), or one alone, (d_k,).
        keys: (…, t_k, d_k), in the dtype of the queries.
        hidden: booleans that broadcast to (…, t_q, t_k), True where a score is
            hidden; ``None`` hides nothing. With nothing left to see, a query's
            weights are NaN.
        scale: what to multiply the scores by; ``None`` divides them by √d_k.

    Returns:
        Weights (…, t_q, t_k), or (t_k,) for one query.

    Raises:
        RuntimeError: from PyTorch, if the shapes or dtypes do not fit.

    Example:
        >>> import torch
        >>> from attention.functional import attention_weights, causal_mask
        >>> x = torch.tensor([[2.0, 0.0], [0.0, 2.0]])
        >>> attention_weights(x, x, hidden=causal_mask(2))
        tensor([[1.0000, 0.0000],
                [0.0558, 0.9442]])
    """
    scores = queries @ keys.transpose(-2, -1)  # (…, t_q, t_k)
    scores = scores / keys.shape[-1] ** 0.5 if scale is None else scores * scale
    if hidden is not None:
        scores = scores.masked_fill(hidden, -torch.inf)
    return torch.softmax(scores, dim=-1)


def attend(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    hidden: torch.Tensor | None = None,
    scale: float | None = None,
) -> torch.Tensor:
    """Give each query its context vector: the values, summed by attention weight.

    Vaswani et al. (2017), equation 1: softmax(Q Kᵀ / √d_k) V.

    Args:
        queries: (…, t_q, d_k).
        keys: (…, t_k, d_k).
        values: one for each key, (…, t_k, d_out).
        hidden: as in :func:`attention_weights`.
        scale: as in :func:`attention_weights`.

    Returns:
        Context vectors (…, t_q, d_out).

    Raises:
        RuntimeError: from PyTorch, if the shapes or dtypes do not fit.

    Example:
        >>> import torch
        >>> from attention.functional import attend, causal_mask
        >>> x = torch.tensor([[2.0, 0.0], [0.0, 2.0]])
        >>> attend(x, x, x, hidden=causal_mask(2))
        tensor([[2.0000, 0.0000],
                [0.1116, 1.8884]])
    """
    # (…, t_q, t_k) @ (…, t_k, d_out) -> (…, t_q, d_out)
    return attention_weights(queries, keys, hidden, scale) @ values
