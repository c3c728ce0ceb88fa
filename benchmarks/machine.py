"""Describe the machine that the numbers come from."""

import os
import platform
from pathlib import Path

import torch


def describe():
    """Give what a reader needs to compare with another machine."""
    described = {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "caches": _caches(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "load_average_before": os.getloadavg()[0]
        if hasattr(os, "getloadavg")
        else None,
    }
    if torch.cuda.is_available():
        described["gpu"] = torch.cuda.get_device_name()
    return described


def _processor():
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":")[1].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.processor() or platform.machine()


def _caches():
    """Sizes of the first core's data caches, such as {"L2": "2048K"} (Linux)."""
    caches = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        if (index / "type").read_text().strip() != "Instruction":
            level = (index / "level").read_text().strip()
            caches[f"L{level}"] = (index / "size").read_text().strip()
    return caches
