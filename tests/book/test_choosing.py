"""Examples that are there to show attention choosing: a plain mean could not do it.

Each gives the result of one query and the vectors that were averaged for it. The angle
between that result and their plain mean is what the choice made of it.
"""

import io
from contextlib import redirect_stdout
from functools import cache

import pytest
import torch

from attention import SelfAttention_v2, simple_self_attention
from coding_attention import example
from coding_attention.models import bottleneck, real, stored
from coding_attention.models.translation import grammar
from tests.book.run_cells import run_cells

LEAST = 10  # degrees


def angle(one, other):
    cosine = torch.nn.functional.cosine_similarity(one, other, dim=-1)
    return torch.rad2deg(torch.acos(cosine.clamp(-1, 1)))


@cache
def cells(page, *names):
    with redirect_stdout(io.StringIO()):
        return run_cells(page, *names)


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


def kitten_and_van():
    """Page 02, one-word-exchanged."""
    meaning = cells("02_simple_self_attention", "words")["meaning"]
    for word in ("kitten", "van"):
        sentence = ["the", word, "passed", "cats", "and", "trucks"]
        x = torch.tensor([meaning[w] for w in sentence])
        yield simple_self_attention(x)[1], x


def learned_to_look_back():
    """Page 03, training: what the layer gives of six one-hot tokens."""
    page = cells("03_trainable_self_attention", "simple-cannot",
                 "listing-self-attention-v2", "training-task", "train",
                 "training")  # fmt: skip
    return page["seen"][200][1], page["words"]


@torch.no_grad()
def head_31(sentence, word):
    """Pages 03 and 04: a trained head, in the space of its values."""
    head = real.load_head(SelfAttention_v2(384, 32, qkv_bias=True), "3.1")
    tokens, x = real.states("3.1", sentence)
    return head(x)[tokens.index(word)], head.W_value(x)


def half_from_each():
    """Page 05, two-softmaxes: each head takes all of one token."""
    page = cells("05_multi_head_attention", "batch", "one-softmax", "two-softmaxes")
    values = page["values"]
    return page["head_0"], values[:, :3]


@torch.no_grad()
def twelve():
    """Page 05, figure-twelve-heads: heads named by what they were seen to do."""
    page = cells("05_multi_head_attention", "batch", "listing-multi-head-attention",
                 "load-trained-layer", "twelve-heads",
                 "figure-twelve-heads")  # fmt: skip
    layer = page["causal"]
    for (weights, words), head in (
        (page["shown"]["query: )"], 6),
        (page["shown"]["query: the second cat"], 1),
    ):
        sentence = next(s for s in real.sentences("1")
                        if real.states("1", s)[0] == words)  # fmt: skip
        x = real.states("1", sentence)[1]
        values = layer.W_value(x).view(len(x), 12, 32)[:, head]
        yield weights[head] @ values, values


IT = "the workers watched the piano until {} left"
TIRED = "the animal did not cross the street because it was too tired"
EXAMPLES = {
    "01 translator": lambda: [translator()],
    "02 kitten and van": kitten_and_van,
    "03 look back": lambda: [learned_to_look_back()],
    "03 it": lambda: [head_31(IT.format("it"), "it")],
    "03 they": lambda: [head_31(IT.format("they"), "they")],
    "04 it was too tired": lambda: [head_31(TIRED, "it")],
    "05 half from each": lambda: [half_from_each()],
    "05 twelve heads": twelve,
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_of_choosing_is_no_average_in_disguise(name):
    for z, averaged in EXAMPLES[name]():
        assert (angle(z, averaged.mean(dim=0)) >= LEAST).all()


def test_the_six_vectors_which_choose_nothing_stay_near_the_mean():
    """As page 02 says; so the measure tells a choice from an average."""
    x = example.inputs()
    assert (angle(simple_self_attention(x), x.mean(dim=0)) < LEAST).all()
