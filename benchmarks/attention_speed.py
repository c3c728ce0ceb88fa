"""Speed and memory of the layers, as ratios in one run.

    python benchmarks/attention_speed.py            about ten minutes
    python benchmarks/attention_speed.py --quick    small sizes, to see that it works

Prints tables and writes coding_attention/models/results/attention_speed.json. On a
CPU, one thread works and the clock is that of the processor, so that other programs
are not counted. They still take some of the caches: best let none run beside it.

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
import time
from pathlib import Path

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
    "flex": "combined qkv and FlexAttention, compiled",
    "fused compiled": "FusedMultiHeadAttention, compiled",
    "listing compiled": "MultiHeadAttention, compiled",
}


def speed(b, t, names, rounds, device="cpu", dtype=torch.float32):
    """Time contestants at one size, forward and with backward."""
    names = list(names)
    if device == "cuda":
        names.append("flex")
    layers = {n: contestants.build(n, b, t, device).to(dtype) for n in names}
    if device == "cuda":
        layers["flex"] = torch.compile(layers["flex"])
        for name in ("fused", "listing"):
            layers[f"{name} compiled"] = torch.compile(layers[name])
    x = torch.randn(b, t, contestants.D, device=device, dtype=dtype)
    require_agreement(layers, x)
    floor = contestants.Floor(b, t, device, dtype)
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    result = {"b": b, "t": t, "device": device, "dtype": str(dtype), "rounds": rounds}
    for kind in (timing.forward, timing.forward_backward):
        for layer in layers.values():
            layer.train(kind is timing.forward_backward)
        functions = {name: kind(layer, x) for name, layer in layers.items()}
        functions["floor"] = getattr(floor, kind.__name__)
        title = f"b = {b}, t = {t}, {kind.__name__}"
        # A GPU works while the processor waits.
        clock = time.perf_counter if device == "cuda" else timing.clock
        seconds = timing.interleaved(functions, rounds, title, 0, wait, clock)
        result[kind.__name__] = timing.summarize(seconds, base="floor")
        if device == "cuda":
            for name, run in functions.items():
                peak = cuda_peak(run)
                result[kind.__name__][name]["peak_bytes"] = peak
        for layer in layers.values():
            layer.zero_grad(set_to_none=True)
    return result


@torch.no_grad()
def require_agreement(layers, x):
    """Stop when two contestants do not compute the same."""
    expected = layers["listing"](x)
    close = 1e-5 if x.dtype == torch.float32 else 3e-2
    for name, layer in layers.items():
        apart = (layer(x) - expected).abs().max().item()
        if not apart <= close:
            raise RuntimeError(
                f"{NAMES[name]} differs from {NAMES['listing']} by {apart:.2g}, more "
                f"than {close:g}: their times cannot be compared."
            )


def cuda_peak(run):
    """Give how far the GPU's memory grows in one call, in bytes."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def with_kept_memory(b, t, options):
    """Measure one size in a process that keeps freed memory.

    Returns:
        What `speed` gives, or None where the C library has no such switch.
    """
    if platform.libc_ver()[0] != "glibc":
        return None
    command = [sys.executable, __file__, "--kept", str(b), str(t)]
    run = subprocess.run(
        [*command, f"--rounds={options.rounds}", f"--threads={options.threads}"],
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


def targets(results):
    """Hold the results against what was aimed at; the first size counts."""
    found = []
    for kind, bound in (("forward", 1.0), ("forward_backward", 1.1)):
        rows = results["speed"][0][kind]
        for base, most in (("floor", bound), ("minimal", 1.0)):
            times = rows["fused"]["rounds_s"], rows[base]["rounds_s"]
            middle, low, _ = timing.ratio(*times)
            # "Not slower" between equals: a median of exactly 1 would be a coin toss.
            value, which = (low, ", lower end") if base == "minimal" else (middle, "")
            found.append((f"fused / {base}, {kind}{which}", value, "<=", most))
    last = results["decoding"]["rows"][-1]
    rounds = (last["steps"][name]["rounds_s"] for name in ("cached", "minimal, cached"))
    found.append(("cached / minimal, cached", timing.ratio(*rounds)[0], "<=", 1.25))
    steps = last["steps"]["fused, recomputed"]["ratio"]
    found.append((f"recomputed / cached at t = {last['t']}", steps, ">=", 20.0))
    if "memory" in results:
        for kind in ("forward", "forward_backward"):
            growth = memory_growth(results["memory"]["fused"], kind)
            name = f"fused, memory that one token adds, late / early, {kind}"
            found.append((name, growth, "<=", 1.2))
    return [
        {
            "what": what,
            "value": value,
            "aim": f"{sign} {bound}",
            "reached": value <= bound if sign == "<=" else value >= bound,
        }
        for what, value, sign, bound in found
    ]


def memory_growth(rows, kind):
    """Compare what a token adds from t = 1024 to 4096 and from t = 256 to 1024.

    Memory linear in t gives 1, quadratic 4. Different steps of backward may set the
    peak at different t, so it need not be 1 to the last digit.
    """
    (t0, a), (t1, b), (t2, c) = [(r["t"], r[kind]["allocated"]) for r in rows[1:]]
    return ((c - b) / (t2 - t1)) / ((b - a) / (t1 - t0))


def show(results):
    """Print the tables."""
    sizes = [(size, "") for size in results["speed"]]
    if results["kept_memory"]:
        sizes.append((results["kept_memory"], ", memory kept"))
    for size, memory_is in sizes:
        title = f"b = {size['b']}, t = {size['t']}, {size['device']}, {size['dtype']}"
        print(f"\n{title + memory_is:44}    forward       with backward")
        for name, row in size["forward"].items():
            back = size["forward_backward"][name]
            print(
                f"{NAMES[name]:44}"
                f"{row['median_s'] * 1e3:8.1f} ms {row['ratio']:5.2f}"
                f"{back['median_s'] * 1e3:9.1f} ms {back['ratio']:5.2f}"
            )
    for kind, steps in results["steps"].items():
        print(f"\neach step / the one before, {kind}")
        for name, row in steps.items():
            low, high = row["ratio_interval"]
            print(f"{NAMES[name]:44}{row['ratio']:6.2f}  ({low:.2f} to {high:.2f})")
    masked = results["masks"]
    print(f"\nt = {masked['t']}, a window of {masked['window']}: time / causal")
    for name, row in masked["masks"].items():
        low, high = row["ratio_interval"]
        print(f"{name:44}{row['ratio']:6.2f}  ({low:.2f} to {high:.2f})")
    print("\none more token, ms")
    for row in results["decoding"]["rows"]:
        steps = row["steps"].items()
        print(
            f"t = {row['t']:5}  "
            + "  ".join(f"{name} {s['median_s'] * 1e3:.2f}" for name, s in steps)
        )
    for name, rows in results.get("memory", {}).items():
        peaks = [
            f"t = {row['t']}: {row['forward']['allocated'] / 2**20:.1f} and "
            f"{row['forward_backward']['allocated'] / 2**20:.1f}"
            for row in rows
        ]
        print(f"peak MiB, {NAMES[name]}: {', '.join(peaks)}")
    print()
    for target in results["targets"]:
        verdict = "reached" if target["reached"] else "NOT REACHED"
        print(f"{target['what']}: {target['value']:.2f} ({target['aim']}) {verdict}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, no memory")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--kept", nargs=2, type=int, help="print this size as JSON")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    rounds = options.rounds
    torch.set_num_threads(options.threads)
    if options.kept:
        print(json.dumps(speed(*options.kept, WITH_KEPT_MEMORY, rounds)))
        return
    if options.quick and options.output == RESULTS:
        parser.error("--quick writes no results for the book: add --output FILE")
    started = time.time()
    sizes = QUICK if options.quick else SIZES
    first, *others = sizes
    results = {"machine": machine.describe(), "peaks": machine.peaks()}
    results["speed"] = [speed(*first, sizes[first], rounds)]
    results["steps"] = step_by_step(results["speed"][0])
    # The longest takes half a minute a pair of rounds.
    for size in others:
        results["speed"].append(speed(*size, sizes[size], max(6, rounds // 2)))
    results["kept_memory"] = with_kept_memory(*first, options)
    results["left_out"] = []
    if torch.cuda.is_available():
        for size in sizes:
            results["speed"].append(
                speed(*size, sizes[size], rounds, "cuda", torch.bfloat16)
            )
    else:
        results["left_out"] = [
            "bfloat16 and compiled layers, on a GPU: this machine has none that "
            "PyTorch can use"
        ]
    # A step takes a millisecond or two, so there can be more rounds.
    results["decoding"] = parts.decoding(3 * rounds)
    results["grouped"] = parts.grouped(rounds, *([64] if options.quick else []))
    results["batched"] = parts.batched(rounds, *([64] if options.quick else []))
    results["masks"] = parts.masks(rounds, *([256] if options.quick else []))
    if not options.quick:
        results["memory"] = memory.measure_all(("listing", "fused"))
    results["targets"] = targets(results)
    results["seconds_taken"] = time.time() - started
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(json.dumps(results, indent=1) + "\n")
    show(results)
    print(f"\n{options.output}: written in {results['seconds_taken']:.0f} s")


if __name__ == "__main__":
    main()
