"""A row of the report: what became of one notebook."""

import contextlib
import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

SIGNS = {"right": "+", "not right": "-", "unusable": "!", "nothing yet": "."}
MISSING = "?"
SHOWN = 3  # cells that raised, of one notebook


@dataclass
class Row:
    """What became of one notebook.

    Attributes:
        file: where it lies.
        student: who handed it in.
        variant: whose sizes the notebook says that it has.
        cells: its code.
        status: "graded", "no answers", "stopped" or "not run".
        reason: why, for all but the first.
        verdicts: {exercise: {"outcome": …, "text": …}}; the last check counts.
        notes: what the teacher should look at.
        answers: {exercise: answer}, of those that are numbers and words alone.
        network: "none", or "blocked" where only Python's sockets were.
        seconds: how long it ran.
    """

    file: Path
    student: str
    variant: str = ""
    cells: list = field(default_factory=list, repr=False)
    status: str = "graded"
    reason: str = ""
    verdicts: dict = field(default_factory=dict)
    notes: list = field(default_factory=list)
    answers: dict = field(default_factory=dict)
    network: str = ""
    seconds: float = 0.0

    def take(self, run):
        """Take over what became of the notebook, a :class:`~.runner.Run`."""
        self.network, self.seconds = run.network, run.seconds
        for event in run.verdicts:
            # Code that shares its kernel with the check may have written, too.
            with contextlib.suppress(ValueError, KeyError, TypeError):
                self._take_verdict(event)
        self.notes += [f"cell {n} raised {text}" for n, text in run.raised[:SHOWN]]
        if len(run.raised) > SHOWN:
            self.notes.append(f"and {len(run.raised) - SHOWN} more cells raised")
        self._close(run)

    def _take_verdict(self, event):
        name, outcome = str(event["exercise"]), event["outcome"]
        if outcome not in SIGNS:
            return
        self.verdicts[name] = {"outcome": outcome, "text": str(event["text"])}
        self.answers[name] = event["answer"]

    def _close(self, run):
        outcomes = {verdict["outcome"] for verdict in self.verdicts.values()}
        if run.ended:
            self.status = "stopped"
            self.reason = f"{run.ended}, in cell {run.cell}{self._line(run.cell)}"
        elif not outcomes:
            self.status, self.reason = "no answers", "no cell calls check_exercise"
        elif outcomes == {"nothing yet"}:
            # One that is left open among others is a gap: the rest is graded.
            self.status, self.reason = "no answers", "every answer is the placeholder"

    def _line(self, cell):
        source = self.cells[cell - 1] if cell else ""
        first = next((line for line in source.splitlines() if line.strip()), "")
        return f": {textwrap.shorten(first, 50, placeholder=' …')}" if first else ""

    def lacks_check(self, exercise):
        """Whether no cell checks an exercise: its cell was deleted, or changed."""
        call = re.compile(rf"""check_exercise\(\s*["']{re.escape(exercise)}["']""")
        return bool(self.cells) and not call.search("\n".join(self.cells))

    def sign(self, exercise):
        """Return one sign for the outcome of an exercise."""
        if exercise not in self.verdicts and self.lacks_check(exercise):
            return MISSING
        verdict = self.verdicts.get(exercise, {"outcome": "nothing yet"})
        return SIGNS[verdict["outcome"]]
