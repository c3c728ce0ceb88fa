"""Runs the checker on a blind set as a user would, and stores what it reported.

``python -m experiments.field blind SET VERSION [FOLDER]`` runs ``sets/SET.json``. Its
planted bugs are stored beside it. The public classes are other people's: the set has
their addresses, and FOLDER their files, each trimmed so that it needs PyTorch alone.

Each class is tried as a user would try it, with the options in parentheses:

- as is: whether it is causal, and settings that no name reveals (``options``)
- retry: where it could not be built or called, its sizes and its call (``retry``)
- proposed: where it was not judged, the command that the report proposes
- declared: what the layer does besides attention (``declared``), or the preset for
  caches and padding (``preset``)

What is wrong in a class is used to count, never to check.
"""

import contextlib
import importlib
import io
import json
import os
import pkgutil
import re
import shlex
import tempfile
from pathlib import Path
from types import SimpleNamespace

import torch

import attncheck
from attncheck import commandline
from attncheck.isolated import EndedError, isolated
from attncheck.loading import load
from attncheck.mistakes import MISTAKES

HERE = Path(__file__).parent
SECONDS = 300.0  # far more than any needs, on a machine that is busy
REFUSED = {"forward_raises", "constructor_raises"}
UNBUILT = REFUSED | {"short_inputs", "some_sizes_raise"}
STAGE = re.compile(r"first stage that differs: (.*?)\.")


def entries(name: str) -> list[dict]:
    """Return the classes and bugs of a set."""
    return json.loads((HERE / "sets" / f"{name}.json").read_text(encoding="utf-8"))


def bugs(name: str) -> dict[str, str]:
    """Return {id: source} of a set's planted bugs, which are stored as edits."""
    path = HERE / "sets" / f"{name}_bugs.txt"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    sources = {}
    for block in re.split(r"^=== .*\n", text, flags=re.MULTILINE)[1:]:
        base, *edited = re.split(r"^--- (.*)\n", block, flags=re.MULTILINE)
        for one, edits in zip(edited[::2], edited[1::2], strict=True):
            lines = base.splitlines()
            hunks = re.findall(r"^@@ (\d+) (\d+)\n((?:(?!@@ ).*\n)*)", edits, re.M)
            for start, stop, new in reversed(hunks):
                lines[int(start) : int(stop)] = new.splitlines()
            sources[one] = "\n".join(lines) + "\n"
    return sources


def run(name: str, version: str, folder: Path | None, only: str = "") -> None:
    """Try each class of a set that is there, and store the results as they come."""
    os.nice(5)
    torch.set_num_threads(1)
    commandline.SPARE = SECONDS
    for module in pkgutil.walk_packages(attncheck.__path__, "attncheck."):
        if module.name not in ("attncheck.__main__", "attncheck.pytest_plugin"):
            importlib.import_module(module.name)  # once, not in each process
    path = HERE / "results" / f"{name}-{version}.json"
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    sources = bugs(name)
    with tempfile.TemporaryDirectory() as made:
        for entry in entries(name):
            one = entry["id"]
            if not re.search(only, one) or (one not in sources and folder is None):
                continue
            if one in sources:
                file = Path(made) / f"{one}.py"
                file.write_text(sources[one], encoding="utf-8")
            else:
                file = folder / "classes" / f"{one[1:]}.py"
            kept[one] = tried(entry, file.resolve(), kept.get(one, {}))
            print(one, entry.get("wrong", "right"), kept[one], flush=True)
            store(path, {e["id"]: kept[e["id"]] for e in entries(name)
                         if e["id"] in kept})  # fmt: skip


def store(path: Path, results: dict) -> None:
    """Write the results, a class in each line."""
    lines = [f"{json.dumps(one)}: {json.dumps(row)}" for one, row in results.items()]
    path.parent.mkdir(exist_ok=True)
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def tried(entry: dict, file: Path, row: dict) -> dict:
    """Return {attempt: what the checker reported}, with those of ``row`` kept."""
    target, options = f"{file}:{entry['class']}", entry.get("options", [])
    row, commands = dict(row), {}

    def attempt(name, words):
        if name not in row:
            row[name], commands[name] = reported(words)
        return row[name]

    last, name = attempt("as is", [target, *options]), "as is"
    if unbuilt(last) and entry.get("retry"):
        last, name = attempt("retry", [target, *options, *entry["retry"]]), "retry"
    if last["exit"] == 3 and commands.get(name):
        attempt("proposed", shlex.split(commands[name])[1:])
    if "declared" in entry:
        # What is declared, as a window, is of a layer in these sizes.
        sizes = entry.get("retry", [])
        attempt("declared", [target, *options, *sizes, *entry["declared"]])
    if "preset" in entry and "preset" not in row:
        row["preset"] = preset(entry["preset"], target)
    return row


def unbuilt(report: dict) -> bool:
    """Say whether a class could not be built or called as it was."""
    raised = not report["compared"] and UNBUILT.intersection(report["found"])
    return report["exit"] not in (0, 1, 3) or bool(raised)


def reported(words: list[str]) -> tuple[dict, str]:
    """Return what a command line reports, in short, and the command it proposes."""
    out = io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(io.StringIO()),
        contextlib.suppress(SystemExit),  # options that it does not know
    ):
        commandline.main([*words, "--format", "json"])
    try:
        told = json.loads(out.getvalue())
    except ValueError:
        told = {}
    return short(told), told.get("command", "")


def preset(code: str, target: str) -> dict:
    """Return what a preset for a cache or padding reports, in short."""

    def checked():
        names = {
            "cls": load(target),
            "torch": torch,
            "SimpleNamespace": SimpleNamespace,
        }
        presets = ("check_cache", "check_padding", "check_cross")
        names |= {n: getattr(attncheck, n) for n in presets}
        report = eval(code, names)
        findings = [
            {"mistake": f.mistake, "severity": f.severity, "seen": f.seen}
            for f in report.findings
        ]
        return {
            "exit_status": report.exit_status,
            "not_compared": report.not_compared,
            "findings": findings,
        }

    try:
        return short(isolated(checked, SECONDS))
    except EndedError:
        return short({})


def short(told: dict) -> dict:
    """Return what is stored of a report; an exit of 2 stands for no report, too."""
    every = told.get("findings", [])
    found = [f for f in every if f["severity"] == "error"]
    warned = [f["mistake"] for f in every if f["severity"] == "warning"]
    status = told.get("exit_status", 2)
    return {
        "exit": status,
        "compared": status in (0, 1) and not told["not_compared"],
        "stage": stage_of(found[0]) if found else "",
        "found": [f["mistake"] for f in found],
    } | ({"warned": warned} if warned else {})


def stage_of(finding: dict) -> str:
    """Return the stage that a finding names, or that its mistake belongs to."""
    named = STAGE.search(finding["seen"])
    known = MISTAKES.get(finding["mistake"])
    return finding.get("stage") or (
        named.group(1) if named else known.stage if known else ""
    )
