"""What the experiments train on is what their pages say."""

import pytest
import torch

from coding_attention.models import sentences, translation
from coding_attention.models.repeats import repeats


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_reversal_is_backwards():
    source, target, alignment = translation.reversal(50, 7, seeded())
    assert source.tolist() == [list(reversed(line)) for line in target.tolist()]
    assert torch.equal(source.gather(1, alignment), target)
    assert source.min() == 2  # not a special token
    assert source.max() == 2 + translation.LETTERS - 1


def test_grammar_by_hand():
    source, target, alignment = translation.grammar(1, 8, seeded(5))
    s = source[0].tolist()
    assert alignment[0].tolist() == [0, 6, 7, 5, 3, 4, 2, 1]
    assert target[0, :-1].tolist() == [s[0], s[6], s[7], s[5], s[3], s[4], s[2]]
    assert target[0, -1] == s[1] + (s[0] % 2) * (
        translation.PLURAL_VERB - translation.VERB
    )


@pytest.mark.parametrize("length", [2, 4, 7])
def test_grammar_refuses_other_lengths(length):
    with pytest.raises(ValueError, match=f"length={length}"):
        translation.grammar(1, length, seeded())


def test_repeats_repeat_and_nothing_else_does():
    tokens, periods = repeats(200, 40, 32, 6, 20, seeded())
    assert set(periods.tolist()) == set(range(6, 21))
    for line, period in zip(tokens.tolist(), periods.tolist(), strict=True):
        assert len(set(line[:period])) == period
        assert line == (line[:period] * 7)[:40]
    assert len({tuple(line[:6]) for line in tokens.tolist()}) > 190


def test_sentences_follow_their_own_grammar():
    generator = seeded()
    drawn = {sentences.sentence(generator) for _ in range(500)}
    assert len(drawn) > 300
    assert all(sentences.is_right(sentence) for sentence in drawn)


@pytest.mark.parametrize(
    "wrong",
    [
        "your journey start with one step at home and ends at home.",
        "your journey starts with one step at home and end at home.",
        "your journeys starts with one step at home and ends at home.",
        "your journey starts with one steps at home and ends at home.",
        "your journey starts with two step at home and ends at home.",
        "your journey starts with one step at home and ends at home",
        "our journey starts with one step at home and ends at home.",
    ],
)
def test_wrong_sentences_are_found(wrong):
    assert not sentences.is_right(wrong)
