"""A layer that nobody described is judged where each step follows from its input."""

import pytest

import attncheck
from attncheck.loading import load
from attncheck.mistakes import BASES, HEADER, compiled

SOURCE = """\
import math
import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, d_model, num_heads, window_size=None):
        super().__init__()
        self.h, self.d = num_heads, d_model // num_heads
        self.norm = nn.LayerNorm(d_model)
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.table = nn.Parameter(torch.randn(31, num_heads))
        self.rows = nn.Parameter(torch.randn(31, d_model // num_heads))
        self.logit_scale = nn.Parameter(torch.zeros(num_heads))
        self.window = window_size or 99

    def forward(self, x):
        b, t, d = x.shape
        normed = self.norm(x)
        qkv = self.qkv(normed).view(b, t, 3, self.h, self.d)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        i = torch.arange(t, device=x.device)
        far = i[:, None] - i
        ADD
        hidden = (far < 0) | (far >= self.window)
        weights = scores.masked_fill(hidden, -torch.inf).softmax(dim=-1)
        y = (weights @ v).transpose(1, 2).reshape(b, t, d)
        return x + self.out(y)
"""
PLAIN = "scores = q @ k.mT / math.sqrt(self.d)"
LAYERS = {
    "a bias by distance": f"{PLAIN} + self.table[far + 15].permute(2, 0, 1)",
    "products of the queries": (
        "scores = q @ k.mT + torch.einsum('bhid,ijd->bhij', q, self.rows[far + 15])\n"
        "        scores = scores / math.sqrt(self.d)"
    ),
    "multiplied by logit_scale": (
        "q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)\n"
        "        scores = q @ k.mT * self.logit_scale.exp()[:, None, None]"
    ),
}
# What is not explained stays without a verdict, and is never green.
OTHERS = {
    "biases of two distances in one": LAYERS["a bias by distance"].replace(
        "far + 15", "far // 2 + 15"
    ),
    "a fixed bias that grows": f"{PLAIN} + 0.3 * far.abs()",
    "norms over the tokens": LAYERS["multiplied by logit_scale"].replace(
        "dim=-1", "dim=-2"
    ),
    "another scale": LAYERS["a bias by distance"].replace("self.d)", "self.d + 3)"),
    "keys without the norm": LAYERS["a bias by distance"].replace(
        "scores =",
        "k = (x @ self.qkv.weight.chunk(3)[1].mT + self.qkv.bias.chunk(3)[1])\n"
        "        k = k.view(b, t, self.h, self.d).transpose(1, 2)\n"
        "        scores =",
    ),
}


def checked(added, source=SOURCE, **options):
    lines = [
        line
        for line in source.replace("ADD", added).splitlines(keepends=True)
        if not any(
            f"self.{name} = " in line and f"self.{name}" not in added
            for name in ("table", "rows", "logit_scale")
        )
    ]
    return attncheck.check(compiled("".join(lines), "inferred.py"), **options)


def errors(report):
    return [f.mistake for f in report.findings if f.severity == "error"]


@pytest.mark.parametrize("told", LAYERS)
def test_what_no_option_describes_is_read_off_and_judged(told):
    report = checked(LAYERS[told])
    assert (report.exit_status, errors(report)) == (0, [])
    assert any(told in note for note in report.notes)


@pytest.mark.parametrize("told", OTHERS)
def test_a_step_without_an_explanation_is_never_green(told):
    assert checked(OTHERS[told]).exit_status != 0


def test_the_normed_input_added_is_named():
    source = SOURCE.replace("return x + self.out(y)", "return normed + self.out(y)")
    assert errors(checked(LAYERS["a bias by distance"], source)) == ["residual_moved"]


@pytest.mark.parametrize(
    ("order", "found"), [("q0v", []), ("qv0", ["projection_mixed_up"])]
)
def test_a_bias_is_added_to_what_its_name_says(order, found):
    names = {"q": "self.q_bias", "v": "self.v_bias", "0": "0 * self.v_bias"}
    bias = f"torch.cat([{', '.join(names[one] for one in order)}])"
    own = "".join(
        f"        self.{one}_bias = nn.Parameter(torch.randn(d_model))\n"
        for one in "qv"
    )
    source = SOURCE.replace("3 * d_model)", "3 * d_model, bias=False)")
    source = source.replace(
        "self.qkv(normed)", "F.linear(normed, self.qkv.weight, " + bias + ")"
    )
    source = source.replace("    def forward", f"{own}\n    def forward")
    assert errors(checked(LAYERS["a bias by distance"], source)) == found


def test_a_window_of_one_more_is_asked_for_and_named_where_it_is_declared():
    wide = SOURCE.replace("far >= self.window", "far > self.window")
    given = {"window_size": 3}
    added = LAYERS["a bias by distance"]
    assert checked(added, **given).exit_status == 0
    report = checked(added, wide, **given)
    assert report.exit_status == 3
    assert report.command == ""
    assert "window=4 (--window 4)" in report.needed
    assert "window=3 (--window 3)" in report.needed
    assert errors(checked(added, wide, window=3, **given)) == ["window_size"]


CONFIG = "class Config:\n    d_model = 32\n    num_heads = 4\n    window_size = 3\n\n\n"
NAMED = "from typing import NamedTuple\n\n\n" + CONFIG.replace(
    "Config:", "Config(NamedTuple):"
).replace(" =", ": int =")


@pytest.mark.parametrize("head", [CONFIG, NAMED], ids=["plain", "named tuple"])
def test_a_class_is_a_config(head):
    source = SOURCE.replace("class Attention", head + "class Attention")
    source = source.replace(
        "self, d_model, num_heads, window_size=None):",
        "self, config):\n        d_model = config.d_model\n"
        "        num_heads = config.num_heads\n"
        "        window_size = config.window_size",
    )
    report = checked(LAYERS["a bias by distance"], source)
    assert report.exit_status == 0
    assert any("a window of 3" in note for note in report.notes)


def test_a_setting_that_forward_alone_reads_is_guessed():
    source = SOURCE.replace(
        "self, d_model, num_heads, window_size=None):", "self, args):"
    )
    source = source.replace(
        "super().__init__()\n",
        "super().__init__()\n        self.args, window_size = args, None\n"
        "        d_model, num_heads = args.d_model, args.num_heads\n",
    ).replace(
        "normed = self.norm(x)", "normed = self.norm(x) * (self.args.n_layers > 0)"
    )
    assert source.count("args.n_layers") == 1
    assert "forward_raises" not in errors(checked(PLAIN, source))


def test_dropped_scores_are_named_beside_dropout_of_the_output():
    source = SOURCE.replace(
        "num_heads, window_size=None):", "num_heads, dropout=0.1, window_size=None):"
    )
    source = source.replace(
        "self.norm =",
        "self.drop, self.last = nn.Dropout(dropout), nn.Dropout(dropout)\n"
        "        self.norm =",
    ).replace("self.out(y)", "self.last(self.out(y))")
    right = source.replace("weights @", "self.drop(weights) @")
    assert "dropout_on_scores" not in errors(checked(PLAIN, right))
    wrong = checked(f"{PLAIN}\n        scores = self.drop(scores)", source)
    assert "dropout_on_scores" in errors(wrong)


CACHED = """\
import math
import torch
from torch import nn


class KVCache:
    def __init__(self):
        self.held = None

    def join(self, k, v):
        if self.held:
            k, v = (torch.cat(pair, dim=1) for pair in zip(self.held, (k, v)))
        self.held = k, v
        return k, v


class Attention(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)

    def forward(self, x, cache=None):
        q, k, v = self.query(x), self.key(x), self.value(x)
        if cache is not None:
            k, v = cache.join(k, v)
        t, keys = x.shape[1], k.shape[1]
        hidden = x.new_ones(t, keys).triu(keys - t + 1).bool()
        scores = q @ k.mT / math.sqrt(x.shape[-1])
        return scores.masked_fill(hidden, -torch.inf).softmax(dim=-1) @ v
"""


def test_a_cache_of_a_class_in_the_same_file_is_used():
    for name, given in (("KVCache", "cache"), ("KeyStore", "store")):
        source = CACHED.replace("KVCache", name).replace("cache", given)
        report = attncheck.check(compiled(source, "cached.py"), d_in=16)
        assert errors(report) == []
        wrong = source.replace("self.held = k, v", "self.held = k, v + 1")
        found = errors(attncheck.check(compiled(wrong, "cached.py"), d_in=16))
        assert found == ["cache_differs"]


def test_a_cache_that_keeps_the_oldest_is_no_matter_of_positions():
    window = CACHED.replace(
        "triu(keys - t + 1).bool()", "bool()\n        hidden = self.far(hidden)"
    ).replace(
        "    def forward",
        "    def far(self, one):\n"
        "        t, keys = one.shape\n"
        "        return one.triu(keys - t + 1) | one.tril(keys - t - 4)\n\n"
        "    def forward",
    )
    right = window.replace("= k, v\n", "= k[:, -3:], v[:, -3:]\n")
    wrong = window.replace("= k, v\n", "= k[:, :3], v[:, :3]\n")
    made = [compiled(source, "cached.py") for source in (right, wrong)]
    options = {"d_in": 16, "window": 4}
    assert [errors(attncheck.check(one, **options)) for one in made] == [
        [],
        ["cache_forgets"],
    ]


# ---- what a fifth set by others showed ----

HEADS = """\
import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, width, num_heads, p=0.1, rotary_pct=0.5):
        super().__init__()
        self.h, self.d, self.p = num_heads, width // num_heads, p
        self.turned = int(self.d * rotary_pct)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def rotate(self, x):
        n = torch.arange(0, self.turned, 2, device=x.device)
        angles = torch.arange(x.shape[2], device=x.device)[:, None] / 10000 ** (
            n / self.turned
        )
        angles = ANGLES
        r, rest = x.split([self.turned, self.d - self.turned], dim=-1)
        pairs = torch.stack([-r[..., 1::2], r[..., ::2]], dim=-1).flatten(-2)
        return torch.cat([r * angles.cos() + pairs * angles.sin(), rest], dim=-1)

    def forward(self, x):
        b, t, width = x.shape
        qkv = self.qkv(x).view(b, t, 3, self.h, self.d).permute(2, 0, 3, 1, 4)
        q, k, v = (qkv[i] for i in range(3))
        TURN
        q /= self.d**0.5
        scores = q @ k.mT
        weights = scores.softmax(dim=-1)
        keep = torch.rand_like(weights) >= self.p
        if self.training:
            weights = weights * keep
        return self.out((weights @ v).transpose(1, 2).reshape(b, t, width))
"""
ROPE = {"pairing": "neighbors", "share": 0.5}
TURN = "q, k = self.rotate(q), self.rotate(k)"


def of_heads(turn="", angles="0", kept="keep / (1 - self.p)", gate="", **options):
    source = HEADS.replace("TURN", turn or "pass").replace("ANGLES", angles)
    source = source.replace("return self.out", f"return {gate}self.out")
    source = source.replace("weights * keep", f"weights * {kept}")
    cls = compiled(source, "heads.py")
    return attncheck.check(cls, causal=False, **options)


def test_queries_divided_in_place_are_scaled():
    assert errors(of_heads(gate="torch.sigmoid(self.out(x)) * ")) == []


def test_a_rate_named_p_is_one_of_dropout():
    assert errors(of_heads(kept="keep")) == ["dropout_not_rescaled"]


def test_a_part_that_is_rotated_has_two_angles_by_default():
    """With one angle, a table for halves and one for neighbors are the same."""
    right = of_heads(TURN, "angles.repeat_interleave(2, dim=-1)", rope=ROPE)
    assert (right.exit_status, errors(right)) == (0, [])
    halves = "torch.cat([angles, angles], dim=-1)"
    report = of_heads(TURN, halves, rope=ROPE)
    assert errors(report) == ["rope_pairing"]
    assert of_heads(TURN, halves).exit_status != 0


BLOCK = """\
import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, d_model, num_heads, kv_heads=2, share=0.5):
        super().__init__()
        self.h, self.g, self.d = num_heads, kv_heads, d_model // num_heads
        self.share = share
        self.norm = nn.LayerNorm(d_model)
        self.q = nn.Linear(d_model, num_heads * self.d)
        self.kv = nn.Linear(d_model, 2 * kv_heads * self.d)
        self.q_norm, self.k_norm = nn.LayerNorm(self.d), nn.LayerNorm(self.d)
        self.out = nn.Linear(num_heads * self.d, d_model)

    def turned(self, x):
        r = int(self.d * self.share)
        x, rest = x[..., :r], x[..., r:]
        steps = torch.arange(0, r, 2, device=x.device) / r
        angles = torch.arange(x.shape[2], device=x.device)[:, None] * 10000.0**-steps
        angles = torch.cat([angles, angles], dim=-1)
        one, two = x.chunk(2, dim=-1)
        other = torch.cat([-two, one], dim=-1)
        return torch.cat([x * angles.cos() + other * angles.sin(), rest], dim=-1)

    def forward(self, x):
        b, t, _ = x.shape
        y = self.norm(x)
        wide = self.kv(y)
        k, v = wide.chunk(2, dim=-1)
        q = self.q_norm(self.q(y).view(b, t, self.h, self.d)).transpose(1, 2)
        k = self.k_norm(k.view(b, t, self.g, self.d)).transpose(1, 2)
        v = v.view(b, t, self.g, self.d).transpose(1, 2)
        q, k = self.turned(q), self.turned(k)
        k, v = (z.repeat_interleave(self.h // self.g, 1) for z in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).flatten(2))
"""
REPEATED = """\
k, v = (z.transpose(1, 2).flatten(2).repeat_interleave(self.h // self.g, -1)
                .view(b, t, self.h, self.d).transpose(1, 2) for z in (k, v))"""
WRONG = {
    "rope_frequencies": ("device=x.device) / r", "device=x.device) * 2 / r"),
    "rope_pairing": ("torch.cat([angles, angles], dim=-1)",
                     "angles.repeat_interleave(2, -1)"),
    "rope_rest_moved": ("q, k = self.turned(q), self.turned(k)",
                        "q, k = self.turned(q), self.turned(k)\n"
                        "        k = k.roll(-int(self.d * self.share), -1)"),
    "rope_on_one_side": ("self.turned(q), self.turned(k)", "self.turned(q), k"),
    "scale_twice": ("is_causal=True", "is_causal=True, scale=1 / self.d"),
    "groups_tiled": ("k, v = (z.repeat_interleave(self.h // self.g, 1) "
                     "for z in (k, v))", REPEATED),
    "prenorm_partly": ("        k, v = wide.chunk(2, dim=-1)",
                       "        k, v = wide.chunk(2, dim=-1)\n"
                       "        v = self.kv(x).chunk(2, dim=-1)[1]"),
    "qk_norm_one_side": ("k = self.k_norm(k.view(b, t, self.g, self.d))",
                         "k = k.view(b, t, self.g, self.d)"),
    "projection_mixed_up": ("k, v = wide.chunk(2, dim=-1)",
                            "k, v = wide[..., :2 * self.d], "
                            "wide[..., self.d:3 * self.d]"),
}  # fmt: skip
BLOCK_SIZES = {"d_model": 32, "num_heads": 4}
DECLARED = {
    "prenorm": True,
    "residual": True,
    "qk_norm": "layer",
    "rope": {"pairing": "halves", "share": 0.5},
}


@pytest.mark.parametrize("declared", [{}, DECLARED])
def test_a_block_of_norms_and_rotations_is_right_declared_or_not(declared):
    report = attncheck.check(compiled(BLOCK, "block.py"), **BLOCK_SIZES, **declared)
    assert report.verdict == "passed", str(report)


@pytest.mark.parametrize("mistake", WRONG)
def test_the_one_wrong_step_of_a_block_is_named(mistake):
    right, wrong = WRONG[mistake]
    assert right in BLOCK
    cls = compiled(BLOCK.replace(right, wrong), f"{mistake}.py")
    report = attncheck.check(cls, **BLOCK_SIZES)
    assert [f.mistake for f in report.findings][:1] == [mistake], str(report)


MASKED = """\
import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.h = num_heads
        self.q, self.k, self.v = (nn.Linear(d_model, d_model) for _ in range(3))
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, memory, key_padding_mask=None):
        \"\"\"key_padding_mask: (b, t), WORDS.\"\"\"
        q, k, v = self.q(x), self.k(memory), self.v(memory)
        q, k, v = (z.unflatten(-1, (self.h, -1)).transpose(1, 2) for z in (q, k, v))
        mask = None
        if key_padding_mask is not None:
            mask = key_padding_mask[:, None, None, :]  # what is seen
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(y.transpose(1, 2).flatten(2))
"""


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("True where a key is real", []),
        ("True for what is not padding", []),
        ("True where a key isn't valid", ["padding_inverted"]),
        ("True for padding", ["padding_inverted"]),
        ("1 = real token, 0 = padding", []),
        ("1 for atoms, and 0 for padding", []),
        ("1 for holes, and 0 for valid ones", ["padding_inverted"]),
        ("not needed; True keeps", []),
        ("as usual", ["padding_inverted"]),
    ],
)
def test_a_mask_beside_a_memory_means_what_is_written_beside_it(tmp_path, words, found):
    file = tmp_path / "masked.py"
    file.write_text(MASKED.replace("WORDS", words), encoding="utf-8")
    cls = load(f"{file}:Attention")

    def call(module, x, memory):
        return module(x, memory)

    for way in ({}, {"call": call}):  # one that the reader wrote is given it, too
        report = attncheck.check(cls, memory=5, **way, **BLOCK_SIZES)
        assert [f.mistake for f in report.findings] == found, str(report)


def test_a_scale_in_words_is_not_for_the_constructor():
    source = BLOCK.replace("share=0.5", "share=0.5, scale=1.0")
    source = source.replace("is_causal=True", "is_causal=True, scale=1 / self.d")
    source = source.replace("self.share = share", "self.share = share * scale")
    options = {"scale": "1/d", **DECLARED}
    report = attncheck.check(compiled(source, "scaled.py"), **BLOCK_SIZES, **options)
    assert report.verdict == "passed", str(report)


def test_a_sink_that_is_not_shifted_with_the_scores_is_named():
    source, _, options = BASES["sink"]
    right = (
        "        scores = torch.cat([scores, sink], dim=-1)\n"
        "        weights = scores.softmax(dim=-1)[..., :-1]\n"
    )
    assert right in source
    wrong = (
        "        powers = (scores - scores.amax(-1, keepdim=True)).exp()\n"
        "        weights = powers / (powers.sum(-1, keepdim=True) + sink.exp())\n"
    )
    for given in (options, {}):
        cls = compiled(HEADER + source.replace(right, wrong), "sink.py")
        report = attncheck.check(cls, **given)
        found = [finding.mistake for finding in report.findings]
        asked = report.proposal == {"sink": "learned"}
        assert found == ["sink_unshifted"] or asked, str(report)


KIND = """\
import torch
from torch import nn
from torch.nn import functional as F


class CenteredRMSNorm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(d))

    def forward(self, x):
        size = x.square().mean(dim=-1, keepdim=True) + 1e-6
        return x * torch.rsqrt(size) * (1 + self.weight)


class Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.h, self.d = num_heads, d_model // num_heads
        h, d = self.h, self.d
        self.q, self.k, self.v, self.out = (
            nn.Linear(d_model, d_model, bias=False) for _ in "qkvo"
        )
        MADE

    def forward(self, x):
        b, t, c = x.shape
        h, d = self.h, self.d
        HEADS
        i = torch.arange(t, device=x.device)
        hidden = i > i[:, None]
        FIRST
        scores = q @ k.mT / d**0.5
        SCORED
        y = scores.masked_fill(hidden, -torch.inf).softmax(dim=-1) @ v
        y = y.transpose(1, 2)
        LAST
        return self.out(y.reshape(b, t, c))
"""
GROUPS = """qkv = self.qkv(x).view(b, t, h // 2, 4, d).permute(0, 2, 3, 1, 4)
        q = qkv[:, :, :2].flatten(1, 2)
        k, v = (qkv[:, :, n].repeat_interleave(2, 1) for n in (2, 3))
        q, k = self.one(q), self.two(k)"""
# {kind: (parts of the class, what makes it wrong)}
KINDS = {
    "a gate for each entry": (
        {"MADE": "self.gate = nn.Linear(d_model, d_model)",
         "LAST": "y = y.flatten(2) * self.gate(x).sigmoid()"},
        ("self.gate(x)", "self.gate(x + y.flatten(2))"),
    ),
    "a gate for each head": (
        {"MADE": "self.gate = nn.Linear(d_model, num_heads)",
         "LAST": "y = y * self.gate(x).sigmoid()[..., None]"},
        ("self.gate(x)", "self.gate(x).roll(1, 1)"),
    ),
    "heads before sequences": (
        {"FIRST": "q, k, v = (one.transpose(0, 1) for one in (q, k, v))",
         "MADE": "self.one, self.two = nn.LayerNorm(d), nn.LayerNorm(d)",
         "SCORED": "scores = self.one(q) @ self.two(k).mT / d**0.5",
         "LAST": "y = y.permute(2, 1, 0, 3)"},
        ("permute(2, 1, 0, 3)", "permute(2, 1, 3, 0)"),
    ),
    "a weight with an axis for heads": (
        {"MADE": "del self.q, self.v\n"
                 "        self.wq = nn.Parameter(torch.randn(h, d_model, d))\n"
                 "        self.wv = nn.Parameter(torch.randn(d_model, h, d))",
         "HEADS": "q, k = x[:, None] @ self.wq, self.k(x).view(b, t, h, d)\n"
                  "        v = torch.einsum('btc,chd->bhtd', x, self.wv)\n"
                  "        k = k.transpose(1, 2)"},
        ("x[:, None]", "x[:, None].roll(1, 2)"),
    ),
    "a norm over all heads": (
        {"MADE": "self.one, self.two = nn.LayerNorm(d_model), nn.LayerNorm(d_model)",
         "FIRST": "q, k = self.one(self.q(x)), self.two(self.k(x))\n"
         "        q, k = (z.view(b, t, h, d).transpose(1, 2) for z in [q, k])"},
        ("self.two(self.k(x))", "self.two(self.k(x).roll(1, 1))"),
    ),
    "a norm that multiplies by one more than its weight": (
        {"MADE": "self.one, self.two = CenteredRMSNorm(d), CenteredRMSNorm(d)",
         "FIRST": "q, k = self.one(q), self.two(k)"},
        ("self.two(k)", "self.two(k.mT).mT if d == t else k"),
    ),
    "heads joined group by group": (
        {"MADE": "del self.q, self.k, self.v\n"
                 "        self.qkv = nn.Linear(d_model, 2 * d_model)\n"
                 "        self.one, self.two = nn.LayerNorm(d), nn.LayerNorm(d)",
         "HEADS": GROUPS},
        ("repeat_interleave(2, 1)", "repeat(1, 2, 1, 1)"),
    ),
    "a distance bias by the key alone": (
        {"MADE": "self.one = nn.LayerNorm(d)",
         "FIRST": "q, k = self.one(q), self.one(k)",
         "SCORED": "slopes = 2 ** (-8 * torch.arange(1, h + 1, device=x.device) / h)\n"
                   "        scores = scores + slopes[:, None, None] * (i - t)"},
        ("(i - t)", "(t - i)"),
    ),
}  # fmt: skip
SPLIT = """q, k, v = (
            f(x).view(b, t, h, d).transpose(1, 2) for f in (self.q, self.k, self.v)
        )"""


def kind(name, wrong=False):
    parts, change = KINDS[name]
    source = KIND
    for place in ("MADE", "HEADS", "FIRST", "SCORED", "LAST"):
        default = SPLIT if place == "HEADS" else ""
        source = source.replace(place, parts.get(place, default))
    return compiled(source.replace(*change) if wrong else source, "kind.py")


@pytest.mark.parametrize("name", KINDS)
def test_a_design_is_judged_and_its_wrong_twin_is_not_green(name):
    report = attncheck.check(kind(name), num_heads=4)
    assert (report.exit_status, errors(report)) == (0, [])
    assert attncheck.check(kind(name, wrong=True), num_heads=4).exit_status != 0
