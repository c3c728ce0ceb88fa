"""How scores become weights: softmax and scale."""

from attncheck.mistakes.kinds import CAUSAL, MULTI, SIMPLE, TRAINABLE, Mistake

WEIGHTING = [
    Mistake(
        "softmax_over_queries",
        "ATT301",
        "Softmax over the wrong axis: the queries",
        "The weights that a key gets from all queries sum to 1. Those with which a "
        "query averages the values do not.",
        "`softmax(…, dim=-2)` or `dim=1` where `dim=-1` is meant",
        SIMPLE,
    ),
    Mistake(
        "softmax_over_heads",
        "ATT302",
        "Softmax over the wrong axis: the heads",
        "Weights are normalized between heads, so no head averages the values.",
        "`softmax(…, dim=1)` where `dim=-1` is meant: scores are (b, h, t, t)",
        MULTI,
    ),
    Mistake(
        "softmax_over_batch",
        "ATT303",
        "Softmax over the wrong axis: the batch",
        "The output for one sequence depends on the others that happen to share its "
        "batch.",
        "`softmax(…, dim=0)` where `dim=-1` is meant",
        CAUSAL,
    ),
    Mistake(
        "softmax_over_everything",
        "ATT304",
        "Softmax over all scores of a sequence at once",
        "All weights together sum to 1. Each row must do so by itself.",
        "`flatten` before `softmax`; `softmax(scores, dim=-1)` is meant",
        SIMPLE,
    ),
    Mistake(
        "softmax_missing",
        "ATT305",
        "Scores are used as weights, without softmax",
        "Scores can be negative and do not sum to 1, so the result is no average.",
        "`scores @ values` where `softmax(scores, dim=-1) @ values` is meant",
        SIMPLE,
    ),
    Mistake(
        "softmax_twice",
        "ATT306",
        "Softmax is applied twice",
        "The second softmax makes all weights nearly equal, and gives hidden positions "
        "the weight exp(0) again: the future leaks.",
        "one of the two calls of `softmax`",
        SIMPLE,
    ),
    Mistake(
        "scale_missing",
        "ATT307",
        "The scores are not scaled",
        "Scores grow with √d_head, softmax saturates, and gradients vanish.",
        "`softmax(scores)` where `softmax(scores / keys.shape[-1] ** 0.5)` is meant",
        TRAINABLE,
    ),
    Mistake(
        "scale_by_d_out",
        "ATT308",
        "The scores are divided by the root of d_out, not of d_head",
        "Each dot product adds d_head products. Dividing by more makes the weights too "
        "even.",
        "`/ d_out ** 0.5` where `/ head_dim ** 0.5` is meant",
        MULTI,
    ),
    Mistake(
        "scale_by_d_in",
        "ATT309",
        "The scores are divided by the root of d_in, not of d_head",
        "The width of the input has no part in the dot product of query and key.",
        "`/ x.shape[-1] ** 0.5` where `/ keys.shape[-1] ** 0.5` is meant",
        TRAINABLE,
    ),
    Mistake(
        "scale_twice",
        "ATT310",
        "The scores are divided by d_head: scaled twice, or without the root",
        "Both come to the same: weights that are too even.",
        "`/ head_dim` where `/ head_dim ** 0.5` is meant, or queries and scores both "
        "scaled, or a scaling before `scaled_dot_product_attention`, which scales too",
        TRAINABLE,
    ),
    Mistake(
        "scale_by_d_out_no_root",
        "ATT311",
        "The scores are divided by d_out",
        "The root is missing, and the width is that of all heads together.",
        "`/ d_out` where `/ head_dim ** 0.5` is meant",
        MULTI,
    ),
    Mistake(
        "scale_multiplied",
        "ATT312",
        "The scores are multiplied by √d_head where a division is meant",
        "Softmax saturates: nearly all weight falls on one token.",
        "`* head_dim ** 0.5` where `* head_dim ** -0.5` is meant",
        TRAINABLE,
    ),
    Mistake(
        "scale_by_tokens",
        "ATT313",
        "The scores are divided by the root of the number of tokens",
        "The weights then depend on the length of the sequence.",
        "a wrong axis in the size: `scores.shape[-1]` counts tokens, "
        "`keys.shape[-1]` is the width",
        TRAINABLE,
    ),
    Mistake(
        "scale_by_heads",
        "ATT314",
        "The scores are divided by the root of the number of heads",
        "The root of each head's width is meant.",
        "`/ num_heads ** 0.5` where `/ head_dim ** 0.5` is meant; or a wrong axis in "
        "`keys.shape`",
        MULTI,
    ),
    Mistake(
        "scale_after_softmax",
        "ATT315",
        "The scaling comes after softmax",
        "It then shrinks the output, and rows sum to 1/√d_head.",
        "`softmax(scores) / keys.shape[-1] ** 0.5` where "
        "`softmax(scores / keys.shape[-1] ** 0.5)` is meant",
        TRAINABLE,
    ),
]
