"""What a check found: fifteen lines for a terminal, a table for a notebook, a test."""

from __future__ import annotations

import contextlib
import html
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import metadata
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
# The class refused what we gave it, which doesn't prove a mistake.
REFUSALS = {"constructor_raises", "forward_raises"}


class CheckFailed(AssertionError):  # noqa: N818 (reads as a sentence in a test's log)
    """The verdict is not "passed"; the message is the report."""


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
        shown: wrong and right lines of a class with this mistake.
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
    shown: str = ""

    def rows(self, verbose: bool = True) -> list[tuple[str, str]]:
        """Return (label, text) pairs in the order in which to read them."""
        where = []
        if self.place:
            file, number, text = self.place
            where = [("Your line", f"{shown(file)}:{number}: {text}")]
        more = [("Means", self.means), ("Test", self.test), ("Done", self.done)]
        return [
            ("Seen", self.seen),
            *where,
            ("Instead", self.line),
            *(more if verbose else []),
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

    Prints as fifteen lines of text at most, where one mistake was found;
    :meth:`text` gives more. Shows as a table in a notebook.

    Attributes:
        subject: what was checked, with its arguments.
        findings: list of :class:`Finding`, empty if nothing is wrong.
        results: list of :class:`Result`, one for each test.
        notes: what else a reader should know; a note is no fault.
        usable: False if there was nothing that could be tested.
        problem: why not.
        compared: whether the output was compared with what is right.
        agreed: what it was compared with and equals, or "".
        not_compared: why it was not compared with what is right, or "".
        needed: what has to be written by hand to have it compared, or "".
        not_tried: what could change the result and was not tried.
        promised: what the verdict depends on, as "causal only with `mask`", or "".
    """

    subject: str
    findings: list[Finding] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    usable: bool = True
    problem: str = ""
    compared: bool = False
    agreed: str = ""
    not_compared: str = ""
    needed: str = ""
    not_tried: list[str] = field(default_factory=list)
    promised: str = ""

    def failing(self) -> list[Finding]:
        """Return the findings that fail: the errors."""
        return [
            f
            for f in self.findings
            if f.severity == "error" and f.mistake not in REFUSALS
        ]

    @property
    def verdict(self) -> str:
        """One of "passed", "failed", "not usable" and "not judged".

        A class passes if it was compared with what is right and no error was found.
        Without a comparison, or where a test broke inside the checker, nothing is
        known: it is not judged. Nor is a class that raises whatever it is given, since
        it may want something else.
        """
        if not self.usable:
            return "not usable"
        if self.failing():
            return "failed"
        broken = any(result.outcome == "broken" for result in self.results)
        return "passed" if self.compared and not broken else "not judged"

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
        """Return the verdict in one line, with what it leaves open."""
        if not self.usable:
            return f"NOT USABLE: {self.subject}"
        count = len(self.findings)
        found = {0: "", 1: ", 1 finding"}.get(count, f", {count} findings")
        parts = [f"{self.verdict.upper()}: {self.subject}{found}"]
        if self.promised:
            parts.append(self.promised)
        if self.not_tried:
            parts.append(f"not tried: {', '.join(self.not_tried)}")
        return "; ".join(parts)

    def text(self, verbose: bool = False) -> str:
        """Return the report as text: fifteen lines, or all that is known."""
        lines = [*_wrap(self.headline()), *self._comparison()]
        listed = self.findings if verbose else self.findings[:1]
        for number, finding in enumerate(listed, start=1):
            kind = f"{finding.severity} {finding.code}".rstrip()
            lines += ["", *_wrap(f"{number}. {finding.title} [{kind}]", indent="   ")]
            rows = [
                line for row in finding.rows(verbose) for line in _row(*row, verbose)
            ]
            lines += rows
            lines += [f"   {line}" for line in finding.table()] if verbose else []
        if not verbose:
            lines += self._others()
            return "\n".join(lines)
        if self.results:
            lines += ["", "Tests"]
        for result in self.results:
            why = f": {result.why}" if result.why else ""
            lines += _row(result.outcome, result.test + why)
        lines += ["", "Notes"] if self.notes else []
        for note in self.notes:
            lines += _wrap(f" - {note}", indent="   ")
        return "\n".join(lines)

    def _comparison(self) -> list[str]:
        """Return what it was compared with, or why not, and what would help."""
        if self.problem:
            return _wrap(self.problem)
        if self.agreed:
            return _wrap(f"Compared with {self.agreed}.")
        lines = _wrap(f"To get a verdict, {self.needed}.") if self.needed else []
        refused = any(f.mistake in REFUSALS for f in self.findings)
        if self.not_compared and not self.compared and not refused:
            lines = [*_wrap(f"Not compared: {self.not_compared}."), *lines]
        return lines

    def _others(self) -> list[str]:
        others = self.findings[1:]
        told = ", ".join(f"{f.title.lower()} [{f.code}]" for f in others[:2])
        more = f", and {len(others) - 2} more" if len(others) > 2 else ""
        return ["", *_wrap(f"Also: {told}{more} (-v shows all).")] if others else []

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = [f"<p><strong>{_escape(self.headline())}</strong></p>"]
        if told := " ".join(self._comparison()):
            parts.append(f"<p>{_escape(told)}</p>")
        for number, finding in enumerate(self.findings, start=1):
            kind = f"{finding.severity} {finding.code}".rstrip()
            caption = f"{number}. {finding.title} ({kind})"
            parts.append(_table(caption, finding.rows()))
            if finding.example is not None:
                lines = "\n".join(finding.table())
                parts.append(f"<pre>{_escape(lines)}</pre>")
        told = f"<pre>{_escape(self.text(verbose=True))}</pre>"
        parts.append(f"<details><summary>All tests</summary>{told}</details>")
        return f'<div class="attention-check">{"".join(parts)}</div>'

    def as_dictionary(self) -> dict[str, Any]:
        """Return plain lists and dictionaries, as ``--json`` prints them."""
        keys = ("mistake", "code", "severity", "title", "stage", "test", "done", "seen",
                "means", "line", "page")  # fmt: skip
        own = ("subject", "verdict", "exit_status", "problem", "compared", "agreed",
               "not_compared", "needed", "not_tried")  # fmt: skip
        return {key: getattr(self, key) for key in own} | {
            "findings": [
                {key: getattr(f, key) for key in keys}
                | {"place": f.place and [shown(f.place[0]), *f.place[1:]]}
                for f in self.findings
            ],
            "tests": [
                {"test": r.test, "outcome": r.outcome, "why": r.why}
                for r in self.results
            ],
            "notes": list(self.notes),
        }


def worst(reports: Iterable[Report]) -> int:
    """Return the exit status of several reports: 1 before 2, 2 before 3, then 0."""
    statuses = {report.exit_status for report in reports}
    return next((status for status in (1, 2, 3) if status in statuses), 0)


def address(code: str = "") -> str:
    """Return where a code is on the page of all codes, if there is an address."""
    place = f"#{code.lower()}" if code else ""
    with contextlib.suppress(metadata.PackageNotFoundError):
        for entry in metadata.metadata("coding-attention").get_all("Project-URL") or ():
            name, _, site = entry.partition(", ")
            if name == "Homepage":
                return f"{site.rstrip('/')}/book/codes.html{place}"
    return ""


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


def _row(label: str, text: str, whole: bool = True) -> list[str]:
    """Return a row of a finding; what is seen, cut after three lines of a short one."""
    first = f"   {label:<{LABEL}}"
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_on_hyphens=False,
        max_lines=None if whole else 3,
        placeholder=" …",
    )


def _escape(text: object) -> str:
    # A report may quote code, and names that a reader chose.
    return html.escape(str(text), quote=True)


def _table(caption: str, rows: Iterable[tuple[str, str]]) -> str:
    left = "text-align: left; vertical-align: top"
    body = "".join(
        f'<tr><th scope="row" style="{left}; white-space: nowrap">{_escape(name)}</th>'
        f'<td style="{left}">{_escape(text)}</td></tr>'
        for name, text in rows
    )
    caption = f'<caption style="text-align: left">{_escape(caption)}</caption>'
    return f"<table>{caption}<tbody>{body}</tbody></table>"
