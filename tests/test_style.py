"""What ruff and import-linter say of the whole repository."""

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


def test_imports_run_one_way():
    """The layers of pyproject.toml hold, and no two modules import each other."""
    lint = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    result = subprocess.run(
        [sys.executable, "-c", lint],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "kept, 0 broken" in result.stdout, result.stdout + result.stderr
