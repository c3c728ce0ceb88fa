"""The small copy of the trained model: how it is rounded, and what is told of it."""

import hashlib

import pytest
import torch

from experiments.real import model, sentences, small, small_model
from theme import own_sentence


@pytest.fixture(scope="module")
def stored():
    return small_model.SmallModel()


def test_packed_steps_come_back():
    steps = torch.randint(-16, 16, (3, 64), generator=torch.manual_seed(0)).float()
    packed = small.pack(steps)
    assert len(packed) == 3 * 64 * 5 // 8
    assert small_model.unpack(packed).view(3, 64).equal(steps)


def test_a_layer_is_rounded_by_what_it_reads():
    """The output is closer than where each number is rounded by itself."""
    torch.manual_seed(0)
    weight = torch.randn(32, 128)
    inputs = torch.randn(500, 40) @ torch.randn(40, 128)  # their columns go together

    def error(steps, scales):
        rounded = (steps.view(32, -1, small.GROUP) * scales[..., None]).view(32, 128)
        return (inputs @ (rounded - weight).T).square().mean().item()

    by_itself = error(*small.round_rows(weight))
    assert error(*small.round_layer(weight, inputs)) < by_itself / 2


def test_no_typed_sentence_has_rounded_the_weights():
    assert not set(small.calibration()) & set(small_model.list_typed())


def test_the_stored_file_is_the_one_that_was_measured(stored):
    facts, content = own_sentence.read_facts(), small_model.FILE.read_bytes()
    assert hashlib.sha256(content).hexdigest() == facts["sha256"]
    assert facts["package"]["sha256"] == model.SHA256
    assert facts["bytes"] == len(content)
    assert facts["transferred"] <= 8_000_000
    assert facts["pieces"] == len(stored.vocabulary)
    assert facts["sentences"] == len(small_model.list_typed()) >= 40
    assert facts["rates"] == small_model.measure(stored)


def test_a_split_word_has_one_row_and_one_column(stored):
    words, weights = stored.look("She can't find her beagles.")
    assert words[1:-1] == ["She", "can't", "find", "her", "beagles", "."]
    assert len(stored.split("beagles")[1][0]) > 1
    assert weights.shape == (4, 12, 8, 8)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(4, 12, 8))


def test_typed_sentences_hold_what_their_lists_ask_for():
    for name in dict.fromkeys(small_model.LISTS.values()):
        for sentence, query, target in sentences.read_labeled(name, "typed.txt"):
            words = small_model.WORD.findall(sentence)
            query_place = small_model.place(words, query)
            assert query_place != small_model.place(words, target), sentence
            if name == "same word":
                assert words[query_place].lower() == target
