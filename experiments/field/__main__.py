"""Runs the checker on public implementations that lie in local clones.

``python -m experiments.field CLONES`` with CLONES a folder that holds one clone for
each repository, named ``owner+name`` (``git clone`` where the network allows it).
Each file is taken at the commit of ``implementations.json``, so a newer clone gives
the same results. Each class runs in a process of its own, with a limit of time.

Nobody's code is part of this repository: the list holds names, commits, hashes, and
how to build and call each class.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

from attncheck.isolated import EndedError, isolated
from experiments.field.one import report_on

HERE = Path(__file__).parent
LIST = HERE / "implementations.json"
RESULTS = HERE / "results.json"
SECONDS = 240


def main():
    """Check all implementations whose clones are there, store what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clones", type=Path)
    parser.add_argument("--only", default="", help="part of a repository's name")
    options = parser.parse_args()
    entries = json.loads(LIST.read_text(encoding="utf-8"))
    kept = {}
    if RESULTS.exists():
        kept = {key(r): r for r in json.loads(RESULTS.read_text(encoding="utf-8"))}
    for entry in entries:
        if options.only in entry["repository"]:
            result = checked(entry, options.clones)
            kept[key(entry)] = result
            print(key(entry), result["headline"], flush=True)
            store(entries, kept)


def store(entries, kept):
    """Write the results that are there, in the order of the list."""
    results = [kept[key(entry)] for entry in entries if key(entry) in kept]
    text = json.dumps(results, indent=1, ensure_ascii=False)
    RESULTS.write_text(text + "\n", encoding="utf-8")


def key(entry):
    """Return what tells an implementation from all others."""
    return f"{entry['repository']}/{entry['path']}:{entry['class']}"


def checked(entry, clones):
    """Return the result for one implementation."""
    result = {name: entry[name] for name in ("repository", "path", "class")}
    if "skip" in entry:
        return result | {"headline": f"left out: {entry['skip']}", "status": None}
    clone = clones / entry["repository"].replace("/", "+") / "repo"
    git = clone / ".git" if (clone / ".git").is_dir() else clone
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "-C", git, "archive", entry["commit"], "--", "*.py"],
            capture_output=True,
            check=True,
        )
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        try:
            return result | isolated(lambda: report_on(Path(folder), entry), SECONDS)
        except EndedError as error:
            return result | {"headline": str(error), "status": 2}


if __name__ == "__main__":
    main()
