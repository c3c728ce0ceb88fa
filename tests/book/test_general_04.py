"""General sentences of the pages on causal attention, on random cases."""

import contextlib
import io
import itertools
import math

import pytest
import torch
from torch import nn

from attention import CausalAttention, SelfAttention_v2
from coding_attention.models import real
from tests.book.pages import Page
from tests.book.run_cells import run_cells
from theme.printed_values import numbers, reference, text_of

SIZES = [(1, 1, 1), (2, 3, 2), (6, 3, 2), (9, 16, 5), (17, 8, 32)]  # t, d_in, d_out
seeds = pytest.mark.parametrize("seed", range(3))
sizes = pytest.mark.parametrize(("t", "d_in", "d_out"), SIZES)


def future(t):
    return torch.ones(t, t).triu(diagonal=1).bool()


def layer_of(t, d_in, d_out, seed, **options):
    torch.manual_seed(seed)
    return CausalAttention(d_in, d_out, t, 0.0, **options).double()


# The summary of the page "Causal attention", sentence by sentence.


@seeds
@sizes
@torch.no_grad()
def test_one_pass_gives_every_beginning_what_it_gets_alone(t, d_in, d_out, seed):
    layer = layer_of(t, d_in, d_out, seed)
    x = torch.randn(2, t, d_in).double()
    together = layer(x)
    for i in range(1, t + 1):
        torch.testing.assert_close(layer(x[:, :i])[:, -1], together[:, i - 1])


MODEL = ("questions-in-a-sentence", "sentences", "tiny-model", "train")


@pytest.fixture(scope="module")
def page():
    with contextlib.redirect_stdout(io.StringIO()):
        space = run_cells("04_causal_attention", *MODEL)
        # The cell that writes needs two trained models; here they need not be good.
        space["masked"] = space["unmasked"] = space["TinyModel"](1).double()
        source = {c.metadata.get("name"): c.source for c in
                  Page("04_causal_attention").source.cells}  # fmt: skip
        exec(source["written"], space)
    return space


def followers(page):
    lists = page["lists"]
    following = [*lists[1:], lists[0]]
    return {
        (a, b) for one, two in zip(lists, following, strict=True)
        for a in one for b in two
    }  # fmt: skip


@torch.no_grad()
def follow(page, model):
    """Exchange an uncertain next word: in how many cases is the new one predicted?"""
    lists, text = page["lists"], page["text"]
    pieces, places, new = [], [], []
    for start, place in itertools.product(range(0, 70, 3), range(7)):
        for word in lists[(start + place + 1) % 7]:
            piece = text[start : start + 8].clone()
            exchanged = page["words"].index(word)
            if piece[place + 1] != exchanged:
                piece[place + 1] = exchanged
                pieces.append(piece), places.append(place), new.append(exchanged)
    scores = model(torch.stack(pieces))[range(len(pieces)), places]
    return (scores.argmax(dim=-1) == torch.tensor(new)).double().mean()


# The page itself shows seed 0. Seed 2 copies the least of twelve that were tried.
@pytest.mark.parametrize("seed", [1, 2, 3, 4, 10])
def test_a_model_that_sees_the_next_word_copies_it_and_writes_nonsense(page, seed):
    torch.set_num_threads(1)
    honest = math.log(math.prod(len(line) for line in page["lists"])) / 7
    allowed = followers(page)
    wrong, loss, followed = {}, {}, {}
    for diagonal in (1, 8):
        model, losses = page["train"](diagonal, seed=seed)
        loss[diagonal] = sum(losses[-20:]) / 20
        followed[diagonal] = follow(page, model)
        written = page["write"](model, count=60)
        pairs = itertools.pairwise(written)
        wrong[diagonal] = sum(pair not in allowed for pair in pairs) / 60
    # One choice of two that is not learned costs log(2) / 7, which is 0.10.
    assert honest - 0.2 < loss[1] < honest + 0.05
    assert loss[8] < honest / 2, "below what an honest model can reach"
    assert wrong[1] < 0.25 < wrong[8]  # none, against half and more
    # It copies, whatever its weights look like; the control can only guess.
    assert followed[1] < 0.6 < 0.95 < followed[8]


def test_the_lists_allow_108_sentences(page):
    assert math.prod(len(line) for line in page["lists"]) == 108
    shown = {c.metadata.name: c for c in Page("04_causal_attention").code_cells}
    best = numbers(text_of(shown["two-losses"]))[-1]
    assert best == f"{math.log(108) / 7:.2f}"


@seeds
@pytest.mark.parametrize("t", [1, 2, 6, 31])
def test_both_ways_of_masking_give_the_same_weights(t, seed):
    torch.manual_seed(seed)
    scores = 3 * torch.randn(t, t).double()
    zeroed = torch.softmax(scores, dim=-1).masked_fill(future(t), 0)
    first = zeroed / zeroed.sum(dim=-1, keepdim=True)
    second = torch.softmax(scores.masked_fill(future(t), -torch.inf), dim=-1)
    torch.testing.assert_close(first, second)


@seeds
@sizes
@torch.no_grad()
def test_changing_a_token_leaves_all_before_it_as_they_were(t, d_in, d_out, seed):
    layer = layer_of(t, d_in, d_out, seed, qkv_bias=bool(seed % 2))
    x = torch.randn(2, t, d_in).double()
    for i in range(t):
        changed = x.clone()
        changed[:, i] += 10 * torch.randn(2, d_in).double()
        before, after = layer(x), layer(changed)
        assert torch.equal(before[:, :i], after[:, :i])
        assert not torch.equal(before[:, i:], after[:, i:])


@seeds
@torch.no_grad()
def test_changing_each_token_finds_every_leak_and_the_last_alone_does_not(seed):
    x = torch.randn(1, 6, 3, generator=torch.Generator().manual_seed(seed)).double()

    def leaks(layer, changed):
        other = x.clone()
        other[:, changed] += 9
        return not torch.equal(layer(x)[:, :changed], layer(other)[:, :changed])

    for i, j in itertools.combinations(range(6), 2):
        layer = layer_of(6, 3, 2, seed)
        assert not any(leaks(layer, k) for k in range(6))
        layer.mask[i, j] = 0  # token i sees token j
        assert [leaks(layer, k) for k in range(6)] == [k == j for k in range(6)]


@seeds
@pytest.mark.parametrize("unmasked", [None, 0, 1, 2])
@torch.no_grad()
def test_with_a_mask_in_every_layer_nothing_later_changes_a_token(unmasked, seed):
    """And without it in one layer of three, something does: the control."""
    layers = [layer_of(9, 4, 4, seed + i) for i in range(3)]
    if unmasked is not None:
        layers[unmasked].mask.zero_()
    x = torch.randn(1, 9, 4).double()
    other = x.clone()
    other[:, 6:] = torch.randn(1, 3, 4).double()
    for layer in layers:
        x, other = x + layer(x), other + layer(other)
    assert torch.equal(x[:, :6], other[:, :6]) == (unmasked is None)
    assert not torch.equal(x[:, 6:], other[:, 6:])


@torch.no_grad()
def test_only_a_mask_in_every_layer_keeps_the_last_word_from_it():
    with contextlib.redirect_stdout(io.StringIO()):
        space = run_cells("04_causal_attention", "questions-in-a-sentence",
                          "decided-later")  # fmt: skip
    look, too = space["look_of_it"], ("tired", "wide")
    for below, diagonal in (("3.1", 99), ("3.1", 1)):
        tired, wide = (look(below, word, diagonal)["animal"] for word in too)
        assert tired > wide + 0.25
    tired, wide = (look("3.1 masked", word, 1) for word in too)
    assert tired == wide
    # The words that decide do differ, and so do all behind them.
    (names, one), (_, other) = (
        real.states("3.1 masked", space["sentence"].format(word)) for word in too
    )
    same = (one == other).all(dim=-1).tolist()
    decides = names.index("tired")
    assert same == [True] * decides + [False] * (len(names) - decides)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
def test_dropout_divides_what_it_keeps_and_the_mean_stays(rate):
    torch.manual_seed(0)
    weights = torch.rand(5, 5).double()
    dropout = nn.Dropout(rate)
    draws = dropout(weights.expand(20_000, 5, 5))
    kept = draws != 0
    torch.testing.assert_close(
        draws[kept], (weights / (1 - rate)).expand_as(draws)[kept]
    )
    assert (draws.mean(dim=0) - weights).abs().max() < 0.1
    assert torch.equal(dropout.eval()(weights), weights)


# Sentences of the page "Questions about causal attention".


@seeds
@pytest.mark.parametrize("t", [2, 6, 31])
def test_zeros_for_hidden_scores_let_the_future_in(t, seed):
    torch.manual_seed(seed)
    scores = torch.randn(t, t).double()
    weights = torch.softmax(scores.masked_fill(future(t), 0), dim=-1)
    assert (weights[future(t)] > 0).all()
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(t).double())


@seeds
@sizes
@torch.no_grad()
def test_without_the_mask_the_last_row_alone_stays(t, d_in, d_out, seed):
    layer = layer_of(t, d_in, d_out, seed)
    twin = SelfAttention_v2(d_in, d_out).double()
    twin.load_state_dict(layer.state_dict(), strict=False)
    x = torch.randn(t, d_in).double()
    with_mask, without = layer(x[None])[0], twin(x)
    torch.testing.assert_close(with_mask[-1], without[-1])
    for i in range(t - 1):
        assert not torch.allclose(with_mask[i], without[i])


@pytest.mark.parametrize("seed", range(5))
@torch.no_grad()
def test_the_last_token_needs_a_mask_only_where_another_layer_follows(seed):
    first, second = layer_of(6, 3, 4, seed), layer_of(6, 4, 2, seed + 10)
    x = torch.randn(2, 6, 3).double()
    last = second(first(x))[:, -1]
    second.mask.zero_()
    torch.testing.assert_close(second(first(x))[:, -1], last)
    first.mask.zero_()
    assert not torch.allclose(second(first(x))[:, -1], last)


@pytest.mark.parametrize("t", [2, 6, 31])
@seeds
def test_filling_scores_in_place_leaves_every_gradient(t, seed):
    torch.manual_seed(seed)
    scores, values = torch.randn(t, t).double(), torch.randn(t, 3).double()

    def gradient(fill):
        raw = scores.clone().requires_grad_()
        weights = fill(raw * 1.0, future(t), -torch.inf).softmax(dim=-1)
        (weights @ values).square().sum().backward()
        return raw.grad

    found = gradient(torch.Tensor.masked_fill_)
    assert torch.equal(found, gradient(torch.Tensor.masked_fill))
    assert (found[future(t)] == 0).all()
    assert (found[1:].tril(diagonal=1) != 0).any()
    # The control: softmax keeps its result, and notices.
    weights = scores.clone().requires_grad_().softmax(dim=-1)
    weights.masked_fill_(future(t), 0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        weights.square().sum().backward()


def test_a_mask_that_is_not_saved_lets_weights_into_another_length():
    Layer = page_names("setup", "matrix-and-mask")["MatrixAndMask"]
    for few, many in ((1, 2), (6, 8), (31, 5)):
        with pytest.raises(RuntimeError, match="size mismatch for mask"):
            Layer(many, True).load_state_dict(Layer(few, True).state_dict())
        layer = Layer(many, False)
        state = Layer(few, False).state_dict()
        assert list(state) == ["W_query.weight"]
        layer.load_state_dict(state)
        assert torch.equal(layer.W_query.weight, state["W_query.weight"])
        assert torch.equal(layer.to(torch.float64).mask, future(many).double())


def page_names(*cells):
    return run_cells("04_questions", *cells)


def test_each_published_dropout_is_computed():
    """On any machine: one from PyTorch's stream, the other from MKL's rule."""
    shown = {c.metadata.name: c for c in Page("04_questions").code_cells}
    both = {"own-stream": "dropout_ones@a", "mkl-stream": "dropout_ones@b"}
    for cell, entry in both.items():
        digits = [digit for row in reference()[entry]["values"] for digit in row]
        assert numbers(text_of(shown[cell])) == digits
