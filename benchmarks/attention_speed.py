"""Speed and memory of the layers, as ratios in one run.

    python benchmarks/attention_speed.py            about ten minutes
    python benchmarks/attention_speed.py --quick    small sizes, to see that it works

Prints tables and writes coding_attention/models/results/attention_speed.json. One
thread works, and the clock is that of the processor, so that other programs are not
counted. They still take some of the caches: best let none run beside it.

Part of it runs twice. As it comes, Python gives large tensors back to the system when
they are freed, and each new one is made of fresh pages, which the system has to find
and fill with zeros. A second process keeps freed memory for the next tensor, as
PyTorch itself does on a GPU. The difference is what fresh memory costs.
"""

import argparse
import itertools
import json
import os
import platform
import subprocess
import sys

import contestants
import machine
import memory
import parts
import timing
import torch

from coding_attention.models import stored

# What is measured at which size: everything at the first.
SIZES = {
    (2, 1024): contestants.NAMES,
    (4, 256): ("listing", "sdpa", "fused", "minimal"),
    (1, 4096): ("listing", "sdpa", "fused", "minimal"),
}
QUICK = {(1, 64): contestants.NAMES, (2, 32): ("listing", "fused")}
WITH_KEPT_MEMORY = ("listing", "added", "sdpa", "wrapper")
# The GNU C library's switches: no block of its own for a large tensor, and nothing
# given back to the system.
KEEP_MEMORY = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**40),
    "MALLOC_TOP_PAD_": str(2**28),
}
RESULTS = stored.RESULTS / "attention_speed.json"
NAMES = {
    "floor": "the matrix products alone",
    "fused": "FusedMultiHeadAttention",
    "listing": "MultiHeadAttention",
    "combined": "one projection for q, k and v",
    "queries": "and the queries divided, not the scores",
    "added": "and the mask added, not filled in",
    "sdpa": "one projection and the fused kernel",
    "wrapper": "MultiHeadAttentionWrapper and projection",
    "minimal": "four linear layers and the fused kernel",
    "torch": "nn.MultiheadAttention, fast path",
    "torch_slow": "nn.MultiheadAttention, fast path off",
    "torch_weights": "nn.MultiheadAttention, with weights",
}


def speed(b, t, names, rounds):
    """Time contestants at one size, forward and with backward."""
    layers = {name: contestants.build(name, t) for name in names}
    x = torch.randn(b, t, contestants.D)
    require_agreement(layers, x)
    floor = contestants.Floor(b, t)
    result = {"b": b, "t": t, "rounds": rounds}
    for kind in (timing.forward, timing.forward_backward):
        for layer in layers.values():
            layer.train(kind is timing.forward_backward)
        functions = {name: kind(layer, x) for name, layer in layers.items()}
        functions["floor"] = getattr(floor, kind.__name__)
        title = f"b = {b}, t = {t}, {kind.__name__}"
        seconds = timing.interleaved(functions, rounds, title)
        result[kind.__name__] = timing.summarize(seconds, base="floor")
        for layer in layers.values():
            layer.zero_grad(set_to_none=True)
    return result


@torch.no_grad()
def require_agreement(layers, x):
    """Stop when two contestants do not compute the same."""
    expected = layers["listing"](x)
    for name, layer in layers.items():
        apart = (layer(x) - expected).abs().max().item()
        if not apart <= 1e-5:
            raise RuntimeError(
                f"{NAMES[name]} differs from {NAMES['listing']} by {apart:.2g}, more "
                "than 1e-5: their times cannot be compared."
            )


def with_kept_memory(b, t, rounds):
    """Measure one size in a process that keeps freed memory.

    Returns:
        What `speed` gives, or None where the C library has no such switch.
    """
    if platform.libc_ver()[0] != "glibc":
        return None
    command = [sys.executable, __file__, "--kept", str(b), str(t)]
    run = subprocess.run(
        [*command, f"--rounds={rounds}"],
        check=True, stdout=subprocess.PIPE, text=True,
        env={**os.environ, **KEEP_MEMORY},
    )  # fmt: skip
    return json.loads(run.stdout)


def step_by_step(size):
    """Compare each step with the one before it, round by round."""
    chain = ["listing", *contestants.STEPS]
    found = {}
    for kind in ("forward", "forward_backward"):
        found[kind] = {}
        for before, name in itertools.pairwise(chain):
            times = (size[kind][n]["rounds_s"] for n in (name, before))
            middle, low, high = timing.ratio(*times)
            found[kind][name] = {"ratio": middle, "ratio_interval": [low, high]}
    return found


def show(results):
    """Print the times of all versions; the page shows the rest."""
    sizes = [(size, "") for size in results["speed"]]
    if results["kept_memory"]:
        sizes.append((results["kept_memory"], ", memory kept"))
    for size, memory_is in sizes:
        title = f"b = {size['b']}, t = {size['t']}{memory_is}"
        print(f"\n{title:44}    forward       with backward")
        for name, row in size["forward"].items():
            back = size["forward_backward"][name]
            print(
                f"{NAMES[name]:44}"
                f"{row['median_s'] * 1e3:8.1f} ms {row['ratio']:5.2f}"
                f"{back['median_s'] * 1e3:9.1f} ms {back['ratio']:5.2f}"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, not stored")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--kept", nargs=2, type=int, help="print this size as JSON")
    options = parser.parse_args()
    rounds = options.rounds
    torch.set_num_threads(1)
    if options.kept:
        print(json.dumps(speed(*options.kept, WITH_KEPT_MEMORY, rounds)))
        return
    results = measure(rounds, options.quick)
    if not options.quick:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    show(results)


def measure(rounds, quick):
    """Measure everything that the page about time shows."""
    sizes = QUICK if quick else SIZES
    first, *others = sizes
    results = {"machine": machine.describe(), "peaks": machine.peaks()}
    results["speed"] = [speed(*first, sizes[first], rounds)]
    results["steps"] = step_by_step(results["speed"][0])
    # The longest takes half a minute a pair of rounds.
    for size in others:
        results["speed"].append(speed(*size, sizes[size], max(6, rounds // 2)))
    results["kept_memory"] = with_kept_memory(*first, rounds)
    results["left_out"] = ["bfloat16 and compiled layers, on a GPU"]
    # A step takes a millisecond or two, so there can be more rounds.
    results["decoding"] = parts.decoding(3 * rounds)
    results["grouped"] = parts.grouped(rounds, *([64] if quick else []))
    results["batched"] = parts.batched(rounds, *([64] if quick else []))
    results["masks"] = parts.masks(rounds, *([256] if quick else []))
    if not quick:
        results["memory"] = memory.measure_all(("listing", "fused"))
    return results


if __name__ == "__main__":
    main()
