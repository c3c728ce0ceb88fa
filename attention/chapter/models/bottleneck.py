"""Does looking back help? GRU encoder and decoder, with and without attention.

Both kinds of model get the same number of parameters, the same batches and the same
number of steps. Results: ``results/bottleneck.json``, and the weights of the first
seed in ``results/bottleneck_TASK_KIND.safetensors``.
"""

from dataclasses import dataclass

import torch
from torch.nn import functional as F

from attention.chapter.models import training
from attention.chapter.models.seq2seq import Translator
from attention.chapter.models.translation import TASKS


@dataclass(frozen=True)
class Config:
    """Sizes and lengths of the experiment.

    Attributes:
        seeds: one model of each kind and task for each seed.
        lengths: for each task, the lengths to train on and to test.
        tested: for each task, the lengths whose accuracy is reported.
        d_embed: width of a word's embedding.
        d_hidden: width of the hidden states of the model with attention.
        batch_size: sequences of one length in each step.
        steps: training steps.
        rate: highest learning rate.
        test_seed: draws the test sequences.
        test_count: test sequences of each length.
    """

    seeds: tuple = (0, 1, 2)
    lengths: tuple = (
        ("reversal", tuple(range(3, 25))),
        ("grammar", (5, 8, 11, 14, 17, 20, 23, 26)),
    )
    tested: tuple = (
        ("reversal", (3, 6, 9, 12, 15, 18, 21, 24)),
        ("grammar", (5, 8, 11, 14, 17, 20, 23, 26)),
    )
    d_embed: int = 24
    d_hidden: int = 64
    batch_size: int = 64
    steps: int = 1200
    rate: float = 0.004
    test_seed: int = 1000
    test_count: int = 500


CODE = ("training", "bottleneck", "seq2seq", "translation")
KINDS = ("without", "with")


def count(model):
    """Count the parameters of a model."""
    return sum(p.numel() for p in model.parameters())


def build(config, task, kind, d_hidden=None):
    """Make an untrained model.

    Args:
        config: a :class:`Config`.
        task: "reversal" or "grammar".
        kind: "with" or "without" attention.
        d_hidden: width of the hidden states. By default, that of the config with
            attention, and without attention the width that comes closest to as many
            parameters.

    Returns:
        A ``Translator``.
    """
    _, source_words, target_words = TASKS[task]
    words = (source_words, target_words, config.d_embed)
    if d_hidden is not None:
        return Translator(*words, d_hidden, kind == "with")
    if kind == "with":
        return Translator(*words, config.d_hidden, True)
    with torch.device("meta"):
        budget = count(build(config, task, "with"))
        widths = range(config.d_hidden, 2 * config.d_hidden, 2)
        sizes = {w: count(build(config, task, "without", w)) for w in widths}
    closest = min(widths, key=lambda width: abs(sizes[width] - budget))
    return build(config, task, "without", closest)


@torch.no_grad()
def accuracy(model, task, length, test_count, seed):
    """Give the share of right words when a model writes on its own.

    Args:
        model: a ``Translator``.
        task: "reversal" or "grammar".
        length: of the test sequences.
        test_count: how many.
        seed: draws them.

    Returns:
        The share of right words, and of words whose largest weight lies on the source
        word that they come from (``None`` without attention).
    """
    draw = TASKS[task][0]
    generator = torch.Generator().manual_seed(seed)
    source, target, alignment = draw(test_count, length, generator)
    scores, weights = model(source, length)
    right = (scores.argmax(dim=2) == target).double().mean().item()
    if weights is None:
        return right, None
    return right, (weights.argmax(dim=2) == alignment).double().mean().item()


def fit(config, task, kind, seed, checkpoint=None):
    """Train and test one model."""
    torch.manual_seed(seed)
    model = build(config, task, kind)
    optimizer = torch.optim.Adam(model.parameters())
    generator = torch.Generator().manual_seed(seed)  # the same batches for both kinds
    lengths, draw = dict(config.lengths)[task], TASKS[task][0]

    def step(index):
        training.set_rate(optimizer, index, config.steps, config.rate)
        choice = torch.randint(len(lengths), (1,), generator=generator).item()
        source, target, _ = draw(config.batch_size, lengths[choice], generator)
        scores, _ = model(source, lengths[choice], target)
        return F.cross_entropy(scores.flatten(0, 1), target.flatten())

    training.train(
        model, optimizer, generator, config.steps, step, checkpoint=checkpoint
    )
    tests = [
        accuracy(model, task, length, config.test_count, config.test_seed)
        for length in dict(config.tested)[task]
    ]
    return {
        "task": task,
        "kind": kind,
        "seed": seed,
        "parameters": count(model),
        "lengths": list(dict(config.tested)[task]),
        "accuracy": [round(right, 4) for right, _ in tests],
        "aligned": [round(a, 4) for _, a in tests] if kind == "with" else None,
        "weights": model.state_dict(),
    }


def parts(config):
    """Give the arguments of each model: task, kind and seed."""
    return [(task, kind, s) for s in config.seeds for task in TASKS for kind in KINDS]


def file_name(result):
    """Name the file of a model's weights."""
    return f"bottleneck_{result['task']}_{result['kind']}"
