"""Section 3.6 at full speed: fused attention, a key-value cache, grouped heads."""

import torch
from torch import nn
from torch.nn import functional as F

from attention import validate
from attention.cache import KeyValueCache

# Since 2.5 the kernel lets several query heads read one key head without a copy.
SHARES_HEADS = torch.__version__ >= "2.5"


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

    Args:
        d_in: width of a token on the way in.
        d_out: width of the result, divisible by ``num_heads``.
        context_length: the most tokens that one sequence may have.
        dropout: share of the attention weights that is dropped in training, [0, 1).
        num_heads: h, the number of query heads.
        qkv_bias: whether the query, key and value projections add a bias.
        num_kv_heads: h_kv, the number of key and value heads, a divisor of
            ``num_heads``; ``None`` means as many as query heads.

    Attributes:
        W_query: ``nn.Linear(d_in, d_out)``, made first.
        W_key, W_value: ``nn.Linear(d_in, h_kv · d_head)``, made in this order.
        out_proj: ``nn.Linear(d_out, d_out)`` with bias, made last.
        d_out, num_heads, num_kv_heads, head_dim, context_length: integers.

    Raises:
        TypeError, ValueError: a size is no positive integer, ``num_heads`` does not
            divide ``d_out``, ``num_kv_heads`` does not divide ``num_heads``, or
            ``dropout`` is outside [0, 1).
    """

    def __init__(
        self,
        d_in,
        d_out,
        context_length,
        dropout,
        num_heads,
        qkv_bias=False,
        num_kv_heads=None,
    ):
        super().__init__()
        if num_kv_heads is None:
            num_kv_heads = num_heads
        validate.sizes(d_in=d_in, d_out=d_out, context_length=context_length)
        validate.sizes(num_heads=num_heads, num_kv_heads=num_kv_heads)
        validate.divisible(d_out, num_heads)
        validate.kv_heads(num_heads, num_kv_heads)
        validate.dropout_rate(dropout)
        self.d_out = d_out
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.head_dim = d_out // num_heads
        self.context_length = context_length
        d_kv = num_kv_heads * self.head_dim
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_kv, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_kv, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, cache=None, memory=None):
        """Give each token a context vector that all heads have contributed to.

        Args:
            x: token vectors (b, t_q, d_in), in the dtype of the weights.
            cache: a :class:`~attention.KeyValueCache`. Its tokens come before ``x``
                and the call adds those of ``x``: first the prompt, then one token at
                a time. For generation, under ``torch.no_grad()``.
            memory: token vectors (b, t_k, d_in) to take keys and values from instead
                of ``x``: cross-attention. All of them are seen; nothing is masked.

        Returns:
            Context vectors (b, t_q, d_out).

        Raises:
            TypeError: ``x`` or ``memory`` is no floating-point tensor, or ``cache``
                no :class:`~attention.KeyValueCache`.
            ValueError: ``x`` or ``memory`` has another shape, no token, or too many;
                ``cache`` does not fit or has no room; or both are given.
            RuntimeError: ``cache`` is given while gradients are on.
        """
        validate.tokens(x, self.W_query.in_features, context_length=self.context_length)
        self._check_source(x, cache, memory)
        source = x if memory is None else memory
        queries = self._split(self.W_query(x), self.num_heads)  # (b, h, t_q, d_head)
        keys = self._split(self.W_key(source), self.num_kv_heads)
        values = self._split(self.W_value(source), self.num_kv_heads)
        if cache is not None:
            keys, values = cache.append(self, keys, values)  # (b, h_kv, t_k, d_head)

        options = {} if memory is not None else _hide_future(queries, keys)
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
        return self.out_proj(context.transpose(1, 2).reshape(*x.shape[:2], self.d_out))

    def _check_source(self, x, cache, memory):
        if cache is not None:
            advice = "Pass cache=KeyValueCache(), one for each layer."
            validate.instance("cache", cache, KeyValueCache, advice)
        if memory is not None:
            validate.memory(memory, x, self.W_key.in_features)
        if cache is not None and memory is not None:
            raise ValueError(
                "cache and memory cannot be given together: a cache keeps the tokens "
                "of x, but memory takes their place. Pass one of the two."
            )

    def _split(self, x, num_heads):
        # (b, t, n · d_head) -> (b, t, n, d_head) -> (b, n, t, d_head)
        b, num_tokens, _ = x.shape
        return x.view(b, num_tokens, num_heads, self.head_dim).transpose(1, 2)

    # MultiHeadAttention keeps its mask as a buffer, so its checkpoints hold a `mask`
    # and a strict load asks for one. This class needs none, and a t × t buffer is
    # what it sets out to avoid. So it writes the mask on saving, and on loading
    # checks it and lets it go: either class loads what the other has saved.

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        weight = self.W_query.weight
        mask = _causal_mask(self.context_length, weight.device)
        destination[prefix + "mask"] = mask.to(weight.dtype)

    def _load_from_state_dict(
        self,
        state_dict,
        prefix,
        local_metadata,
        strict,
        missing_keys,
        unexpected_keys,
        error_msgs,
    ):
        # The caller hands over a dict of its own, so popping changes no checkpoint.
        key = prefix + "mask"
        mask = state_dict.pop(key, None)
        if mask is not None:
            error_msgs += validate.saved_mask(key, mask, self.context_length)
        elif strict:
            missing_keys.append(key)
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )


def _causal_mask(num_tokens, device):
    # (t, t), True = future
    return torch.ones(num_tokens, num_tokens, dtype=torch.bool, device=device).triu(1)


def _hide_future(queries, keys):
    """Say to ``scaled_dot_product_attention`` what each query must not see."""
    t_q, t_k = queries.shape[2], keys.shape[2]
    if t_q == t_k:
        return {"is_causal": True}
    if t_q == 1:
        return {}  # the newest token sees everything
    # Several tokens after a cache. is_causal would align query 0 with key 0, but
    # query 0 stands at position t_k - t_q. True = seen, the opposite of our mask.
    seen = torch.ones(t_q, t_k, dtype=torch.bool, device=queries.device)
    return {"attn_mask": seen.tril(t_k - t_q)}
