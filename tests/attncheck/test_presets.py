"""Presets build and call a class as check does, and fall back to what check finds."""

import pytest

import attncheck
from attncheck.mistakes import BASES, HEADER, compiled

MULTI, CACHED, PADDED, CROSS, PACKED = (
    BASES[name][0] for name in ("multi_head", "cached", "padded", "cross", "packed")
)

LATENT = (
    HEADER
    + """\
class Attention(nn.Module):
    def __init__(self, dim, heads, rank=16):
        super().__init__()
        self.heads = heads
        self.q_proj = nn.Linear(dim, dim, bias=False)
        self.kv_down = nn.Linear(dim, rank, bias=False)
        self.k_up = nn.Linear(rank, dim, bias=False)
        self.v_up = nn.Linear(rank, dim, bias=False)
        self.o_proj = nn.Linear(dim, dim, bias=False)

    def forward(self, x, cache=None):
        latent = new = self.kv_down(x)
        if cache is not None:
            latent = torch.cat((cache, latent), dim=1)
        q, k, v = (
            one.unflatten(2, (self.heads, -1)).transpose(1, 2)
            for one in (self.q_proj(x), self.k_up(latent), self.v_up(latent))
        )
        t, s = x.shape[1], latent.shape[1]
        mask = torch.ones(t, s, dtype=torch.bool, device=x.device).tril(s - t)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        y = self.o_proj(y.transpose(1, 2).flatten(2))
        return y, latent
"""
)
AVERAGED = (
    HEADER
    + """\
class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.w_q = nn.Linear(dim, dim)
        self.w_k = nn.Linear(dim, dim)
        self.w_v = nn.Linear(dim, dim)
        self.out_proj = nn.Linear(dim, dim)

    def forward(self, x):
        q, k = (
            one.unflatten(2, (self.heads, -1)).transpose(1, 2)
            for one in (self.w_q(x), self.w_k(x))
        )
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
        weights = weights.mean(dim=1)  # average over the heads
        return self.out_proj(weights @ self.w_v(x))
"""
)


def turned(source):
    """Return the class with the tokens in front, as PyTorch's own layer has them."""
    source = source.replace("b, t, _ = x.shape", "x = x.transpose(0, 1)\n        "
                            "b, t, _ = x.shape")  # fmt: skip
    return source.replace("return self.out(y)", "y = y.transpose(0, 1)\n        "
                          "return self.out(y)").replace(
        "return self.out((weights @ v).transpose(1, 2).reshape(b, t, -1))",
        "y = (weights @ v).transpose(1, 2).reshape(b, t, -1)\n"
        "        return self.out(y.transpose(0, 1))",
    )  # fmt: skip


def found(preset, source, **options):
    report = preset(compiled(HEADER + source, "preset.py"), **options)
    assert not any(result.outcome == "broken" for result in report.results)
    assert report.ok != bool(report.findings)
    return [finding.mistake for finding in report.findings]


@pytest.mark.parametrize(
    ("base", "preset", "right", "wrong", "mistake"),
    [
        (CACHED, attncheck.check_cache, "j > i", "j > i - old", "cache_mask_offset"),
        (PADDED, attncheck.check_padding, "hidden | padding_mask[:, None, None, :]",
         "hidden | padding_mask[:1, None, None, :]", "padding_batch"),
    ],
)  # fmt: skip
def test_presets_take_the_layouts_of_check(base, preset, right, wrong, mistake):
    source = turned(base)
    assert found(preset, source, layout="tbd") == []
    assert source.count(right) == 1
    assert found(preset, source.replace(right, wrong), layout="tbd") == [mistake]


def test_presets_guess_what_else_forward_takes():
    source = CACHED.replace("past=None", "cos, sin, past=None").replace(
        "        if past is not None",
        "        turn = lambda z: z * cos + torch.cat("
        "(-z[..., z.shape[-1] // 2 :], z[..., : z.shape[-1] // 2]), -1) * sin\n"
        "        q, k = turn(q), turn(k)\n"
        "        if past is not None",
    )
    assert found(attncheck.check_cache, source) == []
    wrong = source.replace("turn(q), turn(k)", "turn(q), k").replace(
        "        old = k.shape", "        k = turn(k) if past is None else k\n"
        "        old = k.shape"
    )  # fmt: skip
    assert found(attncheck.check_cache, wrong)[0].startswith("cache")


@pytest.mark.parametrize(
    "preset", [attncheck.check_cache, attncheck.check_padding, attncheck.check_cross]
)
def test_what_a_preset_cannot_test_is_judged_as_by_check_and_never_passes(preset):
    report = preset(compiled(HEADER + MULTI, "preset.py"))
    assert report.verdict == "not judged"
    assert report.findings == [] or preset is attncheck.check_cross
    assert "To get a verdict: say how to" in str(report)
    if preset is not attncheck.check_cross:  # which can't call a layer without memory
        wrong = MULTI.replace("dim=-1)", "dim=-2)")
        assert wrong != MULTI
        report = preset(compiled(HEADER + wrong, "preset.py"))
        assert report.exit_status == 1
        assert report.findings[0].mistake == "softmax_over_queries"
        assert "those of check ran instead" in report.not_compared


def test_padding_means_what_the_reader_says():
    keeps = PADDED.replace("| padding_mask[", "| ~padding_mask[")
    check = attncheck.check_padding
    assert found(check, PADDED, hidden=True) == []
    assert found(check, keeps, hidden=False) == []
    assert found(check, keeps, hidden=True) == ["padding_inverted"]
    assert found(check, PADDED, hidden=False) == ["padding_inverted"]

    def call(module, x, mask):
        return module(x, padding_mask=mask)

    assert found(check, PADDED, call=call) == []
    assert found(check, keeps, call=call) == ["padding_inverted"]


def test_a_mask_of_padding_is_tried_beside_a_causal_one():
    source = PADDED.replace("x, padding_mask=None", "x, attn_mask, padding_mask=None")
    source = source.replace("hidden = future.expand(b, 1, t, t)", "hidden = attn_mask")
    for check in (attncheck.check, attncheck.check_padding):
        assert found(check, source) == []
        wrong = source.replace("hidden = hidden | padding_mask[:, None, None, :]",
                               "pass")  # fmt: skip
        assert found(check, wrong) == ["padding_leaks"]


def test_cross_attention_keeps_its_mask_of_padding():
    source = CROSS.replace("x, memory)", "x, memory, memory_padding_mask=None)")
    source = source.replace(
        "        context = F.scaled_dot_product_attention(q, k, v)",
        "        seen = None\n"
        "        if memory_padding_mask is not None:\n"
        "            seen = ~memory_padding_mask[:, None, None, :]\n"
        "        context = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)",
    )
    assert found(attncheck.check_cross, source) == []
    wrong = source.replace("~memory_padding_mask[:, None, None, :]",
                           "~memory_padding_mask[:1, None, None, :]")  # fmt: skip
    assert found(attncheck.check_cross, wrong) == ["padding_batch"]


def test_a_cache_that_only_its_step_can_pass_is_judged():
    source = CACHED.replace("past=None", "past")
    source = source.replace("if past is not None", "if past[0] is not None")

    def step(module, chunk, past):
        return module(chunk, past or (None, None))

    assert found(attncheck.check_cache, source, step=step) == []
    wrong = source.replace("j > i", "j > i - old")
    assert found(attncheck.check_cache, wrong, step=step) == ["cache_mask_offset"]


def test_a_cache_of_the_new_tokens_alone_fails_where_nothing_joins_it():
    assert found(attncheck.check_cache, LATENT) == []
    forgets = LATENT.replace("return y, latent", "return y, new")
    assert found(attncheck.check_cache, forgets)[:1] == ["cache_forgets"]


def test_weights_averaged_over_heads_are_no_mistake_where_the_class_says_so():
    for source, status in (
        (AVERAGED, 3),
        (AVERAGED.replace("  # average over the heads", ""), 1),
    ):
        made = compiled(HEADER + source, "averaged.py")
        assert attncheck.check(made, causal=False).exit_status == status


@pytest.mark.parametrize(
    ("preset", "source", "right", "wrong", "mistake"),
    [
        ("check_cross", CROSS, "self.wv(memory)", "self.wk(memory)",
         "projection_mixed_up"),
        ("check_cross", CROSS, "t_k = memory", "memory = memory.detach()\n"
         "        t_k = memory", "gradient_missing"),
        ("check_cross", CROSS, "self.wk(memory)", "self.wk(memory[:1]).repeat(b, 1, 1)",
         "samples_mixed"),
        ("check_cache", CACHED, "self.d_head**0.5", "self.d_head", "scale_twice"),
        ("check_padding", PADDED, "self.d_head**0.5", "1", "scale_missing"),
    ],
)  # fmt: skip
def test_a_preset_passes_nothing_that_check_fails(
    preset, source, right, wrong, mistake
):
    assert right in source
    cls = compiled(HEADER + source.replace(right, wrong), "preset.py")
    report = getattr(attncheck, preset)(cls)
    assert (report.exit_status, report.findings[0].mistake) == (1, mistake)


def test_each_sequence_has_documents_of_its_own():
    assert found(attncheck.check, PACKED, documents=True) == []
    wrong = PACKED.replace("apart[:, None]", "apart[:1, None]")
    assert found(attncheck.check, wrong, documents=True) == ["samples_mixed"]


@pytest.mark.parametrize("mixed", ["keys", "values"])
def test_the_first_sequences_keys_and_values_are_for_the_first_alone(mixed):
    place = {"keys": "= self.W_key(x)", "values": "= self.W_value(x)"}[mixed]
    source = MULTI.replace(place, f"{place[:-1]}[:1]).repeat(b, 1, 1)")
    assert source != MULTI
    assert found(attncheck.check, source)[0] == "samples_mixed"
