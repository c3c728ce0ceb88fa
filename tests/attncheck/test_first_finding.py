"""The first stage that differs is told before what follows from it."""

import pytest

import attncheck
from attncheck.mistakes import compiled

HEADER = "import math\nimport torch\nfrom torch import nn\n\n\n"
CLASSES = {
    "a loop": """\
class Attention(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.h, self.d = num_heads, dim // num_heads
        self.W_q = nn.Parameter(torch.randn(dim, dim) / 4)
        self.W_k = nn.Parameter(torch.randn(dim, dim) / 4)
        self.W_v = nn.Parameter(torch.randn(dim, dim) / 4)
        self.W_o = nn.Parameter(torch.randn(dim, dim) / 4)

    def forward(self, x):
        q, k, v = x @ self.W_q, x @ self.W_k, x @ self.W_v
        out, t = 0.0, x.shape[1]
        for h in range(self.h):
            at = slice(h * self.d, (h + 1) * self.d)
            s = q[..., at] @ k[..., at].mT / math.sqrt(self.d)
            s = s + torch.full((t, t), -torch.inf).triu(1).to(x)
            e = torch.exp(s - s.amax(dim=-1, keepdim=True))
            w = e / e.sum(dim=-1, keepdim=True)
            out = out + w @ v[..., at] @ self.W_o[at]
        return out
""",
    "by einsum": """\
class Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        d = d_model // num_heads
        for name in "QKV":
            weight = nn.Parameter(torch.randn(num_heads, d_model, d) / 4)
            self.register_parameter(f"W_{name}", weight)
            bias = nn.Parameter(torch.randn(num_heads, d) / 4)
            self.register_parameter(f"b_{name}", bias)
        self.W_O = nn.Parameter(torch.randn(num_heads, d, d_model) / 4)

    def forward(self, x):
        q = torch.einsum("btd,hdk->bthk", x, self.W_Q) + self.b_Q
        k = torch.einsum("btd,hdk->bthk", x, self.W_K) + self.b_K
        v = torch.einsum("btd,hdk->bthk", x, self.W_V) + self.b_V
        s = torch.einsum("bthk,bshk->bhts", q, k) / math.sqrt(q.shape[-1])
        t = x.shape[1]
        s = s.masked_fill(torch.ones(t, t).triu(1).bool().to(x.device), -torch.inf)
        z = torch.einsum("bhts,bshk->bthk", s.softmax(-1), v)
        return torch.einsum("bthk,hkd->btd", z, self.W_O)
""",
    "tokens first": """\
class Attention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.h = num_heads
        self.in_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        x = x.transpose(0, 1)
        t, b, c = x.shape
        q, k, v = (y.reshape(t, b * self.h, -1).transpose(0, 1)
                   for y in self.in_proj(x).chunk(3, -1))
        s = q @ k.mT / math.sqrt(q.shape[-1])
        s = s + torch.full((t, t), -torch.inf).triu(1).to(x)
        z = s.softmax(-1) @ v
        return self.out_proj(z.transpose(0, 1).reshape(t, b, c)).transpose(0, 1)
""",
    "rotated": """\
class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        size = x.pow(2).mean(-1, keepdim=True)
        return x * torch.rsqrt(size + 1e-6) * self.weight


class Attention(nn.Module):
    def __init__(self, dim, num_heads, rope_theta=10000.0):
        super().__init__()
        self.h, self.d, self.theta = num_heads, dim // num_heads, rope_theta
        self.q_norm, self.k_norm = Norm(self.d), Norm(self.d)
        self.q_proj, self.k_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.v_proj, self.o_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def turned(self, x):
        b, t, h, d = x.shape
        steps = torch.arange(0, d, 2, device=x.device)
        angles = torch.arange(t, device=x.device)[:, None] * self.theta ** (-steps / d)
        cos, sin = angles.cos()[:, None], angles.sin()[:, None]
        first, last = x.chunk(2, -1)
        both = first * cos - last * sin, last * cos + first * sin
        return torch.cat(both, -1).view(b, t, h, d)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (p(x).view(b, t, self.h, self.d)
                   for p in (self.q_proj, self.k_proj, self.v_proj))
        q, k = self.turned(self.q_norm(q)), self.turned(self.k_norm(k))
        q, k, v = (y.transpose(1, 2) for y in (q, k, v))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).reshape(b, t, c))
""",
    "in squares": """\
class Attention(nn.Module):
    def __init__(self, dim, num_heads, window_size=3):
        super().__init__()
        self.h, side = num_heads, 2 * window_size - 1
        self.bias_table = nn.Parameter(torch.randn(side**2, num_heads))
        both = torch.meshgrid(torch.arange(window_size), torch.arange(window_size),
                              indexing="ij")
        at = torch.stack(both).flatten(1)
        apart = at[:, :, None] - at[:, None] + window_size - 1
        self.register_buffer("index", apart[0] * side + apart[1])
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        s = q @ k.mT * q.shape[-1] ** -0.5
        bias = self.bias_table[self.index.view(-1)].view(t, t, -1).permute(2, 0, 1)
        w = (s + bias).softmax(-1)
        return self.proj((w @ v).transpose(1, 2).reshape(b, t, c))
""",
    "normed": """\
class Attention(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.h, self.d = num_heads, dim // num_heads
        self.q_norm, self.k_norm = nn.LayerNorm(self.d), nn.LayerNorm(self.d)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, self.d).permute(2, 0, 3, 1, 4)
        s = self.q_norm(q) @ self.k_norm(k).mT * self.d**-0.5
        w = (s + torch.full((t, t), -torch.inf).triu(1).to(x)).softmax(-1)
        return self.proj((w @ v).transpose(1, 2).reshape(b, t, c))
""",
    "capped": """\
class Attention(nn.Module):
    def __init__(self, dim, num_heads, softcap=20.0):
        super().__init__()
        self.h, self.cap = num_heads, softcap
        self.q_proj, self.k_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.v_proj, self.o_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (p(x).view(b, t, self.h, -1).transpose(1, 2)
                   for p in (self.q_proj, self.k_proj, self.v_proj))
        s = q @ k.mT * q.shape[-1] ** -0.5
        future = torch.ones(t, t).triu(1).bool().to(x.device)
        s = self.cap * torch.tanh(s / self.cap)
        s = s.masked_fill(future, -torch.inf)
        return self.o_proj((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))
""",
    "in a window": """\
class Attention(nn.Module):
    def __init__(self, dim, num_heads, window=3):
        super().__init__()
        self.h, self.window = num_heads, window
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        i = torch.arange(t, device=x.device)
        apart = i[:, None] - i
        seen = (apart >= 0) & (apart < self.window)
        y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self.proj(y.transpose(1, 2).reshape(b, t, c))
""",
    "joined": """\
class Attention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.h = num_heads
        self.in_proj_weight = nn.Parameter(torch.randn(3 * embed_dim, embed_dim) / 4)
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * embed_dim))
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        b, t, c = x.shape
        w, bias = self.in_proj_weight.chunk(3), self.in_proj_bias.chunk(3)
        q = nn.functional.linear(x, w[0], bias[0])
        k = nn.functional.linear(x, w[1], bias[1])
        v = nn.functional.linear(x, w[2], bias[2])
        q, k, v = (y.view(b, t, self.h, -1).transpose(1, 2) for y in (q, k, v))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(y.transpose(1, 2).reshape(b, t, c))
""",
    "grouped": """\
class Attention(nn.Module):
    def __init__(self, dim, n_heads, n_kv_heads):
        super().__init__()
        self.g, self.d = n_kv_heads, dim // n_heads
        self.wq, self.wo = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.wk, self.wv = (nn.Linear(dim, self.g * self.d) for _ in range(2))

    def turned(self, x):
        t, d = x.shape[1], x.shape[-1]
        steps = torch.arange(0, d, 2, device=x.device) / d
        angles = torch.arange(t, device=x.device)[:, None] * 1e4**-steps
        by = torch.polar(torch.ones_like(angles), angles)[:, None]
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * by).flatten(-2)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (p(x).view(b, t, -1, self.d) for p in (self.wq, self.wk, self.wv))
        q, k = self.turned(q).transpose(1, 2), self.turned(k).transpose(1, 2)
        v, n = v.transpose(1, 2), q.shape[1] // self.g
        k, v = k.repeat_interleave(n, 1), v.repeat_interleave(n, 1)
        s = torch.tanh(q @ k.mT * self.d**-0.5 / 30.0) * 30.0
        s = s + torch.full((t, t), -torch.inf).triu(1).to(x)
        return self.wo((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))
""",
    "rotated in part": """\
class Attention(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.h, self.d = num_heads, dim // num_heads
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def turned(self, x):
        t, d = x.shape[2], x.shape[-1] // 2
        steps = torch.arange(0, d, 2, device=x.device) / d
        angles = torch.arange(t, device=x.device)[:, None] * 1e4**-steps
        angles = angles.repeat_interleave(2, -1)
        first, rest = x[..., :d], x[..., d:]
        other = torch.stack((-first[..., 1::2], first[..., ::2]), -1).flatten(-2)
        first = first * angles.cos() + other * angles.sin()
        return torch.cat((first, rest), -1)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, self.d).permute(2, 0, 3, 1, 4)
        s = self.turned(q) @ self.turned(k).mT * self.d**-0.5
        w = (s + torch.full((t, t), -torch.inf).triu(1).to(x)).softmax(-1)
        return self.proj((w @ v).transpose(1, 2).reshape(b, t, c))
""",
    "from a latent": """\
class Attention(nn.Module):
    def __init__(self, dim, num_heads, rank=8):
        super().__init__()
        self.h = num_heads
        self.w_q, self.w_dkv = nn.Linear(dim, dim), nn.Linear(dim, rank)
        self.w_uk, self.w_uv = nn.Linear(rank, dim), nn.Linear(rank, dim)
        self.norm, self.w_o = nn.LayerNorm(rank), nn.Linear(dim, dim)

    def forward(self, x):
        b, t, c = x.shape
        latent = self.norm(self.w_dkv(x))
        q, k, v = (y.view(b, t, self.h, -1).transpose(1, 2)
                   for y in (self.w_q(x), self.w_uk(latent), self.w_uv(latent)))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.w_o(y.transpose(1, 2).reshape(b, t, c))
""",
}
GIVEN = {
    "rotated": {"d_in": 32, "d_out": 32},
    "in squares": {"causal": False},
    "rotated in part": {"d_in": 32, "d_out": 32, "num_heads": 2},
    "grouped": {"d_in": 32, "d_out": 32, "n_kv_heads": 2},
}
OVER_HEADS = "x = x.reshape(b * h, t, 1, d)\n        first, last = x.chunk(2, -1)"
BEFORE_CAP = """\
        s = s.masked_fill(future, -torch.inf)
        s = self.cap * torch.tanh(s / self.cap)
"""
WRONG = [
    # The class, the right and the wrong text, the first finding and its stage.
    ("a loop", "slice(h * self.d, (h + 1) * self.d)", "slice(h, h + self.d)",
     "heads_overlap", "split"),
    ("a loop", "out = out + w", "out = w", "head_alone", "join"),
    ("by einsum", " + self.b_V", "", "bias_unused", "projection"),
    ("by einsum", "bthk,hkd->btd", "bthk,gkd->btd", "axis_summed_alone", "output"),
    ("tokens first", "s.softmax(-1)", "s.softmax(0)", "softmax_over_batch", "weights"),
    ("rotated", "self.theta ** (-steps / d)", "d / self.theta**steps",
     "rope_frequencies", "positions"),
    ("rotated", "(-steps / d)", "(-steps / d / h)", "rope_frequencies", "positions"),
    ("rotated", "first, last = x.chunk(2, -1)", OVER_HEADS,
     "rope_over_heads", "positions"),
    ("rotated", "x.pow(2).mean(-1, keepdim=True)", "x.mean(-1, keepdim=True).pow(2)",
     "qk_norm_formula", "projection"),
    ("rotated", "torch.rsqrt(size + 1e-6)", "(size + 1e-6).reciprocal()",
     "qk_norm_formula", "projection"),
    ("in squares", "self.bias_table = nn.Parameter(torch.randn(side**2, num_heads))",
     'self.register_buffer("bias_table", torch.randn(side**2, num_heads))',
     "gradient_missing", "storage"),
    ("in squares", "view(t, t, -1).permute(2, 0, 1)", "view(-1, t, t)",
     "bias_misplaced", "positions"),
    ("in squares", "(s + bias).softmax(-1)", "s.softmax(-1) + bias",
     "rows_do_not_sum_to_one", "weights"),
    ("normed", "(w @ v)", "(w[:, [0]] @ v)", "weights_shared", "mix"),
    ("normed", "(w @ v)", "(w.mean(1, keepdim=True) @ v)", "weights_shared", "mix"),
    ("capped", "        s = self.cap * torch.tanh(s / self.cap)\n"
     "        s = s.masked_fill(future, -torch.inf)\n", BEFORE_CAP,
     "softcap_after_mask", "mask"),
    ("in a window", "apart < self.window", "apart > self.window",
     "mask_inverted", "mask"),
    ("joined", "linear(x, w[2], bias[2])", "linear(x, w[2])",
     "bias_unused", "projection"),
    ("grouped", "self.turned(k).transpose(1, 2)", "self.turned(k.transpose(1, 2))",
     "rope_over_heads", "positions"),
    ("rotated in part", "angles.repeat_interleave(2, -1)",
     "torch.cat((angles, angles), -1)", "rope_pairing", "positions"),
    ("from a latent", "self.norm(self.w_dkv(x))", "self.w_dkv(x)",
     "gradient_missing", "projection"),
    ("from a latent", "self.w_uv(latent)", "self.w_uk(latent)",
     "projection_mixed_up", "projection"),
]  # fmt: skip


def errors(kind, source):
    given = {"num_heads": 4} | GIVEN.get(kind, {})
    report = attncheck.check(compiled(HEADER + source, "first.py"), **given)
    found = [one for one in report.findings if one.severity == "error"]
    return report.exit_status, [(one.mistake, one.stage) for one in found]


@pytest.mark.parametrize("kind", CLASSES)
def test_each_right_class_passes(kind):
    assert errors(kind, CLASSES[kind]) == (0, [])


@pytest.mark.parametrize(("kind", "right", "wrong", "mistake", "stage"), WRONG)
def test_the_first_stage_that_differs_comes_first(kind, right, wrong, mistake, stage):
    assert right in CLASSES[kind]
    status, found = errors(kind, CLASSES[kind].replace(right, wrong))
    assert (status, found[:1]) == (1, [(mistake, stage)]), found


def test_a_table_that_is_random_on_purpose_needs_no_gradient():
    learned = "self.bias_table = nn.Parameter(torch.randn(side**2, num_heads))"
    drawn = 'self.register_buffer("random_table", torch.randn(side**2, num_heads))'
    source = CLASSES["in squares"].replace(learned, drawn)
    source = source.replace("self.bias_table[", "self.random_table[")
    assert errors("in squares", source)[1] == []
