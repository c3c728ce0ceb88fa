"""New environments for readers' pages, without making one: what is asked for, and told.

That pages run in them is seen by the weekly job, which makes them.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from tools import environments


@pytest.fixture
def asked(monkeypatch):
    """Every command that would have run, as its words."""
    commands = []

    def run(*command, **options):
        commands.append([str(word) for word in command])
        return SimpleNamespace(stdout="314\t/somewhere/env\n")

    recipe = lambda self: commands.append("binder")  # noqa: E731
    monkeypatch.setattr(environments, "run", run)
    monkeypatch.setattr(environments.Environment, "_follow_the_recipe", recipe)
    return commands


@pytest.mark.parametrize("kind", environments.BEFORE)
def test_an_environment_gets_what_its_host_has(kind, asked, tmp_path):
    there = environments.Environment(kind, tmp_path, "python3.9")
    assert asked[0] == ["python3.9", "-m", "venv", str(tmp_path / "env")]
    assert asked[1][:2] == ["git", "clone"]
    installed = [c[c.index("install") + 2 :] for c in asked if "install" in c]
    assert installed == environments.BEFORE[kind]
    assert all(c[0] == str(tmp_path / "env/bin/python") for c in asked if "pip" in c)
    assert ("binder" in asked) == (kind == "binder")
    assert there.megabytes() == 314
    assert 0 <= there.seconds["built"] < 60


def test_nothing_of_this_machine_is_in_a_new_environment(asked, tmp_path):
    there = environments.Environment("bare", tmp_path, sys.executable)
    assert there.variables["HOME"] == str(tmp_path / "home")
    assert there.variables["PYTHONPATH"] == ""
    first = there.variables["PATH"].split(os.pathsep)[0]
    assert first == str(tmp_path / "env/bin")
    assert Path(there.variables["PIP_CONSTRAINT"]).name == "constraints.txt"
    spec = tmp_path / "jupyter/kernels/reader/kernel.json"
    argv = json.loads(spec.read_text(encoding="utf-8"))["argv"]
    assert argv[0] == str(there.python)
    assert argv[1:] == ["-m", "ipykernel_launcher", "-f", "{connection_file}"]


@pytest.fixture
def here(asked, tmp_path, monkeypatch):
    """An environment whose kernel is the one that runs the tests."""
    there = environments.Environment("bare", tmp_path, sys.executable)
    for key in ("HOME", "PATH"):
        there.variables[key] = os.environ[key]
    spec = tmp_path / "jupyter/kernels/reader/kernel.json"
    argv = [sys.executable, *json.loads(spec.read_text())["argv"][1:]]
    spec.write_text(
        json.dumps({"argv": argv, "display_name": "reader", "language": "python"})
    )
    there.copy.mkdir()
    commit = "-c user.name=a -c user.email=a@b commit -q --allow-empty -m a"
    for command in ("init -q", commit):
        subprocess.run(["git", *command.split()], cwd=there.copy, check=True)
    there.asked = []
    told = lambda notebook, *given: there.asked.append(given)  # noqa: E731
    monkeypatch.setattr(environments.address, "with_cell", told)
    monkeypatch.setenv("JUPYTER_PATH", "")
    return there


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        (["import os; assert not os.listdir()", "1"], ""),
        (["1", "raise KeyError('lost')", "2"], "KeyError: 'lost'"),
    ],
)
def test_a_page_runs_in_an_empty_folder_and_tells_why_it_stopped(
    here, tmp_path, cells, why
):
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell("# A page")]
        + [nbformat.v4.new_code_cell(source) for source in cells]
    )
    notebook.metadata.kernelspec = {"name": "reader", "display_name": "reader"}
    nbformat.write(notebook, tmp_path / "page.ipynb")
    assert here.open(tmp_path / "page.ipynb") == why
    [(address, commit)] = here.asked  # of the copy, at the commit that is there
    assert address == f"file://localhost{here.copy}"
    assert re.fullmatch("[0-9a-f]{40}", commit)
    # The second cell's time is known where it ran to its end.
    steps = ["install cell", *(["first cell"] if not why else [])]
    assert list(here.seconds) == ["built", *steps]


def test_the_wrong_python_for_the_recipe_is_refused(tmp_path):
    there = SimpleNamespace(
        variables={"PIP_CONSTRAINT": "x"}, copy=tmp_path, python=sys.executable
    )
    (tmp_path / "binder").mkdir()
    (tmp_path / "binder/runtime.txt").write_text("python-2.7\n")
    with pytest.raises(SystemExit, match=r"python-2\.7: --python python…"):
        environments.Environment._follow_the_recipe(there)
    assert "PIP_CONSTRAINT" not in there.variables


@pytest.mark.parametrize(("why", "status"), [("", 0), ("KeyError: 1", 1)])
def test_what_ran_is_told_and_what_did_not_ends_with_1(
    why, status, monkeypatch, capsys
):
    class Fake:
        def __init__(self, kind, folder, python):
            self.seconds = {"built": 61.4}

        def megabytes(self):
            return 7

        def open(self, page):
            return why if "02" in page.stem else ""

    monkeypatch.setattr(environments, "Environment", Fake)
    monkeypatch.setattr(
        sys, "argv", ["environments", "bare", "--pages", "02", "05_multi"]
    )
    with pytest.raises(SystemExit) as ended:
        environments.main()
    told = capsys.readouterr().out
    assert (ended.value.code or 0) == status
    assert f"bare: 7 MB, built 61 s, {2 - status} of 2 pages ran" in told
    assert ("02_simple_self_attention: KeyError: 1" in told) == bool(status)


def test_subprocesses_that_fail_stop_the_job():
    with pytest.raises(subprocess.CalledProcessError):
        environments.run(sys.executable, "-c", "raise SystemExit(3)")
