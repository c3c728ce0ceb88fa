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
def test_stored_attention_is_that_of_the_loaded_head():
    shared = set(real.sentences("3.1")) & set(real.facts()["looks"])
    assert len(shared) >= 10
    layer = head("3.1")
    for sentence in shared:
        words, look = real.looks(sentence, "3.1")
        tokens, x = real.states("3.1", sentence)
        assert words == tokens
        torch.testing.assert_close(weights_of(layer, x), look, atol=3e-3, rtol=0)


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


@pytest.mark.parametrize("sentence", real.facts()["looks"])
def test_rows_of_stored_attention_sum_to_one(sentence):
    for name in real.facts()["heads"]:
        words, weights = real.looks(sentence, name)
        assert weights.shape == (len(words), len(words))
        # Each of the entries was rounded to 1/255.
        assert (weights.sum(dim=-1) - 1).abs().max() <= len(words) / 510


def test_what_each_stored_head_is_told_to_do_is_seen_on_the_stored_sentences():
    facts = real.facts()["looks"]
    before, idle = [], []
    for sentence in facts:
        words, weights = real.looks(sentence, "0.2")
        if not any(word in sentence for word in ("drummer", "neighbors")):
            before.append(weights.diagonal(-1))
        idle.append(real.looks(sentence, "4.5")[1][1:-1, 0])
        if "(" in words:
            i, j = real.find(words, ")"), real.find(words, "(")
            assert real.looks(sentence, "1.6")[1][i, 1:-1].argmax() + 1 == j
        if " and then the " in sentence:
            twice = next(w for w in words[1:-1] if w != "the" and words.count(w) == 2)
            i = real.find(words, f"{twice}#2")
            row = real.looks(sentence, "2.9")[1][i].clone()
            row[[0, i, -1]] = 0
            assert row.argmax() == real.find(words, twice), sentence
    assert (torch.cat(before) >= 0.97).float().mean() > 0.99
    assert (torch.cat(idle) > 0.5).float().mean() > 0.95


def test_pieces_of_a_word_are_joined():
    weights = torch.tensor([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    words, joined = real.join(["a", "dr", "##um"], weights)
    assert words == ["a", "drum"]
    torch.testing.assert_close(joined, torch.tensor([[0.5, 0.5], [0.0, 1.0]]))


def test_the_second_occurrence_is_found():
    assert real.find(["a", "b", "a"], "a") == 0
    assert real.find(["a", "b", "a"], "a#2") == 2


def test_a_sentence_without_states_is_named():
    with pytest.raises(ValueError, match=r"No states of 'no such' are stored for 3\.1"):
        real.states("3.1", "no such")


def test_what_travels_with_the_book_is_small():
    files = [*stored.RESULTS.glob("real*")]
    assert len(files) == 5
    assert sum(file.stat().st_size for file in files) <= 2_000_000
