"""Gathers what the probes find and how each of them ended."""

import re
from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor

from attncheck.errors import CallFailed, Failure, UnusableError, first_line
from attncheck.mistakes import EARLY, EXPLAINS, LATE, MISTAKES, ORDER, SYMPTOMS
from attncheck.report import Finding, Report, Result
from attncheck.subject import Subject
from attncheck.trace import Line
from attncheck.wording import in_their_names

# A norm over tokens needs more than one of them, and a convolution a few.
NEEDS_MORE = re.compile("more than 1 value per channel|Kernel size can't be greater")
COMPARES = "same output as attention with these weights"


class SkipTest(Exception):  # noqa: N818 (an outcome, as in unittest)
    """The test does not apply; the message says why."""


class NotCompared(SkipTest):
    """The class could not be compared with attention; the message says why."""


class Collector:
    """Findings and results, in the order of the tests.

    Attributes:
        found: {name of the mistake: (test, done, seen)}.
        severities: {name of the mistake: another severity than usual}.
        report: what is to be said besides; results are added as they come.
        causes: names of mistakes that the output was matched to exactly.
        example: (expected, actual) weights of four tokens, or None.
        blame: function (name) that returns the line at fault, or None.
        undeclared: whether nobody said what the layer does besides attention.
        tried: arguments of forward, and what else, that a probe has tried.
    """

    def __init__(self, report: Report | None = None) -> None:
        self.report = report or Report("")
        self.found: dict[str, tuple[str, str, str]] = {}
        self.severities: dict[str, str] = {}
        self.causes: tuple[str, ...] = ()
        self.example: tuple[Tensor, Tensor] | None = None
        self.blame: Callable[[str], Line | None] = lambda name: None
        self.undeclared = False
        self.tried: set[str] = set()
        self._test = ""
        self._told: list[str] = []

    def start(self, test: str) -> None:
        """Let what is added from now on belong to this test."""
        self._test = test
        self._told = []

    def run(
        self, test: str, probe: Callable[[Subject, "Collector"], None], subject: Subject
    ) -> None:
        """Run one probe and keep how it ended."""
        self.start(test)
        try:
            probe(subject, self)
        except SkipTest as reason:
            if isinstance(reason, NotCompared):
                self.report.not_compared = str(reason)
            self._end(test, "not run", str(reason))
            return
        except Failure as failure:
            self._tell_failure(test, failure)
            return
        except UnusableError:
            raise
        except Exception as error:
            # Nobody who checks a class should meet a traceback of the checker.
            why = f"{type(error).__name__}: {first_line(error)}"
            self._end(test, "broken", f"the checker itself failed ({why})")
            return
        self._end(test, "passed")

    def _tell_failure(self, test: str, failure: Failure) -> None:
        """Tell of a call that failed within a probe: what it gave may be at fault."""
        if failure.mistake == "environment":
            self._end(test, "not run", f"this PyTorch can't run it: {failure}")
        elif failure.mistake in ("hangs", "backward_raises"):
            self.add(failure.mistake, f"Ran the test: {test}.", f"{failure}.")
            self._end(test, "failed")
        else:
            many = isinstance(failure, CallFailed) and failure.many
            if not (many or NEEDS_MORE.search(str(failure))):
                done = f"Ran the test: {test}."
                self.add("some_sizes_raise", done, f"It raised {failure}.", "warning")
            self._end(test, "not run", str(failure))

    def _end(self, test: str, outcome: str, why: str = "") -> None:
        """Keep how a test ended: with anything told, it failed."""
        if self._told and outcome != "broken":
            outcome, why = "failed", ""
        self.report.results.append(Result(test, outcome, why, tuple(self._told)))

    def add(
        self, mistake: str, done: str, seen: str, severity: str | None = None
    ) -> None:
        """Add a finding, once for each mistake; the test has failed either way."""
        if mistake not in self._told:
            self._told.append(mistake)
        if self.severities.get(mistake) == "warning" and severity != "warning":
            del self.severities[mistake], self.found[mistake]  # an error counts more
        if mistake not in self.found and severity:
            self.severities[mistake] = severity
        self.found.setdefault(mistake, (self._test, done, seen))

    def cannot_run(self, test: str, failure: Failure, done: str) -> None:
        """Add that the module failed where nothing else can be tested."""
        self.start(test)
        self.add(failure.mistake, done, str(failure), failure.severity)
        self._end(test, "failed")

    def not_run(self, tests: Iterable[str], why: str) -> None:
        """Note the tests that were left out."""
        self.report.results += [Result(test, "not run", why) for test in tests]

    def finish(self) -> None:
        """Put the findings into the report, and why it wasn't compared."""
        report = self.report
        report.findings = self.findings()
        if not report.compared and not report.not_compared:
            ended = {result.test: result.why for result in report.results}
            why = ended.get(COMPARES) or "the tests ended before that"
            report.not_compared = (
                f"the output wasn't compared with correct attention: {why}"
            )

    def findings(self) -> list[Finding]:
        """Return the findings, root causes first.

        Where the output equals attention with a known mistake, what follows from that
        mistake is told with it.
        """
        found = dict(self.found)
        self.causes = tuple(name for name in self.causes if name in found)
        if self.causes:
            followed = [n for n in found if n in SYMPTOMS and n not in self.causes]
            told = " ".join(found.pop(name)[2] for name in followed)
            first = min(self.causes, key=ORDER.__getitem__)
            test, done, seen = found[first]
            found[first] = (test, done, f"{seen} {told}".strip())
        elif any(name in EXPLAINS for name in found):
            found.pop("differs", None)  # another finding explains it
        for cause, symptoms in FOLLOWS.items():
            if cause in found:
                for name in symptoms:
                    found.pop(name, None)
        late = LATE if "differs" in found else ()
        ordered = sorted(
            found, key=lambda name: (name not in EARLY, name in late, ORDER[name])
        )
        if self.causes:
            ordered.sort(key=lambda name: name not in self.causes)
        if not EARLY & {*ordered} - {"some_sizes_raise"}:
            # Refusing a size explains no other finding.
            ordered.sort(key=lambda name: name == "some_sizes_raise")
        ordered.sort(key=lambda name: self.severity_of(name) != "error")
        return [self._make_finding(name, *found[name]) for name in ordered]

    def severity_of(self, name: str) -> str:
        """Return the severity of a mistake that was found."""
        said = self.severities.get(name)
        if name in SIGNS and self.undeclared and not self.report.compared and not said:
            return "warning"
        return said or MISTAKES[name].severity

    def _make_finding(self, name: str, test: str, done: str, seen: str) -> Finding:
        mistake = MISTAKES[name]
        told: dict[str, Any] = {
            key: getattr(mistake, key)
            for key in ("title", "means", "line", "page", "code", "stage", "shown")
        }
        place = self.blame(name)
        told["line"] = in_their_names(mistake.line, place)
        return Finding(
            mistake=name,
            test=test,
            done=done,
            seen=seen,
            severity=self.severity_of(name),
            place=place,
            example=self.example if name in self.causes else None,
            **told,
        )


# What a layer may do on purpose that nobody described and that could not be compared:
# refuse some lengths, give rows another sum, hide some tokens.
SIGNS = {
    "mask_unwanted",
    "mask_hides_itself",
    "not_finite",
    "rows_do_not_sum_to_one",
    "some_sizes_raise",
}
# Findings that follow from another one, by their cause.
_TRAINING = ("training_differs", "dropout_elsewhere", "dropout_rate_ignored",
             "dropout_unused")  # fmt: skip
FOLLOWS = {
    "training_differs": _TRAINING[1:],
    "dropout_rate_ignored": (
        "dropout_elsewhere",
        "training_differs",
        "gradient_missing",
    ),
    # A mask that isn't passed hides nothing; what it does was tried with it.
    "mask_after_softmax": ("mask_missing", "padding_leaks", "padding_batch"),
    "mask_fill_zero": ("mask_missing", "padding_leaks"),
    "mask_fill_finite": ("mask_missing", "padding_leaks", "future_leaks"),
    "random_in_eval": (
        *_TRAINING,
        "differs",
        "samples_mixed",
        "keeps_state",
        "rows_do_not_sum_to_one",
        "cache_differs",
        "padding_leaks",
        "padding_batch",
    ),
    "keeps_state": ("wrong_shape", "some_sizes_raise", "differs", *_TRAINING),
    "weights_not_saved": ("stays_behind", "dtype_stays_behind"),
    "mask_unwanted": ("not_finite", "rows_do_not_sum_to_one", "padding_leaks"),
    "padding_batch": ("padding_leaks", "padding_inverted"),
    "padding_inverted": ("padding_leaks",),
    "batch_first": ("training_differs",),
    "tokens_not_mixed": ("gradient_missing",),
    "softmax_missing": ("overflows", "padding_leaks"),
    "mask_missing": ("future_leaks", "padding_leaks"),
}
