"""Classic mistakes, each the same class with one change.

Every entry names the change as a pair of texts, so that a page can show it and a
test can run it. ``expected`` is the name of the mistake that the checker has to give
first or second.
"""

import linecache
from dataclasses import dataclass, field

HEADER = """\
import torch
from torch import nn
from torch.nn import functional as F

"""

MULTI_HEAD = """\
class Attention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.d_out = d_out
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        mask = torch.triu(torch.ones(context_length, context_length), diagonal=1)
        self.register_buffer("mask", mask)

    def forward(self, x):
        b, t, _ = x.shape
        if t > self.context_length:
            raise ValueError(f"{t} tokens, {self.context_length} allowed")
        queries = self.W_query(x)
        keys = self.W_key(x)
        values = self.W_value(x)

        queries = queries.view(b, t, self.num_heads, self.head_dim).transpose(1, 2)
        keys = keys.view(b, t, self.num_heads, self.head_dim).transpose(1, 2)
        values = values.view(b, t, self.num_heads, self.head_dim).transpose(1, 2)

        scores = queries @ keys.transpose(2, 3)
        hidden = self.mask[:t, :t].bool()
        scores = scores.masked_fill(hidden, -torch.inf)
        weights = torch.softmax(scores / self.head_dim**0.5, dim=-1)
        weights = self.dropout(weights)

        context = weights @ values
        context = context.transpose(1, 2).reshape(b, t, self.d_out)
        return self.out_proj(context)
"""

FUSED = """\
class Attention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.d_out = d_out
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.p = dropout

    def forward(self, x):
        b, t, _ = x.shape
        if t > self.context_length:
            raise ValueError(f"{t} tokens, {self.context_length} allowed")
        p = self.p if self.training else 0.0
        shape = (b, t, self.num_heads, self.head_dim)
        queries = self.W_query(x).view(shape).transpose(1, 2)
        keys = self.W_key(x).view(shape).transpose(1, 2)
        values = self.W_value(x).view(shape).transpose(1, 2)
        context = F.scaled_dot_product_attention(
            queries, keys, values, dropout_p=p, is_causal=True
        )
        context = context.transpose(1, 2).reshape(b, t, self.d_out)
        return self.out_proj(context)
"""

WRAPPER = """\
class Head(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout):
        super().__init__()
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)
        mask = torch.triu(torch.ones(context_length, context_length), diagonal=1)
        self.register_buffer("mask", mask)

    def forward(self, x):
        b, t, d_in = x.shape
        if t > self.context_length:
            raise ValueError(f"{t} tokens, {self.context_length} allowed")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.mask[:t, :t].bool(), -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        return self.dropout(weights) @ values


class Attention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads):
        super().__init__()
        heads = [Head(d_in, d_out, context_length, dropout) for _ in range(num_heads)]
        self.heads = nn.ModuleList(heads)

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)
"""

LIBRARY = """\
class Attention(nn.Module):
    def __init__(self, d_in, num_heads):
        super().__init__()
        self.attn = nn.MultiheadAttention(d_in, num_heads, batch_first=True)

    def forward(self, x):
        return self.attn(x, x, x, need_weights=False)[0]
"""

GROUPED = """\
class Attention(nn.Module):
    def __init__(self, d_model, n_heads, n_kv_heads=2):
        super().__init__()
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        self.head_dim = d_model // n_heads
        self.wq = nn.Linear(d_model, n_heads * self.head_dim, bias=False)
        self.wk = nn.Linear(d_model, n_kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(d_model, n_kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(n_heads * self.head_dim, d_model, bias=False)

    def forward(self, x):
        b, t, _ = x.shape
        q = self.wq(x).view(b, t, self.n_heads, self.head_dim).transpose(1, 2)
        k = self.wk(x).view(b, t, self.n_kv_heads, self.head_dim).transpose(1, 2)
        v = self.wv(x).view(b, t, self.n_kv_heads, self.head_dim).transpose(1, 2)
        repeats = self.n_heads // self.n_kv_heads
        k = k.repeat_interleave(repeats, dim=1)
        v = v.repeat_interleave(repeats, dim=1)
        context = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(context.transpose(1, 2).reshape(b, t, -1))
"""

BASES = {
    "multi_head": MULTI_HEAD,
    "fused": FUSED,
    "wrapper": WRAPPER,
    "library": LIBRARY,
    "grouped": GROUPED,
}


@dataclass(frozen=True)
class Planted:
    """One mistake in an otherwise right class.

    Attributes:
        name: what was done wrong.
        expected: the checker's name for it.
        changes: pairs (right text, wrong text); several only where one slip of the
            mind touches several lines.
        base: which of ``BASES`` is changed.
        arguments: for the check.
    """

    name: str
    expected: str
    changes: tuple
    base: str = "multi_head"
    arguments: dict = field(default_factory=dict)

    def source(self):
        """Return the source of the class with the mistake in it."""
        text = BASES[self.base]
        for right, wrong in self.changes:
            if right not in text:
                raise ValueError(f"{self.name}: {right!r} is not in the class")
            text = text.replace(right, wrong)
        return HEADER + "\n" + text

    def build(self):
        """Return the class with the mistake in it."""
        return compiled(self.source(), f"{self.name}.py")


def compiled(source, filename):
    """Return the class ``Attention`` of a source text, with lines for tracebacks."""
    lines = source.splitlines(keepends=True)
    linecache.cache[filename] = (len(source), None, lines, filename)
    names = {"__name__": filename.removesuffix(".py")}
    exec(compile(source, filename, "exec"), names)
    return names["Attention"]


def _bug(name, expected, *changes, base="multi_head", **arguments):
    return Planted(name, expected, changes, base, arguments)


_FILL = "scores.masked_fill(hidden, -torch.inf)"
_SOFTMAX = "torch.softmax(scores / self.head_dim**0.5, dim=-1)"
_DROP = "weights = self.dropout(weights)"
_SPLIT = ".view(b, t, self.num_heads, self.head_dim).transpose(1, 2)"
_VIEWED = ".reshape(b, self.num_heads, t, self.head_dim)"
_JOIN = "context.transpose(1, 2).reshape(b, t, self.d_out)"
_KEYS = "keys = self.W_key(x)"
_VALUES = "values = self.W_value(x)"
_BUFFER = 'self.register_buffer("mask", mask)'
_CHECK = """\
        if t > self.context_length:
            raise ValueError(f"{t} tokens, {self.context_length} allowed")
"""
_SCORES = "        scores = queries @"
_CACHE = """\
        values = values + getattr(self, "old", 0.0)
        self.old = values.mean().detach()
"""
_DROP_BY_HAND = """\
if self.training:
            weights = weights * (torch.rand_like(weights) >= self.dropout.p)"""
_ADDITIVE = """\
scores + torch.zeros(t, t, device=x.device).masked_fill(
            hidden, -torch.inf
        )"""
_START = "        queries = self.W_query(x)\n"

PLANTED = [
    # The mask.
    _bug("mask_forgotten", "mask_missing", (_FILL, "scores")),
    _bug("is_causal_forgotten", "mask_missing", (", is_causal=True", ""), base="fused"),
    _bug(
        "tril_for_triu",
        "mask_upside_down",
        (
            "torch.triu(torch.ones(context_length, context_length), diagonal=1)",
            "torch.tril(torch.ones(context_length, context_length), diagonal=-1)",
        ),
    ),
    _bug("keep_taken_for_hide", "mask_inverted", ("(hidden, -", "(~hidden, -")),
    _bug(
        "polarity_of_scaled_dot_product_attention",
        "mask_inverted",
        (
            "is_causal=True",
            "attn_mask=torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)",
        ),
        base="fused",
    ),
    _bug("diagonal_0", "mask_hides_itself", ("diagonal=1", "diagonal=0")),
    _bug("diagonal_2", "mask_off_by_one", ("diagonal=1", "diagonal=2")),
    _bug("hidden_scores_0", "mask_fill_zero", ("hidden, -torch.inf", "hidden, 0")),
    _bug("scores_times_tril", "mask_fill_zero", (_FILL, "scores * (~hidden)")),
    _bug("fill_minus_10", "mask_fill_finite", ("-torch.inf", "-10.0")),
    _bug("fill_minus_10000", "mask_fill_finite", ("-torch.inf", "-10000.0")),
    _bug(
        "ones_added",
        "mask_added_as_ones",
        (_FILL, "scores + self.head_dim**0.5 * hidden"),
    ),
    _bug(
        "mask_after_softmax",
        "mask_after_softmax",
        (_FILL, "scores"),
        (_DROP, "weights = self.dropout(weights * ~hidden)"),
    ),
    _bug("mask_not_cut", "short_inputs", ("self.mask[:t, :t]", "self.mask")),
    _bug(
        "window_left_in",
        "past_unused",
        (
            "[:t, :t].bool()",
            "[:t, :t].bool() | torch.ones_like(self.mask).tril(-4)[:t, :t].bool()",
        ),
    ),
    # Softmax.
    _bug(
        "softmax_over_queries", "softmax_over_queries", ("0.5, dim=-1", "0.5, dim=-2")
    ),
    _bug("softmax_over_heads", "softmax_over_heads", ("0.5, dim=-1", "0.5, dim=1")),
    _bug("softmax_over_batch", "softmax_over_batch", ("0.5, dim=-1", "0.5, dim=0")),
    _bug(
        "softmax_over_batch_without_nan",
        "softmax_over_batch",
        ("-torch.inf", "-1e9"),
        ("0.5, dim=-1", "0.5, dim=0"),
    ),
    _bug(
        "softmax_forgotten",
        "softmax_missing",
        (_SOFTMAX, "scores / self.head_dim**0.5"),
    ),
    _bug(
        "softmax_twice",
        "softmax_twice",
        (_DROP, "weights = weights.softmax(dim=-1)\n        " + _DROP),
    ),
    _bug(
        "softmax_by_hand",
        "overflows",
        (
            _SOFTMAX,
            "torch.exp(scores / self.head_dim**0.5)\n"
            "        weights = weights / weights.sum(dim=-1, keepdim=True)",
        ),
    ),
    _bug(
        "softmax_over_everything",
        "softmax_over_everything",
        (
            _SOFTMAX,
            "scores.div(self.head_dim**0.5).flatten(1).softmax(-1).view_as(scores)",
        ),
    ),
    # Scaling.
    _bug("not_scaled", "scale_missing", ("scores / self.head_dim**0.5", "scores")),
    _bug(
        "scaled_by_d_out", "scale_by_d_out", ("self.head_dim**0.5", "self.d_out**0.5")
    ),
    _bug(
        "scaled_by_d_in", "scale_by_d_in", ("self.head_dim**0.5", "x.shape[-1] ** 0.5")
    ),
    _bug("root_forgotten", "scale_twice", ("self.head_dim**0.5", "self.head_dim")),
    _bug(
        "scaled_twice",
        "scale_twice",
        (
            "queries, keys, values, dropout",
            "queries / self.head_dim**0.5, keys, values, dropout",
        ),
        base="fused",
    ),
    _bug(
        "multiplied",
        "scale_multiplied",
        ("/ self.head_dim**0.5", "* self.head_dim**0.5"),
    ),
    _bug(
        "scaled_by_tokens",
        "scale_by_tokens",
        ("self.head_dim**0.5", "keys.shape[2] ** 0.5"),
    ),
    _bug(
        "scaled_by_heads",
        "scale_by_heads",
        ("self.head_dim**0.5", "keys.shape[1] ** 0.5"),
    ),
    _bug(
        "scaled_after_softmax",
        "scale_after_softmax",
        (_SOFTMAX, "torch.softmax(scores, dim=-1) / self.head_dim**0.5"),
    ),
    _bug(
        "divided_by_d_out",
        "scale_by_d_out_no_root",
        ("self.head_dim**0.5", "self.d_out"),
    ),
    # Heads.
    _bug("view_without_transpose", "heads_viewed", (_SPLIT, _VIEWED)),
    _bug(
        "keys_viewed_only",
        "heads_viewed",
        ("keys = keys" + _SPLIT, "keys = keys" + _VIEWED),
    ),
    _bug(
        "joined_without_transpose",
        "join_viewed",
        (_JOIN, "context.reshape(b, t, self.d_out)"),
    ),
    _bug(
        "heads_and_width_exchanged",
        "heads_interleaved",
        (_SPLIT, ".view(b, t, self.head_dim, self.num_heads).permute(0, 3, 1, 2)"),
    ),
    _bug(
        "joined_in_wrong_order",
        "join_interleaved",
        (_JOIN, "context.permute(0, 2, 3, 1).reshape(b, t, self.d_out)"),
    ),
    _bug(
        "attention_among_heads",
        "heads_attend_heads",
        (".view(shape).transpose(1, 2)", ".view(shape)"),
        ("context.transpose(1, 2).reshape", "context.reshape"),
        base="fused",
    ),
    _bug(
        "num_heads_ignored",
        "heads_ignored",
        ("self.num_heads = num_heads", "self.num_heads = 1"),
        ("d_out // num_heads", "d_out"),
    ),
    _bug(
        "heads_summed",
        "heads_added",
        (
            "torch.cat([head(x) for head in self.heads], dim=-1)",
            "sum(head(x) for head in self.heads)",
        ),
        base="wrapper",
    ),
    _bug(
        "out_proj_forgotten",
        "output_projection_unused",
        ("self.out_proj(context)", "context"),
    ),
    _bug(
        "groups_repeated_whole",
        "groups_tiled",
        (".repeat_interleave(repeats, dim=1)", ".repeat(1, repeats, 1, 1)"),
        base="grouped",
    ),
    # Which weights do what.
    _bug("keys_from_W_query", "projection_mixed_up", (_KEYS, "keys = self.W_query(x)")),
    _bug(
        "values_from_W_key", "projection_mixed_up", (_VALUES, "values = self.W_key(x)")
    ),
    _bug(
        "keys_times_queries",
        "scores_transposed",
        ("queries @ keys.transpose(2, 3)", "keys @ queries.transpose(2, 3)"),
    ),
    _bug(
        "weights_transposed",
        "weights_transposed",
        ("weights @ values", "weights.transpose(2, 3) @ values"),
    ),
    _bug(
        "bias_left_out",
        "bias_unused",
        ("self.W_query(x)", "x @ self.W_query.weight.T"),
        (_KEYS, "keys = x @ self.W_key.weight.T"),
        (_VALUES, "values = x @ self.W_value.weight.T"),
        qkv_bias=True,
    ),
    _bug(
        "residual_inside",
        "input_added",
        ("return self.out_proj(context)", "return x + self.out_proj(context)"),
        d_in=16,
        d_out=16,
    ),
    # Sequences and calls.
    _bug(
        "mean_over_batch",
        "samples_mixed",
        (_DROP, "weights = weights.mean(dim=0, keepdim=True)\n        " + _DROP),
    ),
    _bug(
        "without_batch_first",
        "batch_first",
        (", batch_first=True", ""),
        base="library",
        causal=False,
    ),
    _bug(
        "cache_never_cleared",
        "keeps_state",
        (_SCORES, _CACHE + _SCORES),
    ),
    _bug(
        "input_scaled_in_place",
        "changes_input",
        (_START, "        x *= 0.5\n" + _START),
    ),
    _bug(
        "buffer_made_in_forward",
        "state_dict_changes",
        (
            "        hidden = ",
            "        self.register_buffer('last', scores.detach())\n        hidden = ",
        ),
    ),
    # Dropout.
    _bug(
        "dropout_before_softmax",
        "dropout_on_scores",
        (_DROP, "pass"),
        (
            "        hidden = ",
            "        scores = self.dropout(scores)\n        hidden = ",
        ),
    ),
    _bug(
        "dropout_on_masked_scores",
        "dropout_on_scores",
        (_DROP, "pass"),
        ("(scores / self", "(self.dropout(scores) / self"),
    ),
    _bug(
        "dropout_in_eval",
        "random_in_eval",
        (_DROP, "weights = F.dropout(weights, self.dropout.p)"),
    ),
    _bug(
        "dropout_p_in_eval",
        "random_in_eval",
        ("self.p if self.training else 0.0", "self.p"),
        base="fused",
    ),
    _bug(
        "dropout_not_rescaled",
        "dropout_not_rescaled",
        (
            _DROP,
            _DROP_BY_HAND,
        ),
    ),
    _bug("dropout_result_lost", "dropout_unused", (_DROP, "self.dropout(weights)")),
    _bug(
        "weights_cleared_in_place",
        "backward_raises",
        (
            "context = weights @ values\n",
            "context = weights @ values\n        weights.zero_()\n",
        ),
    ),
    # Gradients, storage, other dtypes.
    _bug("keys_detached", "gradient_missing", (_KEYS, "keys = self.W_key(x).detach()")),
    _bug(
        "weights_data",
        "gradient_missing",
        (_VALUES, "values = x @ self.W_value.weight.data.T"),
    ),
    _bug(
        "output_detached",
        "no_gradient",
        ("self.out_proj(context)", "self.out_proj(context).detach()"),
    ),
    _bug(
        "mask_as_parameter",
        "gradient_missing",
        (_BUFFER, "self.mask = nn.Parameter(mask)"),
    ),
    _bug("mask_as_plain_tensor", "stays_behind", (_BUFFER, "self.mask = mask")),
    _bug(
        "mask_made_on_the_cpu",
        "stays_behind",
        ("self.mask[:t, :t].bool()", "torch.ones(t, t).triu(1).bool()"),
    ),
    _bug(
        "heads_in_a_python_list",
        "weights_not_saved",
        ("nn.ModuleList(heads)", "heads"),
        base="wrapper",
    ),
    _bug(
        "weight_as_plain_tensor",
        "weights_not_saved",
        (
            "self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)",
            "self.W_value = torch.randn(d_in, d_out)",
        ),
        (_VALUES, "values = x @ self.W_value.to(x)"),
    ),
    _bug("fill_minus_1e9", "dtype_stays_behind", ("-torch.inf", "-1e9")),
    _bug(
        "mask_in_float32",
        "dtype_stays_behind",
        (
            _FILL,
            _ADDITIVE,
        ),
    ),
    _bug(
        "float_without_way_back",
        "dtype_changes",
        ("return self.out_proj(context)", "return self.out_proj(context).float()"),
    ),
    # Sizes.
    _bug(
        "squeezed",
        "wrong_shape",
        ("return self.out_proj(context)", "return self.out_proj(context).squeeze()"),
    ),
    _bug(
        "mean_over_tokens",
        "wrong_shape",
        ("return self.out_proj(context)", "return self.out_proj(context).mean(dim=1)"),
    ),
    _bug(
        "batch_size_fixed",
        "some_sizes_raise",
        (_JOIN, "context.transpose(1, 2).reshape(3, -1, self.d_out)"),
    ),
    _bug(
        "d_in_for_d_out",
        "widths_mixed_up",
        ("self.W_key = nn.Linear(d_in, ", "self.W_key = nn.Linear(d_out, "),
    ),
    _bug("length_not_checked", "too_many_tokens_accepted", (_CHECK, ""), base="fused"),
    _bug(
        "tokens_cut_silently",
        "too_many_tokens_cut",
        (_CHECK, "        x = x[:, : self.context_length]\n        t = x.shape[1]\n"),
    ),
]
