"""Right classes that look wrong at first, each beside a wrong one that looks right."""

import pytest
import torch

import attncheck
from attncheck.probes import storage
from tests.attncheck.plain import PLAIN, made


def outcome(cls, **options):
    report = attncheck.check(cls, **{"causal": False} | options)
    found = [one.mistake for one in report.findings if one.severity == "error"]
    return report.exit_status, found[:1]


def test_a_bias_of_the_caller_has_the_slopes_that_the_caller_gave():
    cls = made(PLAIN, ("self, x)", "self, x, bias)"), ("** 0.5\n", "** 0.5 + bias\n"))

    def call(module, x):
        i = torch.arange(x.shape[1], device=x.device)
        return module(x, -0.3 * (i[:, None] - i).abs().to(x))

    print(attncheck.check(cls, call=call, causal=False))
    assert outcome(cls, call=call) == (0, [])
    # A class that makes slopes itself, and gives all heads the same.
    own = "** 0.5 - 0.3 * self.slope * (i[:, None] - i).abs()\n"
    wrong = made(
        PLAIN, ("** 0.5\n", own), ("        s = q", "        i = torch.arange(t)\n"
        "        s = q"), ("        self.h =", "        self.slope, self.h = 1,"),
    )  # fmt: skip
    assert outcome(wrong) == (1, ["alibi_slopes"])


CROSS = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h, self.norm = n_heads, nn.LayerNorm(d)
        self.to_q, self.to_kv = nn.Linear(d, d), nn.Linear(d, 2 * d)
        self.proj = nn.Linear(d, d)

    def forward(self, x, media):
        b, t, d = x.shape
        x = self.norm(x)
        q = self.to_q(x).view(b, t, self.h, -1).transpose(1, 2)
        k, v = self.to_kv(media.flatten(1, 2)).view(b, -1, 2, self.h, d // self.h
                                                    ).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.proj(y.transpose(1, 2).reshape(b, t, d))
"""


def test_what_is_asked_for_beside_the_tokens_may_come_without_their_norm():
    def call(module, x):
        return module(x, x[:, None])

    assert outcome(made(CROSS), call=call) == (0, [])
    changes = ("self, x, media", "self, x"), ("media.flatten(1, 2)", "given")
    wrong = made(CROSS, *changes, ("x = self.norm", "given, x = x, self.norm"))
    assert outcome(wrong) == (1, ["prenorm_partly"])


CHANNELS = """\
class Attention(nn.Module):
    def __init__(self, channels, num_heads=4):
        super().__init__()
        self.h = num_heads
        self.to_qkv = nn.Conv1d(channels, 3 * channels, 1)
        self.to_out = nn.Conv1d(channels, channels, 1)
        nn.init.zeros_(self.to_out.weight)

    def forward(self, x):
        b, c, n = x.shape
        q, k, v = self.to_qkv(x).view(b, 3, self.h, -1, n).unbind(1)
        s = torch.einsum("bhdi,bhdj->bhij", q, k) / q.shape[2] ** 0.5
        y = torch.einsum("bhij,bhdj->bhdi", s.softmax(-1), v)
        return x + self.to_out(y.reshape(b, c, n))
"""
KEYS_FIRST = PLAIN.replace("s = q @ k.mT", "s = torch.einsum('bhtd,bhsd->bhts', k, q)")
KEYS_FIRST = KEYS_FIRST.replace(
    "(s.softmax(-1) @ v)", "torch.einsum('bhts,bhtd->bhsd', s.softmax(2), v)"
)


def test_the_keys_may_be_the_rows_of_the_scores():
    assert outcome(made(KEYS_FIRST)) == (0, [])
    own = (
        "** 0.5\n        own = torch.eye(t, device=x.device).bool()\n"
        "        s = s.masked_fill(own, -100)\n"
    )
    # Where its own token is hidden with a number, too, that is asked for.
    for source in (PLAIN, KEYS_FIRST):
        cls = made(source, ("** 0.5\n", own))
        report = attncheck.check(cls, causal=False)
        assert "no token sees itself" in report.not_compared, str(report)
        assert outcome(cls, exclusive=True) == (0, [])
    rows = made(
        CHANNELS,
        ('"bhdi,bhdj->bhij", q, k', '"bhdi,bhdj->bhij", k, q'),
        ("** 0.5\n", own.replace("eye(t", "eye(n")),
        ('"bhij,bhdj->bhdi", s.softmax(-1)', '"bhij,bhdi->bhdj", s.softmax(2)'),
    )
    assert outcome(rows)[1] == []
    queries = made(KEYS_FIRST, ("softmax(2)", "softmax(3)"))
    assert outcome(queries)[0] == 1
    twice = made(KEYS_FIRST, ("** 0.5", "** 1.0"))
    assert outcome(twice) == (1, ["scale_twice"])
    assert outcome(made(PLAIN, ("softmax(-1)", "softmax(2)"))) == (
        1, ["softmax_over_queries"])  # fmt: skip


def test_weights_that_are_returned_averaged_mix_nothing():
    words = "x):\n        # returns weights averaged over the heads, where asked to\n"
    softened = ("** 0.5\n", "** 0.5\n        s = s + self.far[:t, :t]\n")
    far = ("        self.h =", "        i = torch.arange(64.0)\n"
           "        self.far = (i[:, None] * 1.7 + i * i * 0.9).sin()\n"
           "        self.h =")  # fmt: skip
    cls = made(PLAIN, ("x):\n", words), softened, far)
    report = attncheck.check(cls, causal=False)
    assert "averaged" not in report.not_compared, str(report)
    both = made(PLAIN, ("x):\n", words), softened, far,
                ("s.softmax(-1)", "s.softmax(-1).mean(1, keepdim=True)"))  # fmt: skip
    report = attncheck.check(both, causal=False)
    assert "averaged" in report.not_compared, str(report)


def test_a_config_that_cannot_be_copied_is_shared_by_the_copies():
    config = """\
class Config(dict):
    def __init__(self, d, n_heads):
        super().__init__(d=d)
        self.d, self.n_heads = d, n_heads

    def __reduce_ex__(self, _):
        return Config, ()


"""
    taken = ("self, d, n_heads):", "self, config: Config):")
    first = ("        self.h = n_heads", "        self.config = config\n"
             "        d, self.h = config.d, config.n_heads")  # fmt: skip
    cls = made(config + PLAIN.replace(*taken).replace(*first))
    report = attncheck.check(cls, causal=False, config={"d": 24, "n_heads": 3})
    assert report.exit_status == 0, str(report)


def test_a_score_of_zero_hides_nothing():
    mask = "** 0.5\n        hidden = torch.ones_like(s).triu(1).bool()\n"
    right = made(PLAIN, ("** 0.5\n", mask + "        s = s.masked_fill(hidden, "
                         "-torch.inf)\n"))  # fmt: skip
    assert outcome(right, causal=True) == (0, [])
    wrong = made(PLAIN, ("** 0.5\n", "** 0.5\n        s = s.tril()\n"
                         "        s.masked_fill_(s == 0, -torch.inf)\n"))  # fmt: skip
    assert outcome(wrong, causal=True) == (1, ["not_finite"])


def test_sinks_that_nothing_trains_are_told():
    source = PLAIN.replace(
        "        self.h =",
        "        self.sinks = SINKS(torch.zeros(n_heads))\n        self.h =",
    ).replace(
        "        return",
        "        extra = self.sinks[:, None, None].expand(b, -1, t, 1)\n"
        "        w = torch.cat([s, extra], -1).softmax(-1)[..., :-1]\n        return",
    )
    source = source.replace("s.softmax(-1)", "w")  # fmt: skip
    learned = made(source, ("SINKS", "nn.Parameter"))
    assert outcome(learned, sink="learned") == (0, [])
    kept = source.replace("self.sinks = SINKS(", "self.register_buffer('sinks', ")
    assert outcome(made(kept))[1] == ["gradient_missing"]
    # One number for all heads may be a constant.
    one = kept.replace("torch.zeros(n_heads)", "torch.zeros(1)")
    assert outcome(made(one))[1] == []


def test_zeros_in_two_layers_behind_one_another_never_learn():
    zeros = "        nn.init.zeros_(self.to_out.weight)\n"
    assert outcome(made(CHANNELS))[1] == []
    wrong = made(CHANNELS, (zeros, zeros + zeros.replace("out", "qkv")
                            + zeros.replace("out.weight", "qkv.bias")))  # fmt: skip
    assert outcome(wrong) == (1, ["init_dead"])


def test_a_declared_window_is_given_where_the_constructor_needs_one():
    source = (
        PLAIN.replace("d, n_heads)", "d, n_heads, window_size)")
        .replace("        self.h =", "        self.w, self.h = window_size,")
        .replace(
            "** 0.5\n",
            "** 0.5\n        i = torch.arange(t, device=x.device)\n"
            "        far = i[:, None] - i\n"
            "        s = s.masked_fill((far < 0) | (far >= self.w), -torch.inf)\n",
        )
    )
    for window in (2, 4):
        assert outcome(made(source), causal=True, window=window) == (0, [])
    wider = made(source, ("far >= self", "far > self"))
    assert outcome(wider, causal=True, window=2) == (1, ["window_size"])


def test_a_mask_may_be_called_valid():
    source = PLAIN.replace("self, x)", "self, x, valid=None)").replace(
        "** 0.5\n",
        "** 0.5\n        if valid is not None:\n"
        "            s = s.masked_fill(~valid[:, None, None], -torch.inf)\n",
    )
    assert outcome(made(source)) == (0, [])
    rows = made(source, ("valid[:, None, None]", "valid[:, None, :, None]"),
                ("-torch.inf", "-1e9"))  # fmt: skip
    assert outcome(rows) == (1, ["padding_rows"])


MASKED = PLAIN.replace("n_heads)", "n_heads, masked=False)").replace(
    "        self.h =", "        self.masked, self.h = masked,"
)
MASKED = MASKED.replace(
    "** 0.5\n",
    """** 0.5
        if self.masked:
            hidden = torch.ones_like(s).triu(1 + s.shape[3] - t).bool()
            s = s.masked_fill(hidden, -torch.inf)
""",
)


def test_masked_is_what_a_class_may_call_causal():
    assert outcome(made(MASKED), causal=True) == (0, [])
    assert outcome(made(MASKED), causal=False) == (0, [])
    assert outcome(made(MASKED), causal=True, masked=False) == (1, ["mask_missing"])


TWO = MASKED.replace("self, x)", "self, x_q, x_kv, kv_cache=None)").replace(
    """        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
""",
    """        b, t, d = x_q.shape
        q = F.linear(x_q, *self.w(0))
        k, v = (F.linear(x_kv, *self.w(i)) for i in (1, 2))
        if kv_cache is not None:
            k, v = (torch.cat(two, 1) for two in zip(kv_cache, (k, v)))
            kv_cache = k, v
        q, k, v = (one.unflatten(-1, (self.h, -1)).transpose(1, 2) for one in (q, k, v))
""",
)
TWO = TWO.replace("        return self.proj(", "        y = self.proj(") + (
    "        return y, kv_cache\n\n    def w(self, i):\n"
    "        return self.qkv.weight.chunk(3)[i], self.qkv.bias.chunk(3)[i]\n"
)


def test_keys_that_come_beside_queries_may_be_their_own():
    right, options = made(TWO), {"masked": True, "d": 16, "n_heads": 4}
    assert outcome(right, causal=True, **options) == (0, [])

    def call(module, chunk, cache):
        return module(chunk, chunk, (chunk[:, :0],) * 2 if cache is None else cache)

    report = attncheck.check_cache(right, call=call, **options)
    assert report.exit_status == 0, str(report)
    wrong = made(TWO, ("triu(1 + s.shape[3] - t)", "triu(1)"))
    report = attncheck.check_cache(wrong, call=call, **options)
    assert [one.mistake for one in report.findings][:1] == ["cache_mask_offset"]


def test_what_a_declared_bias_hides_needs_not_be_seen():
    table = "        seen = torch.ones(32, 32).tril()\n        seen[:, 3::4] = 0\n"
    kept = "        self.register_buffer('seen', seen)\n        self.h ="
    hide = "        s = s.masked_fill(self.seen[:t, :t] == 0, -torch.inf)\n"
    source = PLAIN.replace("        self.h =", table + kept)
    source = source.replace("** 0.5\n", "** 0.5\n" + hide)

    def bias(module, t):
        return module.seen[:t, :t].log()

    assert outcome(made(source), causal=True, bias=bias) == (0, [])
    # Where it hides less, a token that is not seen still is told.
    less = attncheck.check(
        made(source), bias=lambda module, t: bias(module, t).clamp_min(-1e9)
    )
    assert "past_unused" in [one.mistake for one in less.findings], str(less)


def test_a_cap_comes_behind_the_declared_scale():
    capped = ("q @ k.mT / q.shape[-1] ** 0.5", "5 * torch.tanh(q @ k.mT * 0.3 / 5)")
    options = {"softcap": 5.0, "scale": 0.3}
    assert outcome(made(PLAIN, capped), **options) == (0, [])
    wrong = capped[0], "5 * torch.tanh(q @ k.mT / 5) * 0.3"
    assert outcome(made(PLAIN, wrong), **options) == (1, ["softcap_before_scale"])


def test_keys_behind_a_window_may_leave_the_cache_and_positions_go_on():
    source = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads, window=1024):
        super().__init__()
        self.h, self.window = n_heads, window
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def turned(self, x, start):
        d = x.shape[-1]
        where = torch.arange(start, start + x.shape[2], device=x.device)
        steps = torch.arange(0, d, 2, device=x.device) / d
        angles = where[:, None] * 10000.0**-steps
        one, two = x.chunk(2, -1)
        cos, sin = angles.cos().to(x), angles.sin().to(x)
        return torch.cat([one * cos - two * sin, two * cos + one * sin], -1)

    def forward(self, x, cache=None):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        old_k, old_v, start = cache or (k[:, :, :0], v[:, :, :0], 0)
        q, k = self.turned(q, start), self.turned(k, start)
        k, v = torch.cat([old_k, k], 2), torch.cat([old_v, v], 2)
        n = k.shape[2]
        far = torch.arange(n - t, n, device=x.device)[:, None] - torch.arange(n).to(
            x.device)
        seen = (far >= 0) & (far < self.window)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        kept = [one[:, :, -self.window :] for one in (k, v)]
        then = start + t
        return self.proj(y.transpose(1, 2).reshape(b, t, d)), (*kept, then)
"""
    assert outcome(made(source), causal=True) == (0, [])
    wrong = made(source, ("then = start + t", "then = kept[0].shape[2]"))
    # Its default window is never full in a test, so a narrow one is built.
    assert outcome(wrong, causal=True) == (1, ["cache_positions"])


def test_the_future_is_hidden_within_each_document():
    source = PLAIN.replace("self, x)", "self, x, doc_ids=None)").replace(
        "** 0.5\n",
        "** 0.5\n"
        "        seen = torch.ones_like(s).tril().bool()\n"
        "        if doc_ids is not None:\n"
        "            same = doc_ids[:, None, :, None] == doc_ids[:, None, None]\n"
        "            seen = seen & same\n"
        "        s = s.masked_fill(~seen, -torch.inf)\n",
    )
    assert outcome(made(source), causal=True) == (0, [])
    wrong = made(source, ("seen & same", "same"))
    assert outcome(wrong, causal=True) == (1, ["future_leaks"])


def test_a_mask_that_forward_turns_around_is_seen_as_it_was_given():
    source = PLAIN.replace("self, x)", "self, x, padding_mask=None)").replace(
        "** 0.5\n",
        "** 0.5\n        if padding_mask is not None:\n"
        "            seen = padding_mask.logical_not_()\n"
        "            s = s.masked_fill(~seen[:, None, None], -1e9)\n",
    )
    assert outcome(made(source)) == (1, ["changes_input"])
    assert outcome(made(source, ("logical_not_", "logical_not"))) == (0, [])


def test_projections_that_start_alike_or_share_their_memory_are_told():
    source = PLAIN.replace(
        "self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)",
        "one = torch.randn(d, d) / d**0.5\n"
        "        self.w_q, self.w_k, self.w_v = START\n"
        "        self.proj = nn.Linear(d, d)",
    ).replace(
        "self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)",
        "((x @ w).view(b, t, self.h, -1).transpose(1, 2)\n"
        "                   for w in (self.w_q, self.w_k, self.w_v))",
    )

    def told(start):
        report = attncheck.check(made(source, ("START", start)), causal=False)
        return [(one.mistake, one.severity) for one in report.findings]

    each = "(nn.Parameter({}) for _ in range(3))"
    assert told(each.format("torch.randn(d, d) / d**0.5")) == []
    assert told(each.format("one.clone()")) == [("projections_tied", "warning")]
    assert told(each.format("one")) == [("projections_tied", "error")]


def test_a_default_that_calls_write_into_is_told():
    source = PLAIN.replace("self, x)", "self, x, seen={})").replace(
        "        s = q", "        seen['keys'] = k.detach()\n        s = q"
    )
    assert outcome(made(source)) == (1, ["keeps_state"])
    fresh = "        seen = {}\n        seen['keys']"
    given = made(source, ("seen={}", "seen=None"), ("        seen['keys']", fresh))
    assert outcome(given) == (0, [])


def test_gains_of_zero_that_hold_one_another_back_never_learn():
    gains = (
        "        self.g = nn.Parameter(torch.zeros(d // n_heads))\n"
        "        self.f = nn.Parameter(torch.START(d // n_heads))\n"
        "        self.w_q, self.w_k = nn.Linear(d, d), nn.Linear(d, d)\n"
        "        self.h ="
    )
    normed = (
        "        q, k = (w(x).view(b, t, self.h, -1).transpose(1, 2)\n"
        "                for w in (self.w_q, self.w_k))\n"
        "        q = F.rms_norm(q, q.shape[-1:]) * self.g\n"
        "        k = F.rms_norm(k, k.shape[-1:]) * self.f\n        s = q"
    )
    source = PLAIN.replace("        self.h =", gains).replace("        s = q", normed)
    source = (
        source.replace("3 * d", "d")
        .replace("q, k, v = self.qkv(x).view(b, t, 3", ("v = self.qkv(x).view(b, t"))
        .replace("permute(2, 0, 3, 1, 4)", "transpose(1, 2)")
    )

    def told(start):
        report = attncheck.check(made(source, ("START", start)), causal=False)
        return [one.mistake for one in report.findings if one.severity == "error"]

    assert told("zeros") == ["init_dead"]
    assert told("ones") == []


def test_a_wide_window_that_never_acts_is_told():
    source = (
        PLAIN.replace("n_heads)", "n_heads, window=512)")
        .replace(
            "** 0.5\n",
            "** 0.5\n        i = torch.arange(t, device=x.device)\n"
            "        far = i[:, None] - i\n"
            "        s = s.masked_fill((far < 0) | (far >= window), -torch.inf)\n",
        )
        .replace("        self.h =", "        self.window, self.h = window,")
    )

    def told(size):
        report = attncheck.check(made(source, (">= window", f">= {size}")))
        return [(one.mistake, one.severity) for one in report.findings]

    assert told("self.window") == []
    assert told(10**6) == [("window_unused", "warning")]


@pytest.mark.parametrize(
    ("setting", "use", "options"),
    [("init_range", "nn.init.normal_(self.proj.weight, std=init_range)", {}),
     ("max_rel_dist", "self.far = torch.zeros(max_rel_dist)", {}),
     ("rel_buckets", "self.far = torch.zeros(rel_buckets)", {}),
     ("decoder", "assert not decoder", {}),
     ("action_dim", "self.far = torch.zeros(action_dim)", {}),
     ("logit_softcap", "self.cap = logit_softcap", {"softcap": 50.0})],
)  # fmt: skip
def test_more_settings_are_guessed_by_their_names(setting, use, options):
    source = PLAIN.replace("n_heads)", f"n_heads, {setting})").replace(
        "    def forward", f"        {use}\n\n    def forward"
    )
    if options:
        source = source.replace(
            "s.softmax", "(self.cap * (s / self.cap).tanh()).softmax"
        )
    report = attncheck.check(made(source), causal=False, **options)
    assert report.exit_status == 0, str(report)


def test_widths_are_known_by_two_more_names():
    source = (
        PLAIN.replace("d, n_heads)", "inp, oup, n_heads)")
        .replace(
            "nn.Linear(d, 3 * d), nn.Linear(d, d)",
            "nn.Linear(inp, 3 * inp), nn.Linear(inp, oup)",
        )
        .replace("d = x.shape", "_ = x.shape")
        .replace("reshape(b, t, d)", "reshape(b, t, -1)")
    )
    for given in ({}, {"d_in": 24, "d_out": 32}):
        assert outcome(made(source), **given) == (0, [])


EINSUM = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(n_heads, d, d // n_heads) / d**0.5)
        self.w_k = nn.Parameter(torch.randn(n_heads, d, d // n_heads) / d**0.5)
        self.w_v = nn.Parameter(torch.randn(n_heads, d, d // n_heads) / d**0.5)
        self.w_o = nn.Parameter(torch.randn(n_heads, d // n_heads, d) / d**0.5)
        self.b_o = nn.Parameter(torch.zeros(d))

    def forward(self, x):
        q, k, v = (torch.einsum("btm,hmd->bhtd", x, w)
                   for w in (self.w_q, self.w_k, self.w_v))
        s = q @ k.mT / q.shape[-1] ** 0.5
        y = torch.einsum("bhtd,hdm->btm", s.softmax(-1) @ v, self.w_o)
        return y + self.b_o
"""


def test_a_bias_of_zeros_under_another_name_holds_nothing_back():
    assert outcome(made(EINSUM), d=16, n_heads=4, d_in=16) == (0, [])
    zero = (
        "self.w_q = nn.Parameter(torch.randn",
        "self.w_q = nn.Parameter(0 * torch.randn",
    )
    key = (zero[0].replace("w_q", "w_k"), zero[1].replace("w_q", "w_k"))
    wrong = made(EINSUM, zero, key)
    assert outcome(wrong, d=16, n_heads=4, d_in=16) == (1, ["init_dead"])
    # A gain of 0 does, and is to be loaded.
    gain = made(EINSUM, ("return y + self.b_o", "return y * self.b_o"))
    assert outcome(gain, d=16, n_heads=4, d_in=16)[1] == []


NORMED = (
    PLAIN.replace("n_heads):", "n_heads, qk_norm=False, proj_drop=0.0):")
    .replace(
        "nn.Linear(d, d)",
        """nn.Linear(d, d)
        self.q_norm = nn.LayerNorm(d // n_heads) if qk_norm else nn.Identity()
        self.k_norm = nn.LayerNorm(d // n_heads) if qk_norm else nn.Identity()
        self.p = proj_drop""",
    )
    .replace(
        "        s = q", "        q, k = self.q_norm(q), self.k_norm(k)\n        s = q"
    )
    .replace(
        "return self.proj((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))",
        "y = self.proj((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))\n"
        "        return F.dropout(y, self.p, self.training)",
    )
)


@pytest.mark.parametrize(
    ("right", "wrong", "mistake"),
    [
        ("self.k_norm(k)", "self.q_norm(k)", "qk_norm_shared"),
        ("self.p, self.training", "self.p", "random_in_eval"),
    ],
)
def test_what_is_off_by_default_is_tried_as_well(right, wrong, mistake):
    assert outcome(made(NORMED), d=16, n_heads=4, d_in=16) == (0, [])
    cls = made(NORMED, (right, wrong))
    assert outcome(cls, d=16, n_heads=4, d_in=16) == (1, [mistake])


CHUNKED = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads, q_chunk=256, k_chunk=128):
        super().__init__()
        self.h, self.qc, self.kc = n_heads, q_chunk, k_chunk
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        i, rows = torch.arange(t, device=x.device), []
        for first in range(0, t, self.qc):
            last = min(first + self.qc, t)
            scores = []
            for start in range(0, t, self.kc):
                if start > last - 1:
                    break
                stop = start + self.kc
                s = q[:, :, first:last] @ k[:, :, start:stop].mT / q.shape[-1] ** 0.5
                ahead = i[start:stop] > i[first:last, None]
                scores.append(s.masked_fill(ahead, -torch.inf))
            w = torch.cat(scores, -1).softmax(-1)
            rows.append(w @ v[:, :, : w.shape[-1]])
        y = torch.cat(rows, 2)
        return self.proj(y.transpose(1, 2).reshape(b, t, d))
"""


def test_chunks_larger_than_all_inputs_are_tried_small():
    options = {"d": 16, "n_heads": 4, "d_in": 16, "causal": True}
    assert outcome(made(CHUNKED), **options) == (0, [])
    wrong = made(CHUNKED, ("start > last - 1", "start > first"))
    assert outcome(wrong, **options)[0] == 1
    # Of the same size by default, they're tried in two sizes, and trained as well.
    alike = ("q_chunk=256, k_chunk=128", "q_chunk=64, k_chunk=64")
    wrong = made(CHUNKED, alike, ("start > last - 1", "start > first"))
    assert outcome(wrong, **options)[0] == 1
    kept = ("scores.append(s.m", "scores.append((s.detach() if start else s).m")
    assert outcome(made(CHUNKED, alike), **options) == (0, [])
    assert outcome(made(CHUNKED, alike, kept), **options) == (1, ["gradient_wrong"])
    assert outcome(made(CHUNKED), q_chunk=4, k_chunk=2, **options) == (0, [])
    # Where a chunk is all that a token sees, its size is no detail.
    own = CHUNKED.replace("            scores = []", "            # within its chunk\n"
                          "            scores = []")  # fmt: skip
    local = made(own, ("range(0, t, self.kc)", "range(first, last, self.kc)"),
                 ("v[:, :, : w.", "v[:, :, first : first + w."))  # fmt: skip
    assert outcome(local, **options) == (0, [])


ROTARY = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h = n_heads
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def turned(self, x):
        half, wide = x.shape[-1] // 2, torch.float32
        i = torch.arange(x.shape[2], device=x.device).to(wide)
        steps = torch.arange(half, device=x.device).to(wide) / half
        angles = i[:, None] * 10000.0**-steps
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        a, b = x[..., :half], x[..., half:]
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        s = self.turned(q) @ self.turned(k).mT / q.shape[-1] ** 0.5
        return self.proj((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))
"""


@pytest.mark.parametrize("rough", ["x.dtype", "x.dtype).to(torch.float32"])
def test_positions_are_counted_with_enough_digits(rough):
    options = {"d": 16, "n_heads": 4, "d_in": 16, "rope": "halves"}
    assert attncheck.check(made(ROTARY), causal=False, **options).findings == []
    i = "i = torch.arange(x.shape[2], device=x.device).to("
    wrong = made(ROTARY, (f"{i}wide)", f"{i}{rough})"))
    (one,) = attncheck.check(wrong, causal=False, **options).findings
    assert (one.mistake, one.severity) == ("low_precision", "error")
    assert "Tokens 256 and 257 get the same angles" in one.seen


def test_frequencies_with_few_digits_still_tell_tokens_apart():
    i, steps = torch.arange(320.0), 10000.0 ** -(torch.arange(8) / 8)
    few = {"i": i.bfloat16().float(), "steps": steps.bfloat16().float()}
    fine = i[:, None] * steps
    alike = storage._neighbors_alike
    assert alike(fine, i[:, None] * few["steps"]) == 0
    assert alike(fine, few["i"][:, None] * steps) == 256
    assert alike(fine.T, (few["i"][:, None] * steps).T) == 256


def test_positions_that_the_call_makes_are_not_the_layers_own():
    turned = ("def turned(self, x):", "def turned(self, x, i):")
    given = (
        ("i = torch.arange(x.shape[2], device=x.device).to(wide)", "i = i"),
        ("self, x)", "self, x, i)"), ("(q)", "(q, i)"), ("(k)", "(k, i)"),
    )  # fmt: skip
    options = {"d": 16, "n_heads": 4, "d_in": 16, "rope": "halves", "causal": False}

    def call(module, x):  # as a model around it might
        count = lambda t: torch.arange(t, dtype=x.dtype, device=x.device)  # noqa: E731
        return module(x, count(x.shape[1]))

    cls = made(ROTARY, turned, *given)
    assert attncheck.check(cls, call=call, **options).findings == []


def test_slopes_that_are_trained_may_be_meant():
    slopes = "nn.Parameter(2.0 ** (-8.0 * torch.arange(1, n_heads + 1) / n_heads))"
    source = made(
        PLAIN, ("self.h = n_heads", f"self.h, self.slopes = n_heads, {slopes}"),
        ("** 0.5\n", "** 0.5 - self.slopes.view(-1, 1, 1) * (i[:, None] - i).abs()\n"),
        ("    s = q", "    i = torch.arange(t, device=x.device)\n        s = q"),
    )  # fmt: skip
    report = attncheck.check(source, causal=False, alibi=True, d=16, n_heads=4)
    found = [(one.mistake, one.severity) for one in report.findings]
    assert found == [("constant_trained", "warning")]


def test_a_lesser_finding_gives_way_to_the_same_one_that_is_worse():
    found = attncheck.collector.Collector()
    found.start("padding")
    found.add("padding_not_finite", "All padded.", "NaN.", "warning")
    found.add("padding_not_finite", "Some padded.", "NaN.")
    found.add("padding_not_finite", "Others padded.", "NaN.", "warning")
    (one,) = found.findings()
    assert (one.severity, one.done) == ("error", "Some padded.")


def test_scores_without_a_scale_may_be_meant_where_a_comment_says_so():
    bare = made(PLAIN, (" / q.shape[-1] ** 0.5", ""))
    assert outcome(bare, d=16, n_heads=4) == (1, ["scale_missing"])
    told = made(PLAIN, (" / q.shape[-1] ** 0.5", "  # no scaling"))
    assert outcome(told, d=16, n_heads=4) == (3, [])
    assert outcome(told, d=16, n_heads=4, scale="none") == (0, [])


def test_what_is_subtracted_from_a_whole_row_is_no_third_token():
    off = (
        "        s = q @ k.mT / q.shape[-1] ** 0.5\n        s = s - s.amax({}, True)\n"
    )
    scores = "        s = q @ k.mT / q.shape[-1] ** 0.5\n"
    table = (
        "self.h = n_heads",
        "self.h, self.rel = n_heads, nn.Embedding(33, n_heads)",
    )
    gate = (
        "        return",
        "        i = torch.arange(t, device=x.device)\n"
        "        bias = self.rel(i[:, None] - i + 16).permute(2, 0, 1)\n"
        "        s = s + bias * q.mean(-1, True).sigmoid()\n        return",
    )
    right = made(PLAIN, (scores, off.format(-1)), table, gate)
    assert outcome(right, d=16, n_heads=4)[1] == []
    wrong = made(PLAIN, (scores, off.format(-2)), table, gate)
    assert outcome(wrong, d=16, n_heads=4)[0] == 1


PREFIX = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h = n_heads
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x, prefix_length=0):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        seen = torch.ones(t, t, dtype=torch.bool, device=x.device).tril()
        seen[:prefix_length, :prefix_length] = True
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self.proj(y.transpose(1, 2).reshape(b, t, d))
"""


@pytest.mark.parametrize("length", [2, 3])
def test_a_prefix_may_see_itself_where_the_class_speaks_of_one(length):
    def call(module, x):
        return module(x, length)

    options = {"causal": True, "d": 16, "n_heads": 4, "call": call}
    report = attncheck.check(made(PREFIX), **options)
    leak = next(one for one in report.findings if one.mistake == "future_leaks")
    assert (leak.severity, report.exit_status) == ("warning", 0)
    other = made(PREFIX.replace("prefix_length", "first"))
    found = [one.mistake for one in attncheck.check(other, **options).findings]
    assert "future_leaks" in found
    assert "mask_off_by_one" not in found  # only one token sees the next


IN_A_LIST = """\
class Norms(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.own = [nn.LayerNorm(d) for _ in range(h)]

    def forward(self, x):
        return torch.stack([f(one) for f, one in zip(self.own, x.unbind(1))], 1)


""" + PLAIN.replace(
    "self.h = n_heads",
    "self.h, self.norm = n_heads, Norms(d // n_heads, n_heads)",
).replace("        s = q", "        q, k = self.norm(q), self.norm(k)\n        s = q")


def test_layers_in_a_plain_list_of_a_part_are_missed_by_the_state_dict():
    options = {"d": 16, "n_heads": 4, "qk_norm": "layer"}
    assert outcome(made(IN_A_LIST), **options) == (1, ["weights_not_saved"])
    plain = "[nn.LayerNorm(d) for _ in range(h)]"
    known = made(IN_A_LIST, (plain, f"nn.ModuleList({plain})"))
    found = attncheck.check(known, causal=False, **options).findings
    assert "weights_not_saved" not in [one.mistake for one in found]


def test_slopes_that_count_a_keys_place_alone_are_looked_at_as_well():
    # What that adds to a whole row does nothing.
    slopes = "slopes = 2.0 ** -torch.tensor([2.0, 4.0, 6.0, 8.0, 1.0, {}])"
    source = PLAIN.replace("** 0.5\n", "** 0.5\n        " + slopes + "\n"
        "        place = torch.arange(t, device=x.device)\n"
        "        s = s + slopes.to(x).view(-1, 1, 1) * place\n"
        "        s = s.masked_fill(place > place[:, None], -torch.inf)\n")  # fmt: skip
    options = {"d": 48, "n_heads": 6, "d_in": 48, "alibi": True, "causal": True}
    assert outcome(made(source.replace("{}", "3.0")), **options)[1] == []
    wrong = made(source.replace("{}", "2.0"))
    assert outcome(wrong, **options) == (1, ["alibi_slopes"])


TURNED_HEADS = (
    ROTARY.replace("x.shape[2]", "x.shape[1]")
    .replace("i[:, None] *", "i[:, None, None] *")
    .replace("turned(", "apply_rotary(")
)


def test_a_rotation_by_the_head_is_told_even_if_it_cancels():
    # Queries and keys of a head are turned by one angle, and their products by none.
    assert outcome(made(ROTARY), d=16, n_heads=4)[1] == []
    assert outcome(made(TURNED_HEADS), d=16, n_heads=4)[0] == 1


THREE = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h = n_heads
        self.w_q, self.w_k = nn.Linear(d, d), nn.Linear(d, d)
        self.w_v, self.w_o = nn.Linear(d, d), nn.Linear(d, d)

    def forward(self, query, key=None, value=None):
        if key is None or value is None:
            raise ValueError("key and value are needed")
        b, t, d = query.shape
        q, k, v = (one.view(b, t, self.h, -1).transpose(1, 2) for one in
                   (self.w_q(query), self.w_k(key), self.w_v(value)))
        y = F.scaled_dot_product_attention(q, k, v)
        return self.w_o(y.transpose(1, 2).reshape(b, t, d))
"""


@pytest.mark.parametrize("named", ["", "key, mask, query, value"])
def test_arguments_that_forward_asks_for_after_all_are_given(named):
    source = THREE.replace("query, key=None, value=None", named) if named else THREE
    assert outcome(made(source), d=16, n_heads=4, d_in=16) == (0, [])


def test_wide_heads_are_judged_in_a_short_time():
    calls = []
    from attncheck import turning

    kept = turning._matrices
    turning._matrices = lambda *given: calls.append(given[0].shape[-1]) or kept(*given)
    try:
        wrong = made(ROTARY, ("self.h = n_heads", "self.h, d = n_heads, 4 * 128"),
                     ("nn.Linear(d, 3 * d), nn.Linear(d, d)",
                      "nn.Linear(16, 3 * d), nn.Linear(d, 16)"),
                     ("reshape(b, t, d)", "reshape(b, t, -1)"),
                     ("b * cos + a * sin", "b * cos - a * sin"))  # fmt: skip
        assert outcome(wrong, d=16, n_heads=4, rope="halves")[0] == 1
    finally:
        turning._matrices = kept
    assert all(width <= turning.WIDEST for width in calls)


PARTIAL = (
    ROTARY.replace(
        "def __init__(self, d, n_heads):", "def __init__(self, d=64, n_heads=4):"
    )
    .replace(
        "        half, wide",
        "        x, rest = x[..., :4], x[..., 4:]\n        half, wide",
    )
    .replace(
        "cos, sin = angles",
        "angles = torch.cat((angles, angles), -1)\n        cos, sin = angles",
    )
    .replace(
        "        a, b = x[..., :half], x[..., half:]\n"
        "        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)",
        "        turned = torch.cat((-x[..., half:], x[..., :half]), -1)\n"
        "        return torch.cat((x * cos + turned * sin, rest), -1)",
    )
)


def test_one_pair_of_rotated_numbers_does_not_hide_a_wrong_table():
    # Built narrower, a head has one pair, and any layout of the table is right.
    options = {"d": 64, "n_heads": 4, "d_in": 64}
    assert outcome(made(PARTIAL), **options)[1] == []
    table = ("torch.cat((angles, angles), -1)", "angles.repeat_interleave(2, -1)")
    assert outcome(made(PARTIAL, table), **options) == (1, ["rope_pairing"])


def test_what_starts_at_zero_in_a_joined_weight_can_be_dead():
    zero = ("        self.h =", "        self.zero = {}\n        self.h =")
    end = (", nn.Linear(d, d)\n", ", nn.Linear(d, d)\n"
           "        with torch.no_grad():\n"
           "            self.qkv.weight[: self.zero * d].zero_()\n"
           "            self.qkv.bias.zero_()\n")  # fmt: skip
    queries = made(PLAIN, (zero[0], zero[1].format(1)), end)
    assert outcome(queries, d=16, n_heads=4) == (0, [])  # it learns from the keys
    both = made(PLAIN, (zero[0], zero[1].format(2)), end)
    assert outcome(both, d=16, n_heads=4) == (1, ["init_dead"])


ROLLED = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads, window=5):
        super().__init__()
        self.h, self.window = n_heads, window
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x, cache=None):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        n = k.shape[2]
        i = torch.arange(n - t, n, device=x.device)[:, None]
        far = i - torch.arange(n, device=x.device)
        seen = (far >= 0) & (far < self.window)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        kept = k[:, :, -self.window :], v[:, :, -self.window :]
        return self.proj(y.transpose(1, 2).reshape(b, t, d)), kept
"""


@pytest.mark.parametrize(
    ("window", "mistake"), [(5, "cache_differs"), (1024, "cache_forgets")]
)
def test_a_chunk_needs_what_its_first_token_sees(window, mistake):
    source = ROLLED.replace("window=5", f"window={window}")
    options = {"d": 16, "n_heads": 4, "d_in": 16, "causal": True}
    if window == 5:
        options["window"] = 5
    assert outcome(made(source), **options) == (0, [])
    cut = "        k, v = k[:, :, -most:], v[:, :, -most:]\n        n = k.shape[2]"
    cut = f"        most = max(self.window, t)\n{cut}"
    early = made(source, ("        n = k.shape[2]", cut))
    assert outcome(early, **options) == (1, [mistake])


WIDE = """\
class Attention(nn.Module):
    def __init__(self, dim, heads, dim_head=64):
        super().__init__()
        self.heads, self.scale = heads, dim_head**-0.5
        self.to_q = nn.Linear(dim, heads * dim_head, bias=False)
        self.to_kv = nn.Linear(dim, 2 * dim_head, bias=False)
        self.to_out = nn.Linear(heads * dim_head, dim)
        self.relative_bias = nn.Embedding(32, heads)

    def forward(self, x):
        b, t, _ = x.shape
        q, (k, v) = self.to_q(x), self.to_kv(x).chunk(2, dim=-1)
        q = q.unflatten(-1, (self.heads, -1)).transpose(1, 2) * self.scale
        i = torch.arange(t, device=x.device)
        far = (i[:, None] - i).clamp(min=0)
        bias = self.relative_bias(far.clamp(max=31)).permute(2, 0, 1)
        s = torch.einsum("bhid,bjd->bhij", q, k) + bias / self.scale
        s = s.masked_fill(i > i[:, None], -torch.finfo(s.dtype).max)
        y = torch.einsum("bhij,bjd->bhid", s.softmax(-1), v)
        return self.to_out(y.transpose(1, 2).flatten(2))
"""


def test_heads_wider_than_the_tokens_tell_nothing_of_rotations():
    found = outcome(made(WIDE), dim=16, heads=4, d_in=16, causal=True)[1]
    assert not [name for name in found if name.startswith("rope")]


TIME_FIRST = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h = n_heads
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, hidden_states, attention_mask):
        t, b, d = hidden_states.shape
        q, k, v = self.qkv(hidden_states).view(t, b, 3, self.h, -1).permute(
            2, 1, 3, 0, 4)
        s = q @ k.mT / q.shape[-1] ** 0.5
        if attention_mask is not None:
            s = s.masked_fill(~attention_mask, -torch.inf)
        return self.proj((s.softmax(-1) @ v).permute(2, 0, 1, 3).reshape(t, b, d))
"""


def test_a_mask_is_tried_again_once_the_first_axis_is_known_to_be_the_tokens():
    options = {"d": 16, "n_heads": 4, "d_in": 16, "causal": True}
    report = attncheck.check(made(TIME_FIRST), **options)
    assert [one.mistake for one in report.findings] == ["batch_first"]
    assert report.exit_status == 0
    blind = made(TIME_FIRST, ("s.masked_fill(~attention_mask, -torch.inf)", "s"))
    assert outcome(blind, **options) == (1, ["mask_missing"])
