"""What the pages on causal attention say in general, on random cases and all seeds."""

import contextlib
import io
import itertools
import math

import pytest
import torch

from attention import CausalAttention
from coding_attention.models import agreement, real
from coding_attention.models.stored import load_results
from coding_attention.published_values import find_numbers, read_values, text_of
from tests.book.pages import Page
from tests.book.run_cells import run_cells

SIZES = [(1, 1, 1), (2, 3, 2), (9, 16, 5)]  # t, d_in, d_out
seeds = pytest.mark.parametrize("seed", range(3))


def layer_of(t, d_in, d_out, seed, **options):
    torch.manual_seed(seed)
    return CausalAttention(d_in, d_out, t, 0.0, **options).double()


# ---- the demonstration: what a model can know, and what it learns ----


@pytest.fixture(scope="module")
def page():
    """The names of the page's cells."""
    with contextlib.redirect_stdout(io.StringIO()):
        space = run_cells("04_causal_attention", "questions-in-a-sentence",
                          "sentences", "tiny-model", "four-ways", "train")  # fmt: skip
    return space


STORED = load_results("agreement")["runs"]
WAYS = {
    "masked": "use_mask",
    "unmasked": "use_no_mask",
    "plain mean": "use_mean",
    "no attention": "use_nothing",
}


@pytest.mark.parametrize("kind", WAYS)
def test_the_page_trains_the_models_that_are_stored(page, kind):
    torch.set_num_threads(1)
    (run,) = (r for r in STORED if r["kind"] == kind and r["seed"] == 3)
    _, losses = page["train"](page[WAYS[kind]], seed=3, steps=30)
    assert losses[9::10] == pytest.approx(run["loss"][:3], abs=1e-4)


def bound(kind):
    """The least loss that a model of a kind can have: counted, not trained."""
    same = {}  # what the model knows at a position -> which words come next
    for line in agreement.TEXT:
        words = line.split()
        for i in range(7):
            past = words[: i + 1]
            known = {
                "masked": tuple(past),
                "plain mean": (i, past[-1], tuple(sorted(past))),
                "no attention": (i, past[-1]),
            }[kind]
            same.setdefault(known, []).append(words[i + 1])
    loss = sum(
        -math.log(nexts.count(word) / len(nexts))
        for nexts in same.values() for word in nexts
    )  # fmt: skip
    return loss / len(agreement.TEXT) / 7


@pytest.mark.parametrize("kind", ["masked", "plain mean", "no attention"])
def test_no_model_beats_what_it_can_know_and_nearly_all_come_close(kind):
    least = bound(kind)
    losses = [run["loss"][-1] for run in STORED if run["kind"] == kind]
    assert min(losses) > least - 1e-4
    assert sum(loss < least + 0.01 for loss in losses) >= len(losses) - 1


def test_what_the_page_says_each_kind_can_know():
    two = math.log(32)
    assert bound("masked") == pytest.approx(two / 7)
    assert bound("plain mean") == pytest.approx((two + 0.75 * math.log(2)) / 7)
    assert bound("no attention") == pytest.approx((two + math.log(4)) / 7)


def test_in_every_seed_the_unmasked_model_cheats_and_writes_worse(page):
    unmasked = [run for run in STORED if run["kind"] == "unmasked"]
    assert max(run["loss"][-1] for run in unmasked) < bound("masked") / 2
    right = {
        kind: [run["right"] for run in STORED if run["kind"] == kind] for kind in WAYS
    }
    for masked, cheat in zip(right["masked"], right["unmasked"], strict=True):
        assert masked > cheat


# ---- the class, with and without its mask ----


@seeds
@pytest.mark.parametrize(("t", "d_in", "d_out"), SIZES)
@torch.no_grad()
def test_one_pass_gives_every_beginning_what_it_gets_alone(t, d_in, d_out, seed):
    layer = layer_of(t, d_in, d_out, seed)
    x = torch.randn(2, t, d_in).double()
    together = layer(x)
    for i in range(1, t + 1):
        torch.testing.assert_close(layer(x[:, :i])[:, -1], together[:, i - 1])


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


def test_each_published_dropout_is_computed():
    """On any machine: one from PyTorch's stream, the other from MKL's rule."""
    shown = {c.metadata.name: c for c in Page("04_questions").code_cells}
    both = {"own-stream": "dropout_ones@a", "mkl-stream": "dropout_ones@b"}
    for cell, entry in both.items():
        digits = [digit for row in read_values()[entry]["values"] for digit in row]
        assert find_numbers(text_of(shown[cell])) == digits
