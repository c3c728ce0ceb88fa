"""Which lab shows a published value, and set to what: the address of that state.

Where a value is in no lab, or only by chance (a draw of dropout), it has no row here.
tests/theme/test_published.py opens each address and looks for the digits.
"""

from urllib.parse import urlencode

TRAINABLE = "book/03_trainable_self_attention", "lab-attention"
MASK = "book/04_causal_attention", "lab-mask"
HEADS = "book/05_questions", "lab-multi-head"
SPLIT = "book/05_multi_head_attention", "lab-head-split"
SIMPLE = {"trainable": 0, "scaled": 0}
JOURNEY = {"query": "journey"}
# (page and cell of the lab, what differs from its first state) -> values
STATES = [
    (TRAINABLE, JOURNEY | SIMPLE,
     ["scores_journey", "weights_journey_softmax", "context_journey"]),
    (TRAINABLE, SIMPLE, ["scores_all", "weights_all", "context_all"]),
    (TRAINABLE, JOURNEY, ["query_2", "score_22", "scores_2", "weights_2", "context_2"]),
    (TRAINABLE, {}, ["self_attention_v1"]),
    # With nothing hidden, the mask lab is the attention of the second class.
    (MASK, {"diagonal": 6},
     ["self_attention_v2", "causal_weights_unmasked", "causal_scores_unmasked"]),
    (MASK, {"fill": "0", "place": "after"}, ["causal_weights_zeroed"]),
    (MASK, {}, ["causal_weights", "causal_scores_masked"]),
    (HEADS, {"sharper": "as drawn"}, ["multi_head_wrapper", "causal_attention"]),
    (SPLIT, {"step": 0}, ["arange_2_3_4"]),
    (SPLIT, {}, ["arange_split_heads"]),
]  # fmt: skip
NUMBERS = {"numbers": "1"}  # the lab's tables, opened


def state_of(value):
    """Give where a value can be seen in a lab.

    Args:
        value: the id of a published value.

    Returns:
        The page, the anchor with the lab's state, and the lab's name; None if no lab
        shows the value.
    """
    for (page, cell), state, values in STATES:
        if value in values:
            anchor = f"{cell}?{urlencode(state | NUMBERS)}"
            return page, anchor, f"{cell.removeprefix('lab-')} lab"
    return None
