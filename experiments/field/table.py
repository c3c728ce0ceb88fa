"""Writes what the checker said of other people's classes into its page.

The parts of ``book/checker.md`` between two comments, as in ``<!-- written by python -m
experiments.field page: counts -->`` and ``<!-- end -->``, are made from stored results.
"""

import json
import re
from collections import Counter

from experiments.field import blind, study
from experiments.field.blind import HERE, REFUSED, unbuilt

PAGE = HERE.parents[1] / "book" / "checker.md"
PLACE = re.compile(r"(<!-- written by [^>]* (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
ADDRESS = "https://github.com/"
COLUMNS = [  # in the order of their runs
    ("first", "4d4f25f"),
    ("fifty-fifth", "c9fb5b9"),
    ("fifty-sixth", "c9fb5b9"),
    ("fifty-seventh", "ed5ce7c"),
    ("fifty-eighth", "ed5ce7c"),
    ("fifty-ninth", "265ae68"),
    ("sixtieth", "265ae68"),
]
# A phone has no room for the words.
SHORT = {"first": "1st", "fifty-fifth": "55th", "fifty-sixth": "56th",
         "fifty-seventh": "57th", "fifty-eighth": "58th",
         "fifty-ninth": "59th", "sixtieth": "60th"}  # fmt: skip
PLANTS = re.compile(r"planted bugs(: |, )")
OF_PUBLIC = re.compile(r"(?!planted|runs)")
SETS = [name for name, _ in COLUMNS]
PUBLIC = ("fifty-sixth", "fifty-eighth", "sixtieth")  # no bugs
PLANTED = [name for name in SETS if name not in PUBLIC]
TOLD = COLUMNS[1:]  # those whose errors the page lists


def stored(name: str, version: str) -> list[tuple[dict, dict]]:
    """Return pairs of an entry of a set and what was reported of it."""
    path = HERE / "results" / f"{name}-{version}.json"
    results = json.loads(path.read_text(encoding="utf-8"))
    return [(e, results[e["id"]]) for e in blind.entries(name) if e["id"] in results]


def as_used(row: dict) -> dict:
    """Return the report a user ends with who pastes the proposed command."""
    last = row.get("retry", row["as is"])
    pasted = row.get("proposed", last)
    return last if pasted["exit"] == 2 else pasted


def declared(row: dict) -> dict:
    """Return the report a user ends with who says what the layer does.

    A preset may end without a report, since its call leaves something out.
    """
    said = row.get("preset", row.get("declared", {"exit": 2}))
    return row.get("declared", as_used(row)) if said["exit"] == 2 else said


def verdict(entry: dict, report: dict) -> str:
    """Return in a word or two what a report is worth."""
    if report["exit"] != 1:
        warned = set(entry.get("names", ())) & set(report.get("warned", ()))
        passed = "warned" if warned else "passed"
        return {0: passed, 3: "not judged"}.get(report["exit"], "not run")
    if "wrong" not in entry:
        if REFUSED.intersection(report["found"][:1]):
            return "not run"
        read = set(entry.get("faults", ()))  # by us, after the checker had found them
        return "agreed" if set(report["found"]) <= read else "flagged"
    if report["found"][0] in entry["names"]:
        return "named"
    told = set(re.split(r" or | of the values", report["stage"]))
    return "stage" if told & set(entry["stage"].split(" or ")) else "other"


def place(entry: dict) -> tuple[str, ...]:
    """Return a public class's repository, file and name, in any version."""
    path = entry["address"].split("@")[0].lower().split("/")
    return *path[:2], path[-1], entry["class"].split("(")[0]


def earlier(name: str) -> set[tuple[str, ...]]:
    """Return the public classes of the study and of the sets before a set."""
    entries = [entry for entry, _ in known()]
    for other in SETS[: SETS.index(name)]:
        entries += blind.entries(other)
    return {place(e) for e in entries if e.get("address")}


def seen(entry: dict, before: set[tuple[str, ...]]) -> bool:
    """Say whether a class was known before, from another set or where it says."""
    return "seen" in entry or place(entry) in before


def counts(
    pairs: list[tuple[dict, dict]], before: set[tuple[str, ...]]
) -> dict[str, str]:
    """Return {row of the table: its text} for a set and a version."""
    right = [(e, r) for e, r in pairs if "wrong" not in e]
    wrong = [(e, r) for e, r in pairs if "wrong" in e and e["id"].startswith("c")]
    bugs = [(e, r) for e, r in pairs if e["id"].startswith("b")]
    public = [*right, *wrong]
    every = [report for _, row in pairs for report in row.values()]
    flagged = Counter(verdict(e, as_used(r)) for e, r in right)
    of_public = {
        "public classes (of these, known before)": (
            f"{len(public)} ({sum(seen(e, before) for e, _ in public)})"
        ),
        "ran at the first attempt": share(not unbuilt(r["as is"]) for _, r in public),
        "not judged": share(r["as is"]["exit"] == 3 for _, r in public),
        "not judged, even with the proposed command": share(
            as_used(r)["exit"] == 3 for _, r in public
        ),
        "correct classes: flagged (of these, rightly)": (
            f"{flagged['flagged'] + flagged['agreed']} ({flagged['agreed']}) "
            f"of {len(right)}"
        ),
    }
    return {
        **(of_public if public else dict.fromkeys(of_public, "–")),
        **told("wrong classes", wrong, as_used),
        **told("planted bugs", bugs, as_used),
        **told("planted bugs, declared", bugs, declared),
        "runs passed, but not compared": share(
            r["exit"] == 0 and not r["compared"] for r in every
        ),
    }


def told(title: str, pairs: list[tuple[dict, dict]], how) -> dict[str, str]:
    """Return what was said of classes with a mistake; a dash where there are none."""
    counted = Counter(verdict(entry, how(row)) for entry, row in pairs)
    named, passed = counted["named"], counted["passed"] + counted["warned"]
    rows = {
        f"{title}: named (or the right stage)": (
            f"{named} ({named + counted['stage']}) of {len(pairs)}"
        ),
        f"{title}: passed (of these, named in a warning)": (
            f"{passed} ({counted['warned']})"
        ),
        f"{title}: not judged": f"{counted['not judged']}",
    }
    return rows if pairs else dict.fromkeys(rows, "–")


def share(held) -> str:
    """Return how many of some statements hold, as "3 of 5"."""
    held = list(held)
    return f"{sum(held)} of {len(held)}"


def table() -> str:
    """Return the counts of all sets: of public classes, then of planted bugs."""
    made = {name: counts(stored(name, v), earlier(name)) for name, v in COLUMNS}
    versions = ", ".join(f"{SHORT[name]} `{version}`" for name, version in COLUMNS)
    return "\n\n".join(
        [
            _table(
                "public classes, by set", made, lambda label: not PLANTS.match(label)
            ),
            _table(
                "planted bugs, by set", made, lambda label: not OF_PUBLIC.match(label)
            ),
            f"Versions of the checker: {versions}.",
        ]
    )


def _table(title: str, made: dict[str, dict[str, str]], shown) -> str:
    """Return the rows that are shown, for the sets that they say something of.

    A narrow screen has room for few columns, so none is left without numbers.
    """
    labels = [label for label in made["first"] if shown(label)]
    names = [name for name in made if made[name][labels[0]] != "–"]
    heads = " | ".join(SHORT[name] for name in names)
    rows = [f"| {title} | {heads} |", "|---|" + "---|" * len(names)]
    for label in labels:
        numbers = " | ".join(made[name][label] for name in names)
        rows.append(f"| {PLANTS.sub('', label)} | {numbers} |")
    return "\n".join(rows)


def notes() -> str:
    """Return what the checker got wrong in the last sets, with the reasons."""
    return "\n\n".join(filter(None, (_notes(*column) for column in TOLD)))


def _notes(name: str, version: str) -> str:
    rows = []
    for entry, row in stored(name, version):
        report = as_used(row)
        kind = verdict(entry, report)
        if kind == "flagged":
            called = ", ".join(f"`{mistake}`" for mistake in report["found"])
            rows.append(f"- {link(entry)} is correct, but was flagged as {called}. ")
        elif "wrong" in entry and kind in ("passed", "warned"):
            told = "It only got a warning" if kind == "warned" else "Passed"
            where = link(entry) if "address" in entry else "Planted"
            rows.append(f"- {where}: {entry['wrong'].rstrip('.')}. {told}. ")
        else:
            continue
        rows[-1] = f"{rows[-1]}{entry.get('note', '')}".rstrip()
    title = f"What went wrong with the {name} set, class by class"
    return folded(title, "\n".join(rows)) if rows else ""


def folded(title: str, *blocks: str) -> str:
    """Return text that opens on a click."""
    return "\n\n".join([f"<details><summary>{title}</summary>", *blocks, "</details>"])


def link(entry: dict) -> str:
    """Return a link to a public class, with its name and its file's."""
    called = entry["class"].split("(")[0]
    if not entry["address"]:
        return f"`{called}` ({entry['found']})"
    place, commit = entry["address"].rsplit("@", 1)
    owner, name, path = place.split("/", 2)
    url = f"{ADDRESS}{owner}/{name}/blob/{commit}/{path.replace(' ', '%20')}"
    return f"[{owner}/{name}]({url}) `{called}` in `{path.split('/')[-1]}`"


def known() -> list[tuple[dict, dict]]:
    """Return pairs of a class of the study and what was reported of it."""
    results = json.loads(study.RESULTS.read_text(encoding="utf-8"))
    entries = json.loads(study.LIST.read_text(encoding="utf-8"))
    for entry in entries:
        entry["address"] = f"{entry['repository']}/{entry['path']}@{entry['commit']}"
    return [(entry, results[study.key(entry)]) for entry in entries]


def summary() -> str:
    """Return the study in three sentences."""
    pairs = known()
    ran = [r for _, r in pairs if "missing" not in r]
    compared = sum(r["compared"] for r in ran)
    flagged = sum(bool(r["found"]) for r in ran)
    return (
        f"Of {len(pairs)} classes, {len(ran)} ran here; the others need a GPU or "
        f"modules that aren't installed. The checker could compare {compared} of them "
        f"with correct attention, number by number, and flagged {flagged}:"
    )


def findings() -> str:
    """Return a line for each class of the study that is flagged."""
    return "\n".join(
        f"- {link(entry)}: `{'`, `'.join(r['found'])}`. {entry['why']}"
        for entry, r in known()
        if r.get("found")
    )


def listed() -> str:
    """Return all classes of the study by outcome."""
    groups: dict[str, list[str]] = {}
    for entry, r in known():
        kind = (
            "Didn't run" if "missing" in r
            else "Flagged" if r["found"]
            else "Nothing found" if r["compared"]
            else "Not compared"
        )  # fmt: skip
        groups.setdefault(kind, []).append(link(entry))
    lines = [f"{kind}: {', '.join(some)}." for kind, some in groups.items()]
    return folded("All classes", *lines)


def written(page: str) -> str:
    """Return the page with the parts that are made from stored results."""
    made = {f.__name__: f for f in (table, notes, summary, findings, listed)}
    return PLACE.sub(lambda m: f"{m[1]}\n{made[m[2]]()}\n\n{m[3]}", page)


def write() -> None:
    """Put them into the page."""
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    print(table())
