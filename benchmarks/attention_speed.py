"""Speed and memory of the layers, as ratios in one run.

    python benchmarks/attention_speed.py            about ten minutes on two cores
    python benchmarks/attention_speed.py --quick    small sizes, to see that it works

Prints tables and writes attention/chapter/models/results/attention_speed.json. Let
nothing else run beside it.

Part of it runs twice. As it comes, Python gives large tensors back to the system when
they are freed, and each new one is made of fresh pages, which the system has to find
and fill with zeros. A second process keeps freed memory for the next tensor, as
PyTorch itself does on a GPU. The difference is what fresh memory costs.
"""

import argparse
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

from attention.chapter.models import stored

SIZES = ((4, 1024), (8, 256), (1, 4096))
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
    "sdpa": "combined qkv and fused kernel",
    "listing": "MultiHeadAttention",
    "divided": "the same, filling and dividing the scores",
    "wrapper": "MultiHeadAttentionWrapper and projection",
    "torch": "nn.MultiheadAttention, no weights",
    "torch_weights": "nn.MultiheadAttention, with weights",
    "flex": "combined qkv and FlexAttention, compiled",
    "fused compiled": "FusedMultiHeadAttention, compiled",
    "listing compiled": "MultiHeadAttention, compiled",
}


def speed(b, t, rounds, device="cpu", dtype=torch.float32):
    """Time all contestants at one size, forward and with backward."""
    names = list(contestants.NAMES)
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
        seconds = timing.interleaved(functions, rounds, title, synchronize=wait)
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


def first_size(rounds, sizes):
    """Measure what is asked twice, with fresh and with kept memory."""
    return {
        "speed": speed(*sizes[0], rounds),
        "steps": parts.steps(*sizes[0], rounds),
        "heads_at_a_time": parts.heads_at_a_time(*sizes[0], rounds),
    }


def with_kept_memory(options):
    """Measure the first size in a process that keeps freed memory.

    Returns:
        What `first_size` gives, or None where the C library has no such switch.
    """
    if platform.libc_ver()[0] != "glibc":
        return None
    command = [sys.executable, __file__, "--first-size", f"--rounds={options.rounds}"]
    command += ["--quick"] * options.quick
    run = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True,
        env={**os.environ, **KEEP_MEMORY},
    )  # fmt: skip
    return json.loads(run.stdout)


def targets(results):
    """Hold the results against what was aimed at; the first size counts."""
    found = []
    for kind, bound, least in (
        ("forward", 1.05, 0.85),
        ("forward_backward", 1.15, 0.85),
    ):
        rows = results["speed"][0][kind]
        for name, base, most in (
            ("fused", "floor", bound),
            ("fused", "sdpa", 1.0),
            ("listing", "divided", least),
        ):
            times = rows[name]["rounds_s"], rows[base]["rounds_s"]
            middle, low, _ = timing.ratio(*times)
            # "Not slower" between equals: a median of exactly 1 would be a coin toss.
            value, which = (low, ", lower quartile") if most == 1.0 else (middle, "")
            found.append((f"{name} / {base}, {kind}{which}", value, "<=", most))
    last = results["decoding"]["rows"][-1]
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
        sizes.append((results["kept_memory"]["speed"], ", memory kept"))
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
    parser.add_argument("--first-size", action="store_true", help="print it as JSON")
    options = parser.parse_args()
    rounds = options.rounds
    sizes = ((1, 64), (2, 32)) if options.quick else SIZES
    if options.first_size:
        print(json.dumps(first_size(rounds, sizes)))
        return
    if options.quick and options.output == RESULTS:
        parser.error("--quick writes no results for the book: add --output FILE")
    started = time.time()
    results = {"machine": machine.describe()}
    results |= first_size(rounds, sizes)
    results["speed"] = [results["speed"]]
    # The longest takes minutes a pair of rounds.
    for b, t in sizes[1:]:
        results["speed"].append(speed(b, t, max(3, rounds // 2)))
    results["kept_memory"] = with_kept_memory(options)
    if torch.cuda.is_available():
        for b, t in sizes:
            results["speed"].append(speed(b, t, rounds, "cuda", torch.bfloat16))
        results["left_out"] = []
    else:
        results["left_out"] = [
            "bfloat16, torch.compile and FlexAttention: measured on a GPU only, and "
            "this machine has none that PyTorch can use"
        ]
    results["decoding"] = parts.decoding(rounds)
    if not options.quick:
        measured = [n for n in contestants.NAMES if n != "divided"]
        results["memory"] = memory.measure_all(measured)
    results["targets"] = targets(results)
    results["seconds_taken"] = time.time() - started
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(json.dumps(results, indent=1) + "\n")
    show(results)
    print(f"\n{options.output}: written in {results['seconds_taken']:.0f} s")


if __name__ == "__main__":
    main()
