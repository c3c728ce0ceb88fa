"""Runs the checker on a set that was written without knowing it.

``python -m experiments.field.blind FOLDER RESULTS.json`` with FOLDER a set: classes
found in the open with ``judged.json``, and planted bugs with ``bugs.json``. Each entry
says how to build and call a class, and what the layer is meant to do. What is right or
wrong in it is used to count, never to check.

Each class is checked as it is and with what it does declared. The sources are other
people's and no part of this repository: what is stored are names and verdicts.
"""

import argparse
import json
import re
import sys
import time
from pathlib import Path

import torch

from attncheck import check
from attncheck.build import UnusableError, first_line
from attncheck.isolated import EndedError, isolated
from attncheck.layer import OPTIONS
from attncheck.loading import load
from attncheck.surroundings import quiet

SECONDS = 100.0


def main() -> None:
    """Check every class of a set; store what was said of it, print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--only", default="", help="a pattern in a file's name")
    options = parser.parse_args()
    kept = {}
    for name in ("judged.json", "bugs.json"):
        entries = json.loads((options.folder / name).read_text(encoding="utf-8"))
        for entry in entries:
            key = f"{entry['file']}:{entry.get('class') or entry['name']}"
            if not re.search(options.only, key):
                continue
            folder = options.folder.resolve()
            alone = verdict(folder, entry, False)
            more = options_of(entry.get("layer") or entry["flags"])
            declared = verdict(folder, entry, True) if more else alone
            kept[key] = {"as it is": alone, "declared": declared}
            told = [(one.get("status"), one["findings"]) for one in kept[key].values()]
            print(key, entry.get("verdict", "bug"), *told, flush=True)
            text = json.dumps(kept, indent=1, ensure_ascii=False)
            options.results.write_text(text + "\n", encoding="utf-8")


def verdict(folder: Path, entry: dict, declared: bool) -> dict:
    """Return what the checker says of one class, as a dictionary."""
    started = time.monotonic()
    try:
        result = isolated(lambda: _checked(folder, entry, declared), SECONDS)
    except EndedError as error:
        result = {"status": 2, "problem": str(error), "findings": [], "compared": False}
    return result | {"seconds": round(time.monotonic() - started, 1)}


def _checked(folder: Path, entry: dict, declared: bool) -> dict:
    used = time.process_time()
    try:
        result = _report(folder, entry, declared)
    except UnusableError as error:
        result = {"status": 2, "problem": str(error), "findings": []}
    except Exception as error:
        problem = f"{type(error).__name__}: {first_line(error)}"
        result = {"status": 2, "problem": problem, "findings": []}
    return result | {"processor": round(time.process_time() - used, 1)}


def _report(folder: Path, entry: dict, declared: bool) -> dict:
    name = entry.get("class") or entry["name"]
    with quiet():
        cls = load(f"{folder / entry['file']}:{name}", 60.0)
    names = dict(vars(sys.modules[cls.__module__])) | {"torch": torch}
    exec("from types import SimpleNamespace", names)
    arguments = eval(entry.get("construct") or entry["kwargs"], names)
    layer = entry.get("layer") or entry["flags"]
    width = re.search(r"torch.randn\([\d,]*?(\d+)[,)]", entry["forward"])
    arguments.setdefault("d_in", _width(entry["forward"]) if width else 32)
    arguments["causal"] = bool(layer["causal"])
    call = call_of(entry["forward"], names)
    if call is not None:
        arguments["call"] = call
    if layer.get("batch_first") is False:
        arguments["layout"] = "tbd"
    if declared:
        told = {n: value for n, value in options_of(layer).items() if n in OPTIONS}
        arguments |= told
    report = check(cls, time_limit=20.0, **arguments)
    return {
        "status": report.exit_status,
        "problem": report.problem,
        "findings": [f.mistake for f in report.findings if f.severity == "error"],
        "warnings": [f.mistake for f in report.findings if f.severity != "error"],
        "stages": [getattr(f, "stage", "") for f in report.findings
                   if f.severity == "error"],
        "seen": [f.seen for f in report.findings],
        "not_compared": report.not_compared,
        "command": getattr(report, "command", ""),
    }  # fmt: skip


def _width(forward: str) -> int:
    sizes = re.search(r"torch.randn\(([\d,]+)", forward).group(1).split(",")
    return int(sizes[1] if len(sizes) == 4 else sizes[-1])


def call_of(forward: str, names: dict):
    """Return a function (module, x) for what is not called as module(x)."""
    parts = [part.strip() for part in forward.split(";")]
    parts = [part for part in parts if not re.match(r"x\s*=", part)]
    if parts == ["m(x)"] and "4,4)" not in forward:
        return None
    image = re.search(r"randn\(2,32,4,4\)", forward)
    channels = re.search(r"randn\(2,(32|96),6\)", forward)
    text = "; ".join(parts)
    if not re.search(r"\bx\s*=", forward):
        text = re.sub(r"torch\.randn\([\d,]+(,dtype=[\w.]+)?\)", "x", text, count=1)
    text = re.sub(r"\b2(?=,)", "B", text)
    text = re.sub(r"\b6\b", "T", text)
    *setup, last = [part.strip() for part in text.split(";")]

    def call(m, x):
        b, t, c = x.shape
        if image:
            x = x.mT.reshape(b, c, 4, 4)
        elif channels:
            x = x.mT
        held = dict(names) | {"m": m, "x": x, "B": b, "T": t}
        with torch.device(x.device):  # what is passed in lies where x does
            for one in setup:
                exec(one, held)
            y = eval(last, held)
        y = y[0] if isinstance(y, tuple | list) else y
        return y.flatten(2).mT if image or channels else y

    return call


def options_of(layer: dict) -> dict:
    """Return the options of the check that say what a class does."""
    made: dict = {}
    rope = " ".join(str(layer.get(name, "")) for name in ("positions", "rope"))
    if "rope" in str(layer.get("positions")) or layer.get("rope"):
        pairing = "neighbors" if "interleaved" in rope else "halves"
        made["rope"] = {"pairing": pairing}
        if "partial" in rope:
            made["rope"]["share"] = 0.5
    if "ALiBi" in rope or layer.get("alibi"):
        made["alibi"] = True
    window = re.match(r"(\d+)(?! by)", str(layer.get("window", "")))
    if window:
        made["window"] = int(window.group(1))
    norm = str(layer.get("qk_norm", "")).lower()
    if norm:
        made["qk_norm"] = "rms" if "rms" in norm else "l2" if "cos" in norm else True
    if norm == "layernorm per head":
        made["qk_norm"] = "layer"
    scale = str(layer.get("scale", ""))
    if scale.startswith("none"):
        made["scale"] = "none"
    elif scale.startswith("muP"):
        made["scale"] = "1/d"
    if layer.get("sinks"):
        made["sink"] = True
    if "pre" in str(layer.get("norm", "")):
        made["prenorm"] = True
    if "soft cap" in str(layer.get("note", "")):
        made["softcap"] = 50.0
    return made


if __name__ == "__main__":
    main()
