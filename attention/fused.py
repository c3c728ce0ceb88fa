"""Section 3.6 at full speed: PyTorch's fused kernel, and what today's models add.

That is a key-value cache, grouped heads, rotary positions and a sliding window.
"""

from __future__ import annotations

import warnings
from numbers import Real
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional as F

from attention import validate
from attention.base import explain_weights
from attention.cache import KeyValueCache
from attention.functional import causal_mask, rotary_angles, rotate

# Since PyTorch 2.5 several query heads can read one key head without a copy of it.
SHARES_HEADS = torch.__version__ >= "2.5"
# With fewer queries per call, the calls cost more than the skipped scores save.
SMALLEST_CHUNK = 64
# Arguments of nn.MultiheadAttention, and what to write here instead.
ELSEWHERE = {
    "attn_mask": "A causal layer hides the future itself; for other masks, use "
    "key_padding_mask in the call or window when you build the layer.",
    "is_causal": "Build the layer with causal=True, the default, or causal=False.",
    "need_weights": "The kernel doesn't store attention weights. "
    "attention.functional.attention_weights computes them.",
}
ELSEWHERE["average_attn_weights"] = ELSEWHERE["need_weights"]


class FusedMultiHeadAttention(nn.Module):
    """The function of :class:`~attention.MultiHeadAttention`, computed faster.

    Section 3.6.2; Vaswani et al. (2017), section 3.2.2. Scores, mask, softmax and
    the weighted sum run in one kernel, ``scaled_dot_product_attention``, which works
    on tiles and never stores t × t scores (FlashAttention: Dao et al., 2022). On CUDA,
    PyTorch has no such kernel for grouped heads in float32 or with a mask, and stores
    the scores after all.

    With fewer key and value heads than query heads, several queries share one key
    (grouped-query attention: Ainslie et al., 2023; with one: multi-query attention,
    Shazeer, 2019). Query head i then reads key head i // (h / h_kv).

    When training with dropout on a device without a kernel for it, such as a CPU,
    PyTorch stores the attention weights after all.

    The fused kernels support neither forward-mode derivatives (``torch.func.jvp``) nor
    second ones. If you need either, use the step-by-step kernel for the forward and
    backward passes: ``with sdpa_kernel(SDPBackend.MATH)``, both from
    ``torch.nn.attention``.

    With ``rope_theta`` the layer turns queries and keys by their positions (Su et al.,
    2021); without it, add positions to ``x``. With ``window`` each token sees that
    many, itself and those right before it (a sliding window: Beltagy et al., 2020),
    which limits the time per token and the memory of a cache.

    Args:
        d_in: width of an input token.
        d_out: width of the result, divisible by ``num_heads``.
        context_length: maximum number of tokens in a sequence.
        dropout: fraction of attention weights dropped in training, in [0, 1).
        num_heads: h, the number of query heads.
        qkv_bias: whether the query, key and value projections add a bias.
        num_kv_heads: h_kv, the number of key and value heads, a divisor of
            ``num_heads``; ``None`` means as many as query heads.
        causal: ``False`` lets every token see all others, as in an encoder.
        window: maximum number of tokens each sees, itself included; ``None`` means all.
        rope_theta: base of the rotary frequencies, named as in model configs, such as
            10000.0; ``None`` means no rotary positions.
        rope_interleaved: which coordinates turn together, as in
            :func:`functional.rotate <attention.functional.rotate>`: ``False`` for
            halves, as in ``transformers``, ``True`` for neighbors.
        device: where to create the parameters, as in ``nn.Linear``.
        dtype: their dtype, as in ``nn.Linear``.

    Attributes:
        W_query: ``nn.Linear(d_in, d_out)``, created first.
        W_key, W_value: ``nn.Linear(d_in, h_kv · d_head)``, created in this order.
        out_proj: ``nn.Linear(d_out, d_out)`` with bias, created last.
        d_out, num_heads, num_kv_heads, head_dim, context_length: integers.
        causal: whether the future is hidden.
        window, rope_theta, rope_interleaved: as given.

    Raises:
        TypeError, ValueError: a size is not a positive integer, ``num_heads`` does not
            divide ``d_out``, ``num_kv_heads`` does not divide ``num_heads``,
            ``dropout`` is outside [0, 1), ``window`` is given with ``causal=False``,
            or ``rope_theta`` is not positive or d_head is odd.

    Example:
        It loads the state dict of the listing and computes the same result. Its own
        state dict has no mask, which the listing doesn't need.

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
        window: int | None = None,
        rope_theta: float | None = None,
        rope_interleaved: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if num_kv_heads is None:
            num_kv_heads = num_heads
        validate.sizes(d_in=d_in, d_out=d_out, context_length=context_length)
        validate.sizes(num_heads=num_heads, num_kv_heads=num_kv_heads)
        validate.divisible(d_out=d_out, num_heads=num_heads)
        validate.divisible(num_heads=num_heads, num_kv_heads=num_kv_heads)
        validate.dropout_rate(dropout)
        if window is not None:
            validate.sizes(window=window)
            if not causal:
                raise ValueError(
                    f"window={window} limits how far a token sees into the past, but "
                    f"with causal=False it also sees the future. Leave out window, or "
                    f"build the layer with causal=True."
                )
        if rope_theta is not None:
            _check_rotary(rope_theta, d_out, num_heads)
        self.d_out = d_out
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.head_dim = d_out // num_heads
        self.context_length = context_length
        self.causal = causal
        self.window = window
        self.rope_theta = rope_theta
        self.rope_interleaved = rope_interleaved
        d_kv = num_kv_heads * self.head_dim
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias, **place)
        self.W_key = nn.Linear(d_in, d_kv, bias=qkv_bias, **place)
        self.W_value = nn.Linear(d_in, d_kv, bias=qkv_bias, **place)
        self.out_proj = nn.Linear(d_out, d_out, **place)
        self.dropout = nn.Dropout(dropout)

    def reset_parameters(self) -> None:
        """Draw all parameters again, in the order they were created."""
        for projection in (self.W_query, self.W_key, self.W_value, self.out_proj):
            projection.reset_parameters()

    def extra_repr(self) -> str:
        """List the settings that the shapes of the projections don't show."""
        settings: dict[str, object] = {"num_heads": self.num_heads}
        if self.num_kv_heads != self.num_heads:
            settings["num_kv_heads"] = self.num_kv_heads
        settings |= {"context_length": self.context_length, "causal": self.causal}
        if self.window is not None:
            settings["window"] = self.window
        if self.rope_theta is not None:
            settings["rope_theta"] = self.rope_theta
            settings["rope_interleaved"] = self.rope_interleaved
        return ", ".join(f"{name}={value}" for name, value in settings.items())

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
        **unknown: object,
    ) -> torch.Tensor:
        """Compute a context vector for each token from all heads.

        Args:
            x: token vectors (b, t_q, d_in), in the dtype of the parameters.
            cache: a :class:`~attention.KeyValueCache`. Its tokens precede ``x``, and
                the call appends those of ``x``: first the prompt, then one token at
                a time. For generation, under ``torch.no_grad()``.
            memory: token vectors (b, t_k, d_in) to take keys and values from instead
                of ``x``: cross-attention. All are visible; nothing is masked.
            key_padding_mask: booleans (b, t_k), True where a key is padding that no
                query may see, as in ``nn.MultiheadAttention``. With a cache it covers
                all tokens so far. A query with nothing left to see gets zeros
                from every head (PyTorch 2.5 or later).
            **unknown: rejected, with advice on what replaces the arguments of
                ``nn.MultiheadAttention``.

        Returns:
            Context vectors (b, t_q, d_out).

        Raises:
            TypeError: ``x`` or ``memory`` is not a floating-point tensor or has another
                dtype than the parameters, ``key_padding_mask`` is not a boolean one,
                ``cache`` not a :class:`~attention.KeyValueCache`, or there is an
                unknown argument.
            ValueError: a tensor has the wrong shape, no tokens, or too many, or is on
                another device; ``cache`` doesn't fit or has no room; both ``cache``
                and ``memory`` are given, a ``cache`` to a layer with ``causal=False``,
                or ``memory`` to one with rotary positions.
            RuntimeError: ``cache`` is given while gradients are on.
        """
        for name in unknown:
            advice = "Pass x, cache, memory and key_padding_mask."
            raise TypeError(
                f"forward takes no argument {name!r}. {ELSEWHERE.get(name, advice)}"
            )
        validate.tokens(
            x, self.W_query.in_features, (3,), self.context_length, self.W_query.weight
        )
        self._check_cache(cache, memory)
        self._check_memory(x, memory)
        source = x if memory is None else memory
        queries = self._split(self.W_query(x), self.num_heads)  # (b, h, t_q, d_head)
        keys = self._split(self.W_key(source), self.num_kv_heads)
        values = self._split(self.W_value(source), self.num_kv_heads)
        past = 0 if cache is None else cache.length
        if self.rope_theta is not None:
            positions = torch.arange(past, past + x.shape[1], device=queries.device)
            angles = rotary_angles(positions, self.head_dim, self.rope_theta)
            # Both in one call: for a single token, time grows with the number of calls.
            both = torch.cat([queries, keys], dim=1)  # (b, h + h_kv, t_q, d_head)
            both = rotate(both, angles, self.rope_interleaved)
            queries, keys = both[:, : self.num_heads], both[:, self.num_heads :]
        if cache is not None:
            # (b, h_kv, t, d_head) -> (b, h_kv, t_k, d_head)
            keys, values = cache.append(
                self, keys, values, self.context_length, self.window
            )
        if key_padding_mask is not None:
            length = past + source.shape[1]
            _check_padding(key_padding_mask, (len(x), length))
            # A cache with a window has dropped the first keys, so their mask goes, too.
            key_padding_mask = key_padding_mask[:, length - keys.shape[2] :]
        context = self._attend(queries, keys, values, memory is None, key_padding_mask)
        # (b, h, t_q, d_head) -> (b, t_q, h, d_head) -> (b, t_q, d_out)
        joined = context.transpose(1, 2).reshape(*x.shape[:2], self.d_out)
        return self.out_proj(joined)  # type: ignore[no-any-return]

    def _attend(
        self,
        queries: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        itself: bool,
        padding: torch.Tensor | None,
    ) -> torch.Tensor:
        """Return (b, h, t_q, d_head); the queries are the last of the keys."""
        t_q, t_k = queries.shape[2], keys.shape[2]
        causal, window = self.causal and itself, self.window
        if not causal or window is None or t_k <= window:
            return self._call_kernel(queries, keys, values, causal, None, padding)
        # The kernel computes masked scores, too. So give it a chunk of queries at a
        # time, with only the keys that some query of the chunk sees.
        past, chunk, parts = t_k - t_q, max(window, SMALLEST_CHUNK), []
        for start in range(0, t_q, chunk):
            stop = min(start + chunk, t_q)
            seen = slice(max(0, past + start + 1 - window), past + stop)
            hidden = None if padding is None else padding[:, seen]
            part = queries[:, :, start:stop], keys[:, :, seen], values[:, :, seen]
            parts.append(self._call_kernel(*part, causal, window, hidden))
        return torch.cat(parts, dim=2)

    def _call_kernel(
        self,
        queries: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        causal: bool,
        window: int | None,
        padding: torch.Tensor | None,
    ) -> torch.Tensor:
        options = _choose_mask(queries, keys, causal, window, padding)
        if self.num_kv_heads != self.num_heads and SHARES_HEADS:
            options["enable_gqa"] = True
        elif self.num_kv_heads != self.num_heads:
            group = self.num_heads // self.num_kv_heads
            keys = keys.repeat_interleave(group, dim=1)  # (b, h, t_k, d_head)
            values = values.repeat_interleave(group, dim=1)
        dropout = self.dropout.p if self.training else 0.0
        return F.scaled_dot_product_attention(
            queries, keys, values, dropout_p=dropout, **options
        )  # (b, h, t_q, d_head)

    def _check_cache(
        self, cache: KeyValueCache | None, memory: torch.Tensor | None
    ) -> None:
        if cache is None:
            return
        if isinstance(cache, torch.Tensor):
            raise TypeError(
                "this layer makes queries, keys and values from x itself, but got a "
                "second tensor in place of cache. Write layer(x), or layer(x, "
                "memory=other) to take keys and values from another sequence."
            )
        advice = "Pass cache=KeyValueCache(), one for each layer."
        validate.instance("cache", cache, KeyValueCache, advice)
        if memory is not None:
            raise ValueError(
                "cache and memory can't be combined: a cache stores the tokens of x, "
                "but memory replaces them. Pass only one of the two."
            )
        if not self.causal:
            raise ValueError(
                "this layer has causal=False, so every new token changes what earlier "
                "ones see, and nothing can be cached. Leave out cache, or build the "
                "layer with causal=True."
            )
        if self.training and self.dropout.p > 0:
            warnings.warn(
                "this layer is in training mode, so dropout changes what it generates. "
                "Call eval() on the model before you fill a cache.",
                stacklevel=2,
            )

    def _check_memory(self, x: torch.Tensor, memory: torch.Tensor | None) -> None:
        if memory is None:
            return
        advice = "Pass token vectors (b, t_k, d_in)."
        validate.instance("memory", memory, torch.Tensor, advice)
        if self.rope_theta is not None:
            raise ValueError(
                "this layer has rotary positions, which number the tokens of one "
                "sequence, but memory is another sequence. Build the layer for memory "
                "with rope_theta=None."
            )
        validate.floats("memory", memory, "Convert it with memory.float().")
        b, d_in, shape = len(x), self.W_key.in_features, tuple(memory.shape)
        fits = len(shape) == 3 and (shape[0], shape[2]) == (b, d_in)
        if not fits or shape[1] == 0:
            raise ValueError(
                f"memory must have shape (b, t_k, d_in) with b={b} as in x, d_in={d_in}"
                f" and at least one token, but got {shape}. Pass one sequence of token "
                f"vectors for each sequence of x."
            )
        validate.same_kind("memory", memory, self.W_key.weight)

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
        _, strict, _, unexpected_keys, error_messages = rest
        if strict:
            explain_weights(prefix, unexpected_keys, error_messages)


def _choose_mask(
    queries: torch.Tensor,
    keys: torch.Tensor,
    causal: bool,
    window: int | None,
    padding: torch.Tensor | None,
) -> dict[str, Any]:
    """Choose the arguments of ``scaled_dot_product_attention`` that mask.

    In its ``attn_mask`` True means seen, the opposite of our masks.
    """
    t_q, t_k = queries.shape[2], keys.shape[2]
    if padding is None and window is None and causal and t_q == t_k:
        return {"is_causal": True}
    seen = None
    if causal and t_q > 1:  # a single query is the newest token, which sees all keys
        # is_causal would align query 0 with key 0, but after a cache query 0 is at
        # position t_k - t_q.
        seen = ~causal_mask(t_q, t_k, queries.device, window)
    if padding is not None:
        real = ~padding[:, None, None]  # (b, 1, 1, t_k)
        seen = real if seen is None else seen & real
    return {"attn_mask": seen}


def _check_padding(mask: torch.Tensor, expected: tuple[int, int]) -> None:
    advice = "Pass booleans (b, t_k), True where a token is padding."
    validate.instance("key_padding_mask", mask, torch.Tensor, advice)
    if mask.dtype != torch.bool:
        raise TypeError(
            f"key_padding_mask must contain booleans, but its dtype is {mask.dtype}. "
            f"True means padding, so a mask with 1 for real tokens becomes (mask == 0)."
        )
    if mask.shape != expected:
        raise ValueError(
            f"key_padding_mask must have shape (b, t_k) = {expected}, but got "
            f"{tuple(mask.shape)}. It covers every key: the tokens of x, of memory if "
            f"given, or of the cache followed by x."
        )


def _check_rotary(rope_theta: float, d_out: int, num_heads: int) -> None:
    number = isinstance(rope_theta, Real) and not isinstance(rope_theta, bool)
    if not (number and rope_theta > 0):
        raise ValueError(
            f"rope_theta must be a positive number, but got {rope_theta!r}. Pass the "
            f"rope_theta of the model's config, such as 10000.0, or None for no rotary "
            f"positions."
        )
    d_head = d_out // num_heads
    if d_head % 2 != 0:
        raise ValueError(
            f"rotary positions turn pairs of coordinates, so d_head = d_out / num_heads"
            f" must be even, but got {d_out} / {num_heads} = {d_head}. Choose other "
            f"sizes, or leave out rope_theta."
        )
