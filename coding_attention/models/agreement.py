"""Does seeing the future help? Four tiny models that differ in their attention weights.

The text needs attention that chooses: in "the dog near the cat often barks .", the verb
belongs to the first animal, and another stands in between. Page 04 builds the same
model in the open and trains one seed.
Results: ``results/agreement.json``, with what each kind learned for each seed.
"""

import itertools
from dataclasses import dataclass

import torch
from torch import nn

VERBS = {"dog": "barks", "cat": "purrs", "cow": "moos", "owl": "hoots"}
TEXT = [
    f"the {one} {place} the {other} often {VERBS[one]} ."
    for one, place, other in itertools.product(VERBS, ("near", "behind"), VERBS)
]
WORDS = list(dict.fromkeys(" ".join(TEXT).split()))


@dataclass(frozen=True)
class Config:
    """Sizes of the experiment.

    Attributes:
        seeds: one model of each kind for each seed.
        d: width of all vectors.
        steps: training steps, each on the whole text.
        rate: learning rate.
        decay: weight decay.
        loss_every: steps between two kept losses.
        written: sentences that each model writes at the end.
        kept: how many of them are stored.
    """

    seeds: tuple = tuple(range(20))
    d: int = 16
    steps: int = 500
    rate: float = 0.02
    decay: float = 0.1
    loss_every: int = 10
    written: int = 500
    kept: int = 3


CODE = ("agreement",)


# ---- four ways from scores (b, t, t) to weights ----


def use_mask(scores):
    """Softmax over the past and the token itself."""
    future = torch.ones_like(scores[0]).triu(diagonal=1).bool()  # (t, t)
    return torch.softmax(scores.masked_fill(future, -torch.inf), dim=-1)


def use_no_mask(scores):
    """Softmax over all tokens, the future included."""
    return torch.softmax(scores, dim=-1)


def use_mean(scores):
    """The same weight for the token itself and each one before it."""
    return use_mask(torch.zeros_like(scores))


def use_nothing(scores):
    """No weight for any token: no attention."""
    return torch.zeros_like(scores)


KINDS = {
    "masked": use_mask,
    "unmasked": use_no_mask,
    "plain mean": use_mean,
    "no attention": use_nothing,
}


class TinyModel(nn.Module):
    """Word and position vectors, one attention head, and a score for each next word."""

    def __init__(self, weigh, d=16):
        super().__init__()
        self.weigh = weigh
        # In float64 from the draw on, every processor trains the same model.
        self.word = nn.Embedding(len(WORDS), d, dtype=torch.float64)
        self.position = nn.Embedding(8, d, dtype=torch.float64)
        self.W_query = nn.Linear(d, d, bias=False)
        self.W_key = nn.Linear(d, d, bias=False)
        self.W_value = nn.Linear(d, d, bias=False)
        self.out = nn.Linear(d, len(WORDS))

    def forward(self, ids):
        """Score each word as the next one: (b, t) -> (b, t, words)."""
        positions = torch.arange(ids.shape[1])
        x = self.word(ids) + self.position(positions)  # (b, t, d)
        scores = self.W_query(x) @ self.W_key(x).transpose(1, 2)  # (b, t, t)
        self.weights = self.weigh(scores / x.shape[-1] ** 0.5)
        return self.out(x + self.weights @ self.W_value(x))


def encode_text():
    """Give the text as tokens, (sentences, 8)."""
    return torch.tensor([[WORDS.index(word) for word in s.split()] for s in TEXT])


@torch.no_grad()
def write(model, count, seed=0):
    """Let a model write sentences of eight words that begin with "the".

    Args:
        model: a :class:`TinyModel`.
        count: how many sentences.
        seed: draws the words.

    Returns:
        A list of sentences.
    """
    torch.manual_seed(seed)
    ids = torch.full((count, 1), WORDS.index("the"))
    for _ in range(7):
        # The word at which the sum of probabilities passes a random number.
        sums = model(ids)[:, -1].softmax(dim=-1).cumsum(dim=-1)  # (count, words)
        found = torch.searchsorted(sums, torch.rand(count, 1).double())
        ids = torch.cat((ids, found.clamp(max=len(WORDS) - 1)), dim=1)
    return [" ".join(WORDS[i] for i in row) for row in ids.tolist()]


@torch.no_grad()
def measure_look(model):
    """Give the mean weight of "often" on the first animal where the two differ."""
    sentences = [sentence.split() for sentence in TEXT]
    two = [one[1] != one[4] for one in sentences]
    model(encode_text()[two, :-1])
    return model.weights[:, sentences[0].index("often"), 1].mean().item()


def fit(config, kind, seed, checkpoint=None):
    """Train one model; it takes seconds, so there are no checkpoints."""
    torch.manual_seed(seed)
    model = TinyModel(KINDS[kind], config.d).double()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=config.rate, weight_decay=config.decay
    )
    ids, losses = encode_text(), []
    for _ in range(config.steps):
        scores, nexts = model(ids[:, :-1]), ids[:, 1:]
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), nexts.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    sentences, every = write(model, config.written), config.loss_every
    return {
        "kind": kind,
        "seed": seed,
        "loss": [round(loss, 4) for loss in losses[every - 1 :: every]],
        "right": sum(sentence in TEXT for sentence in sentences) / len(sentences),
        "look": round(measure_look(model), 4),
        "sentences": sentences[: config.kept],
        "weights": model.state_dict(),
    }


def parts(config):
    """Give the arguments of each model: its kind and its seed."""
    return [(kind, seed) for seed in config.seeds for kind in KINDS]


def file_name(result):
    """Store no weights: the page trains what it shows."""
    return
