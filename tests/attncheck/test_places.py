"""Single tokens and parameters, followed through layers that no reference describes."""

import pytest

import attncheck
from tests.attncheck.plain import made
from tests.attncheck.test_edges import outcome

ROLLED = """\
class Attention(nn.Module):
    def __init__(self, dim=32, num_heads=4, window=4, shift=2):
        super().__init__()
        self.h, self.w, self.shift = num_heads, window, shift
        self.norm = nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.table = nn.Parameter(torch.zeros(num_heads, window, window))

    def forward(self, x):
        b, t, c = x.shape
        pad = -t % self.w
        y = torch.roll(F.pad(self.norm(x), (0, 0, 0, pad)), -self.shift, dims=1)
        y = y.view(-1, self.w, c)
        q, k, v = (self.qkv(y).view(len(y), self.w, 3, self.h, c // self.h)
                   .permute(2, 0, 3, 1, 4))
        s = q @ k.mT * (c // self.h) ** -0.5 + self.table
        y = (s.softmax(-1) @ v).transpose(1, 2).reshape(b, t + pad, c)
        y = torch.roll(y, self.shift, dims=1)[:, :t]
        return x + self.out(y)
"""
IMAGE = """\
class Attention(nn.Module):
    def __init__(self, channels=32, num_heads=4):
        super().__init__()
        self.h, self.norm = num_heads, nn.GroupNorm(4, channels)
        self.qkv = nn.Conv1d(channels, 3 * channels, 1)
        self.proj = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm(x.mT)).view(b * self.h, -1, t).chunk(3, dim=1)
        w = torch.einsum("bct,bcs->bts", q, k) * q.shape[1] ** -0.5
        y = torch.einsum("bts,bcs->bct", w.softmax(-1), v).reshape(b, c, t)
        return x + self.proj(y).mT
"""
BIASES = """\
class Attention(nn.Module):
    def __init__(self, dim=32, num_heads=4):
        super().__init__()
        self.h, self.qkv = num_heads, nn.Linear(dim, 3 * dim, bias=False)
        self.q_bias = nn.Parameter(torch.zeros(dim))
        self.v_bias = nn.Parameter(torch.zeros(dim))
        self.temperature = nn.Parameter(torch.ones(num_heads, 1, 1))
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, c = x.shape
        bias = torch.cat([self.q_bias, torch.zeros_like(self.v_bias), self.v_bias])
        y = F.linear(x, self.qkv.weight, bias).view(b, t, 3, self.h, -1)
        q, k, v = y.permute(2, 0, 3, 1, 4)
        q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
        w = (q @ k.mT * self.temperature).softmax(-1)
        return self.proj((w @ v).transpose(1, 2).reshape(b, t, c))
"""
LATENT = """\
class Attention(nn.Module):
    def __init__(self, dim=32, n_heads=4, rank=16, rope_dim=4):
        super().__init__()
        self.h, self.r = n_heads, rope_dim
        self.q = nn.Linear(dim, n_heads * 8)
        self.down, self.norm = nn.Linear(dim, rank + rope_dim), nn.LayerNorm(rank)
        self.up, self.o = nn.Linear(rank, n_heads * 12), nn.Linear(n_heads * 8, dim)

    def rotate(self, x):
        angle = torch.arange(x.shape[1], device=x.device)[:, None]
        angle = angle * 100.0 ** -torch.arange(0, 1, 0.5, device=x.device)
        cos, sin = angle.cos()[:, None], angle.sin()[:, None]
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)

    def forward(self, x):
        b, t, _ = x.shape
        q, q_rope = self.q(x).view(b, t, self.h, 8).split([4, 4], dim=-1)
        c, k_rope = self.down(x).split([16, self.r], dim=-1)
        k, v = self.up(self.norm(c)).view(b, t, self.h, 12).split([4, 8], dim=-1)
        k_rope = self.rotate(k_rope[:, :, None]).expand(-1, -1, self.h, -1)
        q = torch.cat([self.rotate(q_rope), q], dim=-1)
        k = torch.cat([k_rope, k], dim=-1)
        s = torch.einsum("bshd,bthd->bhst", q, k) / 8**0.5
        s = s.masked_fill(torch.ones_like(s).triu(1).bool(), -torch.inf)
        y = torch.einsum("bhst,bthd->bshd", s.softmax(-1), v)
        return self.o(y.flatten(2))
"""
SHIFTED = """\
class Attention(nn.Module):
    def __init__(self, n_feat=32, n_head=4, max_len=12):
        super().__init__()
        self.h, self.d, self.n = n_head, n_feat // n_head, max_len
        self.q, self.k, self.v, self.o = (nn.Linear(n_feat, n_feat) for _ in range(4))
        self.rel_pos = nn.Linear(n_feat, n_feat, bias=False)
        far = torch.arange(max_len - 1, -max_len, -1.0)[:, None]
        angle = far * 100.0 ** -torch.arange(0, 1, 2 / n_feat)
        self.register_buffer("pe", torch.cat([angle.sin(), angle.cos()], dim=-1))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (f(x).view(b, t, self.h, self.d).transpose(1, 2)
                   for f in (self.q, self.k, self.v))
        pe = self.pe[self.n - t : self.n + t - 1]
        p = self.rel_pos(pe).view(-1, self.h, self.d).permute(1, 2, 0)
        rows = torch.arange(t, device=x.device)
        near = (t - 1 - rows[:, None] + rows).expand(b, self.h, t, t)
        s = (q @ k.mT + (q @ p).gather(-1, near)) / self.d**0.5
        return self.o((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))
"""
PADDED = """\
class Attention(nn.Module):
    def __init__(self, dim=16, window_size=32, heads=4):
        super().__init__()
        self.h, self.w, self.d = heads, window_size, dim // heads
        self.to_qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        b, n, c = x.shape
        w = self.w
        x = F.pad(x, (0, 0, 0, -n % w))
        q, k, v = (f.view(b, -1, w, self.h, self.d).transpose(2, 3)
                   for f in self.to_qkv(x).chunk(3, dim=-1))
        k, v = (torch.cat([F.pad(f, (0, 0, 0, 0, 0, 0, 1, 0))[:, :-1], f], dim=3)
                for f in (k, v))
        j = torch.arange(2 * w, device=x.device)
        i = j[w:, None]
        seen = (j <= i) & (j > i - w)
        seen = seen.repeat(q.shape[1], 1, 1, 1)
        seen[0, ..., :w] = False
        s = (q @ k.mT / self.d**0.5).masked_fill(~seen, -torch.inf)
        y = (s.softmax(-1) @ v).transpose(2, 3).reshape(b, -1, c)
        return self.out(y[:, :n])
"""
CASES = {
    "rolled on": (
        ROLLED,
        ("roll(y, self.shift", "roll(y, -self.shift"),
        "tokens_moved",
    ),
    "the rows of padding": (
        PADDED,
        ("y[:, :n]", "y[:, -n:]"),
        "tokens_moved",
    ),
    "channels first": (
        IMAGE,
        ("self.proj(y).mT", "self.proj(y).reshape(b, t, c)"),
        "join_viewed",
    ),
    "heads viewed": (
        BIASES,
        ("self.h, -1)\n        q, k, v = y.permute(2, 0, 3, 1, 4)",
         "c)\n        q, k, v = y.unbind(2)\n"
         "        q, k, v = (f.reshape(b, self.h, t, -1) for f in (q, k, v))"),
        "heads_viewed",
    ),
    "bias of values at keys": (
        BIASES,
        ("torch.zeros_like(self.v_bias), self.v_bias]",
         "self.v_bias, torch.zeros_like(self.v_bias)]"),
        "projection_mixed_up",
    ),
    "parts in another order": (
        LATENT,
        ("[k_rope, k]", "[k, k_rope]"),
        "distance_not_alone",
    ),
    "table not from its middle": (
        SHIFTED,
        ("[self.n - t : self.n + t - 1]", "[: 2 * t - 1]"),
        "distance_not_alone",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_token_goes_to_its_own_place(name):
    text, change, mistake = CASES[name]
    causal = text in (LATENT, PADDED)
    right = attncheck.check(made(text), causal=causal)
    assert [f for f in right.findings if f.severity == "error"] == []
    code, found = outcome(made(text, change), causal=causal)
    assert (code, found[:1]) == (1, [mistake])


def test_a_layer_that_refuses_the_calls_is_not_accused():
    alike = "x.equal(x[:, :1].expand_as(x)) and t > 1"
    strict = made(
        SHIFTED,
        ("        b, t, c = x.shape\n",
         f"        b, t, c = x.shape\n        assert not ({alike} and t == 5)\n"),
    )  # fmt: skip
    report = attncheck.check(strict, causal=False)
    outcomes = {result.test: result.outcome for result in report.results}
    assert outcomes["scores by distance"] == "not run"
    assert [f for f in report.findings if f.severity == "error"] == []
