"""What page 03 says of values that learn and of trained heads, with its controls."""

import io
from contextlib import redirect_stdout

import pytest
import torch

from coding_attention.models import real
from tests.book.run_cells import run_cells

PAGE = "03_trainable_self_attention"
CLASS = ("simple-cannot", "listing-self-attention-v2")


@pytest.fixture(scope="module")
def page():
    with redirect_stdout(io.StringIO()):
        names = ("real-word-before", "real-one-word-exchanged", "parts-taken-away")
        return run_cells(PAGE, *CLASS, *names, "real-values")


def found(page, way):
    return [
        [page["finds"](page["ways"][way], *labeled) for labeled in both]
        for both in real.pairs()
    ]


def flips(page, way):
    return sum(all(right for right, _ in both) for both in found(page, way))


def test_the_trained_head_finds_people_and_things_and_its_controls_do_not(page):
    assert flips(page, "trained head") >= 19
    for way in ("plain mean", "W_key = W_query"):
        assert flips(page, way) == 0
    assert flips(page, "random weights") <= 5


def test_no_random_head_finds_them_or_looks_at_the_token_before(page):
    sentence = "your journey starts with one step"
    _, x = real.states("0.2", sentence)
    assert page["look"](page["head_02"], x).diagonal(-1).min() > 0.97
    for seed in range(10):
        torch.manual_seed(seed)
        head = page["SelfAttention_v2"](384, 32, qkv_bias=True)
        page["ways"]["another"] = lambda x, head=head: page["look"](head, x)
        assert flips(page, "another") < 10  # 6 at most of a hundred seeds
        assert page["look"](head, x).diagonal(-1).mean() < 0.3  # 0.14 of fifty
        # Its values turn no more than the inputs themselves.
        assert sum(page["results"](head.W_value)) / 20 < 80  # 72 degrees
    assert sum(page["results"](page["head"].W_value)) / 20 > 85


def test_without_the_division_the_head_looks_at_the_same_words_only_harder(page):
    whole, undivided = (found(page, way) for way in ("trained head", "not divided"))
    for one, other in zip(whole, undivided, strict=True):
        assert [right for right, _ in one] == [right for right, _ in other]
    assert sum(w for both in undivided for _, w in both) > 5 + sum(
        w for both in whole for _, w in both
    )


def test_with_one_matrix_each_word_looks_at_itself(page):
    for both in real.pairs():
        for sentence, query, _ in both:
            tokens, x = real.states("3.1", sentence)
            i = tokens.index(query)
            assert page["look"](page["head"], x, one_matrix=True)[i, i] > 0.9
            assert page["look"](page["head"], x)[i, i] < 0.1


def test_values_pass_on_what_differs(page):
    """In each pair, not only on average; the inputs' own mixture differs by less."""
    with_values = [*page["results"](page["head"].W_value)]
    without = [*page["results"](lambda x: x)]
    assert all(a > b for a, b in zip(with_values, without, strict=True))
    assert sum(with_values) - sum(without) > 20 * 20


def test_the_result_is_far_from_the_plain_mean(page):
    """An example that shows attention choosing must not be an average in disguise."""
    for word in ("it", "they"):
        sentence = f"the workers watched the piano until {word} left"
        tokens, x = real.states("3.1", sentence)
        values = page["head"].W_value(x).detach()
        z = (page["look"](page["head"], x) @ values)[tokens.index(word)]
        cosine = torch.nn.functional.cosine_similarity(z, values.mean(dim=0), dim=0)
        assert torch.rad2deg(torch.acos(cosine)) >= 30


def test_values_learn_what_to_pass_on():
    """For every order and each seed; most seeds look back, and some do the opposite."""
    with redirect_stdout(io.StringIO()):
        space = run_cells(PAGE, *CLASS, "train", "positions")
    back = []
    for seed in range(6):
        torch.manual_seed(seed)
        orders = torch.stack([torch.randperm(6) for _ in range(100)])
        x = space["words"][orders] + space["places"]
        layer = space["SelfAttention_v2"](12, 6)
        space["train"](layer, x, torch.eye(6)[orders.roll(1, dims=1)])
        new = torch.stack([torch.randperm(6) for _ in range(200)])
        x, before = space["words"][new] + space["places"], new.roll(1, dims=1)
        with torch.no_grad():
            assert layer(x).gather(-1, before.unsqueeze(-1)).min() > 0.9
            queries, keys = layer.W_query(x), layer.W_key(x)
            weights = (queries @ keys.mT / 6**0.5).softmax(dim=-1)
        back.append(weights[:, range(6), [5, 0, 1, 2, 3, 4]].mean().item())
    assert sum(weight > 0.9 for weight in back) >= 4
    assert min(back) < 0.1
