"""Nothing is found in attention that is right, however it is written."""

import pytest
import torch
from torch import nn

import attention
from coding_attention.gallery import correct_variants

OURS = [
    (attention.CausalAttention, True),
    (attention.MultiHeadAttention, True),
    (attention.MultiHeadAttentionWrapper, True),
    (attention.SelfAttention_v1, False),
    (attention.SelfAttention_v2, False),
    (attention.simple_self_attention, False),
]
PARITY = "same output as attention with these weights"


def outcomes(report):
    return {result.test: result.outcome for result in report.results}


@pytest.mark.parametrize(
    ("cls", "arguments"),
    [pytest.param(c, a, id=words) for words, c, a in correct_variants.VARIANTS],
)
def test_nothing_is_found_in_a_correct_variant(cls, arguments):
    report = attention.check(cls, **arguments)
    assert report.findings == [], str(report)
    assert report.exit_status == 0
    # Not because nothing was looked at: the weights were found and compared.
    assert outcomes(report)[PARITY] == "passed"
    assert "broken" not in outcomes(report).values()


def test_there_are_enough_variants():
    assert len(correct_variants.VARIANTS) >= 14
    for words, _, arguments in correct_variants.VARIANTS:
        assert ("tokens first" in words) == (arguments.get("layout") == "tbd"), words
        assert "tokens last" not in words


@pytest.mark.parametrize(("ours", "causal"), OURS)
def test_nothing_is_found_in_the_chapters_own_classes(ours, causal):
    report = attention.check(ours, causal=causal)
    assert report.ok, str(report)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_instances_work_in_any_dtype(bias, dtype):
    module = attention.MultiHeadAttention(12, 24, 10, 0.1, 3, qkv_bias=bias).to(dtype)
    report = attention.check(module)
    assert report.ok, str(report)
    assert outcomes(report)["too many tokens"] == "passed"
    assert outcomes(report)["dropout"] == "passed"


def test_an_instance_that_keeps_its_weights_for_plotting_works():
    module = correct_variants.ReturnsWeights(16, 16)
    module(torch.randn(2, 3, 16))  # leaves a tensor with a graph on the module
    report = attention.check(module)
    assert report.ok, str(report)
    assert any("tuple of 2" in note for note in report.notes)


def test_the_layer_that_wants_tokens_first_is_told_apart():
    report = attention.check(nn.MultiheadAttention)
    assert [f.mistake for f in report.findings] == ["batch_first"]
    assert attention.check(nn.MultiheadAttention, layout="tbd").ok


def test_a_layer_without_attention_is_no_attention():
    report = attention.check(nn.Linear)
    assert [f.mistake for f in report.findings] == ["tokens_not_mixed"]


def test_a_causal_layer_checked_without_causal_is_told():
    report = attention.check(attention.CausalAttention, causal=False)
    assert [f.mistake for f in report.findings] == ["mask_unwanted"]
