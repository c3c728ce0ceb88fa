"""What the root in the scores does for training: one layer, with it and without.

Six random tokens, 768 numbers each, go through a layer 64 wide with PyTorch's own
initialization, and each token learns to attend to its predecessor. Results:
``results/root.json``, with the tokens that do after the last step.
"""

from dataclasses import dataclass

import torch

from attention import SelfAttention_v2


@dataclass(frozen=True)
class Config:
    """Sizes of the experiment.

    Attributes:
        seeds: one training for each seed, rate and divisor.
        rates: learning rates of Adam.
        tokens, d_in, d_k: how many tokens, and the widths of a token and of a key.
        steps: training steps.
    """

    seeds: tuple = (0, 1, 2, 3, 4)
    rates: tuple = (0.0001, 0.001, 0.01)
    tokens: int = 6
    d_in: int = 768
    d_k: int = 64
    steps: int = 300


CODE = ("root",)


def parts(config):
    """Give the arguments of each training."""
    return [
        (divided, rate, seed)
        for divided in (False, True)
        for rate in config.rates
        for seed in config.seeds
    ]


def file_name(result):
    """Give where the weights of a result go: nowhere."""


def fit(config, divided, rate, seed, checkpoint=None):
    """Train one layer, and count the tokens whose largest weight is the right one."""
    torch.manual_seed(seed)
    x = torch.randn(config.tokens, config.d_in)
    layer = SelfAttention_v2(config.d_in, config.d_k)
    target = torch.eye(config.tokens).roll(1, dims=0)  # row i: the token before i
    optimizer = torch.optim.Adam(layer.parameters(), lr=rate)
    divisor = config.d_k**0.5 if divided else 1
    for _ in range(config.steps):
        scores = layer.W_query(x) @ layer.W_key(x).T / divisor  # (t, t)
        weights = scores.softmax(dim=-1)
        loss = (weights - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    right = (weights.argmax(dim=-1) == target.argmax(dim=-1)).sum().item()
    return {
        "divided": divided, "rate": rate, "seed": seed, "right": right, "weights": None,
    }  # fmt: skip
