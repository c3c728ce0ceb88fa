"""What ruff, codespell and import-linter find anywhere, and that no test waits."""

import ast
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
    "tests/attncheck/test_robustness.py": 3,
    "tests/coding_attention/labs/harness.py": 1,  # between two looks at a live kernel
}


def waits(source):
    """Give the lines that wait for a time and not for a state."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    names = [(call.lineno, getattr(call.func, "attr", "")) for call in calls]
    return [line for line, name in names if name in ("sleep", "wait_for_timeout")]


def test_no_test_waits_for_a_time():
    found = {}
    for folder in ("tests", "tools"):
        for path in (ROOT / folder).rglob("*.py"):
            source = path.read_text(encoding="utf-8")
            if "sleep" in source or "wait_for_timeout" in source:  # to parse is slow
                found[path.relative_to(ROOT).as_posix()] = waits(source)
    too_many = {
        name: lines
        for name, lines in found.items()
        if len(lines) > SLOW_ON_PURPOSE.get(name, 0)
    }
    assert too_many == {}, "wait for a state: a busy machine makes any time too short"


def runs_when_imported(source):
    """Lines that ask for a module's name otherwise than ``== "__main__"``."""
    asked = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.If)]
    return [
        node.lineno for node in asked
        if "__name__" in ast.unparse(node.test)
        and ast.unparse(node.test) != "__name__ == '__main__'"
    ]  # fmt: skip


def test_a_module_is_a_program_only_when_it_is_called_as_one():
    listed = subprocess.run(
        ["git", "grep", "-l", "--untracked", "^if __name__", "--", "*.py"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert "tools/notebooks.py" in listed
    sources = {name: (ROOT / name).read_text(encoding="utf-8") for name in listed}
    assert not [name for name, text in sources.items() if runs_when_imported(text)]


def test_a_module_that_runs_when_it_is_imported_is_seen():
    assert runs_when_imported('if __name__ != "__main__":\n    main()') == [1]
    assert runs_when_imported('if __name__ == "__main__":\n    main()') == []


def unheard(source):
    """Give the lines that run a command and never ask how it ended."""
    for scope in ast.walk(ast.parse(source)):
        if isinstance(scope, ast.FunctionDef) and "returncode" not in ast.unparse(
            scope
        ):
            for call in ast.walk(scope):
                if getattr(call, "keywords", None) and "subprocess.run" in ast.unparse(
                    call.func
                ):
                    said = [
                        ast.unparse(k.value) for k in call.keywords if k.arg == "check"
                    ]
                    if said != ["True"]:
                        yield call.lineno


def test_a_command_that_fails_is_heard():
    """Its status is asked for, or it raises."""
    for room in ("tools", "theme", "experiments"):
        for path in sorted((ROOT / room).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            assert "subprocess" not in source or not list(unheard(source)), path


def test_a_command_that_is_not_heard_is_seen():
    code = "def f():\n    subprocess.run(['a'], check={})\n    {}"
    assert list(unheard(code.format(False, "pass"))) == [2]
    assert not list(unheard(code.format(True, "pass")))
    assert not list(unheard(code.format(False, "return done.returncode")))


def test_a_wait_is_seen():
    assert waits("page.wait_for_timeout(9)\nx()\ntime.sleep(1)\n'time.sleep(1)'") == [
        1,
        3,
    ]
