"""Nothing fits."""

from attncheck.mistakes.kinds import MULTI, Mistake

UNKNOWN = [
    Mistake(
        "differs",
        "ATT991",
        "The output differs from scaled dot-product attention",
        "None of the mistakes that the checker knows gives this output, and nothing "
        "beside attention was seen at work. If the layer does more on purpose, "
        "describe it (rope=, window=, qk_norm= …), or give the right answer as "
        "reference=.",
        "compare step by step with `scaled_dot_product_attention`",
        MULTI,
    ),
    Mistake(
        "differs_from_reference",
        "ATT992",
        "The output differs from the reference",
        "With the same weights and the same input both must agree.",
        "compare both step by step",
        MULTI,
    ),
]
