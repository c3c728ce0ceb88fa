"""Exercises that ask for a class go through the checker."""

from torch import nn

from attncheck import check
from coding_attention.exercises.core import OURS, NotRight, described, is_ours

RAISED = ("constructor_raises", "forward_raises", "some_sizes_raise", "short_inputs")
# What the section of the exercise itself is about.
OWN_SECTION = "rope_", "window_", "cache_", "groups_", "rows_"
COMPARED = "same output as attention with these weights"


def check_class(answer, praise, **arguments):
    """Check a class of the reader; return the praise.

    Raises:
        NotRight: it is no class, the checker finds something, or it could not compare.
    """
    require_class(answer)
    report = check(answer, **arguments)
    refuse_findings(report)
    if name := is_ours(answer) or is_ours(_built(answer, arguments)):
        raise NotRight(OURS.format(name=name))
    # The checker only notes it, since a layer may do more than its listing.
    for note in report.notes:
        if note.startswith("Dropout acts on the weights, and on"):
            raise NotRight(f"{note} Only the weights are asked for: one call too many.")
    outcomes = {result.test: result.outcome for result in report.results}
    if outcomes.get(COMPARED) != "passed":
        raise NotRight(
            "Nothing wrong shows, but the checker did not find the weights, so it "
            "could not compare them with attention. Name the three layers W_query, "
            "W_key and W_value."
        )
    return praise


def require_class(answer):
    """Require a class derived from ``nn.Module``, or an instance.

    Raises:
        NotRight: it is something else.
    """
    a_class = isinstance(answer, type) and issubclass(answer, nn.Module)
    if not a_class and not isinstance(answer, nn.Module):
        raise NotRight(
            f"A class derived from nn.Module is asked for, but got {described(answer)}."
        )


def refuse_findings(report):
    """Tell the first finding of a report.

    Raises:
        NotRight: there is one, or nothing could be tested.
    """
    if not report.usable:
        raise NotRight(f"It could not be tested: {report.problem}")
    # A note is about a choice that may be meant, such as weights that are positive.
    found = [finding for finding in report.findings if finding.severity != "note"]
    if found:
        named = found[0].mistake.startswith(OWN_SECTION)
        raise NotRight(_told(found), page=None if named else found[0].page)


def _built(answer, arguments):
    """Return an instance, or None where the constructor refuses: see the checker."""
    try:
        return answer(**arguments) if isinstance(answer, type) else answer
    except Exception:
        return None


def _told(findings):
    first = findings[0]
    # What was seen holds measured numbers; only an error says more than the title.
    seen = f" {first.seen.rstrip('.')}." if first.mistake in RAISED else ""
    more = len(findings) - 1
    left = f" Findings after this one: {more}." if more else ""
    return f"{first.title}. {first.means}{seen} Likely line: {first.line}.{left}"
