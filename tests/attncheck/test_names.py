"""Weights are found by names made of known ones, by what is left, or in a list."""

import pytest
import torch

import attncheck
from attncheck.checking import _setting
from attncheck.run import checked
from coding_attention.gallery.planted import HEADER, compiled

MADE_OF_KNOWN = """
class Attention(nn.Module):
    def __init__(self, emb, heads):
        super().__init__()
        self.heads, s = heads, emb // heads
        self.toqueries, self.tokeys, self.tovalues = (
            nn.Linear(s, s, bias=False) for _ in "qkv")
        self.unifyheads = nn.Linear(emb, emb)

    def forward(self, x):
        b, t, e = x.shape
        h = self.heads
        q, k, v = (f(x.view(b, t, h, e // h)).transpose(1, 2)
                   for f in (self.toqueries, self.tokeys, self.tovalues))
        weights = (q @ k.mT / (e // h) ** 0.5).softmax(-1)
        return self.unifyheads((weights @ v).transpose(1, 2).reshape(b, t, e))
"""
ALONE = """
class Attention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.attention_weights = nn.Linear(d, 3 * d)
        self.d = d

    def forward(self, x):
        q, k, v = self.attention_weights(x).split(self.d, dim=-1)
        scores = q @ k.mT / self.d ** 0.5
        return torch.exp(scores - torch.logsumexp(scores, dim=2, keepdim=True)) @ v
"""
LISTED = """
class Head(nn.Module):
    def __init__(self, d, width):
        super().__init__()
        self.w_query, self.w_key, self.w_value = (
            nn.Linear(d, width) for _ in "qkv")
        self.softmax = nn.Softmax(dim=2)

    def forward(self, x):
        q, k, v = self.w_query(x), self.w_key(x), self.w_value(x)
        return self.softmax(q @ k.mT / q.shape[-1] ** 0.5) @ v


class Attention(nn.Module):
    def __init__(self, input_dim, heads_num):
        super().__init__()
        width = input_dim // heads_num
        self.list_of_them = nn.ModuleList(Head(input_dim, width) for _ in
                                          range(heads_num))
        self.w_final = nn.Linear(heads_num * width, input_dim)

    def forward(self, x):
        return self.w_final(torch.cat([one(x) for one in self.list_of_them], dim=2))
"""
AROUND = """
class Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.query_proj, self.key_proj, self.value_proj, self.out_proj = (
            nn.Linear(d_model, d_model) for _ in "qkvo")
        self.attn = nn.MultiheadAttention(d_model, num_heads, batch_first=True)

    def forward(self, x):
        q, k, v = self.query_proj(x), self.key_proj(x), self.value_proj(x)
        return self.out_proj(self.attn(q, k, v)[0])
"""
WIDE_HEADS = """
class Attention(nn.Module):
    def __init__(self, dim, heads=4):
        super().__init__()
        self.dim, self.heads = dim, heads
        self.Q, self.K, self.V = (nn.Linear(dim, dim * heads) for _ in "qkv")
        self.unify = nn.Linear(dim * heads, dim)

    def forward(self, x):
        b, t, d = x.shape
        h = self.heads
        q, k, v = (f(x).view(b, t, h, d).transpose(1, 2).reshape(b * h, t, d)
                   for f in (self.Q, self.K, self.V))
        weights = torch.softmax(q / d ** 0.25 @ (k / d ** 0.25).mT, dim=2)
        y = (weights @ v).view(b, h, t, d).transpose(1, 2)
        return self.unify(y.reshape(b, t, h * d))
"""
CONVOLVED = """
class Attention(nn.Module):
    def __init__(self, channels, num_heads=4):
        super().__init__()
        self.h = num_heads
        self.qkv = nn.Conv1d(channels, 3 * channels, 1)
        self.proj = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        b, c, *sides = x.shape
        q, k, v = self.qkv(x.flatten(2)).view(b, 3, self.h, c // self.h, -1).unbind(1)
        q, k, v = (one.mT for one in (q, k, v))
        y = (q @ k.mT * (c // self.h) ** -0.5).softmax(-1) @ v
        return self.proj(y.mT.reshape(b, c, -1)).view(b, c, *sides)
"""
GATED = """
class Attention(nn.Module):
    def __init__(self, in_dim):
        super().__init__()
        self.query_conv, self.key_conv = (
            nn.Conv2d(in_dim, in_dim // 2, 1) for _ in "qk")
        self.value_conv = nn.Conv2d(in_dim, in_dim, 1)
        self.gamma = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        b, c, w, h = x.shape
        q = self.query_conv(x).view(b, -1, w * h).mT
        k = self.key_conv(x).view(b, -1, w * h)
        weights = torch.softmax(torch.bmm(q, k), dim=-1)
        y = torch.bmm(self.value_conv(x).view(b, -1, w * h), weights.mT)
        return self.gamma * y.view(b, c, w, h) + x
"""
# Without projections of queries, keys and values: only what is behind the heads learns.
UNPROJECTED = """\
class Attention(nn.Module):
    def __init__(self, d_model, n_heads, d_rate=0.0):
        super().__init__()
        self.h, self.d = n_heads, d_model // n_heads
        self.drop = nn.Dropout(d_rate)
        self.mix = nn.Linear(d_model, d_model)

    def forward(self, x):
        b, t, e = x.shape
        q = k = v = x.view(b, t, self.h, self.d).transpose(1, 2)
        weights = self.drop((q @ k.mT / self.d**0.5).softmax(-1))
        return self.mix((weights @ v).transpose(1, 2).reshape(b, t, e))
"""
# A class, what is wrong in its twin, and the mistake.
TWINS = [
    (MADE_OF_KNOWN, "(e // h) ** 0.5", "e ** 0.5", "scale_by_d_out"),
    (ALONE, "dim=2, keep", "dim=1, keep", "softmax_over_queries"),
    (LISTED, "Softmax(dim=2)", "Softmax(dim=1)", "softmax_over_queries"),
    (LISTED, "q.shape[-1] ** 0.5", "(q.shape[-1] * 0.5)", "scale_other"),
    (WIDE_HEADS, "view(b, t, h, d).transpose(1, 2)",
     "view(b, t, d, h).transpose(1, 3)", "heads_viewed"),
    (CONVOLVED, "c // self.h, -1).unbind(1)\n        q, k, v = (one.mT for",
     "c // self.h, -1).unbind(1)\n        q, k, v = (one.reshape(*one.mT.shape) for",
     "heads_viewed"),
    (UNPROJECTED, "self.d**0.5", "e**0.5", "scale_by_d_out"),
    (UNPROJECTED, "(weights @ v).transpose(1, 2)", "(weights @ v)", "join_viewed"),
    (UNPROJECTED, "self.drop(", "F.dropout(p=self.drop.p, input=", "random_in_eval"),
]  # fmt: skip
WORDS = ["words around", "alone", "a list", "a scale in a list", "a left one", "pixels",
         "tokens themselves",
         "tokens themselves, joined", "tokens themselves, dropped"]  # fmt: skip


@pytest.mark.parametrize(("source", "right", "wrong", "mistake"), TWINS, ids=WORDS)
def test_a_design_is_judged_and_its_wrong_twin_is_named(source, right, wrong, mistake):
    found = {}
    for text in (source, source.replace(right, wrong)):
        report = checked(compiled(HEADER + text, "named.py"), causal=False)
        found[text] = report.exit_status, [f.mistake for f in report.findings]
        assert not report.not_compared
    assert found.pop(source) == (0, [])
    ((status, names),) = found.values()
    assert status == 1
    assert names[0] == mistake


def test_scores_that_aren_t_scaled_are_asked_about_where_they_are_usual():
    """As SAGAN has them, behind a gate that begins closed."""
    cls = compiled(HEADER + GATED, "gated.py")
    report = attncheck.check(cls, causal=False)
    assert report.exit_status == 3
    assert "scale='none'" in report.command
    told = attncheck.check(cls, causal=False, scale="none")
    assert (told.exit_status, told.not_compared) == (0, "")


def test_projections_before_and_behind_pytorch_s_layer_are_one_with_its_own():
    report = attncheck.check(compiled(HEADER + AROUND, "around.py"), causal=False)
    assert (report.exit_status, report.not_compared) == (0, "")


def test_a_guess_of_the_output_s_weights_accuses_nobody():
    """What is left over may be anything: here it makes a part of the output."""
    text = MADE_OF_KNOWN.replace("return self.unifyheads(", "return (")
    text = text.replace("reshape(b, t, e))", "reshape(b, t, e)) + self.unifyheads(x)")
    report = attncheck.check(compiled(HEADER + text, "left.py"), causal=False)
    assert report.exit_status == 3


def test_a_memory_of_several_tokens_has_more_outcomes_of_dropout():
    text = AROUND.replace("(d_model, num_heads, batch", "(d_model, num_heads, p, batch")
    text = text.replace("d_model, num_heads):", "d_model, num_heads, p=0.0):")
    text = text.replace("forward(self, x)", "forward(self, x, memory)")
    text = text.replace("_proj(x), self.v", "_proj(memory), self.v")
    text = text.replace("value_proj(x)", "value_proj(memory)")
    text = text.replace(" p=", " dropout=").replace(" p, ", " dropout, ")
    cls = compiled(HEADER + text, "memory.py")
    report = attncheck.check(cls, causal=False, memory=5)
    assert [f.mistake for f in report.findings] == []
    assert report.exit_status == 0


def test_a_setting_may_be_a_dtype():
    assert _setting("dtype=torch.float32", "--config") == ("dtype", torch.float32)
    assert _setting("kind=torch.nothing", "--config") == ("kind", "torch.nothing")


def test_ones_added_to_what_may_be_seen_are_one_mistake():
    """A mask of 0 and 1 that goes into the scores as it is."""
    text = WIDE_HEADS.replace("weights = torch.softmax(", "weights = F.softmax(")
    text = text.replace("@ (k / d ** 0.25).mT,",
                        "@ (k / d ** 0.25).mT + x.new_ones(t, t).tril(),")  # fmt: skip
    report = attncheck.check(compiled(HEADER + text, "ones.py"))
    errors = [f.mistake for f in report.findings if f.severity == "error"]
    assert errors == ["mask_added_as_ones"], str(report)
