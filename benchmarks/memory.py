"""Peak memory of one call, and processes that keep freed memory for the next tensor."""

import json
import os
import subprocess
import sys

import contestants
import timing
import torch
from torch.profiler import ProfilerActivity, profile

TOKENS = (1, 256, 1024, 4096)
# The GNU C library's switches: no block of its own for a large tensor, and nothing
# given back to the system.
KEEP_MEMORY = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**40),
    "MALLOC_TOP_PAD_": str(2**28),
}


def run_keeping_memory(script, *arguments):
    """Run a script in a process that keeps freed memory; return the JSON it prints."""
    run = subprocess.run(
        [sys.executable, script, *map(str, arguments)],
        check=True, stdout=subprocess.PIPE, text=True,
        env={**os.environ, **KEEP_MEMORY},
    )  # fmt: skip
    return json.loads(run.stdout)


def measure_peaks(name):
    """Measure the highest sum of bytes that one contestant has requested at a time."""
    rows = []
    for t in TOKENS:
        layer, row = contestants.build(name, t), {"t": t}
        x = torch.randn(1, t, contestants.D)
        for kind in (timing.forward, timing.forward_backward):
            run = kind(layer, x)
            run()
            layer.zero_grad(set_to_none=True)
            row[kind.__name__] = {"allocated": follow_allocator(run)}
        rows.append(row)
    return rows


def follow_allocator(run):
    """Follow PyTorch's allocator through one call; give the highest sum in bytes.

    It reports every request and release, also inside its kernels, but not the scratch
    space of other libraries.
    """
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        run()
    events = profiler.profiler.kineto_results.events()
    memory = [event for event in events if event.name() == "[memory]"]
    now = highest = 0
    for event in sorted(memory, key=lambda event: event.start_ns()):
        now += event.nbytes()
        highest = max(highest, now)
    return highest
