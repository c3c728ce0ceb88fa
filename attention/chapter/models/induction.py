"""Watch heads learn: a tiny GPT on random sequences that repeat.

Results: ``results/induction.json`` with the loss, the scores of all heads over
training and the loss without each head, for each seed; and the weights of the first
seed in ``results/induction.safetensors``.
"""

from dataclasses import dataclass

import torch
from torch.nn import functional as F

from attention.chapter import example
from attention.chapter.models import heads, training
from attention.chapter.models.repeats import repeats
from attention.chapter.models.tiny_gpt import GPTConfig, TinyGPT


@dataclass(frozen=True)
class Config:
    """Sizes of the experiment.

    Attributes:
        seeds: one model for each seed.
        vocab_size, context_length, d_model, num_heads, num_blocks: of the model.
        shortest, longest: bounds of the length of a repeated piece.
        batch_size: sequences in each step.
        steps: training steps.
        rate: highest learning rate.
        test_seed, test_count: the sequences that loss and scores are measured on.
        loss_every: steps between two measured losses.
        shown: steps at which the heads' patterns and scores are kept.
    """

    seeds: tuple = (0, 1, 2)
    vocab_size: int = 32
    context_length: int = 40
    d_model: int = 32
    num_heads: int = 2
    num_blocks: int = 2
    shortest: int = 6
    longest: int = 20
    batch_size: int = 32
    steps: int = 1200
    rate: float = 0.003
    test_seed: int = 1000
    test_count: int = 128
    loss_every: int = 20
    shown: tuple = (0, 100, 200, 260, 300, 340, 400, 500, 700, 1200)


CODE = ("training", "induction", "heads", "repeats", "tiny_gpt")
# The running example, twice: tokens 0 to 5 of the model stand for its six words.
SENTENCE = [*example.TOKENS, *example.TOKENS]


def sentence():
    """Give the running example's sentence, twice, as the model's tokens: (1, 12)."""
    return torch.arange(len(example.TOKENS)).repeat(2).unsqueeze(0)


def build(config):
    """Make an untrained model."""
    return TinyGPT(
        GPTConfig(
            config.vocab_size,
            config.context_length,
            config.d_model,
            config.num_heads,
            config.num_blocks,
        )
    )


def draw(config, count, generator):
    """Draw sequences as the config says: tokens (b, t) and lengths of pieces (b,)."""
    bounds = (config.shortest, config.longest)
    return repeats(count, config.context_length, config.vocab_size, *bounds, generator)


def token_losses(model, tokens):
    """Give the loss of each prediction: (b, t) -> (b, t - 1)."""
    scores = model(tokens[:, :-1])  # (b, t - 1, vocab_size)
    losses = F.cross_entropy(
        scores.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none"
    )
    return losses.view(len(tokens), -1)


@torch.no_grad()
def repeated_loss(model, tokens, periods):
    """Give the mean loss where the next token can be known.

    Args:
        model: a ``TinyGPT``.
        tokens: (b, t).
        periods: the length of each sequence's piece, (b,).

    Returns:
        A number. From the second token of the repetition on, the tokens before tell
        which one comes next.
    """
    known = torch.arange(1, tokens.shape[1]) > periods.unsqueeze(1)  # (b, t - 1)
    return token_losses(model, tokens)[known].mean().item()


def scores(model, tokens):
    """Give previous-token and induction score of each head, (blocks, h) each."""
    weights = heads.attention_weights(model, tokens)
    previous = heads.previous_token_score(weights, tokens)
    return {
        "previous": _rounded(previous),
        "induction": _rounded(heads.induction_score(weights, tokens)),
    }


def ablations(model, tokens, periods):
    """Give the loss without each head, as nested lists (blocks, h)."""

    def without(block, head):
        with heads.without_head(model, block, head):
            return round(repeated_loss(model, tokens, periods), 4)

    num_heads, num_blocks = model.config.num_heads, model.config.num_blocks
    return [[without(b, h) for h in range(num_heads)] for b in range(num_blocks)]


def _rounded(tensor, digits=4):
    factor = 10**digits
    return (torch.round(tensor.double() * factor) / factor).tolist()


def fit(config, seed, checkpoint=None):
    """Train one model and look at its heads on the way."""
    torch.manual_seed(seed)
    model = build(config)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
    generator = torch.Generator().manual_seed(seed)
    tester = torch.Generator().manual_seed(config.test_seed)
    tokens, periods = draw(config, config.test_count, tester)

    def step(index):
        training.set_rate(optimizer, index, config.steps, config.rate)
        batch, _ = draw(config, config.batch_size, generator)
        return token_losses(model, batch).mean()

    def watch(done):
        if done % config.loss_every and done not in config.shown:
            return None
        found = {
            "step": done,
            "loss": round(repeated_loss(model, tokens, periods), 4),
        }
        if done in config.shown:
            found |= scores(model, tokens)
            weights = heads.attention_weights(model, sentence())[0]
            found["patterns"] = _rounded(weights, digits=3)
        return found

    seen = training.train(
        model, optimizer, generator, config.steps, step,
        checkpoint=checkpoint, watch=watch,
    )  # fmt: skip
    shown = [found for found in seen if "patterns" in found]
    return {
        "seed": seed,
        "steps": [found["step"] for found in seen],
        "loss": [found["loss"] for found in seen],
        "shown": [
            {key: found[key] for key in ("step", "loss", "previous", "induction")}
            for found in shown
        ],
        "patterns": [found["patterns"] for found in shown],
        "ablated": ablations(model, tokens, periods),
        "weights": model.state_dict(),
    }


def parts(config):
    """Give the arguments of each model: its seed."""
    return [(seed,) for seed in config.seeds]


def file_name(result):
    """Name the file of a model's weights."""
    return "induction"
