"""The random numbers of core.js, in Python: the static figures show the same draws.

Mulberry32 adds a constant to its state at every step, so all steps can be computed side
by side. Its 32-bit products wrap around; so do those of int64 in their lower 32 bits.
"""

import math

import torch

_WORD = 0xFFFFFFFF


def uniform(seed, count):
    """Give ``count`` numbers from [0, 1), float64."""
    steps = torch.arange(1, count + 1, dtype=torch.int64)
    state = (seed + steps * 0x6D2B79F5) & _WORD
    x = ((state ^ (state >> 15)) * (state | 1)) & _WORD
    x = x ^ ((x + (x ^ (x >> 7)) * (x | 61)) & _WORD)
    return (x ^ (x >> 14)).double() / 2**32


def normals(seed, count):
    """Give ``count`` standard normal numbers, float64."""
    pairs = uniform(seed, count + count % 2).view(-1, 2)
    radius = torch.sqrt(-2 * torch.log(1 - pairs[:, 0]))
    angle = 2 * math.pi * pairs[:, 1]
    both = torch.stack((radius * torch.cos(angle), radius * torch.sin(angle)), dim=1)
    return both.flatten()[:count]


def kept(rows, columns, p, seed):
    """Give the mask of one dropout draw: (rows, columns), True where a weight stays."""
    return (uniform(seed, rows * columns) >= p).view(rows, columns)


def scores(seed, queries, keys, width):
    """Give the scores of the scale lab, for every width up to ``width``.

    Returns:
        Scores (queries, keys, width): each query has keys of its own, and entry d - 1
        of the last axis uses the first d numbers of both vectors.
    """
    vectors = normals(seed, queries * (1 + keys) * width).view(queries, 1 + keys, width)
    return (vectors[:, :1] * vectors[:, 1:]).cumsum(dim=-1)
