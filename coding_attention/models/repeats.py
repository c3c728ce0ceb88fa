"""Random sequences that repeat: noise the first time, known from then on."""

import torch


def repeats(count, length, vocab_size, shortest, longest, generator):
    """Draw sequences that repeat a random piece until they are full.

    No token stands twice in a piece, so each token tells which one follows. The piece
    of each sequence has a length of its own: "look back by so many positions" would
    help in no other sequence, and a model has to look for the same token.

    Args:
        count: sequences, b.
        length: tokens in each, t.
        vocab_size: number of different tokens.
        shortest: length of the shortest piece.
        longest: length of the longest piece, at most ``vocab_size``.
        generator: a ``torch.Generator``.

    Returns:
        tokens (b, t) and the length of each sequence's piece, (b,), integers.
    """
    order = torch.rand(count, vocab_size, generator=generator).argsort(dim=1)
    pieces = order[:, :longest]  # (b, longest)
    bounds = (shortest, longest + 1)
    periods = torch.randint(*bounds, (count,), generator=generator)
    positions = torch.arange(length) % periods.unsqueeze(1)  # (b, t)
    return pieces.gather(1, positions), periods
