"""General sentences of the page "Watch heads learn", on random cases.

What the page says of all twelve trainings is held in ``tests/experiments``.
"""

import pytest
import torch
from torch.nn import functional as F

from coding_attention.models import induction, stored
from coding_attention.models.repeats import repeats


def seeded(seed):
    return torch.Generator().manual_seed(seed)


PIECES = [(40, 32, 6, 20), (12, 9, 2, 4), (30, 10, 3, 10)]


@pytest.mark.parametrize("sizes", PIECES)
def test_guessing_loss_is_the_cross_entropy_of_a_guess_among_the_piece(sizes):
    length, vocab_size = sizes[:2]
    tokens, periods = repeats(30, *sizes, seeded(2))
    scores = torch.full((30, length, vocab_size), -torch.inf)
    for line, period, row in zip(tokens, periods, scores, strict=True):
        row[:, line[:period]] = 0.0
    losses = F.cross_entropy(
        scores[:, :-1].flatten(0, 1), tokens[:, 1:].flatten(), reduction="none"
    ).view(30, -1)
    known = torch.arange(1, length) > periods.unsqueeze(1)
    assert induction.guessing_loss(tokens, periods, periods) == pytest.approx(
        losses[known].mean().item()
    )
    everything = torch.full_like(periods, vocab_size)
    assert induction.guessing_loss(tokens, periods, everything) == pytest.approx(
        torch.tensor(vocab_size).log().item()
    )


@torch.no_grad()
def test_the_model_continues_any_six_tokens_that_it_has_seen_once():
    """And the first time around, the control, it can't."""
    model = induction.build(induction.Config()).eval()
    model.load_state_dict(stored.load_weights("induction"))
    draws = (torch.randperm(32, generator=seeded(i))[:6] for i in range(200))
    pieces = torch.stack([*draws])
    guesses = model(torch.cat((pieces, pieces), dim=1)).argmax(dim=-1)
    assert (guesses[:, 6:11] == pieces[:, 1:]).double().mean() > 0.95
    assert (guesses[:, :5] == pieces[:, 1:]).double().mean() < 0.15
