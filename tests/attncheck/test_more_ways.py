"""Classes that ask for more are built, called and judged; wrong ones are named.

Each pair is a right class, and a change that makes it wrong.
"""

import pytest

import attncheck
from attncheck.mistakes import BASES, HEADER, compiled

MADE = """
class Attention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads, self.head_dim = n_heads, d_model // n_heads
        self.q, self.k, self.v, self.out = (nn.Linear(d_model, d_model) for _ in "qkvo")

    def split(self, z):
        return z.view(z.shape[0], -1, self.n_heads, self.head_dim).transpose(1, 2)
"""
CALLED = """
    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = q @ k.mT / self.head_dim**0.5
        hidden = x.new_ones(t, t).bool().triu(1)
        weights = scores.masked_fill(hidden, -torch.inf).softmax(dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, t, c))
"""
PLAIN = MADE + CALLED


def changed(source, *pairs):
    for old, new in pairs:
        assert old in source
        source = source.replace(old, new)
    return source


SLICES = changed(
    PLAIN,
    ("self.q, self.k, self.v, self.out = (nn.Linear(d_model, d_model) for _ in "
     '"qkvo")', "self.weight_query, self.weight_key, self.weight_value = (\n"
     "            nn.Parameter(torch.randn(n_heads, 1, d_model, self.head_dim))"
     ' for _ in "qkv")\n'
     "        self.output_weight = nn.Parameter(torch.randn(d_model, d_model))"),
    ("self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))",
     "((x @ w).transpose(0, 1) for w in "
     "(self.weight_query, self.weight_key, self.weight_value))"),
    ("self.out((weights @ v).transpose(1, 2).reshape(b, t, c))",
     "(weights @ v).transpose(1, 2).reshape(b, t, c) @ self.output_weight"),
)  # fmt: skip
WIDE = changed(
    PLAIN,
    ('for _ in "qkvo")', 'for _ in "qkvo")\n'
     "        self.q = nn.Linear(d_model, 2 * d_model)\n"
     "        self.out = nn.Linear(2 * d_model, d_model)"),
    ("-1, self.n_heads, self.head_dim", "z.shape[1], -1, self.head_dim"),
    ("        scores = q", "        k, v = (z.repeat_interleave(2, 1) for z in (k, v))"
     "\n        scores = q"),
    ("reshape(b, t, c)", "reshape(b, t, 2 * c)"),
)  # fmt: skip
PADDED = changed(
    PLAIN,
    ("forward(self, x)", "forward(self, x, keys_mask)"),
    ("triu(1)", "triu(1) | ~keys_mask[:, None, None, :]"),
)
IMAGE = changed(
    PLAIN,
    ("d_model, n_heads)", "d_model, n_heads, window_size)"),
    ('for _ in "qkvo")', 'for _ in "qkvo")\n'
     "        m = window_size\n"
     "        self.rel_table = nn.Parameter(torch.zeros((2 * m - 1) ** 2, n_heads))\n"
     "        at = torch.stack(torch.meshgrid(torch.arange(m), torch.arange(m), "
     'indexing="ij")).flatten(1)\n'
     "        far = at[:, :, None] - at[:, None, :] + m - 1\n"
     '        self.register_buffer("rel_index", far[0] * (2 * m - 1) + far[1])'),
    ("forward(self, x)", "forward(self, x, mask)"),
    ("        hidden = x.new_ones(t, t).bool().triu(1)\n",
     "        scores = scores + self.rel_table[self.rel_index].permute(2, 0, 1)\n"),
    ("scores.masked_fill(hidden, -torch.inf)",
     "(scores if mask is None else scores + mask)"),
)  # fmt: skip
READ = """
class Config:
    def __init__(self, entries):
        for name, value in entries.items():
            setattr(self, name, int(value))

"""
MAPPED = READ + changed(
    PLAIN,
    ("self, d_model, n_heads)", "self, config: Config)"),
    ("        super().__init__()", "        super().__init__()\n"
     "        d_model, n_heads = config.d_model, config.n_heads"),
)  # fmt: skip
CROSS = changed(
    PLAIN,
    ("self, d_model, n_heads)", "self, encoder_config, decoder_config)"),
    ("        super().__init__()", "        super().__init__()\n"
     "        d_model, n_heads = encoder_config.d_model, decoder_config.n_heads"),
    ("forward(self, x)", "forward(self, encoder_x, decoder_x)"),
    ("b, t, c = x.shape", "b, t, c = decoder_x.shape"),
    ("self.q(x)", "self.q(decoder_x)"), ("self.k(x)", "self.k(encoder_x)"),
    ("self.v(x)", "self.v(encoder_x)"),
    ("        hidden = x.new_ones(t, t).bool().triu(1)\n", ""),
    (".masked_fill(hidden, -torch.inf)", ""),
)  # fmt: skip
ADDED = changed(
    PLAIN,
    ('for _ in "qkvo")', 'for _ in "qkvo")\n'
     '        full = torch.full((64, 64), -torch.inf)\n'
     '        self.register_buffer("causal", full.triu(1))'),
    ("forward(self, x)", "forward(self, x, attn_mask=None)"),
    ("hidden = x.new_ones(t, t).bool().triu(1)", "bias = self.causal[:t, :t]\n"
     "        if attn_mask is not None:\n            bias = bias + attn_mask"),
    ("scores.masked_fill(hidden, -torch.inf)", "(scores + bias)"),
)  # fmt: skip
TOLD = changed(
    PLAIN,
    ("forward(self, x)", "forward(self, x, need_weights=False)"),
    ("        return self.out(", "        y = self.out("),
) + (
    "        if need_weights:\n"
    "            flat = weights.flatten(0, 1)\n"
    "            return y, flat.view(b, self.n_heads, t, t).mean(1)\n"
    "        return y\n"
)
BUCKETS = changed(
    PLAIN,
    ("d_model, n_heads)", "d_model, n_heads, num_buckets=6, max_distance=12)"),
    ('for _ in "qkvo")', 'for _ in "qkvo")\n'
     "        self.n, self.max_distance = num_buckets, max_distance\n"
     "        self.rel_bias = nn.Embedding(num_buckets, n_heads)"),
    ("        hidden =", "        i = torch.arange(t, device=x.device)\n"
     "        far = (i[:, None] - i).clamp(min=0)\n"
     "        half = self.n // 2\n"
     "        wide = torch.tensor(self.max_distance / half)\n"
     "        more = half + (far.clamp(min=1) / half).log() / wide.log() * half\n"
     "        more = more.long().clamp(max=self.n - 1)\n"
     "        rows = torch.where(far < half, far, more)\n"
     "        scores = scores + self.rel_bias(rows).permute(2, 0, 1)\n"
     "        hidden ="),
)  # fmt: skip
FINE = changed(
    PLAIN, ("softmax(dim=-1)", "softmax(-1, dtype=torch.float32).to(v.dtype)")
)
PAIRS = [
    (SLICES, {}, " / self.head_dim**0.5", "", "scale_missing"),
    (WIDE, {}, "z.repeat_interleave(2, 1)", "z.repeat(1, 2, 1, 1)", "groups_tiled"),
    (PADDED, {}, " / self.head_dim**0.5", "", "scale_missing"),
    (IMAGE, {"causal": False, "window_size": 4}, "/ self.head_dim**0.5",
     "* self.head_dim**0.5", "scale_multiplied"),
    (MAPPED, {}, " / self.head_dim**0.5", "", "scale_missing"),
    (CROSS, {"causal": False}, " / self.head_dim**0.5", "", "scale_missing"),
    (CROSS, {"memory": 6}, " / self.head_dim**0.5", "", "scale_missing"),
    (ADDED, {}, "bias = bias + attn_mask", "bias += attn_mask", "keeps_state"),
    (TOLD, {}, "view(b, self.n_heads, t, t).mean(1)",
     "view(self.n_heads, b, t, t).mean(0)", "samples_mixed"),
    (BUCKETS, {}, "tensor(self.max_distance / half)", "tensor(1.0 * self.max_distance)",
     "distances_lost"),
    (FINE, {}, ".to(v.dtype)", "", "dtype_stays_behind"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "options", "right", "wrong", "mistake"), PAIRS)
def test_the_right_one_passes_and_the_wrong_one_is_named(
    source, options, right, wrong, mistake
):
    report = attncheck.check(compiled(HEADER + source, "ways.py"), **options)
    assert report.ok, str(report)
    bad = changed(source, (right, wrong))
    report = attncheck.check(compiled(HEADER + bad, "ways.py"), **options)
    assert [f.mistake for f in report.findings if f.severity == "error"] == [mistake]


CLIPPED = changed(
    PLAIN,
    ("d_model, n_heads)", "d_model, n_heads, max_distance=3)"),
    ('for _ in "qkvo")', 'for _ in "qkvo")\n'
     "        self.far = max_distance\n"
     "        self.rel_bias = nn.Embedding(2 * max_distance + 1, n_heads)"),
    ("        hidden =", "        i = torch.arange(t, device=x.device)\n"
     "        rows = (i - i[:, None]).clamp(-self.far, self.far) + self.far\n"
     "        scores = scores + self.rel_bias(rows).permute(2, 0, 1)\n"
     "        hidden ="),
)  # fmt: skip
STACKED = changed(
    PLAIN,
    ("return self.out((weights @ v).transpose(1, 2).reshape(b, t, c))",
     "y = (weights @ v).transpose(1, 2).reshape(b, t, c)\n"
     "        return self.out(y), torch.stack([q, k, v])"),
)  # fmt: skip


@pytest.mark.parametrize("source", [CLIPPED, STACKED])
def test_what_only_looks_alike_passes(source):
    report = attncheck.check(compiled(HEADER + source, "ways.py"))
    assert report.ok, str(report)


def test_a_table_that_is_added_is_proposed_as_a_bias():
    source = changed(
        PLAIN,
        ('for _ in "qkvo")', 'for _ in "qkvo")\n'
         '        self.register_buffer("apart", torch.randn(n_heads, 32, 32))'),
        ("/ self.head_dim**0.5", "/ self.head_dim**0.5 + self.apart[:, :t, :t]"),
    )  # fmt: skip
    cls = compiled(HEADER + source, "ways.py")
    report = attncheck.check(cls)
    assert report.verdict == "not judged"
    assert "bias=lambda module, t: module.apart[..., :t, :t]" in report.command
    bias = eval(report.proposal["bias"])
    assert attncheck.check(cls, bias=bias).ok
    bad = compiled(HEADER + changed(source, ("scores.masked", "(-scores).masked")), "b")
    assert attncheck.check(bad, bias=bias).verdict == "failed"


def test_heads_that_may_share_keys_are_tried_sharing_them():
    optional = BASES["grouped"][0].replace("n_kv_heads=2", "n_kv_heads=None")
    optional = optional.replace(
        "= n_heads, n_kv_heads\n",
        "= n_heads, n_kv_heads or n_heads\n        n_kv_heads = self.n_kv_heads\n",
    )
    right = attncheck.check(compiled(HEADER + optional, "optional.py"))
    assert right.exit_status == 0
    tiled = optional.replace(
        ".repeat_interleave(repeats, dim=1)", ".repeat(1, repeats, 1, 1)"
    )
    report = attncheck.check(compiled(HEADER + tiled, "optional.py"))
    assert [finding.mistake for finding in report.findings] == ["groups_tiled"]
