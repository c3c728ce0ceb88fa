"""What one pass shows, and what a change of one token leaves as it was."""

from torch import nn

import attncheck
from attncheck.mistakes import BASES, HEADER, compiled

RELATIVE = """
class Attention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.h, self.d = n_heads, d_model // n_heads
        self.q, self.k, self.v, self.pos, self.out = (
            nn.Linear(d_model, d_model) for _ in "qkvpo")

    def heads(self, x):
        return x.unflatten(-1, (self.h, self.d)).transpose(1, 2)

    def shifted(self, x):
        b, h, t, far = x.shape
        x = F.pad(x, (1, 0)).view(b, h, far + 1, t)[:, :, 1:]
        return x.reshape(b, h, t, far)[..., :t]

    def forward(self, x):
        t, d = x.shape[1:]
        q, k, v = self.heads(self.q(x)), self.heads(self.k(x)), self.heads(self.v(x))
        far = torch.arange(t - 1, -t, -1, device=x.device)
        places = (far[:, None] / 3.0 ** torch.arange(d, device=x.device)).sin()
        p = self.heads(self.pos(places.to(x)[None]))
        scores = (q @ k.mT + self.shifted(q @ p.mT)) / self.d**0.5
        y = scores.softmax(dim=-1) @ v
        return self.out(y.transpose(1, 2).flatten(2))
"""


def checked(text, causal=False, **options):
    return attncheck.check(compiled(HEADER + text, "pass.py"), causal=causal, **options)


def errors(report):
    return [f.mistake for f in report.findings if f.severity == "error"]


def test_scores_of_a_pair_that_change_with_a_third_token_are_told():
    """As where a shift of relative positions takes the scores of other queries."""
    report = checked(RELATIVE)
    assert (report.exit_status, errors(report)) == (0, [])
    report = checked(RELATIVE.replace("[:, :, 1:]\n", "[:, :, :-1]\n"))
    assert errors(report)[:1] == ["third_token_counts"], str(report)
    assert report.findings[0].stage == "positions"
    assert "change with a third" in report.findings[0].seen


def test_what_joins_scores_by_design_is_no_mistake():
    mixed = "self.near(scores).softmax(dim=-1)"
    text = RELATIVE.replace("scores.softmax(dim=-1)", mixed)
    made = "        self.near = nn.Conv2d(n_heads, n_heads, 3, padding=1)\n"
    report = checked(text.replace("\n    def heads", f"{made}\n    def heads"))
    assert (report.exit_status, errors(report)) == (3, [])


EINSUM = """
class Attention(nn.Module):
    def __init__(self, dim, heads, window=4):
        super().__init__()
        self.w_q, self.w_k, self.w_v = (
            nn.Parameter(torch.randn(heads, dim, dim // heads)) for _ in "qkv")
        self.w_o = nn.Parameter(torch.randn(heads, dim // heads, dim))
        self.window = window

    def forward(self, x):
        q, k, v = (torch.einsum("bnd,hde->bhne", x, w)
                   for w in (self.w_q, self.w_k, self.w_v))
        i = torch.arange(x.shape[1], device=x.device)
        far = i[:, None] - i
        scores = torch.einsum("bhie,bhje->bhij", q, k) / q.shape[-1] ** 0.5
        scores = scores.masked_fill((far < 0) | (far >= self.window), -torch.inf)
        y = torch.einsum("bhij,bhje->bhie", scores.softmax(dim=-1), v)
        return torch.einsum("bhie,hed->bid", y, self.w_o)
"""


def test_weights_by_head_are_read_and_a_value_of_ones_own_is_named():
    report = checked(EINSUM, causal=True, window=4)
    assert (report.exit_status, report.not_compared) == (0, "")
    wrong = EINSUM.replace("bhij,bhje->bhie", "bhij,bhie->bhie")
    for options in ({}, {"window": 4}):
        assert errors(checked(wrong, causal=True, **options)) == ["tokens_not_mixed"]


TURNED = """
class Attention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.h = n_heads
        self.q, self.k, self.v, self.out = (
            nn.Linear(d_model, d_model) for _ in "qkvo")

    def turned(self, x, start=0):
        t, d = x.shape[-2:]
        steps = 10000.0 ** (-torch.arange(0, d, 2, device=x.device) / d)
        angles = torch.arange(start, start + t, device=x.device)[:, None] * steps
        cos, sin = angles.cos().to(x), angles.sin().to(x)
        even, odd = x[..., 0::2].clone(), x[..., 1::2]
        x[..., 0::2] = even * cos - odd * sin
        x[..., 1::2] = odd * cos + even * sin
        return x

    def forward(self, x):
        q, k, v = (f(x).unflatten(-1, (self.h, -1)).transpose(1, 2)
                   for f in (self.q, self.k, self.v))
        q, k = self.turned(q), self.turned(k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))
"""


def test_a_rotation_that_reads_what_it_has_just_written_is_told():
    report = checked(TURNED, causal=True)
    assert (report.exit_status, report.findings) == (0, [])
    report = checked(TURNED.replace("0::2].clone()", "0::2]"), causal=True)
    assert errors(report) == ["rope_no_rotation"]
    assert report.findings[0].stage == "positions"


CAPPED = """
class Attention(nn.Module):
    def __init__(self, d_model, n_heads, logit_softcap=4.0):
        super().__init__()
        self.h, self.cap = n_heads, logit_softcap
        self.q, self.k, self.v, self.out = (
            nn.Linear(d_model, d_model) for _ in "qkvo")

    def forward(self, x):
        q, k, v = (f(x).unflatten(-1, (self.h, -1)).transpose(1, 2)
                   for f in (self.q, self.k, self.v))
        scale = q.shape[-1] ** -0.5
        scores = torch.tanh(q @ k.mT * scale / self.cap) * self.cap
        return self.out((scores.softmax(dim=-1) @ v).transpose(1, 2).flatten(2))
"""


def test_a_cap_before_the_scale_is_told():
    assert checked(CAPPED, softcap=4).exit_status == 0
    assert errors(checked(CAPPED)) == []
    wrong = CAPPED.replace("* scale / self.cap) * self.cap", "/ self.cap) * self.cap "
                           "* scale")  # fmt: skip
    report = checked(wrong)
    assert errors(report) == ["softcap_before_scale"]
    assert report.findings[0].stage == "scores"


BIASED = """
class Attention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.h = n_heads
        self.in_proj, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(
            d_model, d_model)
        self.distance_bias = nn.Embedding(64, n_heads)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.in_proj(x).unflatten(-1, (3, self.h, -1)).permute(2, 0, 3, 1, 4)
        i = torch.arange(t, device=x.device)
        bias = self.distance_bias((i[:, None] - i).clamp(min=0)).permute(2, 0, 1)
        scores = q @ k.mT / q.shape[-1] ** 0.5 + bias
        weights = scores.masked_fill(i > i[:, None], -torch.inf).softmax(dim=-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))
"""


def test_a_bias_behind_softmax_and_one_that_is_viewed_are_told_first():
    assert checked(BIASED, causal=True).exit_status == 0
    late = BIASED.replace("** 0.5 + bias", "** 0.5")
    late = late.replace("softmax(dim=-1)\n", "softmax(dim=-1) + bias\n")
    assert errors(checked(late, causal=True)) == ["rows_do_not_sum_to_one"]
    viewed = BIASED.replace(".permute(2, 0, 1)", ".view(self.h, t, t)")
    report = checked(viewed, causal=True)
    assert errors(report) == ["bias_misplaced"]
    assert report.findings[0].stage == "positions"


def test_heads_cut_by_a_view_behind_an_einsum_are_named():
    text = CAPPED.replace("f(x).unflatten(-1, (self.h, -1)).transpose(1, 2)",
                          'torch.einsum("btd,od->bto", x, f.weight).view('
                          "len(x), self.h, x.shape[1], -1)")  # fmt: skip
    text = text.replace(" / self.cap", "").replace(" * self.cap", "").replace(
        "torch.tanh", "", 1)  # fmt: skip
    text = text.replace("return self.out(", "return x + self.out(")
    assert errors(checked(text))[:1] == ["heads_viewed"]


def test_a_bias_of_the_output_that_is_never_added_is_no_unused_projection():
    class Attention(nn.Module):
        def __init__(self, d_model, n_heads):
            super().__init__()
            self.h = n_heads
            self.qkv = nn.Linear(d_model, 3 * d_model)
            self.proj = nn.Linear(d_model, d_model)

        def forward(self, x):
            q, k, v = self.qkv(x).unflatten(-1, (3, self.h, -1)).permute(2, 0, 3, 1, 4)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return y.transpose(1, 2).flatten(2) @ self.proj.weight.T

    report = attncheck.check(Attention)
    assert [(f.mistake, f.stage) for f in report.findings] == [
        ("gradient_missing", "output")
    ]


def test_a_causal_mask_of_a_memory_is_told_as_that_and_errors_come_first():
    source, _, _ = BASES["cross"]
    text = source.replace(
        "F.scaled_dot_product_attention(q, k, v)",
        "(q @ k.mT / q.shape[-1] ** 0.5).masked_fill(torch.ones(t_q, t_k, "
        "device=x.device).triu(1).bool(), -1e9).softmax(-1) @ v",
    )
    assert text != source
    report = attncheck.check(compiled(HEADER + text, "x.py"), causal=False, memory=5)
    assert errors(report) == ["cross_masked"]
    assert report.findings[0].mistake == "cross_masked"
    assert len(report.findings) > 1


def test_a_function_without_arguments_builds_the_layer():
    cls = compiled(HEADER + BASES["cached"][0], "x.py")
    for check in (attncheck.check, attncheck.check_cache):
        assert check(lambda: cls(32, 4)).findings == []
    wrong = BASES["cached"][0].replace("[past[0], k]", "[k, past[0]]")
    cls = compiled(HEADER + wrong, "x.py")
    assert errors(attncheck.check_cache(lambda: cls(32, 4)))[0].startswith("cache")


def test_a_projection_of_the_memory_alone_is_one_with_pytorch_s_layer():
    class Cross(nn.Module):
        def __init__(self, dim, num_heads):
            super().__init__()
            self.attn = nn.MultiheadAttention(dim, num_heads, batch_first=True)
            self.context_projection = nn.Linear(dim, dim)

        def forward(self, x, context):
            memory = self.context_projection(context)
            return self.attn(x, memory, memory)[0]

    report = attncheck.check(Cross, causal=False, memory=5)
    assert (report.exit_status, report.not_compared) == (0, "")


def test_an_offset_that_leaves_room_for_fewer_tokens_is_named():
    text = TURNED.replace("d_model, n_heads):", "d_model, n_heads, context_length):")
    made = """        steps = 10000.0 ** (-torch.arange(0, d_model // n_heads, 2)
                            / (d_model // n_heads))
        angles = torch.arange(context_length)[:, None] * steps
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def turned"""
    text = text.replace("\n    def turned", made, 1)
    start = text.index("        steps = 10000.0 ** (-torch.arange(0, d, 2")
    end = text.index("        even, odd")
    text = text[:start] + (
        "        cos, sin = (one[start:start + t] for one in (self.cos, self.sin))\n"
    ) + text[end:]  # fmt: skip
    assert checked(text, causal=True).findings == []
    report = checked(text.replace("self.turned(q)", "self.turned(q, 1)"), causal=True)
    assert errors(report)[:1] == ["rope_offset"]
