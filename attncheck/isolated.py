"""Runs a function in a process of its own, so that nothing can end ours.

Where there is no ``fork`` (Windows), and in a notebook, whose kernel has sockets and
threads that a child must not share, it runs in this process.
"""

import os
import pickle
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable
from typing import NoReturn, TypeVar

T = TypeVar("T")
LENGTH = 8  # bytes that say how long the result is


class EndedError(Exception):
    """The process ended, or had to be ended, before there was a result."""


def isolated(function: Callable[[], T], seconds: float) -> T:
    """Return ``function()``, computed in a child of this process.

    Args:
        function: its result must be picklable.
        seconds: after this time the child is ended.

    Raises:
        EndedError: the child ended without a result; the message says how.
    """
    if not hasattr(os, "fork") or _in_a_kernel():
        return function()
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads: the child starts its own
        child = os.fork()
    if child == 0:
        os.close(reading)
        _serve(function, writing)
    os.close(writing)
    try:
        text, in_time = _received(reading, time.monotonic() + seconds)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    finally:
        os.close(reading)
    if not in_time:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not in_time:
        raise EndedError(
            f"there was no result after {seconds:g} s, so the process was ended. Code "
            f"that holds Python's lock, or many slow calls, can cause that. "
            f"--time-limit sets how many seconds a call may take"
        )
    try:
        result: T = pickle.loads(text)
    except Exception:
        raise EndedError(_how(status)) from None
    return result


def _serve(function: Callable[[], object], writing: int) -> NoReturn:
    """Compute in the child, send the result, end without any cleaning up."""
    end = os._exit
    try:
        _let_nothing_out()
        import torch

        # The child doesn't inherit the threads of the parent's pool.
        torch.set_num_threads(1)
        text = pickle.dumps(function())
        with os.fdopen(writing, "wb") as out:
            out.write(len(text).to_bytes(LENGTH, "big") + text)
    finally:
        end(0)


def _let_nothing_out() -> None:
    """Send what is written to the descriptors 1 and 2 nowhere: the report is ours."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _received(reading: int, deadline: float) -> tuple[bytes, bool]:
    """Return (what the child sent, whether that was all in time).

    The pipe may stay open after that: what the child has started holds it, too.
    """
    text = b""
    while (left := deadline - time.monotonic()) > 0:
        ready, _, _ = select.select([reading], [], [], left)
        if not ready:
            break
        part = os.read(reading, select.PIPE_BUF)
        text += part
        length = int.from_bytes(text[:LENGTH], "big")
        if not part or len(text) == LENGTH + length:
            return text[LENGTH:], True
    return text, False


def _how(status: int) -> str:
    advice = "Code that ends or crashes its own process can't be tested. Look for"
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        what = f"its process was ended by the signal {name} before there was a report"
        return f"{what}. {advice} os.kill, os.abort or native code"
    code = os.WEXITSTATUS(status)
    what = f"its process ended with status {code} before there was a report"
    return f"{what}. {advice} os._exit or os.exec…"


def _in_a_kernel() -> bool:
    # Other programs import ipykernel, too: only its shell has a kernel.
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None) is not None
