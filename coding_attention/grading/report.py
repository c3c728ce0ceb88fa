"""What the grader says: a row for each notebook, and the mistakes of the class."""

import csv
import io
import json
import re
import textwrap
from collections import Counter

from coding_attention.exercises import EXERCISES
from coding_attention.grading.row import MISSING

WIDTH = 88
SHOWN = 3  # answers that got the same message
LONGEST = 24  # letters of a name in the table


class ClassReport:
    """The rows of a class, its points and its mistakes.

    Args:
        rows: a list of :class:`~.row.Row`.
        assignment: an :class:`~.assignments.Assignment`.
        course: the name of the variants, or nothing.
    """

    def __init__(self, rows, assignment, course=""):
        self.rows, self.assignment, self.course = rows, assignment, course
        self.points = assignment.points
        self._compare_with_each_other()

    def points_of(self, row, exercise=None):
        """Return the points of one row, for one exercise or for all."""
        names = [exercise] if exercise else self.points
        return sum(self.points[name] for name in names if row.sign(name) == "+")

    @property
    def mistakes(self):
        """The mistakes of the class, the most frequent first.

        Each is a dictionary: exercise, how many made it, of how many who answered,
        what the check says, what they answered if that is numbers or words, and who.
        """
        found, texts, answers = {}, {}, {}
        for row in self.rows:
            for name in self.points:
                verdict = row.verdicts.get(name)
                if verdict and verdict["outcome"] in ("not right", "unusable"):
                    text = _told(verdict["text"])
                    key = name, re.sub(r"\d[\d.]*", "#", text)
                    found.setdefault(key, []).append(row.student)
                    texts.setdefault(key, Counter())[text] += 1
                    if (answer := row.answers.get(name)) is not None:
                        answers.setdefault(key, {})[json.dumps(answer)] = True
        counted = [
            {
                "exercise": key[0],
                "count": len(students),
                "of": self.answered(key[0]),
                "text": texts[key].most_common(1)[0][0],
                "answers": list(answers.get(key, {})),
                "students": students,
            }
            for key, students in found.items()
        ]
        order = list(self.points)
        return sorted(
            counted, key=lambda m: (-m["count"], order.index(m["exercise"]), m["text"])
        )

    def answered(self, exercise):
        """Return how many have answered an exercise, rightly or not."""
        return sum(row.sign(exercise) not in (".", MISSING) for row in self.rows)

    @property
    def exit_status(self):
        """0 if every notebook ran to its end, 1 if one did not, 2 if there is none."""
        if not self.rows:
            return 2
        return int(any(row.status in ("stopped", "not run") for row in self.rows))

    def _compare_with_each_other(self):
        self._note_missing_checks()
        self._note_whose_sizes()

    def _note_missing_checks(self):
        for row in self.rows:
            missing = [name for name in self.points if row.sign(name) == MISSING]
            if missing:
                row.notes.append(
                    f"no cell checks {', '.join(missing)}: was it deleted?"
                )

    def _note_whose_sizes(self):
        count = Counter(row.student for row in self.rows)
        for row in self.rows:
            if count[row.student] > 1:
                row.notes.append(f"{count[row.student]} notebooks are {row.student}'s")
            if self.course and not row.variant and row.cells:
                row.notes.append(
                    "doesn't say whose sizes it has: taken from its file name"
                )
            elif self.course and row.student.lower() not in row.file.stem.lower():
                row.notes.append(f"handed out to {row.student}: look at the name")

    def label(self, row):
        """Return the name of a row's file, with its folder if two have one name."""
        names = [other.file.name for other in self.rows]
        once = names.count(row.file.name) == 1
        return row.file.name if once else f"{row.file.parent.name}/{row.file.name}"

    def text(self):
        """Return the report to be read."""
        return "\n".join(
            [*self._headline(), "", *self._table(), *self._to_look_at(),
             *self._class_mistakes(), "", *_wrapped(self._honest())]
        )  # fmt: skip

    def _headline(self):
        count = Counter(row.status for row in self.rows)
        parts = [f"{count[s]} {s}" for s in ("graded", "no answers", "stopped",
                                             "not run") if count[s]]  # fmt: skip
        return _wrapped(
            f"{self.assignment.title}: {_plural(len(self.rows), 'notebook')} "
            f"({', '.join(parts)}), "
            f"{_plural(len(self.points), 'exercise')}, "
            f"{_plural(self.assignment.total, 'point')}."
        )

    def _table(self):
        names = [_shorten(row.student) for row in self.rows]
        files = [_shorten(self.label(row)) for row in self.rows]
        width, wide = (max(map(len, [head, *column])) for head, column in
                       (("student", names), ("file", files)))  # fmt: skip
        head = f"{'student':<{width}}  {'file':<{wide}}  points  "
        numbers = " ".join(f"{i:>2}" for i in range(1, len(self.points) + 1))
        lines = [head + numbers]
        for row, name, file in zip(self.rows, names, files, strict=True):
            points = f"{self.points_of(row)}/{self.assignment.total}"
            signs = " ".join(f"{row.sign(name):>2}" for name in self.points)
            status = "" if row.status == "graded" else f"  {row.status}"
            told = f"{name:<{width}}  {file:<{wide}}  {points:>6}  {signs}{status}"
            lines.append(told.rstrip())
        names = [f"{i} {n} ({p})" for i, (n, p) in enumerate(self.points.items(), 1)]
        legend = (
            f"+ right, - not right, ! could not be checked, . no answer, {MISSING} no "
            "check."
        )
        return [*lines, "", *_wrapped(f"{legend} {', '.join(names)}.")]

    def _to_look_at(self):
        lines = []
        for row in self.rows:
            said = [row.reason] if row.reason else []
            for note in said + row.notes:
                lines += _wrapped(_printable(f"{self.label(row)}: {note}"), "    ")
        return ["", "To look at", *lines] if lines else []

    def _class_mistakes(self):
        lines = []
        for mistake in self.mistakes:
            share = f"{mistake['count']} of {mistake['of']}"
            told = f"{share:>8}  {mistake['exercise']}: {_printable(mistake['text'])}"
            if mistake["answers"]:
                told += (
                    f" Answered: {_printable('; '.join(mistake['answers'][:SHOWN]))}."
                )
            lines += _wrapped(told, " " * 10)
        return ["", "The class's mistakes", *lines] if lines else []

    def _honest(self):
        blocked = any(row.network == "blocked" for row in self.rows)
        network = (
            "Python's sockets were blocked; C code could still reach the network."
            if blocked
            else "There was no network."
        )
        return (
            f"Each notebook ran in its own process, within limits. {network} The code "
            "could read your files: if you don't trust it, grade in a container. "
            "Answers share a process with their check, so a notebook could deceive "
            "it on purpose: read the code of what surprises you."
        )

    def feedback(self, row):
        """Return what one student may read: points, and what each check said."""
        lines = [f"# {self.assignment.title}: {self.label(row)}", ""]
        lines.append(f"{self.points_of(row)} of {self.assignment.total} points.")
        lines += [f"{row.status}: {row.reason}."] if row.reason else []
        for name, worth in self.points.items():
            verdict = row.verdicts.get(name)
            earned = f"{self.points_of(row, name)} of {worth}"
            lines += ["", f"## {EXERCISES[name].title} ({earned})", ""]
            if row.sign(name) == MISSING:
                lines.append("The notebook has no cell that checks this exercise.")
            elif verdict is None:
                lines.append("This exercise was not reached.")
            else:
                lines.append(_printable(verdict["text"]))
            if verdict and verdict["outcome"] == "not right" and name in row.answers:
                answer = row.answers[name]
                lines += [] if answer is None else ["", f"Your answer: `{answer}`"]
        return "".join(f"{_printable(line)}\n" for line in lines)

    def csv(self):
        """Return one line a notebook, for a spreadsheet."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        head = ["student", "file", "status", "reason", "points", "of"]
        writer.writerow([*head, *map(_cell, self.points), "notes"])
        for row in self.rows:
            points = [self.points_of(row, name) for name in self.points]
            told = [row.student, str(row.file), row.status, row.reason]
            total = [self.points_of(row), self.assignment.total]
            notes = _cell("; ".join(row.notes))
            writer.writerow([*map(_cell, told), *total, *points, notes])
        return out.getvalue().rstrip("\n")


def _told(text):
    """Return what a verdict says about the mistake, without label and pointer."""
    text = re.sub(r"^Exercise \S+: (not right yet\. )?", "", text)
    return re.sub(r" To read: .*$", "", text)


def _cell(text):
    # A spreadsheet takes what begins like this for a formula.
    text = _printable(str(text))
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text


def _printable(text):
    return "".join(c if c.isprintable() else " " for c in text)


def _shorten(text):
    text = _printable(text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _plural(count, noun):
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _wrapped(text, indent=""):
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=indent, break_on_hyphens=False
    )  # fmt: skip
