"""Start a small program once for each rank on this machine; print what they say."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

# What `torchrun` and the environment would tell each process. Ranks meet in a file and
# talk over the loopback device, so no port is open to others.
HEADER = """\
import os, torch, torch.distributed as dist
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.set_num_threads(1)
meet = "file://" + os.environ["MEET"]
dist.init_process_group("gloo", meet, rank=rank, world_size=ranks)
dist.barrier()  # nobody leaves before all have connected
"""
FOOTER = "\ndist.destroy_process_group()\n"
LOOPBACK = {"linux": "lo", "darwin": "lo0"}


def launch(program, ranks=2, seconds=600):
    """Run ``program`` as so many processes; print their lines, rank 0 first.

    Args:
        program: Python code, which finds ``torch``, ``dist``, ``rank`` and ``ranks``
            and a process group that is ready.
        ranks: how many processes.
        seconds: after these, all of them are stopped.

    Raises:
        RuntimeError: a process failed; the message ends with what it wrote.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "program.py")
        file.write_text(HEADER + program + FOOTER, encoding="utf-8")
        started = [_start(file, rank, ranks) for rank in range(ranks)]
        try:
            ended = [process.communicate(timeout=seconds) for process in started]
        finally:
            for process in started:
                process.kill()
    failed = [said for p, (_, said) in zip(started, ended, strict=True) if p.returncode]
    if failed:
        raise RuntimeError(
            f"{len(failed)} of {ranks} ranks failed:\n{failed[0][-2000:]}"
        )
    print("".join(output for output, _ in ended), end="")


def _start(file, rank, ranks):
    environment = os.environ | {
        "RANK": str(rank),
        "WORLD_SIZE": str(ranks),
        "MEET": str(file.with_name("meet")),
    }
    if sys.platform in LOOPBACK:
        environment["GLOO_SOCKET_IFNAME"] = LOOPBACK[sys.platform]
    return subprocess.Popen(
        [sys.executable, str(file)], env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
