"""Break a copy of the repository in one place and run the tests that its file maps to.

Each run of pytest is forked from a process that has imported PyTorch already.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests import tiers
from tools.mutants import deselect
from tools.mutants.cover import tests_on
from tools.mutants.places import CELL

ROOT = Path(__file__).resolve().parents[2]
# A mutant may loop for ever; that counts as noticed. Of the processor's time, since a
# busy machine notices nothing; a test that only waits, as for a page whose script
# loops, has its end, too.
LIMIT_S, WAITING_S = 900, 1800
TIME = "the limit of time"
DONE = 64  # with pytest's status: a mutant may end the process, and with 0
STILL = ["-x", "-q", "-p", "no:cacheprovider", "--timeout=0",
         "-W", "ignore::pytest.PytestAssertRewriteWarning"]  # fmt: skip
# The id of a test may hold spaces, in its brackets.
FAILED = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+(?:\[.*?\](?= - |$))?)", re.M)
MADE = ("book/exercises.md", "book/solutions.md")
PAGES = ["tests/book/test_claims.py", "tests/book/test_phrases.py",
         "tests/book/test_shape_comments.py",
         "tests/coding_attention/figures/test_words.py"]  # fmt: skip


def runs(path, line):
    """What pytest is to run when a line of a file is broken, the quick ones first."""
    stem, folders = Path(path).stem, path.split("/")[:-1]
    if path.startswith("book/"):
        page = f"book/{stem}.ipynb"
        name = stem[:2] if stem[:2].isdigit() else ""
        yield [*_there(PAGES), "-k", stem]
        own = [f"tests/book/test_{part}.py" for part in (f"general_{name}", stem)]
        symbols = [f"tests/book/test_{part}.py" for part in ("formulas", "symbols")]
        yield _there([*own, *symbols])
        yield _naming(path, stem)
        if (ROOT / page).exists():
            yield ["--nbval", "--nbval-sanitize-with", "tests/nbval.cfg", page]
        return
    if "tasks" in folders:  # named by their stems, and the rest by its folder
        yield [*PAGES[1:2], "-k", stem]
        # What a task promises of its answer is held on the page of solutions.
        yield [*PAGES[2:3], "-k", "solutions or exercise"]
        # The site has a copy of its words, which only says that it has changed.
        meant = ["-k", "not same_words and not changed_file", "-m", "not browser"]
        yield ["tests/coding_attention/exercises", *meant]
        yield _naming(path, stem)
        return
    room = Path("tests", *folders)
    while not (ROOT / room).exists():
        room = room.parent
    # Named after the file, or after the folder where its tests have none.
    named = (stem, *folders[-1:])
    # What the theme makes of a page may be looked at beside the book's other tests.
    rooms = [room, Path("tests/book")] if folders[0] == "theme" else [room]
    own = {
        p for r in rooms for name in named for p in (ROOT / r).glob(f"test_*{name}*.py")
    }
    yield sorted(str(p.relative_to(ROOT)) for p in own)
    if path.endswith(".js") and "labs" in folders:
        yield [str(room), "-m", "not browser"]
        own = (ROOT / path).with_suffix(".py").exists()  # else all labs share it
        about = f"{stem} or {stem.replace('_', '')} or on_the_book"
        yield [str(room), "-m", "browser", *(["-k", about] if own else [])]
        return
    if path.endswith(".py"):
        yield ["tests/test_style.py", "-k", "module or heard"]
    # Nothing is recorded of threads and of processes of their own, hence the room.
    yield tests_on(path, line)
    if room.name != "coding_attention":  # all its rooms would be every second test
        yield [str(room), "-m", "not browser", "--tier", "test,pages,checker"]
    if path.endswith(".js") or folders[0] == "theme":
        yield ["tests/theme", "-m", "browser"]
    if folders[0] == "theme":
        yield ["tests/book/test_site.py"]
    yield _naming(path, stem)
    if path.endswith(".py"):
        yield _there(["tests/test_traced.py"])
    if path.startswith(("coding_attention/figures/", "coding_attention/models/")):
        # nbval compares what is drawn on the pages.
        pages = _pages_that_use(path)
        yield pages and ["--nbval", "--nbval-sanitize-with", "tests/nbval.cfg", *pages]


def _pages_that_use(path):
    """Pages whose cells call a module, or one of its room that imports it."""
    said = {
        file.stem: file.read_text("utf-8") for file in (ROOT / path).parent.glob("*.py")
    }
    del said["__init__"]
    found, new = set(), {Path(path).stem}
    while new:
        found |= new
        imports = re.compile(rf"(?:\.|import )(?:{'|'.join(new)})\b")
        new = {stem for stem, text in said.items() if imports.search(text)} - found
    names = [
        name
        for stem in found
        for name in re.findall(r"^(?:def|class) ([A-Za-z]\w*)", said[stem], re.M)
    ]
    calls = re.compile(rf"\b(?:{'|'.join([*found, *names])})[.(]")
    return [
        f"book/{page.stem}.ipynb"
        for page in sorted((ROOT / "book").glob("*.md"))
        if any(calls.search(cell[1]) for cell in CELL.finditer(page.read_text("utf-8")))
        and page.with_suffix(".ipynb").exists()
    ]


def _naming(path, stem):
    # Tests in other rooms that import the module, or name the file.
    module = path.removesuffix("/__init__.py").removesuffix(".py").replace("/", ".")
    parent, _, name = module.rpartition(".")
    said = re.compile(
        rf"\b{re.escape(module)}\b|from {re.escape(parent)} import [^\n]*\b{name}\b"
        rf"|\b{re.escape(Path(path).name)}\b"
    )
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    return [
        str(p.relative_to(ROOT)) for p in tests if said.search(p.read_text("utf-8"))
    ]


def _there(paths):
    return [p for p in paths if (ROOT / p).exists()]


def copy_of(root):
    """Make a copy of what git knows, for one worker."""
    copy = Path(tempfile.mkdtemp(prefix="mutants-")) / "book"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.split("\0")):
        if (root / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, copy / name)
    for command in ("init -q", "add -A"):  # some tests ask git which files there are
        subprocess.run(["git", *command.split()], cwd=copy, check=True)
    return copy


def preload():
    """Import what the tests need, but nothing that may be broken."""
    import bs4  # noqa: F401
    import matplotlib.figure  # noqa: F401
    import nbformat  # noqa: F401
    import nbval.plugin  # noqa: F401
    import pytest  # noqa: F401
    import torch

    torch.set_num_threads(1)


def passes(copy, arguments):
    """Run pytest in a fork; true if nothing failed."""
    child = os.fork()
    if child == 0:
        _run(copy, arguments)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) - DONE
    if status == 4 and not FAILED.search(_log(copy)):  # else a file does not import
        raise ValueError(f"pytest does not take {arguments}:\n{_log(copy)[-2000:]}")
    return status in (0, 5)  # 5: no test was collected


def _log(copy):
    return (copy.parent / "log").read_text(encoding="utf-8", errors="replace")


def _run(copy, arguments):
    import pytest

    log = os.open(copy.parent / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
    signal.alarm(WAITING_S)
    os.chdir(copy)
    os.environ["PYTHONPATH"] = str(copy)
    ours = ("tools", "theme", "attention", "attncheck", "coding_attention", "tests")
    for name in [n for n in sys.modules if n.partition(".")[0] in ours]:
        del sys.modules[name]  # pytest puts the copy's folder before all others
    status = 1
    try:
        status = int(pytest.main([*STILL, *arguments], plugins=[deselect]))
    finally:
        sys.stdout.flush()
        os._exit(DONE + status)


def broken(copy, place):
    """The new texts of the files that a place changes: path -> text."""
    text = (copy / place.path).read_text(encoding="utf-8")
    edits = {place.path: text[: place.start] + place.new + text[place.end :]}
    if "/tasks/" in place.path:  # the pages are made of it
        before = text[: place.start].rpartition("\n")[2]
        behind = text[place.end :].partition("\n")[0]
        old, new = (before + word + behind
                    for word in (text[place.start : place.end], place.new))  # fmt: skip
        for page in MADE:
            shown = (copy / page).read_text(encoding="utf-8")
            if old in shown:
                edits[page] = shown.replace(old, new)
    pair = copy / place.path.replace(".md", ".ipynb")
    if place.path.startswith("book/") and pair.exists():
        line = text[: place.start].rpartition("\n")[2]
        rest = text[place.end :].partition("\n")[0]
        old, new = (_escaped(line + word + rest) for word in
                    (text[place.start : place.end], place.new))  # fmt: skip
        stored = pair.read_text(encoding="utf-8").replace(old, new)
        if place.kind.startswith("caption"):
            # What a person does who then runs the page: the stored words follow.
            near = lambda word: _sentence(line, word, rest)  # noqa: E731
            stored = stored.replace(
                near(text[place.start : place.end]), near(place.new)
            )
        edits[str(pair.relative_to(copy))] = stored
    return edits


def _sentence(line, word, rest):
    # The words around a changed one that stand in one string of the source.
    return (
        line.rpartition('"')[2].rpartition("}")[2]
        + word
        + rest.partition('"')[0].partition("{")[0]
    )


def _escaped(line):
    return line.replace("\\", "\\\\").replace('"', '\\"')


def noticed(copy, place, against=None, tier=None):
    """Break the copy, run its tests until one fails, mend the copy.

    Args:
        copy: of the product, unbroken.
        place: where to break it.
        against: what pytest is to run; without it, what the place maps to.
        tier: of these tests, only those of one tier.

    Returns:
        The test that failed, which passes on the mended copy; None for a survivor.
    """
    edits = broken(copy, place)
    text = (copy / place.path).read_text(encoding="utf-8")
    line = text.count("\n", 0, place.start) + 1
    tests = [against] if against else runs(place.path, line)
    for run in filter(None, (_in_tier(run, tier) for run in tests)):
        while killer := _killer(copy, run, edits):
            # What fails on the unbroken product, too, has noticed nothing.
            if killer == TIME or "nbval" in run or _passes_mended(copy, killer):
                return killer
            print(f"{killer} fails unbroken:\n{_log(copy)[-2000:]}", flush=True)
            if killer in run:
                break
            run = [*run, "--deselect" if "::" in killer else "--ignore", killer]
    return None


def _in_tier(run, tier):
    if not tier:
        return run
    known = tiers.places(tiers.read())
    kept = [
        part
        for part in run
        if not (file := part.partition("::")[0]).endswith((".py", ".ipynb"))
        or tier in tiers.tiers_in(file, known)
    ]
    tests = [part for part in kept if part.startswith(("tests/", "book/"))]
    return [*kept, "--tier", tier] if set(tests) - {"tests/nbval.cfg"} else []


def _passes_mended(copy, test):
    # A file without the name of a test: it could not be imported.
    whole = [] if "::" in test else ["--collect-only"]
    try:
        return passes(copy, [test, *whole])
    except ValueError:
        return True  # it is made from what was broken: mended, there is no such test


def _killer(copy, run, edits):
    """The first test that fails on the broken copy, or none; the copy is mended."""
    before = {path: (copy / path).read_bytes() for path in edits}
    try:
        for path, text in edits.items():
            (copy / path).write_text(text, encoding="utf-8")
        if passes(copy, run):
            return None
    finally:
        for path, content in before.items():
            (copy / path).write_bytes(content)
    failed = FAILED.search(_log(copy))
    return failed[1] if failed else TIME
