"""What the scripts of the tools do beside their libraries: arguments, limits, exits."""

import subprocess
import sys
import urllib.error
from email.message import Message

import pytest

from tools import (
    commands,
    environments,
    install,
    links,
    notebooks,
    pdf,
    repository,
)


@pytest.mark.parametrize("tool", [commands, environments, notebooks, pdf, repository])
def test_a_tool_says_what_it_is_for(tool, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tool", "--help"])
    with pytest.raises(SystemExit) as ended:
        tool.main()
    assert ended.value.code == 0
    told = " ".join(capsys.readouterr().out.split())
    assert tool.__doc__.splitlines()[0] in told
    assert len(told) > 100


def answers(code):
    if code is None:
        return TimeoutError("no answer")
    return urllib.error.HTTPError("x", code, "", Message(), None)


@pytest.mark.parametrize(
    ("code", "said"),
    [(403, None), (429, None), (404, "answers 404"), (500, "answers 500"),
     (None, "cannot be reached: no answer")],
)  # fmt: skip
def test_a_host_that_wants_no_programs_breaks_no_link(code, said, monkeypatch):
    asked = []

    def urlopen(request, timeout):
        asked.append((request.full_url, timeout))
        raise answers(code)

    monkeypatch.setattr(links.urllib.request, "urlopen", urlopen)
    assert links.failure("https://a.example/b") == said
    assert asked == [("https://a.example/b", 30)]


def test_a_link_is_asked_for_once_with_all_its_pages(tmp_path):
    link = "<a href='{}'>x</a>"
    (tmp_path / "a.html").write_text(link.format("http://a.example/#top") * 2)
    (tmp_path / "b.html").write_text(
        link.format("http://a.example/") + link.format("mailto:a@b.example")
    )
    assert links.outside_links(tmp_path) == {"http://a.example/": {"a.html", "b.html"}}


def test_no_site_is_told(tmp_path, monkeypatch):
    for tool, words in ((links, [str(tmp_path / "none")]), (pdf, ["--site", "none"])):
        monkeypatch.setattr(sys, "argv", ["tool", *words])
        with pytest.raises(SystemExit, match="make book"):
            tool.main()


@pytest.mark.parametrize(("what", "torch"), [("site", False), ("all", True)])
def test_pytorch_comes_first_and_only_where_it_is_needed(what, torch, monkeypatch):
    ran, given = [], []
    monkeypatch.setattr(sys, "argv", ["install", what])
    monkeypatch.delenv("NEWEST", raising=False)
    monkeypatch.setattr(install.subprocess, "run", lambda c, **_: ran.append(c))
    monkeypatch.setattr(install, "install", lambda *words: given.append(words))
    install.main()
    assert [command[-3:] for command in ran] == [["-c", "constraints.txt", "torch"]][
        : int(torch)
    ]
    assert given == [(install.wanted(what), install.PINNED)]


@pytest.mark.parametrize("failed", [[], ["the last"]])
def test_the_job_of_the_commands_ends_as_they_did(failed, monkeypatch, capsys):
    seen = {}

    def run(found, folder):
        seen["copied"] = (folder / "copy" / "README.md").exists()
        return found[-1:] if failed else []

    monkeypatch.setattr(sys, "argv", ["commands"])
    monkeypatch.setattr(commands, "run", run)
    copied = lambda target: (target / "README.md").touch()  # noqa: E731
    monkeypatch.setattr(commands, "fresh_copy", copied)
    with pytest.raises(SystemExit) as ended:
        commands.main()
    assert seen == {"copied": True}
    assert ended.value.code == bool(failed)
    told = capsys.readouterr().out.splitlines()
    assert told[-1].endswith(f" passed, {len(failed)} failed")
    assert len(told) == 1 + len(failed)


def test_the_commands_can_be_listed(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["commands", "--list"])
    monkeypatch.setattr(subprocess, "run", None)
    commands.main()
    told = capsys.readouterr().out
    assert "README.md:" in told
    assert "make test" in told
