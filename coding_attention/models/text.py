"""A tiny GPT that writes: trained letter by letter on sentences of our own.

Results: ``results/text.json`` with the loss and the share of right sentences for each
seed, and the weights of the first seed in ``results/text.safetensors``.
"""

from dataclasses import dataclass

import torch
from torch.nn import functional as F

from attention import FusedMultiHeadAttention, KeyValueCache
from coding_attention.models import training
from coding_attention.models.sentences import is_right, sentence
from coding_attention.models.tiny_gpt import GPTConfig, TinyGPT, generate

LETTERS = " .abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Config:
    """Sizes of the experiment.

    Attributes:
        seeds: one model for each seed.
        context_length, d_model, num_heads, num_blocks: of the model.
        batch_size: sentences in each step.
        steps: training steps.
        rate: highest learning rate.
        loss_every: steps between two kept losses.
        test_seed, test_count: draw the sentences that are checked.
    """

    seeds: tuple = (0, 1)
    context_length: int = 80
    d_model: int = 64
    num_heads: int = 4
    num_blocks: int = 2
    batch_size: int = 32
    steps: int = 1600
    rate: float = 0.006
    loss_every: int = 50
    test_seed: int = 1000
    test_count: int = 100


CODE = ("training", "text", "sentences", "tiny_gpt")


def encode(string):
    """Give a text as tokens, (t,)."""
    return torch.tensor([LETTERS.index(letter) for letter in string])


def decode(tokens):
    """Give tokens (t,) as text."""
    return "".join(LETTERS[i] for i in tokens.tolist())


def build(config, attention=None):
    """Make an untrained model, with ``MultiHeadAttention`` unless told otherwise."""
    sizes = GPTConfig(
        len(LETTERS),
        config.context_length,
        config.d_model,
        config.num_heads,
        config.num_blocks,
    )
    return TinyGPT(sizes) if attention is None else TinyGPT(sizes, attention)


def caches(model):
    """Give an empty cache for each block of a model with fused layers."""
    return [KeyValueCache() for _ in model.blocks]


def draw(config, count, generator):
    """Draw sentences as tokens: a space, the sentence, and spaces up to the end.

    Args:
        config: a :class:`Config`.
        count: sentences, b.
        generator: a ``torch.Generator``.

    Returns:
        Integers (b, context_length).
    """
    lines = (" " + sentence(generator) for _ in range(count))
    return torch.stack([encode(line.ljust(config.context_length)) for line in lines])


def write(config, weights, count, seed):
    """Let a trained model write sentences side by side, with a cache.

    Args:
        config: a :class:`Config`.
        weights: a state dict.
        count: how many sentences.
        seed: draws the letters.

    Returns:
        ``count`` texts, without the spaces around them.
    """
    model = build(config, FusedMultiHeadAttention).eval()
    model.load_state_dict(weights)
    start = encode(" ").expand(count, 1)
    generator = torch.Generator().manual_seed(seed)
    tokens = generate(model, start, config.context_length - 1, generator, caches(model))
    return [decode(line).strip() for line in tokens]


def right_share(sentences):
    """Give the share of sentences that follow the grammar."""
    return sum(map(is_right, sentences)) / len(sentences)


def fit(config, seed, checkpoint=None):
    """Train one model and check what it writes."""
    torch.manual_seed(seed)
    model = build(config)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
    generator = torch.Generator().manual_seed(seed)
    losses = []

    def step(index):
        training.set_rate(optimizer, index, config.steps, config.rate)
        batch = draw(config, config.batch_size, generator)
        scores = model(batch[:, :-1])
        loss = F.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())
        losses.append(loss.item())
        return loss

    def watch(done):
        if done % config.loss_every or done == 0:
            return None
        return {"step": done, "loss": round(losses[-1], 4)}

    seen = training.train(
        model, optimizer, generator, config.steps, step,
        checkpoint=checkpoint, watch=watch,
    )  # fmt: skip
    weights = model.state_dict()
    written = write(config, weights, config.test_count, config.test_seed)
    return {
        "seed": seed,
        "parameters": sum(p.numel() for p in model.parameters()),
        "steps": [found["step"] for found in seen],
        "loss": [found["loss"] for found in seen],
        "right": round(right_share(written), 4),
        "weights": weights,
    }


def parts(config):
    """Give the arguments of each model: its seed."""
    return [(seed,) for seed in config.seeds]


def file_name(result):
    """Name the file of a model's weights."""
    return "text"
