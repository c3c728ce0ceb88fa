"""What ruff, codespell and import-linter find anywhere, and that no test waits."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("command", ["check", "format --check"])
def test_ruff(command):
    result = subprocess.run(
        [sys.executable, "-m", "ruff", *command.split(), "."],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr


def test_nothing_is_misspelled():
    listed = subprocess.run(
        ["git", "ls-files", "--", "*.md", "*.py"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert "README.md" in listed
    files = [name for name in listed if (ROOT / name).is_file()]
    result = subprocess.run(
        [Path(sys.executable).with_name("codespell"), *files],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr


def test_imports_run_one_way():
    """The layers of pyproject.toml hold, and no two modules import each other."""
    lint = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    result = subprocess.run(
        [sys.executable, "-c", lint],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "kept, 0 broken" in result.stdout, result.stdout + result.stderr


# What stands for a layer or a submission that takes its time.
SLOW_ON_PURPOSE = {
    "tests/attncheck/hostile.py",
    "tests/attncheck/test_robustness.py",
    "tests/coding_attention/grading/test_runner.py",
}


def test_no_test_waits_for_a_time():
    wait = re.compile(r"\.(?:sleep|wait_for_timeout)\(")
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in ("tests", "tools")
        for path in (ROOT / folder).rglob("*.py")
        if wait.search(path.read_text(encoding="utf-8"))
    }
    too_many = found - SLOW_ON_PURPOSE
    assert not too_many, "wait for a state: a busy machine makes any time too short"
