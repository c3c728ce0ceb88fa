"""Run the commands of README, docs/running.md and CONTRIBUTING as they are written.

    python -m tools.commands           every block, in the order in which they stand
    python -m tools.commands --list    the blocks, and what is said of those not run

In a fresh copy of what git has, with a fresh environment, one block after the other, as
a reader would. A block that cannot run there says so in a comment below it:
`<!-- not run: why -->`. Of a block that shows what a command prints, the lines behind
a $ run.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXTS = ("README.md", "docs/running.md", "CONTRIBUTING.md")
BLOCK = re.compile(
    r"^```(?:console|bash|sh)\n(.*?)^```\n(?:\s*<!-- not run: (.*?) -->)?", re.S | re.M
)


@dataclass
class Block:
    """Commands as a text has them, and why they are not run, if so."""

    place: str
    script: str
    reason: str


def blocks(name, text):
    """Give the blocks of commands of a text, in their order."""
    found = []
    for match in BLOCK.finditer(text):
        lines = match[1].splitlines()
        shown = [line[2:] for line in lines if line.startswith("$ ")]
        place = f"{name}:{text.count(chr(10), 0, match.start()) + 1}"
        found.append(Block(place, "\n".join(shown or lines), match[2] or ""))
    return found


def fresh_copy(target):
    """Copy what git has, changes included, and make it a repository of its own."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    for name in filter(None, listed):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)
    for command in ("init -q", "add -A"):
        subprocess.run(["git", *command.split()], cwd=target, check=True)


def environment(folder):
    """Give the variables of a shell in which a new environment is active.

    The versions are the pinned ones: PyTorch's newest build may bring gigabytes.
    """
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    left_out = ("VIRTUAL_ENV", "PYTHON", "MAKE", "MFLAGS", "PYTEST")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(left_out)}
    path = f"{folder / 'bin'}{os.pathsep}{kept['PATH']}"
    constraints = str(ROOT / "constraints.txt")
    return kept | {"PATH": path, "PIP_CONSTRAINT": constraints, "CI": "true"}


def run(found, folder):
    """Run the blocks in a folder; give those that failed."""
    variables, failed = environment(folder / "environment"), []
    for block in found:
        if block.reason:
            print(f"-- {block.place}: not run, {block.reason}", flush=True)
            continue
        print(f"== {block.place}\n{block.script}", flush=True)
        command = ["bash", "-euo", "pipefail", "-c", block.script]
        done = subprocess.run(
            command, cwd=folder / "copy", env=variables, stdin=subprocess.DEVNULL
        )
        if done.returncode:
            failed.append(block)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="only list what would run")
    options = parser.parse_args()
    found = [
        block
        for name in TEXTS
        for block in blocks(name, (ROOT / name).read_text(encoding="utf-8"))
    ]
    if options.list:
        for block in found:
            print(f"{block.place}: {block.reason or 'runs'}\n{block.script}\n")
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        copy.mkdir()
        fresh_copy(copy)
        failed = run(found, Path(folder))
    for block in failed:
        print(f"FAILED as written: {block.place}")
    ran = sum(not block.reason for block in found)
    print(f"{ran - len(failed)} passed, {len(failed)} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
