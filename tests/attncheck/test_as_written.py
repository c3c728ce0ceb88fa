"""Ways to write a layer that were met in the open, right and with a mistake in them."""

import pytest

import attncheck
from attncheck.probes.settings import BLOCK
from tests.attncheck.plain import PLAIN, made
from tests.attncheck.test_edges import CAUSAL, outcome

ARGUMENT = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h, self.p = n_heads, nn.Dropout(0.1)
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))

    def forward(self, query, key, value, mask=None):
        b, t, d = query.shape
        q, k, v = (f(x).view(b, -1, self.h, d // self.h).transpose(1, 2)
                   for f, x in ((self.q, query), (self.k, key), (self.v, value)))
        s = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            s = s.masked_fill(mask.unsqueeze(1) == 0, -1e9)
        w = s.softmax(-1)
        return self.o((self.p(w) @ v).transpose(1, 2).reshape(b, t, d))
"""


def test_what_a_mask_does_is_told_and_not_that_none_was_passed():
    assert outcome(made(ARGUMENT)) == (0, [])
    late = made(
        ARGUMENT,
        ("        s = q @", "        w = (q @"), ("** 0.5\n", "** 0.5).softmax(-1)\n"),
        ("s = s.masked_fill(mask.unsqueeze(1) == 0, -1e9)",
         "w = w.masked_fill(mask.unsqueeze(1) == 0, 0.0)"),
        ("        w = s.softmax(-1)\n", ""),
    )  # fmt: skip
    assert outcome(late) == (1, ["mask_after_softmax"])


def test_a_flag_for_the_future_may_be_misspelled():
    flag = CAUSAL.replace("self, x)", "self, x, casual_mask=False)").replace(
        "w = s.masked_fill(i > i[:, None], -torch.inf)",
        "w = s.masked_fill(i > i[:, None], -torch.inf) if casual_mask else s\n"
        "        w = w",
    )
    assert outcome(made(flag)) == (0, [])
    assert outcome(made(flag, ("if casual_mask", "if False"))) == (1, ["mask_missing"])


def test_a_rate_that_drops_most_weights_has_to_be_asked_for():
    keeps = ("nn.Dropout(0.1)", "nn.Dropout(1.0 - 0.1)")
    assert outcome(made(ARGUMENT, keeps), causal=False) == (
        1, ["dropout_rate_ignored"])  # fmt: skip
    asked = made(ARGUMENT, ("d, n_heads)", "d, n_heads, rate=0.9)"),
                 ("nn.Dropout(0.1)", "nn.Dropout(rate)"))  # fmt: skip
    assert outcome(asked, causal=False) == (0, [])


def test_keys_and_values_of_the_queries_own_tokens_ignore_the_memory():
    pairs = "((self.q, query), (self.k, key), (self.v, value))"
    alone = made(ARGUMENT, (pairs, "((f, query) for f in (self.q, self.k, self.v))"))
    assert outcome(alone, causal=False) == (1, ["cross_ignores_memory"])
    keys = made(ARGUMENT, ("(self.k, key)", "(self.k, query)"))
    assert outcome(keys, causal=False) == (1, ["projection_mixed_up"])


def test_what_fails_with_gradients_alone_is_no_matter_of_sizes():
    order = "permute(2, 0, 3, 1, 4)"
    split = made(PLAIN, (order, f"{order}.unbind(0)\n        q *= 1.0"))
    report = attncheck.check(split, d=16, n_heads=4, causal=False)
    assert [one.mistake for one in report.findings] == ["backward_raises"]


def test_biases_that_are_plain_tensors_are_not_saved():
    values = PLAIN.replace("q, k, v = self.qkv(x)", "y = self.qkv(x) + self.qkv_bias\n"
                           "        q, k, v = y")  # fmt: skip
    own = "Linear(d, d)\n        self.qkv_bias = torch.zeros(3 * d)\n"
    found = [
        one.mistake
        for one in attncheck.check(
            made(values, ("Linear(d, d)\n", own)), d=16, n_heads=4, causal=False
        ).findings
    ]
    assert found[:1] == ["weights_not_saved"]
    learned = own.replace("torch.zeros(3 * d)", "nn.Parameter(torch.zeros(3 * d))")
    assert outcome(made(values, ("Linear(d, d)\n", learned)), causal=False) == (0, [])


def test_what_dropout_changes_in_place_softmax_may_need():
    rate = ("d, n_heads)", "d, n_heads, dropout=0.1)")
    asked = made(ARGUMENT, rate, ("nn.Dropout(0.1)", "nn.Dropout(dropout)"))
    assert outcome(asked, causal=False) == (0, [])
    changed = ("nn.Dropout(0.1)", "nn.Dropout(dropout, inplace=True)")
    asked = made(ARGUMENT, rate, changed)
    assert outcome(asked, causal=False) == (1, ["backward_raises"])


@pytest.mark.parametrize("name", ["block_rows", "tile_cols", "chunk_q", "block_m"])
def test_blocks_may_be_named_by_what_they_hold(name):
    assert BLOCK.search(name)
    assert not BLOCK.search("n_blocks")


def test_heads_may_keep_their_axis_as_far_as_the_output_projection():
    tail = "        y = (w @ v).transpose(1, 2).reshape(b, t, self.h, d // self.h)\n"
    source = (
        """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h = n_heads
        self.a, self.b, self.c = (
            nn.Parameter(torch.randn(d, n_heads, d // n_heads) / d**0.5)
            for _ in range(3))
        self.out = nn.Parameter(torch.randn(n_heads, d // n_heads, d) / d**0.5)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (torch.einsum("btd,dhe->bthe", x, one)
                   for one in (self.a, self.b, self.c))
        s = torch.einsum("bqhe,bkhe->bhqk", q, k) / (d // self.h) ** 0.5
        i = torch.arange(t, device=x.device)
        w, v = s.masked_fill(i > i[:, None], -torch.inf).softmax(-1), v.transpose(1, 2)
"""
        + tail
        + """\
        return torch.einsum("bthe,hed->btd", y, self.out)
"""
    )
    assert outcome(made(source), d=32, n_heads=4) == (0, [])
    viewed = made(
        source, (".transpose(1, 2).reshape(b, t, self.h", ".reshape(b, t, self.h")
    )
    assert outcome(viewed, d=32, n_heads=4) == (1, ["join_viewed"])


def test_the_width_of_a_head_that_was_guessed_follows_the_others():
    # A view with -1 takes any width, and mixes up tokens where it is wrong.
    wide = made(PLAIN, ("d, n_heads)", "d, n_heads, d_k)"),
                ("self.h = n_heads", "self.h, self.d_k = n_heads, d_k"),
                ("(b, t, 3, self.h, -1)", "(b, -1, 3, self.h, self.d_k)"))  # fmt: skip
    assert outcome(wide, causal=False) == (0, [])


def test_a_norm_that_no_input_goes_through_is_named():
    norm = ("self.h = n_heads", "self.h, self.norm = n_heads, nn.LayerNorm(d)")
    assert outcome(made(PLAIN, norm), causal=False) == (1, ["prenorm_unused"])


def test_padding_in_rows_is_told_where_positions_follow_the_mask_as_well():
    turned = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h, self.qkv, self.o = n_heads, nn.Linear(d, 3 * d), nn.Linear(d, d)

    def turned(self, x, i):
        steps = torch.arange(0, x.shape[-1], 2, device=x.device) / x.shape[-1]
        angles = i[:, None, :, None] * 1e4**-steps
        angles = torch.cat([angles, angles], -1)
        one, two = x.chunk(2, -1)
        y = x * angles.cos() + torch.cat([-two, one], -1) * angles.sin()
        return y.to(x.dtype)

    def forward(self, x, attention_mask=None):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        i = torch.arange(t, device=x.device).expand(b, t)
        see = torch.ones(t, t, dtype=torch.bool, device=x.device).tril()
        if attention_mask is not None:
            i = (attention_mask.long().cumsum(-1) - 1).clamp(min=0)
            see = see & attention_mask.bool()[:, None, None, :]
            see = see | torch.eye(t, dtype=torch.bool, device=x.device)
        y = F.scaled_dot_product_attention(
            self.turned(q, i), self.turned(k, i), v, attn_mask=see)
        return self.o(y.transpose(1, 2).reshape(b, t, d))
"""
    rows = made(turned, ("[:, None, None, :]\n", "[:, None, :, None]\n"))

    def call(module, x, mask):
        return module(x, attention_mask=mask)

    given = {"hidden": False, "left": True, "call": call}
    assert outcome(made(turned)) == outcome(made(turned), "check_padding", **given)
    assert outcome(rows) == (1, ["padding_rows"])
    assert outcome(rows, "check_padding", **given) == (1, ["padding_rows"])


NEAR = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads, qk_norm=False):
        super().__init__()
        self.h, self.qkv, self.o = n_heads, nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.q_norm, self.k_norm = (
            nn.LayerNorm(d // n_heads) if qk_norm else nn.Identity() for _ in range(2))
        self.rel_bias = nn.Embedding(65, n_heads)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        i = torch.arange(t, device=x.device)
        near = self.rel_bias((i[:, None] - i).clamp(-32, 32) + 32).permute(2, 0, 1)
        s = self.q_norm(q) * (d // self.h) ** -0.5 @ self.k_norm(k).mT + near
        return self.o((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))
"""


def test_a_bias_that_was_found_stays_where_a_setting_is_tried():
    report = attncheck.check(made(NEAR), causal=False)
    assert report.exit_status == 0
    shared = made(NEAR, ("self.k_norm(k)", "self.q_norm(k)"))
    assert attncheck.check(shared, causal=False).exit_status == 1


VOXELS = """\
class Attention(nn.Module):
    def __init__(self, dim, heads, reduction_ratio):
        super().__init__()
        self.h = heads
        self.q = nn.Conv3d(dim, dim, 1)
        self.kv = nn.Conv3d(dim, 2 * dim, reduction_ratio, stride=reduction_ratio)
        self.o = nn.Conv3d(dim, dim, 1)

    def forward(self, x):
        q, (k, v) = self.q(x), self.kv(x).chunk(2, dim=1)
        q, k, v = (y.flatten(2).unflatten(1, (self.h, -1)).mT for y in (q, k, v))
        w = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        return self.o((w @ v).mT.flatten(1, 2).view_as(x))
"""


def test_voxels_are_tokens_and_a_ratio_that_reduces_is_1():
    assert outcome(made(VOXELS), causal=False) == (0, [])
    heads = made(VOXELS, ("softmax(-1)", "softmax(1)"))
    assert outcome(heads, causal=False) == (1, ["softmax_over_heads"])


def test_a_bias_that_is_the_same_at_all_distances_is_told_under_any_name():
    one = (
        ("self.rel_bias = nn.Embedding(65, n_heads)",
         "self.recency = nn.Parameter(torch.randn(n_heads, 32))"),
        ("near = self.rel_bias((i[:, None] - i).clamp(-32, 32) + 32).permute(2, 0, 1)",
         "near = self.recency[:, (i[:, None] - i).clamp(0, 31)]"),
        ("(s.softmax(-1)", "(s.masked_fill(i > i[:, None], -torch.inf).softmax(-1)"),
    )  # fmt: skip
    assert outcome(made(NEAR, *one)) == (0, [])
    back = made(NEAR, *one, ("[:, (i[:, None] - i)", "[:, (i - i[:, None])"))
    assert outcome(back) == (1, ["distances_lost"])


def test_the_length_of_a_block_is_not_the_width_of_a_head():
    # "block_size" ends in "k_size", and other sizes must leave it as it is.
    block = """\
class Config:
    block_size: int = 256
    n_head: int = 6
    n_embd: int = 384


class Attention(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        d, self.h, t = config.n_embd, config.n_head, config.block_size
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.register_buffer("mask", torch.ones(t, t).tril() == 0)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        s = q @ k.mT / q.shape[-1] ** 0.5
        w = s.masked_fill(self.mask[:t, :t], -torch.inf).softmax(-1)
        return self.proj((w @ v).transpose(1, 2).reshape(b, t, d))
"""
    assert outcome(made(block)) == (0, [])


CAPPED = CAUSAL.replace("d, n_heads)", "d, n_heads, attn_softcap=10000.0)").replace(
    "self.h = n_heads", "self.h, self.cap = n_heads, attn_softcap"
)


def test_a_cap_that_no_score_comes_near_acts_all_the_same():
    acts = ("** 0.5\n", "** 0.5\n        s = self.cap * torch.tanh(s / self.cap)\n")
    assert outcome(made(CAPPED, acts)) == (0, [])
    assert outcome(made(CAPPED))[0] == 3


MERGED = CAUSAL.replace("self, x)", "self, x, padding_mask=None)").replace(
    "w = s.masked_fill(i > i[:, None], -torch.inf).softmax(-1)",
    "gone = i > i[:, None]\n"
    "        if padding_mask is not None:\n"
    "            gone = gone | padding_mask[:, None, None, :]\n"
    "        w = s.masked_fill(gone, -1e9).softmax(-1)",
)


def test_masks_of_which_both_have_to_hide_show_the_future():
    assert outcome(made(MERGED)) == (0, [])
    both = made(MERGED, ("gone | padding", "gone & padding"))
    assert outcome(both) == (1, ["padding_future"])


def test_a_tensor_that_needs_a_gradient_is_a_parameter():
    scale = ("self.h = n_heads", "self.h, self.a = n_heads, "
             "torch.ones(n_heads, 1, 1).requires_grad_()")  # fmt: skip
    used = ("** 0.5\n", "** 0.5 * self.a\n")
    assert outcome(made(PLAIN, scale, used), causal=False) == (1, ["weights_not_saved"])
    held = made(PLAIN, (scale[0], "self.h, self.a = n_heads, "
                        "nn.Parameter(torch.ones(n_heads, 1, 1))"), used)  # fmt: skip
    assert "weights_not_saved" not in outcome(held, causal=False)[1]


BUCKETS = (
    ("self.rel_bias = nn.Embedding(65, n_heads)",
     "self.rel_bias, self.n = nn.Embedding(32, n_heads), 32"),
    ("        near = self.rel_bias((i[:, None] - i).clamp(-32, 32) + 32)",
     "        buckets = self.n // 2\n"
     "        far = i - i[:, None]\n"
     "        near = far.abs().clamp(max=buckets - 1) + (far > 0) * buckets\n"
     "        near = self.rel_bias(near)"),
)  # fmt: skip


def test_buckets_of_later_tokens_are_the_second_half():
    assert outcome(made(NEAR, *BUCKETS), causal=False) == (0, [])
    lost = made(NEAR, *BUCKETS, (" + (far > 0) * buckets", ""))
    assert outcome(lost, causal=False) == (1, ["distances_lost"])


def test_a_setting_may_ask_for_products_that_are_not_scaled():
    words = (("d, n_heads)", 'd, n_heads, score="dot_product")'),
             ("self.h = n_heads", "self.h, self.score = n_heads, score"),
             ("        s = q @ k.mT / q.shape[-1] ** 0.5\n",
              "        s = q @ k.mT\n"
              '        if self.score == "scaled_dot_product":\n'
              "            s = s / q.shape[-1] ** 0.5\n"))  # fmt: skip
    assert outcome(made(PLAIN, *words), causal=False) == (3, [])
    none = made(PLAIN, words[2], ("self.score ==", "'' =="))
    assert outcome(none, causal=False) == (1, ["scale_missing"])


def test_what_projects_nothing_may_take_all_three_in_one():
    one = """\
class Attention(nn.Module):
    def forward(self, qkv):
        q, k, v = qkv.chunk(3, dim=1)
        s = torch.einsum("bct,bcs->bts", q, k) / q.shape[1] ** 0.5
        return torch.einsum("bts,bcs->bct", s.softmax(-1), v)
"""
    assert outcome(made(one), causal=False) == (0, [])
    scale = made(one, ("** 0.5", "** 1.0"))
    assert outcome(scale, causal=False) == (1, ["scale_twice"])


BARE = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h = n_heads
        self.dense_q, self.dense_k, self.dense_v = (nn.Linear(d, d) for _ in range(3))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (torch.cat(f(x).chunk(self.h, 2), 0)
                   for f in (self.dense_q, self.dense_k, self.dense_v))
        w = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        return torch.cat((w @ v).chunk(self.h, 0), 2) + x
"""


def test_projected_queries_are_not_what_a_residual_adds():
    assert outcome(made(BARE), causal=False)[1] == []
    moved = made(BARE, ("0), 2) + x", "0), 2) + self.dense_q(x)"))
    assert outcome(moved, causal=False) == (1, ["residual_moved"])


DENSE = """\
class Dense(nn.Module):
    def __init__(self, taken, made):
        super().__init__()
        self.axes = len(taken)
        self.kernel = nn.Parameter(torch.randn(*taken, *made) / taken[0] ** 0.5)
        self.bias = nn.Parameter(torch.zeros(*made))

    def forward(self, x):
        return torch.tensordot(x, self.kernel, dims=self.axes) + self.bias


class Attention(nn.Module):
    def __init__(self, d, n_heads, dropout_rate=0.1):
        super().__init__()
        heads, self.rate = (n_heads, d // n_heads), dropout_rate
        self.a, self.b, self.c = (Dense((d,), heads) for _ in range(3))
        self.out = Dense(heads, (d,))

    def forward(self, x):
        q, k, v = self.a(x), self.b(x), self.c(x)
        w = torch.einsum("bqhd,bkhd->bhqk", q / q.shape[-1] ** 0.5, k).softmax(-1)
        if self.training and self.rate:
            kept = torch.rand(1, 1, *w.shape[2:], device=w.device) < 1 - self.rate
            w = w * kept / (1 - self.rate)
        return self.out(torch.einsum("bhqk,bkhd->bqhd", w, v))
"""


def test_one_mask_of_dropout_may_serve_the_whole_batch():
    given = {"causal": False, "d": 32, "n_heads": 4}
    assert outcome(made(DENSE), **given) == (0, [])
    whole = made(DENSE, ("w * kept / (1 - self.rate)", "w * kept"))
    assert outcome(whole, **given) == (1, ["dropout_not_rescaled"])


def test_a_share_to_keep_is_not_one_to_drop():
    keep = (
        ("d, n_heads)", "d, n_heads, keep_prob=0.9)"),
        ("n_heads, nn.Dropout(0.1)", "n_heads, 1 - keep_prob"),
        ("self.p(w)", "F.dropout(w, self.p, self.training)"),
    )
    assert outcome(made(ARGUMENT, *keep), causal=False) == (0, [])
    drop = made(ARGUMENT, *keep, ("n_heads, 1 - keep_prob", "n_heads, keep_prob"))
    assert outcome(drop, causal=False) == (1, ["dropout_rate_ignored"])


def test_a_flag_that_hides_the_future_is_not_given_with_a_memory():
    either = (
        ("query, key, value, mask=None)", "query, kv=None, causal=False)"),
        ("        b, t, d = query.shape\n",
         "        b, t, d = query.shape\n"
         "        key = value = query if kv is None else kv\n"),
        ("if mask is not None:", "if causal:"),
        ("s.masked_fill(mask.unsqueeze(1) == 0, -1e9)",
         "s.masked_fill(torch.ones_like(s).triu(1) == 1, -1e9)"),
    )  # fmt: skip
    assert outcome(made(ARGUMENT, *either)) == (0, [])
    masked = made(ARGUMENT, *either, ("if causal:", "if causal or kv is not None:"))
    assert outcome(masked) == (1, ["cross_masked"])


def test_sizes_of_sets_are_lengths():
    sizes = (
        ("query, key, value, mask=None)", "x, sizes=None)"),
        ("b, t, d = query.shape", "(b, t, d), query, key, value = x.shape, x, x, x"),
        ("if mask is not None:", "if sizes is not None:"),
        ("mask.unsqueeze(1) == 0",
         "(torch.arange(t, device=x.device) >= sizes[:, None])[:, None, None]"),
    )  # fmt: skip
    assert outcome(made(ARGUMENT, *sizes), causal=False) == (0, [])
    other = made(ARGUMENT, *sizes, (">= sizes[:, None]", ">= sizes.flip(0)[:, None]"))
    assert outcome(other, causal=False) == (1, ["padding_batch"])


T5 = """\
class T5Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h, self.qkv = n_heads, nn.Linear(d, 3 * d, bias=False)
        self.relative_attention_bias = nn.Embedding(15, n_heads)
        self.o = nn.Linear(d, d, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        i = torch.arange(t, device=x.device)
        apart = (i - i[:, None]).clamp(-7, 7) + 7
        bias = self.relative_attention_bias(apart).permute(2, 0, 1)
        y = F.scaled_dot_product_attention(
            q, k, v, attn_mask=bias.expand(b, -1, -1, -1).to(q), scale=1.0)
        return self.o(y.transpose(1, 2).reshape(b, t, d))


Attention = T5Attention
"""


def test_what_a_layer_called_t5_does_not_do():
    assert outcome(made(T5), causal=False) == (0, [])
    scaled = (", scale=1.0", "")
    assert outcome(made(T5, scaled), causal=False) == (1, ["scale_other"])
    like = T5.replace("T5", "T5Style")
    assert outcome(made(like, scaled), causal=False) == (0, [])


BANDED = CAUSAL.replace("d, n_heads)", "d, n_heads, window=4)").replace(
    "        self.h =", "        self.window = window\n        self.h ="
).replace(
    "i > i[:, None],", "(i > i[:, None]) | (i[:, None] - i >= self.window),"
)  # fmt: skip


def test_a_window_that_is_compared_with_distances_has_to_hide():
    assert outcome(made(BANDED), window=4) == (0, [])
    turned = made(BANDED, ("(i[:, None] - i >=", "(i - i[:, None] >="))
    assert outcome(turned) == (1, ["window_unused"])
    # Some layers of a model have one, and others only keep its size.
    kept = made(BANDED, (" | (i[:, None] - i >= self.window)", ""))
    report = attncheck.check(kept)
    told = {f.mistake: f.severity for f in report.findings}
    assert (report.exit_status, told["window_unused"]) == (0, "warning")


FOLDED = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h = n_heads
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))

    def forward(self, x, present=None):
        q, k, v = (torch.cat(f(x).chunk(self.h, dim=2))
                   for f in (self.q, self.k, self.v))
        s = q @ k.mT / q.shape[-1] ** 0.5
        if present is not None:
            s = s.masked_fill((~present)[:, None].repeat(self.h, 1, 1), -1e9)
        return self.o(torch.cat((s.softmax(-1) @ v).chunk(self.h), dim=2))
"""


def test_a_mask_may_be_called_by_what_is_there():
    folded = (".repeat(self.h, 1, 1)", ".repeat_interleave(self.h, 0)")
    for name in ("present", "observed", "is_real"):
        text = FOLDED.replace("present", name)
        assert outcome(made(text), causal=False) == (0, [])
        wrong = made(text, folded)
        assert outcome(wrong, causal=False) == (1, ["padding_batch"])


SUMMED = """\
class Attention(nn.Module):
    def __init__(self, d, dropout=0.1):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        self.p, self.drop = nn.Dropout(dropout), nn.Dropout(dropout)
        self.norm = nn.LayerNorm(d)

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        w = self.p((q @ k.mT / q.shape[-1] ** 0.5).softmax(-1))
        y = self.drop(self.o(w @ v))
        y += x
        return self.norm(y)
"""


def test_the_input_may_be_added_in_place_to_what_dropout_gave():
    declared = {"causal": False, "residual": True, "postnorm": "layer"}
    assert outcome(made(SUMMED), **declared) == (0, [])
    both = ("y = self.drop(self.o(w @ v))\n        y += x",
            "y = self.drop(self.o(w @ v) + x)")  # fmt: skip
    assert outcome(made(SUMMED, both), **declared) == (1, ["dropout_elsewhere"])


def test_room_for_some_sequences_is_no_mistake():
    few = made(ARGUMENT, ("        s = q @", "        assert b <= 64\n        s = q @"))
    assert outcome(few, causal=False) == (0, [])


def test_what_was_computed_may_come_behind_a_cache():
    ported = PLAIN.replace("        return self", "        return None, self")
    assert outcome(made(ported), causal=False) == (0, [])
    unscaled = made(ported, (" / q.shape[-1] ** 0.5", ""))
    assert outcome(unscaled, causal=False) == (1, ["scale_missing"])


FUNCTIONAL = (
    PLAIN.replace("d, n_heads)", "d, n_heads, rate=0.1)")
    .replace("        self.h =", "        self.rate = rate\n        self.h =")
    .replace("s.softmax(-1)", "F.dropout(s.softmax(-1), RATE, self.training)")
)


def test_a_share_to_keep_is_none_to_drop_without_a_module_either():
    right = made(FUNCTIONAL.replace("RATE", "self.rate"))
    assert outcome(right, causal=False) == (0, [])
    kept = made(FUNCTIONAL.replace("RATE", "1.0 - self.rate"))
    assert outcome(kept, causal=False) == (1, ["dropout_rate_ignored"])


CHUNKED = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads, query_chunk=1024):
        super().__init__()
        self.h, self.n = n_heads, query_chunk
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))

    def attend(self, q, k, v):
        return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v

    def forward(self, x, context=None):
        b, t, d = x.shape
        context = x if context is None else context
        q, k, v = (f(one).view(b, -1, self.h, d // self.h).transpose(1, 2)
                   for f, one in ((self.q, x), (self.k, context), (self.v, context)))
        y = torch.zeros_like(q)
        for i in range(0, t, self.n):
            y[:, :, i : i + self.n] = self.attend(q[:, :, i : i + self.n], k, v)
        return self.o(y.transpose(1, 2).reshape(b, t, d))
"""


def test_the_last_chunk_of_queries_counts_and_so_does_a_memory():
    assert outcome(made(CHUNKED), causal=False) == (0, [])
    short = ("range(0, t, self.n)", "range(0, max(t - t % self.n, 1), self.n)")
    assert outcome(made(CHUNKED, short), causal=False) == (1, ["differs"])
    swapped = ("x if context is None else context", "context if x is None else x")
    assert outcome(made(CHUNKED, swapped), causal=False) == (
        1, ["cross_ignores_memory"])  # fmt: skip


PIXELS = """\
class Attention(nn.Module):
    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.h, self.norm = heads, nn.GroupNorm(1, dim)
        self.to_qkv = nn.Conv1d(dim, 3 * dim, 1, bias=False)
        self.to_out = nn.Conv1d(dim, dim, 1)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.to_qkv(self.norm(x.mT)).view(b, 3, self.h, -1, t).unbind(1)
        self.map = (q.mT @ k * q.shape[2] ** -0.5).softmax(-1)
        y = torch.einsum("bhts,bhds->bhdt", self.map, v).reshape(b, c, t)
        return x + self.to_out(y).mT
"""


def test_a_third_of_a_convolution_without_a_gradient_is_named():
    right = attncheck.check(made(PIXELS), causal=False)
    assert [f for f in right.findings if f.severity == "error"] == []
    kept = made(PIXELS, ("softmax(-1)", "softmax(-1).detach()"))
    assert outcome(kept, causal=False) == (1, ["gradient_missing"])


def test_heads_that_attend_to_each_other_are_told_from_tokens_that_meet_nowhere():
    fused = PLAIN.replace("        s = q @ k.mT / q.shape[-1] ** 0.5\n", "")
    whole = "F.scaled_dot_product_attention(q, k, v)"
    fused = fused.replace("(s.softmax(-1) @ v)", whole)
    gated = fused.replace(
        "        self.h =", "        self.gate = nn.Linear(d, d)\n        self.h ="
    ).replace("return self.proj(", "return self.gate(x).sigmoid() * self.proj(")
    rows = ("permute(2, 0, 3, 1, 4)", "unbind(2)")
    kept = (".transpose(1, 2).reshape", ".reshape")
    wrong = made(gated, rows, kept)
    assert outcome(wrong, causal=False) == (1, ["heads_attend_heads"])
    report = attncheck.check(made(gated), causal=False)
    assert [f for f in report.findings if f.severity == "error"] == []


CONFIGURED = (
    "from dataclasses import dataclass\n\n\n@dataclass\nclass Args:\n"
    "    dim: int = 512\n    n_heads: int = 8\n    sliding_window: int = 4096\n\n\n"
) + BANDED.replace("(self, d, n_heads, window=4)", "(self, args: Args)").replace(
    "        super().__init__()\n",
    "        super().__init__()\n        d, n_heads = args.dim, args.n_heads\n",
).replace("= window\n", "= args.sliding_window\n")  # fmt: skip


def test_a_window_in_a_config_is_made_narrow_enough_to_be_seen():
    assert outcome(made(CONFIGURED)) == (0, [])
    turned = made(CONFIGURED, ("(i[:, None] - i >=", "(i - i[:, None] >="))
    assert outcome(turned) == (1, ["window_unused"])
