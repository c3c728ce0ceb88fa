"""Gathers what the tests find and how each of them ended."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from attncheck.build import UnusableError, first_line
from attncheck.mistakes import EARLY, EXPLAINS, LATE, MISTAKES, ORDER, SYMPTOMS
from attncheck.report import Finding, Report, Result, chosen
from attncheck.subject import CallFailed, Failure, Subject
from attncheck.trace import Line

# A norm over tokens has no spread over one alone, and a convolution needs a few.
NEEDS_MORE = re.compile("more than 1 value per channel|Kernel size can't be greater")
COMPARES = "same output as attention with these weights"


class SkipTest(Exception):  # noqa: N818 (an outcome, as in unittest)
    """The test does not apply; the message says why."""


class NotCompared(SkipTest):
    """The class could not be compared with attention; the message says why.

    Attributes:
        proposal: options of the check that would have it compared.
    """

    def __init__(self, why: str, **proposal: Any) -> None:
        super().__init__(why)
        self.proposal = proposal


class Collector:
    """Findings and results, in the order of the tests.

    Attributes:
        found: {name of the mistake: (test, done, seen)}.
        stages: {name of the mistake: another stage than usual}.
        severities: {name of the mistake: another severity than usual}.
        results: list of results.
        causes: names of mistakes that the output was matched to exactly.
        places: {name of the mistake: (file, line number, text)}.
        example: (expected, actual) weights of four tokens, or None.
        compared: whether the output was compared with what is right.
        not_compared: why the class could not be compared with attention, or "".
        proposal: options that would have it compared.
        needed: what has to be written by hand to have it compared, or "".
        blame: function (name) that returns the line at fault, or None.
        likely: {name of the mistake: (done, seen)} of what gives the same output, if
            it was meant to do what nobody declared.
        stage: the first stage that differs, or "".
        beside: what acts in forward that nobody described, or "".
        undeclared: whether nobody said what the layer does besides attention.
        read: what it does, read off step by step, where no step is wrong.
        rounded: whether it was compared without its steps in lower precision.
    """

    def __init__(self) -> None:
        self.found: dict[str, tuple[str, str, str]] = {}
        self.severities: dict[str, str] = {}
        self.stages: dict[str, str] = {}
        self.results: list[Result] = []
        self.causes: tuple[str, ...] = ()
        self.example: tuple[torch.Tensor, torch.Tensor] | None = None
        self.compared = False
        self.not_compared = ""
        self.proposal: dict[str, Any] = {}
        self.needed = ""
        self.blame: Callable[[str], Line | None] = lambda name: None
        self.stage = ""
        self.likely: dict[str, tuple[str, str]] = {}
        self.beside = ""
        self.undeclared = False
        self.read: list[str] = []
        self.rounded = False
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
                self.not_compared = str(reason)
                self.proposal = reason.proposal
            self._end(test, "not run", str(reason))
            return
        except Failure as failure:
            if failure.mistake == "environment":
                self._end(test, "not run", f"this PyTorch can't run it: {failure}")
                return
            raises = failure.mistake == "forward_raises"
            name = "some_sizes_raise" if raises else failure.mistake
            many = isinstance(failure, CallFailed) and failure.many
            more = many or NEEDS_MORE.search(str(failure))
            if name in self.found or (raises and more):
                self._end(test, "not run", str(failure))
                return
            self.add(name, f"Ran the test: {test}.", f"{failure}.")
        except UnusableError:
            raise
        except Exception as error:
            # Nobody who checks a class should meet a traceback of the checker.
            why = f"{type(error).__name__}: {first_line(error)}"
            self._end(test, "broken", f"the checker itself failed ({why})")
            return
        self._end(test, "passed")

    def _end(self, test: str, outcome: str, why: str = "") -> None:
        """Keep how a test ended: with anything told, it failed."""
        if self._told and outcome != "broken":
            outcome, why = "failed", ""
        self.results.append(Result(test, outcome, why, tuple(self._told)))

    def add(
        self,
        mistake: str,
        done: str,
        seen: str,
        severity: str | None = None,
        stage: str = "",
    ) -> None:
        """Add a finding, once for each mistake; the test has failed either way."""
        if stage:
            self.stages.setdefault(mistake, stage)
        if mistake not in self._told:
            self._told.append(mistake)
        if self.severities.get(mistake) == "warning" and severity != "warning":
            del self.severities[mistake], self.found[mistake]  # it is worse than that
        if mistake not in self.found and severity:
            self.severities[mistake] = severity
        self.found.setdefault(mistake, (self._test, done, seen))

    def take(self, other: "Collector", built: str, but: Iterable[str] = ()) -> None:
        """Add the errors that were found in a class built otherwise.

        Args:
            other: holds them.
            built: how it was built, a sentence.
            but: names that are left out.
        """
        for name, (_, done, seen) in other.found.items():
            if other._severity(name) == "error" and name not in but:
                stage = other.stages.get(name, "")
                self.add(name, f"{built} {done}".strip(), seen, stage=stage)

    def cannot_run(self, test: str, failure: Failure, done: str) -> None:
        """Add that the module failed where nothing else can be tested."""
        self.start(test)
        self.add(failure.mistake, done, str(failure), failure.severity)
        self._end(test, "failed")

    def not_run(self, tests: Iterable[str], why: str) -> None:
        """Note the tests that were left out."""
        self.results += [Result(test, "not run", why) for test in tests]

    def hand_over(
        self, report: Report, select: Sequence[str] = (), ignore: Sequence[str] = ()
    ) -> None:
        """Put what was gathered into a report, as far as it is asked for."""
        report.findings = [f for f in self.findings() if chosen(f, select, ignore)]
        report.results = self.results
        report.not_compared = self.not_compared

    def findings(self) -> list[Finding]:
        """Return the findings, root causes first.

        Where the output equals attention with a known mistake, what follows from that
        mistake is told with it.
        """
        found = dict(self.found)
        errors = [n for n in found if self._severity(n) == "error"]
        if self.likely and errors:
            self.causes = tuple(self.likely)
            for name, (done, seen) in self.likely.items():
                found[name] = (COMPARES, done, seen)
        self.causes = tuple(name for name in self.causes if name in found)
        if self.causes:
            followed = [n for n in found if n in SYMPTOMS and n not in self.causes]
            told = " ".join(found.pop(name)[2] for name in followed)
            first = min(self.causes, key=ORDER.__getitem__)
            test, done, seen = found[first]
            found[first] = (test, done, f"{seen} {told}".strip())
        elif any(name in EXPLAINS for name in found):
            found.pop("differs", None)  # something else says more
        for cause, symptoms in FOLLOWS.items():
            if cause in found:
                for name in symptoms:
                    found.pop(name, None)
        if "tokens_not_mixed" in found and "projection_mixed_up" not in self.causes:
            found.pop("projection_mixed_up", None)  # unused, since nothing is weighted
        # A stage that differs comes before what it entails in gradients and caches.
        late = LATE if "differs" in found and self.stage else ()
        ordered = sorted(
            found, key=lambda name: (name not in EARLY, name in late, ORDER[name])
        )
        if self.causes:
            ordered.sort(key=lambda name: name not in self.causes)
        if not EARLY & {*ordered} - {"some_sizes_raise"}:
            # A size that it refuses explains nothing else.
            ordered.sort(key=lambda name: name == "some_sizes_raise")
        ordered.sort(key=lambda name: self._severity(name) != "error")
        return [self._finding(name, *found[name]) for name in ordered]

    def _severity(self, name: str) -> str:
        said = self.severities.get(name)
        if name in SIGNS and self.undeclared and not self.compared and not said:
            return "warning"
        return said or MISTAKES[name].severity

    def _finding(self, name: str, test: str, done: str, seen: str) -> Finding:
        mistake = MISTAKES[name]
        told = self.stage if name in {*SYMPTOMS, "differs"} else ""
        return Finding(
            mistake=name,
            title=mistake.title,
            test=test,
            done=done,
            seen=seen,
            means=mistake.means,
            line=mistake.line,
            page=mistake.page,
            severity=self._severity(name),
            code=mistake.code,
            place=self.blame(name),
            example=self.example if name in self.causes else None,
            stage=self.stages.get(name) or told or mistake.stage,
        )


# What a layer may do on purpose that nobody described and that could not be compared:
# refuse some lengths or widths, give rows another sum, hide some tokens, compute in few
# digits.
SIGNS = {
    "cross_masked",
    "dropout_not_rescaled",
    "low_precision",
    "mask_hides_itself",
    "not_finite",
    "past_unused",
    "rows_do_not_sum_to_one",
    "some_sizes_raise",
    "widths_mixed_up",
}
# What shows in another test as well, once its cause is known.
_TRAINING = ("training_differs", "dropout_elsewhere", "dropout_rate_ignored",
             "dropout_not_rescaled", "dropout_on_scores", "dropout_unused")  # fmt: skip
FOLLOWS = {
    "mask_only_in_eval": _TRAINING,
    "samples_mixed_in_training": _TRAINING,
    "training_differs": _TRAINING[1:],
    "dropout_rate_ignored": (
        "dropout_elsewhere",
        "dropout_not_rescaled",
        "training_differs",
        "gradient_missing",
        "gradient_wrong",
        "init_dead",
    ),
    # A mask that isn't passed hides nothing; what it does was tried with it.
    "mask_after_softmax": ("mask_missing",),
    "mask_fill_zero": ("mask_missing",),
    "dropout_on_scores": ("dropout_elsewhere", "dropout_rate_ignored"),
    "dropout_not_rescaled": ("dropout_elsewhere", "dropout_rate_ignored"),
    "random_in_eval": (
        *_TRAINING,
        "differs",
        "samples_mixed",
        "keeps_state",
        "rows_do_not_sum_to_one",
        "length_matters",
        "cache_differs",
        "past_unused",
    ),
    "keeps_state": (
        "wrong_shape",
        "some_sizes_raise",
        "differs",
        "training_differs",
        "dropout_rate_ignored",
    ),
    "init_constant": ("init_dead", "init_too_large"),
    "init_dead": ("init_too_large", "rope_base", "softcap_unused"),
    "heads_shared": ("projections_tied",),
    "gradient_missing": ("init_dead",),
    "constant_trained": ("init_too_large",),
    "projection_mixed_up": ("init_dead",),
    "output_projection_unused": ("init_dead",),
    "no_gradient": ("init_dead",),
    "backward_raises": ("init_dead",),
    "weights_not_saved": ("init_dead", "stays_behind", "dtype_stays_behind"),
    # Queries, or all that they are made of, may be of no token.
    "tokens_moved": ("projection_mixed_up", "tokens_not_mixed"),
    "samples_mixed": ("samples_mixed_in_training",),
    "cross_masked": (
        "not_finite",
        "rows_do_not_sum_to_one",
        "cross_ignores_queries",
        "mask_unwanted",
        "padding_batch",
        "padding_leaks",
    ),
    "low_precision": ("differs", "dtype_stays_behind", "rows_do_not_sum_to_one"),
    "padding_batch": ("padding_leaks", "padding_rows", "padding_inverted"),
    "padding_not_finite": ("padding_leaks",),  # what is NaN equals nothing
    "padding_inverted": ("padding_leaks", "padding_future"),
    "batch_first": ("samples_mixed_in_training", "training_differs"),
}
