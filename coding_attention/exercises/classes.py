"""Exercises that ask for a class go through the checker."""

from torch import nn

from attncheck import check
from coding_attention.exercises.core import (
    OURS,
    NotRight,
    describe,
    is_ours,
)

RAISED = ("constructor_raises", "forward_raises", "some_sizes_raise", "short_inputs")
# What the section of the exercise itself is about.
OWN_SECTION = "rope_", "window_", "cache_", "groups_", "rows_"
COMPARED = "same output as attention with these weights"
# True of a layer that computes the right thing, and asked for by no task unless it says
# so: told as a remark, which costs nothing.
NOT_ASKED = {
    "dtype_stays_behind", "mask_fill_finite", "overflows", "stays_behind",
    "too_many_tokens_accepted", "too_many_tokens_cut",
}  # fmt: skip
REMARK = " A remark that costs no points: {title}. {means}"


def check_class(answer, praise, asked=(), **arguments):
    """Check a class of the reader; return the praise, and remarks behind it.

    Args:
        answer: the class, or an instance.
        praise: what to learn from the right one.
        asked: names of mistakes that the task speaks of, though most do not.
        arguments: for the checker.

    Raises:
        NotRight: it is no class, the checker finds something, or it could not compare.
    """
    require_class(answer)
    answer = class_of(answer, arguments)
    report = check(answer, **arguments)
    outcomes = {result.test: result.outcome for result in report.results}
    compared = outcomes.get(COMPARED) == "passed"
    free = NOT_ASKED - set(asked) if compared else set()
    refuse_findings(report, free)
    _refuse_ours(answer, arguments)
    # The checker only notes it, since a layer may do more than its listing.
    for note in report.notes:
        if note.startswith("Dropout acts on the weights, and on"):
            raise NotRight(
                f"{note} Apply it only to the weights: there is one call too many."
            )
    if not compared:
        raise NotRight(
            "Nothing looks wrong, but the checker didn't find the projections, so it "
            "couldn't compare the output with attention. Name the layers "
            "W_query, W_key and W_value."
        )
    return praise + _list_remarks(report)


def require_class(answer):
    """Require a class derived from ``nn.Module``, or an instance.

    Raises:
        NotRight: it is something else.
    """
    a_class = isinstance(answer, type) and issubclass(answer, nn.Module)
    if not a_class and not isinstance(answer, nn.Module):
        raise NotRight(
            f"Expected a class derived from nn.Module, but got {describe(answer)}."
        )


def class_of(answer, arguments):
    """Return the class of an instance, if it can be built with the check's sizes.

    The sizes that a reader gave the instance may differ from those.
    """
    if isinstance(answer, type) or not isinstance(answer, nn.Module):
        return answer
    return type(answer) if _try_to_build(type(answer), arguments) else answer


def refuse_findings(report, free=()):
    """Tell the first finding of a report, but for those that cost nothing.

    Raises:
        NotRight: there is one, or nothing could be tested.
    """
    if not report.usable:
        raise NotRight(f"It can't be tested: {report.problem}")
    # A note is about a choice that may be meant, such as weights that are positive.
    found = [
        finding
        for finding in report.findings
        if finding.severity != "note" and finding.mistake not in free
    ]
    if found:
        named = found[0].mistake.startswith(OWN_SECTION)
        raise NotRight(_describe_findings(found), page=None if named else found[0].page)


def _refuse_ours(answer, arguments):
    if name := is_ours(answer) or is_ours(_try_to_build(answer, arguments)):
        raise NotRight(OURS.format(name=name))


def _list_remarks(report):
    found = [finding for finding in report.findings if finding.severity != "note"]
    return "".join(REMARK.format(title=f.title, means=f.means) for f in found)


def _try_to_build(answer, arguments):
    """Return an instance, or None where the constructor refuses: see the checker."""
    try:
        return answer(**arguments) if isinstance(answer, type) else answer
    except Exception:
        return None


def _describe_findings(findings):
    first = findings[0]
    # What was seen holds measured numbers; only an error says more than the title.
    seen = f" {first.seen.rstrip('.')}." if first.mistake in RAISED else ""
    more = len(findings) - 1
    left = f" {more} more after this one." if more else ""
    line = first.line if first.line.endswith("?") else f"{first.line}."
    return f"{first.title}. {first.means}{seen} Likely line: {line}{left}"
