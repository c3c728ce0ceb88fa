"""Norms, tables and feed-forward parts beside attention are taken as they are."""

import pytest
import torch
from torch import nn

import attncheck
from attncheck.mistakes import HEADER, compiled
from attncheck.run import checked

BLOCK = """
class MLP(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.first, self.last = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x):
        return self.last(torch.square(torch.relu(self.first(x))))


class Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.h = num_heads
        self.places = nn.Embedding(64, d_model)
        self.mix = nn.Linear(d_model, d_model)
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.inner = nn.LayerNorm(d_model)
        self.out = nn.Linear(d_model, d_model)
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.norm, self.ffn = nn.LayerNorm(d_model), MLP(d_model)

    def forward(self, x):
        b, t, d = x.shape
        y = self.mix(x + self.places(torch.arange(t, device=x.device)))
        qkv = self.qkv(y).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        future = torch.ones(t, t, device=x.device).bool().triu(1)
        weights = scores.masked_fill(future, -torch.inf).softmax(-1)
        y = (weights @ v).transpose(1, 2).reshape(b, t, d)
        x = x + self.gamma * self.out(self.inner(y))
        return x + self.ffn(self.norm(x))
"""
# What is planted inside attention, and the name that it gets.
INSIDE = {
    "scale_missing": (" / q.shape[-1] ** 0.5", ""),
    "scale_by_d_out": ("q.shape[-1] ** 0.5", "d ** 0.5"),
    "softmax_over_queries": ("softmax(-1)", "softmax(-2).nan_to_num()"),
    "mask_off_by_one": ("triu(1)", "triu(2)"),
    "join_viewed": ("transpose(1, 2).reshape(b", "reshape(b"),
    "heads_viewed": (
        "view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)",
        "chunk(3, -1)\n        qkv = torch.stack([one.reshape(b, self.h, t, -1) for "
        "one in qkv])",
    ),
}
# What is joined in another way than meant: it has no name, and is not green.
JOINED = {
    "the input added twice": ("x = x + self.gamma", "x = x + x + self.gamma"),
    "the table added twice": (
        "x + self.places(torch.arange(t, device=x.device))",
        "x + 2 * self.places(torch.arange(t, device=x.device))",
    ),
    "another activation of the output": (
        "self.out(self.inner(y))",
        "torch.relu(self.out(self.inner(y)))",
    ),
    "no sum behind": ("return x + self.ffn", "return self.ffn"),
    "the norm added": ("return x + self.ffn", "return self.norm(x) + self.ffn"),
    "a token mixed behind": ("x = x + self.gamma", "x = x.roll(1, 0) + self.gamma"),
}


def block(*changes):
    source = BLOCK
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    return compiled(HEADER + source, "block.py")


def test_what_stands_beside_attention_is_taken_as_it_is():
    report = attncheck.check(block())
    assert report.verdict == "passed", str(report)
    told = "taken as they are: mix (Linear), inner (LayerNorm), ffn (MLP), norm"
    assert told in " ".join(str(report).split())


@pytest.mark.parametrize("mistake", INSIDE)
def test_a_mistake_in_attention_is_named_beside_them(mistake):
    found = attncheck.check(block(INSIDE[mistake])).findings
    assert [one.mistake for one in found][:1] == [mistake]


@pytest.mark.parametrize("name", JOINED)
def test_what_is_joined_otherwise_is_not_green(name):
    assert attncheck.check(block(JOINED[name])).verdict != "passed"


def test_a_norm_and_a_projection_are_no_parts_beside_attention():
    twice = ("self.out(self.inner(y))", "self.out(self.out(self.inner(y)))")
    assert attncheck.check(block(twice)).verdict != "passed"
    again = ("self.qkv(y)", "self.qkv(self.mix(y))")
    assert attncheck.check(block(again)).verdict != "passed"


class Chained(nn.Module):
    """Keys and values are projected from the queries."""

    def __init__(self, dim, num_heads):
        super().__init__()
        self.h = num_heads
        self.q, self.k, self.v, self.out = (nn.Linear(dim, dim) for _ in "qkvo")

    def forward(self, x):
        q = self.q(x)
        heads = (one.unflatten(-1, (self.h, -1)) for one in (q, self.k(q), self.v(q)))
        q, k, v = (one.transpose(1, 2) for one in heads)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


def test_a_projection_is_no_part_beside_another():
    assert attncheck.check(Chained).verdict != "passed"


class Later(nn.Module):
    """Keys come from the first argument, and each projection has its own norm."""

    def __init__(self, q_dim, kv_dim, hidden_dim, num_heads):
        super().__init__()
        self.h = num_heads
        self.q_proj, self.k_proj, self.v_proj = (
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, hidden_dim))
            for width in (q_dim, kv_dim, kv_dim)
        )
        self.o_proj = nn.Linear(hidden_dim, q_dim)

    def forward(self, images, queries):
        q, k, v = self.q_proj(queries), self.k_proj(images), self.v_proj(images)
        q, k, v = (one.unflatten(-1, (self.h, -1)).transpose(1, 2) for one in (q, k, v))
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.o_proj(y.transpose(1, 2).flatten(2))


def test_queries_may_come_second_with_norms_of_their_own():
    report = attncheck.check(Later, causal=False)
    assert report.verdict == "passed", str(report)
    assert "images=a memory with other tokens" in str(report)


class Guessed(nn.Module):
    """A head is too wide by default, an activation is a class, and a mask is needed."""

    def __init__(self, dim, dim_head=32, act=None, *, num_parts, act_fn):
        super().__init__()
        self.h, self.act, self.parts = dim // dim_head, act_fn(), num_parts
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, mask=None):
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k, v = (one.unflatten(-1, (self.h, -1)).transpose(1, 2) for one in (q, k, v))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        y = scores.masked_fill(mask.unsqueeze(1) == 0, -torch.inf).softmax(-1) @ v
        return self.out(y.transpose(1, 2).flatten(2))


def test_other_guesses_are_tried_and_told():
    report = attncheck.check(Guessed, causal=False)
    assert report.verdict == "passed", str(report)
    told = " ".join(str(report).split())
    assert "dim_head=4" in told
    assert "act_fn=GELU" in told
    assert "num_parts=1" in told
    assert "a mask that hides nothing (True stays visible)" in told


class Windowed(nn.Module):
    """A bias by distance in three axes, alike to both sides; values are wider."""

    def __init__(self, dim, num_heads, window_size, alike=True, wrong=False):
        super().__init__()
        self.h, self.d, n = num_heads, dim // num_heads, window_size[0]
        self.qkv = nn.Linear(dim, num_heads * self.d * 4)
        self.out = nn.Linear(num_heads * self.d * 2, dim)
        grid = torch.cartesian_prod(*(torch.arange(n) for n in window_size))
        apart = grid[:, None] - grid
        apart = apart.abs() if alike else apart + n - 1
        if wrong:  # one axis forgotten
            apart = apart[..., :2]
        place = (apart * (2 * n) ** torch.arange(apart.shape[-1])).sum(-1)
        self.register_buffer("place", place)
        self.table = nn.Parameter(torch.randn(int(place.max()) + 1, num_heads))

    def forward(self, x):
        b, t, _ = x.shape
        each = self.qkv(x).view(b, t, self.h, -1).transpose(1, 2)
        q, k, v = each.split([self.d, self.d, 2 * self.d], dim=-1)
        bias = self.table[self.place[:t, :t]].permute(2, 0, 1)
        weights = (q @ k.mT / self.d**0.5 + bias).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, t, -1))


@pytest.mark.parametrize("alike", [True, False])
def test_a_bias_by_distance_may_have_three_axes(alike):
    own = {"window_size": (2, 2, 2), "alike": alike}
    assert checked(Windowed, None, False, own=own).verdict == "passed"
    wrong = checked(Windowed, None, False, own=own | {"wrong": True})
    assert wrong.verdict != "passed"


class Fewer(nn.Module):
    """Keys and values come from a map with fewer pixels."""

    def __init__(self, dim, num_heads, moved=True):
        super().__init__()
        self.h, self.moved = num_heads, moved
        self.q, self.k, self.v, self.out = (nn.Linear(dim, dim) for _ in "qkvo")
        self.sr = nn.Sequential(nn.Conv2d(dim, dim, 2, 2), nn.BatchNorm2d(dim))

    def forward(self, x, H, W):
        b, _, c = x.shape
        grid = x.mT.reshape(b, c, H, W) if self.moved else x.reshape(b, c, H, W)
        y = self.sr(grid).flatten(2).mT
        q, k, v = (
            made.unflatten(-1, (self.h, -1)).transpose(1, 2)
            for made in (self.q(x), self.k(y), self.v(y))
        )
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


@pytest.mark.parametrize("moved", [True, False])
def test_keys_may_come_from_fewer_pixels_that_are_the_tokens(moved):
    report = attncheck.check(Fewer, causal=False, moved=moved)
    assert (report.verdict == "passed") == moved


class Added(nn.Module):
    """The caller adds the output's bias."""

    def __init__(self, dim, num_heads):
        super().__init__()
        self.h = num_heads
        self.q, self.k, self.v, self.out = (nn.Linear(dim, dim) for _ in "qkvo")

    def forward(self, x):
        q, k, v = (
            made.unflatten(-1, (self.h, -1)).transpose(1, 2)
            for made in (self.q(x), self.k(x), self.v(x))
        )
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return nn.functional.linear(y.transpose(1, 2).flatten(2), self.out.weight)

    def later(self):
        return self.out.bias


def test_a_bias_that_another_method_returns_is_no_mistake():
    report = attncheck.check(Added)
    found = {f.mistake: f.severity for f in report.findings}
    assert found.get("gradient_missing") == "warning"


class Nothing(nn.Module):
    """Its bias is NaN as long as nobody has filled it."""

    def __init__(self, dim, num_heads):
        super().__init__()
        self.h = num_heads
        self.qkv, self.out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim)
        self.register_buffer("bias", torch.full((3 * dim,), torch.nan))

    def forward(self, x):
        b, t, c = x.shape
        qkv = nn.functional.linear(x, self.qkv.weight, self.bias)
        qkv = qkv.reshape(b, t, 3, self.h, c // self.h)
        q, k, v = (one.transpose(1, 2) for one in qkv.unbind(2))
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class HidesAll(nn.Module):
    def __init__(self, d_model, dropout=0.0):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(d_model, d_model) for _ in "qkv")
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        scores = self.q(x) @ self.k(x).mT / x.shape[-1] ** 0.5
        seen = scores.new_zeros(x.shape[1], x.shape[1]).tril().bool()
        return self.drop(scores.masked_fill(~seen, -torch.inf).softmax(-1)) @ self.v(x)


def test_a_mask_that_hides_all_is_wrong_and_says_nothing_of_dropout():
    report = attncheck.check(HidesAll)
    errors = [one.mistake for one in report.findings if one.severity == "error"]
    assert (report.exit_status, errors) == (1, ["not_finite"])


def test_nan_is_told_and_names_no_step():
    report = attncheck.check(Nothing, causal=False)
    found = [one.mistake for one in report.findings]
    assert found[:1] == ["not_finite"]
    assert not {"heads_viewed", "keys_viewed"} & {*found}
