"""What a planted bug shows to someone who looks: weights, reach, a loss.

Nothing here is drawn by hand. A planted class gets fixed weights and a fixed
input, and its own attention weights are read while it runs.
"""

import sys

import torch
from torch import nn
from torch.nn import functional as F

from coding_attention.gallery.planted import BASES, HEADER, PLANTED, compiled

TOKENS, WIDTH, GAIN, SEED = 6, 8, 2.75, 1
# The task of the loss: a token of eight, drawn anew at each place, and the next one.
CHOICES, BATCH, STEPS, EVERY = 8, 16, 300, 15


def right_class():
    """Give the class that all planted bugs are one change away from."""
    return compiled(HEADER + "\n" + BASES["multi_head"][0], "right.py")


def class_of(name):
    """Give the class of a planted bug by its name, or the right one."""
    return right_class() if name == "right" else PLANTED[name].build()


def picture(name, kind):
    """Compute what a class shows.

    Args:
        name: a planted bug of the base ``multi_head``, or "right".
        kind: "weights" (t, t), one head; "heads" (2, t, t), two heads of a sequence;
            "batch" (2, t, t), two sequences; "reach" (t, t), how far each output moves
            when a token is changed, as a share of the largest move; "loss", the loss
            over training on tokens that nobody can predict.

    Returns:
        A tensor; not a number where the class gives none.
    """
    return {
        "weights": lambda: _weights(name, num_heads=1)[0, 0],
        "heads": lambda: _weights(name, num_heads=2)[0],
        "batch": lambda: _weights(name, num_heads=1)[:, 0].expand(2, -1, -1),
        "reach": lambda: _reach(name),
        "loss": lambda: _loss(name),
    }[kind]()


def _layer(name, num_heads):
    """Make the class with the same weights as all others of its size."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        layer = class_of(name)(WIDTH, WIDTH, TOKENS, 0.0, num_heads).eval()
    with torch.no_grad():  # untrained weights look at all tokens alike
        for projection in (layer.W_query, layer.W_key):
            projection.weight *= GAIN
    return layer


def _inputs():
    draws = torch.Generator().manual_seed(SEED)
    return torch.randn(2, TOKENS, WIDTH, generator=draws)


def _weights(name, num_heads):
    return _seen_weights(_layer(name, num_heads), _inputs())


@torch.no_grad()
def _seen_weights(layer, x):
    """Run a layer and give its variable ``weights`` as it stood at the end."""
    found = {}

    def local(frame, event, _):
        if event == "return":
            found.update(frame.f_locals)
        return local

    def watch(frame, *_):
        own = frame.f_code is type(layer).forward.__code__
        return local if own else None

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        layer(x)
    finally:
        sys.settrace(before)
    return found["weights"]


@torch.no_grad()
def _reach(name):
    layer, x = _layer(name, num_heads=2), _inputs()[:1]
    before = layer(x)
    moves = []
    for j in range(TOKENS):
        changed = x.clone()
        changed[:, j] += 1
        moves.append((layer(changed) - before)[0].norm(dim=-1))  # (t,)
    moves = torch.stack(moves, dim=1)  # rows are outputs, columns changed tokens
    return moves / moves.max()


class _Predictor(nn.Module):
    """Tokens and places in, one layer of attention, a score for each next token."""

    def __init__(self, attention):
        super().__init__()
        self.token = nn.Embedding(CHOICES, 2 * WIDTH)
        self.place = nn.Embedding(TOKENS, 2 * WIDTH)
        self.attention = attention(2 * WIDTH, 2 * WIDTH, TOKENS, 0.0, 2)
        self.out = nn.Linear(2 * WIDTH, CHOICES)

    def forward(self, tokens):
        x = self.token(tokens) + self.place.weight
        return self.out(self.attention(x))


def _loss(name):
    draws = torch.Generator().manual_seed(SEED)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        model = _Predictor(class_of(name)).double()
        # Drawn in double: 300 steps enlarge what processors round differently.
        for parameter in model.parameters():
            nn.init.uniform_(parameter, -0.5, 0.5)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    losses = []
    for _ in range(STEPS + 1):
        tokens = torch.randint(CHOICES, (BATCH, TOKENS + 1), generator=draws)
        scores = model(tokens[:, :-1])
        loss = F.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return torch.tensor(losses).unfold(0, EVERY, EVERY).mean(dim=1)
