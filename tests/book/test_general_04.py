"""What the pages on causal attention say of their models, over all stored seeds."""

import math

import pytest
import torch

from coding_attention.models import agreement
from coding_attention.models.stored import load_results
from coding_attention.published_values import find_numbers, read_values, text_of
from tests.book.pages import Page
from tests.book.run_cells import run_cells


@pytest.fixture(scope="module")
def page():
    """The names of the page's cells."""
    cells = ("questions-in-a-sentence", "sentences", "tiny-model", "four-ways", "train")
    return run_cells("04_causal_attention", *cells)


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


def test_each_published_dropout_is_computed():
    """On any machine: one from PyTorch's stream, the other from MKL's rule."""
    shown = {c.metadata.name: c for c in Page("04_questions").code_cells}
    both = {"own-stream": "dropout_ones@a", "mkl-stream": "dropout_ones@b"}
    for cell, entry in both.items():
        digits = [digit for row in read_values()[entry]["values"] for digit in row]
        assert find_numbers(text_of(shown[cell])) == digits
