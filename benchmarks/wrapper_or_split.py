"""Twelve heads one by one, or one projection split into twelve: which is faster?

    python benchmarks/wrapper_or_split.py           a few minutes
    python benchmarks/wrapper_or_split.py --quick   small sizes, to see that it works

Prints ratios, wrapper / split class, and writes
coding_attention/models/results/wrapper_or_split.json. Everything is measured in two
processes: one gets fresh memory for each large tensor, as Python does by default on
Linux, the other reuses what was freed, as PyTorch does on a GPU.
"""

import argparse
import json
import os
import resource
import subprocess
import sys

import contestants
import machine
import timing
import torch
from attention_speed import KEEP_MEMORY
from torch import nn

from coding_attention.models import stored

SIZES = [(1, 16), (8, 64), (1, 256), (1, 1024)]  # b, t
QUICK = [(1, 16), (2, 32)]
RESULTS = stored.RESULTS / "wrapper_or_split.json"


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
    return timing.summarize(seconds, base="listing")["wrapper"] | {
        "split_median_s": sorted(seconds["listing"])[rounds // 2]
    }


def count_page_faults(run):
    """Count the pages of memory that one call has to get from the system."""
    run()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    run()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def compare_all(options):
    rows = []
    for b, t in QUICK if options.quick else SIZES:
        # The longest takes most of the time.
        rows.append(compare(b, t, options.rounds // (2 if t > 512 else 1)))
    return {"machine": machine.describe(), "rows": rows}


def compare_with_kept_memory(options):
    command = [sys.executable, __file__, "--kept", f"--rounds={options.rounds}"]
    run = subprocess.run(
        command + ["--quick"] * options.quick,
        check=True, stdout=subprocess.PIPE, text=True,
        env={**os.environ, **KEEP_MEMORY},
    )  # fmt: skip
    return json.loads(run.stdout)["rows"]


def show(results):
    for memory in ("fresh", "kept"):
        print(f"\nwrapper / split class, {memory} memory")
        for row in results[memory]:
            parts = (
                "{}: {:.2f} ({:.2f} to {:.2f})".format(
                    kind, row[kind]["ratio"], *row[kind]["ratio_interval"]
                )
                for kind in ("forward", "forward_backward", "projections")
            )
            print(f"b = {row['b']}, t = {row['t']:4}  ", "   ".join(parts))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, not stored")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--kept", action="store_true", help="print one half as JSON")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = compare_all(options)
    if options.kept:
        print(json.dumps(found))
        return
    results = {
        "machine": found["machine"],
        "fresh": found["rows"],
        "kept": compare_with_kept_memory(options),
    }
    if not options.quick:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    show(results)


if __name__ == "__main__":
    main()
