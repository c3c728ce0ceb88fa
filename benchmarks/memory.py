"""Peak memory of one call, in a process of its own.

    python benchmarks/memory.py fused

prints JSON. Two measurements stand side by side. ``allocated`` adds up every request
and release that PyTorch's allocator reports, also inside its kernels: exact, but
blind to scratch space of other libraries. ``resident`` is what the operating system
saw: how far the process grew beyond what it had before the call (Linux only).
"""

import json
import subprocess
import sys
from pathlib import Path

import contestants
import timing
import torch
from torch.profiler import ProfilerActivity, profile

TOKENS = (1, 256, 1024, 4096)
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def measure_all(names):
    """Measure every contestant, each in a fresh process."""
    results = {}
    for name in names:
        # Free memory goes back to the system at once, so that it counts only once.
        command = ["env", "MALLOC_MMAP_THRESHOLD_=65536", "MALLOC_TRIM_THRESHOLD_=0"]
        command += [sys.executable, __file__, name]
        run = subprocess.run(command, check=True, capture_output=True, text=True)
        results[name] = json.loads(run.stdout)
    return results


def measure(name):
    results = []
    for t in TOKENS:
        layer = contestants.build(name, t)
        x = torch.randn(1, t, contestants.D)
        kept = [*layer.parameters(), *layer.buffers()]
        row = {"t": t, "kept": sum(tensor.nbytes for tensor in kept)}
        for kind in (timing.forward, timing.forward_backward):
            run = kind(layer, x)
            run()
            layer.zero_grad(set_to_none=True)
            row[kind.__name__] = {"resident": resident(run), "allocated": None}
            layer.zero_grad(set_to_none=True)
            row[kind.__name__]["allocated"] = allocated(run)
        results.append(row)
    return results


def allocated(run):
    """Follow the allocator through one call; give the highest sum in bytes."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        run()
    events = profiler.profiler.kineto_results.events()
    memory = [event for event in events if event.name() == "[memory]"]
    now = highest = 0
    for event in sorted(memory, key=lambda event: event.start_ns()):
        now += event.nbytes()
        highest = max(highest, now)
    return highest


def resident(run):
    """Give how far the process grows in one call, in bytes; ``None`` if unknown."""
    if not CLEAR.exists():
        return None
    CLEAR.write_text("5")  # the high-water mark starts again from here
    before = _status("VmRSS")
    run()
    return max(0, _status("VmHWM") - before)


def _status(key):
    (line,) = (s for s in STATUS.read_text().splitlines() if s.startswith(key))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
