"""What a mistake is, and the pages that explain them."""

from dataclasses import dataclass

SIMPLE = "02_simple_self_attention"
TRAINABLE = "03_trainable_self_attention"
CAUSAL = "04_causal_attention"
MULTI = "05_multi_head_attention"
AVERAGING = "06_averaging"
TIME = "07_where_the_time_goes"


@dataclass(frozen=True)
class Mistake:
    """One mistake: its short name, and the words for it.

    Attributes:
        name: short name, its key in :data:`attncheck.MISTAKES`.
        code: a code that stays the same, such as "ATT201", to select or ignore it.
        title: the mistake in one line.
        means: what it means for the results.
        line: the line that is likely at fault, and what is meant instead.
        page: the page of the book to read.
        severity: "error" (results are wrong), "warning" (a trap for later) or "note"
            (a choice that may be meant).
    """

    name: str
    code: str
    title: str
    means: str
    line: str
    page: str
    severity: str = "error"
