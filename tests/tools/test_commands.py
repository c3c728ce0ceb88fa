"""The job that runs the commands of README: what it takes from a text, what it says."""

import subprocess

from tools import commands

TEXT = """Words.

```console
echo one
test -f README.md
```

```console
$ python -c "print(1)"
1
```

```console
false
```
<!-- not run: it fails -->

```python
raise SystemExit(1)
```

```console
cd nowhere
```
"""


def test_blocks_are_taken_as_they_are_written():
    found = commands.blocks("README.md", TEXT)
    assert [block.script for block in found] == [
        "echo one\ntest -f README.md",
        'python -c "print(1)"',
        "false",
        "cd nowhere",
    ]
    assert [block.place for block in found][1:3] == ["README.md:8", "README.md:13"]
    assert [block.reason for block in found] == ["", "", "it fails", ""]


def test_a_block_that_fails_is_told(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(commands, "environment", lambda folder: {"PATH": "/usr/bin"})
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "README.md").touch()
    failed = commands.run(
        commands.blocks("T", TEXT.replace("python", "true ")), tmp_path
    )
    assert [block.script for block in failed] == ["cd nowhere"]
    assert "T:13: not run, it fails" in capfd.readouterr().out


def test_every_reason_is_needed_and_every_text_has_commands():
    for name in commands.TEXTS:
        text = (commands.ROOT / name).read_text(encoding="utf-8")
        assert text.count("<!-- not run:") == sum(
            bool(block.reason) for block in commands.blocks(name, text)
        )
    readme = (commands.ROOT / "README.md").read_text(encoding="utf-8")
    scripts = [block.script for block in commands.blocks("README.md", readme)]
    assert "make test" in scripts[-1]


def test_the_copy_has_what_git_has_in_its_folders(tmp_path, monkeypatch):
    here = tmp_path / "here"
    (here / "a" / "b").mkdir(parents=True)
    (here / "a" / "b" / "c.txt").write_text("one", encoding="utf-8")
    (here / ".gitignore").write_text("*.log\n", encoding="utf-8")
    (here / "left.log").write_text("two", encoding="utf-8")
    subprocess.run(["git", "init", "-q"], cwd=here, check=True)
    monkeypatch.setattr(commands, "ROOT", here)
    commands.fresh_copy(tmp_path / "copy")
    paths = (p.relative_to(tmp_path / "copy") for p in (tmp_path / "copy").rglob("*"))
    found = {path.as_posix() for path in paths if path.parts[0] != ".git"}
    assert found == {"a", "a/b", "a/b/c.txt", ".gitignore"}


def test_the_shell_of_a_reader_has_the_new_environment_and_nothing_of_ours(
    tmp_path, monkeypatch
):
    asked = []
    monkeypatch.setattr(
        commands.subprocess, "run", lambda command, check: asked.append(command)
    )
    for name in ("VIRTUAL_ENV", "PYTHONPATH", "MAKEFLAGS", "MFLAGS", "PYTEST_X"):
        monkeypatch.setenv(name, "ours")
    monkeypatch.setenv("PATH", "/usr/bin")
    variables = commands.environment(tmp_path / "new")
    assert asked[0][1:] == ["-m", "venv", str(tmp_path / "new")]
    assert "ours" not in variables.values()
    assert variables["PATH"].split(":") == [str(tmp_path / "new/bin"), "/usr/bin"]
    assert variables["PIP_CONSTRAINT"].endswith("constraints.txt")
    assert variables["CI"] == "true"
