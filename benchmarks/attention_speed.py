"""Speed and memory of the layers, as ratios in one run.

    python benchmarks/attention_speed.py            a quarter of an hour
    python benchmarks/attention_speed.py --quick    small sizes, to see that it works

Prints tables and writes attention_speed.json and wrapper_or_split.json in
coding_attention/models/results. One thread works, and the clock is that of the
processor, so that other programs are not counted. They still take some of the caches:
best let none run beside it.

Part of it runs twice. As it comes, Python gives large tensors back to the system when
they are freed, and each new one is made of fresh pages, which the system has to find
and fill with zeros. A second process keeps freed memory for the next tensor, as
PyTorch itself does on a GPU. The difference is what fresh memory costs.
"""

import argparse
import itertools
import json
import platform

import contestants
import machine
import memory
import parts
import timing
import torch
import wrapper_or_split

from coding_attention.models import stored

# What is measured at which size: everything at the first.
SIZES = {
    (2, 1024): contestants.NAMES,
    (4, 256): ("listing", "sdpa", "fused", "minimal"),
    (1, 4096): ("listing", "sdpa", "fused", "minimal"),
}
QUICK = {(1, 64): contestants.NAMES, (2, 32): ("listing", "fused")}
WITH_KEPT_MEMORY = ("listing", "added", "sdpa", "wrapper")


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
                f"{name!r} differs from 'listing' by {apart:.2g}, more than 1e-5: "
                "their times cannot be compared."
            )


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
    """Print the times of all versions; the pages show the rest."""
    kept = results["kept_memory"]
    for size in [*results["speed"], *([kept] if kept else [])]:
        memory_is = ", memory kept" if size is kept else ""
        title = f"b = {size['b']}, t = {size['t']}{memory_is}"
        print(f"\n{title:44}    forward       with backward")
        for name, row in size["forward"].items():
            back = size["forward_backward"][name]
            print(
                f"{name:44}"
                f"{row['median_s'] * 1e3:8.1f} ms {row['ratio']:5.2f}"
                f"{back['median_s'] * 1e3:9.1f} ms {back['ratio']:5.2f}"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, not stored")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--kept", action="store_true", help="print a part as JSON")
    options = parser.parse_args()
    rounds, quick = options.rounds, options.quick
    torch.set_num_threads(1)
    if options.kept:
        size = next(iter(QUICK if quick else SIZES))
        by_size = speed(*size, WITH_KEPT_MEMORY, rounds)
        print(json.dumps([by_size, wrapper_or_split.compare_all(rounds, quick)]))
        return
    kept, kept_rows = None, []
    if platform.libc_ver()[0] == "glibc":  # others have no such switch
        more = ["--quick"] * quick
        kept, kept_rows = memory.run_keeping_memory(
            __file__, "--kept", f"--rounds={rounds}", *more
        )
    results = measure(rounds, quick) | {"kept_memory": kept}
    rows = wrapper_or_split.compare_all(rounds, quick)
    compared = {"machine": results["machine"], "fresh": rows, "kept": kept_rows}
    if not quick:
        store("attention_speed", results)
        store("wrapper_or_split", compared)
    show(results)


def store(name, results):
    """Write results where the pages read them."""
    text = json.dumps(results, indent=1) + "\n"
    (stored.RESULTS / f"{name}.json").write_text(text)


def measure(rounds, quick):
    """Measure everything that the page about time shows, with fresh memory."""
    sizes = QUICK if quick else SIZES
    first, *others = sizes
    results = {"machine": machine.describe(), "peaks": machine.peaks()}
    results["speed"] = [speed(*first, sizes[first], rounds)]
    results["steps"] = step_by_step(results["speed"][0])
    # The longest takes half a minute a pair of rounds.
    for size in others:
        results["speed"].append(speed(*size, sizes[size], max(6, rounds // 2)))
    results["left_out"] = ["bfloat16 and compiled layers, on a GPU"]
    # A step takes a millisecond or two, so there can be more rounds.
    results["decoding"] = parts.decoding(3 * rounds)
    results["grouped"] = parts.grouped(rounds, *([64] if quick else []))
    results["batched"] = parts.batched(rounds, *([64] if quick else []))
    results["masks"] = parts.masks(rounds, *([256] if quick else []))
    if not quick:
        results["memory"] = {n: memory.measure_peaks(n) for n in ("listing", "fused")}
    return results


if __name__ == "__main__":
    main()
