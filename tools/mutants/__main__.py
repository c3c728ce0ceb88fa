"""Break the product in N places, one at a time, and count what its tests notice.

    python -m tools.mutants --number 120 --seed 1
    python -m tools.mutants --number 40 --tier test

Exit status 1 if a mutant survives.
"""

import argparse
import json
import multiprocessing
import os
import random
import shlex
import subprocess
import sys
import time
from collections import Counter, defaultdict
from functools import cache, partial
from pathlib import Path

from tqdm import tqdm

from tools.mutants import runner
from tools.mutants.places import places

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("attention", "attncheck", "coding_attention", "theme", "tools", "book")
NOT_OURS = ("coding_attention/labs/d3", "tools/mutants", "tools/measure",
            "theme/lean_site/scripts/minisearch.js", "theme/slides/kit/",
            "book/references",
            "book/exercises", "book/solutions")  # made from their tasks  # fmt: skip
_worker = {}


def drawn(root, number, seed, kinds=""):
    """Draw places, the kinds in turn, and within a kind the files in turn."""
    known = json.loads((ROOT / "tools/mutants/equivalent.json").read_text("utf-8"))
    by_kind = defaultdict(lambda: defaultdict(list))
    listed = subprocess.run(["git", "ls-files", *ROOMS], cwd=root, check=True,
                            capture_output=True, text=True).stdout.split()  # fmt: skip
    for path in listed:
        if not path.startswith(NOT_OURS):
            text = (root / path).read_text("utf-8", errors="ignore")
            for place in _places(path, text):
                if kinds in place.kind and not _equivalent(known, place, text):
                    by_kind[place.kind][path].append(place)
    rng, found = random.Random(seed), []
    for kind in sorted(by_kind):
        rng.shuffle(files := sorted(by_kind[kind]))
        by_kind[kind] = {file: by_kind[kind][file] for file in files}
    while len(found) < number and by_kind:
        for kind in sorted(by_kind):
            file = next(iter(by_kind[kind]))
            rest = by_kind[kind].pop(file)
            found.append(rest.pop(rng.randrange(len(rest))))
            if rest:
                by_kind[kind][file] = rest  # the next draw takes another file
            elif not by_kind[kind]:
                del by_kind[kind]
    return found[:number]


@cache
def _places(path, text):
    return list(places(path, text)) if path.endswith((".py", ".js", ".md")) else []


def shown(place, text):
    """The changed line before and after."""
    start = text.rfind("\n", 0, place.start) + 1
    rest = text[place.end :].partition("\n")[0]
    before = text[start : place.end] + rest
    after = text[start : place.start] + place.new + rest
    number = text.count("\n", 0, start) + 1
    return f"{place.path}:{number}", before.strip(), after.strip()


def _equivalent(known, place, text):
    known = [(k["before"], k["after"]) for k in known if k["path"] == place.path]
    return bool(known) and shown(place, text)[1:] in known


def _start(root, **how):
    runner.preload()
    _worker.update(how, copy=runner.copy_of(root))


def _try(place):
    started = time.perf_counter()
    try:
        noticed = runner.noticed(place=place, **_worker)
    except ValueError as error:  # not counted as noticed
        tqdm.write(str(error))
        noticed = None
    return place, noticed, time.perf_counter() - started


def report(results, seconds):
    """Print the table, the survivors and the time."""
    total = Counter(place.kind for place, _, _ in results)
    killed = Counter(place.kind for place, noticed, _ in results if noticed)
    for kind in sorted(total):
        print(f"{kind:40} {killed[kind]}/{total[kind]}")
    print(f"{'all':40} {killed.total()}/{total.total()} in {seconds:.0f} s")
    for place, noticed, _ in results:
        if not noticed:
            where, before, after = shown(place, (ROOT / place.path).read_text("utf-8"))
            print(f"\nSURVIVED: {place.kind}, {where}\n- {before}\n+ {after}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=120, help="mutants to draw")
    parser.add_argument("--seed", type=int, default=1, help="of the drawing")
    parser.add_argument("--kind", default="", help="only kinds that contain this")
    parser.add_argument(
        "--against", help="pytest's arguments, for one selection for all"
    )
    parser.add_argument("--tier", help="of the tests that a place maps to, only these")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    found = drawn(ROOT, options.number, options.seed, options.kind)
    against = shlex.split(options.against) if options.against else None
    how = {"against": against, "tier": options.tier}
    started, results = time.perf_counter(), []
    fork = multiprocessing.get_context("fork")  # warm imports; Linux and macOS
    with fork.Pool(options.jobs, partial(_start, ROOT, **how)) as pool:
        for result in tqdm(pool.imap_unordered(_try, found), total=len(found)):
            results.append(result)
            place, killer, seconds = result
            where = shown(place, (ROOT / place.path).read_text("utf-8"))[0]
            tqdm.write(
                f"{seconds:4.0f} s  {place.kind}, {where}: {killer or 'SURVIVED'}"
            )
    report(results, time.perf_counter() - started)
    sys.exit(0 if all(noticed for _, noticed, _ in results) else 1)


if __name__ == "__main__":
    main()
