"""Runs the checker on a set that was written without knowing it.

``python -m experiments.field.blind FOLDER RESULTS.json`` with FOLDER a set: sources
and a ``manifest.json`` that says how to build and call each class and what it does
(causal, rotary positions, a window …), and, for afterwards, what is wrong in it. What
is wrong is not read here: whoever wrote the set compares it with the results.

Each class is checked twice: as it is, and with what it does declared. The sources are
other people's and no part of this repository: what is stored are names and verdicts.
"""

import argparse
import json
import re
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import torch

from attncheck import check
from attncheck.build import UnusableError, first_line
from attncheck.isolated import EndedError, isolated
from attncheck.loading import load
from attncheck.surroundings import quiet

SECONDS = 100.0
T_MEMORY = 6


def main() -> None:
    """Check every class of a set; store what was said of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--only", default="", help="part of a file's name")
    options = parser.parse_args()
    text = (options.folder / "manifest.json").read_text(encoding="utf-8")
    results = {}
    for entry in json.loads(text):
        name = f"{entry['file']}:{entry['class']}"
        if options.only not in name:
            continue
        results[name] = {
            how: verdict(options.folder.resolve(), entry, how == "declared")
            for how in ("as it is", "declared")
        }
        told = [results[name][how].get("status") for how in results[name]]
        print(name, *told, flush=True)
    options.results.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def verdict(folder: Path, entry: dict, declared: bool) -> dict:
    """Return what the checker says of one class, as a dictionary."""
    started = time.monotonic()
    try:
        result = isolated(lambda: _checked(folder, entry, declared), SECONDS)
    except EndedError as error:
        result = {"status": 2, "problem": str(error), "findings": [], "compared": False}
    return result | {"seconds": round(time.monotonic() - started, 1)}


def _checked(folder: Path, entry: dict, declared: bool) -> dict:
    try:
        return _report(folder, entry, declared)
    except UnusableError as error:
        problem = str(error)
    except Exception as error:
        problem = f"{type(error).__name__}: {first_line(error)}"
    return {"status": 2, "problem": problem, "findings": [], "compared": False}


def _report(folder: Path, entry: dict, declared: bool) -> dict:
    with quiet():
        given, arguments = _given(folder, entry)
    arguments["causal"] = bool(entry["causal"])
    call = _call(entry)
    if call is not None:
        arguments["call"] = call
    if declared:
        arguments |= options(entry["features"])
    report = check(given, time_limit=20.0, **arguments)
    return {
        "status": report.exit_status,
        "problem": report.problem,
        "findings": [f.mistake for f in report.findings if f.severity == "error"],
        "warnings": [f.mistake for f in report.findings if f.severity != "error"],
        "stages": [getattr(f, "stage", "") for f in report.findings],
        "seen": [f.seen for f in report.findings],
        "compared": report.usable and not report.not_compared,
        "why": report.not_compared,
    }


def _given(folder: Path, entry: dict) -> tuple[object, dict]:
    """Return the class with its arguments, or an instance."""
    how = entry.get("how")
    if how is None:
        cls = load(f"{folder / entry['file']}:{entry['class']}", 60.0)
        if entry.get("config_class"):
            names = vars(sys.modules[cls.__module__])
            config = names[entry["config_class"]](**(entry.get("config") or {}))
            return cls(config, **(entry.get("build") or {})), {}
        return cls, dict(entry["build"])
    sys.path[:0] = [str(folder / one) for one in how["sys_path"]]
    if how["module"]:
        cls = load(f"{how['module']}:{entry['class']}", 60.0)
    else:
        cls = load(f"{folder / entry['file']}:{entry['class']}", 60.0)
    names = dict(vars(sys.modules[cls.__module__])) | {
        "C": cls, "cls": cls, entry["class"]: cls, "torch": torch,
        "nn": torch.nn, "SimpleNamespace": SimpleNamespace, "NS": SimpleNamespace,
    }  # fmt: skip
    torch.manual_seed(0)
    exec(how["setup"], names)
    names["m"] = module = eval(how["construct"], names)
    if how["initialise"]:
        exec(how["initialise"], names)
    return module, {"d_in": _width(entry)}


def _width(entry: dict) -> int:
    found = re.search(r"features (\d+)", entry["input_layout"])
    return int(found.group(1)) if found else 16


def _call(entry: dict):
    """Return a function (module, x) for what is not called as module(x)."""
    text = entry["call"]
    if text == "m(x)":
        return None

    def call(m, x):
        draws = torch.Generator().manual_seed(7)
        mem = torch.randn(1, T_MEMORY, x.shape[-1], generator=draws)
        mem = mem.to(x).expand(len(x), -1, -1)
        pad = torch.zeros(*x.shape[:2], dtype=torch.bool, device=x.device)
        names = {"m": m, "x": x, "mem": mem, "pad": pad, "torch": torch}
        exec(entry.get("how", {}).get("setup", "") or "", names)
        return eval(text, names)

    return call


def options(features: dict) -> dict:
    """Return the options of the check that say what a class does."""
    made = {}
    for name, value in features.items():
        if value in (None, False, "none", ""):
            continue
        text = str(value)
        if name == "rope":
            made["rope"] = "neighbors" if "interleaved" in text else "halves"
        elif name == "window" and text.isdigit():
            made["window"] = int(text)
        elif name == "alibi":
            made["alibi"] = True
        elif name == "qk_norm":
            made["qk_norm"] = next(
                (kind for kind in ("rms", "l2", "layer") if kind in text), True
            )
        elif name == "softcap" and re.fullmatch(r"[\d.]+", text):
            made["softcap"] = float(text)
    return made


if __name__ == "__main__":
    main()
