"""Right classes of several designs pass undeclared; each wrong twin is named."""

import pytest

import attncheck
from attncheck.mistakes import compiled

HEADER = "import math\nimport torch\nfrom torch import nn\n\n\n"
CLASSES = {
    "prenormed": """\
class Attention(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.h = num_heads
        self.norm = nn.LayerNorm(dim)
        self.to_q, self.to_k = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.to_v, self.proj = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def split(self, y):
        return y.view(*y.shape[:2], self.h, -1).transpose(1, 2)

    def forward(self, x):
        b, t, c = x.shape
        y = self.norm(x)
        q, k, v = self.split(self.to_q(y)), self.split(self.to_k(y)), self.to_v(y)
        v = self.split(v)
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        scores = scores + torch.full((t, t), -torch.inf).triu(1).to(x)
        z = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c)
        return x + self.proj(z)
""",
    "by einsum": """\
class Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        d = d_model // num_heads
        self.w_q = nn.Parameter(torch.randn(num_heads, d_model, d) / 4)
        self.w_k = nn.Parameter(torch.randn(num_heads, d_model, d) / 4)
        self.w_v = nn.Parameter(torch.randn(num_heads, d_model, d) / 4)
        self.w_o = nn.Parameter(torch.randn(num_heads, d, d_model) / 4)

    def forward(self, x):
        q = torch.einsum("btd,hdk->bhtk", x, self.w_q)
        k = torch.einsum("btd,hdk->bhtk", x, self.w_k)
        v = torch.einsum("btd,hdk->bhtk", x, self.w_v)
        s = torch.einsum("bhtk,bhsk->bhts", q, k) / math.sqrt(q.shape[-1])
        t = x.shape[1]
        s = s.masked_fill(torch.ones(t, t).triu(1).bool().to(x.device), -torch.inf)
        w = torch.softmax(s, dim=-1)
        z = torch.einsum("bhts,bhsk->bhtk", w, v)
        return torch.einsum("bhtk,hkd->btd", z, self.w_o)
""",
    "a list of heads": """\
class Head(nn.Module):
    def __init__(self, width, size):
        super().__init__()
        self.query, self.key = nn.Linear(width, size), nn.Linear(width, size)
        self.value = nn.Linear(width, size)

    def forward(self, x):
        q, k, v, t = self.query(x), self.key(x), self.value(x), x.shape[1]
        scores = q @ k.mT * k.shape[-1] ** -0.5
        return scores.masked_fill(
            torch.ones(t, t).triu(1).bool().to(x.device), -torch.inf
        ).softmax(-1) @ v


class Attention(nn.Module):
    def __init__(self, width, num_heads):
        super().__init__()
        size = width // num_heads
        self.heads = nn.ModuleList([Head(width, size) for _ in range(num_heads)])
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        made = [head(x) for head in self.heads]
        return self.proj(torch.cat(made, dim=-1))
""",
    "capped": """\
class Attention(nn.Module):
    def __init__(self, dim, num_heads, logit_cap=5.0):
        super().__init__()
        self.h, self.d, self.cap = num_heads, dim // num_heads, logit_cap
        self.q_proj, self.k_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.v_proj, self.o_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.q_norm, self.k_norm = nn.LayerNorm(self.d), nn.LayerNorm(self.d)

    def turned(self, x):
        d, t = self.d, x.shape[2]
        steps = torch.arange(0, d, 2, device=x.device)
        i = torch.arange(t, device=x.device)
        angles = i[:, None] * 10000.0 ** (-steps / d)
        angles = torch.cat([angles, angles], dim=-1)
        one, two = x.chunk(2, dim=-1)
        y = x * angles.cos() + torch.cat([-two, one], dim=-1) * angles.sin()
        return y.to(x)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (
            f(x).view(b, t, self.h, self.d).transpose(1, 2)
            for f in (self.q_proj, self.k_proj, self.v_proj)
        )
        q, k = self.turned(self.q_norm(q)), self.turned(self.k_norm(k))
        s = q @ k.mT / self.d**0.5
        s = torch.tanh(s / self.cap) * self.cap
        s = s.masked_fill(torch.ones(t, t).triu(1).bool().to(x.device), -torch.inf)
        return self.o_proj((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, -1))
""",
    "a latent": """\
class Attention(nn.Module):
    def __init__(self, dim, num_heads, kv_rank=12):
        super().__init__()
        self.h, self.d = num_heads, dim // num_heads
        self.q_proj = nn.Linear(dim, dim)
        self.kv_down, self.kv_norm = nn.Linear(dim, kv_rank), nn.LayerNorm(kv_rank)
        self.k_up, self.v_up = nn.Linear(kv_rank, dim), nn.Linear(kv_rank, dim)
        self.o_proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, c = x.shape
        raw = self.kv_down(x)
        latent = self.kv_norm(raw)
        q = self.q_proj(x).view(b, t, self.h, self.d).transpose(1, 2)
        k = self.k_up(latent).view(b, t, self.h, self.d).transpose(1, 2)
        v = self.v_up(latent).view(b, t, self.h, self.d).transpose(1, 2)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).reshape(b, t, c))
""",
    "a latent, and a key in two parts": """\
class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)


def turned(x):
    t, d = x.shape[1], x.shape[-1]
    steps = torch.arange(0, d, 2, device=x.device) / d
    angles = torch.arange(t, device=x.device)[:, None, None] / 10000.0**steps
    cos, sin = angles.cos(), angles.sin()
    one, two = x[..., ::2], x[..., 1::2]
    both = one * cos - two * sin, one * sin + two * cos
    return torch.stack(both, -1).flatten(-2)


class Attention(nn.Module):
    def __init__(self, dim, num_heads, kv_rank=16, qk_nope_dim=8, qk_rope_dim=4):
        super().__init__()
        self.h, self.rank, self.nope, self.rope = (
            num_heads, kv_rank, qk_nope_dim, qk_rope_dim)
        self.wq = nn.Linear(dim, num_heads * (self.nope + self.rope), bias=False)
        self.wkv_a = nn.Linear(dim, kv_rank + self.rope, bias=False)
        self.kv_norm = RMSNorm(kv_rank)
        self.wkv_b = nn.Linear(kv_rank, num_heads * 2 * self.nope, bias=False)
        self.wo = nn.Linear(num_heads * self.nope, dim, bias=False)

    def forward(self, x):
        b, t, _ = x.shape
        still, moved = self.wq(x).view(b, t, self.h, -1).split(
            [self.nope, self.rope], -1)
        short, key = self.wkv_a(x).split([self.rank, self.rope], -1)
        both = self.wkv_b(self.kv_norm(short)).view(b, t, self.h, -1)
        own, v = both.chunk(2, -1)
        key = turned(key[:, :, None]).expand(-1, -1, self.h, -1)
        q = torch.cat([still, turned(moved)], -1)
        k = torch.cat([own, key], -1)
        q, k, v = (one.transpose(1, 2) for one in (q, k, v))
        y = nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=True, scale=(self.nope + self.rope) ** -0.5)
        return self.wo(y.transpose(1, 2).flatten(2))
""",
    "sinks": """\
class Attention(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.h = num_heads
        self.q_proj, self.k_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.v_proj, self.o_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.sinks = nn.Parameter(torch.randn(num_heads))

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (
            f(x).view(b, t, self.h, -1).transpose(1, 2)
            for f in (self.q_proj, self.k_proj, self.v_proj)
        )
        s = q @ k.mT * q.shape[-1] ** -0.5
        s = s.masked_fill(torch.ones(t, t).triu(1).bool().to(x.device), -torch.inf)
        sinks = self.sinks
        column = sinks.view(1, -1, 1, 1).expand(b, -1, t, 1)
        w = torch.cat([s, column], dim=-1).softmax(-1)[..., :-1]
        return self.o_proj((w @ v).transpose(1, 2).reshape(b, t, -1))
""",
    "a bias by distance": """\
class Attention(nn.Module):
    def __init__(self, dim, num_heads, max_len=16):
        super().__init__()
        self.h, self.max_len = num_heads, max_len
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.relative_bias = nn.Parameter(torch.randn(2 * max_len - 1, num_heads))

    def forward(self, x):
        b, t, c = x.shape
        qkv = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        i = torch.arange(t, device=x.device)
        rows = i - i[:, None] + self.max_len - 1
        s = q @ k.mT * q.shape[-1] ** -0.5
        s = s + self.relative_bias[rows].permute(2, 0, 1)
        s = s.masked_fill(torch.ones(t, t).triu(1).bool().to(x.device), -torch.inf)
        return self.proj((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))
""",
}
WRONG = [
    ("prenormed", "q @ k.mT", "k @ q.mT", "scores_transposed", "scores"),
    ("prenormed", "scores.softmax(-1)", "scores.half().softmax(-1).float()",
     "low_precision", "storage"),
    ("prenormed", "q @ k.mT", "(q.bfloat16() @ k.bfloat16().mT).float()",
     "low_precision", "storage"),
    ("prenormed", "x + self.proj(z)", "x + (x + self.proj(z))", "output_repeated",
     "output"),
    ("prenormed", "x + self.proj(z)", "x + self.proj(z) + self.proj(z)",
     "output_repeated", "output"),
    ("by einsum", '"bhtk,bhsk->bhts"', '"bhtk,bgsk->bhts"', "axis_summed_alone",
     "scores"),
    ("by einsum", '"bhts,bhsk->bhtk"', '"bhts,bgsk->bhtk"', "axis_summed_alone",
     "mix"),
    ("a list of heads", "torch.cat(made, dim=-1)",
     "torch.cat([sum(made)] * len(made), dim=-1)", "differs", "join"),
    ("a list of heads", "dim=-1))", "dim=-1)) + self.proj.bias",
     "output_bias_repeated", "output"),
    ("capped", " * self.cap", "", "softcap_incomplete", "scores"),
    ("capped", "s / self.cap", "s", "softcap_incomplete", "scores"),
    ("capped", "self.d**0.5", "self.h**0.5", "scale_by_heads", "scores"),
    ("capped", "-steps / d", "-2 * steps / d", "rope_frequencies", "positions"),
    ("capped", "[-two, one]", "[-one, two]", "rope_no_rotation", "positions"),
    ("capped", " + torch.cat([-two, one], dim=-1) * angles.sin()", "",
     "rope_no_rotation", "positions"),
    ("a latent", "self.v_up(latent)", "self.v_up(raw)", "prenorm_partly", "projection"),
    ("a latent", "is_causal=True", "is_causal=True, scale=raw.shape[-1] ** -0.5",
     "scale_other", "scores"),
    ("a latent, and a key in two parts", "(self.nope + self.rope) ** -0.5",
     "self.nope ** -0.5", "scale_other", "scores"),
    ("a latent, and a key in two parts", "turned(key[:, :, None])", "key[:, :, None]",
     "rope_on_one_side", "positions"),
    ("sinks", "sinks = self.sinks", "sinks = self.sinks / 2", "sink_altered",
     "weights"),
    ("sinks", "sinks = self.sinks", "sinks = self.sinks.flip(0)", "sink_altered",
     "weights"),
    ("sinks", "sinks = self.sinks", "sinks = self.sinks.mean().repeat(self.h)",
     "sink_altered", "weights"),
    ("a bias by distance", "q, k, v = qkv", "q, v, k = qkv", "projection_mixed_up",
     "projection"),
]  # fmt: skip


def built(name, *change):
    source = HEADER + CLASSES[name]
    assert not change or change[0] in source
    return compiled(source.replace(*change) if change else source, "twin.py")


def errors(report):
    return [one for one in report.findings if one.severity == "error"]


@pytest.mark.parametrize("name", CLASSES)
def test_a_right_class_passes_with_nothing_declared(name):
    report = attncheck.check(built(name), num_heads=4)
    assert (report.exit_status, errors(report)) == (0, [])


@pytest.mark.parametrize(("name", "old", "new", "mistake", "stage"), WRONG)
def test_its_wrong_twin_is_named(name, old, new, mistake, stage):
    first = errors(attncheck.check(built(name, old, new), num_heads=4))[0]
    assert (first.mistake, first.stage) == (mistake, stage)


def test_maps_up_from_a_normed_latent_are_told_where_they_are_swapped():
    source = HEADER + CLASSES["a latent"].replace("k = self.k_up", "k = self.v_up")
    source = source.replace("v = self.v_up", "v = self.k_up")
    report = attncheck.check(compiled(source, "twin.py"), num_heads=4)
    assert errors(report)[0].mistake == "latent_maps_swapped"


def test_a_cap_that_was_given_and_does_nothing_is_asked_about():
    wrong = built("capped", "torch.tanh(s / self.cap) * self.cap", "s")
    report = attncheck.check(wrong, num_heads=4)
    assert (report.exit_status, report.proposal.get("softcap")) == (3, 5.0)
    report = attncheck.check(wrong, num_heads=4, **report.proposal)
    assert errors(report)[0].mistake == "softcap_unused"


@pytest.mark.parametrize("order", ["v, k, q", "k, v, q", "v, q, k"])
def test_parts_of_a_joined_weight_in_another_order(order):
    source = CLASSES["a bias by distance"].replace("q, k, v =", f"{order} =")
    source = source.replace(" + self.relative_bias[rows].permute(2, 0, 1)", "")
    source = source.replace("self.relative_bias = ", "made = ")
    report = attncheck.check(compiled(HEADER + source, "twin.py"), num_heads=4)
    assert errors(report)[0].mistake == "projection_mixed_up"


CACHED = """\
class Attention(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.h = num_heads
        self.q_proj, self.k_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.v_proj, self.o_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x, past=None):
        b, t, c = x.shape
        q, new_k, new_v = (
            f(x).view(b, t, self.h, -1).transpose(1, 2)
            for f in (self.q_proj, self.k_proj, self.v_proj)
        )
        k, v = new_k, new_v
        if past is not None:
            k = torch.cat([past[0], k], dim=2)
            v = torch.cat([past[1], v], dim=2)
        n = k.shape[2]
        scores = q @ k.mT / q.shape[-1] ** 0.5
        seen = torch.ones(t, n, device=x.device).tril(n - t).bool()
        scores = scores.masked_fill(~seen, -torch.inf)
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c)
        return self.o_proj(y), (k, v)
"""
IN_FRONT = CACHED.replace("[past[0], k]", "[k, past[0]]").replace(
    "[past[1], v]", "[v, past[1]]"
)
NEW_ALONE = CACHED.replace("(k, v)", "(new_k, new_v)")


def test_a_cache_with_the_new_keys_in_front():
    assert attncheck.check(compiled(HEADER + CACHED, "twin.py"), num_heads=4).ok
    report = attncheck.check(compiled(HEADER + IN_FRONT, "twin.py"), num_heads=4)
    assert errors(report)[0].mistake == "cache_order"


def test_a_cache_that_forgets_unless_the_class_says_that_the_caller_joins():
    report = attncheck.check(compiled(HEADER + NEW_ALONE, "twin.py"), num_heads=4)
    assert errors(report)[0].mistake == "cache_forgets"
    told = NEW_ALONE.replace(
        "        b, t, c",
        '        """Returns only the new keys and values."""\n        b, t, c',
    )
    report = attncheck.check(compiled(HEADER + told, "twin.py"), num_heads=4)
    assert (report.exit_status, errors(report)) == (0, [])
    assert "cache_forgets" in {one.mistake for one in report.findings}


DEALT = ".view(b, t, -1, self.h).permute(0, 3, 1, 2)"


def test_heads_are_dealt_out_alike_or_not_at_all():
    three = CACHED.replace(".view(b, t, self.h, -1).transpose(1, 2)", DEALT)
    report = attncheck.check(compiled(HEADER + three, "twin.py"), num_heads=4)
    assert (report.exit_status, errors(report)) == (0, [])
    keys = CACHED.replace("self.k_proj, self.v_proj)\n", "self.v_proj, self.v_proj)\n")
    keys = keys.replace("k, v = new_k", f"k, v = self.k_proj(x){DEALT}")
    report = attncheck.check(compiled(HEADER + keys, "twin.py"), num_heads=4)
    assert errors(report)[0].mistake == "heads_interleaved"


LIBRARY = """\
class Attention(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(dim, num_heads)

    def forward(self, x):
        return self.attention(x, x, x, need_weights=False)[0]
"""


def test_a_batch_that_comes_first_by_the_words_of_the_class():
    given = {"num_heads": 4, "causal": False}
    report = attncheck.check(compiled(HEADER + LIBRARY, "twin.py"), **given)
    assert errors(report) == []  # it may want (t, b, d)
    for said in ('"""Mixes tokens (batch, tokens, width)."""', "b, t, d = x.shape"):
        place = "    def forward(self, x):\n"
        told = LIBRARY.replace(place, f"{place}        {said}\n")
        report = attncheck.check(compiled(HEADER + told, "twin.py"), **given)
        assert errors(report)[0].mistake == "batch_first"


PADDED = CACHED.replace(
    "past=None):", 'pad=None):\n        """pad is True for padding."""'
)
PADDED = PADDED.replace("past is not None", "False").replace(", (k, v)", "")
PADDED = PADDED.replace("tril(n - t)", "tril(n)").replace(
    "        y =", "        if pad is not None:\n            ACT\n        y ="
)


def test_a_padding_mask_that_is_added_though_true_means_padding():
    given = {"num_heads": 4, "causal": False}
    hides = "scores = scores.masked_fill(pad[:, None, None], -1e9)"
    right = HEADER + PADDED.replace("ACT", hides)
    assert errors(attncheck.check(compiled(right, "twin.py"), **given)) == []
    adds = "scores = scores + pad[:, None, None].to(scores)"
    wrong = HEADER + PADDED.replace("ACT", adds)
    report = attncheck.check(compiled(wrong, "twin.py"), **given)
    assert errors(report)[0].mistake == "padding_leaks"
    silent = wrong.replace("pad is True for padding.", "Mixes tokens.")
    assert errors(attncheck.check(compiled(silent, "twin.py"), **given)) == []


def test_a_mask_that_is_for_padding_by_its_words_keeps_the_causal_one():
    lines = [
        "        scores = scores.masked_fill(~seen, -torch.inf)",
        "        if pad is not None:",
        "            scores = scores.masked_fill(pad[:, None, None], -1e9)",
    ]
    source = PADDED.replace("tril(n)", "tril(n - t)").replace(
        "(self, x, pad", "(self, x, mask"
    )
    source = source.replace("pad is True", "mask is True").replace(
        "pad is not", "mask is not"
    )
    source = source.replace(
        "ACT", "scores = scores.masked_fill(mask[:, None, None], -1e9)"
    )
    report = attncheck.check(compiled(HEADER + source, "twin.py"), num_heads=4)
    assert (report.exit_status, errors(report)) == (0, [])
    wrong = source.replace(lines[0], "").replace(
        "        y =", f"        else:\n    {lines[0]}\n        y ="
    )
    report = attncheck.check(compiled(HEADER + wrong, "twin.py"), num_heads=4)
    assert errors(report)[0].mistake == "padding_future"
    other = wrong.replace("mask is True for padding", "mask is True for hidden ones")
    report = attncheck.check(compiled(HEADER + other, "twin.py"), num_heads=4)
    assert errors(report) == []


def test_an_own_value_is_no_attention_over_heads():
    source = CACHED.replace("(k, v)", "()").replace("past is not None", "False")
    source = source.replace("(scores.softmax(-1) @ v)", "MIX").replace(", ()", "")
    mix = 'torch.einsum("bhts,bsd->bhtd", scores.softmax(-1), v[:, 0])'
    right = HEADER + source.replace("MIX", mix).replace(
        "self.v_proj, self.o_proj = nn.Linear(dim, dim)",
        "self.v_proj, self.o_proj = nn.Linear(dim, dim // num_heads)",
    ).replace(
        "self.q_proj, self.k_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)",
        "self.q_proj = nn.Linear(dim, dim)\n"
        "        self.k_proj = nn.Linear(dim, dim // num_heads)",
    ).replace("(b, t, self.h, -1)", "(b, t, -1, x.shape[-1] // self.h)")
    assert attncheck.check(compiled(right, "twin.py"), num_heads=4).exit_status == 0
    wrong = right.replace("bhts,bsd", "bhts,btd")
    report = attncheck.check(compiled(wrong, "twin.py"), num_heads=4)
    assert errors(report)[0].mistake == "tokens_not_mixed"


def test_a_memory_that_is_masked_is_told_before_its_padding():
    source = CACHED.replace("past=None", "memory, pad=None")
    source = source.replace("past is not None", "False").replace(", (k, v)", "")
    source = source.replace(
        "q, new_k, new_v = (\n            f(x).view(b, t, self.h, -1).transpose(1, 2)\n"
        "            for f in (self.q_proj, self.k_proj, self.v_proj)\n        )",
        "q, new_k, new_v = (\n            f(y).view(b, y.shape[1], self.h, -1)"
        ".transpose(1, 2)\n            for f, y in ((self.q_proj, x), (self.k_proj, "
        "memory), (self.v_proj, memory))\n        )",
    )
    source = source.replace(
        "        y =", "        if pad is not None:\n            scores = "
        "scores.masked_fill(pad[:, None, None], -1e9)\n        y ="
    )  # fmt: skip
    given = {"num_heads": 4, "memory": 9}
    right = source.replace("tril(n - t)", "tril(n)")
    assert errors(attncheck.check(compiled(HEADER + right, "twin.py"), **given)) == []
    wrong = source.replace("tril(n - t)", "tril()")
    report = attncheck.check(compiled(HEADER + wrong, "twin.py"), **given)
    assert errors(report)[0].mistake == "cross_masked"


ROOM = """\
class Attention(nn.Module):
    def __init__(self, dim, num_heads, max_batch=1, max_len=32):
        super().__init__()
        self.h = num_heads
        self.qkv, self.o_proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        kept = torch.zeros(max_batch, max_len, dim)
        self.register_buffer("kept_k", kept, persistent=False)
        self.register_buffer("kept_v", kept.clone(), persistent=False)

    def forward(self, x, start_pos=0, use_cache=False):
        b, t, c = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        if use_cache:
            end = start_pos + t
            self.kept_k[:b, start_pos:end] = k
            self.kept_v[:b, start_pos:end] = v
            k, v = self.kept_k[:b, :end], self.kept_v[:b, :end]
        n = k.shape[1]
        q, k, v = (y.unflatten(-1, (self.h, -1)).transpose(1, 2) for y in (q, k, v))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        seen = torch.ones(t, n, device=x.device).tril(n - t).bool()
        w = scores.masked_fill(~seen, -torch.inf).softmax(-1)
        return self.o_proj((w @ v).transpose(1, 2).reshape(b, t, c))
"""


def test_a_cache_with_room_for_one_sequence_is_tried_with_one():
    report = attncheck.check(compiled(HEADER + ROOM, "twin.py"), num_heads=4)
    assert (report.exit_status, errors(report)) == (0, [])
    wrong = ROOM.replace("self.kept_v[:b, start_pos:end]", "self.kept_v[:b, :t]")
    report = attncheck.check(compiled(HEADER + wrong, "twin.py"), num_heads=4)
    assert errors(report)[0].mistake == "cache_differs"


def test_a_number_that_is_no_place_stays_as_it_is_where_a_cache_goes_on():
    text = ROOM.replace("x, start_pos=0,", "x, layer_idx, start_pos=0,")
    text = text.replace("b, t, c =", "assert layer_idx == 0\n        b, t, c =")
    report = attncheck.check(compiled(HEADER + text, "twin.py"), num_heads=4)
    assert (report.exit_status, errors(report)) == (0, [])
    (cached,) = (r for r in report.results if r.test == "the cache against the whole")
    assert cached.outcome == "passed", str(report)


@pytest.mark.parametrize("name", ["past_length", "cache_len", "prev_seq_len"])
def test_the_number_of_tokens_in_the_cache_is_told_by_whatever_name(name):
    text = ROOM.replace("start_pos", name)
    report = attncheck.check(compiled(HEADER + text, "twin.py"), num_heads=4)
    assert (report.exit_status, errors(report)) == (0, [])
    (cached,) = (r for r in report.results if r.test == "the cache against the whole")
    assert cached.outcome == "passed", str(report)


def test_what_is_subtracted_from_the_scores_is_the_largest_of_a_row():
    source = CLASSES["by einsum"].replace(
        "w = torch.softmax(s, dim=-1)",
        "e = (s - s.amax(dim=-1, keepdim=True)).exp()\n"
        "        w = e / e.sum(dim=-1, keepdim=True).clamp(min=1e-16)",
    )
    report = attncheck.check(compiled(HEADER + source, "twin.py"), num_heads=4)
    assert (report.exit_status, errors(report)) == (0, [])
    wrong = source.replace("s.amax(dim=-1, keepdim=True)", "s.max()")
    report = attncheck.check(compiled(HEADER + wrong, "twin.py"), num_heads=4)
    found = [(one.mistake, one.test) for one in errors(report)]
    assert found[0] == ("samples_mixed", "large scores")


def test_keys_alone_are_tiled_where_they_are_normed():
    shared = (
        CLASSES["capped"]
        .replace(
            "self.q_proj, self.k_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)",
            "self.q_proj, self.k_proj = nn.Linear(dim, dim), nn.Linear(dim, dim // 2)",
        )
        .replace(
            "self.v_proj, self.o_proj = nn.Linear(dim, dim),",
            "self.v_proj, self.o_proj = nn.Linear(dim, dim // 2),",
        )
    )
    shared = shared.replace("(b, t, self.h, self.d)", "(b, t, -1, self.d)")
    place = "        s = q @ k.mT"
    right = shared.replace(
        place, "        k, v = (y.repeat_interleave(2, 1) for y in (k, v))\n" + place
    )
    report = attncheck.check(compiled(HEADER + right, "twin.py"), num_heads=4)
    assert (report.exit_status, errors(report)) == (0, [])
    wrong = shared.replace(
        place,
        "        k, v = k.repeat(1, 2, 1, 1), v.repeat_interleave(2, 1)\n" + place,
    )
    report = attncheck.check(compiled(HEADER + wrong, "twin.py"), num_heads=4)
    assert errors(report)[0].mistake == "groups_apart"


def test_dropout_that_runs_for_nothing_fails_and_one_that_is_idle_is_a_warning():
    source = CLASSES["prenormed"].replace(
        "dim, num_heads):", "dim, num_heads, dropout=0.0):"
    )
    source = source.replace(
        "self.h = num_heads",
        "self.h = num_heads\n        self.drop = nn.Dropout(dropout)",
    )
    for more, severity in (("", "warning"), ("self.drop(scores.softmax(-1))", "error")):
        place = "        z = (scores"
        text = HEADER + source.replace(place, f"        {more}\n{place}")
        report = attncheck.check(compiled(text, "twin.py"), num_heads=4)
        found = {one.mistake: one.severity for one in report.findings}
        assert found.get("dropout_unused") == severity


def test_a_declared_bias_is_looked_at_itself():
    source = (
        CLASSES["a bias by distance"]
        .replace(
            "    def forward(self, x):",
            "    def bias(self, t):\n"
            "        i = torch.arange(t)\n"
            "        rows = i - i[:, None] + self.max_len - 1\n"
            "        return self.relative_bias[rows].permute(2, 0, 1)\n\n"
            "    def forward(self, x):",
        )
        .replace("s + self.relative_bias[rows].permute(2, 0, 1)", "s + self.bias(t)")
    )
    given = {"num_heads": 4, "bias": lambda module, t: module.bias(t)}
    assert attncheck.check(compiled(HEADER + source, "twin.py"), **given).ok
    wrong = source.replace(".permute(2, 0, 1)\n\n", ".view(self.h, t, t)\n\n")
    first = errors(attncheck.check(compiled(HEADER + wrong, "twin.py"), **given))[0]
    assert (first.mistake, first.stage) == ("bias_misplaced", "positions")


def test_double_powers_are_no_other_base_where_positions_were_declared():
    wrong = built("capped", "-steps / d", "-2 * steps / d")
    told = {"rope": "halves", "qk_norm": "layer", "softcap": 5.0}
    report = attncheck.check(wrong, num_heads=4, d_in=32, d_out=32, **told)
    assert errors(report)[0].mistake == "rope_frequencies"


SLOPES = """\
class Attention(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.h = num_heads
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        two = 2 ** int(math.log2(num_heads))
        slopes = [2 ** (-8 * (i + 1) / two) for i in range(two)]
        more = [2 ** (-4 * (i + 1) / two) for i in range(2 * two)]
        slopes += more[0::2][: num_heads - two]
        self.register_buffer("slopes", torch.tensor(slopes))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        i = torch.arange(t, device=x.device)
        s = q @ k.mT / math.sqrt(d // self.h)
        s = s + self.slopes[:, None, None] * (i - i[:, None])
        s = s.masked_fill(i > i[:, None], -torch.inf)
        return self.proj((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))
"""


@pytest.mark.parametrize("options", [{}, {"alibi": True}])
def test_slopes_are_looked_at_with_six_heads_too(options):
    right = compiled(HEADER + SLOPES, "twin.py")
    assert errors(attncheck.check(right, num_heads=4, **options)) == []
    wrong = compiled(HEADER + SLOPES.replace("0::2", "1::2"), "twin.py")
    found = errors(attncheck.check(wrong, num_heads=4, **options))
    assert [one.mistake for one in found] == ["alibi_slopes"]


WINDOWED = """\
class Attention(nn.Module):
    def __init__(self, dim, num_heads, window=9):
        super().__init__()
        self.h, self.window = num_heads, window
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        i = torch.arange(t, device=x.device)
        far = i[:, None] - i
        s = q @ k.mT / math.sqrt(d // self.h)
        s = s.masked_fill((far < 0) | (far >= self.window), -torch.inf)
        return self.proj((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))
"""


def test_a_window_wider_than_the_usual_tokens_is_looked_at_with_more():
    right = compiled(HEADER + WINDOWED, "twin.py")
    assert attncheck.check(right, num_heads=4).exit_status == 0
    wrong = compiled(HEADER + WINDOWED.replace(">= self", "> self"), "twin.py")
    report = attncheck.check(wrong, num_heads=4)
    assert (report.exit_status, report.needed) != (0, "")
    found = errors(attncheck.check(wrong, num_heads=4, window=9))
    assert [one.mistake for one in found] == ["window_size"]


def test_a_norm_before_the_sum_is_warned_of_where_nothing_was_declared():
    source = HEADER + CLASSES["prenormed"].replace("y = self.norm(x)", "y = x")
    after = source.replace("x + self.proj(z)", "self.norm(x + self.proj(z))")
    before = source.replace("x + self.proj(z)", "x + self.norm(self.proj(z))")
    for source, expected in ((after, []), (before, ["residual_after_norm"])):
        report = attncheck.check(compiled(source, "twin.py"), num_heads=4)
        assert report.exit_status == 0
        assert [one.mistake for one in report.findings] == expected


PICTURE = """\
class Attention(nn.Module):
    def __init__(self, channels, num_heads):
        super().__init__()
        self.h = num_heads
        self.to_q, self.to_k, self.to_v, self.out = (
            nn.Conv2d(channels, channels, 1) for _ in range(4))

    def forward(self, x):
        b, c, rows, columns = x.shape
        q, k, v = (f(x).reshape(b, self.h, -1, rows * columns)
                   for f in (self.to_q, self.to_k, self.to_v))
        s = torch.einsum("bhdi,bhdj->bhij", q, k) * (c // self.h) ** -0.5
        y = torch.einsum("bhij,bhdj->bhdi", s.softmax(-1), v)
        return x + self.out(y.reshape(b, c, rows, columns))
"""


def test_the_heads_of_a_picture_are_joined_as_its_channels():
    def call(module, x):
        return module(x.mT.unsqueeze(-1)).squeeze(-1).mT

    for change, expected in ((("", ""), []), (("->bhdi", "->bhid"), ["join_viewed"])):
        source = HEADER + PICTURE.replace(*change)
        report = attncheck.check(
            compiled(source, "twin.py"), num_heads=4, causal=False, call=call
        )
        assert [one.mistake for one in errors(report)] == expected


def test_sinks_as_they_were_learned_are_not_what_differs():
    other = built("sinks", "(w @ v).t", "((w @ v) * 1.1).t")
    report = attncheck.check(other, num_heads=4, sink=True)
    assert report.exit_status == 1
    assert "sink_altered" not in [one.mistake for one in report.findings]
