"""Writes the page of the field study from the stored results.

``python -m experiments.field.page``; a test compares the page with the results.
"""

import json
from pathlib import Path

from experiments.field.__main__ import LIST, RESULTS, key

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "book" / "field_study.md"
JUDGED = HERE / "judged.json"
ADDRESS = "https://github.com/"

HEAD = """\
# What the checker says of public code

A checker that accuses right classes is soon ignored. So it was run on classes of
attention that many people read and copy. The list names each by repository, file and
commit, with nothing but how to build and call it; none of the code is part of this
book. Every class that was accused was then read, to see whether the accusation holds.
It was no blind trial: where the checker accused a right class, it was mended, and the
classes were run again.

{summary}

To run it again, with clones of the repositories in one folder:
`python -m experiments.field FOLDER`.

## What was found

{findings}

## All classes

"Not compared" means that the class does more than attention, or that its weights were
not found: nothing is said of its numbers then, and all other tests ran. "Left out"
and "not loaded" say nothing about the class: something that it needs was not there.

| class | commit | outcome |
|---|---|---|
{rows}

The names that the package offers come next: [The package](api.md).
"""


def written():
    """Return the text of the page."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    listed = {key(e): e for e in json.loads(LIST.read_text(encoding="utf-8"))}
    judged = json.loads(JUDGED.read_text(encoding="utf-8"))
    rows = [
        f"| {_link(listed[key(r)])} | `{listed[key(r)]['commit'][:10]}` | "
        f"{outcome(r)} |"
        for r in results
    ]
    return HEAD.format(
        summary=_summary(results, judged),
        findings=_findings(results, judged, listed),
        rows="\n".join(rows),
    )


def outcome(result):
    """Return in words how one class ended."""
    if result["status"] is None:
        return result["headline"]
    if result["status"] == 2 or "findings" not in result:
        return "not loaded"
    told = [one.split(" [")[0] for one in errors(result)]
    compared = "not compared" if result["not_compared"] else "compared"
    return f"{', '.join(told) or 'nothing found'}; {compared}"


def errors(result):
    """Return the findings that fail."""
    return [one for one in result.get("findings", []) if "[error]" in one]


def _summary(results, judged):
    ran = [r for r in results if "findings" in r and r["status"] in (0, 1, 3)]
    accused = [r for r in ran if errors(r)]
    wrong = [r for r in accused if not judged[key(r)]["right"]]
    compared = [r for r in ran if not r["not_compared"]]
    return (
        f"Of {len(results)} classes from "
        f"{len({r['repository'] for r in results})} repositories, {len(ran)} ran here. "
        f"{len(compared)} of these were compared with attention, number by number. "
        f"{len(accused)} were accused of an error; reading them, the accusation was "
        f"right for {len(accused) - len(wrong)} and wrong for {len(wrong)}."
    )


def _findings(results, judged, listed):
    lines = []
    for result in results:
        if errors(result) and result["status"] == 1:
            told = "; ".join(one.split(" [")[0] for one in errors(result))
            verdict = judged[key(result)]
            word = "Right" if verdict["right"] else "Wrong"
            lines.append(
                f"- {_link(listed[key(result)])}: {told}. {word}: {verdict['why']}"
            )
    return "\n".join(lines) or "No class was accused."


def _link(entry):
    place = f"{ADDRESS}{entry['repository']}/blob/{entry['commit']}/{entry['path']}"
    return f"[{entry['repository']}: {entry['class']}]({place.replace(' ', '%20')})"


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
