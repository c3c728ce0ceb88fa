"""What page 02 says of choosing holds, and a plain mean could not do it."""

import math

import pytest
import torch

from attention import simple_self_attention
from tests.book.run_cells import run_cells

FRAME = "the {} passed cats and trucks"


@pytest.fixture(scope="module")
def meaning():
    return run_cells("02_simple_self_attention", "words")["meaning"]


def angle(one, other):
    cosine = torch.nn.functional.cosine_similarity(one, other, dim=0)
    return math.degrees(math.acos(cosine.clamp(-1, 1)))


@pytest.mark.parametrize(("word", "chosen"), [("kitten", "cats"), ("van", "trucks")])
def test_the_example_chooses_and_the_mean_does_not(meaning, word, chosen):
    sentence = FRAME.format(word).split()
    x = torch.tensor([meaning[w] for w in sentence])
    weights = torch.softmax(x @ x[1], dim=0)
    assert weights[sentence.index(chosen)] >= 0.6
    z, mean = simple_self_attention(x)[1], x.mean(dim=0)
    assert angle(z, mean) >= 30
    # The control: averaged plainly, every row is the mean, so no word differs.
    plain = torch.full((6, 6), 1 / 6) @ x
    assert torch.allclose(plain, mean.expand(6, 2))


def test_kitten_and_van_turn_to_different_sides_of_the_mean(meaning):
    sides = []
    for word in ("kitten", "van"):
        x = torch.tensor([meaning[w] for w in FRAME.format(word).split()])
        (a, b), (c, d) = x.mean(dim=0), simple_self_attention(x)[1]
        sides.append(float(a * d - b * c))  # the sign says to which side z lies
    assert sides[0] < 0 < sides[1]


@pytest.mark.parametrize("others", range(1, 5))
def test_what_leans_neither_way_gets_the_mean_of_balanced_words(meaning, others):
    """And no longer once it leans, which is the control."""
    rest = [meaning["cats"], meaning["trucks"]] * others
    for it, limit in (([1.0, 1.0], 1e-3), ([1.0, 0.0], 20)):
        x = torch.tensor([it, *rest], dtype=torch.float64)
        turned = angle(simple_self_attention(x)[0], x.mean(dim=0))
        assert turned < 0.1 if limit < 1 else turned > limit


def test_kitten_takes_the_most_from_cats_because_that_vector_is_longer(meaning):
    """Nothing is as similar to a word as the word itself."""
    sentence = FRAME.format("kitten").split()
    x = torch.tensor([meaning[w] for w in sentence])
    cosines = torch.nn.functional.cosine_similarity(x, x[1:2])
    assert 0.8 < cosines[sentence.index("cats")] < cosines[1]
    equally_long = 2 * torch.nn.functional.normalize(x, dim=1)
    for words, first in ((x, "cats"), (equally_long, "kitten")):
        assert sentence[(words @ words[1]).argmax()] == first


def test_kitten_chooses_because_the_scores_differ(meaning):
    x = torch.tensor([meaning[w] for w in FRAME.format("kitten").split()])
    largest = [torch.softmax((s * x) @ (s * x)[1], dim=0).max() for s in (1, 0.3)]
    assert largest[1] < 0.25 < 0.8 < largest[0]
