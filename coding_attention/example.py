"""The running example: one sentence, three numbers for each of its tokens."""

import torch

TOKENS = ("Your", "journey", "starts", "with", "one", "step")


def inputs():
    """Give the embeddings of :data:`TOKENS`, one row each: (6, 3), float32.

    Sections 3.3 to 3.6 use them throughout. Every call makes a new tensor.
    """
    return torch.tensor(
        [
            [0.43, 0.15, 0.89],  # Your
            [0.55, 0.87, 0.66],  # journey
            [0.57, 0.85, 0.64],  # starts
            [0.22, 0.58, 0.33],  # with
            [0.77, 0.25, 0.10],  # one
            [0.05, 0.80, 0.55],  # step
        ]
    )
