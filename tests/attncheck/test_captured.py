"""What is captured of one pass names the step that is wrong, in layers of any kind."""

import pytest

import attncheck
from attncheck.mistakes import compiled

HEADER = (
    "import math\nimport torch\nfrom torch import nn\n"
    "from torch.nn import functional as F\n\n\n"
)
# Of no known kind, since the context goes through tanh before it is projected.
SOURCE = (
    HEADER
    + """\
class Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.h, self.d = num_heads, d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        q, k, v = (z.view(b, t, self.h, self.d).transpose(1, 2) for z in (q, k, v))
        scores = q @ k.mT / self.d**0.5
        hidden = x.new_ones(t, t).triu(1).bool()
        scores = scores.masked_fill(hidden, -torch.inf)
        weights = scores.softmax(dim=-1)
        y = (weights @ v).transpose(1, 2).reshape(b, t, c)
        return self.out(y + 0.1 * torch.tanh(y))
"""
)
CUT = "z.view(b, t, self.h, self.d).transpose(1, 2)"
QKV = "self.q_proj(x), self.k_proj(x), self.v_proj(x)"
JOIN = "(weights @ v).transpose(1, 2).reshape(b, t, c)"
SOFTMAX = "weights = scores.softmax(dim=-1)"
OWN = "e = (scores - scores.amax(-1, True)).exp()\n        weights = e / e.sum("
EINSUM_JOIN = 'torch.einsum("bhij,bhjd->bidh", weights, v).reshape(b, t, c)'
WRONG = [
    ("mask_fill_finite", "-torch.inf", "-1.0"),
    ("mask_fill_zero", "-torch.inf", "1e-9"),
    ("mask_missing", "triu(1)", "tril(-3)"),
    ("softmax_over_everything", SOFTMAX, OWN + "dim=(-2, -1), keepdim=True)"),
    ("softmax_twice", SOFTMAX, SOFTMAX + ".softmax(dim=-1)"),
    ("projections_through_relu", "self.v_proj(x)", "self.v_proj(x).relu()"),
    ("projection_mixed_up", "self.k_proj(x)", "self.q_proj(x)"),
    ("join_interleaved", JOIN, EINSUM_JOIN),
    ("scale_by_tokens", "self.d**0.5", "t**0.5"),
    ("scale_multiplied", "/ self.d**0.5", "* self.d"),
]  # fmt: skip


def errors(source, **options):
    made = attncheck.check(compiled(source, "captured.py"), **options)
    return [f.mistake for f in made.findings if f.severity == "error"]


def test_a_layer_of_no_known_kind_is_not_judged():
    report = attncheck.check(compiled(SOURCE, "captured.py"))
    assert (report.exit_status, report.findings) == (3, [])


@pytest.mark.parametrize(("mistake", "right", "wrong"), WRONG)
def test_a_step_is_named_in_it(mistake, right, wrong):
    assert right in SOURCE
    assert errors(SOURCE.replace(right, wrong))[:1] == [mistake]


@pytest.mark.parametrize(
    ("axis", "mistake"), [(1, "softmax_over_heads"), (0, "softmax_over_batch")]
)
def test_a_softmax_by_hand_over_an_axis_without_tokens_is_named(axis, mistake):
    """With a finite value in place of -inf, it has no NaN that would tell."""
    source = SOURCE.replace("y + 0.1 * torch.tanh(y)", "y").replace(
        "-torch.inf", "-1e9"
    )
    by_hand = source.replace(SOFTMAX, OWN.replace("-1", "{axis}") + "{axis}, True)")
    assert errors(by_hand.format(axis=-1)) == []
    assert errors(by_hand.format(axis=axis))[:1] == [mistake]


def test_heads_in_front_of_the_sequences_are_told_apart():
    """Chunks of the width are joined along the batch, and the scale is wrong."""
    source = SOURCE.replace(CUT, "torch.cat(z.chunk(self.h, dim=-1), dim=0)").replace(
        JOIN, "torch.cat((weights @ v).chunk(self.h, dim=0), dim=-1)"
    )
    assert errors(source) == []
    assert errors(source.replace("self.d**0.5", "t**0.5"))[:1] == ["scale_by_tokens"]


def test_thirds_of_the_tokens_are_no_queries_keys_and_values():
    source = SOURCE.replace("self.q_proj = ", "self.qkv = ").replace(
        "self.qkv = nn.Linear(d_model, d_model)",
        "self.qkv = nn.Linear(d_model, 3 * d_model)",
    )
    source = source.replace("        self.k_proj = nn.Linear(d_model, d_model)\n", "")
    source = source.replace("        self.v_proj = nn.Linear(d_model, d_model)\n", "")
    source = source.replace(QKV, "self.qkv(x).chunk(3, dim=-1)")
    assert errors(source) == []
    cut = "self.qkv(x).reshape(b, 3, t, c).unbind(1)"
    wrong = source.replace("self.qkv(x).chunk(3, dim=-1)", cut)
    assert errors(wrong)[:1] == ["heads_viewed"]


CAPPED = SOURCE.replace("y + 0.1 * torch.tanh(y)", "y").replace(
    "num_heads):", "num_heads, logit_cap=30.0):"
).replace(
    "        self.out =",
    "        self.cap = logit_cap\n        self.q_norm = nn.RMSNorm(self.d)\n"
    "        self.k_norm = nn.RMSNorm(self.d)\n        self.out =",
).replace("q @ k.mT / self.d**0.5", "self.cap * torch.tanh(self.q_norm(q) @ "
          "self.k_norm(k).mT / self.d**0.5 / self.cap)")  # fmt: skip


def test_a_cap_that_was_given_is_known_beside_norms_and_has_to_multiply_again():
    report = attncheck.check(compiled(CAPPED, "capped.py"))
    assert (report.exit_status, report.findings) == (0, [])
    wrong = CAPPED.replace("self.cap * torch", "torch")
    report = attncheck.check(compiled(wrong, "capped.py"))
    assert [(f.mistake, f.stage) for f in report.findings] == [
        ("softcap_incomplete", "scores")
    ]


SINKS = SOURCE.replace("y + 0.1 * torch.tanh(y)", "y").replace(
    "        self.out =",
    "        self.sinks = nn.Parameter(torch.randn(num_heads))\n        self.out =",
).replace(SOFTMAX, """\
sinks = self.sinks.view(-1, 1, 1).expand(b, -1, t, 1)
        weights = torch.cat([scores, sinks], -1).softmax(-1)[..., :-1]""")  # fmt: skip


def test_a_sink_that_is_cut_off_before_softmax_is_named():
    assert errors(SINKS) == []
    wrong = SINKS.replace("-1).softmax(-1)[..., :-1]", "-1)[..., :-1].softmax(-1)")
    assert errors(wrong) == ["sink_unused"]


SLOPES = (
    SOURCE.replace("y + 0.1 * torch.tanh(y)", "y")
    .replace(
        "        self.out =",
        "        slopes = 2.0 ** (-8 * torch.arange(1, self.h + 1) / self.h)\n"
        '        self.register_buffer("slopes", slopes.view(-1, 1, 1))\n'
        "        self.out =",
    )
    .replace(
        "        hidden =",
        "        i = torch.arange(t, device=x.device)\n"
        "        far = (i[:, None] - i).abs()\n"
        "        scores = scores - (self.slopes * far).to(scores)\n        hidden =",
    )
)


def test_slopes_of_another_number_of_heads_are_named():
    assert errors(SLOPES) == []
    assert errors(SLOPES.replace("+ 1) / self.h", "+ 1) / 16"))[:1] == ["alibi_slopes"]


EINSUM = (
    HEADER
    + """\
class Attention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.d = d_model // n_heads
        self.wq = nn.Parameter(torch.randn(d_model, n_heads, self.d) * d_model**-0.5)
        self.wk = nn.Parameter(torch.randn(d_model, n_heads, self.d) * d_model**-0.5)
        self.wv = nn.Parameter(torch.randn(d_model, n_heads, self.d) * d_model**-0.5)
        self.wo = nn.Parameter(torch.randn(n_heads, self.d, d_model) * d_model**-0.5)

    def forward(self, x):
        q = torch.einsum("btc,chd->bthd", x, self.wq)
        k = torch.einsum("btc,chd->bthd", x, self.wk)
        v = torch.einsum("btc,chd->bthd", x, self.wv)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / self.d**0.5
        weights = scores.softmax(dim=-1)
        return torch.einsum("bhqk,bkhd,hdc->bqc", weights, v, self.wo)
"""
)


@pytest.mark.parametrize(
    ("right", "wrong", "found"),
    [
        ("", "", []),
        ("dim=-1", "dim=-2", ["softmax_over_queries"]),
        ("self.d**0.5", "self.d", ["scale_twice"]),
    ],
)
def test_einsum_of_three_factors_is_followed(right, wrong, found):
    source = EINSUM.replace(right, wrong) if right else EINSUM
    report = attncheck.check(compiled(source, "einsum.py"), causal=False)
    assert [f.mistake for f in report.findings if f.severity == "error"] == found
    assert report.exit_status == bool(found)


ROTATED = (
    HEADER
    + """\
class Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.h, self.d, self.rot = num_heads, d_model // num_heads, 2
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out = nn.Linear(d_model, d_model, bias=False)
        self.norm = nn.RMSNorm(d_model)
        self.q_norm, self.k_norm = nn.RMSNorm(self.d), nn.RMSNorm(self.d)

    def turned(self, x):
        angles = torch.arange(x.shape[2], device=x.device)[:, None] * 10000.0 ** (
            -torch.arange(0, self.d, 2, device=x.device) / self.d
        )
        z = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
        z = z * torch.polar(torch.ones_like(angles), angles)
        return torch.view_as_real(z).flatten(-2)

    def forward(self, x):
        b, t, c = x.shape
        normed = self.norm(x)
        qkv = self.qkv(normed).view(b, t, 3, self.h, self.d).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        q, k = NORMED
        q, k = self.turned(q), self.turned(k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).reshape(b, t, c))
"""
)
NORMED = ROTATED.replace("NORMED", "self.q_norm(q), self.k_norm(k)")
PLAIN = ROTATED.replace("NORMED", "q, k").replace(
    "        self.q_norm, self.k_norm = nn.RMSNorm(self.d), nn.RMSNorm(self.d)\n", ""
)


@pytest.mark.parametrize(
    ("source", "right", "wrong", "found"),
    [
        (NORMED, "", "", []),
        (NORMED, "0, self.d, 2,", "0, self.d // 2,", ["rope_frequencies"]),
        (NORMED, "return x +", "return normed +", ["residual_moved"]),
        (PLAIN, "", "", []),
        (
            PLAIN,
            "q, k = self.turned(q), self.turned(k)",
            "q, v = self.turned(q), self.turned(v)",
            ["rope_on_values"],
        ),
        (
            PLAIN,
            "is_causal=True",
            "is_causal=True, scale=self.rot**-0.5",
            ["scale_other"],
        ),
    ],
)
def test_a_block_is_read_with_its_wrong_step(source, right, wrong, found):
    source = source.replace(right, wrong) if right else source
    report = attncheck.check(compiled(source, "block.py"))
    seen = [f.mistake for f in report.findings if f.severity == "error"]
    assert seen[: max(len(found), 1)] == found, str(report)


STREAM = (
    HEADER
    + """\
class Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.h = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.streaming, self.keys, self.values = False, None, None

    def start(self):
        self.streaming, self.keys, self.values = True, None, None

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        if self.streaming:
            if self.keys is not None:
                k = torch.cat((self.keys, k), dim=2)
                v = torch.cat((self.values, v), dim=2)
            self.keys, self.values = k, v
        seen = x.new_ones(t, k.shape[2]).bool().tril(k.shape[2] - t)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return y.transpose(1, 2).reshape(b, t, c)
"""
)


@pytest.mark.parametrize(
    ("right", "wrong", "found", "told"),
    [
        ("", "", [], ""),
        ("tril(k.shape[2] - t)", "tril()", ["cache_mask_offset"], "sees 1 keys"),
        ("(self.values, v)", "(v, self.values)", ["cache_order"], "values of"),
        ("(self.keys,", "(self.keys.roll(1, -1),", ["cache_rotated_again"], "further"),
    ],
)  # fmt: skip
def test_a_cache_that_begins_by_a_call_is_used_and_its_wrong_step_told(
    right, wrong, found, told
):
    source = STREAM.replace(right, wrong) if right else STREAM
    cls = compiled(source, "stream.py")
    report = attncheck.check(cls)
    assert [f.mistake for f in report.findings] == found
    assert not found or told in report.findings[0].seen
    again = attncheck.check_cache(
        cls, d_model=16, num_heads=4,
        step=lambda m, x, old: ((None if old else m.start()), m(x), True)[1:],
    )  # fmt: skip
    assert [f.mistake for f in again.findings] == found


def test_weights_that_are_detached_beside_a_memory_are_named():
    source = SOURCE.replace("y + 0.1 * torch.tanh(y)", "y")
    source = source.replace("def forward(self, x):", "def forward(self, x, memory):")
    source = source.replace(
        "self.k_proj(x), self.v_proj(x)", "self.k_proj(memory), self.v_proj(memory)"
    )
    source = source.replace("z.view(b, t,", "z.view(b, z.shape[1],")
    source = source.replace("x.new_ones(t, t).triu(1)", "x.new_zeros(t, k.shape[2])")
    assert errors(source, memory=5) == []
    wrong = source.replace(SOFTMAX, SOFTMAX + ".detach()")
    assert errors(wrong, memory=5) == ["gradient_missing"]
