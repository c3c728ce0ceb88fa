"""Every mistake that the checker can name: what it means, the line, the page.

The order is the order of findings: what explains other findings comes first. Codes
are never given to another mistake.
"""

from attention.checker.mistakes.contracts import CONTRACTS
from attention.checker.mistakes.heads import HEADS
from attention.checker.mistakes.kinds import Mistake
from attention.checker.mistakes.masking import MASKING
from attention.checker.mistakes.positions import POSITIONS
from attention.checker.mistakes.projecting import PROJECTING
from attention.checker.mistakes.running import RUNNING
from attention.checker.mistakes.storage import STORAGE
from attention.checker.mistakes.symptoms import SYMPTOM_LIST
from attention.checker.mistakes.training import TRAINING
from attention.checker.mistakes.unknown import UNKNOWN
from attention.checker.mistakes.weighting import WEIGHTING

__all__ = ["EARLY", "EXPLAINS", "MISTAKES", "ORDER", "SYMPTOMS", "Mistake"]

_ALL = [
    *RUNNING,
    *MASKING,
    *WEIGHTING,
    *HEADS,
    *PROJECTING,
    *POSITIONS,
    *SYMPTOM_LIST,
    *TRAINING,
    *STORAGE,
    *CONTRACTS,
    *UNKNOWN,
]
MISTAKES = {mistake.name: mistake for mistake in _ALL}
ORDER = {name: place for place, name in enumerate(MISTAKES)}

# These disturb every other test, so they come before anything else.
EARLY = {mistake.name for mistake in RUNNING}
# What follows from a mistake that the output has been matched to exactly.
SYMPTOMS = {mistake.name for mistake in SYMPTOM_LIST}
# What makes the output another one for ordinary tokens: each explains a difference.
EXPLAINS = (
    SYMPTOMS
    | {mistake.name for mistake in (*MASKING, *WEIGHTING, *HEADS, *PROJECTING)}
    | {"keeps_state", "random_in_eval", "batch_first", "changes_input"}
) - {"mask_fill_finite"}
