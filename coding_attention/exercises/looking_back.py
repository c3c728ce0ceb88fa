"""Exercises on the page that asks why attention."""

from coding_attention.exercises.core import Exercise
from coding_attention.exercises.table import Field, Table, ordered, right, wrong

PAGE = "01_why_attention"
_STATES = (5, 9, 64)
_LAST = (5, 64), (1, 5, 64), (5, 1, 64)  # as nn.GRU gives it, too
_WEIGHTS = (5, 9), (5, 9, 1), (5, 1, 9)

_NOT_THE_STATES = "The states do not have the shape {states}."
_NOT_THE_LAST = "The decoder does not get the shape {last}."
_NOT_THE_WEIGHTS = "The weights do not have the shape {weights}."

_BOTTLENECK = Table(
    "A list of three shapes, of the states, of what the decoder gets, and of the "
    "weights,",
    (
        Field("states", "shape", "Shape of all states of the encoder"),
        Field("last", "shape", "Shape of what the decoder gets without attention"),
        Field("weights", "shape", "Shape of the weights of one step that looks back"),
    ),
    (
        right(
            "Without attention the length of the sentence is gone from what the "
            "decoder gets: that is the bottleneck. Looking back needs one weight for "
            "each state.",
            states=(_STATES,),
            last=_LAST,
            weights=_WEIGHTS,
        ),
        wrong(
            f"{_NOT_THE_STATES} These are the states of one sentence. There are five.",
            states=((9, 64),),
        ),
        wrong(
            f"{_NOT_THE_STATES} That is one state for each sentence. The encoder makes "
            f"one at each word.",
            states=((5, 64), (1, 5, 64)),
        ),
        wrong(
            f"{_NOT_THE_STATES} That is the width of an embedding. A state has a width "
            f"of its own.",
            states=((5, 9, 32),),
        ),
        wrong(
            f"{_NOT_THE_LAST} Those are all states. Without attention it gets the last "
            f"one of each sentence.",
            states=(_STATES,),
            last=(_STATES,),
        ),
        wrong(
            f"{_NOT_THE_LAST} There are five sentences, and each has a last state.",
            states=(_STATES,),
            last=((64,), (1, 64)),
        ),
        *(
            wrong(
                f"{_NOT_THE_WEIGHTS} {say}",
                states=(_STATES,),
                last=_LAST,
                weights=shapes,
            )
            for shapes, say in (
                (
                    ((5, 9, 9),),
                    "That would be self-attention. One step of the decoder asks once "
                    "for each sentence.",
                ),
                ((_STATES,), "A state is weighted as a whole, so it gets one number."),
                (((9,),), "There are five sentences, and each has weights of its own."),
                (
                    _LAST,
                    "That is the shape of the weighted sum. There is one weight for "
                    "each state.",
                ),
            )
        ),
        wrong(
            f"{_NOT_THE_WEIGHTS} Each state of each sentence gets one number.",
            states=(_STATES,),
            last=_LAST,
        ),
        wrong(
            f"{_NOT_THE_LAST} It gets the last state of each sentence: which axis is "
            f"left out?",
            states=(_STATES,),
        ),
        wrong(
            f"{_NOT_THE_STATES} Sentences, words, numbers of a state: count the three."
        ),
    ),
)

_LINES = (
    ("a", "context = weights @ states"),
    ("b", "scores = torch.tanh(W @ state + states @ U.T) @ v"),
    ("c", "weights = torch.softmax(scores, dim=0)"),
    ("d", "state = cell(torch.cat([word, context]), state)"),
)
_ORDER = Table(
    "A row of the letters a to d, such as abcd,",
    (Field("order", "order", "The lines, first to last", _LINES),),
    ordered(
        "order",
        "abcd",
        (
            ("b", "c", "Softmax comes before the scores that it turns into weights."),
            ("c", "a", "The weighted sum comes before its weights: softmax is first."),
            ("a", "d", "The new state is made before the context that goes into it."),
        ),
        "Score, softmax, weighted sum, and then the next state. The first three come "
        "back on the next pages.",
    ),
)

EXERCISES = [
    Exercise("bottleneck", PAGE, "A list of three shapes", _BOTTLENECK),
    Exercise("look-back", PAGE, "A row of the letters a to d", _ORDER),
]
