"""Training that can be stopped and goes on from where it was, to the last bit."""

import os
import time

import torch


def train(
    model, optimizer, generator, steps, step, *, checkpoint, every=100, watch=None
):
    """Train, going on from the checkpoint if there is one.

    Args:
        model: the module to train.
        optimizer: its optimizer.
        generator: where the batches are drawn from.
        steps: number of steps in all.
        step: a function of the step's index that draws a batch and returns a loss.
        checkpoint: a path, or ``None`` to keep no checkpoints.
        every: steps between two checkpoints.
        watch: a function of the number of steps done, called before the first step
            and after each one. What it returns is kept, unless it is ``None``.

    Returns:
        What ``watch`` returned, in order.
    """
    state = _load(checkpoint, model, optimizer, generator)
    seen, before, first = state["seen"], state["seconds"], state["step"]
    started = time.perf_counter()

    def look(done):
        found = watch(done) if watch is not None else None
        if found is not None:
            seen.append(found)

    if first == 0:
        look(0)
    for index in range(first, steps):
        optimizer.zero_grad()
        step(index).backward()
        # One bad batch must not throw a recurrent network off its way.
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        look(index + 1)
        if checkpoint is not None and ((index + 1) % every == 0 or index + 1 == steps):
            seconds = before + time.perf_counter() - started
            _save(checkpoint, model, optimizer, generator, index + 1, seen, seconds)
    return seen


def set_rate(optimizer, index, steps, highest, warmup=50):
    """Set the learning rate: up in ``warmup`` steps, then down to a tenth."""
    rate = highest * min(1, (index + 1) / warmup) * (1 - 0.9 * index / steps)
    for group in optimizer.param_groups:
        group["lr"] = rate


def _save(path, model, optimizer, generator, step, seen, seconds):
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "generator": generator.get_state(),
        "step": step,
        "seen": seen,
        "seconds": seconds,
    }
    write_atomically(path, lambda temporary: torch.save(state, temporary))


def _load(path, model, optimizer, generator):
    if path is None or not path.exists():
        return {"step": 0, "seen": [], "seconds": 0.0}
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    generator.set_state(state["generator"])
    return state


def write_atomically(path, write):
    """Call ``write(temporary_path)``, then put the file in its place in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
