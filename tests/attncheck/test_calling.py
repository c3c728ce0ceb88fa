"""Classes that need more than x, that have a cache, or that take a mask of padding."""

from dataclasses import dataclass

import pytest
import torch
from torch import nn

import attention
from attncheck.run import run_check
from coding_attention.gallery.planted import BASES, HEADER, compiled

FORWARD = """
class Attention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.h = n_heads
        self.q, self.k, self.v, self.out = (nn.Linear(d_model, d_model) for _ in "qkvo")

    def heads(self, x, layer):
        return layer(x).view(*x.shape[:2], self.h, -1).transpose(1, 2)

    def attend(self, q, k, v, hidden=None):
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if hidden is not None:
            scores = scores.masked_fill(hidden, -torch.inf)
        y = scores.softmax(-1) @ v
        return self.out(y.transpose(1, 2).flatten(2))

    def forward(self, {arguments}):
        q, k = self.heads({query}, self.q), self.heads({keys}, self.k)
        v = self.heads({values}, self.v)
        {code}
"""


def layer(arguments, *code, query="x", keys="x", values=None):
    text = ("\n" + 8 * " ").join(code)
    names = {"query": query, "keys": keys, "values": values or keys}
    source = FORWARD.format(arguments=arguments, code=text, **names)
    return compiled(HEADER + source, "called.py")


ASKED = {
    "a mask that hides": ("x, mask", "return self.attend(q, k, v, mask)"),
    "a mask that keeps": ("x, mask", "return self.attend(q, k, v, mask == 0)"),
    "a mask that is added": (
        "x, attention_mask", "return self.attend(q, k, v, attention_mask < 0)"),
    "a mask that may be left out": (
        "x, mask=None", "return self.attend(q, k, v, mask)"),
    "four axes": (
        "x, mask", "assert mask.dim() == 4", "return self.attend(q, k, v, mask)"),
    "a flag": (
        "x, causal_mask=False",
        "hidden = torch.ones(x.shape[1], x.shape[1]).bool().triu(1).to(x.device)",
        "return self.attend(q, k, v, hidden if causal_mask else None)"),
    "values, keys, queries": (
        "values, keys, query, mask", "return self.attend(q, k, v, mask)"),
}  # fmt: skip


@pytest.mark.parametrize("code", ASKED.values(), ids=ASKED)
def test_a_causal_mask_is_given_to_a_class_that_asks_for_one(code):
    given = ("query", "keys", "values") if "keys" in code[0] else ()
    others = {name: name for name in given}
    cls = layer(*code, **others)
    report = attention.check(cls)
    assert report.verdict == "passed", str(report)
    assert "forward was called with" in " ".join(report.notes)


def test_a_mask_that_changes_nothing_is_no_excuse():
    report = attention.check(layer("x, mask=None", "return self.attend(q, k, v)"))
    assert report.findings[0].mistake == "mask_missing", str(report)


def test_a_second_input_is_a_memory_of_its_own_width():
    code = "return self.attend(q, k, v)"
    cls = layer("x, context", code, keys="context")
    report = attention.check(cls, causal=False)
    assert report.verdict == "passed", str(report)
    assert (
        report.notes[0] == "forward was called with context=a memory with other tokens."
    )
    report = attention.check(layer("x, context", code.replace("q,", "q * 2,"),
                                   keys="context"), causal=False)  # fmt: skip
    assert report.verdict == "not judged"


CACHED = BASES["cached"][0]


def test_a_layer_s_own_method_makes_its_cache():
    """Which is of a class that wants to know how many tokens it is for."""
    held = """
class Held:
    def __init__(self, most):
        self.most, self.k, self.v, self.length = most, [], [], 0

    def append(self, k, v):
        self.k, self.v = [*self.k, k], [*self.v, v]
        return torch.cat(self.k, 2), torch.cat(self.v, 2)
"""
    old = CACHED.replace("past=None", "cache=None").replace(
        """        if past is not None:
            k = torch.cat([past[0], k], dim=2)
            v = torch.cat([past[1], v], dim=2)
""", """        if cache is not None:
            k, v = cache.append(k, v)
""").replace("self.out(y), (k, v)", "self.out(y)")  # fmt: skip
    old += "\n    def new_cache(self):\n        return Held(64)\n"
    assert attention.check(compiled(HEADER + held + old, "x.py")).findings == []
    wrong = held.replace("torch.cat(self.v, 2)", "torch.cat(self.v[::-1], 2)")
    report = attention.check(compiled(HEADER + wrong + old, "x.py"))
    assert [f.mistake for f in report.findings] == ["cache_order"], str(report)


def test_a_mask_that_makes_all_of_it_nan_hides_nothing():
    right = BASES["padded"][0].replace("padding_mask", "attention_mask")
    text = right.replace("hidden = hidden | attention_mask[:, None, None, :]",
                         "scores = scores + 1.0 - attention_mask[:, None, None, :]"
                         ".to(scores.dtype)")  # fmt: skip
    assert text != right
    report = attention.check(compiled(HEADER + text, "x.py"))
    assert [f.mistake for f in report.findings] == ["padding_leaks"], str(report)


HIDE = "hidden = pad_mask[:, None, None, :] if pad_mask is not None else None"
PADDED = {
    None: HIDE,
    "padding_leaks, in rows": HIDE.replace("[:, None, None, :]", "[:, None, :, None]"),
    "padding_inverted": HIDE.replace("= pad_mask[", "= ~pad_mask["),
    "padding_leaks, unused": "hidden = None",
    "padding_batch": HIDE.replace("pad_mask[", "pad_mask.roll(1, 0)["),
}


@pytest.mark.parametrize(("name", "code"), PADDED.items(), ids=map(str, PADDED))
def test_the_check_tries_a_mask_of_padding(name, code):
    cls = layer("x, pad_mask=None", code, "return self.attend(q, k, v, hidden)")
    found = [f.mistake for f in attention.check(cls, causal=False).findings]
    expected = [] if name is None else [name.split(",")[0]]
    assert found[:1] == expected, found


def test_a_mask_of_pairs_is_not_taken_for_one_of_padding():
    cls = layer(
        "x, attn_mask=None",
        "b, t, _ = x.shape",
        "hidden = torch.zeros(b, self.h, t, t, dtype=torch.bool, device=x.device)",
        "if attn_mask is not None:",
        "    hidden.permute(0, 2, 3, 1)[attn_mask.bool()] = True",
        "return self.attend(q, k, v, hidden)",
    )
    assert attention.check(cls, causal=False).findings == []


@pytest.mark.parametrize("name", ["attn_dropout_p", "p_dropout", "attn_p"])
def test_the_rate_of_dropout_has_many_names(name):
    cls = layer("x", "return self.attend(q, k, v)")

    class Dropped(cls):
        def forward(self, x):
            return nn.functional.dropout(super().forward(x), self.rate)

    space = {"Dropped": Dropped}
    exec(f"""class Named(Dropped):
        def __init__(self, d_model, n_heads, {name}=0.0):
            super().__init__(d_model, n_heads)
            self.rate = {name}""", space)  # fmt: skip
    report = attention.check(space["Named"], causal=False)
    assert [f.mistake for f in report.findings][:1] == ["random_in_eval"]


@pytest.mark.parametrize("place", ["weights", "scores"])
def test_dropout_beside_a_memory_is_seen_where_it_acts(place):
    class Cross(nn.Module):
        def __init__(self, d_model, p_dropout=0.0):
            super().__init__()
            self.q, self.kv = (
                nn.Linear(d_model, d_model),
                nn.Linear(d_model, 2 * d_model),
            )
            self.drop = nn.Dropout(p_dropout)

        def forward(self, x, memory):
            k, v = self.kv(memory).chunk(2, dim=-1)
            scores = self.q(x) @ k.mT / k.shape[-1] ** 0.5
            if place == "scores":
                return self.drop(scores).softmax(-1) @ v
            return self.drop(scores.softmax(-1)) @ v

    report = attention.check(Cross, causal=False, memory=5)
    expected = ["dropout_elsewhere"] if place == "scores" else []
    assert [f.mistake for f in report.findings] == expected


def test_other_sizes_are_tried_where_the_constructor_refuses_ours():
    cls = layer("x", "return self.attend(q, k, v)")

    class Wide(cls):
        def __init__(self, d_model, n_heads):
            assert d_model % 48 == 0, "d_model must be a multiple of 48"
            super().__init__(d_model, n_heads)

    report = attention.check(Wide, causal=False)
    assert report.verdict == "passed", str(report)
    assert "Built with d_model=48; it failed without." in " ".join(report.notes)


def test_what_a_class_patches_is_given_back():
    before = torch.softmax, torch.nn.Linear.forward
    cls = layer("x", "torch.softmax = torch.nn.Linear.forward = None", "return x")
    report = attention.check(cls, causal=False)
    assert (torch.softmax, torch.nn.Linear.forward) == before
    assert report.verdict != "passed"


ARGUMENTS = {
    "widths by other names": ("nx, no_heads", "nx, no_heads", ""),
    "a width by a name that says nothing": ("zw, n_head", "zw, n_head", ""),
    "what is None by default and needed": (
        "d_model, heads, in_dim=None, act=None", "in_dim * 1, heads",
        "self.out = nn.Sequential(act(), self.out)"),
    "settings that go with larger ones": (
        "config: Settings", "config.n_embd, config.n_head",
        "assert config.n_embd // config.n_head == config.head_size"),
}  # fmt: skip
SETTINGS = """
from dataclasses import dataclass

@dataclass
class Settings:
    n_embd: int = 4096
    n_head: int = 32
    head_size: int = 128
"""


@pytest.mark.parametrize("words", ARGUMENTS)
def test_arguments_are_guessed(words):
    taken, passed, more = ARGUMENTS[words]
    plain = FORWARD.replace("Attention(", "Plain(").format(
        arguments="x",
        query="x",
        keys="x",
        values="x",
        code="return self.attend(q, k, v)",
    )
    source = (
        HEADER
        + SETTINGS
        + plain
        + f"""
class Attention(Plain):
    def __init__(self, {taken}):
        super().__init__({passed})
        {more}
"""
    )
    report = attention.check(compiled(source, "guessed.py"), causal=False)
    assert report.verdict == "passed", str(report)


def test_a_guess_that_fails_is_asked_for():
    cls = layer("x", "return self.attend(q, k, v)")

    class Asking(cls):
        def __init__(self, d_model, n_heads, zw):
            super().__init__(d_model, n_heads)
            self.more = zw.more

    report = attention.check(Asking)
    assert report.exit_status == 2
    assert "it needs zw" in report.problem


def test_where_a_class_token_alone_attends_nothing_is_judged():
    cls = layer("x", "y = self.attend(q[:, :, :1], k, v)",
                "return torch.cat([y, x[:, 1:]], dim=1)")  # fmt: skip
    report = attention.check(cls, causal=False)
    assert report.verdict == "not judged", str(report)
    assert not [f for f in report.findings if f.severity == "error"]


def test_a_mask_that_replaces_the_one_by_default_is_no_mask_of_padding():
    cls = layer("x, attn_mask=None", "t = x.shape[1]", "if attn_mask is None:",
                "    attn_mask = torch.ones(t, t).to(x).triu(1) * -1e9",
                "scores = q @ k.mT / q.shape[-1] ** 0.5 + attn_mask",
                "y = scores.softmax(-1) @ v",
                "return self.out(y.transpose(1, 2).flatten(2))")  # fmt: skip
    report = attention.check(cls)
    assert "padding_batch" not in [f.mistake for f in report.findings], str(report)


def test_a_causal_mask_is_given_where_the_first_axis_counts_tokens():
    code = "y = self.attend(q, k, v, mask)", "return y.transpose(0, 1)"
    source = FORWARD.format(
        arguments="x, mask=None", query="x", keys="x", values="x",
        code="\n        ".join(code),
    )  # fmt: skip
    source = source.replace("return layer(x)", "x = x.transpose(0, 1)\n"
                            "        return layer(x)")  # fmt: skip
    report = attention.check(compiled(HEADER + source, "first.py"))
    assert [f.mistake for f in report.findings] == ["batch_first"], str(report)


def test_a_mask_is_given_in_the_form_that_runs_with_one_token_too():
    cls = layer("x, attention_mask=None", "if attention_mask is not None:",
                "    if x.shape[1] == 1:",
                "        attention_mask = attention_mask[:, :, -1:, :]",
                "return self.attend(q, k, v, attention_mask)")  # fmt: skip
    report = attention.check(cls)
    assert report.verdict == "passed", str(report)


def test_batch_norms_may_mix_sequences_and_empty_tensors_lie_anywhere():
    cls = layer("x", "torch.cat([x.flatten(), torch.empty([0])])",
                "y = self.attend(q, k, v)",
                "return self.norm(y.mT).mT")  # fmt: skip

    class Normed(cls):
        def __init__(self, d_model, n_heads):
            super().__init__(d_model, n_heads)
            self.norm = nn.BatchNorm1d(d_model)

    found = [f.mistake for f in attention.check(Normed, causal=False).findings]
    assert not {"training_differs", "stays_behind"} & set(found), found


def test_a_mask_that_shifts_every_score_is_not_the_one_that_hides_nothing():
    cls = layer("x, attention_mask", "gone = (1 - attention_mask) * -1e6",
                "y = (q @ k.mT / q.shape[-1] ** 0.5 + gone[:, None]).softmax(-1) @ v",
                "return self.out(y.transpose(1, 2).flatten(2))")  # fmt: skip
    report = attention.check(cls, causal=False)
    assert (report.verdict, report.findings) == ("passed", []), str(report)


def test_what_asks_for_a_gpu_moves_there_by_itself():
    cls = layer("x", "future = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()",
                "future = future.cuda() if x.is_cuda else future",
                "return self.attend(q, k, v, future)")  # fmt: skip
    assert attention.check(cls).verdict == "passed"


def test_keys_may_have_to_come_from_the_tokens_themselves():
    cls = layer("x, c", "assert c is x",
                "return self.attend(q, k, v)", keys="c")  # fmt: skip
    report = attention.check(cls, causal=False)
    assert report.verdict == "passed", str(report)
    one = layer("x, c", "return self.attend(q, k, v)", keys="c")
    assert "with a memory of 5 tokens" in str(attention.check(one, causal=False))


def test_a_constructor_may_hand_on_its_arguments():
    class Handed(layer("x", "return self.attend(q, k, v)")):
        def __init__(self, *args, spare=1, **kwargs):
            super().__init__(*args, **kwargs)

    report = attention.check(Handed, causal=False)
    assert report.verdict == "passed", str(report)


def test_heads_are_built_as_wide_as_the_tokens_allow():
    class Wide(layer("x", "return self.attend(q, k, v)")):
        def __init__(self, dim, heads, dim_head=48):
            super().__init__(dim, heads)
            self.q = nn.Linear(dim, heads * dim_head)

        def heads(self, x, layer):
            y = layer(x).view(*x.shape[:2], self.h, x.shape[2] // self.h)
            return y.transpose(1, 2)

    report = attention.check(Wide, causal=False)
    assert report.verdict == "passed", str(report)
    assert "Built with dim_head=4; it failed without." in report.notes


@dataclass
class Settings:
    """Settings of which one follows from others."""

    width: int = 512
    heads: int = 8

    def __post_init__(self):
        self.d_head = self.width // self.heads


def test_a_setting_may_be_one_that_the_config_computes():
    class Configured(layer("x", "return self.attend(q, k, v)")):
        def __init__(self, config: Settings):
            assert config.d_head == 4
            super().__init__(config.width, config.heads)

    given = {"width": 16, "heads": 4, "d_head": 4}
    report = run_check(Configured, causal=False, own_config=given)
    assert report.verdict == "passed", str(report)


def test_one_head_of_keys_stays_one():
    @dataclass
    class Config:
        d_model: int = 16
        num_heads: int = 4
        num_kv_heads: int = 1

    class MultiQuery(nn.Module):
        def __init__(self, config: Config):
            super().__init__()
            self.h, d = config.num_heads, config.d_model
            self.q, self.o = nn.Linear(d, d), nn.Linear(d, d)
            self.kv = nn.Linear(d, 2 * config.num_kv_heads * d // self.h)

        def forward(self, x):
            q = self.q(x).unflatten(-1, (self.h, -1)).transpose(1, 2)
            k, v = self.kv(x)[:, None].split(q.shape[-1], dim=-1)
            z = nn.functional.scaled_dot_product_attention(q, k, v)
            return self.o(z.transpose(1, 2).flatten(2))

    report = attention.check(MultiQuery, causal=False)
    assert report.ok, str(report)
    assert report.compared


def test_queries_keys_and_values_may_begin_alike():
    cls = layer("x_query, x_key, x_value", "return self.attend(q, k, v)",
                query="x_query", keys="x_key", values="x_value")  # fmt: skip
    assert attention.check(cls, causal=False).verdict == "passed"


LENGTHS = {
    "that a call makes a map of": (
        "pass", {"call": lambda m, x: m(x.unflatten(1, (8, 8)).flatten(1, 2))}),
    "of patches and a token for the class": (
        "assert x.shape[1] == self.n + 1", {"num_patches": 9}),
    "whose root is whole": (
        "assert x.shape[1] == int(self.n**0.5) ** 2 == self.n", {}),
}  # fmt: skip


@pytest.mark.parametrize("name", LENGTHS)
def test_the_one_length_that_runs_is_found(name):
    code, options = LENGTHS[name]
    own = "num_patches" if "num_patches" in options else "max_seq_len"
    source = FORWARD.replace("n_heads):", f"n_heads, {own}):\n        self.n = {own}")
    source = source.replace("        super().__init__()\n", "", 1).replace(
        f"        self.n = {own}", f"        super().__init__()\n        self.n = {own}"
    )
    source = source.format(
        arguments="x", query="x", keys="x", values="x",
        code=f"{code}\n        return self.attend(q, k, v)",
    )  # fmt: skip
    report = attention.check(
        compiled(HEADER + source, "sized.py"), causal=False, **options
    )
    assert report.verdict == "passed"


@pytest.mark.parametrize("wrong", [False, True])
def test_a_setting_that_no_name_tells_counts_only_where_the_class_passes(wrong):
    source = FORWARD.replace("(self, d_model, n_heads)", "(self, config)").replace(
        "self.h = n_heads",
        "self.h, d_model = config.n_head, config.n_embd\n"
        "        self.twirl = config.twirl",
    )
    scale = "q * 2" if wrong else "q"
    source = source.format(
        arguments="x", query="x", keys="x", values="x",
        code=f"return self.attend({scale} if not self.twirl else k, k, v)",
    )  # fmt: skip
    report = attention.check(compiled(HEADER + source, "config.py"), causal=False)
    assert report.verdict == ("not usable" if wrong else "passed")
    assert ("--config twirl=" in str(report)) == wrong


def test_heads_of_a_layer_that_learns_nothing_are_found():
    class Inner(nn.Module):
        def forward(self, q, kv):  # (b, t, h, d)
            q, kv = q.transpose(1, 2), kv.transpose(1, 2)
            return ((q @ kv.mT / q.shape[-1] ** 0.5).softmax(-1) @ kv).transpose(1, 2)

    def call(module, x, memory):
        q, kv = (one.unflatten(-1, (4, -1)) for one in (x, memory))
        return module(q, kv).flatten(2)

    assert attention.check(Inner, call=call, memory=5).verdict == "passed"


@pytest.mark.parametrize("own", [0.2, 0.3, 0.5])
def test_a_dropout_with_a_rate_of_its_own_is_no_matter_of_the_others_rate(own):
    class Dropped(nn.Module):
        def __init__(self, dim, num_heads=4, attention_dropout=0.1, last_dropout=own):
            super().__init__()
            self.num_heads = num_heads
            self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
            self.within = nn.Dropout(attention_dropout)
            self.behind = nn.Dropout(last_dropout)

        def forward(self, x):
            split = self.qkv(x).unflatten(-1, (3, self.num_heads, -1))
            q, k, v = split.permute(2, 0, 3, 1, 4)
            weights = self.within((q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1))
            y = (weights @ v).transpose(1, 2).flatten(2)
            return self.behind(self.out(y))

    assert attention.check(Dropped, causal=False).findings == []


def test_a_mask_for_queries_sets_their_own_rows_to_zero():
    class Masked(layer("x", "return self.attend(q, k, v)")):
        def forward(self, x, query_padding_masks=None, key_padding_masks=None):
            self.rows, self.columns = query_padding_masks, key_padding_masks
            return super().forward(x)

        def attend(self, q, k, v, hidden=None):
            scores = q @ k.mT / q.shape[-1] ** 0.5
            if self.columns is not None:
                hidden = (self.columns == 0)[:, None, None]
                scores = scores.masked_fill(hidden, -torch.inf)
            weights = scores.softmax(dim=-1)
            if self.rows is not None:
                weights = weights * self.rows[:, None, :, None]
            return self.out((weights @ v).transpose(1, 2).flatten(2))

    report = attention.check(Masked, causal=False)
    assert [f for f in report.findings if f.severity == "error"] == []


class Masked(torch.nn.Module):
    def __init__(self, d_in):
        super().__init__()
        self.q, self.k, self.v = (torch.nn.Linear(d_in, d_in) for _ in "qkv")

    def forward(self, x, hidden):
        scores = self.q(x) @ self.k(x).mT / x.shape[-1] ** 0.5
        return scores.masked_fill(hidden, -torch.inf).softmax(dim=-1) @ self.v(x)


def test_what_the_call_makes_on_the_cpu_is_no_error_of_the_class():
    def call(layer, x):
        return layer(x, torch.ones(x.shape[1], x.shape[1]).triu(1).bool())

    report = attention.check(Masked, call=call)
    assert [f.mistake for f in report.findings] == ["stays_behind"]
    assert report.ok, str(report)
