"""Cross-attention with a memory: an option of the check, and its mistakes."""

import pytest
import torch
from torch import nn

import attention
from attncheck.contracts import check_cache


class Cross(nn.Module):
    """Right cross-attention, unless told to make a mistake."""

    mistake = ""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.a, self.b, self.c, self.d = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x, memory):
        wrong = self.mistake
        read = {"self": x, "both": torch.cat([memory, x], dim=1)}.get(wrong, memory)
        read = read.detach() if wrong == "detached" else read
        q, k, v = (
            self.split(self.a(x)),
            self.split(self.b(read)),
            self.split(self.c(read)),
        )
        scores = q @ k.transpose(2, 3)
        if wrong != "unscaled":
            scores = scores / q.shape[-1] ** 0.5
        if wrong == "masked":
            hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(hidden, -torch.inf)
        weights = scores.softmax(dim=-2 if wrong == "columns" else -1)
        context = (weights @ v).transpose(1, 2)
        return self.d(context.reshape(x.shape))

    def split(self, x):
        return x.view(*x.shape[:2], self.n_heads, -1).transpose(1, 2)


def with_mistake(name):
    return type("Cross", (Cross,), {"mistake": name})


@pytest.mark.parametrize("memory", [3, 6, 9])
def test_right_cross_attention_is_compared_and_clean(memory):
    for given in (Cross, nn.MultiheadAttention(16, 4, batch_first=True)):
        report = attention.check(given, memory=memory, strict=True)
        assert report.ok, str(report)
        assert report.findings == []
        test = "same output as attention with these weights"
        assert test in str(report)
        assert "NOT COMPARED" not in str(report)


@pytest.mark.parametrize(
    ("mistake", "named"),
    [
        ("self", "cross_ignores_memory"),
        ("both", "cross_mixes_queries"),
        ("unscaled", "scale_missing"),
        ("masked", "cross_masked"),
        ("columns", "cross_mixes_queries"),
        ("detached", "gradient_missing"),
    ],
)
def test_mistakes_with_a_memory_are_named(mistake, named):
    report = attention.check(with_mistake(mistake), memory=6)
    assert not report.ok
    found = [finding.mistake for finding in report.findings]
    assert named in found, str(report)
    assert mistake != "self" or "The memory gets no gradient" not in str(report)


def test_a_class_without_a_memory_is_told_so():
    report = attention.check(attention.SelfAttention_v2, memory=4)
    assert report.verdict == "not judged"
    assert "no memory" in report.findings[0].seen


@pytest.mark.parametrize("wrong", [0, -2, 1.5, True, "six"])
def test_a_memory_is_a_number_of_tokens(wrong):
    report = attention.check(Cross, memory=wrong)
    assert not report.usable
    assert f"memory must be a whole number ≥ 1, got {wrong!r}" in report.problem


def test_two_inputs_without_a_memory_are_given_one_and_the_note_says_so():
    report = attention.check(Cross)
    assert report.verdict == "passed"
    assert "forward was called with memory=a memory with other tokens." in report.notes
    mistaken = attention.check(with_mistake("masked"))
    assert mistaken.verdict == "failed", str(mistaken)


def test_a_cache_is_found_in_the_file_of_the_class_or_given():
    for given in ({}, {"new_cache": lambda module: attention.KeyValueCache()}):
        report = check_cache(attention.FusedMultiHeadAttention, **given)
        assert report.ok, str(report)
