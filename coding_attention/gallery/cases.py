"""The cases of the page "Find the bug": from the planted bugs.

    python -m coding_attention.gallery.cases      compute cases.json anew

The words stand in ``planted.toml``, the pictures and the lines of code come from the
planted classes.
"""

import difflib
import json
from pathlib import Path

from coding_attention.gallery.pictures import picture
from coding_attention.gallery.planted import BASES, PLANTED

STORED = Path(__file__).with_name("cases.json")
DIGITS = 3

ASKED = {
    "weights": "Attention weights of one head. Rows are queries; columns are keys.",
    "heads": "Attention weights of two heads, on the same sentence.",
    "batch": "Attention weights of two different sentences in one batch.",
    "reach": "How far each output (row) moves when a word (column) is changed; 1 is "
    "the largest move.",
    "loss": "The loss over training on random tokens that nobody can predict. The line "
    "at 2.08 is guessing among eight.",
}
# (planted bug, kind of picture, the four other causes), in the order of the page.
CASES = [
    (bug.name, case["kind"], case["others"])
    for bug, case in sorted(
        ((bug, case) for bug in PLANTED.values() for case in bug.case),
        key=lambda pair: pair[1]["number"],
    )
]


def stored_picture(name, kind):
    """Compute a picture as nested lists of rounded numbers; nan and -inf as words."""
    return _plain(picture(name, kind).tolist())


def _plain(value):
    if isinstance(value, list):
        return [_plain(part) for part in value]
    finite = abs(value) < float("inf")
    return round(value, DIGITS) + 0.0 if finite else str(value)


def changed_lines(name):
    """Give the lines that a planted bug changes: (broken, mended), as texts."""
    wrong = PLANTED[name].source().splitlines()
    right = BASES[PLANTED[name].base][0].splitlines()
    broken, mended = [], []
    for line in difflib.ndiff(wrong, right):
        kept = line[2:].strip()
        if line.startswith("- ") and kept and not kept.startswith(("import", "from")):
            broken.append(kept)
        elif line.startswith("+ ") and kept:
            mended.append(kept)
    return "\n".join(broken), "\n".join(mended)


def list_cases():
    """Compute all that the page shows, as JSON holds it."""
    cases = []
    for bug, kind, others in CASES:
        names = sorted([bug, *others], key=lambda name: PLANTED[name].cause)
        broken, mended = changed_lines(bug)
        cases.append({
            "bug": bug, "kind": kind, "asked": ASKED[kind], "why": PLANTED[bug].why,
            "broken": broken, "mended": mended,
            "choices": [
                {
                    "bug": name, "cause": PLANTED[name].cause,
                    "looks": PLANTED[name].looks[kind],
                    "picture": stored_picture(name, kind),
                }
                for name in names
            ],
        })  # fmt: skip
    kinds = {kind: stored_picture("right", kind) for kind in ASKED}
    return {"right": kinds, "cases": cases}


def write():
    """Store what :func:`list_cases` computes, for the site, which has no PyTorch."""
    text = json.dumps(list_cases(), ensure_ascii=False, separators=(",", ":"))
    STORED.write_text(text.replace('{"bug"', '\n{"bug"') + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
