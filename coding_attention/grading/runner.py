"""Runs a submission in a Jupyter kernel of its own, within limits."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import nbformat
from jupyter_client import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError

from coding_attention.grading.sandbox import VERDICT

STARTING = 120  # seconds in which a kernel has to be there, on a busy machine
SANDBOX = Path(__file__).with_name("sandbox.py")
BEGIN = "from coding_attention.grading import inside\ninside.begin({!r}, {!r})"


@dataclass(frozen=True)
class Limits:
    """What one notebook may use.

    Attributes:
        processor: seconds of processor time, which do not depend on what else the
            machine does.
        seconds: in all, for a notebook that sleeps or waits.
        memory: GiB beyond what its kernel has before the first cell.
        files: megabytes of the largest file that it may write.
    """

    processor: float = 60.0
    seconds: float = 180.0
    memory: float = 2.0
    files: float = 50.0


@dataclass
class Run:
    """What became of a submission.

    Attributes:
        verdicts: of its checks, in order, as inside.py reports them.
        raised: pairs of a cell's number and what it raised.
        network: "none", or "blocked" where only Python's sockets were.
        ended: how it was ended, or nothing.
        cell: the number of the last cell that ran.
        seconds: how long it took.
    """

    verdicts: list = field(default_factory=list)
    raised: list = field(default_factory=list)
    network: str = ""
    ended: str = ""
    cell: int = 0
    seconds: float = 0.0


def run(cells, variant, limits):
    """Execute a submission's cells and collect what its checks said.

    Args:
        cells: the sources of its code cells.
        variant: whose sizes the exercises have, "COURSE/STUDENT", or nothing.
        limits: a :class:`Limits`.

    Returns:
        :class:`Run`.
    """
    sources = [BEGIN.format(variant, asdict(limits)), *cells]
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in sources]
    )
    started, done = time.monotonic(), Run()
    with tempfile.TemporaryDirectory() as folder:
        # A loop of its own, since several run at a time in threads.
        asyncio.run(_execute(notebook, Path(folder), limits, done))
    done.seconds = time.monotonic() - started
    for number, cell in enumerate(notebook.cells):
        for output in cell.outputs:
            _read_output(output, number, done)
    return done


async def _execute(notebook, folder, limits, done):
    """Run the cells; note in ``done`` how far they came and what ended them."""
    deadline = time.monotonic() + STARTING
    manager = _prepare_kernel(folder)
    client = NotebookClient(
        notebook,
        km=manager,
        allow_errors=True,
        startup_timeout=STARTING,
        timeout_func=lambda _: max(1, round(deadline - time.monotonic())),
        shutdown_kernel="immediate",
        record_timing=False,
        store_widget_state=False,
    )
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        async with client.async_setup_kernel(cleanup_kc=True, **quiet):
            try:
                for number, cell in enumerate(notebook.cells):
                    done.cell = number
                    await client.async_execute_cell(cell, number)
                    if number == 0:
                        deadline = time.monotonic() + limits.seconds
            except CellTimeoutError:
                done.ended = f"it did not finish within {limits.seconds:g} s"
            except DeadKernelError:
                done.ended = _describe_end(manager.provisioner.process.wait(), limits)
            finally:
                _end_group(manager.provisioner.pid)
    except RuntimeError as error:
        done.ended = f"its kernel did not start: {error}"


def _prepare_kernel(folder):
    """Return the manager of a kernel that sandbox.py starts, over sockets of files."""
    work = folder / "work"
    work.mkdir()
    manager = AsyncKernelManager(
        kernel_name="python3",
        transport="ipc",  # reaches into a namespace without a network
        ip=str(folder / "kernel"),
        connection_file=str(folder / "kernel.json"),
    )
    apart = [sys.executable, str(SANDBOX), str(work)]
    kernel = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager.kernel_spec.argv = [*apart, *kernel, "--HistoryManager.enabled=False"]
    return manager


def _end_group(pid):
    """End what the submission has started, where no namespace does that."""
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


def _describe_end(status, limits):
    if status == 128 + signal.SIGXCPU:
        return f"it used more than {limits.processor:g} s of processor time"
    with contextlib.suppress(ValueError):
        name = signal.Signals(status - 128).name
        return f"its process was ended by the signal {name}"
    return f"its process ended with status {status}"


def _read_output(output, number, done):
    event = output.get("data", {}).get(VERDICT)
    if isinstance(event, dict):
        done.network = event.get("network", done.network)
        if "exercise" in event:
            done.verdicts.append(event)
    if output.output_type == "error":
        first = next(iter(output.evalue.splitlines()), "")
        done.raised.append((number, f"{output.ename}: {first}"))
