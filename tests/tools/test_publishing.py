"""The files by which others run and publish the book."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.book.pages import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_workflows_are_safe_by_zizmors_rules():
    zizmor = Path(sys.executable).with_name("zizmor")
    command = [zizmor, "--offline", "--no-progress", "--quiet", *WORKFLOWS]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_has_few_rights(path):
    """Zizmor sees neither a right that each job overrides nor a job's own."""
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] in ({}, {"contents": "read"})
    for name, job in workflow["jobs"].items():
        writes = {k for k, v in job.get("permissions", {}).items() if v == "write"}
        may_push = (path.stem, name) == ("publish", "notebooks")
        assert writes <= ({"contents"} if may_push else {"pages", "id-token"}), name


def test_nothing_is_published_that_the_two_commands_have_not_passed():
    jobs = {
        path.stem: yaml.safe_load(path.read_text("utf-8"))["jobs"] for path in WORKFLOWS
    }
    waits_for, found = {}, ["deploy"]
    while found:
        job = found.pop()
        needs = jobs["publish"][job].get("needs", [])
        waits_for[job] = [needs] if isinstance(needs, str) else needs
        found += waits_for[job]
    assert set(waits_for) == set(jobs["publish"])
    assert jobs["publish"]["tests"]["uses"].endswith("/ci.yml")
    ran = [job["steps"][-1]["run"] for job in jobs["ci"].values()]
    assert ran == ["make test", "make test-site"]
    assert not any("needs" in job for job in jobs["ci"].values()), "in parallel"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_runs_what_exists(path):
    text = path.read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"run: make ([\w-]+)", text):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for part in re.findall(r"PARTS=(\w+)", text):
        assert re.search(rf"^weekly-{part}:", makefile, re.MULTILINE), part
    for module in re.findall(r"python -m (tools[\w.]*)", text):
        place = ROOT / module.replace(".", "/")
        assert place.with_suffix(".py").exists() or (place / "__main__.py").exists()


def test_binder_installs_the_package_with_every_version_pinned():
    folder = ROOT / "binder"
    lines = (folder / "requirements.txt").read_text(encoding="utf-8").splitlines()
    constraints = next(line for line in lines if line.startswith("-c ")).split()[1]
    assert (folder / constraints).resolve() == ROOT / "constraints.txt"
    extra = re.fullmatch(r"-e \.\[(\w+)\]", lines[-1])[1]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = " ".join(project["project"]["optional-dependencies"][extra])
    assert "coding-attention[pages]" in wanted
    assert "jupyterlab" in wanted
    assert os.access(folder / "postBuild", os.X_OK)


def test_other_files_are_readable():
    container = ROOT / ".devcontainer" / "devcontainer.json"
    assert "make setup" in json.loads(container.read_text())["postCreateCommand"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    source = (ROOT / "attention" / "__init__.py").read_text(encoding="utf-8")
    assert f'__version__ = "{citation["version"]}"' in source
    for form in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        assert yaml.safe_load(form.read_text(encoding="utf-8"))
