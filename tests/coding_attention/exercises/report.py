"""Writes a table of all exercises: what was tried, and what the check said.

    python -m tests.coding_attention.exercises.report > FILE.md

Right, two wrong ones and rubbish, from the answers that the tests hold. What can be
answered on the site is also given to check.js, and must get the same words there.
"""

import json
import subprocess
from pathlib import Path

from coding_attention.exercises import EXERCISES, check_exercise, site
from coding_attention.exercises.core import described
from tests.coding_attention.exercises.entered import entered
from tests.coding_attention.exercises.test_check_exercise import RIGHT, RUBBISH, WRONG

HERE = Path(__file__).parent


def tried(name):
    """Return (how, the answer's name, answer): right, two wrong, rubbish."""
    right = next(iter(RIGHT[name].items()))
    wrong = [(how, answer) for how, (answer, _) in WRONG[name].items()]
    if name in site.entries():
        here = [pair for pair in wrong if entered(name, pair[1]) is not None]
        wrong = here if len(here) >= 2 else wrong
    yield "right", *right
    yield "wrong", *wrong[0]
    yield "wrong", *wrong[1]
    rubbish = "empty tensor"
    yield "rubbish", rubbish, RUBBISH[rubbish]


def on_site(name, answer):
    """Return the words of check.js, or None where it has no such answer."""
    try:
        entries = entered(name, answer)
    except Exception:
        return None
    if entries is None:
        return None
    result = subprocess.run(
        ["node", HERE / "check_answers.mjs", site.FILE],
        input=json.dumps([(name, entries)]), capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(result.stdout)[0]["text"]


def cell(text):
    """Fit a text into a cell of a table."""
    return " ".join(str(text).split()).replace("|", "\\|")


def main():
    """Print the table."""
    known = site.entries()
    print("| exercise | level | answered | tried | answer | what it said |")
    print("|---|---|---|---|---|---|")
    for name, exercise in EXERCISES.items():
        where = "on the site and in Python" if name in known else "in Python"
        for how, label, answer in tried(name):
            said = check_exercise(name, answer).text
            there = on_site(name, answer) if name in known else None
            if there is not None and there != said and "It was called" not in said:
                said = f"{said} ON THE SITE: {there}"
            shown = f"{label}: {described(answer, 80)}"
            row = name, exercise.level, where, how, shown, said
            print("| " + " | ".join(cell(part) for part in row) + " |", flush=True)
        if name in known:
            fields = known[name]["fields"]
            if all(f["kind"] in ("number", "count", "shape") for f in fields):
                said = subprocess.run(
                    ["node", HERE / "check_answers.mjs", site.FILE],
                    input=json.dumps([(name, ["abc"] * len(fields))]),
                    capture_output=True, text=True, check=True,
                ).stdout  # fmt: skip
                said = json.loads(said)[0]["text"]
                print(f"| {name} | {exercise.level} | {where} | rubbish, entered | abc "
                      f"| {cell(said)} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
