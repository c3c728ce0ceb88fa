"""Which weights do what."""

from attncheck.mistakes.kinds import MULTI, SIMPLE, TRAINABLE, Mistake

PROJECTING = [
    Mistake(
        "output_projection_unused",
        "ATT501",
        "The output projection is not used",
        "Its weights exist and never take part.",
        "`return context` where `return self.out_proj(context)` is meant",
        MULTI,
    ),
    Mistake(
        "projection_mixed_up",
        "ATT502",
        "A projection is used in another's place",
        "Queries, keys and values must each come from their own weights.",
        "one of the three lines that project x",
        TRAINABLE,
    ),
    Mistake(
        "scores_transposed",
        "ATT503",
        "The scores are transposed: keys ask and queries answer",
        "Row i of the scores must hold the query i.",
        "`keys @ queries.transpose(-2, -1)` where "
        "`queries @ keys.transpose(-2, -1)` is meant",
        TRAINABLE,
    ),
    Mistake(
        "weights_transposed",
        "ATT504",
        "The attention weights are transposed",
        "Each token sums the values with the weights that others gave to it.",
        "`weights.transpose(-2, -1) @ values` where `weights @ values` is meant",
        SIMPLE,
    ),
    Mistake(
        "bias_unused",
        "ATT505",
        "The biases of query, key and value are not used",
        "They exist and never take part.",
        "`x @ W.weight.T` leaves the bias out; call the layer: `W(x)`",
        TRAINABLE,
    ),
    Mistake(
        "input_added",
        "ATT506",
        "The input is added to the output",
        "A residual connection belongs to the block around attention. With both, it is "
        "added twice.",
        "`return x + …`",
        MULTI,
    ),
]
