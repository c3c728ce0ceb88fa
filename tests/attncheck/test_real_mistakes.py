"""Mistakes as people make them, each beside the same class done right.

The designs are those of public reports, written in our own words.
"""

import pytest

import attncheck
from coding_attention.gallery.planted import HEADER, compiled

PLAIN = """
class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.h, self.d = heads, dim // heads
        self.q, self.k, self.v, self.out = (nn.Linear(dim, dim) for _ in "qkvo")

    def split(self, z):
        return z.view(*z.shape[:2], self.h, self.d).transpose(1, 2)

    def mix(self, s, v):
        y = s.softmax(-1) @ v
        return self.out(y.transpose(1, 2).flatten(2))

    def forward(self, x{more}):
        b, t, _ = x.shape
        q, k, v = self.split(self.q(x)), self.split(self.k({keys})), \
self.split(self.v({keys}))
        s = q @ k.mT / self.d**0.5
{body}
        return self.mix(s, v)
"""
FOLDED = """
class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.h, self.d = heads, dim // heads
        self.q, self.k, self.v, self.out = (nn.Linear(dim, dim) for _ in "qkvo")

    def fold(self, z):
        b, t, _ = z.shape
        z = z.view(b, t, self.h, self.d).permute(2, 0, 1, 3)
        return z.reshape(self.h * b, t, self.d)

    def forward(self, x, mask=None):
        b, t, _ = x.shape
        q, k, v = (self.fold(f(x)) for f in (self.q, self.k, self.v))
        s = q @ k.mT / self.d**0.5
        if mask is not None:
            s = s.masked_fill({mask} == 0, -1e10)
        y = (s.softmax(-1) @ v).view(self.h, b, t, self.d).permute(1, 2, 0, 3)
        return self.out(y.reshape(b, t, -1))
"""
NARROW = """
class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.h, self.d = heads, dim // heads
        self.q, self.k, self.v = (nn.Linear({width}, {width}) for _ in "qkv")
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, c = x.shape
        z = x{before}
        q, k, v = (f(z).reshape(b, t, self.h, self.d) for f in (self.q, self.k, self.v))
        s = torch.einsum("bqhd,bkhd->bhqk", q, k) / self.d**0.5
        y = torch.einsum("bhqk,bkhd->bqhd", s.softmax(-1), v)
        return self.out(y.reshape(b, t, c))
"""
KEPT = """
class Attention(nn.Module):
    def __init__(self, dim, heads, max_batch=8, max_len=32):
        super().__init__()
        self.h, self.d = heads, dim // heads
        self.q, self.k, self.v, self.out = (nn.Linear(dim, dim) for _ in "qkvo")
        size = max_batch, max_len, heads, self.d
        self.register_buffer("old_k", torch.zeros(size), persistent=False)
        self.register_buffer("old_v", torch.zeros(size), persistent=False)

    def forward(self, x, start_pos=0):
        b, t, _ = x.shape
        q, k, v = (f(x).view(b, t, self.h, self.d) for f in (self.q, self.k, self.v))
        with torch.no_grad():
            self.old_k[:b, start_pos : start_pos + t] = k
            self.old_v[:b, start_pos : start_pos + t] = v
        k = torch.cat([self.old_k[:b, :start_pos], k], 1).transpose(1, 2)
        v = torch.cat([self.old_v[:b, :start_pos], v], 1).transpose(1, 2)
        s = q.transpose(1, 2) @ k.mT / self.d**0.5
        i = torch.arange({start}, {start} + t, device=x.device)[:, None]
        if t > 1:
            hidden = torch.arange({count}, device=x.device) > i
            s = s.masked_fill(hidden, -torch.inf)
        return self.out((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, -1))
"""
GIVEN = """        if mask is not None:
            s = s.masked_fill({mask} == 0, {fill})"""
OWN = """        future = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        {line}"""


def plain(body, more="", keys="x"):
    return PLAIN.format(body=body, more=more, keys=keys)


CROSS = {"more": ", memory, mask=None", "keys": "memory"}
# What a mistake is called, the wrong class, the right one, and arguments of the check.
CASES = {
    "a mask that is taken for a square": (
        "mask_square",
        plain(GIVEN.format(mask="mask.reshape(b, 1, t, t)", fill="-1e9"), **CROSS),
        plain(GIVEN.format(mask="mask[:, None]", fill="-1e9"), **CROSS),
        {"causal": False},
    ),
    "a mask in another order than the heads": (
        "padding_batch",
        FOLDED.format(mask="mask.repeat_interleave(self.h, dim=0)"),
        FOLDED.format(mask="mask.repeat(self.h, 1, 1)"),
        {"causal": False},
    ),
    "one projection for all heads": (
        "projection_shared",
        NARROW.format(width="self.d", before=".view(b, t, self.h, self.d)"),
        NARROW.format(width="dim", before=""),
        {"causal": False},
    ),
    "a fill of minus e": (
        "mask_fill_finite",
        plain(GIVEN.format(mask="mask", fill="-2.718281828459045"), ", mask=None"),
        plain(GIVEN.format(mask="mask", fill="-1e9"), ", mask=None"),
        {},
    ),
    "a fill of almost nothing": (
        "mask_fill_zero",
        plain(GIVEN.format(mask="mask", fill="-1e-9"), ", mask=None"),
        plain(GIVEN.format(mask="mask", fill="-torch.inf"), ", mask=None"),
        {},
    ),
    "a mask for the whole batch that counts from the first key": (
        "cache_mask_offset",
        KEPT.format(start="0", count="t"),
        KEPT.format(start="start_pos", count="start_pos + t"),
        {},
    ),
    "causal only where a mask is given": (
        "mask_missing",
        plain(
            OWN.format(line="s = s if mask is None else "
                       "s.masked_fill(future | ~mask, -torch.inf)"),
            ", mask=None",
        ).replace("heads):", "heads, causal=True):"),
        plain(
            OWN.format(line="s = s.masked_fill(future if mask is None else "
                       "future | ~mask, -torch.inf)"),
            ", mask=None",
        ).replace("heads):", "heads, causal=True):"),
        {},
    ),
    "a scale by the width of the input": (
        "scale_by_d_out",
        plain("        s = s * (self.d / x.shape[-1]) ** 0.5"),
        plain(""),
        {"causal": False},
    ),
    "a mask that is never used": (
        "padding_leaks",
        plain("", ", padding_mask=None"),
        plain("        if padding_mask is not None:\n            s = s.masked_fill("
              "padding_mask[:, None, None, :], -torch.inf)", ", padding_mask=None"),
        {"causal": False},
    ),
    "a key_padding_mask that means the opposite": (
        "padding_inverted",
        plain("        if key_padding_mask is not None:\n            s = s.masked_fill("
              "~key_padding_mask[:, None, None, :], -torch.inf)",
              ", key_padding_mask=None"),
        plain("        if key_padding_mask is not None:\n            s = s.masked_fill("
              "key_padding_mask[:, None, None, :], -torch.inf)",
              ", key_padding_mask=None"),
        {"causal": False},
    ),
    "keys and values of the queries": (
        "cross_ignores_memory",
        plain("", ", memory"),
        plain("", ", memory", "memory"),
        {"causal": False},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_wrong_class_is_named_and_the_right_one_passes(name):
    mistake, wrong, right, arguments = CASES[name]
    report = attncheck.check(compiled(HEADER + wrong, "wrong.py"), **arguments)
    assert [f.mistake for f in report.findings][:1] == [mistake], report.text(True)
    assert report.exit_status == 1
    report = attncheck.check(compiled(HEADER + right, "right.py"), **arguments)
    errors = [f.mistake for f in report.findings if f.severity == "error"]
    assert (report.verdict, errors) == ("passed", []), report.text(True)
