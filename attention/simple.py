"""Section 3.3: self-attention without trainable weights."""

from __future__ import annotations

import torch

from attention import validate


def softmax_naive(x: torch.Tensor) -> torch.Tensor:
    """Turn scores into positive weights that sum to 1 along dimension 0.

    Section 3.3.1, straight from the formula: exp(x_i) / Σ_j exp(x_j). It overflows
    to NaN for large scores (above 88 in float32); ``torch.softmax`` avoids this by
    subtracting the largest score first.

    Args:
        x: floating-point scores, (t,) or any shape with at least one dimension.

    Returns:
        Weights in the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is not a floating-point tensor.
        ValueError: ``x`` has no dimensions or no entries.

    Example:
        >>> import attention, torch
        >>> attention.softmax_naive(torch.tensor([0.0, 0.0, 100.0]))
        tensor([0., 0., nan])
        >>> attention.softmax_naive(torch.tensor([1.0, 1.0]))
        tensor([0.5000, 0.5000])
    """
    validate.scores(x)
    return torch.exp(x) / torch.exp(x).sum(dim=0)


def simple_self_attention(x: torch.Tensor) -> torch.Tensor:
    """Replace each token by an average of all tokens, weighted by similarity.

    Section 3.3.2: scores ω = x xᵀ, weights α = softmax(ω) by row, context z = α x.
    Dot-product attention (Vaswani et al., 2017, section 3.2.1) where queries, keys
    and values are the inputs themselves and nothing is scaled.

    Args:
        x: floating-point token vectors, (t, d_in) or (b, t, d_in).

    Returns:
        Context vectors in the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is not a floating-point tensor.
        ValueError: ``x`` has the wrong number of dimensions or no tokens.

    Example:
        Two orthogonal tokens each keep most of themselves.

        >>> import attention, torch
        >>> attention.simple_self_attention(torch.tensor([[2.0, 0.0], [0.0, 2.0]]))
        tensor([[1.9640, 0.0360],
                [0.0360, 1.9640]])
    """
    validate.tokens(x, dims=(2, 3))
    attn_scores = x @ x.transpose(-2, -1)  # (…, t, d_in) @ (…, d_in, t) -> (…, t, t)
    attn_weights = torch.softmax(attn_scores, dim=-1)  # (…, t, t), each row sums to 1
    return attn_weights @ x  # (…, t, t) @ (…, t, d_in) -> (…, t, d_in)
