"""What the pages on trainable self-attention show, with other seeds and controls."""

import itertools

import pytest
import torch
from torch import nn

from attention import SelfAttention_v1
from coding_attention.models import stored
from tests.book.run_cells import run_cells

PAGE = "03_trainable_self_attention"
CLASS = ("task", "listing-self-attention-v2")


def test_the_matrices_made_by_hand_do_what_the_classes_do():
    page = run_cells(PAGE, "task", "by-hand", "by-hand-weights")
    v1 = SelfAttention_v1(3, 2)
    with torch.no_grad():
        for name in ("W_query", "W_key", "W_value"):
            getattr(v1, name).copy_(page[f"W_{name[2]}"])
    torch.testing.assert_close(v1(page["x"]), page["weights"] @ page["v"])
    # Neither word finds the other by the plain dot product.
    assert page["x"][0] @ page["x"][1] == 0


@pytest.mark.parametrize("seed", range(3))
def test_queries_and_keys_learn_to_look_back_with_other_seeds(seed):
    page = run_cells(PAGE, *CLASS, "training-task", "train")
    torch.manual_seed(seed)
    layer, words = page["SelfAttention_v2"](6, 6), page["words"]
    nn.init.eye_(layer.W_value.weight).requires_grad_(False)
    seen = page["train"](layer, words, page["target"])
    assert (seen[0][1] - 1 / 6).abs().max() < 0.08  # nearly uniform
    assert seen[-1][1][page["target"].bool()].min() > 0.65  # 0.99


def test_the_stored_trainings_are_those_of_the_page():
    page = run_cells(PAGE, *CLASS, "without-the-root")
    kept = {
        (r["divided"], r["seed"]): r["right"]
        for r in stored.load_results("root")["runs"]
        if r["rate"] == 0.001
    }
    for divided, divisor in ((False, 1), (True, 8)):
        last = page["train_wide"](divisor, seed=0)[-1]
        right = (last.argmax(dim=-1) == page["target"].argmax(dim=-1)).sum()
        assert right == kept[divided, 0]


@pytest.fixture(scope="module")
def least():
    """The page's function, once it has printed five seeds of t = 6."""
    page = run_cells("03_questions", "setup", "one-matrix-looks-back")
    return page["weight_on_the_one_before"]


@pytest.mark.site  # fifty trainings
@pytest.mark.parametrize(("t", "seed"), itertools.product((3, 9), range(2)))
def test_one_matrix_looks_back_along_a_line_and_not_around_a_circle(t, seed, least):
    """It learns the line, mask or no mask. Around the circle, it takes two matrices."""
    assert least(seed, 1, 1, True, t=t) > 0.8  # 0.98 or more
    assert least(seed, 1, 1, False, t=t) > 0.8
    assert least(seed, 1, 0, False, t=t) < 0.5  # a third at most
    assert least(seed, 2, 0, False, t=t) > 0.8
