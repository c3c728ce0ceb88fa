"""Every mistake that the checker can name, from one record each.

The records lie beside this file, one table of TOML for each mistake: what it is
called, what it means, the line and the page to read. Codes are never given to another
mistake.
"""

from attncheck.mistakes.records import Mistake, families

__all__ = ["EARLY", "EXPLAINS", "LATE", "MISTAKES", "ORDER", "SYMPTOMS", "Mistake"]

MISTAKES = {m.name: m for family in families().values() for m in family}
ORDER = {name: place for place, name in enumerate(MISTAKES)}


def _names(*names: str) -> set[str]:
    return {mistake.name for name in names for mistake in families()[name]}


# These disturb every other test, so they come first.
EARLY = _names("running")
# What follows from a mistake that the output has been matched to exactly.
SYMPTOMS = _names("symptoms")
# These may merely follow from an output that differs.
LATE = _names("training", "storage", "contracts")
# Each of these changes the output for ordinary tokens, so it explains a difference.
EXPLAINS = (
    SYMPTOMS
    | _names("masking", "weighting", "heads", "projecting")
    | {"keeps_state", "random_in_eval", "batch_first", "changes_input"}
) - {"mask_fill_finite", "mask_square"}
