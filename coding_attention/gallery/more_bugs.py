"""Bugs in what surrounds attention: positions, groups, caches, padding, training.

They were written after the checker, to see what it does not know.
"""

from coding_attention.gallery.more_bases import MORE_BASES
from coding_attention.gallery.planted_bugs import (
    _BUFFER,
    _DROP,
    _KEYS,
    _SOFTMAX,
    _START,
    _VALUES,
    BASES,
    HEADER,
    Planted,
    compiled,
)


class MoreBug(Planted):
    """One mistake in a class of :data:`BASES` or of :data:`MORE_BASES`."""

    def source(self):
        """Return the source of the class with the mistake in it."""
        text = BASES.get(self.base) or MORE_BASES[self.base][0]
        for right, wrong in self.changes:
            if right not in text:
                raise ValueError(f"{self.name}: {right!r} is not in the class")
            text = text.replace(right, wrong)
        return HEADER + "\n" + text

    @property
    def preset(self):
        """The name of the function that checks it."""
        return MORE_BASES[self.base][1] if self.base in MORE_BASES else "check"

    def settings(self):
        """Return the arguments for that function."""
        declared = MORE_BASES[self.base][2] if self.base in MORE_BASES else {}
        return declared | self.arguments


def _bug(name, expected, *changes, base="multi_head", **arguments):
    return MoreBug(name, expected, changes, base, arguments)


_TURN = "q, k = rotate(q), rotate(k)"
_HALVES = """\
    one, two = x.chunk(2, dim=-1)
    return torch.cat([one * cos - two * sin, two * cos + one * sin], dim=-1)
"""
_NEIGHBORS = """\
    one, two = x[..., ::2], x[..., 1::2]
    return torch.stack([one * cos - two * sin, two * cos + one * sin], -1).flatten(-2)
"""
_MIXED = """\
    cos, sin = cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
    one, two = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-two, one], dim=-1) * sin
"""
_REPEAT_K = "k = k.repeat_interleave(repeats, dim=1)"
_REPEAT_V = "v = v.repeat_interleave(repeats, dim=1)"
_LAST = "        self.dropout = nn.Dropout(dropout)\n"
_PADDING = "hidden = hidden | padding_mask[:, None, None, :]"
_QUERY_LAYER = "self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)"
_KEY_LAYER = "self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)"


def _all_weights(how):
    return _LAST, f"{_LAST}        for p in self.parameters():\n            {how}(p)\n"


MORE = [
    # Rotary positions.
    _bug("rope_forgotten", "rope_unused", (_TURN, "pass"), base="rope"),
    _bug("rope_pairs_neighbors", "rope_pairing", (_HALVES, _NEIGHBORS), base="rope"),
    _bug("rope_table_of_the_other", "rope_pairing", (_HALVES, _MIXED), base="rope"),
    _bug("rope_base_1000", "rope_base", ("base=10000.0", "base=1000.0"), base="rope"),
    _bug(
        "rope_half_steps",
        "rope_frequencies",
        ("(-steps / d)", "(-steps / (2 * d))"),
        base="rope",
    ),
    _bug(
        "rope_on_values",
        "rope_on_values",
        (_TURN, "q, k, v = map(rotate, (q, k, v))"),
        base="rope",
    ),
    _bug(
        "rope_keys_forgotten", "rope_on_one_side", (_TURN, "q = rotate(q)"), base="rope"
    ),
    _bug(
        "rope_over_heads",
        "rope_unused",
        (_TURN, "q, k = (rotate(y.transpose(1, 2)).transpose(1, 2) for y in (q, k))"),
        base="rope",
    ),
    _bug(
        "rope_before_heads",
        "rope_across_heads",
        ("self.wq(x).view", "rotate(self.wq(x)).view"),
        ("self.wk(x).view", "rotate(self.wk(x)).view"),
        (_TURN, "pass"),
        base="rope",
    ),
    _bug(
        "rope_twice",
        "rope_twice",
        (_TURN, "q, k = map(rotate, map(rotate, (q, k)))"),
        base="rope",
    ),
    _bug(
        "rope_scores_unscaled",
        "scale_twice",
        ("(q, k, v, is_causal", "(q / q.shape[-1] ** 0.5, k, v, is_causal"),
        base="rope",
    ),
    # Windows, biases, caps, norms.
    _bug("window_one_too_many", "window_size", ("far >= 3", "far > 3"), base="window"),
    _bug("window_forgotten", "window_unused", (" | (far >= 3)", ""), base="window"),
    _bug(
        "alibi_rewards_distance",
        "alibi_sign",
        ("scores - slopes", "scores + slopes"),
        base="alibi",
    ),
    _bug(
        "alibi_slopes_by_head",
        "alibi_slopes",
        ("(-8 * heads / self.n_heads)", "-heads"),
        base="alibi",
    ),
    _bug(
        "cap_forgotten",
        "softcap_unused",
        ("5.0 * torch.tanh(scores / 5.0)", "scores"),
        base="capped",
    ),
    _bug(
        "cap_after_mask",
        "softcap_after_mask",
        ("        scores = 5.0 * torch.tanh(scores / 5.0)\n", ""),
        ("weights = scores.softmax", "weights = (5 * (scores / 5).tanh()).softmax"),
        base="capped",
    ),
    _bug("keys_not_normed", "qk_norm_one_side", ("self.k_norm(k)", "k"), base="normed"),
    # Grouped keys.
    _bug(
        "keys_tiled_only",
        "groups_apart",
        (_REPEAT_K, "k = k.repeat(1, repeats, 1, 1)"),
        base="grouped",
    ),
    _bug(
        "values_tiled_only",
        "groups_apart",
        (_REPEAT_V, "v = v.repeat(1, repeats, 1, 1)"),
        base="grouped",
    ),
    _bug(
        "first_group_for_all",
        "rows_repeated",
        (_REPEAT_K, "k = k[:, :1].expand_as(q)"),
        (_REPEAT_V, "v = v[:, :1].expand_as(q)"),
        base="grouped",
    ),
    _bug(
        "first_value_group",
        "rows_repeated",
        (_REPEAT_V, "v = v[:, :1].expand_as(q)"),
        base="grouped",
    ),
    # Caches.
    _bug(
        "cache_overwritten",
        "cache_unused",
        ("k = torch.cat([past[0], k], dim=2)", "pass"),
        ("v = torch.cat([past[1], v], dim=2)", "pass"),
        base="cached",
    ),
    _bug(
        "cache_mask_from_0",
        "cache_mask_offset",
        (
            "i = torch.arange(old, old + t, device=x.device)[:, None]",
            "i = torch.arange(t, device=x.device)[:, None] + old * (t == 1)",
        ),
        base="cached",
    ),
    _bug(
        "cache_without_a_mask",
        "cache_mask_offset",
        ("j > i", "(j > i) & (old == 0)"),
        base="cached",
    ),
    _bug(
        "cache_newest_first",
        "cache_differs",
        ("[past[1], v]", "[v, past[1]]"),
        base="cached",
    ),
    _bug(
        "cache_left_behind",
        "cache_not_reset",
        (
            "        if past is not None:",
            "        past = past or getattr(self, 'last', None)\n"
            "        if past is not None and len(past[0]) == b:",
        ),
        ("        old = ", "        self.last = k, v\n        old = "),
        base="cached",
    ),
    # Padding.
    _bug("padding_mask_ignored", "padding_leaks", (_PADDING, "pass"), base="padded"),
    _bug(
        "padding_mask_turned",
        "padding_inverted",
        (_PADDING, _PADDING.replace("padding_mask[", "~padding_mask[")),
        base="padded",
    ),
    _bug(
        "padding_takes_the_place",
        "padding_future",
        (_PADDING, "hidden = padding_mask[:, None, None, :].expand(b, 1, t, t)"),
        base="padded",
    ),
    _bug(
        "padding_of_the_first",
        "padding_batch",
        (_PADDING, _PADDING.replace("padding_mask[", "padding_mask[:1][")),
        base="padded",
    ),
    _bug(
        "padding_hides_all",
        "padding_not_finite",
        ("        hidden = hidden & ~itself\n", ""),
        base="padded",
    ),
    _bug(
        "padding_without_minus",
        "padding_leaks",
        (
            "masked_fill(hidden, -torch.inf)",
            "masked_fill(hidden & future, -torch.inf).masked_fill(hidden, 0.0)",
        ),
        base="padded",
    ),
    # Cross-attention.
    _bug(
        "keys_and_values_of_x",
        "cross_ignores_memory",
        ("memory.shape[1]", "t_q"),
        ("(memory)", "(x)"),
        base="cross",
    ),
    _bug(
        "causal_memory",
        "cross_masked",
        ("(q, k, v)", "(q, k, v, is_causal=True)"),
        base="cross",
    ),
    _bug(
        "memory_as_long_as_x", "cross_sizes", ("memory.shape[1]", "t_q"), base="cross"
    ),
    # Precision.
    _bug(
        "softmax_in_half",
        "low_precision",
        (_SOFTMAX, "(scores / self.head_dim**0.5).half().softmax(-1).to(x.dtype)"),
    ),
    _bug(
        "weights_rounded",
        "low_precision",
        (_DROP, _DROP + "\n        weights = weights.bfloat16().to(x.dtype)"),
    ),
    _bug(
        "scores_in_half",
        "low_precision",
        (
            "queries @ keys.transpose(2, 3)",
            "(queries.half() @ keys.half().transpose(2, 3)).to(x.dtype)",
        ),
    ),
    # Initialization.
    _bug("all_zero", "init_dead", _all_weights("nn.init.zeros_")),
    _bug("all_ones", "init_constant", _all_weights("nn.init.ones_")),
    _bug(
        "never_written",
        "init_missing",
        (
            _LAST,
            _LAST + "        self.W_key.weight = nn.Parameter("
            "torch.empty(d_out, d_in))\n",
        ),
    ),
    _bug(
        "spread_of_1",
        "init_too_large",
        _all_weights("(lambda w: nn.init.normal_(w, 0.0, 1.0))"),
        d_in=64,
        d_out=64,
    ),
    # Sharing.
    _bug(
        "one_head_many_times",
        "heads_shared",
        (
            "[Head(d_in, d_out, context_length, dropout) for _ in range(num_heads)]",
            "[Head(d_in, d_out, context_length, dropout)] * num_heads",
        ),
        base="wrapper",
    ),
    _bug("key_is_query", "projections_tied", (_KEY_LAYER, "self.W_key = self.W_query")),
    _bug(
        "value_is_key",
        "projections_tied",
        (
            "self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)",
            "self.W_value = self.W_key",
        ),
    ),
    # State between calls, and what happens in training alone.
    _bug(
        "mean_kept",
        "keeps_state",
        (
            _KEYS,
            "keys = self.W_key(x)\n"
            "        self.seen = 0.9 * getattr(self, 'seen', 0.0) + keys.mean().item()"
            "\n        keys = keys * (1.0 + self.seen)",
        ),
    ),
    _bug(
        "calls_counted",
        "keeps_state",
        (
            _VALUES,
            "self.calls = getattr(self, 'calls', 0) + 1\n"
            "        values = self.W_value(x) / self.calls",
        ),
    ),
    _bug(
        "mask_of_the_first_call",
        "keeps_state",
        (
            "hidden = self.mask[:t, :t].bool()",
            "self.cut = getattr(self, 'cut', self.mask[:t, :t])\n"
            "        hidden = self.cut[:t, :t].bool()",
        ),
    ),
    _bug(
        "batch_normed",
        "samples_mixed_in_training",
        (_BUFFER, _BUFFER + "\n        self.norm = nn.BatchNorm1d(d_in, affine=False)"),
        (_START, "        x = self.norm(x.transpose(1, 2)).transpose(1, 2)\n" + _START),
    ),
    _bug(
        "mask_in_eval_alone",
        "mask_only_in_eval",
        (
            "scores.masked_fill(hidden, -torch.inf)",
            "scores if self.training else scores.masked_fill(hidden, -torch.inf)",
        ),
    ),
    _bug(
        "rate_fixed", "dropout_rate_ignored", ("nn.Dropout(dropout)", "nn.Dropout(0.1)")
    ),
    _bug(
        "rate_to_keep",
        "dropout_rate_ignored",
        ("nn.Dropout(dropout)", "nn.Dropout(1.0 - dropout)"),
    ),
    _bug(
        "values_dropped",
        "dropout_elsewhere",
        (_DROP, "pass"),
        (_VALUES, "values = self.dropout(self.W_value(x))"),
    ),
]

__all__ = ["MORE", "MoreBug", "compiled"]
