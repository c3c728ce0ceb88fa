"""Gathers what the tests find and how each of them ended."""

from attention.checker.build import UnusableError
from attention.checker.mistakes import MISTAKES, ORDER, SYMPTOMS
from attention.checker.report import Finding, Result
from attention.checker.subject import Failure


class SkipTest(Exception):  # noqa: N818 (an outcome, as in unittest)
    """The test does not apply; the message says why."""


class Collector:
    """Findings and results, in the order of the tests.

    Attributes:
        found: {name of the mistake: (test, done, seen)}.
        results: list of results.
        causes: names of mistakes that the output was matched to exactly.
    """

    def __init__(self):
        self.found = {}
        self.results = []
        self.causes = ()
        self._test = ""

    def run(self, test, probe, subject):
        """Run one probe and keep how it ended."""
        self._test = test
        before = len(self.found)
        try:
            probe(subject, self)
        except SkipTest as reason:
            self.results.append(Result(test, "not run", str(reason)))
            return
        except Failure as failure:
            raises = failure.mistake == "forward_raises"
            name = "some_sizes_raise" if raises else failure.mistake
            if name in self.found:
                self.results.append(Result(test, "not run", str(failure)))
                return
            self.add(name, f"The test of: {test}.", f"{failure}.")
        except UnusableError:
            raise
        except Exception as error:
            # Nobody who checks a class should meet a traceback of the checker.
            why = f"the checker itself failed ({type(error).__name__}: {error})"
            self.results.append(Result(test, "broken", why))
            return
        outcome = "failed" if len(self.found) > before else "passed"
        self.results.append(Result(test, outcome))

    def add(self, mistake, done, seen):
        """Add a finding, once for each mistake."""
        self.found.setdefault(mistake, (self._test, done, seen))

    def cannot_run(self, test, failure, done):
        """Add that the module failed where nothing else can be tested."""
        self._test = test
        self.add(failure.mistake, done, str(failure))
        self.results.append(Result(test, "failed"))

    def not_run(self, tests, why):
        """Note the tests that were left out."""
        self.results += [Result(test, "not run", why) for test in tests]

    def findings(self):
        """Return the findings, root causes first.

        Where the output equals attention with a known mistake, what follows from that
        mistake is told with it.
        """
        found = dict(self.found)
        if self.causes:
            followed = [name for name in found if name in SYMPTOMS]
            told = " ".join(found.pop(name)[2] for name in followed)
            first = min(self.causes, key=ORDER.get)
            test, done, seen = found[first]
            found[first] = (test, done, f"{seen} {told}".strip())
        elif len(found) > 1:
            found.pop("differs", None)  # something else says more
        ordered = sorted(found, key=lambda name: (name not in _EARLY, ORDER[name]))
        if self.causes:
            ordered.sort(key=lambda name: name not in self.causes)
        return [_finding(name, *found[name]) for name in ordered]


# These would disturb every other test, so they stand before anything else.
_EARLY = set(list(ORDER)[: ORDER["mask_missing"]])


def _finding(name, test, done, seen):
    mistake = MISTAKES[name]
    return Finding(
        mistake=name,
        title=mistake.title,
        test=test,
        done=done,
        seen=seen,
        means=mistake.means,
        line=mistake.line,
        page=mistake.page,
        severity=mistake.severity,
    )
