"""Does looking back help? GRU encoder and decoder, with and without attention.

Both kinds of model get almost the same number of parameters, and the same batches. Each
one is tested after two budgets of steps, and its validation loss is kept on the way.
Results: ``results/bottleneck.json``, and the weights of the models that a page loads in
``results/bottleneck_TASK_KIND.safetensors``.
"""

from dataclasses import dataclass

import torch
from torch.nn import functional as F

from coding_attention.models import training
from coding_attention.models.seq2seq import Translator
from coding_attention.models.translation import TASKS


@dataclass(frozen=True)
class Config:
    """Sizes and lengths of the experiment.

    Attributes:
        seeds: of the two kinds that compete on the reversal.
        grammar_seeds: of the models that learn the grammar.
        lengths: for each task, the lengths to train on.
        tested: for each task, the lengths whose accuracy is reported.
        d_embed: width of a word's embedding.
        d_hidden: width of the hidden states of the model with attention.
        batch_size: sequences of one length in each step.
        few_steps: the smaller budget.
        steps: the larger one.
        check_every: steps between two validation losses.
        rate: highest learning rate.
        test_seed: draws the test sequences.
        test_count: test sequences of each length.
        validation_seed: draws the sequences of the validation loss.
        validation_count: how many of each tested length.
    """

    seeds: tuple = (0, 1, 2, 3, 4)
    grammar_seeds: tuple = (0,)
    lengths: tuple = (
        ("reversal", tuple(range(2, 13))),
        ("grammar", (5, 8, 11, 14)),
    )
    tested: tuple = (
        ("reversal", (2, 4, 6, 8, 10, 12)),
        ("grammar", (5, 8, 11, 14)),
    )
    d_embed: int = 16
    d_hidden: int = 32
    batch_size: int = 32
    few_steps: int = 500
    steps: int = 2500
    check_every: int = 100
    rate: float = 0.004
    test_seed: int = 1000
    test_count: int = 300
    validation_seed: int = 2000
    validation_count: int = 100


CODE = ("training", "bottleneck", "seq2seq", "translation")
KINDS = ("without", "with")
KEPT = tuple(
    f"bottleneck_{pair}"
    for pair in ("reversal_without", "reversal_with", "grammar_with")
)


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


@torch.no_grad()
def validation_loss(model, task, config):
    """Give the mean loss per word on sequences kept aside, all tested lengths alike."""
    draw, losses = TASKS[task][0], []
    generator = torch.Generator().manual_seed(config.validation_seed)
    for length in dict(config.tested)[task]:
        source, target, _ = draw(config.validation_count, length, generator)
        scores, _ = model(source, length, target)
        losses.append(F.cross_entropy(scores.flatten(0, 1), target.flatten()).item())
    return sum(losses) / len(losses)


def measure(model, task, config):
    """Give accuracy and share of aligned words at each tested length, as two lists."""
    lengths = dict(config.tested)[task]
    found = [
        accuracy(model, task, length, config.test_count, config.test_seed)
        for length in lengths
    ]
    right, aligned = zip(*found, strict=True)
    aligned = None if aligned[0] is None else [round(a, 4) for a in aligned]
    return {"accuracy": [round(r, 4) for r in right], "aligned": aligned}


def set_rate(optimizer, index, config, warmup=50):
    """Set the learning rate, which does not know how many steps there will be.

    Up in ``warmup`` steps, level up to the smaller budget, then down with one over the
    root of the step. So a run up to the smaller budget is one that was made for it.
    """
    level = (config.few_steps / (index + 1)) ** 0.5
    for group in optimizer.param_groups:
        group["lr"] = config.rate * min((index + 1) / warmup, 1, level)


def fit(config, task, kind, seed, checkpoint=None):
    """Train one model and test it after both budgets."""
    torch.manual_seed(seed)
    model = build(config, task, kind)
    optimizer = torch.optim.Adam(model.parameters())
    generator = torch.Generator().manual_seed(seed)  # the same batches for both kinds
    lengths, draw = dict(config.lengths)[task], TASKS[task][0]

    def step(index):
        set_rate(optimizer, index, config)
        choice = torch.randint(len(lengths), (1,), generator=generator).item()
        source, target, _ = draw(config.batch_size, lengths[choice], generator)
        scores, _ = model(source, lengths[choice], target)
        return F.cross_entropy(scores.flatten(0, 1), target.flatten())

    def watch(done):
        if done % config.check_every:
            return None
        found = {
            "step": done,
            "loss": round(validation_loss(model, task, config), 4),
        }
        if done == config.few_steps:
            found |= measure(model, task, config)
        return found

    seen = training.train(
        model, optimizer, generator, config.steps, step,
        checkpoint=checkpoint, watch=watch,
    )  # fmt: skip
    (few,) = (found for found in seen if found["step"] == config.few_steps)
    return {
        "task": task,
        "kind": kind,
        "seed": seed,
        "parameters": count(model),
        "lengths": list(dict(config.tested)[task]),
        "steps": [found["step"] for found in seen],
        "loss": [found["loss"] for found in seen],
        "few": {key: few[key] for key in ("accuracy", "aligned")},
        "full": measure(model, task, config),
        "weights": model.state_dict(),
    }


def parts(config):
    """Give the arguments of each model: task, kind and seed.

    The two kinds compete on the reversal. The grammar is there to see where a model
    looks, so only models with attention learn it.
    """
    contest = [("reversal", kind, seed) for seed in config.seeds for kind in KINDS]
    return contest + [("grammar", "with", seed) for seed in config.grammar_seeds]


def file_name(result):
    """Name the file of a model's weights; ``None`` for those that no page loads."""
    name = f"bottleneck_{result['task']}_{result['kind']}"
    return name if result["seed"] == 0 and name in KEPT else None
