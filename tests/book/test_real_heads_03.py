"""What page 03 says of trained heads, with its controls."""

import io
from contextlib import redirect_stdout

import pytest
import torch

from coding_attention.models import real
from tests.book.run_cells import run_cells

CELLS = (
    "task", "listing-self-attention-v2", "real-word-before",
    "real-one-word-exchanged", "controls", "real-values",
)  # fmt: skip


@pytest.fixture(scope="module")
def page():
    with redirect_stdout(io.StringIO()):
        return run_cells("03_trainable_self_attention", *CELLS)


def count(page, weights_of, only_nouns=False):
    found = (page["first_in_both"](weights_of, b, only_nouns) for b in real.pairs())
    return sum(found)


def test_the_head_finds_nouns_and_no_random_head_does(page):
    assert count(page, page["ways"]["head 3.1"]) >= 19
    sentence = "your journey starts with one step"
    _, x = real.states("0.2", sentence)
    assert page["look"](page["head_02"], x).diagonal(-1).min() > 0.97
    for seed in range(6):
        torch.manual_seed(seed)
        head = page["SelfAttention_v2"](384, 32, qkv_bias=True)
        assert count(page, lambda x, head=head: page["look"](head, x)) < 10  # at most 6
        assert page["look"](head, x).diagonal(-1).mean() < 0.3  # 0.14


def test_resemblance_leans_to_the_right_noun_and_never_puts_it_first(page):
    plain = page["ways"]["x x.T"]
    assert 13 <= count(page, plain, only_nouns=True) <= 18  # 16
    assert count(page, plain) <= 2  # 0
    first = []
    for sentence, pronoun, _ in (labeled for both in real.pairs() for labeled in both):
        names, x = real.states("3.1", sentence)
        row = plain(x)[names.index(pronoun)]
        row[[0, -1, names.index(pronoun)]] = -torch.inf
        first.append(names[row.argmax()])
    assert first.count("the") > 30  # of 40: 36


def test_values_turn_each_pair_further_apart(page):
    """In each pair, not only on average; a random head's values do not."""

    def angles(values):
        return [page["angle_between"](both, values) for both in page["pairs"]]

    without = angles(lambda x: x)
    trained = angles(page["head"].W_value)
    assert all(a > b for a, b in zip(trained, without, strict=True))
    torch.manual_seed(0)
    random = page["SelfAttention_v2"](384, 32, qkv_bias=True)
    assert sum(angles(random.W_value)) < sum(trained) - 200  # 10° a pair
