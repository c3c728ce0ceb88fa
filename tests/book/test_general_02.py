"""Claims of the pages on simple self-attention and of the landing page's plane."""

import math

import pytest
import torch

from attention import simple_self_attention
from coding_attention import example
from tests.book.run_cells import run_cells

KITTEN = ["the", "kitten", "passed", "cats", "and", "trucks"]


@pytest.fixture(scope="module")
def meaning():
    return run_cells("02_simple_self_attention", "words")["meaning"]


def vectors(meaning, words):
    return torch.tensor([meaning[word] for word in words])


def angle(one, other):
    cosine = torch.nn.functional.cosine_similarity(one, other, dim=0)
    return math.degrees(math.acos(cosine.clamp(-1, 1)))


def test_kitten_takes_the_most_from_cats_because_that_vector_is_longer(meaning):
    x = vectors(meaning, KITTEN)
    equally_long = torch.nn.functional.normalize(x, dim=1)
    for words, first in ((x, "cats"), (equally_long, "kitten")):
        assert KITTEN[(words @ words[1]).argmax()] == first


def test_kitten_and_van_turn_to_different_sides_of_the_mean(meaning):
    sides = []
    for word in ("kitten", "van"):
        x = vectors(meaning, [word if w == "kitten" else w for w in KITTEN])
        (a, b), (c, d) = x.mean(dim=0), simple_self_attention(x)[1]
        sides.append(float(a * d - b * c))  # the sign says to which side z lies
    assert sides[0] < -0.5 < 0.5 < sides[1]


@pytest.mark.parametrize(("it", "least", "most"), [([1, 1], 0, 0.1), ([1, 0], 20, 90)])
def test_it_stays_at_the_mean_only_while_both_nouns_score_alike(
    meaning, it, least, most
):
    x = torch.cat((torch.tensor([it]), vectors(meaning, ["cats", "trucks"])))
    assert least <= angle(simple_self_attention(x)[0], x.mean(dim=0)) <= most


def test_journey_and_starts_take_the_most_because_they_are_longest():
    x = example.inputs()
    equally_long = torch.nn.functional.normalize(x, dim=1)
    for tokens, rows in ((x, {1, 2, 3, 4, 5}), (equally_long, {1, 2})):
        top = (tokens @ tokens.T).topk(2).indices.sort().values
        assert {i for i in range(6) if top[i].tolist() == [1, 2]} == rows


def test_close_scores_are_what_keeps_the_outputs_near_the_mean():
    """The same tokens, ten times as long: scores far apart, outputs far from it."""
    x = example.inputs()
    near, far = (
        (simple_self_attention(scale * x) / scale - x.mean(dim=0)).norm(dim=1).mean()
        for scale in (1, 10)
    )
    assert near < 0.1 < 0.25 < far


@pytest.mark.parametrize("place", range(6))
def test_a_changed_token_reaches_every_context_vector(place):
    x = example.inputs()
    changed = x.clone()
    changed[place, 0] += 1
    same = torch.isclose(simple_self_attention(x), simple_self_attention(changed))
    assert not same.all(dim=1).any()
