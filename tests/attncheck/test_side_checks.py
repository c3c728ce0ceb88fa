"""Each check beside the comparison has a right class that it lets be."""

import pytest

import attention
from attncheck.collector import SIGNS
from attncheck.mistakes import HEADER, MISTAKES, compiled

SOURCE = """
class Norm(nn.Module):
    def __init__(self, d, loose=1e-5):
        super().__init__()
        self.g, self.loose = nn.Parameter(torch.ones(d)), loose

    def forward(self, x):
        eps = 1e-5 if x.dtype == torch.float32 else self.loose
        x = x - x.mean(-1, keepdim=True)
        return x * (x.var(-1, keepdim=True, unbiased=False) + eps).rsqrt() * self.g


class Attention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0):
        super().__init__()
        self.h, self.drop = n_heads, nn.Dropout(dropout)
        self.q, self.k, self.v, self.out = (nn.Linear(d_model, d_model) for _ in "qkvo")
        {init}

    def heads(self, x):
        return x.unflatten(-1, (self.h, -1)).transpose(1, 2)

    def forward(self, x{more}):
        t, b = x.shape[1], len(x)
        i = torch.arange(t, device=x.device)
        q, k, v = (self.heads(f({taken})) for f in (self.q, self.k, self.v))
        j = torch.arange(k.shape[2], device=x.device)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        {scores}
        y = {weights} @ v
        y = self.out(y.transpose(1, 2).flatten(2))
        {end}
        return y
"""


def right(source=SOURCE, **lines):
    known = {"init": "pass", "more": "", "taken": "x", "scores": "pass", "end": "pass"}
    known |= {"weights": "self.drop(scores.softmax(-1))"}
    return compiled(HEADER + source.format(**known | lines), "right.py")


WIDE = SOURCE.replace("self, d_model", "self, d_in, d_out").replace(
    "d_model, d_model", "d_in if _ != 'o' else d_out, d_out"
)
HIDDEN = "scores = scores.masked_fill({}, -torch.inf)"
# The check that a right class would trip, and that class.
CLASSES = {
    "input_added": right(end="y = y + x"),
    "not_finite": right(init="nn.init.constant_(self.q.weight, float('nan'))"),
    "some_sizes_raise": right(end="y = y.unflatten(1, (-1, 2)).flatten(1, 2)"),
    "low_precision": right(
        init="self.norm = Norm(d_model, 1e-2)", taken="self.norm(x)"
    ),
    "rows_do_not_sum_to_one": right(weights="torch.sigmoid(scores)"),
    "past_unused": right(
        init="self.dilation = 2", scores=HIDDEN.format("(i[:, None] - i) % 2 == 1")
    ),
    "mask_hides_itself": right(
        scores=HIDDEN.format("i[:, None] == i")
    ),
    "dropout_not_rescaled": right(
        init="self.norm = Norm(d_model)", end="y = self.norm(y)"
    ),
    "dropout_on_scores": right(
        init="self.rel = nn.Embedding(17, d_model // n_heads)",
        scores="rel = self.drop(self.rel(i[:, None] - i + 8))\n        "
        "rel = torch.einsum('bhid,ijd->bhij', q, rel)\n        "
        "scores = scores + rel / q.shape[-1] ** 0.5",
        weights="scores.softmax(-1)",
    ),
    "widths_mixed_up": right(
        WIDE, weights="torch.sigmoid(scores)", end="y = y + x"
    ),
    "dropout_rate_ignored": right(scores="v = self.drop(v)", end="y = self.drop(y)"),
    "distances_lost": right(
        init="self.pos = nn.Embedding(9, d_model)",
        taken="x + self.pos(i)",
    ),
    "gradient_missing": right(
        init="self.text = nn.Linear(d_model, d_model)", end="return y, self.text(x)"
    ),
    "prenorm_partly": right(
        init="self.norm = nn.LayerNorm(d_model)",
        more=", context=None",
        taken="self.norm(x) if f is self.q else x if context is None else context",
    ),
    "cross_masked": right(
        init="self.local = 2",
        more=", memory",
        taken="x if f is self.q else memory",
        scores=HIDDEN.format(
            "(i[:, None] - j).abs() > self.local"
        ),
    ),
}  # fmt: skip


def errors(report):
    return [f.mistake for f in report.findings if f.severity == "error"]


@pytest.mark.parametrize("code", CLASSES)
def test_what_a_right_class_does_on_purpose_is_no_error(code):
    report = attention.check(CLASSES[code], causal=False, d_in=16, num_heads=4)
    assert errors(report) == [], str(report)


def test_each_sign_has_a_right_class():
    assert set(CLASSES) >= SIGNS
    assert set(CLASSES) <= set(MISTAKES)


def test_what_a_declared_layer_does_besides_is_an_error():
    lines = {"scores": "scores = scores * q.shape[-1] ** 0.5", "end": "y = y + x"}
    report = attention.check(right(**lines), causal=False, scale="none")
    assert errors(report) == ["input_added"], str(report)


def test_a_window_is_asked_for_in_a_class_that_speaks_of_one():
    lines = {"init": "self.local = 3"}
    lines["scores"] = HIDDEN.format("(i[:, None] - i).abs() >= self.local")
    report = attention.check(right(**lines), causal=False)
    assert report.verdict == "not judged", str(report)
    assert report.proposal == {"window": 3}


def test_a_convolution_takes_no_fewer_tokens_than_its_kernel():
    pooled = right(
        init="self.pool = nn.Conv1d(d_model, d_model, 2, 2)",
        taken="x if f is self.q else self.pool(x.mT).mT",
    )
    report = attention.check(pooled, causal=False, d_in=16, num_heads=4)
    assert errors(report) == [], str(report)
