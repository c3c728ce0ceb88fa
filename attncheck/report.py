"""What a check found, for a terminal, a notebook and a test."""

from __future__ import annotations

import contextlib
import html
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

WIDTH = 88
LABEL = 12  # columns for the name of a row

PAGES = {
    "02_simple_self_attention": "Simple self-attention",
    "03_trainable_self_attention": "Trainable self-attention",
    "04_causal_attention": "Causal attention",
    "05_multi_head_attention": "Multi-head attention",
    "06_averaging": "The averaging route",
    "07_where_the_time_goes": "Where the time goes",
    "10_attention_in_models": "Attention in real models",
}


STATUS = {"passed": 0, "failed": 1, "not usable": 2, "not judged": 3}
# Said of a class that refuses what it was given: that is no proof of a mistake.
REFUSALS = {"constructor_raises", "forward_raises"}


class CheckFailed(AssertionError):  # noqa: N818 (reads as a sentence in a test's log)
    """The verdict is not "passed"; the message is the whole report."""


@dataclass(frozen=True)
class Finding:
    """One mistake, and how it showed.

    Attributes:
        mistake: short name, a key of :data:`attncheck.MISTAKES`.
        title: the mistake in one line.
        test: the test that showed it.
        done: what the test did.
        seen: what came out.
        means: what that means.
        line: the line that is likely at fault, and what is meant instead.
        page: the page of the book to read.
        severity: "error" (results are wrong), "warning" (a trap for later) or "note"
            (a choice that may be meant).
        code: a code that stays the same, such as "ATT201".
        place: (file, line number, text) of the line at fault, or None.
        example: expected and actual weights of four tokens, or None.
        stage: the stage of attention that it changes, or what else shows it.
    """

    mistake: str
    title: str
    test: str
    done: str
    seen: str
    means: str
    line: str
    page: str
    severity: str = "error"
    code: str = ""
    place: tuple[str, int, str] | None = None
    example: tuple[Tensor, Tensor] | None = None
    stage: str = ""

    def rows(self) -> list[tuple[str, str]]:
        """Return (label, text) pairs in the order in which to read them."""
        where = []
        if self.place:
            file, number, text = self.place
            where = [("Where", f"{shown(file)}:{number}: {text}")]
        return [
            ("Test", self.test),
            ("Done", self.done),
            ("Seen", self.seen),
            ("Means", self.means),
            *where,
            ("Likely line", self.line),
            ("Read", f"{PAGES[self.page]} ({self.page})"),
        ]

    def table(self) -> list[str]:
        """Return the lines of expected beside actual weights, or nothing."""
        if self.example is None:
            return []
        lines = [f"{'expected weights':<27}actual weights (four tokens, one head)"]
        for expected, actual in zip(*self.example, strict=True):
            lines.append("   ".join(_numbers(row) for row in (expected, actual)))
        return lines


@dataclass(frozen=True)
class Result:
    """How one test ended.

    Attributes:
        test: name of the test.
        outcome: "passed", "failed", "not run" or "broken"; the last means that the
            checker itself failed, so that nothing is known.
        why: the reason if it did not run or is broken, else empty.
        mistakes: names of what it found, named causes and symptoms alike.
    """

    test: str
    outcome: str
    why: str = ""
    mistakes: tuple[str, ...] = ()


@dataclass
class Report:
    """All findings about one class, likely root causes first.

    Prints as text; shows as a table in a notebook.

    Attributes:
        subject: what was checked, with its arguments.
        findings: list of :class:`Finding`, empty if nothing is wrong.
        results: list of :class:`Result`, one for each test.
        notes: what else a reader should know; a note is no fault.
        usable: False if there was nothing that could be tested.
        problem: why not.
        not_compared: why it was not compared with what is right, or "".
        proposal: options that would have it compared, by name.
        command: the call or the command line that would, complete; "" where none can.
        needed: what has to be written by hand instead, in words.
        strict: whether warnings fail too.
    """

    subject: str
    findings: list[Finding] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    usable: bool = True
    problem: str = ""
    not_compared: str = ""
    proposal: dict[str, Any] = field(default_factory=dict)
    command: str = ""
    needed: str = ""
    strict: bool = False

    def failing(self) -> list[Finding]:
        """Return the findings that fail: errors, with ``strict`` warnings too."""
        severities = ("error", "warning") if self.strict else ("error",)
        return [
            f
            for f in self.findings
            if f.severity in severities and f.mistake not in REFUSALS
        ]

    @property
    def verdict(self) -> str:
        """One of "passed", "failed", "not usable" and "not judged".

        A class passes if it was compared with what is right and nothing was found that
        fails: errors, with ``strict`` warnings too. Without a comparison, or where a
        test broke inside the checker, nothing is known: it is not judged. Nor is a
        class that raises whatever it is given, since it may want something else.
        """
        if not self.usable:
            return "not usable"
        if self.failing():
            return "failed"
        broken = any(result.outcome == "broken" for result in self.results)
        return "not judged" if broken or self.not_compared else "passed"

    @property
    def ok(self) -> bool:
        """Whether the verdict is "passed"."""
        return self.verdict == "passed"

    @property
    def exit_status(self) -> int:
        """What the command line exits with: 0 passed, 1 failed.

        2 if nothing could be tested, 3 if it ran and could not be judged.
        """
        return STATUS[self.verdict]

    def raise_for_failures(self) -> None:
        """Raise :class:`CheckFailed` with the report unless :attr:`ok`."""
        if not self.ok:
            # The first line is what a summary of tests shows.
            first = next(
                (f"{f.mistake} ({f.code}): {f.title}" for f in self.failing()),
                self.headline(),
            )
            raise CheckFailed(f"{first}\n\n{self}")

    def headline(self) -> str:
        """Return the outcome in one line."""
        if not self.usable:
            return f"{self.subject}: couldn't be tested"
        passed = sum(result.outcome == "passed" for result in self.results)
        ran = sum(result.outcome != "not run" for result in self.results)
        count = len(self.findings)
        found = {0: "nothing wrong found", 1: "1 finding"}.get(
            count, f"{count} findings"
        )
        if self.verdict == "not judged":
            found = "NOT JUDGED" + (f", {found}" if count else "")
        elif self.not_compared:
            found += ", not compared with attention"
        left_out = len(self.results) - ran
        broken = sum(result.outcome == "broken" for result in self.results)
        others = f", {left_out} not run" if left_out else ""
        others += f", {broken} broken inside the checker" if broken else ""
        tests = f"{passed} of {ran} tests passed{others}"
        return f"{self.subject}: {found}, {tests}"

    def __str__(self) -> str:
        lines = _wrap(self.headline())
        if self.problem:
            lines += ["", *_wrap(self.problem)]
        if self.not_compared:
            lines += ["", *_wrap(f"Not compared: {self.not_compared}.")]
        if self.verdict == "not judged":
            if self.command:
                lines += ["", "To get a verdict, run:", f"   {self.command}"]
            elif self.needed:
                lines += ["", *_wrap(f"To get a verdict: {self.needed}.")]
        for number, finding in enumerate(self.findings, start=1):
            kind = f"{finding.severity} {finding.code}".rstrip()
            title = f"{number}. {finding.title} [{kind}]"
            lines += ["", *_wrap(title, indent="   ")]
            for label, text in finding.rows():
                lines += _row(label, text)
            lines += [f"   {line}" for line in finding.table()]
        if self.results:
            lines += ["", "Tests"]
        for result in self.results:
            why = f": {result.why}" if result.why else ""
            lines += _row(result.outcome, result.test + why)
        if self.notes:
            lines += ["", "Notes"]
        for note in self.notes:
            lines += _wrap(f" - {note}", indent="   ")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = [f"<p><strong>{_escape(self.headline())}</strong></p>"]
        if self.problem:
            parts.append(f"<p>{_escape(self.problem)}</p>")
        if self.not_compared:
            parts.append(f"<p>Not compared: {_escape(self.not_compared)}.</p>")
        if self.verdict == "not judged" and (self.command or self.needed):
            told = f"run: <code>{_escape(self.command)}</code>"
            told = told if self.command else _escape(self.needed)
            parts.append(f"<p>To get a verdict, {told}</p>")
        for number, finding in enumerate(self.findings, start=1):
            kind = f"{finding.severity} {finding.code}".rstrip()
            caption = f"{number}. {finding.title} ({kind})"
            parts.append(_table(caption, finding.rows()))
            if finding.example is not None:
                lines = "\n".join(finding.table())
                parts.append(f"<pre>{_escape(lines)}</pre>")
        if self.results:
            rows = [
                (r.test, f"{r.outcome}: {r.why}".rstrip(": ")) for r in self.results
            ]
            table = _table("Tests", rows, head=("Test", "Outcome"))
            passed = "All tests" if self.ok else "All tests, passed ones included"
            parts.append(f"<details><summary>{passed}</summary>{table}</details>")
        if self.notes:
            items = "".join(f"<li>{_escape(note)}</li>" for note in self.notes)
            parts.append(f"<p>Notes</p><ul>{items}</ul>")
        return f'<div class="attention-check">{"".join(parts)}</div>'


def worst(reports: Iterable[Report]) -> int:
    """Return the exit status of several reports: 1 before 2, 2 before 3, then 0."""
    statuses = {report.exit_status for report in reports}
    return next((status for status in (1, 2, 3) if status in statuses), 0)


def chosen(
    finding: Finding, select: Sequence[str] = (), ignore: Sequence[str] = ()
) -> bool:
    """Whether a finding is asked for, by the start of its code or by its name."""

    def among(given: Sequence[str]) -> bool:
        given = given.replace(",", " ").split() if isinstance(given, str) else given
        return any(
            finding.mistake == one or finding.code.startswith(one.upper())
            for one in given
        )

    return (not select or among(select)) and not among(ignore)


def shown(file: str) -> str:
    """Return a file's path as it is seen from here."""
    path = Path(file)
    with contextlib.suppress(ValueError, OSError):
        return path.resolve().relative_to(Path.cwd()).as_posix()
    return str(path)


def _numbers(row: Tensor) -> str:
    return " ".join(f"{float(number):5.2f}" for number in row)


def _wrap(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=indent, break_on_hyphens=False
    ) or [""]


def _row(label: str, text: str) -> list[str]:
    first = f"   {label:<{LABEL}}"
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_on_hyphens=False,
    )


def _escape(text: object) -> str:
    # A report may quote code, and names that a reader chose.
    return html.escape(str(text), quote=True)


def _table(
    caption: str, rows: Iterable[tuple[str, str]], head: tuple[str, str] | None = None
) -> str:
    header = ""
    if head:
        cells = "".join(f'<th scope="col">{_escape(name)}</th>' for name in head)
        header = f"<thead><tr>{cells}</tr></thead>"
    left = "text-align: left; vertical-align: top"
    body = "".join(
        f'<tr><th scope="row" style="{left}; white-space: nowrap">{_escape(name)}</th>'
        f'<td style="{left}">{_escape(text)}</td></tr>'
        for name, text in rows
    )
    caption = f'<caption style="text-align: left">{_escape(caption)}</caption>'
    return f"<table>{caption}{header}<tbody>{body}</tbody></table>"
