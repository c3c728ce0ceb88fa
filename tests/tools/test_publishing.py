"""The PDF, the link check, and the files by which others run and publish the book."""

import contextlib
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
from tools import pdf

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_pdf_stands_beside_the_pages_unless_told_otherwise(monkeypatch, tmp_path):
    monkeypatch.setattr(pdf, "list_pages", lambda: ["one"])
    monkeypatch.setattr(pdf, "browser", contextlib.nullcontext)
    monkeypatch.setattr(pdf, "print_page", lambda _, address: (address, b""))
    (tmp_path / "one.html").write_text("a page")

    def joined(parts, target):
        target.write_bytes(b"PDF")
        return len(parts)

    monkeypatch.setattr(pdf, "join", joined)
    for words in ([], ["--out", str(tmp_path / "own.pdf")]):
        monkeypatch.setattr("sys.argv", ["pdf", "--site", str(tmp_path), *words])
        pdf.main()
    assert {p.name for p in tmp_path.glob("*.pdf")} == {pdf.NAME, "own.pdf"}


def test_workflows_are_safe_by_zizmors_rules():
    zizmor = Path(sys.executable).with_name("zizmor")
    command = [zizmor, "--offline", "--no-progress", "--quiet", *WORKFLOWS]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_is_pinned_and_has_few_rights(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    rights = workflow["permissions"]
    assert rights in ({}, {"contents": "read"}), rights
    for name, job in workflow["jobs"].items():
        writes = {k for k, v in job.get("permissions", {}).items() if v == "write"}
        may_push = (path.stem, name) == ("publish", "notebooks")
        assert writes <= ({"contents"} if may_push else {"pages", "id-token"}), writes
        if "uses" in job:  # a workflow of ours, which is one of these
            assert (ROOT / job["uses"].removeprefix("$/")) in WORKFLOWS
            continue
        assert job["timeout-minutes"] <= 60
        for step in job["steps"]:
            if "uses" in step:
                assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"]), step
            if "checkout" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False


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
    for module in re.findall(r"python -m (tools[\w.]*)", text):
        place = ROOT / module.replace(".", "/")
        assert place.with_suffix(".py").exists() or (place / "__main__.py").exists()
    if ".ci/run" in text:
        assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_a_release_is_published_without_a_password_and_only_if_an_owner_says_so():
    path = ROOT / ".github" / "workflows" / "release.yml"
    text = path.read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    assert jobs["build"]["if"] == "vars.PUBLISH == 'true'"
    assert jobs["build"]["permissions"] == {"contents": "read"}
    # Skipped with the job that it needs; what builds may not publish.
    assert jobs["publish"]["needs"] == "build"
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["environment"] == "pypi"
    upload = jobs["publish"]["steps"][-1]
    assert upload["uses"].startswith("pypa/gh-action-pypi-publish@")
    assert upload["with"] == {"attestations": True}
    assert "secrets" not in text
    assert "`PUBLISH`" in (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")


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
