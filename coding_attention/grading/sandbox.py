"""Runs somebody else's code in a process of its own, within limits.

What holds where:

- Time (of the processor, and in all), memory and the size of files: Linux and macOS.
- No network, no sight of other processes, nothing left running: Linux that lets users
  make namespaces. Elsewhere Python's sockets are blocked, which C code can go around.
- Nothing here hides files: code can read and change what your account can. Whoever
  does not trust the code runs the grader in a container.

There is no ``fork`` on Windows; there the grader runs under WSL.
"""

import contextlib
import ctypes
import faulthandler
import os
import signal
import socket
import sys
from dataclasses import dataclass

from attncheck.isolated import EndedError, isolated

CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
PR_SET_PDEATHSIG = 1
SPARE = 5.0  # seconds by which an outer process outlives the one inside
KEPT = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH")


@dataclass(frozen=True)
class Limits:
    """What one notebook may use.

    Attributes:
        processor: seconds of processor time, which do not depend on what else the
            machine does.
        seconds: in all, for a notebook that sleeps or waits.
        memory: GiB beyond what the grader itself has.
        files: megabytes of the largest file that it may write.
    """

    processor: float = 60.0
    seconds: float = 180.0
    memory: float = 2.0
    files: float = 50.0


def can_fork():
    """Whether this system has processes of the kind that the grader needs."""
    return hasattr(os, "fork")


def run(function, limits, folder):
    """Run ``function(network)`` in a process of its own and in ``folder``.

    Args:
        function: gets "none", where the system has cut the network off, or "blocked",
            where only Python's sockets are.
        limits: a :class:`Limits`.
        folder: a folder that it may write to; the caller removes it.

    Returns:
        Nothing, or how the process was ended before the function returned.
    """

    def inside(network):
        _shut(limits, folder, network)
        function(network)

    def first():  # inside the new namespaces: its end is the end of all in them
        _end_with_the_parent()
        return _ended(lambda: inside("none"), limits.seconds)

    def outside():
        os.setsid()
        if _leave_namespaces():
            return _ended(first, limits.seconds + SPARE)
        try:
            return _ended(lambda: inside("blocked"), limits.seconds)
        finally:
            _end_the_group()

    ended = _ended(outside, limits.seconds + 2 * SPARE)
    return _in_words(ended, limits)


def _ended(function, seconds):
    """Return what the function returned, or as text how its process was ended."""
    try:
        return isolated(function, seconds)
    except EndedError as error:
        return str(error)


def _in_words(ended, limits):
    if not ended:
        return ""
    if "SIGXCPU" in ended:
        return f"it used more than {limits.processor:g} s of processor time"
    if "no result after" in ended:
        return f"it did not finish within {limits.seconds:g} s"
    return ended.partition(" before there was a report")[0]


def _leave_namespaces():
    """Leave the network and the other processes behind; say whether that worked."""
    user, group = os.getuid(), os.getgid()
    try:
        libc = ctypes.CDLL(None)
        if libc.unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET):
            return False
    except (OSError, AttributeError):
        return False
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with contextlib.suppress(OSError), open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    return True


def _end_with_the_parent():
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_the_group():
    """End what the code has started, this process excepted."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.killpg(0, signal.SIGTERM)


def _shut(limits, folder, network):
    """Close what the code does not need: terminal, settings, memory, network."""
    faulthandler.disable()  # it would tell a crash to the terminal
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # the others lead nowhere already
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    os.environ.clear()
    os.environ.update(kept, HOME=str(folder), MPLBACKEND="Agg")
    os.chdir(folder)
    _limit(limits)
    if network == "blocked":
        _block_sockets()


def _limit(limits):
    import resource

    seconds = max(1, round(limits.processor))
    _set(resource.RLIMIT_CPU, seconds, seconds + 5)
    size = int(limits.files * 1e6)
    _set(resource.RLIMIT_FSIZE, size, size)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # an OSError instead
    _set(resource.RLIMIT_CORE, 0, 0)
    with contextlib.suppress(OSError), open("/proc/self/statm") as statm:
        in_use = int(statm.read().split()[0]) * resource.getpagesize()
        allowed = in_use + int(limits.memory * 2**30)
        _set(resource.RLIMIT_AS, allowed, allowed)


def _set(kind, soft, hard):
    import resource

    highest = resource.getrlimit(kind)[1]
    if highest != resource.RLIM_INFINITY:
        soft, hard = min(soft, highest), min(hard, highest)
    resource.setrlimit(kind, (soft, hard))


def _block_sockets():
    def refuse(*arguments, **named):
        raise OSError("there is no network while a submission is graded")

    for name in ("connect", "connect_ex", "sendto", "bind"):
        # The class of C cannot be changed, so Python's own gets the methods.
        setattr(socket.socket, name, refuse)
    socket.create_connection = socket.getaddrinfo = refuse
