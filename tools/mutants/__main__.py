"""Break the book in N places, one at a time, and count what the checks notice.

    python -m tools.mutants --number 200 --seed 1

Exit status 1 if a mutant survives.
"""

import argparse
import multiprocessing
import os
import random
import shutil
import sys
import time
from collections import Counter
from pathlib import Path

from tqdm import tqdm

from tools.mutants import kinds, runner

ROOT = Path(__file__).resolve().parents[2]
_copy = None


def _start(root):
    global _copy
    runner.preload()
    _copy = runner.copy_of(root)


def _try(mutant):
    started = time.perf_counter()
    return mutant, runner.noticed_by(_copy, mutant), time.perf_counter() - started


def _unbroken(root, book):
    """The checks must pass before anything is broken, or every mutant would "die"."""
    copy = runner.copy_of(root)
    path = "attention/__init__.py"  # written back unchanged, so that all tiers run
    whole = kinds.Mutant(
        "none", "", "", "", {path: book.text(path)}, tuple(book.pages), True
    )
    tier = runner.noticed_by(copy, whole)
    if tier is not None:
        log = (copy.parent / "log").read_text(encoding="utf-8")
        sys.exit(f"The unbroken book fails at the tier {tier!r}:\n{log[-3000:]}")
    shutil.rmtree(copy.parent)


def report(results, seconds):
    """Print the table, the survivors and the time."""
    total = Counter(m.kind for m, _, _ in results)
    killed = Counter(m.kind for m, tier, _ in results if tier)
    tiers = Counter(tier for _, tier, _ in results if tier)
    width = max(map(len, total))
    print(f"\n{'kind':{width}}  killed/total")
    for kind in sorted(total):
        print(f"{kind:{width}}  {killed[kind]}/{total[kind]}")
    print(f"{'all':{width}}  {killed.total()}/{total.total()}")
    print("noticed by:", ", ".join(f"{t} {n}" for t, n in tiers.most_common()))
    times = sorted(s for _, _, s in results)
    print(
        f"time: {seconds:.0f} s; the median mutant took {times[len(times) // 2]:.2f} s"
    )
    for mutant, tier, _ in results:
        if tier is None:
            print(f"\nSURVIVED: {mutant.kind} in {mutant.where}")
            print(f"- {mutant.before}\n+ {mutant.after}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=200, help="mutants to draw")
    parser.add_argument("--seed", type=int, default=1, help="of the drawing")
    parser.add_argument("--kind", help="only kinds whose function contains this word")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    if options.kind:
        kinds.KINDS = [k for k in kinds.KINDS if options.kind in k.__name__]
    if not kinds.KINDS:
        sys.exit(f"No kind's name contains {options.kind!r}.")
    started = time.perf_counter()
    runner.preload()
    book = kinds.Book(ROOT)
    print("checking the unbroken book ...", flush=True)
    _unbroken(ROOT, book)
    mutants = kinds.draw(random.Random(options.seed), book, options.number)
    fork = multiprocessing.get_context("fork")  # warm imports; Linux and macOS
    results = []
    with fork.Pool(options.jobs, _start, (ROOT,)) as pool:
        tried = pool.imap_unordered(_try, mutants)
        try:
            for result in tqdm(tried, total=len(mutants), unit="mutant"):
                results.append(result)
        except KeyboardInterrupt:
            print(f"\nstopped after {len(results)} of {len(mutants)} mutants")
    report(results, time.perf_counter() - started)
    complete = len(results) == len(mutants)
    sys.exit(0 if complete and all(tier for _, tier, _ in results) else 1)


if __name__ == "__main__":
    main()
