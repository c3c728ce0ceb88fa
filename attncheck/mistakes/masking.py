"""Which scores are hidden."""

from attncheck.mistakes.kinds import CAUSAL, Mistake

MASKING = [
    Mistake(
        "mask_missing",
        "ATT201",
        "The future leaks: no causal mask",
        "Every token sees all later ones. In training it reads off the token it should "
        "predict.",
        "no line hides the future; "
        "`scores.masked_fill_(mask[:t, :t], -torch.inf)` before softmax is meant, or "
        "`is_causal=True`",
        CAUSAL,
    ),
    Mistake(
        "mask_upside_down",
        "ATT202",
        "The mask is upside down: it hides the past and shows the future",
        "Each token sees itself and what comes after it.",
        "`tril` where `triu(…, diagonal=1)` is meant?",
        CAUSAL,
    ),
    Mistake(
        "mask_inverted",
        "ATT203",
        "The mask is inverted: it hides what should be visible",
        "Each token sees only what comes after it, and the last sees nothing.",
        "1 = keep taken for 1 = hide? `masked_fill` and `nn.MultiheadAttention` hide "
        "where the mask is True; `scaled_dot_product_attention` keeps there",
        CAUSAL,
    ),
    Mistake(
        "mask_hides_itself",
        "ATT204",
        "The mask hides each token from itself",
        "The first token has nothing to attend to, a fully masked row: softmax over "
        "-inf alone gives NaN.",
        "`triu(…, diagonal=0)` where `triu(…, diagonal=1)` is meant?",
        CAUSAL,
    ),
    Mistake(
        "mask_off_by_one",
        "ATT205",
        "The mask starts one too late: each token sees the next one",
        "The next token is the very one that a language model has to predict.",
        "`triu(…, diagonal=2)` where `triu(…, diagonal=1)` is meant?",
        CAUSAL,
    ),
    Mistake(
        "mask_fill_zero",
        "ATT206",
        "Hidden scores are set to 0",
        "A score of 0 is not nothing: softmax gives it the weight exp(0) = 1 before "
        "normalizing. The future leaks.",
        "`masked_fill(mask, 0)` or `scores * tril` where "
        "`masked_fill(mask, -torch.inf)` is meant",
        CAUSAL,
    ),
    Mistake(
        "mask_fill_finite",
        "ATT207",
        "Hidden scores get a finite value that still leaks",
        "Softmax compares scores. A hidden one counts as soon as the visible ones are "
        "not far above it.",
        "`masked_fill(mask, -10)` or the like where `-torch.inf` is meant",
        CAUSAL,
    ),
    Mistake(
        "mask_added_as_ones",
        "ATT208",
        "A mask of zeros and ones is added to the scores",
        "This raises the future's scores by 1 and hides nothing.",
        "`scores + mask` needs -inf, not 1, where a score is hidden; "
        "`scores.masked_fill(mask.bool(), -torch.inf)` is meant",
        CAUSAL,
    ),
    Mistake(
        "mask_after_softmax",
        "ATT209",
        "The mask comes after softmax, and the weights are not normalized again",
        "Rows no longer sum to 1, and through the sum in softmax the future still "
        "changes the output.",
        "`softmax(scores) * tril` where masking with `-torch.inf` before softmax is "
        "meant (or a division by the row sums afterwards)",
        CAUSAL,
    ),
    Mistake(
        "mask_unwanted",
        "ATT210",
        "Tokens do not see the future, although causal=False",
        "Without a mask every token sees all tokens.",
        "the line that masks. If the mask is meant, check with `causal=True`",
        CAUSAL,
    ),
]
