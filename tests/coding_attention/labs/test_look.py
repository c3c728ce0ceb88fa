"""The look lab in Python: its weights and numbers are those of the trained head."""

import torch
from bs4 import BeautifulSoup

from attention import SelfAttention_v2
from coding_attention.labs import LookLab
from coding_attention.labs.look import _pack, _unpack
from coding_attention.models import real


@torch.no_grad()
def look(sentence):
    """Give the words of a sentence, and what head 3.1 computes of them."""
    words, x = real.states("3.1", sentence)
    layer = real.load_head(SelfAttention_v2(384, 32, qkv_bias=True), "3.1")
    scores = layer.W_query(x) @ layer.W_key(x).T  # (t, t)
    return words, scores, (scores / 32**0.5).softmax(dim=-1)


def test_weights_of_the_stored_scores_are_those_of_the_head():
    for i, scene in enumerate(LookLab().scenes):
        for sentence, exchanged in zip(scene["words"], (False, True), strict=True):
            lab = LookLab(scene=i, exchanged=exchanged)
            words, _, weights = look(" ".join(sentence[1:-1]))
            assert lab.compute()[0] == words
            torch.testing.assert_close(
                lab.compute()[1].float(), weights[lab.asked], atol=1e-3, rtol=0
            )


def read_head(name, target):
    """Give a word's score, scaled score and weight for another, as they are written."""
    words, scores, weights = look(f"the workers watched the piano until {name} left")
    i, j = words.index(name), words.index(target)
    assert weights[i].argmax() == j
    return (
        f"{scores[i, j]:.1f}",
        f"{scores[i, j] / 32**0.5:.2f}",
        f"{weights[i, j]:.2f}",
    )


def test_static_figure_says_what_the_head_computes():
    numbers = {
        ("they", "workers"): read_head("they", "workers"),
        ("it", "piano"): read_head("it", "piano"),
    }
    for shown, other in (list(numbers), list(numbers)[::-1]):
        lab = LookLab(exchanged=shown[0] == "it")
        soup = BeautifulSoup(lab.fallback(), "html.parser")
        caption = soup.select("p")[-1].text
        assert f"{shown[1]} {', '.join(numbers[shown])};" in soup.svg["aria-label"]
        assert all(number in caption for number in numbers[shown])
        assert f"“{other[0]}” looks at {other[1]} ({numbers[other][2]})" in caption


def test_numbers_packed_into_bytes_are_the_same_to_a_half_step():
    rows = torch.randn(5, 8, generator=torch.Generator().manual_seed(1)) * 3
    packed = _pack(rows)
    found = _unpack(packed, 5)
    half = packed["scale"] / 2
    torch.testing.assert_close(found, rows, atol=1.001 * half, rtol=0)
    assert half < rows.abs().max() / 250
