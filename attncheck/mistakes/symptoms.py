"""What shows without knowing the weights."""

from attncheck.mistakes.kinds import CAUSAL, MULTI, SIMPLE, Mistake

SYMPTOM_LIST = [
    Mistake(
        "samples_mixed",
        "ATT701",
        "The sequences of a batch influence each other",
        "The output for a sequence must not depend on what else is in the batch.",
        "a mean, sum or softmax over axis 0, or a `reshape` that joins b with t",
        CAUSAL,
    ),
    Mistake(
        "tokens_not_mixed",
        "ATT702",
        "Tokens do not see each other at all",
        "Each output depends on its own token alone, so there is no attention.",
        "the axes of the scores: (…, t, t) is meant, not (…, h, h) or (…, d, d)",
        MULTI,
    ),
    Mistake(
        "future_leaks",
        "ATT703",
        "The future leaks",
        "An earlier token changes when a later one does. In training it reads off what "
        "it should predict.",
        "the mask: is it there, before softmax, with -inf, and the right way up? Or a "
        "`view` that mixes tokens",
        CAUSAL,
    ),
    Mistake(
        "past_unused",
        "ATT704",
        "A token does not use all of its past",
        "Each token must be able to attend to itself and everything before it.",
        "the mask hides too much, or is cut to the wrong corner",
        CAUSAL,
    ),
    Mistake(
        "not_finite",
        "ATT705",
        "The output holds NaN or infinity",
        "A row of scores that is hidden completely gives NaN in softmax; so does inf.",
        "the mask: some row has no visible position. Or a division by 0",
        CAUSAL,
    ),
    Mistake(
        "rows_do_not_sum_to_one",
        "ATT706",
        "The attention weights of a token do not sum to 1",
        "Where all tokens are equal, any average of them is the same, yet the output "
        "changes with the position.",
        "`softmax` over the wrong axis, or weights changed after softmax",
        SIMPLE,
    ),
    Mistake(
        "length_matters",
        "ATT707",
        "The output for the first tokens depends on how many follow",
        "With a causal mask the first tokens give the same result alone and followed "
        "by others.",
        "a size taken from the number of tokens, or a mask cut to the wrong corner",
        CAUSAL,
    ),
]
