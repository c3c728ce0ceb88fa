"""Section 3.6 at full speed: fused attention, a key-value cache, grouped heads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional as F

from attention import validate
from attention.cache import KeyValueCache
from attention.functional import causal_mask
from attention.validate import Condition, require

# Since 2.5 the kernel lets several query heads read one key head without a copy.
SHARES_HEADS = torch.__version__ >= "2.5"

ONE_SOURCE = Condition(
    ValueError,
    "cache and memory cannot be given together: a cache keeps the tokens of x, but "
    "memory takes their place. Pass one of the two.",
)
CAUSAL = Condition(
    ValueError,
    "this layer has causal=False, so every new token changes what the earlier ones see,"
    " and nothing can be cached. Leave cache out, or build the layer with causal=True.",
)
MEMORY = Condition(
    ValueError,
    "memory must have the shape (b, t_k, d_in) with b={b} as in x, d_in={d_in} and at "
    "least one token, but got {shape}. Pass one sequence of token vectors for each "
    "sequence of x.",
)
BOOLEANS = Condition(
    TypeError,
    "key_padding_mask must hold booleans, but its dtype is {dtype}. True means padding,"
    " so a mask of 1 for real tokens becomes (mask == 0).",
)
PADDING = Condition(
    ValueError,
    "key_padding_mask must have the shape (b, t_k) = {expected}, but got {shape}. It "
    "covers every key: the tokens of x, of memory in its place, or of the cache and "
    "then x.",
)


class FusedMultiHeadAttention(nn.Module):
    """The function of :class:`~attention.MultiHeadAttention`, computed faster.

    Section 3.6.2; Vaswani et al. (2017), section 3.2.2. Scores, mask, softmax and
    the weighted sum run in one kernel, ``scaled_dot_product_attention``, which works
    on tiles and never stores the t × t scores (FlashAttention: Dao et al., 2022).

    With fewer key and value heads than query heads, several queries share one key
    (grouped-query attention: Ainslie et al., 2023; with one: multi-query attention,
    Shazeer, 2019). Query head i then reads key head i // (h / h_kv).

    In training on a processor without a kernel for dropout, such as a CPU, PyTorch
    stores the weights after all when ``dropout`` is above 0.

    The fused kernels have no forward-mode derivative (``torch.func.jvp``) and no
    second one. Where either is needed, choose the kernel that is written in single
    steps: ``with sdpa_kernel(SDPBackend.MATH)``, both from ``torch.nn.attention``,
    around the forward and the backward pass.

    There are no rotary positions: what tells places apart is added to ``x`` before.

    Args:
        d_in: width of a token on the way in.
        d_out: width of the result, divisible by ``num_heads``.
        context_length: the most tokens that one sequence may have.
        dropout: share of the attention weights that is dropped in training, [0, 1).
        num_heads: h, the number of query heads.
        qkv_bias: whether the query, key and value projections add a bias.
        num_kv_heads: h_kv, the number of key and value heads, a divisor of
            ``num_heads``; ``None`` means as many as query heads.
        causal: ``False`` lets every token see all others, as an encoder does.

    Attributes:
        W_query: ``nn.Linear(d_in, d_out)``, made first.
        W_key, W_value: ``nn.Linear(d_in, h_kv · d_head)``, made in this order.
        out_proj: ``nn.Linear(d_out, d_out)`` with bias, made last.
        d_out, num_heads, num_kv_heads, head_dim, context_length: integers.
        causal: whether the future is hidden.

    Raises:
        TypeError, ValueError: a size is no positive integer, ``num_heads`` does not
            divide ``d_out``, ``num_kv_heads`` does not divide ``num_heads``, or
            ``dropout`` is outside [0, 1).

    Example:
        It loads the state dict of the listing, and gives the same result. Its own
        state dict holds no mask; the listing does not miss it.

        >>> import attention, torch
        >>> listing = attention.MultiHeadAttention(3, 6, 8, 0.0, num_heads=3)
        >>> fused = attention.FusedMultiHeadAttention(3, 6, 8, 0.0, num_heads=3)
        >>> fused.load_state_dict(listing.state_dict())
        <All keys matched successfully>
        >>> x = torch.randn(1, 8, 3)
        >>> torch.allclose(fused(x), listing(x), atol=1e-6)
        True
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
        num_kv_heads: int | None = None,
        causal: bool = True,
    ) -> None:
        super().__init__()
        if num_kv_heads is None:
            num_kv_heads = num_heads
        validate.sizes(d_in=d_in, d_out=d_out, context_length=context_length)
        validate.sizes(num_heads=num_heads, num_kv_heads=num_kv_heads)
        validate.divisible(d_out=d_out, num_heads=num_heads)
        validate.divisible(num_heads=num_heads, num_kv_heads=num_kv_heads)
        validate.dropout_rate(dropout)
        self.d_out = d_out
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.head_dim = d_out // num_heads
        self.context_length = context_length
        self.causal = causal
        d_kv = num_kv_heads * self.head_dim
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_kv, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_kv, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    if TYPE_CHECKING:

        def __call__(
            self,
            x: torch.Tensor,
            cache: KeyValueCache | None = None,
            memory: torch.Tensor | None = None,
            key_padding_mask: torch.Tensor | None = None,
        ) -> torch.Tensor:
            """As :meth:`forward`; ``nn.Module`` itself says ``Any``."""
            ...

    def forward(
        self,
        x: torch.Tensor,
        cache: KeyValueCache | None = None,
        memory: torch.Tensor | None = None,
        key_padding_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Give each token a context vector that all heads have contributed to.

        Args:
            x: token vectors (b, t_q, d_in), in the dtype of the weights.
            cache: a :class:`~attention.KeyValueCache`. Its tokens come before ``x``
                and the call adds those of ``x``: first the prompt, then one token at
                a time. For generation, under ``torch.no_grad()``.
            memory: token vectors (b, t_k, d_in) to take keys and values from instead
                of ``x``: cross-attention. All of them are seen; nothing is masked.
            key_padding_mask: booleans (b, t_k), True where a key is padding that no
                query may see, as in ``nn.MultiheadAttention``. A query that is left
                with nothing to see gets zeros from every head (PyTorch 2.5 or later).

        Returns:
            Context vectors (b, t_q, d_out).

        Raises:
            TypeError: ``x`` or ``memory`` is no floating-point tensor,
                ``key_padding_mask`` no boolean one, or ``cache`` no
                :class:`~attention.KeyValueCache`.
            ValueError: a tensor has another shape, no token, or too many; ``cache``
                does not fit or has no room; both ``cache`` and ``memory`` are given,
                or a ``cache`` to a layer with ``causal=False``.
            RuntimeError: ``cache`` is given while gradients are on.
        """
        validate.tokens(x, self.W_query.in_features, context_length=self.context_length)
        self._check_source(x, cache, memory)
        source = x if memory is None else memory
        queries = self._split(self.W_query(x), self.num_heads)  # (b, h, t_q, d_head)
        keys = self._split(self.W_key(source), self.num_kv_heads)
        values = self._split(self.W_value(source), self.num_kv_heads)
        if cache is not None:
            # (b, h_kv, t, d_head) -> (b, h_kv, t_k, d_head)
            keys, values = cache.append(self, keys, values, self.context_length)

        causal = self.causal and memory is None
        options = _what_is_seen(queries, keys, causal, key_padding_mask)
        if self.num_kv_heads != self.num_heads and SHARES_HEADS:
            options["enable_gqa"] = True
        elif self.num_kv_heads != self.num_heads:
            group = self.num_heads // self.num_kv_heads
            keys = keys.repeat_interleave(group, dim=1)  # (b, h, t_k, d_head)
            values = values.repeat_interleave(group, dim=1)
        dropout = self.dropout.p if self.training else 0.0
        context = F.scaled_dot_product_attention(
            queries, keys, values, dropout_p=dropout, **options
        )  # (b, h, t_q, d_head)
        # (b, h, t_q, d_head) -> (b, t_q, h, d_head) -> (b, t_q, d_out)
        joined = context.transpose(1, 2).reshape(*x.shape[:2], self.d_out)
        mixed: torch.Tensor = self.out_proj(joined)
        return mixed

    def _check_source(
        self,
        x: torch.Tensor,
        cache: KeyValueCache | None,
        memory: torch.Tensor | None,
    ) -> None:
        if cache is not None:
            advice = "Pass cache=KeyValueCache(), one for each layer."
            validate.instance("cache", cache, KeyValueCache, advice)
            require(memory is None, ONE_SOURCE)
            require(self.causal, CAUSAL)
        if memory is not None:
            advice = "Pass token vectors (b, t_k, d_in)."
            validate.instance("memory", memory, torch.Tensor, advice)
            validate.floats("memory", memory, "Convert it with memory.float().")
            d_in, shape = self.W_key.in_features, tuple(memory.shape)
            fits = len(shape) == 3 and (shape[0], shape[2]) == (len(x), d_in)
            require(fits and shape[1] > 0, MEMORY, b=len(x), d_in=d_in, shape=shape)

    def _split(self, x: torch.Tensor, num_heads: int) -> torch.Tensor:
        # (b, t, n · d_head) -> (b, t, n, d_head) -> (b, n, t, d_head)
        b, num_tokens, _ = x.shape
        return x.view(b, num_tokens, num_heads, self.head_dim).transpose(1, 2)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *rest: Any
    ) -> None:
        # MultiHeadAttention saves its mask. This class needs none: a t × t tensor is
        # what it sets out to avoid. The dict is this call's own, so popping changes
        # no checkpoint.
        state_dict.pop(prefix + "mask", None)
        super()._load_from_state_dict(state_dict, prefix, *rest)


def _what_is_seen(
    queries: torch.Tensor,
    keys: torch.Tensor,
    causal: bool,
    key_padding_mask: torch.Tensor | None,
) -> dict[str, Any]:
    """Say to ``scaled_dot_product_attention`` what each query may see.

    In its masks True means seen, the opposite of ours.
    """
    b, t_q, t_k = queries.shape[0], queries.shape[2], keys.shape[2]
    if key_padding_mask is None and causal and t_q == t_k:
        return {"is_causal": True}
    seen = None
    if causal and t_q > 1:  # a single token after a cache is the newest: it sees all
        # is_causal would align query 0 with key 0, but after a cache query 0 is at
        # position t_k - t_q.
        seen = ~causal_mask(t_q, t_k, queries.device)
    if key_padding_mask is not None:
        _check_padding(key_padding_mask, (b, t_k))
        real = ~key_padding_mask[:, None, None]  # (b, 1, 1, t_k)
        seen = real if seen is None else seen & real
    return {"attn_mask": seen}


def _check_padding(mask: torch.Tensor, expected: tuple[int, int]) -> None:
    advice = "Pass booleans (b, t_k), True where a token is padding."
    validate.instance("key_padding_mask", mask, torch.Tensor, advice)
    require(mask.dtype == torch.bool, BOOLEANS, dtype=mask.dtype)
    shape = tuple(mask.shape)
    require(shape == expected, PADDING, expected=expected, shape=shape)
