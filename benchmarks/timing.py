"""Time several functions in turn, so that whatever disturbs one disturbs all."""

import math
import random
import statistics
import time

import torch
from tqdm import tqdm


def clock():
    """Give the time in seconds: of the processor, if one thread does all the work.

    The processor's time leaves out what other programs take on a shared machine. With
    several threads it would count those that wait.
    """
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def interleaved(functions, rounds, title):
    """Time every function once a round, in another order each round.

    Args:
        functions: names and functions without arguments.
        rounds: how often.
        title: of the progress bar.

    Returns:
        Names and lists of seconds, one for each round.
    """
    order = list(functions)
    seconds = {name: [] for name in order}
    for name in order:
        functions[name]()  # the first call sets things up
    shuffle = random.Random(0).shuffle
    for _ in tqdm(range(rounds), desc=title, unit="round"):
        shuffle(order)
        for name in order:
            start = clock()
            functions[name]()
            seconds[name].append(clock() - start)
    return seconds


def summarize(seconds, base):
    """Give the times of all rounds, medians, and ratios to ``base``."""
    summary = {}
    for name, times in seconds.items():
        middle, low, high = ratio(times, seconds[base])
        summary[name] = {
            "median_s": statistics.median(times),
            "ratio": middle,
            "ratio_interval": [low, high],
            "rounds_s": [round(t, 6) for t in times],
        }
    return summary


def ratio(times, base):
    """Give the median of the ratios in each round, and an interval for it.

    What slows the machine down for a while slows both sides of such a ratio.
    """
    ratios = [a / b for a, b in zip(times, base, strict=True)]
    return statistics.median(ratios), *interval(ratios)


def interval(values):
    """Give a 95 % interval of the median: from 6 rounds on, without any assumption.

    Each round lies above the true median as a coin falls. So the interval leaves out
    as many of the smallest and largest values as coins allow in 1 of 20 cases.
    """
    n, left_out = len(values), 0
    while 2 * sum(math.comb(n, i) for i in range(left_out + 2)) <= 0.05 * 2**n:
        left_out += 1
    ordered = sorted(values)
    return [ordered[left_out], ordered[-1 - left_out]]


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
