"""The field study: public classes that lie in local clones, known while we worked.

``python -m experiments.field study CLONES`` with CLONES a folder that holds one clone
for each repository, named ``owner+name``. Each file is taken at the commit of
``study.json``, so a newer clone gives the same results. Nobody's code is part of this
repository: the list has addresses, hashes, and how to build and call each class.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from attncheck import check
from attncheck.build import UnusableError, first_line
from attncheck.config import Config
from attncheck.formats import as_dictionary
from attncheck.isolated import EndedError, isolated
from attncheck.loading import load, unfinished
from attncheck.surroundings import quiet
from experiments.field.blind import HERE, short, store

LIST = HERE / "sets" / "study.json"
RESULTS = HERE / "results" / "study.json"
SECONDS = 240
D_HEAD = 4


def angles(x):
    """Return the angles (t, d_head / 2) of rotary positions."""
    steps = torch.arange(0, D_HEAD, 2, dtype=torch.float32)
    places = torch.arange(x.shape[1], dtype=torch.float32)
    return (places[:, None] * 10000.0 ** (-steps / D_HEAD)).to(x.device)


def halves(x):
    """Return cosines and sines (b, t, d_head), for pairs of halves."""
    both = torch.cat([angles(x), angles(x)], dim=-1).expand(len(x), -1, -1)
    return both.cos().to(x.dtype), both.sin().to(x.dtype)


TABLES = {
    "complex": lambda x: torch.polar(torch.ones_like(angles(x)), angles(x)),
    "pairs": lambda x: (angles(x).cos().to(x.dtype), angles(x).sin().to(x.dtype)),
    "halves": halves,
}


def run(clones, only=""):
    """Check all implementations whose clones are there, store what came out."""
    entries = json.loads(LIST.read_text(encoding="utf-8"))
    kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for entry in entries:
        if only in entry["repository"]:
            kept[key(entry)] = checked(entry, clones)
            print(key(entry), kept[key(entry)], flush=True)
            store(RESULTS, {key(e): kept[key(e)] for e in entries if key(e) in kept})


def key(entry):
    """Return what tells an implementation from all others."""
    return f"{entry['repository']}/{entry['path']}:{entry['class']}"


def checked(entry, clones):
    """Return the result for one implementation."""
    if "skip" in entry:
        return {"missing": entry["skip"]}
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
            return isolated(lambda: report_on(Path(folder), entry), SECONDS)
        except EndedError as error:
            return {"missing": str(error)}


def report_on(folder, entry):
    """Return what the checker says of one implementation, as a dictionary."""
    try:
        return _report(folder, entry)
    except UnusableError as error:
        text = str(error)
    except Exception as error:
        text = f"{type(error).__name__}: {first_line(error)}"
    return {"missing": text.replace(str(folder), "")}


def _report(folder, entry):
    file = folder / entry["path"]
    sys.path[:0] = [str(folder), str(file.parent)]
    names = {"N": Config, "T": TABLES, "torch": torch}
    notes = []
    with quiet():
        cls = load(f"{file}:{entry['class']}", time_limit=60, notes=notes)
        vars(sys.modules[cls.__module__]).update(entry.get("names", {}))
        torch.manual_seed(0)
        given = eval(entry["make"], names | {"C": cls})
    options = dict(entry.get("options", {}))
    if "call" in entry:
        options["call"] = eval(entry["call"], names)
    report = check(given, time_limit=60, **options)
    unfinished(report, notes)
    if not report.usable:
        return {"missing": report.problem.replace(str(folder), "")}
    return short(as_dictionary(report))
