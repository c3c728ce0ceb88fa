"""The look lab in Python: its weights and numbers are those that are stored."""

import base64

import torch
from bs4 import BeautifulSoup

from coding_attention.labs import LookLab, look
from coding_attention.models import real


def test_weights_of_the_scores_are_the_stored_ones_to_half_a_step():
    lab = LookLab()
    for i, scene in enumerate(lab.scenes):
        for sentence, exchanged in zip(scene["words"], (False, True), strict=False):
            text = " ".join(sentence[1:-1])
            lab = LookLab(scene=i, exchanged=exchanged)
            words, weights = real.looks(text, scene["head"])
            assert lab.compute()[0] == words
            # Half a step of the weights, and the scores' thousandths.
            torch.testing.assert_close(
                lab.compute()[1].float(), weights[lab.asked], atol=0.6 / 255, rtol=0
            )


def test_static_figure_says_where_both_words_look():
    soup = BeautifulSoup(LookLab().fallback(), "html.parser")
    for word, target in (("they", "workers"), ("it", "piano")):
        sentence = f"the workers watched the piano until {word} left"
        words, weights = real.looks(sentence, "3.1")
        row = weights[words.index(word)]
        assert words[int(row.argmax())] == target
        told = f"{word} looks at {target} ({row.max():.2f})"
        assert told.lower() in soup.get_text().lower()
        assert told in soup.svg["aria-label"]


def test_numbers_packed_into_bytes_are_the_same_to_a_half_step():
    rows = torch.randn(5, 8, generator=torch.Generator().manual_seed(1)) * 3
    packed = look._packed(rows)
    steps = torch.tensor(list(base64.b64decode(packed["steps"]))).to(torch.int8)
    found = packed["scale"] * steps.float().view(5, 8)
    half = packed["scale"] / 2
    torch.testing.assert_close(found, rows, atol=1.001 * half, rtol=0)
    assert half < rows.abs().max() / 250
