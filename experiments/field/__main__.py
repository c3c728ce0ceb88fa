"""Runs the checker on the frozen set of public classes, and writes its table.

``python -m experiments.field run CLONES VERSION`` with CLONES a folder that holds one
clone for each repository, named ``owner+name``; ``python -m experiments.field page``
writes the table of all versions into ``book/checker.md``.

The set, ``classes.json``, holds addresses, how to call the checker, and what is wrong
in each class; nobody's code is part of this repository. A class is tried as a user
would: with what no name reveals (``options``), and where it can't be built or called,
with its sizes and its call (``retry``). What is wrong is used to count, never to check.
"""

import contextlib
import io
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "book" / "checker.md"
PLACE = re.compile(r"(<!-- written by [^>]* -->\n).*?(<!-- end -->)", re.DOTALL)
VERSIONS = ("12133f6", "d830307")  # in the order of their runs
REFUSED = {"forward_raises", "constructor_raises"}
UNBUILT = REFUSED | {"short_inputs", "some_sizes_raise"}
ROWS = (
    ("right", "passed"),
    ("right", "flagged"),
    ("right", "not judged"),
    ("right", "not run"),
    ("wrong", "named"),
    ("wrong", "named in a warning"),
    ("wrong", "another mistake"),
    ("wrong", "passed"),
    ("wrong", "not judged"),
    ("wrong", "not run"),
)


def read_set() -> list[dict]:
    """Return the classes of the set."""
    return json.loads((HERE / "classes.json").read_text(encoding="utf-8"))


def read_results(version: str) -> dict[str, dict]:
    """Return {class: what a version of the checker reported}."""
    path = HERE / "results" / f"{version.replace(' ', '-')}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def run(clones: Path, version: str) -> None:
    """Try each class whose clone is there, and store the results as they come."""
    results = {}
    for entry in read_set():
        with tempfile.TemporaryDirectory() as folder:
            file = extract(entry["address"], clones, Path(folder))
            if file is None:
                continue
            results[entry["id"]] = try_class(entry, file)
        print(entry["id"], results[entry["id"]], flush=True)
        lines = [f"{json.dumps(n)}: {json.dumps(row)}" for n, row in results.items()]
        path = HERE / "results" / f"{version.replace(' ', '-')}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def extract(address: str, clones: Path, folder: Path) -> Path | None:
    """Write the Python files of a repository at its commit; return the class's."""
    place, commit = address.rsplit("@", 1)
    owner, name, path = place.split("/", 2)
    made = subprocess.run(
        ["git", "-C", clones / f"{owner}+{name}", "archive", commit, "--", "*.py"],
        capture_output=True,
    )
    if made.returncode:
        return None
    subprocess.run(["tar", "-x", "-C", folder], input=made.stdout, check=True)
    return folder / path


def try_class(entry: dict, file: Path) -> dict:
    """Return what the checker reports of a class, in short."""
    words = [f"{file}:{entry['class']}", *entry["options"]]
    first = report(words)
    refused = not first["compared"] and UNBUILT.intersection(first["found"])
    if (first["exit"] == 2 or refused) and entry["retry"]:
        return report([*words, *entry["retry"]])
    return first


def report(words: list[str]) -> dict:
    """Return what a command line reports, in short."""
    from attncheck import commandline

    out = io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(io.StringIO()),
        contextlib.suppress(SystemExit),  # of options that it does not know
    ):
        commandline.main([*words, "--json"])
    told = json.loads(out.getvalue() or "{}")
    found = told.get("findings", [])
    return {
        "exit": told.get("exit_status", 2),
        "compared": told.get("compared", False),
        "found": [f["mistake"] for f in found if f["severity"] == "error"],
        "warned": [f["mistake"] for f in found if f["severity"] == "warning"],
    }


def judge(entry: dict, row: dict) -> str:
    """Return in a word or two what a report is worth."""
    refused = row["exit"] == 1 and REFUSED.intersection(row["found"][:1])
    if row["exit"] == 2 or refused:
        return "not run"
    if row["exit"] == 3:
        return "not run" if REFUSED.intersection(row["found"]) else "not judged"
    if "wrong" not in entry:
        return "flagged" if row["exit"] else "passed"
    if row["exit"] == 0:
        warned = set(row["warned"]) & set(entry["names"])
        return "named in a warning" if warned else "passed"
    return "named" if row["found"][0] in entry["names"] else "another mistake"


def table() -> str:
    """Return the counts of all versions, for the classes that all of them were run on.

    Behind it stand the classes that the last one got wrong.
    """
    results = {version: read_results(version) for version in VERSIONS}
    common = set.intersection(*(set(rows) for rows in results.values()))
    entries = [entry for entry in read_set() if entry["id"] in common]
    counts = {
        version: Counter(
            ("wrong" if "wrong" in e else "right", judge(e, rows[e["id"]]))
            for e in entries
        )
        for version, rows in results.items()
    }
    heads = " | ".join(VERSIONS)
    lines = [f"| {len(entries)} public classes | {heads} |", "|---|" + "---|" * 2]
    for kind, verdict in ROWS:
        total = sum(("wrong" in e) == (kind == "wrong") for e in entries)
        numbers = " | ".join(
            f"{counts[version][kind, verdict]} of {total}" for version in VERSIONS
        )
        lines.append(f"| {kind}: {verdict} | {numbers} |")
    return "\n".join([*lines, "", *tell_errors(entries, results[VERSIONS[-1]])])


def tell_errors(entries: list[dict], rows: dict[str, dict]) -> list[str]:
    """Return a line for each class that is flagged, misnamed or passed wrongly."""
    told = []
    for entry in entries:
        verdict = judge(entry, rows[entry["id"]])
        called = ", ".join(f"`{name}`" for name in rows[entry["id"]]["found"][:1])
        if verdict == "flagged":
            told.append(f"- {link(entry)} is right, and was flagged as {called}.")
        elif "wrong" in entry and verdict not in ("named", "not run"):
            as_what = f" as {called}" if verdict == "another mistake" else ""
            # The first sentence; ".." stands within one.
            wrong = re.split(r"(?<!\.)\. ", entry["wrong"])[0].rstrip(".")
            told.append(f"- {link(entry)}: {wrong}. Result: {verdict}{as_what}.")
    summary = "<details><summary>What went wrong, class by class</summary>"
    return [summary, "", *told, "", "</details>"]


def link(entry: dict) -> str:
    """Return a link to a public class, with its name."""
    place, commit = entry["address"].rsplit("@", 1)
    owner, name, path = place.split("/", 2)
    url = f"https://github.com/{owner}/{name}/blob/{commit}/{path.replace(' ', '%20')}"
    return f"[{owner}/{name}]({url}) `{entry['class']}`"


def write_page(text: str) -> str:
    """Return the page with the table that is made from stored results."""
    return PLACE.sub(lambda m: f"{m[1]}\n{table()}\n\n{m[2]}", text)


if __name__ == "__main__":
    if sys.argv[1:2] == ["page"]:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(write_page(page), encoding="utf-8")
    else:
        run(Path(sys.argv[2]), sys.argv[3])
