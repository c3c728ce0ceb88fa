"""Install what the site needs, or everything, into the environment that runs this.

    .venv/bin/python -m tools.install site    what renders the pages: no PyTorch
    .venv/bin/python -m tools.install all     what executes and tests them, too

The site's packages are those of the extra "book" in pyproject.toml. uv installs them,
many times faster than pip; where it is not to be had, or fails, pip does the same.
Every version is that of constraints.txt. With NEWEST=1 in the environment, only
PyTorch's is: it decides the printed digits.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PINNED = ["-c", "constraints.txt"]
PIP = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
UV = [str(Path(sys.executable).with_name("uv")), "pip", "install", "-q"]
UV += ["--python", sys.executable]


def pins(what, newest):
    """Give the arguments that fix the versions: all of them, or PyTorch's alone."""
    if not newest:
        return PINNED
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    torch = [line for line in text.splitlines() if line.startswith("torch==")]
    return torch if what == "all" else []


def wanted(what):
    """Give the requirements of each step, as arguments of an installer."""
    if what == "site":
        text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        return tomllib.loads(text)["project"]["optional-dependencies"]["book"]
    return ["-e", ".[test]"]


def install(requirements, pinned):
    """Install with uv, and with pip where that does not go."""
    if not _runs([*PIP, *pinned, "uv"]) or not _runs([*UV, *pinned, *requirements]):
        print("uv isn't installed: using pip, which takes longer.")
        subprocess.run([*PIP, *pinned, *requirements], cwd=ROOT, check=True)


def _runs(command):
    try:
        return subprocess.run(command, cwd=ROOT).returncode == 0
    except OSError:
        return False


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in ("site", "all"):
        sys.exit(__doc__)
    what = sys.argv[1]
    if what == "all":
        # By pip, since it is pip's settings that name the index of the CPU builds.
        subprocess.run([*PIP, *PINNED, "torch"], cwd=ROOT, check=True)
    install(wanted(what), pins(what, os.environ.get("NEWEST")))


if __name__ == "__main__":
    main()
