"""Watch heads learn: a tiny GPT on random sequences that repeat.

Results: ``results/induction.json`` with the loss and the scores of all heads over
training, the loss without each head, and the loss with single wires between the blocks
cut, for each seed; and the weights of the first seed in
``results/induction.safetensors``. A model with one block is trained for comparison.
"""

from dataclasses import dataclass

import torch
from torch.nn import functional as F

from coding_attention import example
from coding_attention.models import heads, training
from coding_attention.models.repeats import repeats
from coding_attention.models.tiny_gpt import GPTConfig, TinyGPT


@dataclass(frozen=True)
class Config:
    """Sizes of the experiment.

    Attributes:
        seeds: one model for each seed.
        control_seeds: of the models with one block.
        vocab_size, context_length, d_model, num_heads, num_blocks: of the model.
        shortest, longest: bounds of the length of a repeated piece.
        batch_size: sequences in each step.
        steps: training steps.
        rate: highest learning rate.
        test_seed, test_count: the sequences that loss and scores are measured on.
        loss_every: steps between two measured losses.
        shown: steps at which the heads' patterns and scores are kept.
    """

    seeds: tuple = tuple(range(12))
    control_seeds: tuple = (0, 1, 2)
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


def build(config, num_blocks=None):
    """Make an untrained model, with as many blocks as the config says by default."""
    return TinyGPT(
        GPTConfig(
            config.vocab_size,
            config.context_length,
            config.d_model,
            config.num_heads,
            num_blocks or config.num_blocks,
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


def guessing_loss(tokens, periods, choices):
    """Give the loss of guessing, where the next token can be known.

    Args:
        tokens: (b, t).
        periods: the length of each sequence's piece, (b,).
        choices: among how many tokens each sequence's guesses are made, (b,).

    Returns:
        A number: the mean over the same predictions as in :func:`repeated_loss`.
    """
    known = torch.arange(1, tokens.shape[1]) > periods.unsqueeze(1)
    return (choices.log().unsqueeze(1) * known).sum().item() / known.sum().item()


def scores(model, tokens):
    """Give the three scores of each head, (blocks, h) each."""
    weights = heads.attention_weights(model, tokens)
    return {
        "previous": _rounded(heads.previous_token_score(weights, tokens)),
        "induction": _rounded(heads.induction_score(weights, tokens)),
        "sink": _rounded(heads.sink_score(weights, tokens)),
    }


def replaced(model, tokens, block, head):
    """Give what may speak in place of a head: nothing, or its mean output."""
    return {"zero": None, "mean": heads.mean_output(model, tokens, block, head)}


def ablations(model, tokens, periods):
    """Give the loss without each head, as nested lists (blocks, h), in both ways."""

    def without(block, head, way):
        instead = replaced(model, tokens, block, head)[way]
        with heads.without_head(model, block, head, instead):
            return round(repeated_loss(model, tokens, periods), 4)

    sizes = model.config
    return {
        way: [
            [without(b, h, way) for h in range(sizes.num_heads)]
            for b in range(sizes.num_blocks)
        ]
        for way in ("zero", "mean")
    }


WIRES = {
    "keys": ("key",),
    "queries": ("query",),
    "values": ("value",),
    "all": ("key", "query", "value"),
}


def cuts(model, tokens, periods):
    """Give the loss with each head of block one taken out of parts of block two.

    Returns:
        A dict of "zero" and "mean", each a list with a dict for each head: the loss by
        what does without it, as :data:`WIRES` names it.
    """

    def loss(head, way, parts):
        instead = replaced(model, tokens, 0, head)[way]
        with heads.cut(model, tokens[:, :-1], head, parts, instead):
            return round(repeated_loss(model, tokens, periods), 4)

    return {
        way: [
            {name: loss(h, way, parts) for name, parts in WIRES.items()}
            for h in range(model.config.num_heads)
        ]
        for way in ("zero", "mean")
    }


def _rounded(tensor, digits=4):
    factor = 10**digits
    return (torch.round(tensor.double() * factor) / factor).tolist()


def fit(config, num_blocks, seed, checkpoint=None):
    """Train one model and look at its heads on the way."""
    torch.manual_seed(seed)
    model = build(config, num_blocks)
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
    kept = ("step", "loss", "previous", "induction", "sink")
    result = {
        "seed": seed,
        "blocks": num_blocks,
        "steps": [found["step"] for found in seen],
        "loss": [found["loss"] for found in seen],
        "shown": [{key: found[key] for key in kept} for found in shown],
        "ablated": ablations(model, tokens, periods),
        "weights": model.state_dict(),
    }
    if num_blocks == config.num_blocks:
        result["cut"] = cuts(model, tokens, periods)
    if file_name(result):  # one seed's are shown; they are large
        result["patterns"] = [found["patterns"] for found in shown]
    return result


def parts(config):
    """Give the arguments of each model: its blocks and its seed."""
    return [
        *((config.num_blocks, seed) for seed in config.seeds),
        *((1, seed) for seed in config.control_seeds),
    ]


def file_name(result):
    """Name the file of a model's weights; ``None`` for those that no page loads."""
    first = (result["blocks"], result["seed"]) == (2, 0)
    return "induction" if first else None
