"""What a check found, for a terminal, a notebook and a test."""

import contextlib
import html
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

WIDTH = 88
LABEL = 12  # columns for the name of a row

PAGES = {
    "02_simple_self_attention": "Simple self-attention",
    "03_trainable_self_attention": "Trainable self-attention",
    "04_causal_attention": "Causal attention",
    "05_multi_head_attention": "Multi-head attention",
    "06_averaging": "The averaging route",
    "07_where_the_time_goes": "Where the time goes",
    "10_attention_in_models": "Attention as models have it",
}


class CheckFailed(AssertionError):  # noqa: N818 (reads as a sentence in a test's log)
    """The check found a mistake; the message is the whole report."""


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
    place: tuple | None = None
    example: tuple | None = None

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
    mistakes: tuple = ()


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
        not_compared: why it could not be compared with attention, or "".
        strict: whether warnings and a missing comparison fail too.
    """

    subject: str
    findings: list[Finding] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    usable: bool = True
    problem: str = ""
    not_compared: str = ""
    strict: bool = False

    def failing(self) -> list[Finding]:
        """Return the findings that fail: errors, with ``strict`` warnings too."""
        severities = ("error", "warning") if self.strict else ("error",)
        return [f for f in self.findings if f.severity in severities]

    @property
    def ok(self) -> bool:
        """Whether the class could be tested and nothing was found that fails.

        Errors fail; with ``strict`` warnings and a missing comparison do, too.
        """
        broken = any(result.outcome == "broken" for result in self.results)
        missing = self.strict and self.not_compared
        return self.usable and not (self.failing() or broken or missing)

    @property
    def exit_status(self) -> int:
        """What the command line exits with.

        0 if nothing was found that fails, 1 if something was, 2 if nothing could be
        tested.
        """
        if not self.usable:
            return 2
        return 0 if self.ok else 1

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
            return f"{self.subject}: could not be tested"
        passed = sum(result.outcome == "passed" for result in self.results)
        ran = sum(result.outcome != "not run" for result in self.results)
        count = len(self.findings)
        found = {0: "nothing wrong found", 1: "1 finding"}.get(
            count, f"{count} findings"
        )
        compared = ", NOT COMPARED with attention" if self.not_compared else ""
        left_out = len(self.results) - ran
        others = f", {left_out} not run" if left_out else ""
        tests = f"{passed} of {ran} tests passed{others}"
        return f"{self.subject}: {found}{compared}, {tests}"

    def __str__(self) -> str:
        lines = _wrap(self.headline())
        if self.problem:
            lines += ["", *_wrap(self.problem)]
        if self.not_compared:
            lines += ["", *_wrap(f"Not compared: {self.not_compared}.")]
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
            passed = "All tests" if self.ok else "All tests, passed ones too"
            parts.append(f"<details><summary>{passed}</summary>{table}</details>")
        if self.notes:
            items = "".join(f"<li>{_escape(note)}</li>" for note in self.notes)
            parts.append(f"<p>Notes</p><ul>{items}</ul>")
        return f'<div class="attention-check">{"".join(parts)}</div>'


def chosen(
    finding: Finding, select: Sequence[str] = (), ignore: Sequence[str] = ()
) -> bool:
    """Whether a finding is asked for, by the start of its code or by its name."""

    def among(given):
        given = given.replace(",", " ").split() if isinstance(given, str) else given
        return any(
            finding.mistake == one or finding.code.startswith(one.upper())
            for one in given
        )

    return (not select or among(select)) and not among(ignore)


def shown(file):
    """Return a file's path as it is seen from here."""
    path = Path(file)
    with contextlib.suppress(ValueError, OSError):
        return path.resolve().relative_to(Path.cwd()).as_posix()
    return str(path)


def _numbers(row):
    return " ".join(f"{float(number):5.2f}" for number in row)


def _wrap(text, indent=""):
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=indent, break_on_hyphens=False
    ) or [""]


def _row(label, text):
    first = f"   {label:<{LABEL}}"
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_on_hyphens=False,
    )


def _escape(text):
    # A report may quote code, and names that a reader chose.
    return html.escape(str(text), quote=True)


def _table(caption, rows, head=None):
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
