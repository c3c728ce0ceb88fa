"""Describe the machine that the numbers come from, and measure what it can reach."""

import mmap
import os
import platform
import statistics
from pathlib import Path

import torch
from timing import clock


def describe():
    """Give what a reader needs to compare with another machine."""
    return {
        "processor": _processor(),
        "virtual": _is_virtual(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "load_average_before": os.getloadavg()[0]
        if hasattr(os, "getloadavg")
        else None,
        "clock": "processor" if torch.get_num_threads() == 1 else "wall",
    }


def _processor():
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":")[1].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.processor() or platform.machine()


def _is_virtual():
    info = Path("/proc/cpuinfo")
    return "hypervisor" in info.read_text() if info.exists() else None


def peaks(rounds=15):
    """Measure what this machine can do at best.

    Returns:
        FLOPs a second of a large matrix product, bytes a second of a copy that no
        cache can hold (read and written), and seconds to get one fresh page.
    """
    n = 2048
    a, b, c = torch.randn(3, n, n)
    product = _least(lambda: torch.matmul(a, b, out=c), rounds)
    source = torch.ones(2**26)  # 256 MiB
    target = torch.empty_like(source)
    copy = _least(lambda: target.copy_(source), rounds)
    return {
        "flops_per_s": 2 * n**3 / product,
        "bytes_per_s": 2 * source.nbytes / copy,
        "page_s": _page(rounds) if hasattr(mmap, "MAP_ANONYMOUS") else None,
    }


def _page(rounds, pages=4096):
    # Write one byte into each page, once while they are fresh, once when they are not.
    fresh, again = [], []
    for _ in range(rounds):
        with mmap.mmap(-1, pages * mmap.PAGESIZE) as memory:
            memory.madvise(mmap.MADV_NOHUGEPAGE)
            for seconds in (fresh, again):
                start = clock()
                for at in range(0, len(memory), mmap.PAGESIZE):
                    memory[at] = 1
                seconds.append(clock() - start)
    return (statistics.median(fresh) - statistics.median(again)) / pages


def _least(run, rounds):
    run()
    seconds = []
    for _ in range(rounds):
        start = clock()
        run()
        seconds.append(clock() - start)
    return min(seconds)  # the best: what it can do at most
