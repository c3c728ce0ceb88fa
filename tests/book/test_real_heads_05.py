"""What page 05 says of twelve trained heads, with its control."""

import io
from contextlib import redirect_stdout

import pytest
import torch

from coding_attention.models import real
from tests.book.run_cells import run_cells


@pytest.fixture(scope="module")
def page():
    with redirect_stdout(io.StringIO()):
        return run_cells(
            "05_multi_head_attention",
            *("batch", "listing-multi-head-attention", "load-trained-layer"),
            *("twelve-heads", "figure-twelve-heads"),
        )


def test_a_head_looks_where_it_was_measured_to_look_and_a_resting_head_does_not(page):
    for (weights, words), query, head, target in (
        (page["shown"]["query: )"], ")", 6, "("),
        (page["shown"]["query: the second cat"], "cat#2", 1, "cat"),
    ):
        place = real.find(words, target)
        row = weights[head].clone()
        row[[0, -1, real.find(words, query)]] = 0
        assert row.argmax() == place
        assert weights[10, place] < 0.2 < weights[head, place]


def test_random_layers_look_nowhere(page):
    """In their pictures, no word gets as much as trained heads give."""
    for seed in range(3):
        torch.manual_seed(seed)
        for name in ("W_query", "W_key"):
            getattr(page["trained"], name).reset_parameters()
        for sentence, query in (
            ("the story ( about a dragon ) is long", ")"),
            ("the king told the queen that she was ill", "she"),
        ):
            assert page["heads_on"](sentence, query)[0].max() < 0.2
