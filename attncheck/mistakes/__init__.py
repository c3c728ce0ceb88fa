"""Every mistake that the checker can name: what it means, the line, the page.

The order is the order of findings: what explains other findings comes first. Codes
are never given to another mistake.
"""

from attncheck.mistakes.contracts import CONTRACTS
from attncheck.mistakes.heads import HEADS
from attncheck.mistakes.kinds import Mistake
from attncheck.mistakes.masking import MASKING
from attncheck.mistakes.positions import POSITIONS
from attncheck.mistakes.projecting import PROJECTING
from attncheck.mistakes.running import RUNNING
from attncheck.mistakes.storage import STORAGE
from attncheck.mistakes.symptoms import SYMPTOM_LIST
from attncheck.mistakes.training import TRAINING
from attncheck.mistakes.unknown import UNKNOWN
from attncheck.mistakes.weighting import WEIGHTING

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
