"""Training whose end is not known in advance: until a loss no longer falls."""

from pathlib import Path
from tempfile import TemporaryDirectory

from attention.chapter.models import training


def train_until(model, optimizer, generator, most, step, stop, *,
                checkpoint, every, watch):  # fmt: skip
    """Train in stretches of ``every`` steps until ``stop`` says so.

    Args:
        model: the module to train.
        optimizer: its optimizer.
        generator: where the batches are drawn from.
        most: no more steps than these.
        step: a function of the step's index that draws a batch and returns a loss.
        stop: a function of what ``watch`` has returned so far.
        checkpoint: a path, or ``None``. Each stretch goes on from the last one's.
        every: steps in a stretch.
        watch: a function of the number of steps done; what it returns is kept.

    Returns:
        What ``watch`` returned, in order.
    """
    with TemporaryDirectory() as folder:
        checkpoint = checkpoint or Path(folder) / "checkpoint.pt"
        for steps in range(every, most + 1, every):
            seen = training.train(
                model, optimizer, generator, steps, step,
                checkpoint=checkpoint, every=every, watch=watch,
            )  # fmt: skip
            if stop(seen):
                break
    return seen


def set_open_rate(optimizer, index, highest, hold, warmup=50):
    """Set the learning rate where nobody knows how many steps there will be.

    Up in ``warmup`` steps, level up to step ``hold``, then down with one over the root
    of the step. So a run looks the same up to any step, however long it goes on.
    """
    rate = highest * min((index + 1) / warmup, 1, (hold / (index + 1)) ** 0.5)
    for group in optimizer.param_groups:
        group["lr"] = rate


def no_longer_falls(losses, patience, least):
    """Tell whether the lowest of the last losses is hardly below the lowest before.

    Args:
        losses: validation losses, in order.
        patience: how many of them are the last ones.
        least: what the loss must have fallen by to go on.
    """
    if len(losses) <= patience:
        return False
    return min(losses[:-patience]) - min(losses[-patience:]) < least
