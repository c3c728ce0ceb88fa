"""Limits of time and memory around code that somebody else wrote.

The time limit is kept by a second thread, so that it works in notebooks, outside
the main thread, and on Windows. A thread cannot be killed: one that loops in Python
is asked to stop, and one that waits inside a C function is left behind.
"""

import contextlib
import ctypes
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")
# On a busy machine, a call may get a quarter of a processor, but hardly less.
PATIENCE, IDLE = 4, 0.02


class TimedOutError(Exception):
    """The call did not return in time."""


class Worker:
    """A thread that runs one function after the other, each within a time limit.

    One thread for all calls, since PyTorch makes a pool of threads for each thread
    that computes.

    Args:
        seconds: how long one call may take; on a busy machine, of a processor.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.spent = 0.0  # seconds in all calls so far, of a processor
        self._stuck = False
        self._jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def call(self, function: Callable[[], T]) -> T:
        """Run ``function()`` and return its result.

        Raises:
            TimedOutError: no result in time. The worker is of no use afterwards.
            BaseException: whatever the function raised.
        """
        outcome: queue.SimpleQueue[Any] = queue.SimpleQueue()
        result: T
        started, self._busy = time.monotonic(), 0.0  # seconds in the thread
        self._jobs.put((function, outcome))
        try:
            result, error = self._outcome(outcome)
        except queue.Empty:
            self._interrupt()
            raise TimedOutError from None
        finally:
            # On a busy machine, most of the clock's seconds go to others.
            self.spent += max((time.monotonic() - started) / 3, self._busy)
        if error is not None:
            raise error
        return result

    def _outcome(self, outcome: "queue.SimpleQueue[Any]") -> Any:
        """Wait for a call, longer where other processes kept it from computing."""
        begun = last = self._computed()
        for _ in range(PATIENCE - 1):
            with contextlib.suppress(queue.Empty):
                return outcome.get(timeout=self.seconds)
            now = self._computed()
            if now - last < IDLE * self.seconds or now - begun > 0.9 * self.seconds:
                raise queue.Empty
            last = now
        return outcome.get(timeout=self.seconds)

    def _computed(self) -> float:
        """Return the thread's seconds of a processor, where the system counts them."""
        if not hasattr(time, "pthread_getcpuclockid"):
            return 0.0
        return time.clock_gettime(time.pthread_getcpuclockid(self._thread.ident or 0))

    def close(self) -> None:
        """End the thread, and wait for that unless a call in it goes on for ever.

        A thread that still ends while Python shuts down may abort the process.
        """
        self._jobs.put(None)
        if not self._stuck:
            self._thread.join(timeout=self.seconds)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            function, outcome = job
            started = time.thread_time()
            try:
                result = function()
                self._busy = time.thread_time() - started
                outcome.put((result, None))
            except KeyboardInterrupt as error:  # no keyboard reaches this thread
                raised = RuntimeError("KeyboardInterrupt, raised by the class itself")
                outcome.put((None, raised.with_traceback(error.__traceback__)))
            # A class may even call sys.exit(): that must not end the thread.
            except BaseException as error:
                outcome.put((None, error))

    def _interrupt(self) -> None:
        """Raise SystemExit in the thread, as soon as it runs Python code again."""
        self._stuck = True
        self.close()
        if sys.implementation.name == "cpython":
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._thread.ident or 0), ctypes.py_object(SystemExit)
            )


@contextlib.contextmanager
def memory(extra: int = 4 * 2**30) -> Iterator[None]:
    """Let the process grow by at most ``extra`` bytes, where the system can do that.

    On Linux an allocation beyond it then fails with an error that can be reported,
    where otherwise the system might kill the process. Elsewhere it does nothing.
    """
    try:
        import resource

        with open("/proc/self/statm") as statm:
            in_use = int(statm.read().split()[0]) * resource.getpagesize()
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    except (ImportError, OSError):
        yield
        return
    limit = in_use + extra
    limit = limit if soft == resource.RLIM_INFINITY else min(limit, soft)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
