"""Unusual designs are no mistakes, and every command that is proposed can be run."""

import shlex

import pytest
import torch
from torch import nn

import attncheck
from attncheck.commandline import main
from attncheck.mistakes import BASES, HEADER, compiled
from attncheck.probes.stepped import first_tensor

LAYER = """
class Attention(nn.Module):
    def __init__(self, d_model, n_heads{more}):
        super().__init__()
        self.h, self.d = n_heads, d_model // n_heads
        self.q, self.k, self.v, self.out = (nn.Linear(d_model, d_model) for _ in "qkvo")
        {made}

    def forward(self, x{asked}):
        b, t, c = x.shape
        q, k, v = (f(x).view(b, t, self.h, -1).transpose(1, 2)
                   for f in (self.q, self.k, self.v))
        i = torch.arange(t, device=x.device)
        hidden = i > i[:, None]
        {first}
        scores = q @ k.mT / self.d**0.5
        {scored}
        weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
        y = weights @ v
        {last}
        return self.out(y.transpose(1, 2).reshape(b, t, c))
"""


def source(**parts):
    names = ("more", "made", "asked", "first", "scored", "last")
    return HEADER + LAYER.format(**dict.fromkeys(names, "") | parts)


def layer(**parts):
    return compiled(source(**parts), "unusual.py")


NULL = {
    "made": "self.null_k, self.null_v = "
    "(nn.Parameter(torch.randn(n_heads, 1, self.d)) for _ in 'kv')",
    "first": "k, v = (torch.cat([n.expand(b, -1, -1, -1), y], 2) for n, y in "
    "((self.null_k, k), (self.null_v, v)))\n"
    "        hidden = torch.cat([hidden[:, :1] & False, hidden], 1)",
}
VECTOR = {
    "made": "self.null_k, self.null_v = "
    "(nn.Parameter(torch.randn(d_model)) for _ in 'kv')",
    "first": NULL["first"].replace("n.expand", "n.view(1, self.h, 1, -1).expand"),
}
# What no option of the check describes, and what is right.
DESIGNS = {
    "one softmax less another": {
        "made": "self.l = nn.Parameter(torch.zeros(1))\n        self.e = "
        "nn.Linear(d_model, d_model)\n        self.norm = nn.LayerNorm(self.d)",
        "scored": "e = self.e(x).view(b, t, self.h, -1).transpose(1, 2)\n        less"
        " = (e @ k.mT).masked_fill(hidden, -torch.inf).softmax(-1) * self.l",
        "last": "y = self.norm(y - less @ v)",
    },
    "a layer beside it": {
        "made": "self.norm, self.up, self.down = nn.LayerNorm(d_model), "
        "nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)",
        "first": "x = self.norm(x)\n        q, k, v = (f(x).view(b, t, self.h, -1)"
        ".transpose(1, 2) for f in (self.q, self.k, self.v))",
        "last": "more = self.down(F.gelu(self.up(x)))\n        "
        "return self.out(y.transpose(1, 2).reshape(b, t, c)) + more",
    },
    "positions by row and column": {
        "first": "turn = torch.polar(x.new_ones(t, 2), torch.stack([i // 2, i % 2], "
        "-1).to(x))\n        q, k = (torch.view_as_real(torch.view_as_complex("
        "y.reshape(b, self.h, t, 2, 2)) * turn).flatten(3) for y in (q, k))",
    },
    "a window in half of the heads": {
        "more": ", window_size=3",
        "made": "self.w = window_size",
        "scored": "near = (i[:, None] - i < self.w).expand(self.h, t, t).clone()\n"
        "        near[: self.h // 2] = True\n"
        "        scores = scores.masked_fill(~near, -torch.inf)",
    },
    "a factor that is 0 for the first token": {
        "made": "self.s = nn.Parameter(torch.ones(1, 1, 1))",
        "scored": "scores = scores * self.s * (i[:, None] + 1.0).log()",
    },
    "a factor for each number of a head": {
        "made": "self.gain = nn.Parameter(torch.zeros(self.d))",
        "first": "q = q * F.softplus(self.gain)",
    },
    "blocks of tokens": {
        "made": "self.chunk = 4",
        "first": "q, k, v = (F.pad(y, (0, 0, 0, -t % 4)).unflatten(2, (-1, 4)) "
        "for y in (q, k, v))\n        hidden = x.new_ones(4, 4).triu(1).bool()",
        "last": "y = y.flatten(2, 3)[:, :, :t]",
    },
}


@pytest.mark.parametrize("parts", DESIGNS.values(), ids=DESIGNS)
def test_a_design_that_no_option_describes_is_not_judged_and_says_what_is_needed(parts):
    report = attncheck.check(layer(**parts))
    assert report.verdict == "not judged", str(report)
    assert (report.command, report.proposal) == ("", {})
    assert "a correct class or function" in " ".join(str(report).split())


@pytest.mark.parametrize("parts", [NULL, VECTOR], ids=["matrices", "vectors"])
def test_a_key_and_a_value_that_every_token_sees_are_read_off(parts):
    report = attncheck.check(layer(**parts))
    assert report.verdict == "passed", str(report)
    assert "a learned key and value beside" in " ".join(str(report).split())


def test_a_norm_is_not_proposed_where_more_than_that_acts():
    text = source(
        made="self.norm = nn.LayerNorm(d_model)", scored="hidden = i == i[:, None]"
    )
    text = text.replace(
        "        q, k, v =", "        x = self.norm(x)\n        q, k, v ="
    )
    report = attncheck.check(compiled(text, "x.py"), causal=False)
    assert (report.verdict, report.proposal) == ("not judged", {}), str(report)


WINDOW = {
    "more": ", window_size=3",
    "made": "self.w = window_size",
    "scored": "scores = scores.masked_fill(i[:, None] - i >= self.w, -torch.inf)",
}
T5 = {
    "asked": ", position_bias=None",
    "scored": "scores = q @ k.mT + (0 if position_bias is None else position_bias)",
}
CAPPED = {
    "more": ", window=4, softcap=5.0",
    "made": "self.w, self.cap = window, softcap",
    "scored": "scores = self.cap * torch.tanh(scores / self.cap)\n        "
    "hidden = hidden | (i[:, None] - i >= self.w)",
}
MEANT = {  # source, the options, the exit status with the proposed command
    "a window": (source(**WINDOW).replace("window_size", "reach"), {"window": 3}, 0),
    "a window of one more": (
        # The token itself may not be counted, so either number may be meant.
        source(**WINDOW | {"scored": WINDOW["scored"].replace(">=", ">")}), {}, None),
    "a window of one less": (
        source(**WINDOW | {"scored": WINDOW["scored"].replace(">=", ">= -1 +")}),
        {"window": 3}, 1),
    "no scale, as in T5": (source(**T5), {"scale": "none"}, 0),
    "a window and a cap of the masked": (
        source(**CAPPED | {"scored": "scores = scores.masked_fill(hidden | (i[:, None]"
               " - i >= self.w), -100.0)\n        hidden = hidden & False\n        "
               "scores = self.cap * torch.tanh(scores / self.cap) * 1.5"}),
        None, None),
    "unknown weights": (
        source(made="self.q, self.k = self.k, self.q\n        self.z = nn.Linear("
               "d_model, d_model)", last="y = y * torch.tanh(self.z(x)).view("
               "b, t, self.h, -1).transpose(1, 2)"), {}, None),
}  # fmt: skip


@pytest.mark.parametrize(("text", "options", "status"), MEANT.values(), ids=MEANT)
def test_a_proposed_command_runs_as_printed_and_has_the_class_judged(
    tmp_path, capsys, text, options, status
):
    path = tmp_path / "mine.py"
    path.write_text(text)
    report = attncheck.check(compiled(text, "mine.py"))
    if options is not None:
        assert (report.verdict, report.proposal) == ("not judged", options), str(report)
    first = main([str(path)])
    told = " ".join(capsys.readouterr().out.split())
    if not report.proposal:
        assert first != 0
        assert "attention-check" not in told
        return
    command = told[told.index("attention-check ") : told.index(" Tests ")]
    words = shlex.split(command)[1:]
    assert main(words[: 1 + 2 * len(options)]) == status, capsys.readouterr().out


def test_a_window_and_a_cap_are_read_off():
    assert attncheck.check(compiled(source(**CAPPED), "mine.py")).verdict == "passed"


def test_a_scale_that_is_missing_is_a_mistake_where_no_name_speaks_of_positions():
    report = attncheck.check(layer(scored="scores = q @ k.mT"))
    assert [f.mistake for f in report.findings] == ["scale_missing"]


FIXED = source(first="assert t == 6").replace("self.d**0.5", "{scale}")


def test_a_width_under_an_unknown_name_gets_other_values_too():
    text = source(scored="scores = scores / self.d**0.5").replace("d_model", "width")
    found = attncheck.check(compiled(text, "width.py")).findings
    assert [f.mistake for f in found] == ["scale_twice"]


def test_a_class_of_one_length_is_compared_at_that_length():
    report = attncheck.check(compiled(FIXED.format(scale="self.d**0.5"), "x.py"))
    assert report.ok, str(report)
    assert [(f.mistake, f.severity) for f in report.findings] == [
        ("some_sizes_raise", "warning")
    ]
    report = attncheck.check(compiled(FIXED.format(scale="c**0.5"), "x.py"))
    assert report.findings[0].mistake == "scale_by_d_out", str(report)


SQUARE = """for n in 'QKV':
            w = torch.empty(d_model, d_model).normal_()
            setattr(self, f'W_{n}', nn.Parameter(w))
            setattr(self, f'b_{n}', nn.Parameter(torch.zeros(d_model)))"""
HELD = {
    "biases apart": (
        "self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)\n        self.q_bias, "
        "self.v_bias = (nn.Parameter(torch.zeros(d_model)) for _ in 'qv')",
        "both = torch.cat([self.q_bias, 0 * self.v_bias, self.v_bias])\n        "
        "q, k, v = F.linear(x, self.qkv.weight, both).chunk(3, -1)"),
    "blocks of queries, values, keys": (
        "self.qkv = nn.Linear(d_model, 3 * d_model)",
        "parts = self.qkv(x).view(b, t, 2, 3, -1)\n        "
        "q, v, k = (p.flatten(2) for p in parts.unbind(3))"),
    "a slice and a bias for each head": (
        "for n in 'QKV':\n            w = torch.empty(n_heads, d_model, d_model // "
        "n_heads)\n            setattr(self, f'W_{n}', nn.Parameter(w.normal_()))\n"
        "            setattr(self, f'b_{n}', nn.Parameter(torch.zeros(w.shape[::2])))\n"
        "        self.h, self.d = n_heads, d_model // n_heads",
        "q, k, v = ((torch.einsum('btd,hde->bthe', x, w) + e).flatten(2) for w, e in ("
        "(self.W_Q, self.b_Q), (self.W_K, self.b_K), (self.W_V, self.b_V)))"),
    "slices of square weights": (
        f"{SQUARE}\n        self.h, self.d = n_heads, d_model // n_heads",
        "cuts = [slice(i * self.d, (i + 1) * self.d) for i in range(self.h)]\n        "
        "each = [[x @ w[:, i] + e[i] for i in cuts] for w, e in "
        "((self.W_Q, self.b_Q), (self.W_K, "
        "self.b_K), (self.W_V, self.b_V))]\n        "
        "q, k, v = (torch.cat(one, dim=-1) for one in each)"),
    "square weights the other way round": (
        SQUARE,
        "q, k, v = (F.linear(x, w, e) for w, e in ((self.W_Q, self.b_Q), "
        "(self.W_K, self.b_K), (self.W_V, self.b_V)))"),
}  # fmt: skip


@pytest.mark.parametrize("factor", ["", " * 1.3"])
@pytest.mark.parametrize(("made", "used"), HELD.values(), ids=HELD)
def test_weights_are_read_however_they_are_held(made, used, factor):
    text = source(made=made).replace("(self.q, self.k, self.v))\n", "(q, k, v))\n")
    text = text.replace(
        "        q, k, v = (f(x).", f"        {used}\n        q, k, v = (f."
    )
    text = text.replace("self.q, self.k, self.v, self.out = (nn.Linear(d_model, "
                        "d_model) for _ in \"qkvo\")", "self.out = nn.Linear(d_model, "
                        "d_model)")  # fmt: skip
    text = text.replace("(y.transpose", f"({factor and '1.3 * '}y.transpose")
    report = attncheck.check(compiled(text, "held.py"))
    assert report.verdict == ("failed" if factor else "passed"), str(report)


CACHED = {
    "asked": ", past=None",
    "first": "new = torch.stack([k, v])\n        if past is not None:\n"
    "            k, v = (torch.cat([o, n], 2) for o, n in zip(past, new))\n"
    "        hidden = torch.arange(k.shape[2], device=x.device) > "
    "i[:, None] + k.shape[2] - t",
    "last": "return self.out(y.transpose(1, 2).reshape(b, t, c)), new",
}
HELD_CACHE = {
    "asked": ", past=None",
    "first": "if past is not None:\n            k, v = (torch.cat([past[n], e], 2) if "
    "past else e for n, e in (('k', k), ('v', v)))\n            past.update(k=k, v=v)\n"
    "        hidden = torch.arange(k.shape[2], device=x.device) > "
    "i[:, None] + k.shape[2] - t",
}


def test_a_cache_may_hold_the_new_tokens_alone_or_be_filled_in_place():
    report = attncheck.check(layer(**CACHED))
    found = [(f.mistake, f.severity) for f in report.findings]
    assert report.ok, str(report)
    assert found == [("cache_forgets", "warning")]
    assert attncheck.check(layer(**HELD_CACHE)).ok
    wrong = HELD_CACHE["first"].replace("[past[n], e]", "[past[n] * 0.5, e]")
    report = attncheck.check(layer(**HELD_CACHE | {"first": wrong}))
    assert [f.mistake for f in report.findings] == ["cache_differs"], str(report)


def test_a_call_gets_the_memory_that_was_declared():
    cls = layer(
        asked=", other", first="k, v = (f(other[:, 0]).view(b, -1, self.h, self.d)"
        ".transpose(1, 2) for f in (self.k, self.v))\n"
        "        hidden = hidden[:1, :1] & False",
    )  # fmt: skip
    report = attncheck.check(
        cls, memory=5, call=lambda m, x, other: m(x, other[:, None])
    )
    assert report.ok, str(report)


def test_a_config_may_have_a_name_before_it():
    text = source(made="").replace("d_model, n_heads", "model_config")
    text = text.replace(
        "        super()", "        d_model, n_heads = model_config."
        "hidden_size, model_config.num_heads\n        super()"
    )  # fmt: skip
    assert attncheck.check(compiled(text, "x.py")).ok


SLOPES = """alibi = lambda n: [2 ** (-8 * i / n) for i in range(1, n + 1)]
        whole = 2 ** (n_heads.bit_length() - 1)
        slopes = alibi(whole) + alibi(2 * whole)[::2][: n_heads - whole]
        self.register_buffer("slopes", torch.tensor(slopes).view(-1, 1, 1))"""


def test_slopes_for_other_numbers_of_heads_do_not_matter():
    scored = "scores = scores - self.slopes * (i - i[:, None]).abs()"
    cls = layer(made=SLOPES, scored=scored)
    assert attncheck.check(cls, alibi=True).ok
    assert attncheck.check(cls).ok  # found by its names


def test_a_declared_bias_leaves_other_mistakes_to_be_named():
    bias = "scores = scores + self.table[(i[:, None] - i).abs()].permute(2, 0, 1)"
    parts = {
        "made": "self.table = nn.Parameter(torch.randn(9, n_heads))",
        "scored": bias,
    }

    def declared(m, t):
        i = torch.arange(t)
        return m.table[(i[:, None] - i).abs()].permute(2, 0, 1)

    assert attncheck.check(layer(**parts), bias=declared).ok
    parts["last"] = "y = y.reshape(b, t, c).view(b, t, self.h, -1).transpose(1, 2)"
    report = attncheck.check(layer(**parts), bias=declared)
    assert report.findings[0].mistake == "join_viewed", str(report)


@pytest.mark.parametrize("more", ["", " + (q @ k.mT).sin()"])
def test_weights_are_proposed_only_if_the_layer_can_be_judged_with_them(more):
    text = source(more=", d_out").replace("(self.q, self.k, self.v)", "self.parts()")
    text = text.replace("d_model // n_heads", "d_out // n_heads").replace("c))", "-1))")
    text = text.replace("self.q, self.k, self.v, self.out = (nn.Linear(d_model, "
                        "d_model)", "self.q_m, self.k_m, self.v_m, self.o_m = ("
                        "nn.Linear(d_model if n != 'o' else d_out, d_out)")  # fmt: skip
    text = text.replace('for _ in "qkvo"', 'for n in "qkvo"')
    text = text.replace("self.out(", "self.o_m(").replace("0.5\n", f"0.5{more}\n")
    text += """
    def parts(self):  # as no product that is watched
        return [lambda x, f=f: (x[..., None, :] * f.weight).sum(-1) + f.bias
                for f in (self.q_m, self.k_m, self.v_m)]
"""
    report = attncheck.check(compiled(text, "x.py"))
    assert report.verdict == "not judged"
    weights = report.proposal.get("weights", "")
    assert ("num_heads=4" in weights) == (not more), str(report)


def test_a_window_that_may_not_count_the_token_itself_is_left_to_the_reader():
    text = source(**WINDOW | {"scored": WINDOW["scored"].replace(">=", ">")})
    text = text.replace("class A", "class WindowA") + "Attention = WindowAttention\n"
    cls = compiled(text, "x.py")
    report = attncheck.check(cls)
    assert (report.verdict, report.proposal) == ("not judged", {}), str(report)
    assert "window=4" in report.needed
    assert "window=3" in report.needed
    assert attncheck.check(cls, window=4).ok
    found = attncheck.check(cls, window=3).findings
    assert [f.mistake for f in found] == ["window_size"]


@pytest.mark.parametrize(("join", "severity"), [("mean", "warning"), ("sum", "error")])
def test_a_mean_of_heads_is_meant_where_the_output_projection_takes_one(join, severity):
    text = source(made="self.out = nn.Linear(self.d, d_model)")
    joined = "y.transpose(1, 2).reshape(b, t, c)"
    report = attncheck.check(compiled(text.replace(joined, f"y.{join}(1)"), "x.py"))
    found = [(f.mistake, f.severity) for f in report.findings]
    assert found == [("heads_added", severity)], str(report)


def test_zeros_that_a_call_passes_do_not_accuse_what_they_go_into():
    cls = layer(
        asked=", p", made="self.pos = nn.Linear(d_model, d_model, bias=False)",
        scored="scores = scores + q @ self.pos(p).view(b, t, self.h, -1)"
        ".transpose(1, 2).mT",
    )  # fmt: skip
    report = attncheck.check(cls, call=lambda m, x: m(x, torch.zeros_like(x)))
    found = [(f.mistake, f.severity) for f in report.findings]
    assert found == [("gradient_missing", "warning")], str(report)
    assert "Only zeros go into pos" in report.findings[0].seen


AXES = """
class Attention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.h = n_heads
        self.projection = nn.Linear(d_model, 3 * d_model)
        self.last = nn.Linear(d_model, d_model)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.projection(x).view(b, t, self.h, -1).chunk(3, dim=-1)
        weights = (torch.einsum("bihd,bjhd->bijh", q, k) * 0.5).softmax(dim={axis})
        return self.last(torch.einsum("bijh,bjhd->bihd", weights, v).flatten(2))
"""


@pytest.mark.parametrize(
    ("axis", "found"),
    [(1, ["softmax_over_queries"]), (2, []), (-1, ["softmax_over_heads"])],
)
def test_softmax_runs_over_the_axis_that_einsum_sums(axis, found):
    cls = compiled(HEADER + AXES.format(axis=axis), "x.py")
    report = attncheck.check(cls, causal=False)
    assert [f.mistake for f in report.findings[:1]] == found, str(report)


NAMED = {
    "dropout that a call in eval() ends": ("keeps_state", {
        "more": ", dropout=0.1", "made": "self.p = dropout",
        "first": "self.p = self.p if self.training else 0.0",
        "last": "y = F.dropout(weights, self.p, self.training) @ v"}),
    "dropout on scores and outputs": ("dropout_on_scores", {
        "more": ", dropout=0.1", "made": "self.p = dropout",
        "scored": "scores = F.dropout(scores, self.p, self.training)",
        "last": "y = F.dropout(y, 0.1, self.training)"}),
    "keys of one stream by another's projection": ("projection_mixed_up", {
        "made": "self.text_k = nn.Linear(d_model, d_model)"}),
    "values of the query": ("tokens_not_mixed", {
        "made": "self.q = self.k = self.v = nn.Identity()\n        self.qkv, "
        "self.norm = nn.Linear(d_model, 3 * d_model), nn.LayerNorm(d_model)",
        "first": "q, k, v = (y.view(b, t, self.h, -1).transpose(1, 2) "
        "for y in self.qkv(self.norm(x)).chunk(3, -1))",
        "scored": "hidden = hidden & False",
        "last": "y = torch.einsum('bhij,bhid->bhid', weights, v)"}),
    "slopes times a distance that is 0": ("alibi_unused", {
        "made": "self.register_buffer('slopes', torch.rand(n_heads, 1, 1))",
        "scored": "scores = scores - self.slopes * (i - i[:, None]).clamp(min=0)"}),
    "a table of distances to the wrong side": ("distances_lost", {
        "made": "self.relative = nn.Embedding(16, n_heads)",
        "scored": "scores = scores + self.relative((i - i[:, None]).clamp(min=0))"
        ".permute(2, 0, 1)"}),
    "rotation by head, behind which there is a norm": ("rope_over_heads", {
        "made": "self.norm = nn.LayerNorm(d_model)",
        "first": "angles = torch.arange(self.h).to(x).view(-1, 1, 1)\n        "
        "q, k = (torch.cat([y[..., :1] * angles.cos() - y[..., 1:2] * angles.sin(), "
        "y[..., :1] * angles.sin() + y[..., 1:2] * angles.cos(), y[..., 2:]], -1) "
        "for y in (q, k))",
        "last": "return self.norm(x + self.out(y.transpose(1, 2).reshape(b, t, c)))"}),
}  # fmt: skip


@pytest.mark.parametrize(("mistake", "parts"), NAMED.values(), ids=NAMED)
def test_what_is_without_effect_is_named(mistake, parts):
    causal = "hidden & False" not in parts.get("scored", "")
    report = attncheck.check(layer(**parts), causal=causal)
    assert report.findings[0].mistake == mistake, str(report)


@pytest.mark.parametrize("kind", ["Output(y)", "{'output': y, 'weights': None}"])
def test_the_tensor_in_a_dataclass_or_a_dictionary_is_tested(kind):
    """As libraries return it; a wrong layer inside stays wrong."""
    source = HEADER + BASES["multi_head"][0]
    source = (
        source.replace("        return ", "        y = ") + f"        return {kind}\n"
    )
    source = (
        "from dataclasses import dataclass\n\n"
        "@dataclass\nclass Output:\n    output: object\n\n" + source
    )
    report = attncheck.check(compiled(source, "output.py"))
    assert report.verdict == "passed", str(report)
    assert any("only its 'output' was tested" in note for note in report.notes)
    wrong = source.replace("** 0.5", "** 1.0").replace("**0.5", "**1.0")
    assert wrong != source
    assert attncheck.check(compiled(wrong, "w.py")).verdict == "failed"


def test_a_call_of_a_contract_may_return_fields_too():
    x = torch.ones(1)
    assert first_tensor(({"weights": None, "output": x},)) is x
    with pytest.raises(TypeError, match="returned dict, not a tensor"):
        first_tensor({"weights": None})


class Others(nn.Module):
    """No token sees itself, and the scale is learned."""

    def __init__(self, dim, num_heads):
        super().__init__()
        self.h, self.scale = num_heads, nn.Parameter(torch.tensor(0.5))
        self.q, self.k, self.v, self.out = (nn.Linear(dim, dim) for _ in "qkvo")

    def forward(self, x):
        q, k, v = (
            made.unflatten(-1, (self.h, -1)).transpose(1, 2)
            for made in (self.q(x), self.k(x), self.v(x))
        )
        itself = torch.eye(x.shape[1], device=x.device).bool()
        scores = (q @ k.mT * self.scale).masked_fill(itself, -1e9)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


def test_a_layer_where_no_token_sees_itself_gets_the_option_that_says_so():
    report = attncheck.check(Others, causal=False)
    assert report.verdict == "not judged"
    assert report.proposal == {"exclusive": True}
    assert attncheck.check(Others, causal=False, exclusive=True).verdict == "passed"


STACKED = """\
class Attention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.w_qkv = nn.Parameter(torch.randn(3, heads, d_model, d_model // heads))
        self.w_out = nn.Parameter(torch.randn(heads, d_model // heads, d_model))

    def forward(self, x):
        q, k, v = torch.einsum("btd,nhde->nbhte", x, self.w_qkv)
        scores = torch.einsum("bhie,bhje->bhij", q, k) / q.shape[-1] ** 0.5
        i = torch.arange(x.shape[1], device=x.device)
        scores = scores.masked_fill(i > i[:, None], -torch.inf)
        heads = torch.einsum("bhij,bhje->bhie", scores.softmax(-1), v)
        return torch.einsum("bhte,hed->btd", heads, self.w_out)
"""
SPLIT = """\
class Attention(nn.Module):
    def __init__(self, channels, num_heads=4):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Conv1d(channels, 3 * channels, 1)
        self.out = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        b, c, t = x.shape
        d = c // self.num_heads
        q, k, v = self.qkv(x).chunk(3, dim=1)
        scale = d**-0.25
        q, k, v = (one.reshape(b * self.num_heads, d, t)
                   for one in (q * scale, k * scale, v))
        weights = torch.einsum("bct,bcs->bts", q, k).softmax(dim=-1)
        return self.out(torch.einsum("bts,bcs->bct", weights, v).reshape(b, c, t))
"""


@pytest.mark.parametrize(
    ("source", "right", "wrong", "mistake", "options"),
    [
        (STACKED, "q.shape[-1]", "x.shape[-1]", "scale_by_d_out", {}),
        (SPLIT, "k * scale", "k", "scale_other", {"causal": False}),
    ],
)
def test_a_wrong_scale_shows_though_the_weights_are_not_found(
    source, right, wrong, mistake, options
):
    report = attncheck.check(compiled(HEADER + source, "x.py"), **options)
    assert report.findings == [], str(report)
    assert right in source
    changed = compiled(HEADER + source.replace(right, wrong), "x.py")
    report = attncheck.check(changed, **options)
    assert [f.mistake for f in report.findings] == [mistake], str(report)
