"""Install into the environment that runs this: python -m tools.install site|all.

The site needs no PyTorch. With NEWEST=1, nothing else is pinned: it decides digits.
"""

import os
import re
import subprocess
import sys
import tomllib

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
UV = [sys.executable, "-m", "uv", "pip", "install", "--system-certs", "--python"]
PINS = ["-c", "constraints.txt"]


def install(words):
    """Install with uv, much the faster, or else with pip."""
    known = subprocess.run([*PIP, "config", "list"], capture_output=True).stdout
    if not re.search(rb"[.](index-url|no-index)=", known):  # uv doesn't read these
        by_uv = [*PIP, "install", *PINS, "uv"], [*UV, sys.executable, *words]
        if not any(subprocess.run(c, capture_output=True).returncode for c in by_uv):
            return
    print("Installing with pip, which can take several minutes.", flush=True)
    install_by_pip(words)


def install_by_pip(words):
    """Install with pip, whose warnings are shown only where it fails."""
    done = subprocess.run([*PIP, "install", "-q", *words], capture_output=True)
    if done.returncode:
        sys.exit(done.stderr.decode(errors="replace"))


def main():
    with open("pyproject.toml", "rb") as file:
        words = tomllib.load(file)["project"]["optional-dependencies"]["book"]
    if sys.argv[1:] == ["all"]:  # PyTorch by pip: its settings may name the CPU build
        words = ["-e", ".[test]"]
        install_by_pip([*PINS, "torch"])
    elif sys.argv[1:] != ["site"]:
        sys.exit(__doc__)
    install(words if os.environ.get("NEWEST") else [*PINS, *words])


if __name__ == "__main__":
    main()
