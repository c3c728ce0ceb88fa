"""Masks of a memory, documents, caches and settings: what people pass besides x."""

import re

import pytest
import torch

import attncheck
from attncheck.mistakes import BASES, HEADER, PLANTED, compiled
from attncheck.probes.meaning import depends

CACHED, CROSS = (BASES[name][0] for name in ("cached", "cross"))
MEMORY = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h = n_heads
        self.w_q, self.w_o = nn.Linear(d, d), nn.Linear(d, d)
        self.w_kv = nn.Linear(d, 2 * d)

    def forward(self, x, memory, memory_mask=None):
        # memory_mask: (b, t_k), True where a token is real
        b, t, d = x.shape
        q = self.w_q(x).view(b, t, self.h, -1).transpose(1, 2)
        k, v = self.w_kv(memory).view(b, -1, 2, self.h, d // self.h).permute(
            2, 0, 3, 1, 4)
        s = q @ k.mT / q.shape[-1] ** 0.5
        if memory_mask is not None:
            s = s.masked_fill(~memory_mask.bool()[:, None, None], -torch.inf)
        return self.w_o((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))
"""
BOUNDS = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h = n_heads
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x, cu_seqlens=None):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        seen = torch.ones(t, t, dtype=torch.bool, device=x.device).tril()
        if cu_seqlens is not None:
            place = torch.arange(t, device=x.device)
            own = torch.bucketize(place, cu_seqlens[1:], right=True)
            seen = seen & (own[:, None] == own)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self.proj(y.transpose(1, 2).reshape(b, t, d))
"""
NUMBERED = BOUNDS.replace("cu_seqlens", "document_ids").replace(
    """\
            place = torch.arange(t, device=x.device)
            own = torch.bucketize(place, document_ids[1:], right=True)
            seen = seen & (own[:, None] == own)
""",
    """\
            own = document_ids
            seen = (seen & (own[:, :, None] == own[:, None]))[:, None]
""",
)
ROWS = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h = n_heads
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x, attention_mask=None):
        # attention_mask: 1 for real tokens, 0 for padding
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        s = q @ k.mT / q.shape[-1] ** 0.5
        if attention_mask is not None:
            s = s + (1 - attention_mask[:, None, None, :].to(s)) * -10000.0
        return self.proj((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))
"""


def errors(report):
    return [one.mistake for one in report.findings if one.severity == "error"]


def made(source, *change):
    assert not change or change[0] in source
    source = source.replace(*change) if change else source
    return compiled(HEADER + source, "passed.py")


@pytest.mark.parametrize(
    ("change", "expected"),
    [((), []),
     (("-torch.inf", "0.0"), ["mask_fill_zero"]),
     (("~memory_mask", "memory_mask"), ["padding_inverted"])],
)  # fmt: skip
def test_a_mask_of_the_memory_is_tried(change, expected):
    for check in (attncheck.check_cross, attncheck.check):
        assert errors(check(made(MEMORY, *change), causal=False)) == expected


def test_beside_a_mask_of_padding_another_hides_pairs():
    source = MEMORY.replace("memory_mask", "pad_mask")
    source = source.replace("pad_mask=None", "pad_mask=None, memory_mask=None")
    assert errors(attncheck.check_cross(made(source))) == []


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize(
    ("source", "wrong"),
    [(BOUNDS, ("own[:, None] == own", "own[:, None] >= own")),
     (NUMBERED, ("seen & (", "seen | ("))],
)  # fmt: skip
def test_documents_are_passed_where_forward_takes_them(source, wrong, declared):
    options = {"documents": True} if declared else {}
    assert errors(attncheck.check(made(source), **options)) == []
    report = attncheck.check(made(source, *wrong), **options)
    assert errors(report)[:1] == ["documents_unused"]


def test_what_is_added_to_all_scores_of_a_token_hides_nothing():
    assert errors(attncheck.check(made(ROWS), causal=False)) == []
    wrong = made(ROWS, "[:, None, None, :]", "[:, None, :, None]")
    assert errors(attncheck.check(wrong, causal=False)) == ["padding_rows"]


def test_the_preset_for_caches_takes_its_step_as_a_call_as_the_others_do():
    cls = made(CACHED)

    def step(module, chunk, past):
        return module(chunk, past)

    named = errors(attncheck.check_cache(cls, step=step))
    called = errors(attncheck.check_cache(cls, call=step))
    assert (named, called) == ([], [])
    wrong = made(CACHED, "j > i", "j > i - old")
    assert errors(attncheck.check_cache(wrong, call=step)) == ["cache_mask_offset"]


def test_a_dictionary_is_taken_for_a_config():
    source = """\
class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.h = config.n_heads
        self.qkv = nn.Linear(config.d_model, 3 * config.d_model)
        self.dropout = config.dropout

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        p = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=p)
        return y.transpose(1, 2).reshape(b, t, d)
"""
    report = attncheck.check(made(source), config={"d_model": 24, "n_heads": 3})
    assert report.exit_status == 0, str(report)
    assert "d_model=24, n_heads=3" in report.subject


STATIC = """\
class Slots:
    def __init__(self, b, h, length, d):
        self.k, self.v = torch.zeros(b, h, length, d), torch.zeros(b, h, length, d)

    def update(self, places, k, v):
        self.k[:, :, places], self.v[:, :, places] = k, v
        return self.k, self.v


class Attention(nn.Module):
    def __init__(self, d, n_heads, max_len=12):
        super().__init__()
        self.h, self.max_len = n_heads, max_len
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def make_cache(self, batch_size):
        width = self.proj.in_features // self.h
        return Slots(batch_size, self.h, self.max_len, width)

    def forward(self, x, input_pos=None, kv_cache=None):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        i = torch.arange(t, device=x.device) if input_pos is None else input_pos
        if kv_cache is not None:
            k, v = kv_cache.update(i, k, v)
        j = torch.arange(k.shape[2], device=x.device)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=j <= i[:, None])
        return self.proj(y.transpose(1, 2).reshape(b, t, d))
"""


def test_a_cache_with_room_for_all_tokens_is_made_as_the_class_makes_it():
    right = attncheck.check(made(STATIC))
    assert (errors(right), outcome(right)) == ([], "passed")
    # The rows of the mask begin with the first token in each step.
    wrong = attncheck.check(made(STATIC, "j <= i[:, None]", "j <= (i - i[0])[:, None]"))
    assert errors(wrong) == ["cache_mask_offset"]


def test_a_mask_that_hides_all_is_an_error_though_nothing_is_compared():
    wrong = made(STATIC, "j <= i[:, None]", "j < -i[:, None]")
    assert errors(attncheck.check(wrong))[:1] == ["tokens_not_mixed"]


def test_a_number_of_tokens_is_no_argument_that_a_constructor_passes_on():
    source = BOUNDS.replace("(self, d, n_heads):\n        super().__init__()",
                            "(self, d, n_heads, *args, **kwargs):\n"
                            "        super().__init__(*args, **kwargs)")  # fmt: skip
    assert "kwargs" in source
    report = attncheck.check(made(source), context_length=8)
    assert (report.exit_status, errors(report)) == (0, [])


def outcome(report):
    name = "the cache against the whole"
    return next(one.outcome for one in report.results if one.test == name)


KEPT = """
class Attention(torch.nn.Module):
    def __init__(self, d_in=16, most=32):
        super().__init__()
        self.qkv = torch.nn.Linear(d_in, 3 * d_in, bias=False)
        self.out = torch.nn.Linear(d_in, d_in)
        self.register_buffer("keys", torch.zeros(8, most, d_in))

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(x).chunk(3, -1)
        self.keys[:b, :t] = k
        hidden = torch.ones(t, t, dtype=torch.bool).triu(1)
        s = q @ self.keys[:b, :t].mT / q.shape[-1] ** 0.5
        return self.out(s.masked_fill(hidden, -torch.inf).softmax(-1) @ v)
"""


@pytest.mark.parametrize("kept", ["k", "k.detach()"])
def test_what_a_step_of_training_leaves_behind_breaks_the_next(kept):
    code = f"import torch\n{KEPT}".replace("] = k", f"] = {kept}")
    found = [f.mistake for f in attncheck.check(compiled(code, "x.py")).findings]
    assert ("backward_raises" in found) == (kept == "k")


class Sharp:
    """A layer whose first output hears of nobody among some tokens, or of none."""

    causal = False

    def __init__(self, deaf):
        self.deaf, self.drawn = deaf, 0

    def tokens(self, b=1, t=6, seed=0, size=1.0):
        self.drawn = seed if seed < 5 else self.drawn
        return torch.randn(b, t, 4, generator=torch.Generator().manual_seed(seed))

    def __call__(self, x):
        y = x.sum(dim=1, keepdim=True).expand_as(x).clone()
        if self.drawn in self.deaf:
            y[:, 0] = x[:, 0]
        return y


@pytest.mark.parametrize(("deaf", "all_heard"), [({0}, True), ({0, 1, 2}, False)])
def test_who_gets_no_weight_among_some_tokens_may_among_others(deaf, all_heard):
    assert bool(depends(Sharp(deaf)).all()) == all_heard


@pytest.mark.parametrize(
    ("change", "found"),
    [((), []),
     (("attention_mask[:, None, None, :]", "attention_mask.mul_(1)[:, None, None, :]"),
      []),
     (("        if attention_mask is not None:\n",
       "        if attention_mask is not None:\n"
       "            attention_mask.sub_(1).neg_().sub_(1).neg_()\n"), []),
     (("(1 - attention_mask[:, None, None, :].to(s))",
       "attention_mask.sub_(1).neg_()[:, None, None, :].to(s)"), ["changes_input"])],
)  # fmt: skip
def test_a_mask_is_the_same_after_the_call(change, found):
    cls = made(ROWS, *change)

    def call(module, x, mask):
        return module(x, attention_mask=mask.to(x))

    def checked(**options):
        return errors(attncheck.check_padding(cls, causal=False, **options))

    assert checked()[:1] == found
    assert checked(call=call, hidden=False)[:1] == found
    assert errors(attncheck.check(cls, causal=False)) == found


def test_a_mask_that_is_given_with_the_tokens_keeps_its_shape():
    source = ROWS.replace("attention_mask=None", "attention_mask")
    cls = made(
        source, "attention_mask[:, None, None, :]", "attention_mask.unsqueeze_(1)"
    )

    def call(module, x):
        return module(x, torch.ones(len(x), 1, x.shape[1]))

    report = attncheck.check(cls, causal=False, call=call)
    assert errors(report) == ["changes_input"]
    assert "from (3, 1, 6) to (3, 1, 1, 6)" in str(report)


def test_documents_of_one_call_are_unknown_to_the_next():
    kept = BOUNDS.replace(
        "        seen = torch.ones(t, t, dtype=torch.bool, device=x.device).tril()\n",
        "        if getattr(self, 'seen', x[0]).shape != (t, t):\n"
        "            self.seen = torch.ones(t, t, dtype=torch.bool).tril()\n"
        "        seen = self.seen.to(x.device)\n",
    )
    assert kept != BOUNDS
    change = "seen = seen & (own[:, None] == own)", "seen &= own[:, None] == own"
    for options in ({}, {"documents": True}):
        assert errors(attncheck.check(made(kept), **options)) == []
        found = errors(attncheck.check(made(kept, *change), **options))
        assert found[:1] == ["keeps_state"]


def test_documents_that_forward_asks_for_are_given():
    source = NUMBERED.replace("document_ids=None", "document_ids")
    assert attncheck.check(made(source)).exit_status == 0
    # All rows are cut where the first one is.
    wrong = made(source, "own = document_ids", "own = document_ids[:1]")
    assert errors(attncheck.check(wrong)) == ["samples_mixed"]
    unused = made(source, "(own[:, :, None] == own[:, None])", "(own >= 0)[:, None]")
    assert errors(attncheck.check(unused)) == ["documents_unused"]


WINDOWED = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads, window=4096):
        super().__init__()
        self.h, self.window = n_heads, window
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        # Each token sees `window` tokens, including itself.
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        i = torch.arange(t, device=x.device)
        back = i[:, None] - i
        seen = (back >= 0) & (back < self.window)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self.proj(y.transpose(1, 2).reshape(b, t, d))
"""
CONFIGURED = WINDOWED.replace(
    "d, n_heads, window=4096):",
    "config):\n        d, n_heads = config.d, config.n_heads\n"
    "        window = config.sliding_window",
)


@pytest.mark.parametrize(
    "config", [None, {"d": 24, "n_heads": 3, "sliding_window": 900}]
)
def test_a_window_of_thousands_is_tried_as_a_narrow_one(config):
    source = CONFIGURED if config else WINDOWED
    options = {"config": config} if config else {}
    size = config["sliding_window"] if config else 4096
    right = attncheck.check(made(source), **options)
    assert (errors(right), right.exit_status) == ([], 0)
    wrong = made(source, "back < self", "back <= self")
    report = attncheck.check(wrong, **options)
    assert (errors(report), report.exit_status) == ([], 3)
    assert f"a window of {size + 1} tokens, where {size} were asked for" in str(report)
    declared = attncheck.check(wrong, window=size, **options)
    assert errors(declared) == ["window_size"]
    assert "Built it with a window of 4" in str(declared)


ONLINE = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads, chunk=4):
        super().__init__()
        self.h, self.chunk = n_heads, chunk
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        most = q.new_full((b, self.h, t, 1), -1e9)
        total, out = torch.zeros_like(most), torch.zeros_like(q)
        i = torch.arange(t, device=x.device)
        for n in range(0, t, self.chunk):
            s = q @ k[:, :, n : n + self.chunk].mT / q.shape[-1] ** 0.5
            s = s.masked_fill(i[n : n + self.chunk] > i[:, None], -1e9)
            higher = torch.maximum(most, s.amax(-1, keepdim=True))
            share, p = (most - higher).exp(), (s - higher).exp()
            total = total * share + p.sum(-1, keepdim=True)
            out = out * share + p @ v[:, :, n : n + self.chunk]
            most = higher
        return self.proj((out / total).transpose(1, 2).reshape(b, t, d))
"""


def test_an_output_that_is_summed_up_in_chunks_is_a_mean():
    assert attncheck.check(made(ONLINE)).exit_status == 0
    for change in (("out * share", "out"), ("total * share", "total")):
        found = errors(attncheck.check(made(ONLINE, *change)))
        assert found == ["rows_do_not_sum_to_one"]
    # Here the rows do sum to 1.
    other = made(ONLINE, "/ q.shape[-1] ** 0.5", "* (q.shape[-1] ** 0.5)")
    found = errors(attncheck.check(other))
    assert found
    assert "rows_do_not_sum_to_one" not in found


@pytest.mark.parametrize("options", [{}, {"block_size": 4}])
def test_the_size_of_a_block_is_no_longest_input(options):
    source = ONLINE.replace("chunk=4", "block_size=128").replace(
        "n_heads, chunk", "n_heads, block_size"
    )
    assert attncheck.check(made(source), **options).exit_status == 0
    wrong = made(source, "out * share", "out")
    found = errors(attncheck.check(wrong, **options))
    assert found == ["rows_do_not_sum_to_one"]


BOTH = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h = n_heads
        self.w_q, self.w_o = nn.Linear(d, d), nn.Linear(d, d)
        self.w_kv = nn.Linear(d, 2 * d)

    def forward(self, x, memory=None):
        b, t, d = x.shape
        source = x if memory is None else memory
        q = self.w_q(x).view(b, t, self.h, -1).transpose(1, 2)
        k, v = self.w_kv(source).view(b, -1, 2, self.h, d // self.h).permute(
            2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=memory is None)
        return self.w_o(y.transpose(1, 2).reshape(b, t, d))
"""


def test_a_memory_that_may_be_left_out_is_seen_as_a_whole():
    cls = compiled(HEADER + BOTH, "both.py")
    report = attncheck.check(cls, d=16, n_heads=4, d_in=16)
    assert (report.exit_status, report.findings) == (0, [])
    wrong = BOTH.replace("is_causal=memory is None", "is_causal=True")
    report = attncheck.check(compiled(HEADER + wrong, "both.py"), d=16, n_heads=4)
    assert [one.mistake for one in report.findings] == ["cross_masked"]
    # A second stream with a token for each step of the first may be causal as well.
    aligned = wrong.replace(
        "        b, t", "        # memory: one for each time step\n        b, t"
    )
    report = attncheck.check(compiled(HEADER + aligned, "both.py"), d=16, n_heads=4)
    assert report.exit_status == 0


def test_a_mask_beside_the_readers_call_is_watched_as_well():
    # With call=, the mask is added to what the call gives.
    source = (
        BOUNDS.replace("cu_seqlens", "attention_mask").split("        if attention")[0]
        + """\
        if attention_mask is not None:
            hidden = attention_mask.bool().logical_not()
            seen = seen & ~hidden[:, None, None]
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self.proj(y.transpose(1, 2).reshape(b, t, d)), None
"""
    )
    options = {"call": lambda module, x: module(x)[0], "d": 16, "n_heads": 4}
    report = attncheck.check(compiled(HEADER + source, "called.py"), **options)
    assert not [one for one in report.findings if one.severity == "error"]
    wrong = source.replace("logical_not()", "logical_not_()")
    report = attncheck.check(compiled(HEADER + wrong, "called.py"), **options)
    assert "changes_input" in [one.mistake for one in report.findings]


LEFT = """\
class Attention(nn.Module):
    def __init__(self, d, n_heads):
        super().__init__()
        self.h = n_heads
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x, key_padding_mask=None):
        # key_padding_mask: (b, t), True where a token is padding
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        hidden = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        if key_padding_mask is not None:
            hidden = hidden | key_padding_mask[:, None, None]
            hidden = hidden & ~torch.eye(t, dtype=torch.bool, device=x.device)
        s = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(hidden, -torch.inf)
        return self.proj((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))
"""


def test_rows_of_padding_at_the_left_stay_finite_for_the_gradients():
    options = {"d": 16, "n_heads": 4, "d_in": 16}
    right, itself = compiled(HEADER + LEFT, "left.py"), "hidden & ~torch.eye"
    assert attncheck.check(right, **options).exit_status == 0
    assert attncheck.check_padding(right, **options).exit_status == 0
    source = LEFT.replace(
        f"            hidden = {itself}(t, dtype=torch.bool, device=x.device)\n", ""
    )
    assert source != LEFT
    wrong = compiled(HEADER + source, "left.py")
    for check, status in ((attncheck.check, 0), (attncheck.check_padding, 1)):
        report = check(wrong, **options)  # a warning where padding may come last
        assert [one.mistake for one in report.findings] == ["padding_not_finite"]
        assert report.exit_status == status


def test_what_says_that_a_cache_takes_one_token_and_what_does_not():
    bug = PLANTED["cache_mask_offset"]
    check = getattr(attncheck, bug.preset)
    for told, severity in (
        ("its keys end at the newest token", "error"),
        ("only the newest token is passed", "warning"),
        ("the mask is (b, 1, 1, t)", "error"),
        ("with a cache, keys are (b, h, 1, d)", "warning"),
    ):
        first = r"( +)(def forward.*:\n)"
        source = re.sub(first, rf"\1\2\1    # {told}\n", bug.source())
        assert told in source
        (one,) = check(compiled(source, f"{len(told)}.py"), **bug.settings).findings
        assert (one.mistake, one.severity) == ("cache_mask_offset", severity)
