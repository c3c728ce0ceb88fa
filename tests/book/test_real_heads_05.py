"""What page 05 says of twelve trained heads, with its controls."""

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
            *("twelve-heads", "figure-twelve-heads", "cut-each"),
        )


def test_the_page_names_a_head_for_each_thing_that_was_looked_for(page):
    told = {head: "; ".join(page["does"](head)) for head in range(12)}
    assert "closing to opening 40/40" in told[6]
    assert "opening to closing 40/40" in told[7]
    assert "pronoun to noun 30/40" in told[3]
    assert "same word 40/40" in told[1]
    assert "adjective to noun 37/43" in told[4]
    assert "word next" in told[8]
    assert told[10] == told[11] == ""  # they rest


def test_the_heads_look_where_the_page_says(page):
    for (weights, words), query, head, target in (
        (page["shown"]["query: )"], ")", 6, "("),
        (page["shown"]["query: the second cat"], "cat#2", 1, "cat"),
    ):
        row = weights[head].clone()
        row[[0, -1, real.find(words, query)]] = 0
        assert row.argmax() == real.find(words, target)
        # The control: a head that rests gives that word almost nothing.
        assert weights[head, real.find(words, target)] > 0.2
        assert weights[10, real.find(words, target)] < 0.2


def test_the_listing_hides_what_the_model_saw(page):
    """The last token sees everything under the mask, too; the first only itself."""
    page["causal"].mask.copy_(torch.ones(32, 32).triu(1))
    with torch.no_grad():
        for sentence in real.sentences("1"):
            off = page["causal"](real.states("1", sentence)[1][None])[0]
            off = (off - real.output("1", sentence)).abs().amax(dim=-1)
            assert off[-1] < 1e-3 < 0.02 < off[0]


def test_a_cut_head_changes_the_layer_and_hardly_the_model(page):
    changes = [page["change_without"](head) for head in range(12)]
    assert min(changes) > 0.01
    assert max(changes) > 0.2
    cut = real.facts()["layer"]["cut"]
    assert max(cut["turned"]) < 0.01 * cut["between"]


def test_random_layers_look_nowhere(page):
    """The control of the picture: here no word gets as much as trained heads give."""
    trained = page["trained"]
    try:
        for seed in range(5):
            torch.manual_seed(seed)
            page["trained"] = type(trained)(384, 384, 32, 0.0, 12, True, causal=False)
            for sentence, query in (
                ("the story ( about a dragon ) is long", ")"),
                ("the king told the queen that she was ill", "she"),
            ):
                assert page["heads_on"](sentence, query)[0].max() < 0.2
    finally:
        page["trained"] = trained
