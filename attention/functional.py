"""Attention itself: masks, weights, the weighted sum of values, rotary positions.

The classes of sections 3.3 to 3.6 spell out this arithmetic because that's what they
teach; figures, labs and models call it here. In masks, True means hidden, as in
``nn.MultiheadAttention`` and unlike ``scaled_dot_product_attention``.
"""

from __future__ import annotations

import torch


def causal_mask(
    t_q: int,
    t_k: int | None = None,
    device: torch.device | str | None = None,
    window: int | None = None,
) -> torch.Tensor:
    """Hide the future: every key that comes later than the query.

    Args:
        t_q: number of queries. They are the last of the t_k tokens, as with a cache.
        t_k: number of keys; ``None`` means as many as queries.
        device: where to create the mask; ``None`` means PyTorch's default.
        window: maximum number of keys a query sees, its own and those right before
            (a sliding window: Beltagy et al., 2020); ``None`` hides none of the past.

    Returns:
        Booleans (t_q, t_k), True where a score is hidden.

    Example:
        >>> from attention.functional import causal_mask
        >>> causal_mask(2, 3)
        tensor([[False, False,  True],
                [False, False, False]])
    """
    t_k = t_q if t_k is None else t_k
    ones = torch.ones(t_q, t_k, dtype=torch.bool, device=device)
    hidden = ones.triu(t_k - t_q + 1)
    return hidden if window is None else hidden | ones.tril(t_k - t_q - window)


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
            hidden; ``None`` hides nothing. If nothing is
            left to see, the query's weights are NaN.
        scale: factor for the scores; ``None`` divides them by √d_k.

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
    """Compute each query's context vector, the sum of values by attention weight.

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


def rotary_angles(
    positions: torch.Tensor, d_head: int, theta: float = 10_000.0
) -> torch.Tensor:
    """Compute the angles by which rotary positions turn queries and keys.

    Su et al. (2021), section 3.2.2: at position p, pair i of a head's coordinates
    turns by p · theta^(-2i / d_head).

    Args:
        positions: position of each token in its sequence, (…, t).
        d_head: width of a head, even.
        theta: base of the frequencies, ``rope_theta`` in a model's config.

    Returns:
        Angles in radians, (…, t, d_head / 2), float32, or float64 for positions in
        float64.

    Example:
        >>> import torch
        >>> from attention.functional import rotary_angles
        >>> rotary_angles(torch.arange(3), d_head=4)
        tensor([[0.0000, 0.0000],
                [1.0000, 0.0100],
                [2.0000, 0.0200]])
    """
    # Half precision cannot tell large positions apart.
    exact = torch.promote_types(positions.dtype, torch.float32)
    i = torch.arange(0, d_head, 2, dtype=exact, device=positions.device)
    return positions[..., None] * theta ** (-i / d_head)


def rotate(
    x: torch.Tensor, angles: torch.Tensor, interleaved: bool = False
) -> torch.Tensor:
    """Turn each pair of coordinates of a query or key by its angle.

    Su et al. (2021), equation 34. A score then depends only on how far apart the
    query and the key are.

    Args:
        x: queries or keys (…, t, d_head), d_head even.
        angles: result of :func:`rotary_angles`, (t, d_head / 2), or with leading
            dimensions that broadcast to those of ``x``.
        interleaved: which coordinates form a pair. ``False``: i and i + d_head / 2,
            the two halves, as in GPT-NeoX and in ``transformers``. ``True``: 2i and
            2i + 1, as in the paper, GPT-J and Meta's own Llama checkpoints.

    Returns:
        The same shape and dtype as ``x``.

    Raises:
        RuntimeError: from PyTorch, if the shapes do not fit.

    Example:
        >>> import torch
        >>> from attention.functional import rotary_angles, rotate
        >>> x = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
        >>> rotate(x, rotary_angles(torch.arange(2), d_head=2))
        tensor([[1.0000, 0.0000],
                [0.5403, 0.8415]])
    """
    cos, sin = angles.cos(), angles.sin()
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else x.chunk(2, dim=-1)
    turned = a * cos - b * sin, b * cos + a * sin  # (…, t, d_head / 2) each
    if interleaved:
        return torch.stack(turned, dim=-1).flatten(-2).to(x.dtype)
    return torch.cat(turned, dim=-1).to(x.dtype)
