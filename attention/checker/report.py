"""What a check found, for a terminal, a notebook and a test."""

import html
import textwrap
from dataclasses import dataclass, field

WIDTH = 88
LABEL = 12  # columns for the name of a row

PAGES = {
    "02_simple_self_attention": "Simple self-attention",
    "03_trainable_self_attention": "Trainable self-attention",
    "04_causal_attention": "Causal attention",
    "05_multi_head_attention": "Multi-head attention",
    "06_averaging": "The averaging route",
    "07_where_the_time_goes": "Where the time goes",
}


class CheckFailed(AssertionError):  # noqa: N818 (reads as a sentence in a test's log)
    """The check found a mistake; the message is the whole report."""


@dataclass(frozen=True)
class Finding:
    """One mistake, and how it showed.

    Attributes:
        mistake: short name, a key of :data:`attention.checker.MISTAKES`.
        title: the mistake in one line.
        test: the test that showed it.
        done: what the test did.
        seen: what came out.
        means: what that means.
        line: the line that is likely at fault, and what is meant instead.
        page: the page of the book to read.
        severity: "error" (results are wrong) or "warning" (a trap for later).
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

    def rows(self) -> list[tuple[str, str]]:
        """Return (label, text) pairs in the order in which to read them."""
        return [
            ("Test", self.test),
            ("Done", self.done),
            ("Seen", self.seen),
            ("Means", self.means),
            ("Likely line", self.line),
            ("Read", f"{PAGES[self.page]} ({self.page})"),
        ]


@dataclass(frozen=True)
class Result:
    """How one test ended.

    Attributes:
        test: name of the test.
        outcome: "passed", "failed", "not run" or "broken"; the last means that the
            checker itself failed, so that nothing is known.
        why: the reason if it did not run or is broken, else empty.
    """

    test: str
    outcome: str
    why: str = ""


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
    """

    subject: str
    findings: list[Finding] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    usable: bool = True
    problem: str = ""

    @property
    def ok(self) -> bool:
        """Whether the class could be tested and nothing was found."""
        broken = any(result.outcome == "broken" for result in self.results)
        return self.usable and not self.findings and not broken

    @property
    def exit_status(self) -> int:
        """What the command line exits with.

        0 if nothing was found, 1 if something was, 2 if nothing could be tested.
        """
        if not self.usable:
            return 2
        return 0 if self.ok else 1

    def raise_for_failures(self) -> None:
        """Raise :class:`CheckFailed` with the report unless :attr:`ok`."""
        if not self.ok:
            raise CheckFailed("\n" + str(self))

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
        left_out = len(self.results) - ran
        others = f", {left_out} not run" if left_out else ""
        return f"{self.subject}: {found}, {passed} of {ran} tests passed{others}"

    def __str__(self):
        lines = _wrap(self.headline())
        if self.problem:
            lines += ["", *_wrap(self.problem)]
        for number, finding in enumerate(self.findings, start=1):
            title = f"{number}. {finding.title} [{finding.severity}]"
            lines += ["", *_wrap(title, indent="   ")]
            for label, text in finding.rows():
                lines += _row(label, text)
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

    def _repr_html_(self):
        parts = [f"<p><strong>{_escape(self.headline())}</strong></p>"]
        if self.problem:
            parts.append(f"<p>{_escape(self.problem)}</p>")
        for number, finding in enumerate(self.findings, start=1):
            caption = f"{number}. {finding.title} ({finding.severity})"
            parts.append(_table(caption, finding.rows()))
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
