"""Weights are found by names made of known ones, by what is left, or in a list."""

import pytest
import torch

import attncheck
from attncheck.checking import _parse_setting
from attncheck.run import run_check
from coding_attention.gallery.planted import HEADER, compiled

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
    (ALONE, "dim=2, keep", "dim=1, keep", "softmax_over_queries"),
    (LISTED, "Softmax(dim=2)", "Softmax(dim=1)", "softmax_over_queries"),
    (WIDE_HEADS, "f(x).view(b, t, h, d).transpose(1, 2)",
     "f(x).view(b, h, t, d)", "heads_viewed"),
    (UNPROJECTED, "self.d**0.5", "e**0.5", "scale_by_d_out"),
    (UNPROJECTED, "(weights @ v).transpose(1, 2)", "(weights @ v)", "join_viewed"),
    (UNPROJECTED, "self.drop(", "F.dropout(p=self.drop.p, input=", "random_in_eval"),
]  # fmt: skip
WORDS = ["alone", "a list", "wide heads", "tokens themselves",
         "tokens themselves, joined", "tokens themselves, dropped"]  # fmt: skip


@pytest.mark.parametrize(("source", "right", "wrong", "mistake"), TWINS, ids=WORDS)
def test_a_design_is_judged_and_its_wrong_twin_is_named(source, right, wrong, mistake):
    found = {}
    for text in (source, source.replace(right, wrong)):
        report = run_check(compiled(HEADER + text, "named.py"), causal=False)
        found[text] = report.exit_status, [f.mistake for f in report.findings]
        assert report.compared
    assert found.pop(source) == (0, [])
    ((status, names),) = found.values()
    assert status == 1
    assert names[0] == mistake


def test_a_setting_may_be_a_dtype():
    assert _parse_setting("dtype=torch.float32", "--config") == ("dtype", torch.float32)
    assert _parse_setting("kind=torch.nothing", "--config") == ("kind", "torch.nothing")


def test_ones_added_to_what_may_be_seen_are_one_mistake():
    """A mask of 0 and 1 that goes into the scores as it is."""
    text = WIDE_HEADS.replace("weights = torch.softmax(", "weights = F.softmax(")
    text = text.replace("@ (k / d ** 0.25).mT,",
                        "@ (k / d ** 0.25).mT + x.new_ones(t, t).tril(),")  # fmt: skip
    report = attncheck.check(compiled(HEADER + text, "ones.py"))
    errors = [f.mistake for f in report.findings if f.severity == "error"]
    assert errors == ["mask_added_as_ones"], str(report)
