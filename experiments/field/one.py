"""Checks one implementation of the field study."""

import sys

import torch

from attncheck import check
from attncheck.build import UnusableError, first_line
from attncheck.config import Config
from attncheck.loading import load, unfinished
from attncheck.surroundings import quiet

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


def report_on(folder, entry):
    """Return what the checker says of one implementation, as a dictionary."""
    try:
        return _report(folder, entry)
    except UnusableError as error:
        text = str(error).replace(str(folder), "")
    except Exception as error:
        text = f"{type(error).__name__}: {first_line(error)}"
    return {"headline": f"not loaded: {text}", "status": 2}


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
    return {
        "headline": report.headline(),
        "status": report.exit_status,
        "findings": [f"{f.code} {f.mistake} [{f.severity}]" for f in report.findings],
        "seen": [f.seen for f in report.findings],
        "not_compared": report.not_compared,
        "problem": report.problem.replace(str(folder), ""),
        "notes": [note.replace(str(folder), "") for note in [*report.notes, *notes]],
    }
