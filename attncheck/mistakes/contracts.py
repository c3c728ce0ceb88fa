"""What the presets for caches, padding and cross-attention can name."""

from attncheck.mistakes.kinds import CAUSAL, MULTI, TIME, Mistake

CONTRACTS = [
    Mistake(
        "cache_unused",
        "ATT901",
        "The cache has no effect",
        "Each chunk attends to itself alone: what came before is forgotten.",
        "the new keys and values are not joined to the old ones, or the cache is not "
        "kept",
        TIME,
    ),
    Mistake(
        "cache_mask_offset",
        "ATT902",
        "The causal mask ignores what is in the cache",
        "With keys from a cache, query i of a chunk is token `cached + i`. The mask "
        "must be cut at that row.",
        "`mask[cached : cached + t, : cached + t]`; with "
        "`scaled_dot_product_attention` no `is_causal=True` for a chunk",
        TIME,
    ),
    Mistake(
        "cache_positions",
        "ATT903",
        "Positions start again with every chunk",
        "The order within a chunk is right, the distance to earlier chunks is not.",
        "positions of a chunk start at the number of cached tokens",
        TIME,
    ),
    Mistake(
        "cache_not_reset",
        "ATT904",
        "A new sequence sees the one before",
        "With a fresh cache, or after a reset, nothing may be left.",
        "the reset, or a cache that is kept on `self` beside the one that is passed",
        TIME,
    ),
    Mistake(
        "cache_differs",
        "ATT905",
        "In chunks the output is another one than at once",
        "A cache saves time. It may not change a number.",
        "compare the keys that are joined: their order, their axis, their positions",
        TIME,
    ),
    Mistake(
        "cache_batch",
        "ATT906",
        "The cache works for one batch size alone",
        "Other numbers of sequences raise an error after a reset.",
        "the cache is made for the first batch and never again",
        TIME,
    ),
    Mistake(
        "padding_leaks",
        "ATT911",
        "Padding changes the output of real tokens",
        "What stands in padded places may not matter.",
        "the mask of padding: hide the columns (keys) that are padding, with -inf "
        "before softmax",
        CAUSAL,
    ),
    Mistake(
        "padding_inverted",
        "ATT912",
        "The mask of padding is the wrong way round",
        "Real tokens are hidden and padding is seen.",
        "True means hidden in one function and visible in another: `~mask`",
        CAUSAL,
    ),
    Mistake(
        "padding_rows",
        "ATT913",
        "Rows of padding are hidden where columns are meant",
        "A padded place may ask. What counts is that nobody looks at it.",
        "`mask[:, None, :]` (b, 1, t) where `mask[:, :, None]` was written",
        CAUSAL,
    ),
    Mistake(
        "padding_not_finite",
        "ATT914",
        "Padding makes NaN",
        "A row with everything hidden gives NaN in softmax, which spreads in the next "
        "layer and in gradients.",
        "let padding at least see itself, or set the rows of padding to 0 afterwards",
        CAUSAL,
    ),
    Mistake(
        "padding_future",
        "ATT915",
        "With a mask of padding the future leaks",
        "The mask of padding takes the place of the causal mask.",
        "hidden is what is padding or future: join the two masks with |",
        CAUSAL,
    ),
    Mistake(
        "padding_batch",
        "ATT916",
        "One sequence's padding is used for another",
        "Each sequence has a length of its own.",
        "the axes of the mask: (b, 1, 1, t), and `repeat_interleave` where heads are "
        "joined with the batch",
        CAUSAL,
    ),
    Mistake(
        "cross_ignores_memory",
        "ATT921",
        "The memory has no effect",
        "Keys and values must come from the memory.",
        "`self.W_key(memory)` and `self.W_value(memory)`",
        MULTI,
    ),
    Mistake(
        "cross_ignores_queries",
        "ATT922",
        "The queries have no effect",
        "Each output must depend on its own query.",
        "`self.W_query(x)`, with x of the decoder",
        MULTI,
    ),
    Mistake(
        "cross_mixes_queries",
        "ATT923",
        "Queries influence each other",
        "In cross-attention a query looks at the memory alone.",
        "keys or values are made from x, or joined with those of the memory",
        MULTI,
    ),
    Mistake(
        "cross_masked",
        "ATT924",
        "A causal mask hides part of the memory",
        "All of the memory is there from the start, so nothing is to be hidden.",
        "`is_causal=True`, or a mask left over from self-attention",
        MULTI,
    ),
    Mistake(
        "cross_sizes",
        "ATT925",
        "It fails for a memory of another length than the queries",
        "Two sequences hardly ever have the same length.",
        "`view(b, t, …)` with the t of the queries for keys and values",
        MULTI,
    ),
    Mistake(
        "cross_order",
        "ATT926",
        "The order of the memory matters",
        "Attention is a weighted sum, and a sum has no order. If positions are meant, "
        "ignore this one.",
        "positions, or a softmax over another axis than that of the memory",
        MULTI,
        "warning",
    ),
]
