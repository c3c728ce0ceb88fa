"""What a layer does besides attention: found where it can be, held where declared."""

import pytest
import torch
from torch import nn

import attncheck
from attncheck.run import run_check
from coding_attention.gallery.planted import BASES, HEADER, compiled


def built(name, *changes):
    source = BASES[name][0]
    for right, wrong in changes:
        assert right in source, right
        source = source.replace(right, wrong)
    return compiled(HEADER + source, f"{name}.py")


def found(report):
    return [finding.mistake for finding in report.findings]


@pytest.mark.parametrize("name", BASES)
def test_a_right_base_passes_as_declared(name):
    report = attncheck.check(built(name), **BASES[name][1])
    assert (report.verdict, found(report)) == ("passed", []), report.text(True)
    assert report.agreed


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("rope", "rotary positions (pairs of halves, base 10000)"),
        ("normed", "a norm of queries and keys (layer)"),
        ("sink", "a sink for each head"),
    ],
)
def test_what_nobody_declared_is_found_and_said(name, words):
    report = attncheck.check(built(name))
    assert report.verdict == "passed", report.text(True)
    assert words in report.agreed


@pytest.mark.parametrize(
    ("name", "declared", "mistake"),
    [
        ("multi_head", {"rope": "halves"}, "rope_unused"),
        ("rope", {"rope": "neighbors"}, "rope_pairing"),
        ("rope", {"rope": {"pairing": "halves", "base": 5e5}}, "rope_frequencies"),
        ("multi_head", {"window": 3}, "window_unused"),
        ("window", {"window": 4}, "window_size"),
        ("multi_head", {"scale": "none"}, "differs"),
        ("multi_head", {"residual": True}, "differs"),
        ("multi_head", {"prenorm": "layer"}, "differs"),
    ],
)
def test_what_was_declared_is_held(name, declared, mistake):
    report = attncheck.check(built(name), **declared)
    assert found(report) == [mistake], report.text(True)
    assert report.exit_status == 1


ADDED = ("return self.out_proj(context)", "return x + self.out_proj(context)")
NORMED = (
    ("self.d_out = d_out", "self.d_out = d_out; self.norm = nn.LayerNorm(d_in)"),
    ("        queries = self.W_query(x)", "        x = self.norm(x)\n"
     "        queries = self.W_query(x)"),
)  # fmt: skip
UNSCALED = ("scores / self.head_dim**0.5", "scores")
WHOLE = ("scores / self.head_dim**0.5", "scores / self.head_dim")


@pytest.mark.parametrize(
    ("changes", "declared"),
    [
        ([ADDED], {"residual": True}),
        ([*NORMED], {"prenorm": "layer"}),
        ([UNSCALED], {"scale": "none"}),
        ([WHOLE], {"scale": "1/d"}),
        ([UNSCALED], {"scale": 1.0}),
    ],
)
def test_a_layer_that_does_more_passes_where_that_is_declared(changes, declared):
    report = attncheck.check(built("multi_head", *changes), **declared)
    assert (report.verdict, found(report)) == ("passed", []), report.text(True)


@pytest.mark.parametrize("changes", [[ADDED], [*NORMED]])
def test_an_added_input_or_a_norm_needs_no_words(changes):
    report = attncheck.check(built("multi_head", *changes))
    assert (report.verdict, found(report)) == ("passed", []), report.text(True)
    report = attncheck.check(built("multi_head", *changes, UNSCALED))
    assert found(report)[:1] == ["scale_missing"], report.text(True)


def test_a_window_that_is_wider_than_what_was_given_is_asked_about():
    given = (("n_heads):", "n_heads, window=3):"),
             ("self.n_heads, self.d_head", "self.window = window\n        "
              "self.n_heads, self.d_head"))  # fmt: skip
    wide = (*given, ("far >= 3", "far > self.window"))
    report = attncheck.check(built("window", *wide))
    assert (report.verdict, found(report)) == ("not judged", []), report.text(True)
    assert "--window 4" in str(report)
    told = run_check(built("window", *wide), own={"window": 3}, window=4)
    assert told.verdict == "passed", told.text(True)
    right = (*given, ("far >= 3", "far >= self.window"))
    assert attncheck.check(built("window", *right)).verdict == "passed"


def test_a_class_that_speaks_of_no_scale_is_asked():
    source = BASES["multi_head"][0].replace(*UNSCALED).replace(
        "Attention(nn.Module):", 'Attention(nn.Module):\n    """As in T5."""\n'
    )  # fmt: skip
    report = attncheck.check(compiled(HEADER + source, "t5.py"))
    assert (report.verdict, found(report)) == ("not judged", [])
    assert "--scale none" in str(report)


def test_a_bias_of_the_scores_is_the_readers_function():
    biased = (
        ("self.d_out = d_out", "self.d_out = d_out\n"
         "        self.table = nn.Parameter(torch.randn(num_heads, 31))"),
        ("        hidden =", "        i = torch.arange(t, device=x.device)\n"
         "        scores = scores / self.head_dim**0.5 + "
         "self.table[:, i - i[:, None] + 15]\n        hidden ="),
        ("scores / self.head_dim**0.5, dim", "scores, dim"),
    )  # fmt: skip

    def bias(module, t):
        i = torch.arange(t)
        return module.table[:, i - i[:, None] + 15]

    cls = built("multi_head", *biased)
    assert attncheck.check(cls, bias=bias).verdict == "passed"
    report = attncheck.check(cls, bias=lambda module, t: 2 * bias(module, t))
    assert found(report) == ["differs"]
    assert attncheck.check(cls).verdict == "not judged"
    report = attncheck.check(cls, bias=lambda module, t: 1 / 0)
    assert "raised ZeroDivisionError" in report.problem


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rope": "thirds"}, "rope must be True"),
        ({"rope": {"width": 3}}, "rope must be True"),
        ({"window": 0}, "window must be a whole number"),
        ({"qk_norm": "batch"}, "qk_norm must be one of"),
        ({"scale": "big"}, "scale must be a number"),
        ({"residual": "late"}, "residual must be True or False"),
    ],
)
def test_options_that_mean_nothing_are_explained(options, words):
    report = attncheck.check(built("multi_head"), **options)
    assert report.exit_status == 2
    assert words in report.problem


def test_an_option_that_is_gone_says_what_replaces_it():
    with pytest.raises(TypeError, match=r"softcap= is no option any more: pass a corr"):
        attncheck.check(nn.Linear, softcap=50.0)

    class Capped(built("multi_head")):
        def __init__(self, d_in, d_out, context_length, dropout, num_heads, softcap):
            super().__init__(d_in, d_out, context_length, dropout, num_heads)

    assert attncheck.check(Capped, softcap=50.0).verdict == "passed"
