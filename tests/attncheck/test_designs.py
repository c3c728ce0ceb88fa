"""Published designs of attention are right as they are, and no wrong twin is green."""

import pytest

import attncheck
from attncheck.mistakes import compiled

HEAD = """\
import math
from dataclasses import dataclass
import torch
from torch import nn
from torch.nn import functional as F


"""
PAIRS = """\
class Attention(nn.Module):
    def __init__(self, d_in=32, d_bias=12, n_head=4, d_hidden=8):
        super().__init__()
        self.norm_in, self.norm_bias = nn.LayerNorm(d_in), nn.LayerNorm(d_bias)
        self.to_q = nn.Linear(d_in, n_head * d_hidden, bias=False)
        self.to_k = nn.Linear(d_in, n_head * d_hidden, bias=False)
        self.to_v = nn.Linear(d_in, n_head * d_hidden, bias=False)
        self.to_b = nn.Linear(d_bias, n_head, bias=False)
        self.to_g = nn.Linear(d_in, n_head * d_hidden)
        self.to_out = nn.Linear(n_head * d_hidden, d_in)
        self.h, self.dim = n_head, d_hidden

    def forward(self, x, bias):
        b, t = x.shape[:2]
        x = self.norm_in(x)
        q, k, v = (f(x).view(b, t, self.h, -1) for f in (self.to_q, self.to_k,
                                                         self.to_v))
        scores = torch.einsum("bqhd,bkhd->bqkh", q, k / self.dim**0.5)
        weights = F.softmax(scores + self.to_b(self.norm_bias(bias)), dim=-2)
        y = torch.einsum("bqkh,bkhd->bqhd", weights, v).reshape(b, t, -1)
        return self.to_out(torch.sigmoid(self.to_g(x)) * y)
"""
PIXELS = """\
class Mixed(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.W = nn.Parameter(torch.randn(width, width) * 0.1)
        self.b = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        x = torch.einsum("bhwc,cd->bhwd", x.permute(0, 2, 3, 1), self.W) + self.b
        return x.permute(0, 3, 1, 2)


class Attention(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.GroupNorm(8, channels)
        self.m0, self.m1, self.m2, self.m3 = (Mixed(channels) for _ in range(4))

    def forward(self, x):
        b, c, height, width = x.shape
        y = self.norm(x)
        q, k, v = self.m0(y), self.m1(y), self.m2(y)
        w = torch.einsum("bchw,bcij->bhwij", q, k) * c**-0.5
        w = F.softmax(w.reshape(b, height, width, -1), dim=-1).view_as(w)
        return x + self.m3(torch.einsum("bhwij,bcij->bchw", w, v))
"""
SETS = """\
class Attention(nn.Module):
    def __init__(self, dim_Q, dim_K, dim_V, num_heads):
        super().__init__()
        self.dim_V, self.num_heads = dim_V, num_heads
        self.fc_q, self.fc_k = nn.Linear(dim_Q, dim_V), nn.Linear(dim_K, dim_V)
        self.fc_v, self.fc_o = nn.Linear(dim_K, dim_V), nn.Linear(dim_V, dim_V)
        self.ln0, self.ln1 = nn.LayerNorm(dim_V), nn.LayerNorm(dim_V)

    def forward(self, Q, K):
        Q, K, V = self.fc_q(Q), self.fc_k(K), self.fc_v(K)
        wide = self.dim_V // self.num_heads
        q, k, v = (torch.cat(one.split(wide, 2), 0) for one in (Q, K, V))
        A = torch.softmax(q.bmm(k.transpose(1, 2)) / math.sqrt(wide), 2)
        y = self.ln0(torch.cat((q + A.bmm(v)).split(Q.size(0), 0), 2))
        return self.ln1(y + F.relu(self.fc_o(y)))
"""
DISTANCES = """\
class Attention(nn.Module):
    def __init__(self, d_model, n_heads, far=4):
        super().__init__()
        self.h, self.d, self.far = n_heads, d_model // n_heads, far
        self.wq, self.wk, self.wv, self.wo = (
            nn.Linear(d_model, d_model) for _ in range(4))
        self.rel_k = nn.Embedding(2 * far + 1, self.d)
        self.rel_v = nn.Embedding(2 * far + 1, self.d)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (w(x).view(b, t, self.h, self.d).transpose(1, 2)
                   for w in (self.wq, self.wk, self.wv))
        i = torch.arange(t, device=x.device)
        far = (i[None] - i[:, None]).clamp(-self.far, self.far) + self.far
        a = q @ k.mT + torch.einsum("bhid,ijd->bhij", q, self.rel_k(far))
        a = (a / math.sqrt(self.d)).softmax(-1)
        y = a @ v + torch.einsum("bhij,ijd->bhid", a, self.rel_v(far))
        return self.wo(y.transpose(1, 2).reshape(b, t, c))
"""
LATENT = """\
@dataclass
class Config:
    dim: int = 64
    n_heads: int = 4
    q_lora_rank: int = 24
    kv_lora_rank: int = 16
    qk_nope_head_dim: int = 8
    qk_rope_head_dim: int = 8
    v_head_dim: int = 8


class Attention(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        c = config
        self.h, self.nope, self.rope = c.n_heads, c.qk_nope_head_dim, c.qk_rope_head_dim
        self.wide, self.rank = c.v_head_dim, c.kv_lora_rank
        self.wq_a = nn.Linear(c.dim, c.q_lora_rank, bias=False)
        self.wq_b = nn.Linear(c.q_lora_rank, self.h * (self.nope + self.rope))
        self.wkv_a = nn.Linear(c.dim, self.rank + self.rope, bias=False)
        self.wkv_b = nn.Linear(self.rank, self.h * (self.nope + self.wide))
        self.q_norm, self.kv_norm = nn.LayerNorm(c.q_lora_rank), nn.LayerNorm(self.rank)
        self.wo = nn.Linear(self.h * self.wide, c.dim, bias=False)

    def turn(self, x):
        t, d = x.shape[1], x.shape[-1]
        steps = torch.arange(0, d, 2, device=x.device) / d
        angles = torch.arange(t, device=x.device)[:, None, None] / 10000.0**steps
        cos, sin = angles.cos(), angles.sin()
        one, two = x[..., ::2], x[..., 1::2]
        both = one * cos - two * sin, one * sin + two * cos
        return torch.stack(both, -1).flatten(-2)

    def forward(self, x):
        b, t, _ = x.shape
        q = self.wq_b(self.q_norm(self.wq_a(x))).view(b, t, self.h, -1)
        still, q = q.split([self.nope, self.rope], -1)
        q = torch.cat([still, self.turn(q)], -1)
        short, k = self.wkv_a(x).split([self.rank, self.rope], -1)
        both = self.wkv_b(self.kv_norm(short)).view(b, t, self.h, -1)
        still, v = both.split([self.nope, self.wide], -1)
        k = torch.cat([still, self.turn(k[:, :, None]).expand(-1, -1, self.h, -1)], -1)
        q, k, v = (one.transpose(1, 2) for one in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(b, t, -1))
"""
WINDOW = """\
class Attention(nn.Module):
    def __init__(self, d_model, num_heads, window_size):
        super().__init__()
        self.h, self.window_size = num_heads, window_size
        self.w_q, self.w_k, self.w_v, self.w_o = (
            nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key, value):
        b, t, c = query.shape
        q, k, v = (f(x).view(b, t, self.h, -1).transpose(1, 2) for f, x in
                   ((self.w_q, query), (self.w_k, key), (self.w_v, value)))
        i = torch.arange(t, device=query.device)
        far = (i[:, None] - i).abs() > self.window_size
        a = (q @ k.mT / math.sqrt(c // self.h)).masked_fill(far, -math.inf).softmax(-1)
        y = torch.nan_to_num(a, nan=0.0) @ v
        return self.w_o(y.transpose(1, 2).reshape(b, t, c))
"""
GRID = """\
class Attention(nn.Module):
    def __init__(self, dim, window_size, num_heads):
        super().__init__()
        self.window_size, self.h = window_size, num_heads
        wide = 2 * window_size[1] - 1
        rows = (2 * window_size[0] - 1) * wide
        self.table = nn.Parameter(torch.zeros(rows, num_heads))
        y, z = torch.meshgrid(*map(torch.arange, window_size), indexing="ij")
        y, z = y.flatten(), z.flatten()
        apart = (y[:, None] - y + window_size[0] - 1) * wide
        self.register_buffer("places", apart + z[:, None] - z + window_size[1] - 1)
        self.qkv, self.proj = nn.Linear(dim, dim * 3), nn.Linear(dim, dim)

    def forward(self, x):
        b, t, c = x.shape
        qkv = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        n = len(self.places)
        bias = self.table[self.places.view(-1)].view(n, n, -1).permute(2, 0, 1)
        a = (q @ k.mT * (c // self.h) ** -0.5 + bias).softmax(-1)
        return self.proj((a @ v).transpose(1, 2).reshape(b, t, c))
"""
LAYERSCALE = """\
class Attention(nn.Module):
    def __init__(self, dim, num_heads, init_values=1e-5):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.h = num_heads
        self.ls1 = nn.Parameter(init_values * torch.ones(dim))
        self.ls2 = nn.Parameter(init_values * torch.ones(dim))
        self.mlp = nn.Sequential(nn.Linear(dim, 64), nn.GELU(), nn.Linear(64, dim))

    def attn(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.proj(y.transpose(1, 2).reshape(b, t, c))

    def forward(self, x):
        x = x + self.ls1 * self.attn(self.norm1(x))
        return x + self.ls2 * self.mlp(self.norm2(x))
"""
LOW_RANK = """\
class Adapted(nn.Module):
    def __init__(self, d_in, d_out, rank=4):
        super().__init__()
        self.linear = nn.Linear(d_in, d_out, bias=False)
        self.a = nn.Parameter(torch.randn(rank, d_in))
        self.b = nn.Parameter(torch.zeros(d_out, rank))

    def forward(self, x):
        return self.linear(x) + 2 * (x @ self.a.T @ self.b.T)


class Attention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.h = n_heads
        self.q_proj, self.v_proj = Adapted(d_model, d_model), Adapted(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.o_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (p(x).view(b, t, self.h, -1).transpose(1, 2)
                   for p in (self.q_proj, self.k_proj, self.v_proj))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).reshape(b, t, c))
"""
SWISH = """\
class Attention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.h, self.qkv = n_heads, nn.Linear(d_model, 3 * d_model)
        self.g, self.out = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(F.silu(self.g(x)) * y.transpose(1, 2).reshape(b, t, c))
"""
LISTS = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads=2):
        super().__init__()
        self.h, self.d_head = n_heads, d // n_heads
        self.q_mappings, self.k_mappings, self.v_mappings = (nn.ModuleList(
            nn.Linear(self.d_head, self.d_head) for _ in range(n_heads))
            for _ in range(3))

    def forward(self, x):
        heads = []
        for i, part in enumerate(x.split(self.d_head, dim=-1)):
            q, k = self.q_mappings[i](part), self.k_mappings[i](part)
            weights = (q @ k.mT / self.d_head**0.5).softmax(dim=-1)
            heads.append(weights @ self.v_mappings[i](part))
        return torch.cat(heads, dim=-1)
"""
OUTSIDE = """\
class Attention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.h, self.qkv = n_heads, nn.Linear(d_model, 3 * d_model)
        self.out, self.g = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = self.out(y.transpose(1, 2).reshape(b, t, c))
        return self.norm(x + self.g(x).sigmoid() * y)
"""
# {design: (source, what makes it wrong, options)}
DESIGNS = {
    "numbers for pairs, and a gate": (PAIRS, ("dim=-2", "dim=1"), {"causal": False}),
    "weights of another module for pixels": (PIXELS, ("* c**-0.5", "* c"),
                                             {"causal": False}),
    "a block for sets": (SETS, ("math.sqrt(wide), 2", "math.sqrt(wide), 1"),
                         {"causal": False}),
    "values by distance": (DISTANCES, ("rel_v(far)", "rel_v(far.roll(1, 0))"),
                           {"causal": False}),
    "queries, keys and values from short vectors": (
        LATENT, ("self.turn(k[:, :, None])", "k[:, :, None]"), {}),
    "a window to both sides": (WINDOW, (".abs() >", " >"), {"causal": False}),
    "a window of which nobody gave the size": (
        GRID, ("permute(2, 0, 1)", "reshape(-1, n, n)"), {"causal": False}),
    "a scale that is nearly 0": (LAYERSCALE, ("q, k, v)", "q, q, v)"),
                                 {"causal": False}),
    "a low rank beside a weight": (LOW_RANK, ("q, k, v, is", "q, v, k, is"), {}),
    "a gate by silu": (SWISH, ("self.g(x)", "self.g(x.roll(1, 1))"), {}),
    "a gate of the output": (OUTSIDE, ("self.g(x)", "self.g(x.roll(1, 1))"), {}),
    "lists of layers": (LISTS, ("q @ k.mT", "q @ q.mT"), {"causal": False}),
}  # fmt: skip


def errors(report):
    return [f.mistake for f in report.findings if f.severity == "error"]


@pytest.mark.parametrize("name", DESIGNS)
def test_a_published_design_is_right_and_its_wrong_twin_is_not_green(name):
    source, (right, wrong), options = DESIGNS[name]
    assert right in source
    report = attncheck.check(compiled(HEAD + source, "design.py"), **options)
    assert (report.exit_status, errors(report)) == (0, []), str(report)
    twin = compiled(HEAD + source.replace(right, wrong), "design.py")
    assert attncheck.check(twin, **options).exit_status != 0


def test_a_norm_of_short_queries_that_is_never_used_is_no_norm_of_one_side():
    unused = LATENT.replace("self.q_norm(self.wq_a(x))", "self.wq_a(x)")
    report = attncheck.check(compiled(HEAD + unused, "design.py"))
    assert errors(report) == ["qk_norm_unused"]
    assert report.findings[0].stage == "projection"


PAIR = "torch.randn(1, {0}, {0}, 12, generator=torch.Generator().manual_seed(0))"


@pytest.mark.parametrize("wrong", [False, True])
def test_a_declared_bias_counts_beside_a_gate_that_nobody_declared(wrong):
    source = PAIRS.replace("/ self.dim**0.5", "* self.dim") if wrong else PAIRS
    pairs = eval(f"lambda t: {PAIR.format('t')}", {"torch": __import__("torch")})

    def bias(module, t):
        held = module.norm_bias(pairs(t).to(module.to_b.weight))
        return module.to_b(held)[0].permute(2, 0, 1)

    report = attncheck.check(
        compiled(HEAD + source, "design.py"), causal=False, prenorm="layer", bias=bias,
        call=lambda m, x: m(x, pairs(x.shape[1]).to(x)), d_bias=12,
    )  # fmt: skip
    assert (report.exit_status == 0) != wrong, str(report)


def test_a_table_of_cosines_and_sines_in_one_argument_is_given():
    source = """\
class Attention(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.h = n_head
        self.c_q, self.c_k, self.c_v, self.c_proj = (
            nn.Linear(n_embd, n_embd, bias=False) for _ in range(4))

    def turn(self, x, cos, sin):
        one, two = x.chunk(2, -1)
        return torch.cat([one * cos + two * sin, two * cos - one * sin], -1)

    def forward(self, x, cos_sin, kv_cache):
        b, t, c = x.shape
        q, k, v = (f(x).view(b, t, self.h, -1) for f in (self.c_q, self.c_k, self.c_v))
        q, k = (self.turn(one, *cos_sin) for one in (q, k))
        q, k = (F.rms_norm(one, one.shape[-1:]) for one in (q, k))
        q, k, v = (one.transpose(1, 2) for one in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(b, t, c))
"""
    cls = compiled(HEAD + source, "design.py")
    report = attncheck.check(cls)
    told = {"rope": {"pairing": "halves", "way": "other"}, "qk_norm": "rms"}
    assert (report.exit_status, report.proposal) == (3, told), str(report)
    assert attncheck.check(cls, **told).ok
    twin = source.replace(
        "q, k = (self.turn(one, *cos_sin) for one in (q, k))",
        "k = self.turn(k, *cos_sin)",
    )
    assert attncheck.check(compiled(HEAD + twin, "design.py"), **told).exit_status == 1


MASKED = """\
class Attention(nn.Module):
    def __init__(self, n_feat, n_head):
        super().__init__()
        self.h = n_head
        self.q, self.k, self.v, self.out = (nn.Linear(n_feat, n_feat) for _ in "qkvo")

    def forward(self, query, key, value, mask=None):
        b, t, c = query.shape
        q, k, v = (f(x).view(b, -1, self.h, c // self.h).transpose(1, 2)
                   for f, x in ((self.q, query), (self.k, key), (self.v, value)))
        scores = q @ k.mT / math.sqrt(c // self.h)
        if mask is not None:
            hidden = mask.unsqueeze(1).eq(0)
            least = torch.finfo(scores.dtype).min
            scores = scores.masked_fill(hidden, least)
            weights = scores.softmax(-1).masked_fill(hidden, 0.0)
        else:
            weights = scores.softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, t, c))
"""


def test_weights_are_set_to_zero_where_their_scores_were_hidden_before():
    report = attncheck.check(compiled(HEAD + MASKED, "design.py"), causal=False)
    assert (report.exit_status, errors(report)) == (0, []), str(report)
    line = "            scores = scores.masked_fill(hidden, least)\n"
    assert line in MASKED
    cls = compiled(HEAD + MASKED.replace(line, ""), "design.py")
    assert errors(attncheck.check(cls, causal=False)) == ["mask_after_softmax"]


def test_a_dictionary_of_settings_is_no_class_that_stands_beside_it():
    source = """\
@dataclass
class OtherConfig:
    dim: int = 8


class Attention(nn.Module):
    def __init__(self, cfg: dict):
        super().__init__()
        d, self.h = cfg["emb_dim"], cfg["n_heads"]
        self.q, self.k, self.v, self.out = (nn.Linear(d, d) for _ in "qkvo")

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (f(x).view(b, t, self.h, -1).transpose(1, 2)
                   for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, c))
"""
    assert attncheck.check(compiled(HEAD + source, "design.py")).ok


@pytest.mark.parametrize("name", ["pool_query", "token"])
def test_one_vector_for_each_sequence_is_meant_by_a_class_that_pools(name):
    source = """\
class Attention(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.h, self.token = num_heads, nn.Parameter(torch.randn(1, 1, dim))
        self.q, self.kv = nn.Linear(dim, dim), nn.Linear(dim, 2 * dim)

    def forward(self, x):
        b, t, c = x.shape
        q = self.q(self.token.expand(b, -1, -1)).view(b, 1, self.h, -1)
        k, v = self.kv(x).view(b, t, 2, self.h, -1).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q.transpose(1, 2), k, v).reshape(b, c)
"""
    source = HEAD + source.replace("self.token", f"self.{name}")
    report = attncheck.check(compiled(source, "design.py"), causal=False)
    right = name == "pool_query"
    assert (report.exit_status, errors(report)) == (
        (3, []) if right else (1, ["wrong_shape"])
    )


LINEAR = """\
class Attention(nn.Module):
    def __init__(self, dim, heads=4):
        super().__init__()
        self.h, self.to_qkv = heads, nn.Linear(dim, 3 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (one.view(b, t, self.h, -1).transpose(1, 2)
                   for one in self.to_qkv(x).chunk(3, -1))
        both = torch.einsum("bhnd,bhne->bhde", k.softmax(dim=-2), v)
        y = torch.einsum("bhnd,bhde->bhne", q.softmax(dim=-1), both)
        return self.to_out(y.transpose(1, 2).reshape(b, t, c))
"""


def test_linear_attention_is_not_judged_and_scores_of_entries_are_wrong():
    cls = compiled(HEAD + LINEAR, "design.py")
    report = attncheck.check(cls, causal=False)
    assert (report.exit_status, errors(report)) == (3, []), str(report)
    assert "before queries meet them" in report.not_compared
    twin = LINEAR.replace("k.softmax(dim=-2), v)", "q, k).softmax(dim=-1)")
    twin = twin.replace("q.softmax(dim=-1)", "v")
    report = attncheck.check(compiled(HEAD + twin, "design.py"), causal=False)
    assert report.exit_status == 1, str(report)


def test_an_image_is_cut_into_windows_of_a_size_that_is_guessed():
    source = """\
class Attention(nn.Module):
    def __init__(self, dim, window_size, num_heads):
        super().__init__()
        self.w, self.h = window_size, num_heads
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        b, height, width, c = x.shape
        w = self.w
        x = x.view(b, height // w, w, width // w, w, c).transpose(2, 3)
        n = x.shape[:3].numel()
        q, k, v = self.qkv(x).view(n, w * w, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape)
        return self.proj(y.transpose(2, 3).reshape(b, height, width, c))
"""
    report = attncheck.check(compiled(HEAD + source, "design.py"), causal=False)
    assert (report.exit_status, errors(report)) == (3, []), str(report)
    assert "The tokens were passed as the pixels of an image." in report.notes
