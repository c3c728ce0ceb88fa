"""The heads that the book carries compute what the model computed.

The stored results come from the whole model in float32 (`experiments.real` computes
them again); here the loaded weights, in float16, have to reach them by themselves.
"""

import pytest
import torch

from attention import (
    CausalAttention,
    FusedMultiHeadAttention,
    MultiHeadAttention,
    SelfAttention_v2,
    convert,
)
from coding_attention.models import real, stored
from experiments.real.measure import top_word, weights_of

LAYOUT = convert.separate(("self.query", "self.key", "self.value", "output.dense"))


def head(name):
    return real.load_head(SelfAttention_v2(384, 32, qkv_bias=True), name)


def cases(name):
    for sentence in real.sentences(name):
        yield sentence, *real.states(name, sentence), real.output(name, sentence)


@pytest.mark.parametrize("name", ["0.2", "3.1"])
@torch.no_grad()
def test_a_loaded_head_answers_as_the_model_did(name):
    layer = head(name)
    for sentence, tokens, x, output in cases(name):
        assert len(tokens) == len(x), sentence
        torch.testing.assert_close(layer(x), output, atol=1e-3, rtol=1e-3)


@torch.no_grad()
def test_any_class_with_the_three_layers_takes_a_head():
    """Under a mask only the last token still sees the whole sentence."""
    causal = real.load_head(CausalAttention(384, 32, 16, 0.0, qkv_bias=True), "3.1")
    for _, _, x, output in cases("3.1"):
        masked = causal(x[None])[0]
        torch.testing.assert_close(masked[-1], output[-1], atol=1e-3, rtol=1e-3)
        assert (masked[:-1] - output[:-1]).abs().max() > 0.1


@torch.no_grad()
def test_the_loaded_layer_answers_as_the_model_did():
    state = convert.to_ours(real.layer_state(), LAYOUT)
    layer = FusedMultiHeadAttention(384, 384, 512, 0.0, 12, True, causal=False)
    layer.load_state_dict(state)
    causal = MultiHeadAttention(384, 384, 32, 0.0, 12, qkv_bias=True)
    causal.load_state_dict(convert.to_ours(real.layer_state(), LAYOUT, 32))
    for _, _, x, output in cases("1"):
        torch.testing.assert_close(layer(x[None])[0], output, atol=1e-3, rtol=1e-3)
        assert (causal(x[None])[0] - output).abs().max() > 0.05
    causal.mask.zero_()
    for _, _, x, output in cases("1"):
        torch.testing.assert_close(causal(x[None])[0], output, atol=1e-3, rtol=1e-3)


@torch.no_grad()
def test_the_stored_pairs_flip():
    layer, right = head("3.1"), 0
    for both in real.pairs():
        found = []
        for sentence, query, target in both:
            tokens, x = real.states("3.1", sentence)
            weights = weights_of(layer, x)
            found.append(top_word(weights, tokens, query, target).item())
        right += all(found)
    # Of all pairs, counted with the whole model, as many flip or more.
    told = real.facts()["measured"]["people or thing"]
    assert right / 20 >= told["right"] / told["of"] - 0.05


def test_the_second_occurrence_is_found():
    assert real.find(["a", "b", "a"], "a") == 0
    assert real.find(["a", "b", "a"], "a#2") == 2


def test_a_sentence_without_states_is_named():
    with pytest.raises(ValueError, match=r"No states of 'no such' are stored for 3\.1"):
        real.states("3.1", "no such")


def test_what_travels_with_the_book_is_small():
    files = [*stored.RESULTS.glob("real*")]
    assert len(files) == 4
    assert sum(file.stat().st_size for file in files) <= 2_000_000
