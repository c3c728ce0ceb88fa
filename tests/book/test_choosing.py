"""Trained heads that the pages show choosing: a plain mean could not do it.

Each gives the result of one query and the vectors that were averaged for it. The angle
between that result and their plain mean is what the choice made of it.
"""

import pytest
import torch

from attention import SelfAttention_v2, simple_self_attention
from coding_attention import example
from coding_attention.models import bottleneck, real, stored
from coding_attention.models.translation import grammar

LEAST = 10  # degrees


def angle(one, other):
    cosine = torch.nn.functional.cosine_similarity(one, other, dim=-1)
    return torch.rad2deg(torch.acos(cosine.clamp(-1, 1)))


@torch.no_grad()
def translator():
    """Page 01, figure-learned-alignment: each written word and the states it read."""
    config = bottleneck.Config()
    model = bottleneck.build(config, "grammar", "with").eval()
    model.load_state_dict(stored.load_weights("bottleneck_grammar_with"))
    source, _, _ = grammar(1, 11, torch.Generator().manual_seed(11))
    states, _ = model.encoder(source)  # (1, t, d)
    _, weights = model(source, 11)
    return weights[0] @ states[0], states[0]


@torch.no_grad()
def head_31(sentence, word):
    """Pages 03 and 04: a trained head, in the space of its values."""
    head = real.load_head(SelfAttention_v2(384, 32, qkv_bias=True), "3.1")
    tokens, x = real.states("3.1", sentence)
    return head(x)[tokens.index(word)], head.W_value(x)


IT = "the workers watched the piano until {} left"
TIRED = "the animal did not cross the street because it was too tired"
EXAMPLES = {
    "01 translator": translator,
    "03 it": lambda: head_31(IT.format("it"), "it"),
    "03 they": lambda: head_31(IT.format("they"), "they"),
    "04 it was too tired": lambda: head_31(TIRED, "it"),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_of_choosing_is_no_average_in_disguise(name):
    z, averaged = EXAMPLES[name]()
    assert (angle(z, averaged.mean(dim=0)) >= LEAST).all()


def test_the_six_vectors_which_choose_nothing_stay_near_the_mean():
    """As page 02 says; so the measure tells a choice from an average."""
    x = example.inputs()
    assert (angle(simple_self_attention(x), x.mean(dim=0)) < LEAST).all()
