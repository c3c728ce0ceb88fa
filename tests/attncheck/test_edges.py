"""Wrong only at an edge: behind a window, in another row, in training, in a later call.

Each beside a right class that looks like it.
"""

import pytest
import torch

import attncheck
from attncheck import turning
from attncheck.loading import load
from attncheck.mistakes import HEADER
from tests.attncheck.plain import PLAIN, made

CAUSAL = PLAIN.replace(
    "        s = q", "        i = torch.arange(t, device=x.device)\n        s = q"
).replace(
    "        return self.proj((s.softmax(-1)",
    "        w = s.masked_fill(i > i[:, None], -torch.inf).softmax(-1)\n"
    "        return self.proj((w",
)  # fmt: skip


def outcome(cls, preset="check", **options):
    report = getattr(attncheck, preset)(cls, **options)
    found = [one.mistake for one in report.findings if one.severity == "error"]
    return report.exit_status, found[:1]


EINSUM = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.w_q, self.w_k, self.w_v = (
            nn.Parameter(torch.randn(n_heads, d, d // n_heads) / d**0.5)
            for _ in range(3))
        self.w_o = nn.Parameter(torch.randn(n_heads, d // n_heads, d) / d**0.5)

    def forward(self, x):
        q, k, v = (torch.einsum("btd,hdk->bhtk", x, w)
                   for w in (self.w_q, self.w_k, self.w_v))
        s = torch.einsum("bhik,bhjk->bhij", q, k) / q.shape[-1] ** 0.5
        y = torch.einsum("bhij,bhjk->bhik", s.softmax(-1), v)
        return torch.einsum("bhik,hkd->bid", y, self.w_o)
"""


def test_a_value_that_each_token_keeps_is_no_attention_over_heads():
    assert outcome(made(EINSUM), causal=False) == (0, [])
    wrong = made(EINSUM, ("bhij,bhjk->", "bhij,bhik->"))
    assert outcome(wrong, causal=False) == (1, ["tokens_not_mixed"])


CROSS = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads, is_causal=True):
        super().__init__()
        self.h, self.is_causal = n_heads, is_causal
        self.q, self.kv, self.proj = nn.Linear(d, d), nn.Linear(d, 2 * d), \\
            nn.Linear(d, d)

    def forward(self, x, memory=None):
        b, t, d = x.shape
        own = memory is None
        y = x if own else memory
        q = self.q(x).unflatten(-1, (self.h, -1)).transpose(1, 2)
        k, v = self.kv(y).view(b, -1, 2, self.h, q.shape[-1]).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal and own)
        return self.proj(y.transpose(1, 2).reshape(b, t, d))
"""


def test_a_memory_is_seen_whole_by_a_layer_that_masks_itself():
    assert outcome(made(CROSS), "check_cross") == (0, [])
    wrong = made(CROSS, ("self.is_causal and own", "self.is_causal"))
    assert outcome(wrong, "check_cross") == (1, ["cross_masked"])
    # One that needs a memory, or of which the mask was spoken, is built as was said.
    needs = made(CROSS, ("memory=None", "memory"), ("self.is_causal and own", "own"))
    assert outcome(needs, "check_cross") == (0, [])
    assert outcome(wrong, "check_cross", is_causal=False) == (0, [])


PATHS = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads, attn_drop=0.0, drop_path=0.0):
        super().__init__()
        self.h, self.path = n_heads, drop_path
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.drop, self.norm = nn.Dropout(attn_drop), nn.LayerNorm(d)

    def kept(self, x):
        if not self.training or self.path == 0:
            return x
        return x * x.new_empty(len(x), 1, 1).bernoulli_(1 - self.path) / (1 - self.path)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, self.h, -1).permute(
            2, 0, 3, 1, 4)
        w = self.drop((q @ k.mT / q.shape[-1] ** 0.5).softmax(-1))
        y = self.proj((w @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.kept(y)
"""


@pytest.mark.parametrize("declared", [{}, {"prenorm": "layer", "residual": True}])
@pytest.mark.parametrize("path", [{}, {"drop_path": 0.5}])
def test_whole_sequences_may_be_dropped_but_not_what_they_are_added_to(declared, path):
    options = declared | path | {"causal": False}
    assert outcome(made(PATHS), **options) == (0, [])
    wrong = made(PATHS, ("x + self.kept(y)", "self.kept(x + y)"))
    assert outcome(wrong, **options) == (1, ["dropout_elsewhere"])


def test_a_norm_behind_it_does_not_hide_that_the_sum_is_dropped():
    post = PATHS.replace("x + self.kept(y)", "self.norm(x + self.drop(y))").replace(
        "self.qkv(self.norm(x))", "self.qkv(x)"
    )
    options = {"causal": False, "postnorm": "layer", "residual": True}
    assert outcome(made(post), **options) == (0, [])
    wrong = made(post, ("self.norm(x + self.drop(y))", "self.norm(self.drop(x + y))"))
    assert outcome(wrong, **options) == (1, ["dropout_elsewhere"])
    late = post.replace("self.norm(x + self.drop(y))", "x + self.norm(self.drop(y))")
    assert outcome(made(late), **options | {"residual": "late"}) == (0, [])


def test_the_input_may_be_declared_to_be_added_behind_the_norm_of_the_output():
    early = PATHS.replace("x + self.kept(y)", "self.norm(x + y)").replace(
        "self.qkv(self.norm(x))", "self.qkv(x)"
    )
    late = early.replace("self.norm(x + y)", "x + self.norm(y)")
    options = {"causal": False, "postnorm": "layer"}
    assert outcome(made(early), **options, residual=True) == (0, [])
    assert outcome(made(late), **options, residual="late") == (0, [])
    assert outcome(made(late), **options, residual=True)[1] == ["residual_after_norm"]
    assert outcome(made(early), **options, residual="late")[1] == ["sum_normed"]
    report = attncheck.check(made(late), residual="behind", causal=False)
    assert "residual must be True or \"late\", but got 'behind'" in report.problem
    report = attncheck.check(made(late), residual="late", causal=False)
    assert 'residual="late" needs postnorm=' in report.problem


TABLE = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h, self.far = n_heads, None
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.slope = nn.Parameter(torch.tensor(0.3))

    def forward(self, x):
        b, t, d = x.shape
        if self.far is None or len(self.far) < 2 * t - 1:
            self.far = torch.arange(t - 1, -t, -1, device=x.device).abs()
        far = self.far[len(self.far) // 2 - t + 1 :][: 2 * t - 1]
        bias = torch.stack([far[t - 1 - i : 2 * t - 1 - i] for i in range(t)])
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        s = q @ k.mT / q.shape[-1] ** 0.5 - self.slope * bias
        return self.proj((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))
"""


def test_a_table_that_is_kept_serves_fewer_tokens_as_well():
    def bias(module, t):
        i = torch.arange(t)
        return -module.slope * (i[:, None] - i).abs()

    options = {"causal": False, "bias": bias}
    assert outcome(made(TABLE), **options) == (0, [])
    wrong = made(TABLE, ("self.far[len(self.far) // 2 - t + 1 :]", "self.far"))
    assert outcome(wrong, **options) == (1, ["keeps_state"])


STALE = TABLE.replace(
    "- self.slope * bias", "- self.kept(bias)"
).replace("    def forward", """\
    def kept(self, bias):
        if self.training or getattr(self, "made", bias[:0]).shape != bias.shape:
            self.made = self.slope * bias
        return self.made

    def forward""")  # fmt: skip


def test_what_was_made_of_weights_goes_with_them():
    right = STALE.replace("if self.training or", "if True or")

    def bias(module, t):
        i = torch.arange(t)
        return -module.slope * (i[:, None] - i).abs()

    options = {"causal": False, "bias": bias}
    assert outcome(made(right), **options) == (0, [])
    assert outcome(made(STALE), **options) == (1, ["keeps_state"])


PACKED = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h = n_heads
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x, document_ids=None):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        seen = torch.ones(t, t, dtype=torch.bool, device=x.device).tril()
        if document_ids is not None:
            own = document_ids[:]
            seen = (seen & (own[:, :, None] == own[:, None]))[:, None]
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self.proj(y.transpose(1, 2).reshape(b, t, d))
"""


def test_each_row_has_its_own_documents_though_none_were_declared():
    assert outcome(made(PACKED)) == (0, [])
    wrong = made(PACKED, ("document_ids[:]", "document_ids[:1]"))
    assert outcome(wrong) == (1, ["samples_mixed"])
    # A mask that is kept for each shape is another one where documents meet elsewhere.
    kept = made(
        PACKED, ("self.h = n_heads", "self.h, self.kept = n_heads, {}"),
        ("own = document_ids[:]", "own = self.kept.setdefault((b, t), document_ids)"),
    )  # fmt: skip
    assert outcome(kept) == (1, ["keeps_state"])


LORA = CAUSAL.replace("n_heads):", "n_heads, lora_dropout=0.0):").replace(
    "b, t, d = x.shape\n", "b, t, d = x.shape\n        z = self.drop(x)\n"
).replace("self.h = n_heads\n", """self.h = n_heads
        self.drop = nn.Dropout(lora_dropout)
        self.down, self.up = nn.Linear(d, 2), nn.Linear(2, d)
        nn.init.zeros_(self.up.weight), nn.init.zeros_(self.up.bias)
""").replace("self.proj((w", "self.up(self.down(z)) + self.proj((w")  # fmt: skip


def test_an_input_is_changed_in_training_alone():
    changes = ("nn.Dropout(lora_dropout)", "nn.Dropout(lora_dropout, inplace=True)")
    assert outcome(made(LORA))[1] != ["changes_input"]
    assert outcome(made(LORA, changes))[1] == ["changes_input"]


BUCKETS = (
    CAUSAL.replace(
        "self.h = n_heads\n",
        "self.h = n_heads\n        self.relative_bias = nn.Embedding(16, n_heads)\n"
        "        nn.init.normal_(self.relative_bias.weight, std=1e-3)\n",
    )
    .replace(
        "** 0.5\n",
        "** 0.5 + self.relative_bias((i[:, None] - i).clamp(0, 15)).permute(2, 0, 1)\n",
    )
    .replace("/ q.shape[-1] ** 0.5 ", "")
)


def test_a_table_of_distances_of_which_one_row_acts():
    bias = "lambda module, t: module.relative_bias((torch.arange(t)[:, None] - \
torch.arange(t)).clamp(0, 15)).permute(2, 0, 1)"
    assert outcome(made(BUCKETS), scale="none", bias=eval(bias)) == (0, [])
    wrong = made(BUCKETS, ("(i[:, None] - i)", "(i - i[:, None])"))
    assert outcome(wrong, scale="none") == (1, ["distances_lost"])


STREAM = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads, span=6):
        super().__init__()
        self.h, self.span = n_heads, span
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def turned(self, x, places):
        half = x.shape[-1] // 2
        f = 10000.0 ** (-torch.arange(half, device=x.device) / half)
        angles = places[:, None] * f
        one, two = x.chunk(2, dim=-1)
        cos, sin = angles.cos().to(x), angles.sin().to(x)
        return torch.cat([one * cos - two * sin, two * cos + one * sin], dim=-1)

    def forward(self, x, cache=None):
        b, t, d = x.shape
        start = 0 if cache is None else cache[2]
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        i = torch.arange(start, start + t, device=x.device)
        q, k = self.turned(q, i), self.turned(k, i)
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        j = torch.arange(start + t - k.shape[2], start + t, device=x.device)
        far = i[:, None] - j
        y = F.scaled_dot_product_attention(
            q, k, v, attn_mask=(far >= 0) & (far < self.span))
        cut = max(k.shape[2] - self.span + 1, 0)
        y = self.proj(y.transpose(1, 2).reshape(b, t, d))
        return y, (k[:, :, cut:], v[:, :, cut:], start + t)
"""


def test_a_cache_is_used_for_longer_than_its_window():
    def call(module, chunk, cache):
        return module(chunk, cache)

    options = {"rope": "halves", "window": 6, "call": call}
    assert outcome(made(STREAM), "check_cache", **options) == (0, [])
    wrong = made(STREAM, ("else cache[2]", "else cache[0].shape[2]"))
    assert outcome(wrong, "check_cache", **options) == (1, ["cache_positions"])


TABLES = CAUSAL.replace("forward(self, x)", "forward(self, x, cos, sin)").replace(
    "        i = torch", """\
        cos, sin = cos[:t], sin[:t]
        q, k = (y * cos + torch.stack([-y[..., 1::2], y[..., ::2]], -1).flatten(-2)
                * sin for y in (q, k))
        i = torch"""
)  # fmt: skip


def test_a_table_that_is_given_repeats_each_angle_for_neighbors():
    report = attncheck.check(made(TABLES))
    assert report.exit_status == 0
    # What bfloat16 takes from the table's angles isn't the class's doing.
    assert report.findings == []
    told = "\n".join(report.notes)
    assert "rotary positions (pairs of neighbors" in told
    wrong = made(
        TABLES, ("[-y[..., 1::2], y[..., ::2]]", "[y[..., 1::2], y[..., ::2]]")
    )
    assert outcome(wrong)[0] == 1


def test_a_decoder_by_its_setting_hides_the_future():
    cls = made(
        CAUSAL, ("n_heads):", "n_heads, *, is_decoder):"),
        ("self.h =", "self.decodes, self.h = is_decoder,"),
        ("i > i[:, None]", "(i > i[:, None]) & self.decodes"),
    )  # fmt: skip
    assert outcome(cls) == (0, [])
    assert outcome(cls, causal=False) == (0, [])
    wrong = made(
        CAUSAL, ("n_heads):", "n_heads, *, is_decoder):"),
        ("i > i[:, None]", "(i > i[:, None]) & False"),
    )  # fmt: skip
    assert outcome(wrong) == (1, ["mask_missing"])


def test_a_gate_is_no_weight_of_a_row():
    gated = [("self.proj((w @ v)", "self.proj(x.sigmoid() * (w @ v)")]
    found = outcome(made(CAUSAL, *gated), qk_norm="rms")
    assert found == (1, ["differs"])
    columns = made(CAUSAL, (".softmax(-1)", ".softmax(-2).nan_to_num()"))
    assert outcome(columns, qk_norm="rms")[1] != ["differs"]


def test_queries_at_other_places_may_weigh_a_memory_otherwise():
    turned = CROSS.replace("memory=None", "memory").replace(
        "        y = F.", """\
        i = torch.arange(max(t, y.shape[1]), device=x.device)[:, None]
        f = 10000.0 ** (-torch.arange(0, q.shape[-1], 2, device=x.device) / q.shape[-1])
        cos, sin = (i * f).cos().to(x), (i * f).sin().to(x)
        q, k = (torch.cat([
            one * cos[: one.shape[2]] - two * sin[: one.shape[2]],
            two * cos[: one.shape[2]] + one * sin[: one.shape[2]]], -1)
            for one, two in (z.chunk(2, -1) for z in (q, k)))
        y = F."""
    )  # fmt: skip
    assert outcome(made(turned), "check_cross", rope="halves") == (0, [])


PAIRS = CAUSAL.replace("forward(self, x)", "forward(self, x, z)").replace(
    "self.h = n_heads\n",
    "self.h = n_heads\n        self.pair = nn.Sequential("
    "nn.LayerNorm(3), nn.Linear(3, n_heads, bias=False))\n",
).replace("** 0.5\n", "** 0.5 + self.pair(z).permute(0, 3, 1, 2)\n")  # fmt: skip


def test_what_a_call_gives_no_numbers_cannot_learn_and_that_is_no_mistake():
    def zeros(module, x):
        return module(x, x.new_zeros(*x.shape[:2], x.shape[1], 3))

    assert outcome(made(PAIRS), call=zeros)[1] != ["init_dead"]
    dead = LORA.replace(
        "nn.init.zeros_(self.up.bias)",
        "nn.init.zeros_(self.up.bias), nn.init.zeros_(self.down.weight), "
        "nn.init.zeros_(self.down.bias)",
    )
    report = attncheck.check(made(dead))
    assert "init_dead" in [one.mistake for one in report.findings]


ROTARY = CAUSAL.replace(
    "        i = torch", """\
        f = 10000.0 ** (-torch.arange(0, q.shape[-1], 2, device=x.device) / q.shape[-1])
        angles = torch.arange(t, device=x.device)[:, None] * f
        cos, sin = angles.cos(), angles.sin()
        q, k = (torch.cat([one * cos - two * sin, two * cos + one * sin], -1).to(x)
                for one, two in (y.chunk(2, -1) for y in (q, k)))
        i = torch"""
)  # fmt: skip


@pytest.mark.parametrize("declared", [{}, {"rope": "halves"}])
def test_a_table_that_every_dtype_rounds_alike_is_rounded(declared):
    assert outcome(made(ROTARY), **declared) == (0, [])
    rounded = "angles.cos().bfloat16(), angles.sin().bfloat16()"
    wrong = made(ROTARY, ("angles.cos(), angles.sin()", rounded))
    assert outcome(wrong, **declared) == (1, ["low_precision"])


ONLINE = CROSS.replace("is_causal=True", "kv_chunk=64").replace(
    "is_causal = n_heads, is_causal", "chunk = n_heads, kv_chunk"
).replace("memory=None", "memory").replace(
    "        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal and "
    "own)\n",
    """\
        most = q.new_full((*q.shape[:-1], 1), -torch.inf)
        total, y = torch.zeros_like(most), torch.zeros_like(q)
        for start in range(0, k.shape[2], self.chunk):
            part = slice(start, start + self.chunk)
            s = q @ k[:, :, part].mT / q.shape[-1] ** 0.5
            new = torch.maximum(most, s.amax(-1, keepdim=True))
            less, p = (most - new).exp(), (s - new).exp()
            total = total * less + p.sum(-1, keepdim=True)
            y, most = y * less + p @ v[:, :, part], new
        y = y / total
""",
)  # fmt: skip


def test_chunks_of_a_memory_are_tried_small():
    options = {"causal": False}
    assert outcome(made(ONLINE), **options) == (0, [])
    wrong = made(ONLINE, ("total * less", "total"))
    assert outcome(wrong, **options) == (1, ["differs"])


SLICED = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h, self.plain, self.turned = n_heads, 4, 2
        self.q_down, self.kv_down = nn.Linear(d, 12), nn.Linear(d, 10)
        self.q_up, self.k_up = nn.Linear(12, 4 * n_heads), nn.Linear(10, 4 * n_heads)
        self.q_rope = nn.Linear(12, 2 * n_heads)
        self.k_rope = nn.Linear(10, 2 * n_heads)
        self.v_up, self.proj = nn.Linear(10, 6 * n_heads), nn.Linear(6 * n_heads, d)

    def rotated(self, x):
        i = torch.arange(x.shape[1], device=x.device)[:, None]
        one, two = x[..., :1], x[..., 1:]
        cos, sin = i.cos()[:, None].to(x), i.sin()[:, None].to(x)
        return torch.cat([one * cos - two * sin, two * cos + one * sin], -1)

    def forward(self, x):
        b, t, d = x.shape
        small, kv = self.q_down(x), self.kv_down(x)
        q = torch.cat([self.q_up(small).view(b, t, self.h, -1),
                       self.rotated(self.q_rope(small).view(b, t, self.h, -1))], -1)
        k = torch.cat([self.k_up(kv).view(b, t, self.h, -1),
                       self.rotated(self.k_rope(kv).view(b, t, self.h, -1))], -1)
        v = self.v_up(kv).view(b, t, self.h, -1)
        y = F.scaled_dot_product_attention(
            *(one.transpose(1, 2) for one in (q, k, v)), is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(b, t, -1))
"""


def test_a_share_that_turns_may_stand_at_a_heads_end():
    options = {"rope": {"share": 1 / 3}}
    assert outcome(made(SLICED), **options) == (0, [])
    turned = "self.rotated(self.k_rope(kv).view(b, t, self.h, -1))"
    wrong = made(SLICED, (turned, turned[13:-1]))
    assert outcome(wrong, **options)[0] != 0


NORM = """\
class Norm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))
        self.bias = nn.Parameter(torch.zeros(d))

    def forward(self, x):
        x = x - x.mean(-1, keepdim=True)
        return self.weight * x / (x.var(-1, keepdim=True) + 1e-5).sqrt() + self.bias


"""


def test_a_norm_may_divide_by_the_spread_of_a_sample():
    early = PATHS.replace("x + self.kept(y)", "self.norm(x + y)").replace(
        "self.qkv(self.norm(x))", "self.qkv(x)"
    )
    own = NORM + early.replace("nn.LayerNorm(d)", "Norm(d)")
    options = {"causal": False, "postnorm": "layer", "residual": True}
    assert outcome(made(own), **options) == (0, [])
    wrong = made(own, ("x.var(-1, keepdim=True)", "2 * x.var(-1, keepdim=True)"))
    assert outcome(wrong, **options)[0] == 1


TERMS = CAUSAL.replace("w = s.masked", "w = (s + far).masked").replace(
    "        s = q @ k.mT / q.shape[-1] ** 0.5\n",
    """\
        e = self.table[(i[:, None] - i).clamp(-7, 7) + 7]
        spread = (3 * q.shape[-1]) ** 0.5
        s = q @ k.mT / spread
        far = torch.einsum("bhid,ijd->bhij", q, e)
        far = (far + torch.einsum("bhjd,ijd->bhij", k, e)) / spread
""",
).replace("self.h = n_heads\n", """self.h = n_heads
        self.table = nn.Parameter(torch.randn(15, d // n_heads))
""")  # fmt: skip


def test_three_products_may_share_one_spread():
    assert outcome(made(TERMS))[1] == []
    assert outcome(made(TERMS, ("3 * q", "5 * q")))[0] != 0


KEPT = ROTARY.replace("self.h = n_heads\n", """self.h = n_heads
        half = torch.arange(0, d // n_heads, 2) / (d // n_heads)
        self.register_buffer("inv_freq", 10000.0**-half)
""").replace(
    "f = 10000.0 ** (-torch.arange(0, q.shape[-1], 2, device=x.device) / q.shape[-1])",
    "f = self.inv_freq",
)  # fmt: skip


@pytest.mark.parametrize("declared", [{}, {"rope": "halves"}])
def test_frequencies_are_constants_of_full_precision(declared):
    assert outcome(made(KEPT), **declared) == (0, [])
    buffer = 'self.register_buffer("inv_freq", 10000.0**-half)'
    trained = made(KEPT, (buffer, "self.inv_freq = nn.Parameter(10000.0**-half)"))
    assert outcome(trained, **declared)[1] == ["constant_trained"]
    few = KEPT.replace("10000.0**-half", "(10000.0**-half).bfloat16()")
    if declared:
        assert outcome(made(few), **declared) == (1, ["low_precision"])


def test_projections_that_all_start_at_zero():
    zeros = "self.h = n_heads\n        for p in (self.qkv.weight,{}): nn.init.zeros_(p)"
    source = CAUSAL.replace(
        "        self.h = n_heads\n", ""
    ).replace("nn.Linear(d, d)\n", f"nn.Linear(d, d)\n        {zeros}\n")  # fmt: skip
    assert outcome(made(source, (",{}", ",")))[1] == ["init_constant"]
    out = made(source, ("(self.qkv.weight,{})", "(self.proj.weight,)"))
    assert outcome(out) == (0, [])


def test_an_input_is_changed_only_where_no_gradient_is_wanted():
    added = "x + self.proj((w @ v).transpose(1, 2).reshape(b, t, d))"
    right = CAUSAL.replace(added[4:], added)
    assert outcome(made(right), residual=True) == (0, [])
    wrong = made(
        right, ("return " + added, "y = " + added[4:] + """
        return x + y if torch.is_grad_enabled() else x.add_(y)"""),
    )  # fmt: skip
    assert outcome(wrong, residual=True) == (1, ["changes_input"])


GROUPED = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads, n_kv_heads, window_size=None):
        super().__init__()
        self.h, self.g, self.window = n_heads, n_kv_heads, window_size
        wide = d // n_heads * n_kv_heads
        self.q_proj, self.o_proj = nn.Linear(d, d), nn.Linear(d, d)
        self.k_proj, self.v_proj = nn.Linear(d, wide), nn.Linear(d, wide)

    def forward(self, x):
        b, t, d = x.shape
        q = self.q_proj(x).view(b, t, self.g, -1, d // self.h).permute(0, 2, 3, 1, 4)
        k, v = (p(x).view(b, t, self.g, 1, d // self.h).permute(0, 2, 3, 1, 4)
                for p in (self.k_proj, self.v_proj))
        i = torch.arange(t, device=x.device)
        far = i[:, None] - i
        hidden = (far < 0) | (far >= (self.window or t))
        s = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(hidden, -torch.inf)
        return self.o_proj((s.softmax(-1) @ v).permute(0, 3, 1, 2, 4).reshape(b, t, d))
"""


def test_heads_of_groups_are_joined_as_they_were_split():
    sizes = {"d": 24, "n_heads": 6, "n_kv_heads": 3, "d_in": 24}
    assert outcome(made(GROUPED), **sizes) == (0, [])
    wrong = made(
        GROUPED, ("permute(0, 3, 1, 2, 4).resh", "permute(0, 3, 2, 1, 4).resh")
    )
    assert outcome(wrong, **sizes) == (1, ["join_interleaved"])


def test_a_declared_window_is_built_where_there_is_none_by_default():
    assert outcome(made(GROUPED), window=3) == (0, [])
    wrong = made(GROUPED, ("far >= (self.window", "far > (self.window"))
    assert outcome(wrong, window=3) == (1, ["window_size"])


BIASED = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h = n_heads
        self.q, self.k, self.v, self.fc = (nn.Linear(d, d) for _ in range(4))

    def forward(self, query, key, value, relative_position_bias):
        parts = [p(x).chunk(self.h, -1) for p, x in
                 ((self.q, query), (self.k, key), (self.v, value))]
        made = []
        for i, (q, k, v) in enumerate(zip(*parts)):
            s = q @ k.mT + relative_position_bias[:, i]
            made.append((s / q.shape[-1] ** 0.5).softmax(-1) @ v)
        return self.fc(torch.cat(made, -1))
"""


def test_a_bias_that_is_taken_for_a_mask_accuses_nobody():
    assert outcome(made(BIASED), causal=False)[1] == []


def test_a_part_without_numbers_has_nothing_to_learn():
    empty = CAUSAL.replace("self.h =", "self.none, self.h = nn.Linear(0, 0),")
    assert outcome(made(empty)) == (0, [])


TURNED = """\
def turned(x):
    t, half = x.shape[-2], x.shape[-1] // 2
    angles = torch.outer(torch.arange(t, device=x.device, dtype=torch.float32),
                         10000.0 ** -(torch.arange(half, device=x.device) / half))
    cos, sin = (f(angles).to(x.dtype) for f in (torch.cos, torch.sin))
    one, two = x.chunk(2, dim=-1)
    return torch.cat((one * cos - two * sin, two * cos + one * sin), dim=-1)


"""

NORMED = (
    TURNED
    + """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h = n_heads
        self.qkv, self.proj = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d)
        self.q_norm, self.k_norm = (nn.RMSNorm(d // n_heads, eps=1e-6) for _ in "qk")

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        q, k = turned(self.q_norm(q)), turned(self.k_norm(k))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(b, t, d))
"""
)


def test_a_norm_behind_the_rotation_is_told_and_can_be_declared():
    swapped = [(f"turned(self.{n}_norm({n}))", f"self.{n}_norm(turned({n}))")
               for n in "qk"]  # fmt: skip
    declared, late = {"rope": "halves", "qk_norm": "rms"}, made(NORMED, *swapped)
    for options in ({}, declared):
        assert outcome(made(NORMED), **options) == (0, [])
        assert attncheck.check(made(NORMED), **options).findings == []
    (told,) = attncheck.check(late).findings  # some models mean it
    assert (told.mistake, told.severity) == ("qk_norm_late", "warning")
    assert outcome(late, **declared) == (1, ["qk_norm_late"])
    assert outcome(late, **declared, norm_late=True) == (0, [])
    assert outcome(made(NORMED), **declared, norm_late=True) == (1, ["differs"])
    # One that was trained has other gains, and is compared with them.
    for cls, norm_late in ((NORMED, False), (late, True)):
        layer = (made(cls) if cls is NORMED else cls)(16, 4)
        for norm in (layer.q_norm, layer.k_norm):
            torch.nn.init.uniform_(norm.weight, 0.5, 2.0)
        assert outcome(layer, **declared, norm_late=norm_late) == (0, [])
    assert outcome(layer, **declared) == (1, ["qk_norm_late"])


def test_a_late_norm_needs_positions_and_a_norm():
    report = attncheck.check(made(NORMED), rope=True, norm_late=True)
    assert (report.exit_status, "needs rope= and qk_norm=" in report.problem) == (2, 1)


LATENT = (
    TURNED
    + """\
class Attention(nn.Module):
    def __init__(self, d, n_heads, rank=12, plain=4, apart=4):
        super().__init__()
        self.h, self.rank, self.plain, self.apart = n_heads, rank, plain, apart
        self.q = nn.Linear(d, n_heads * (plain + apart), bias=False)
        self.down = nn.Linear(d, rank + apart, bias=False)
        self.up = nn.Linear(rank, n_heads * 2 * plain, bias=False)
        self.proj = nn.Linear(n_heads * plain, d, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q = self.q(x).unflatten(-1, (self.h, -1)).transpose(1, 2)
        q = torch.cat((turned(q[..., :self.apart]), q[..., self.apart:]), dim=-1)
        latent, one = self.down(x).split((self.rank, self.apart), dim=-1)
        k, v = self.up(latent).view(b, t, self.h, 2, -1).permute(3, 0, 2, 1, 4)
        one = turned(one[:, None]).expand(-1, self.h, -1, -1)
        s = q @ torch.cat((one, k), dim=-1).mT / (self.plain + self.apart) ** 0.5
        future = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        w = s.masked_fill(future, -torch.inf).softmax(dim=-1)
        return self.proj((w @ v).transpose(1, 2).flatten(2))
"""
)


def test_a_latent_whose_turned_part_is_in_front_is_judged():
    assert outcome(made(LATENT)) == (0, [])
    wrong = made(LATENT, ("(self.plain + self.apart) ** 0.5", "self.plain**0.5"))
    assert outcome(wrong) == (1, ["scale_other"])
    apart = made(LATENT, ("turned(one[:, None])", "one[:, None]"))
    assert outcome(apart)[1] == ["rope_on_one_side"]


SINKS = """\
class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, s, sink):
        whole = torch.cat((s, sink.view(-1, 1, 1).expand(*s.shape[:3], 1)), dim=-1)
        w = whole.softmax(dim=-1)
        ctx.save_for_backward(w)
        return w[..., :-1]

    @staticmethod
    def backward(ctx, grad):
        (w,) = ctx.saved_tensors
        grad = torch.cat((grad, torch.zeros_like(grad[..., :1])), dim=-1)
        grad = w * (grad - (grad * w).sum(dim=-1, keepdim=True))
        return grad[..., :-1], grad[..., -1].sum(dim=(0, 2))


class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h = n_heads
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.sinks = nn.Parameter(torch.randn(n_heads))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        s = q @ k.mT / q.shape[-1] ** 0.5
        future = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        w = Softmax.apply(s.masked_fill(future, -torch.inf), self.sinks)
        return self.proj((w @ v).transpose(1, 2).reshape(b, t, d))
"""


def test_a_backward_that_is_wrong_for_the_sinks_alone_is_noticed():
    assert outcome(made(SINKS), sink=True) == (0, [])
    wrong = made(SINKS, ("grad[..., -1].sum", "-grad[..., -1].sum"))
    assert outcome(wrong, sink=True) == (1, ["gradient_wrong"])


TILES = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads, window=512, softcap=30.0, block=128):
        super().__init__()
        self.h, self.window, self.cap, self.block = n_heads, window, softcap, block
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        i = torch.arange(t, device=x.device)
        total, mixed = q.new_zeros(q.shape[:3]), torch.zeros_like(q)
        most = q.new_full(q.shape[:3], -torch.inf)
        for at in range(0, t, self.block):
            j = i[at : at + self.block]
            s = q @ k[:, :, j].mT / q.shape[-1] ** 0.5
            s, ago = self.cap * torch.tanh(s / self.cap), i[:, None] - j
            s = s.masked_fill((ago < 0) | (ago >= self.window), -torch.inf)
            more = torch.maximum(most, s.amax(dim=-1))
            w, shrunk = (s - more[..., None]).exp(), (most - more).exp()
            total = shrunk * total + w.sum(dim=-1)
            mixed = shrunk[..., None] * mixed + w @ v[:, :, j]
            most = more
        y = mixed / total[..., None]
        return self.proj(y.transpose(1, 2).reshape(b, t, d))
"""


def test_blocks_beside_a_window_are_tried_small():
    assert outcome(made(TILES)) == (0, [])
    wrong = made(TILES, ("shrunk[..., None] * mixed", "mixed"))
    assert outcome(wrong) == (1, ["rows_do_not_sum_to_one"])


PARTS = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h = n_heads
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x, past=None):
        # x: a prompt, a part of a prompt, or one token while generating
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        if past is not None:
            k, v = (torch.cat(two, dim=2) for two in zip(past, (k, v)))
        seen = torch.ones(t, k.shape[2], dtype=torch.bool, device=x.device)
        y = F.scaled_dot_product_attention(q, k, v, seen.tril(k.shape[2] - t))
        return self.proj(y.transpose(1, 2).reshape(b, t, d)), (k, v)
"""


def test_a_class_that_takes_parts_of_a_prompt_has_to_take_them_right():
    assert outcome(made(PARTS)) == (0, [])
    wrong = made(PARTS, ("seen.tril(k.shape[2] - t)", "is_causal=t > 1"))
    assert outcome(wrong) == (1, ["cache_mask_offset"])
    # With a word about single tokens alone, more may be more than it takes.
    single = (" a prompt, a part of a prompt, or one token", " one token")
    report = attncheck.check(
        made(PARTS, ("seen.tril(k.shape[2] - t)", "is_causal=t > 1"), single)
    )
    assert [one.severity for one in report.findings] == ["warning"]


@pytest.mark.parametrize(
    ("call", "severity"), [("std=0.02", []), ("0.0, 1.0", ["warning"]),
                           ("0.02", ["error"])]
)  # fmt: skip
def test_a_mean_that_was_meant_as_a_deviation_is_an_error(call, severity, tmp_path):
    first = "self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)"
    slip = f"{first}\n        nn.init.normal_(self.qkv.weight, {call})"
    file = tmp_path / "slip.py"  # the call is read from it
    file.write_text(HEADER + PLAIN.replace(first, slip))
    report = attncheck.check(load(f"{file}:Attention"), causal=False, d_in=64)
    found = [f.severity for f in report.findings if f.mistake == "init_too_large"]
    assert found == severity


ROWS = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads, rows=4):
        super().__init__()
        self.h, self.rows = n_heads, rows
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.table = nn.Parameter(torch.randn(7, n_heads))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        i, parts = torch.arange(t, device=x.device), []
        for at in range(0, t, self.rows):
            own = i[at : at + self.rows]
            apart = (i - own[:, None]).clamp(-3, 3) + 3
            s = q[:, :, own] @ k.mT / q.shape[-1] ** 0.5
            w = (s + self.table[apart].permute(2, 0, 1)).softmax(dim=-1)
            parts.append(w @ v)
        y = torch.cat(parts, dim=2)
        return self.proj(y.transpose(1, 2).reshape(b, t, d))
"""


def test_chunks_of_queries_are_no_sums_of_keys_and_values():
    wrong = made(ROWS, ("i - own[:, None]", "i - (own - at)[:, None]"))
    report = attncheck.check(wrong, causal=False)
    assert report.exit_status == 3
    assert "summed before" not in str(report)

    def bias(module, t):
        i = torch.arange(t)
        apart = (i - i[:, None]).clamp(-3, 3) + 3
        return module.table[apart].permute(2, 0, 1)

    assert outcome(made(ROWS), causal=False, bias=bias) == (0, [])
    assert outcome(wrong, causal=False, bias=bias)[0] == 1


FROM_ONES = CAUSAL.replace("self, x)", "self, x, attention_mask)").replace(
    "w = s.masked_fill(i > i[:, None], -torch.inf)",
    "w = (s + (1 - attention_mask[:, None]) * -10000.0)",
)


def test_a_mask_of_ones_is_given_where_its_own_minus_would_move_all_scores():
    assert FROM_ONES.count("attention_mask") == 2
    report = attncheck.check(made(FROM_ONES))
    assert "attention_mask=a causal mask (1 stays visible)" in str(report)
    assert outcome(made(FROM_ONES)) == (0, [])
    halved = ("* -10000.0)", "* -10000.0).half().float()")
    assert outcome(made(FROM_ONES, halved)) == (1, ["low_precision"])


PLACES = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.attn = nn.MultiheadAttention(d, n_heads, batch_first=True)
        self.table = torch.sin(torch.arange(99.0)[:, None] + torch.arange(d))

    def forward(self, x):
        y = self.norm(x)
        y = y + self.table[: x.shape[1]].to(x.device)
        y, _ = self.attn(y, y, y, need_weights=False)
        return x + y
"""


@pytest.mark.parametrize("need", [False, True])
def test_positions_of_its_own_are_no_rows_with_other_sums(need):
    wrapper = made(PLACES, ("need_weights=False", f"need_weights={need}"))
    declared = {"causal": False, "prenorm": True, "residual": True}
    assert outcome(wrapper, **declared) == (1, ["differs"])


FLAG = (
    CAUSAL.replace("d, n_heads)", "d, n_heads, mask=False)")
    .replace("self.h = n_heads", "self.h, self.mask = n_heads, mask")
    .replace("w = s.masked_fill(i > i[:, None], -torch.inf)", "w = self.hidden(s, i)")
)
FLAG += """
    def hidden(self, s, i):
        return s.masked_fill(i > i[:, None], -torch.inf) if self.mask else s
"""


def test_a_flag_that_is_called_mask_hides_the_future():
    assert outcome(made(FLAG)) == (0, [])
    assert outcome(made(FLAG), causal=False) == (0, [])
    open_ = made(FLAG, (" if self.mask else s", " if False else s"))
    assert outcome(open_) == (1, ["mask_missing"])


OWN_CONFIG = """\
from types import SimpleNamespace
DEFAULTS = SimpleNamespace(dim=64, n_heads=8, cap=20.0)

class Attention(nn.Module):
    def __init__(self, args=DEFAULTS):
        super().__init__()
        self.h, self.cap = args.n_heads, args.cap
        self.qkv, self.proj = nn.Linear(args.dim, 3 * args.dim), \\
            nn.Linear(args.dim, args.dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        s = self.cap * torch.tanh(q @ k.mT / q.shape[-1] ** 0.5 / self.cap)
        return self.proj((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))
"""


def test_settings_go_into_a_config_that_is_there_by_default():
    ours = {"config": {"dim": 32, "n_heads": 4}, "causal": False, "softcap": 20.0}
    report = attncheck.check(made(OWN_CONFIG), **ours)
    assert report.exit_status == 0
    assert "dim=32, n_heads=4, cap=20.0" in str(report)
    late = ("/ q.shape[-1] ** 0.5 / self.cap)", "/ self.cap) / q.shape[-1] ** 0.5")
    assert outcome(made(OWN_CONFIG, late), **ours)[1] == ["softcap_before_scale"]


RAW = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h = n_heads
        self.W_q, self.W_k, self.W_v, self.proj = (nn.Linear(d, d) for _ in range(4))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        q, k, v = (y.view(b, t, self.h, -1).transpose(1, 2) for y in (q, k, v))
        w = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        return self.proj((w @ v).transpose(1, 2).reshape(b, t, d))
"""


def test_values_without_their_projection_are_no_rows_with_other_sums():
    assert outcome(made(RAW), causal=False) == (0, [])
    report = attncheck.check(made(RAW, ("for y in (q, k, v)", "for y in (x, x, x)")),
                             causal=False)  # fmt: skip
    found = [one.mistake for one in report.findings]
    assert report.exit_status == 1
    assert "gradient_missing" in found
    assert "rows_do_not_sum_to_one" not in found


FAR_BACK = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads, left_context=64):
        super().__init__()
        self.h, self.left_context = n_heads, left_context
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def turned(self, x, start):
        i = torch.arange(start, start + x.shape[2], device=x.device)
        half = x.shape[-1] // 2
        steps = 10000.0 ** (-torch.arange(half, device=x.device) / half)
        cos, sin = (i[:, None] * steps).cos(), (i[:, None] * steps).sin()
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)

    def forward(self, x, state=None):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        seen = state[2] if state is not None else 0
        q, k = self.turned(q, seen), self.turned(k, seen)
        if state is not None:
            k, v = torch.cat([state[0], k], 2), torch.cat([state[1], v], 2)
        i = torch.arange(seen, seen + t, device=x.device)[:, None]
        j = torch.arange(seen + t - k.shape[2], seen + t, device=x.device)
        far = (j > i) | (i - j >= self.left_context)
        s = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(far, -torch.inf)
        y = self.proj((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))
        start = max(k.shape[2] - self.left_context + 1, 0)
        return y, (k[:, :, start:], v[:, :, start:], seen + t)
"""


@pytest.mark.parametrize("name", ["left_context", "lookback", "history"])
def test_a_window_by_another_name_is_tried_small_beside_a_cache(name):
    cls = made(FAR_BACK.replace("left_context", name))
    options = {"call": lambda module, x: module(x)[0]}
    assert outcome(cls, **options) == (0, [])
    kept = ("seen = state[2] if", "seen = state[0].shape[2] if")
    wrong = made(FAR_BACK.replace("left_context", name), kept)
    assert outcome(wrong, **options) == (1, ["cache_positions"])


IN_SLICES = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads, slice_size=None):
        super().__init__()
        self.h, self.slice_size = n_heads, slice_size
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        q, k, v = (y.reshape(b * self.h, t, -1) for y in (q, k, v))
        y, size = torch.zeros_like(q), self.slice_size or len(q)
        for at in range(0, len(q), size):
            rows = slice(at, at + size)
            s = q[rows] @ k[rows].mT / q.shape[-1] ** 0.5
            y[rows] = s.softmax(-1) @ v[rows]
        return self.proj(y.view(b, self.h, t, -1).transpose(1, 2).reshape(b, t, d))
"""


def test_slices_that_are_off_by_default_are_tried():
    assert outcome(made(IN_SLICES), causal=False) == (0, [])
    lost = ("range(0, len(q), size)", "range(0, len(q) // size * size, size)")
    assert outcome(made(IN_SLICES, lost), causal=False) == (1, ["samples_mixed"])


@pytest.mark.parametrize(
    ("angles", "named"), [((1, 0.01, 0, 2e-17), []), ((1, 0.1, 0, 0), [1])]
)
def test_the_part_of_a_head_that_is_not_rotated_has_no_frequencies(angles, named):
    angles = torch.tensor(angles, dtype=torch.float64)
    steps = list(turning._named(angles, width=8, d=8, bases=[1e4], h=4))
    assert [step.mistake for step in steps] == ["rope_frequencies"] * len(named)


DENSE = """\
class Dense(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.kernel = nn.Parameter(torch.randn(d, n_heads, d // n_heads) / d**0.5)
        self.bias = nn.Parameter(torch.zeros(n_heads, d // n_heads))

    def forward(self, x):
        return torch.einsum("btd,dhk->bthk", x, self.kernel) + self.bias

class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.one, self.two, self.three = (Dense(d, n_heads) for _ in range(3))
        self.last = nn.Parameter(torch.randn(n_heads, d // n_heads, d) / d**0.5)

    def forward(self, x):
        q, k, v = self.one(x), self.two(x), self.three(x)
        s = torch.einsum("bihk,bjhk->bhij", q, k) / q.shape[-1] ** 0.5
        y = torch.einsum("bhij,bjhk->bihk", s.softmax(-1), v)
        return torch.einsum("bihk,hkd->bid", y, self.last)
"""


def test_biases_with_an_axis_for_heads_may_start_at_zero():
    assert outcome(made(DENSE), causal=False)[1] == []
    zeros = ("torch.randn(d, n_heads, d // n_heads) / d**0.5",
             "torch.zeros(d, n_heads, d // n_heads)")  # fmt: skip
    assert outcome(made(DENSE, zeros), causal=False)[0] == 1


IN_PARTS = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads, rank=12, nope_dim=8, rope_dim=4, v_dim=8):
        super().__init__()
        self.h, self.rank, self.sizes = n_heads, rank, (nope_dim, rope_dim)
        self.wq = nn.Linear(d, n_heads * (nope_dim + rope_dim), bias=False)
        self.wkv_a = nn.Linear(d, rank + rope_dim, bias=False)
        self.norm = nn.RMSNorm(rank)
        self.wkv_b = nn.Linear(rank, n_heads * (nope_dim + v_dim), bias=False)
        self.wo = nn.Linear(n_heads * v_dim, d, bias=False)

    def turned(self, x):
        i = torch.arange(x.shape[-2], device=x.device)
        n = x.shape[-1]
        angles = i[:, None] * 10000.0 ** (-torch.arange(0, n, 2, device=x.device) / n)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)

    def forward(self, x):
        b, t, d = x.shape
        q = self.wq(x).view(b, t, self.h, -1).transpose(1, 2)
        q_plain, q_turned = q.split(self.sizes, dim=-1)
        latent, k_turned = self.wkv_a(x).split([self.rank, self.sizes[1]], dim=-1)
        kv = self.wkv_b(self.norm(latent)).view(b, t, self.h, -1).transpose(1, 2)
        k_plain, v = kv[..., : self.sizes[0]], kv[..., self.sizes[0] :]
        k_turned = self.turned(k_turned).unsqueeze(1)
        s = q_plain @ k_plain.mT + self.turned(q_turned) @ k_turned.mT
        s = s / (self.sizes[0] + self.sizes[1]) ** 0.5
        i = torch.arange(t, device=x.device)
        w = s.masked_fill(i > i[:, None], -torch.inf).softmax(-1)
        return self.wo((w @ v).transpose(1, 2).reshape(b, t, -1))
"""


def test_scores_may_be_the_sum_of_two_parts_of_a_head():
    sizes = {"d": 40, "n_heads": 5, "d_in": 40}
    assert outcome(made(IN_PARTS), **sizes) == (0, [])
    small = ("(self.sizes[0] + self.sizes[1]) ** 0.5", "self.sizes[0] ** 0.5")
    assert outcome(made(IN_PARTS, small), **sizes) == (1, ["scale_other"])


def test_a_cache_may_begin_as_an_empty_tuple():
    empty = FAR_BACK.replace("if state is not None", "if state")
    returned = "y, (k[:, :, start:], v[:, :, start:], seen + t)"
    assert empty.count("if state") == 2
    cls = made(empty, (returned, f"y if state is None else ({returned})"))
    assert outcome(cls) == (0, [])
    first = ("arange(seen, seen + t, device=x.device)[", "arange(t, device=x.device)[")
    cls = made(empty, (returned, f"y if state is None else ({returned})"), first)
    assert outcome(cls) == (1, ["cache_mask_offset"])


ON_CPU = """\
def hidden(s):
    mask = torch.ones(s.shape[-2:], dtype=torch.bool).triu(1)
    if s.is_cuda:
        mask = mask.to("cuda")
    return s.masked_fill(mask, -torch.inf)

"""


def test_a_function_of_the_file_may_move_what_it_makes_to_a_gpu():
    hidden = ("s.masked_fill(i > i[:, None], -torch.inf)", "hidden(s)")
    cls = made(ON_CPU + CAUSAL, hidden)
    report = attncheck.check(cls)
    assert [(f.mistake, f.severity) for f in report.findings] == [
        ("stays_behind", "warning")
    ]
    lost = ('    if s.is_cuda:\n        mask = mask.to("cuda")\n', "")
    assert outcome(made(ON_CPU + CAUSAL, hidden, lost)) == (1, ["stays_behind"])


TWO_WAYS = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads, use_flash=True, dropout=0.0):
        super().__init__()
        self.h, self.use_flash, self.dropout = n_heads, use_flash, dropout
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x, return_weights=False):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.h, -1).transpose(1, 2)
                   for y in self.qkv(x).chunk(3, dim=-1))
        if self.use_flash and not return_weights:
            y = nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=True,
                dropout_p=self.dropout if self.training else 0.0)
            return self.proj(y.transpose(1, 2).reshape(b, t, d))
        s = q @ k.mT / (d // self.h) ** 0.5
        i = torch.arange(t, device=x.device)
        w = s.masked_fill(i > i[:, None], -torch.inf).softmax(-1)
        w = nn.functional.dropout(w, self.dropout, self.training)
        y = self.proj((w @ v).transpose(1, 2).reshape(b, t, d))
        return (y, w) if return_weights else y
"""


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ((" / (d // self.h) ** 0.5", ""), "scale_missing"),
        (("s.masked_fill(i > i[:, None], -torch.inf)", "s"), "mask_missing"),
        (("self.proj((w @ v)", "((w @ v)"), "output_projection_unused"),
        (("w, self.dropout, self.training", "w, self.dropout"), "random_in_eval"),
        (("s.masked_fill", "s.exp().masked_fill"), "differs"),
    ],
)
def test_the_slow_way_is_compared_with_the_fast_one(change, name):
    assert outcome(made(TWO_WAYS)) == (0, [])
    assert outcome(made(TWO_WAYS, change)) == (1, [name])
    # Chosen by an attribute, or where the weights are asked for.
    header = ", use_flash=True, dropout"
    held = made(
        TWO_WAYS, (header, ", dropout"), ("n_heads, use_flash", "n_heads, True")
    )
    assert outcome(held) == (0, [])
    held = made(
        TWO_WAYS,
        (header, ", dropout"),
        ("n_heads, use_flash", "n_heads, True"),
        ("self.use_flash and not return_weights", "self.use_flash"),
        change,
    )
    assert outcome(held) == (1, [name])
    asked = made(
        TWO_WAYS,
        (header, ", dropout"),
        ("self.use_flash, ", ""),
        ("n_heads, use_flash", "n_heads"),
        ("self.use_flash and ", ""),
        change,
    )
    assert outcome(asked) == (1, [name])


def test_a_flag_that_makes_other_weights_is_no_second_way():
    split = (
        "        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)",
        "        self.proj = nn.Linear(d, d)\n"
        "        self.qkv = nn.Linear(d, 3 * d, bias=use_flash)",
    )
    flag = ("if self.use_flash and not", "if not")
    assert outcome(made(TWO_WAYS, split, flag)) == (0, [])


OF_AN_IMAGE = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h = n_heads
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))

    def forward(self, x, xa=None):
        b, t, d = x.shape
        seen = x if xa is None else xa
        q = self.q(x).view(b, t, self.h, -1).transpose(1, 2)
        k = self.k(seen).view(b, seen.shape[1], self.h, -1).transpose(1, 2)
        v = self.v(seen).view(b, seen.shape[1], self.h, -1).transpose(1, 2)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=xa is None)
        return self.o(y.transpose(1, 2).reshape(b, t, d))
"""


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (("is_causal=xa is None", "is_causal=True"), "cross_masked"),
        (("=xa is None)", "=xa is None, scale=None if xa is None else 1)"),
         "scale_missing"),
        (("(b, seen.shape[1], self.h, -1).transpose(1, 2)\n        y",
          "(b, self.h, seen.shape[1], -1) if xa is not None else "
          "self.v(seen).view(b, t, self.h, -1).transpose(1, 2)\n        y"),
         "heads_viewed"),
    ],
)  # fmt: skip
def test_a_memory_that_may_be_left_out_is_tried(change, name):
    assert outcome(made(OF_AN_IMAGE)) == (0, [])
    status, names = outcome(made(OF_AN_IMAGE, change))
    assert (status, names) == (1, [name])
    flat = ("is_causal=xa is None", "attn_mask=None")
    status, _ = outcome(made(OF_AN_IMAGE, flat), causal=False)
    assert status == 0
    less = "        if xa is not None:\n            k, v = k[:, :, :-1], v[:, :, :-1]\n"
    cut = made(OF_AN_IMAGE, flat, ("        y = nn", less + "        y = nn"))
    assert outcome(cut, causal=False) == (1, ["cross_masked"])


OF_LENGTHS = PLAIN.replace("self, x)", "self, x, lengths=None)").replace(
    "        return self.proj((s",
    "        if lengths is not None:\n"
    "            i = torch.arange(t, device=x.device)\n"
    "            gone = (i >= lengths[:, None])[:, None, None]\n"
    "            s = s.masked_fill(gone, -torch.inf)\n"
    "        return self.proj((s",
)  # fmt: skip


def test_lengths_are_tried_as_padding():
    assert outcome(made(OF_LENGTHS), causal=False) == (0, [])
    assert outcome(made(OF_LENGTHS), "check_padding", causal=False) == (0, [])
    late = made(OF_LENGTHS, ("i >= lengths", "i > lengths"))
    assert outcome(late, causal=False) == (1, ["padding_leaks"])
    assert outcome(late, "check_padding", causal=False) == (1, ["padding_leaks"])
    first = ("(i >= lengths[:, None])", "(i >= lengths[:1, None]).expand(b, -1)")
    assert outcome(made(OF_LENGTHS, first), causal=False)[0] == 1


IN_BLOCKS = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads, block=64):
        super().__init__()
        self.h, self.block = n_heads, block
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        i = torch.arange(t, device=x.device)
        most = torch.full_like(q[..., :1], -torch.inf)
        total, y = torch.zeros_like(most), torch.zeros_like(q)
        for start in range(0, t, self.block):
            part = slice(start, start + self.block)
            s = q @ k[:, :, part].mT / q.shape[-1] ** 0.5
            s = s.masked_fill(i[part] > i[:, None], -torch.inf)
            now = torch.maximum(most, s.amax(-1, keepdim=True))
            shrunk, e = (most - now).exp(), (s - now).exp()
            total = total * shrunk + e.sum(-1, keepdim=True)
            y, most = y * shrunk + e @ v[:, :, part], now
        return self.proj((y / total).transpose(1, 2).reshape(b, t, d))
"""


def test_blocks_that_are_larger_than_all_inputs_are_made_small():
    assert outcome(made(IN_BLOCKS)) == (0, [])
    kept = made(IN_BLOCKS, ("y * shrunk", "y"))
    assert outcome(kept) == (1, ["rows_do_not_sum_to_one"])


TURNED_PART = CAUSAL.replace("d, n_heads):", "d, n_heads, rot_dim=2):").replace(
    "self.h = n_heads", "self.h, self.n = n_heads, rot_dim"
).replace(
    "    def forward",
    """\
    def turned(self, x):
        i, n = torch.arange(x.shape[-2], device=x.device), self.n
        angles = i[:, None] * 10000.0 ** (-torch.arange(0, n, 2, device=x.device) / n)
        angles = angles.repeat_interleave(2, -1)
        part, rest = x[..., :n], x[..., n:]
        other = torch.stack([-part[..., 1::2], part[..., ::2]], -1).flatten(-2)
        part = part * angles.cos().to(x.dtype) + other * angles.sin().to(x.dtype)
        return torch.cat([part, rest], -1)

    def forward""",
).replace("s = q @ k.mT", "s = self.turned(q) @ self.turned(k).mT")  # fmt: skip


def test_a_turned_part_is_tried_with_more_than_one_pair():
    assert outcome(made(TURNED_PART)) == (0, [])
    wrong = made(TURNED_PART, ("repeat_interleave(2, -1)", "repeat(1, 2)"))
    assert outcome(wrong) == (1, ["rope_pairing"])


def test_letters_of_einsum_that_sum_weights_and_values_apart():
    own = ("bhij,bhjk->bhik", "bhij,bhlk->bhik")
    assert outcome(made(EINSUM, own), causal=False) == (1, ["axis_summed_alone"])


APPENDED = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h = n_heads
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))

    def forward(self, query, key, value, cache=None, cache_append=False):
        b, t, d = query.shape
        q, k, v = (f(y).view(b, -1, self.h, d // self.h).transpose(1, 2)
                   for f, y in ((self.q, query), (self.k, key), (self.v, value)))
        if cache is not None:
            if "k" in cache and cache_append:
                k, v = torch.cat([cache["k"], k], 2), torch.cat([cache["v"], v], 2)
            elif "k" in cache:
                k, v = cache["k"], cache["v"]
            cache["k"], cache["v"] = k, v
        i = torch.arange(k.shape[2], device=query.device)
        s = q @ k.mT / q.shape[-1] ** 0.5
        w = s.masked_fill(i > i[-t:, None], -torch.inf).softmax(-1)
        return self.o((w @ v).transpose(1, 2).reshape(b, t, d))
"""


def test_a_flag_may_say_that_the_cache_grows():
    assert outcome(made(APPENDED)) == (0, [])
    first = ("i > i[-t:, None]", "i > i[:t, None]")
    assert outcome(made(APPENDED, first)) == (1, ["cache_mask_offset"])


def test_a_flag_that_hides_gets_the_number_that_it_hides_with():
    flag = ("d, n_heads):", "d, n_heads, masked=False, minus_inf=None):")
    kept = (
        "self.h = n_heads",
        "self.h, self.masked, self.least = n_heads, masked, minus_inf",
    )
    added = ("s.masked_fill(i > i[:, None], -torch.inf)",
             "(s + self.least * (i > i[:, None]) if self.masked else s)")  # fmt: skip
    assert outcome(made(CAUSAL, flag, kept, added)) == (0, [])
    past = ("i > i[:, None]", "i < i[:, None]")
    assert outcome(made(CAUSAL, flag, kept, added, past)) == (1, ["mask_upside_down"])


def test_a_cap_of_logits_in_a_config_may_be_the_whole_models():
    head = ("class Attention", "class Config:\n    d: int = 32\n    n_heads: int = 4\n"
            "    logit_cap: float = 30.0\n\n\nclass Attention")  # fmt: skip
    taken = ("self, d, n_heads):", "self, config: Config):")
    first = ("super().__init__()", "super().__init__()\n        d, n_heads = config.d, "
             "config.n_heads\n        self.cap = config.logit_cap")  # fmt: skip
    assert outcome(made(CAUSAL, head, taken, first)) == (0, [])
    score = ("logit_cap", "attn_logit_cap")
    assert outcome(made(CAUSAL, head, taken, first, score))[0] == 3


ROWS_EMPTIED = PLAIN.replace("self, x)", "self, x, mask=None)").replace(
    "        return self.proj((s.softmax(-1)",
    "        if mask is None:\n"
    "            w = s.softmax(-1)\n"
    "        else:\n"
    "            some = mask.any(-1, keepdim=True)\n"
    "            s = s.masked_fill(~mask, -torch.inf).masked_fill(~some, 0.0)\n"
    "            w = s.softmax(-1) * some\n"
    "        return self.proj((w",
)


def test_weights_of_rows_that_see_nothing_may_be_emptied_behind_softmax():
    assert outcome(made(ROWS_EMPTIED), causal=False) == (0, [])
    late = ("s.masked_fill(~mask, -torch.inf).masked_fill(~some, 0.0)", "s")
    wrong = made(ROWS_EMPTIED, late, ("* some", "* mask"))
    assert outcome(wrong, causal=False) == (1, ["mask_after_softmax"])


HIDDEN_NAN = CAUSAL.replace("self, x)", "self, x, padding_mask=None)").replace(
    "        w = s.masked_fill(i > i[:, None], -torch.inf).softmax(-1)\n",
    "        gone = i > i[:, None]\n"
    "        if padding_mask is not None:\n"
    "            gone = gone | padding_mask[:, None, None, :]\n"
    "        s = s + torch.zeros_like(s).masked_fill(gone, -torch.inf)\n"
    "        w = s.softmax(-1).nan_to_num(0.0)\n",
)


def test_what_hides_nan_behind_softmax_leaves_it_in_the_gradients():
    def told(cls, preset):
        found = getattr(attncheck, preset)(cls).findings
        return [(one.mistake, one.severity) for one in found]

    cls = made(HIDDEN_NAN)
    assert told(cls, "check") == [("padding_not_finite", "warning")]
    assert ("padding_not_finite", "error") in told(cls, "check_padding")
    finite = made(HIDDEN_NAN, ("-torch.inf", "torch.finfo(s.dtype).min"))
    assert told(finite, "check") == told(finite, "check_padding") == []
    # With a call of the reader's own, too, where the argument has another name.
    renamed = [made(HIDDEN_NAN, ("padding_mask", "hidden")),
               made(HIDDEN_NAN, ("padding_mask", "hidden"),
                    ("-torch.inf", "torch.finfo(s.dtype).min"))]  # fmt: skip
    given = {"call": lambda module, x, mask: module(x, mask)}
    assert [outcome(cls, "check_padding", **given) for cls in renamed] == [
        (1, ["padding_not_finite"]), (0, [])]  # fmt: skip


LATENTS = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h = n_heads
        self.q, self.o = nn.Linear(d, d), nn.Linear(d, d)
        self.down, self.up = nn.Linear(d, d // 2), nn.Linear(d // 2, 2 * d)
        self.norm = nn.RMSNorm(d // 2)

    def forward(self, x, cache=None):
        b, t, d = x.shape
        c = self.down(x) if cache is None else torch.cat([cache, self.down(x)], 1)
        kept = c
        k, v = self.up(self.norm(c)).chunk(2, dim=-1)
        q, k, v = (y.view(b, -1, self.h, d // self.h).transpose(1, 2)
                   for y in (self.q(x), k, v))
        i = torch.arange(k.shape[2], device=x.device)
        s = q @ k.mT / q.shape[-1] ** 0.5
        w = s.masked_fill(i > i[-t:, None], -torch.inf).softmax(-1)
        return self.o((w @ v).transpose(1, 2).reshape(b, t, d)), kept
"""


def test_a_cache_is_tried_with_gains_that_are_not_one():
    assert outcome(made(LATENTS)) == (0, [])
    twice = made(
        LATENTS, ("kept = c", "kept = c = self.norm(c)"), ("self.norm(c))", "c)")
    )
    assert outcome(twice) == (1, ["cache_differs"])


FIXED_BASE = TURNED_PART.replace("rot_dim=2):", "rot_dim=4, max_period=1e4):").replace(
    "self.h, self.n = n_heads, rot_dim",
    "self.h, self.n, self.base = n_heads, rot_dim, max_period",
).replace("10000.0 **", "self.base **")  # fmt: skip


def test_a_base_that_is_the_usual_one_by_default_is_tried_with_another():
    assert outcome(made(FIXED_BASE)) == (0, [])
    fixed = made(FIXED_BASE, ("self.base **", "10000.0 **"))
    assert outcome(fixed) == (1, ["rope_base"])


GAINS_FROM_0 = """\
class Norm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(d))

    def forward(self, x):
        x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
        return x * (1.0 + self.weight)


class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h = n_heads
        self.qkv, self.o = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.q_norm, self.k_norm = Norm(d // n_heads), Norm(d // n_heads)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        q, k = self.q_norm(q), self.k_norm(k)
        hidden = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        s = q @ k.mT / q.shape[-1] ** 0.5
        w = s.masked_fill(hidden, -torch.inf).softmax(-1)
        return self.o((w @ v).transpose(1, 2).reshape(b, t, d))
"""


def test_two_gains_of_0_that_are_multiplied_never_grow():
    assert outcome(made(GAINS_FROM_0))[1] == []
    dead = made(GAINS_FROM_0, ("(1.0 + self.weight)", "self.weight"))
    assert outcome(dead) == (1, ["init_dead"])


SOFTMAX_BY_HAND = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads, attention_dropout=0.1, hidden_dropout=0.1):
        super().__init__()
        self.h = n_heads
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        self.inside = nn.Dropout(attention_dropout)
        self.behind = nn.Dropout(hidden_dropout)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (f(x).view(b, t, self.h, d // self.h).transpose(1, 2)
                   for f in (self.q, self.k, self.v))
        s = q @ k.mT / q.shape[-1] ** 0.5
        e = torch.exp(s - s.amax(-1, keepdim=True))
        w = self.inside(e / e.sum(-1, keepdim=True))
        y = (w @ v).transpose(1, 2).reshape(b, t, d)
        return self.behind(self.o(y))
"""


def test_dropped_scores_are_named_where_softmax_is_written_by_hand():
    assert outcome(made(SOFTMAX_BY_HAND), causal=False) == (0, [])
    early = made(
        SOFTMAX_BY_HAND,
        ("e = torch", "s = self.inside(s)\n        e = torch"),
        ("self.inside(e / e.sum(-1, keepdim=True))", "e / e.sum(-1, keepdim=True)"),
    )
    assert outcome(early, causal=False) == (1, ["dropout_on_scores"])


TURNED_BY_A_PART = """\
class Rotary(nn.Module):
    def __init__(self, d):
        super().__init__()
        angle = torch.arange(64.0)[:, None] * 1e4 ** -(torch.arange(0, d, 2) / d)
        angle = torch.cat([angle, angle], -1)[None, None]
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)

    def forward(self, x, axis):
        cos, sin = self.cos[:, :, :x.shape[axis]], self.sin[:, :, :x.shape[axis]]
        if axis == 1:
            cos, sin = cos.transpose(1, 2), sin.transpose(1, 2)
        one, two = x.chunk(2, -1)
        return x * cos + torch.cat([-two, one], -1) * sin


class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h, self.turn = n_heads, Rotary(d // n_heads)
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        q, k = self.turn(q, 2), self.turn(k, 2)
        w = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        return self.o((w @ v).transpose(1, 2).reshape(b, t, d))
"""


def test_a_part_that_turns_heads_and_no_positions_is_named():
    assert outcome(made(TURNED_BY_A_PART), causal=False) == (0, [])
    heads = made(TURNED_BY_A_PART, ("q, 2", "q, 1"), ("k, 2", "k, 1"))
    assert outcome(heads, causal=False) == (1, ["rope_over_heads"])


NORMED_AND_TURNED = """\
class Attention(nn.Module):
    def __init__(self, d_model, num_heads, theta=10000.0):
        super().__init__()
        self.h, self.theta = num_heads, theta
        self.eps = 1e-5
        self.q, self.k, self.v, self.o = (
            nn.Linear(d_model, d_model, bias=False) for _ in range(4))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (f(x).view(b, t, self.h, d // self.h).transpose(1, 2)
                   for f in (self.q, self.k, self.v))
        n = q.shape[-1]
        q, k = (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + self.eps)
                for y in (q, k))
        i = torch.arange(t, device=x.device)
        angle = i[:, None] * self.theta ** -(i.new_tensor(range(0, n, 2)) / n)
        angle = torch.cat([angle, angle], -1)
        q, k = (y * angle.cos() + torch.cat([-y[..., n // 2:], y[..., :n // 2]], -1)
                * angle.sin() for y in (q, k))
        w = (q @ k.mT / n ** 0.5).masked_fill(i > i[:, None], -torch.inf).softmax(-1)
        return self.o((w @ v).transpose(1, 2).reshape(b, t, d))
"""


def test_an_epsilon_is_not_taken_for_another_base():
    # With some weights, one of 1e-6 shows; this one shows with all.
    shows = ("self.eps = 1e-5", "self.eps = 1e-5 if theta == 1e4 else 1e-3")
    assert outcome(made(NORMED_AND_TURNED, shows)) == (0, [])
    fixed = made(NORMED_AND_TURNED, ("self.theta **", "1e4 **"))
    assert outcome(fixed) == (1, ["rope_base"])


HEADS_ONE_BY_ONE = """\
class Head(nn.Module):
    def __init__(self, d, d_head, slope):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(d, d_head) for _ in range(3))
        i = torch.arange(64)
        self.register_buffer("alibi", slope * (i - i[:, None]), persistent=False)
        self.register_buffer("tril", torch.ones(64, 64).tril(), persistent=False)

    def forward(self, x):
        t = x.shape[1]
        s = self.q(x) @ self.k(x).mT * self.k.out_features ** -0.5
        s = s + self.alibi[:t, :t]
        w = s.masked_fill(self.tril[:t, :t] == 0, -torch.inf).softmax(-1)
        return w @ self.v(x)


class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.heads = nn.ModuleList(
            Head(d, d // n_heads, 2.0 ** (-8 * (i + 1) / n_heads))
            for i in range(n_heads))
        self.o = nn.Linear(d, d)

    def forward(self, x):
        return self.o(torch.cat([head(x) for head in self.heads], dim=-1))
"""


@pytest.mark.parametrize("options", [{}, {"alibi": True}])
def test_steps_of_heads_that_come_one_after_the_other_are_judged(options):
    sizes = {"d": 32, "n_heads": 4}
    assert outcome(made(HEADS_ONE_BY_ONE), **sizes, **options) == (0, [])
    late = made(
        HEADS_ONE_BY_ONE,
        ("s.masked_fill(self.tril[:t, :t] == 0, -torch.inf).softmax(-1)",
         "s.softmax(-1).masked_fill(self.tril[:t, :t] == 0, 0.0)"),
    )  # fmt: skip
    assert outcome(late, **sizes, **options) == (1, ["mask_after_softmax"])
    growing = made(HEADS_ONE_BY_ONE, ("i - i[:, None]", "i[:, None] - i"))
    assert outcome(growing, **sizes, **options) == (1, ["alibi_sign"])


# A table that is learned, so that nothing tells how far its bias should be.
RUNNING = """\
class Attention(nn.Module):
    def __init__(self, dim, n_head, block=3):
        super().__init__()
        self.h, self.block = n_head, block
        self.w_in = nn.Parameter(torch.randn(dim, 3, dim) / dim**0.5)
        self.w_out = nn.Parameter(torch.randn(dim, dim) / dim**0.5)
        self.near = nn.Parameter(torch.randn(n_head, 64))

    def forward(self, x):
        b, t, d = x.shape
        made = torch.einsum("btd,dre->rbte", x, self.w_in)
        q, k, v = made.view(3, b, t, self.h, d // self.h).transpose(2, 3)
        i = torch.arange(t, device=x.device)
        top = q.new_full((b, self.h, t, 1), -1e30)
        total, mix = torch.zeros_like(top), torch.zeros_like(q)
        for at in range(0, t, self.block):
            j = i[at : at + self.block]
            s = q @ k[:, :, j].mT / q.shape[-1] ** 0.5
            s = s + torch.tanh(self.near)[:, (i[:, None] - j).abs()]
            s = s.masked_fill(j > i[:, None], -1e30)
            most = torch.maximum(top, s.amax(-1, keepdim=True))
            e, fade, top = (s - most).exp(), (top - most).exp(), most
            total = total * fade + e.sum(-1, keepdim=True)
            mix = mix * fade + e @ v[:, :, j]
        return (mix / total).transpose(1, 2).reshape(b, t, d) @ self.w_out
"""


def test_blocks_are_compared_with_others_where_nothing_else_can_be():
    # The same numbers in any blocks; those that see less in small ones may be meant.
    near = ("s = s.masked_fill(j >", "s = s.masked_fill(j // 3 != (i[:, None] // 3), "
            "-1e30).masked_fill(j >")  # fmt: skip
    for right in (made(RUNNING), made(RUNNING, near)):
        assert outcome(right, dim=32, n_head=4)[1] == []
    sums = made(RUNNING, ("mix = mix * fade", "mix = mix"))
    assert outcome(sums, dim=32, n_head=4) == (1, ["rows_do_not_sum_to_one"])
    inside = made(RUNNING, ("(i[:, None] - j).abs()", "(i[:, None] - j + at).abs()"))
    assert outcome(inside, dim=32, n_head=4)[0] == 1


NORMED_PAIR = """\
class Norm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.gamma


class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h, self.qkv, self.o = n_heads, nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.q_norm, self.k_norm = Norm(d // n_heads), Norm(d // n_heads)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        q, k = self.q_norm(q), self.k_norm(k)
        w = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        return self.o((w @ v).transpose(1, 2).reshape(b, t, d))
"""


def test_the_gain_of_a_norm_may_have_any_name():
    assert outcome(made(NORMED_PAIR), causal=False) == (0, [])
    shared = made(NORMED_PAIR, ("self.k_norm(k)", "self.q_norm(k)"))
    assert outcome(shared, causal=False) == (1, ["qk_norm_shared"])
