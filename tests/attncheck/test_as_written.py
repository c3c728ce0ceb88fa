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
