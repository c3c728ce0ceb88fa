"""Run the checks of `make test` on a copy of the repository with one place broken."""

import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

LIMIT_S = 300  # a mutant may loop for ever; that counts as noticed
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv*", "_build", "node_modules", "__pycache__", ".*_cache"
)
STILL = [
    "-x", "-q", "-p", "no:cacheprovider", "--timeout=0",
    "-W", "ignore::pytest.PytestAssertRewriteWarning",  # imported before the fork
]  # fmt: skip
ROOT = Path(__file__).resolve().parents[2]
PACKAGE_FIRST = [
    "tests/attention/test_printed_values.py", "tests/attention/test_against_torch.py",
    "tests/attention/test_bad_input.py", "tests/attention/test_gradients.py",
]  # fmt: skip
NO_EXECUTION = [
    f"tests/book/test_{name}.py"
    for name in (
        "pairs", "printed_values_on_pages", "prose", "claims", "links", "listings",
        "data",
    )
]  # fmt: skip


def copy_of(root):
    """Make a working copy for one worker."""
    folder = Path(tempfile.mkdtemp(prefix="mutants-"))
    copy = folder / "book"
    shutil.copytree(root, copy, ignore=NOT_COPIED, symlinks=True)
    return copy


def preload():
    """Import what the checks need, so that each forked run starts with it.

    Not the package and not the tests: those come from the broken copy.
    """
    import bs4  # noqa: F401
    import nbformat  # noqa: F401
    import nbval.plugin  # noqa: F401
    import pytest  # noqa: F401
    import torch
    import yaml  # noqa: F401

    torch.set_num_threads(1)


def passes(copy, arguments):
    """Run pytest with these arguments in a fork; True if everything passed."""
    child = os.fork()
    if child == 0:
        _run_pytest(copy, arguments)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 0


def _run_pytest(copy, arguments):
    import pytest

    log = os.open(copy.parent / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    signal.alarm(LIMIT_S)
    os.chdir(copy)
    os.environ["PYTHONPATH"] = str(copy)  # for the kernels of notebooks
    sys.path.insert(0, str(copy))
    for name in [n for n in sys.modules if n.partition(".")[0] == "tools"]:
        del sys.modules[name]  # so that the copy's tools are imported, not these
    status = 1
    try:
        status = int(pytest.main([*STILL, *arguments]))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _exists(path):
    return (ROOT / path).exists()


def _elsewhere(modules):
    # Modules whose tests stand in a folder of their own.
    return [f"tests/{name}" for name in modules if _exists(f"tests/{name}")]


def tiers(mutant):
    """The checks that may notice, the quick ones first."""
    yield "still", NO_EXECUTION
    touched = list(mutant.edits)
    modules = [Path(p).stem for p in touched if p.startswith("attention/")]
    if modules:
        own = [f"tests/attention/test_{name}.py" for name in modules]
        yield "package", [*filter(_exists, own), *PACKAGE_FIRST]
        yield "package", ["tests/attention", *_elsewhere(modules)]
    if mutant.pages:
        notebooks = [f"book/{page}.ipynb" for page in mutant.pages]
        yield "nbval", [
            "--nbval", "--nbval-sanitize-with", "tests/nbval.cfg", *notebooks
        ]  # fmt: skip
    if any(path.startswith("tests/reference") for path in touched):
        yield "package", ["tests/attention/test_printed_values.py"]
    if mutant.site:
        yield "site", ["tests/book/test_site.py"]


def noticed_by(copy, mutant):
    """Break the copy, run the tiers until one fails, mend the copy.

    Returns:
        The name of the tier that failed, or None for a survivor.
    """
    originals = {}
    try:
        for path, text in mutant.edits.items():
            originals[path] = (copy / path).read_bytes()
            (copy / path).write_text(text, encoding="utf-8")
        for name, arguments in tiers(mutant):
            if not passes(copy, arguments):
                return name
        return None
    finally:
        for path, content in originals.items():
            (copy / path).write_bytes(content)
