"""Starts a submission's kernel apart from the rest of the machine.

    python sandbox.py FOLDER COMMAND…

On Linux that lets users make namespaces, the command has no network, sees no other
process, and leaves none behind. Elsewhere it runs with Python's sockets blocked, which
C code can get around. Nothing here hides files: code can read and change what your
account can. If you don't trust it, run the grader in a container.

Needs the standard library only, since each submission starts it.
"""

import contextlib
import ctypes
import os
import signal
import sys

CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
PR_SET_PDEATHSIG = 1
KEPT = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
NETWORK = "SUBMISSION_NETWORK"  # tells the kernel whether it has to block sockets
VERDICT = "application/vnd.coding-attention.verdict+json"  # what a check said


def start(folder, command):
    """Run a command in a folder, apart; end as it ends.

    A signal that ends the command becomes the exit status 128 + its number.
    """
    network = "none" if leave_namespaces() else "blocked"
    child = os.fork()
    if child == 0:  # in new namespaces, its end is the end of all in them
        _end_with_parent()
        os.chdir(folder)
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        settings = kept | {"HOME": folder, "MPLBACKEND": "Agg", NETWORK: network}
        os.execve(command[0], command, settings)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    sys.exit(128 - status if status < 0 else status)


def leave_namespaces():
    """Leave the network and the other processes behind; return whether that worked."""
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


def _end_with_parent():
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    start(sys.argv[1], sys.argv[2:])
