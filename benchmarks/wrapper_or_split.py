"""Twelve heads one by one, or one projection split into twelve: which is faster?

It depends on whether a large tensor gets fresh memory, so `attention_speed.py` asks in
two processes.
"""

import resource

import contestants
import timing
import torch
from torch import nn

SIZES = [(1, 16), (8, 64), (1, 256), (1, 1024)]  # b, t
QUICK = [(1, 16), (2, 32)]


def compare(b, t, rounds):
    """Time both classes, and their query, key and value projections alone."""
    layers = {name: contestants.build(name, t) for name in ("wrapper", "listing")}
    x = torch.randn(b, t, contestants.D)
    with torch.no_grad():
        torch.testing.assert_close(*(layer(x) for layer in layers.values()))
    row = {"b": b, "t": t}
    for kind in (timing.forward, timing.forward_backward):
        for layer in layers.values():
            layer.train(kind is timing.forward_backward)
        functions = {name: kind(layer, x) for name, layer in layers.items()}
        title = f"b = {b}, t = {t}, {kind.__name__}"
        row[kind.__name__] = against_split(functions, rounds, title)
        row[kind.__name__]["page_faults"] = {
            name: count_page_faults(run) for name, run in functions.items()
        }
    functions = {
        "wrapper": timing.forward(projections(contestants.D_HEAD), x),
        "listing": timing.forward(projections(contestants.D), x),
    }
    row["projections"] = against_split(functions, rounds, f"b = {b}, t = {t}, q, k, v")
    return row


def projections(width):
    """Make what computes all queries, keys and values, so many features at a time."""
    d, bias = contestants.D, False
    parts = nn.ModuleList(nn.Linear(d, width, bias) for _ in range(3 * d // width))
    return lambda x: [part(x) for part in parts]


def against_split(functions, rounds, title):
    """Compare the wrapper with the split class, round by round."""
    seconds = timing.interleaved(functions, rounds, title)
    return timing.summarize(seconds, base="listing")["wrapper"]


def count_page_faults(run):
    """Count the pages of memory that one call has to get from the system."""
    run()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    run()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def compare_all(rounds, quick):
    """Compare both classes at all sizes."""
    # The longest takes most of the time.
    return [
        compare(b, t, max(6, rounds // 2) if t > 512 else rounds)
        for b, t in (QUICK if quick else SIZES)
    ]
