"""How heads are cut, joined and shared."""

from attncheck.mistakes.kinds import MULTI, TIME, Mistake

HEADS = [
    Mistake(
        "heads_attend_heads",
        "ATT401",
        "Attention runs among the heads of one token, not among tokens",
        "No token learns anything from another.",
        "`transpose(1, 2)` is missing after the split: (b, h, t, d_head) is meant, so "
        "that `@` pairs tokens",
        MULTI,
    ),
    Mistake(
        "heads_viewed",
        "ATT402",
        "Heads are mixed up: view without transpose",
        "`view` keeps the order in memory. Cut straight to (b, h, t, d_head), a head "
        "gets pieces of several tokens.",
        "`.view(b, h, t, d_head)` where `.view(b, t, h, d_head).transpose(1, 2)` is "
        "meant",
        MULTI,
    ),
    Mistake(
        "heads_interleaved",
        "ATT403",
        "Heads take every h-th number, not neighboring ones",
        "Trained from scratch this works, but weights of other classes do not fit.",
        "`.view(b, t, d_head, h)` where `.view(b, t, h, d_head)` is meant",
        MULTI,
        "warning",
    ),
    Mistake(
        "join_viewed",
        "ATT404",
        "Heads are joined without transposing back",
        "`view` keeps the order in memory, so a token's result gets pieces of others.",
        "`context.reshape(b, t, d_out)` where "
        "`context.transpose(1, 2).reshape(b, t, d_out)` is meant",
        MULTI,
    ),
    Mistake(
        "join_interleaved",
        "ATT405",
        "Heads are joined in the wrong order",
        "Trained from scratch this works, but weights of other classes do not fit.",
        "(b, t, h, d_head) is meant before the last `view`, not (b, t, d_head, h)",
        MULTI,
        "warning",
    ),
    Mistake(
        "heads_ignored",
        "ATT406",
        "num_heads has no effect: there is one head",
        "All numbers of a token go into one dot product.",
        "the split into (b, t, h, d_head) is missing",
        MULTI,
    ),
    Mistake(
        "heads_added",
        "ATT407",
        "The heads are added, not concatenated",
        "What the heads found can no longer be told apart.",
        "`sum` or `mean` where `torch.cat([…], dim=-1)` is meant",
        MULTI,
    ),
    Mistake(
        "groups_tiled",
        "ATT408",
        "Grouped heads share keys in the wrong order",
        "Trained from scratch this works, but weights of other classes do not fit.",
        "`repeat` where `repeat_interleave` is meant",
        TIME,
        "warning",
    ),
    Mistake(
        "groups_apart",
        "ATT409",
        "Keys and values of grouped heads are shared in different ways",
        "A query head then reads the values of one group with the keys of another.",
        "the same `repeat_interleave(h // h_kv, dim=1)` for keys and values",
        MULTI,
    ),
    Mistake(
        "rows_repeated",
        "ATT410",
        "One key and value head serves all query heads, though there are more",
        "The other key and value heads never take part.",
        "`k[:, :1]`, or `expand` where `repeat_interleave` is meant",
        TIME,
    ),
]
