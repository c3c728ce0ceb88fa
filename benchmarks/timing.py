"""Time several functions in turn, so that whatever disturbs one disturbs all."""

import random
import statistics
import time

import torch
from tqdm import tqdm


def interleaved(functions, rounds, title, seed=0, synchronize=lambda: None):
    """Time every function once a round, in another order each round.

    Args:
        functions: names and functions without arguments.
        rounds: how often.
        title: of the progress bar.
        seed: of the orders.
        synchronize: waits until the device has finished.

    Returns:
        Names and lists of seconds, one for each round.
    """
    order = list(functions)
    seconds = {name: [] for name in order}
    for name in order:
        functions[name]()  # the first call sets things up
    shuffle = random.Random(seed).shuffle
    for _ in tqdm(range(rounds), desc=title, unit="round"):
        shuffle(order)
        for name in order:
            synchronize()
            start = time.perf_counter()
            functions[name]()
            synchronize()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def summarize(seconds, base):
    """Give the times of all rounds, medians, and ratios to ``base``."""
    summary = {}
    for name, times in seconds.items():
        middle, low, high = ratio(times, seconds[base])
        summary[name] = {
            "median_s": statistics.median(times),
            "ratio": middle,
            "ratio_quartiles": [low, high],
            "rounds_s": [round(t, 6) for t in times],
        }
    return summary


def ratio(times, base):
    """Give median and quartiles of the ratio in each round.

    What slows the machine down for a while slows both sides of such a ratio.
    """
    ratios = [a / b for a, b in zip(times, base, strict=True)]
    return statistics.median(ratios), *quartiles(ratios)


def quartiles(values):
    if len(values) < 2:
        return [values[0], values[0]]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return [low, high]


def forward(layer, x):
    """Give a function that runs the layer without gradients."""

    def run():
        with torch.no_grad():
            layer(x)

    return run


def forward_backward(layer, x):
    """Give a function that also computes all gradients, of the input too."""
    x = x.clone().requires_grad_()
    with torch.no_grad():
        gradient = torch.ones_like(layer(x))

    def run():
        layer.zero_grad(set_to_none=True)
        x.grad = None
        layer(x).backward(gradient)

    return run
