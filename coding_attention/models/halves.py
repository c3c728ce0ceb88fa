"""Half of an answer from one token, half from another: one head, two, and controls.

The page on multi-head attention trains the first seed; here are the others. Results:
``results/halves.json``.
"""

from dataclasses import dataclass

import torch

from attention import MultiHeadAttention


@dataclass(frozen=True)
class Config:
    """Sizes and lengths of the experiment.

    Attributes:
        seeds: of layers with one head and with two. Of the first sixty seeds, two heads
            fail with 49 alone.
        control_seeds: of the controls.
        batch_size: examples in each step.
        steps: of training.
        rate: learning rate.
        test_count: examples of the error.
    """

    seeds: tuple = (0, 1, 2, 3, 4, 49)
    control_seeds: tuple = (0,)
    batch_size: int = 64
    steps: int = 600
    rate: float = 0.02
    test_count: int = 1000


CODE = ("halves",)
KINDS = {
    "one head": (1, None),
    "two heads": (2, None),
    "no attention": (2, "no attention"),
    "mean": (2, "mean"),
    "random": (2, "random"),
}


def draw(count):
    """Draw tokens, (b, 6, 10), and the wanted answers of tokens 2 to 5, (b, 4, 4).

    A token is its position and four random numbers. Half of the answer is the first
    half of the previous token's numbers, half the second half of its predecessor's.
    """
    places = torch.eye(6, dtype=torch.float64).expand(count, 6, 6)
    content = torch.randn(count, 6, 4, dtype=torch.float64)
    previous, predecessor = content[:, 1:-1], content[:, :-2]
    wanted = torch.cat((previous[..., :2], predecessor[..., 2:]), dim=-1)
    return torch.cat((places, content), dim=-1), wanted


def build(num_heads, control):
    """Make a layer; a control sees itself alone, averages, or keeps its random look."""
    layer = MultiHeadAttention(10, 4, 6, 0.0, num_heads).double()
    if control == "no attention":
        layer.mask.fill_(1).fill_diagonal_(0)
    if control == "mean":
        torch.nn.init.zeros_(layer.W_query.weight)
    if control in ("mean", "random"):
        layer.W_query.requires_grad_(False)
        layer.W_key.requires_grad_(False)
    return layer


def loss(layer, count):
    """Give the mean squared error on new examples."""
    x, wanted = draw(count)
    return (layer(x)[:, 2:] - wanted).square().mean()


def fit(config, kind, seed, checkpoint=None):
    """Train one layer. It takes seconds, so there is no checkpoint."""
    torch.manual_seed(seed)
    layer = build(*KINDS[kind])
    learning = [p for p in layer.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(learning, lr=config.rate)
    for _ in range(config.steps):
        error = loss(layer, config.batch_size)
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
    with torch.no_grad():
        error = round(loss(layer, config.test_count).item(), 3)
    return {"kind": kind, "seed": seed, "error": error, "weights": None}


def parts(config):
    """Give the arguments of each layer: kind and seed."""
    return [
        (kind, seed)
        for kind, (_, control) in KINDS.items()
        for seed in (config.control_seeds if control else config.seeds)
    ]


def file_name(result):
    """Name no file: the page trains its own."""
    return None
