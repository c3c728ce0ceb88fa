"""The mistakes as changes of one recipe, and the lists of them to try."""

from dataclasses import replace
from itertools import combinations, product

from attncheck.reference import RIGHT

ANY = "transpose"
VIEW, INTER = "view", "interleaved"

# (mistake, change of the recipe, the words for what the output equals)
CHANGES = [
    ("mask_missing", {"mask": "none"}, "without a mask"),
    ("mask_upside_down", {"mask": "past"}, "that hides the past"),
    ("mask_inverted", {"mask": "past and self"}, "that hides the past and itself"),
    ("mask_hides_itself", {"mask": "future and self"}, "that hides the token itself"),
    ("mask_off_by_one", {"mask": "beyond the next"}, "that shows the next token"),
    ("mask_fill_zero", {"fill": 0.0}, "with hidden scores set to 0"),
    ("mask_added_as_ones", {"mask_by": "adding ones"}, "with ones added to the scores"),
    ("mask_after_softmax", {"mask_by": "after softmax"}, "masked after softmax"),
    ("softmax_over_queries", {"softmax": -2}, "with softmax over the queries"),
    ("softmax_over_heads", {"softmax": 1}, "with softmax over the heads"),
    ("softmax_over_batch", {"softmax": 0}, "with softmax over the batch"),
    ("softmax_over_everything", {"softmax": "all"}, "with one softmax over everything"),
    ("softmax_missing", {"softmax": "none"}, "without softmax"),
    ("softmax_missing", {"softmax": "none", "fill": 0.0}, "without softmax"),
    ("softmax_twice", {"softmax": "twice"}, "with softmax applied twice"),
    ("scale_missing", {"scale": "1"}, "with unscaled scores"),
    ("scale_by_d_out", {"scale": "1/√d_out"}, "with scores divided by √d_out"),
    ("scale_by_d_in", {"scale": "1/√d_in"}, "with scores divided by √d_in"),
    ("scale_twice", {"scale": "1/d_head"}, "with scores divided by d_head"),
    ("scale_by_d_out_no_root", {"scale": "1/d_out"}, "with scores divided by d_out"),
    ("scale_multiplied", {"scale": "√d_head"}, "with scores multiplied by √d_head"),
    ("scale_by_tokens", {"scale": "1/√t"}, "with scores divided by √t"),
    ("scale_by_heads", {"scale": "1/√h"}, "with scores divided by √h"),
    ("scale_after_softmax", {"scale": "1", "scale_weights": True}, "scaled afterwards"),
    ("heads_attend_heads", {"attend": "heads"}, "among heads, causal over heads"),
    ("heads_attend_heads", {"attend": "heads", "mask": "none"}, "among heads"),
    ("heads_viewed", {"split": (VIEW, VIEW, VIEW)}, "with heads cut by view alone"),
    ("heads_viewed", {"split": (VIEW, ANY, ANY)}, "with queries cut by view alone"),
    ("heads_viewed", {"split": (ANY, VIEW, ANY)}, "with keys cut by view alone"),
    ("heads_viewed", {"split": (ANY, ANY, VIEW)}, "with values cut by view alone"),
    (
        "heads_viewed",
        {"split": (VIEW, VIEW, VIEW), "join": "view"},
        "with heads cut and joined by view alone",
    ),
    ("heads_interleaved", {"split": (INTER, INTER, INTER)}, "with interleaved heads"),
    (
        "heads_interleaved",
        {"split": (INTER, INTER, INTER), "join": INTER},
        "with interleaved heads",
    ),
    ("join_viewed", {"join": VIEW}, "with heads joined by view alone"),
    ("join_interleaved", {"join": INTER}, "with heads joined number by number"),
    ("heads_ignored", {"one_head": True}, "with one head"),
    ("heads_ignored", {"one_head": True, "scale": "1/√d_out"}, "with one head"),
    ("heads_added", {"merge": "sum"}, "with the heads added"),
    ("heads_added", {"merge": "mean"}, "with the mean of the heads"),
    ("groups_tiled", {"groups": ("tiles", "tiles")}, "with keys of groups tiled"),
    ("groups_apart", {"groups": ("tiles", "blocks")}, "with keys of groups tiled"),
    ("groups_apart", {"groups": ("blocks", "tiles")}, "with values of groups tiled"),
    ("rows_repeated", {"groups": ("first", "first")}, "with the first key head alone"),
    ("rows_repeated", {"groups": ("first", "blocks")}, "with the first key head"),
    ("rows_repeated", {"groups": ("blocks", "first")}, "with the first value head"),
    ("output_projection_unused", {"use_out": False}, "without output projection"),
    ("projection_mixed_up", {"source": ("q", "q", "v")}, "with queries used as keys"),
    ("projection_mixed_up", {"source": ("k", "k", "v")}, "with keys used as queries"),
    ("projection_mixed_up", {"source": ("q", "k", "k")}, "with keys used as values"),
    ("projection_mixed_up", {"source": ("q", "k", "q")}, "with queries used as values"),
    ("projection_mixed_up", {"source": ("q", "v", "v")}, "with values used as keys"),
    ("projection_mixed_up", {"source": ("q", "v", "k")}, "with keys as values"),
    ("projection_mixed_up", {"source": ("q", "k", "x")}, "with x used as values"),
    ("scores_transposed", {"turned": "scores"}, "with transposed scores"),
    ("weights_transposed", {"turned": "weights"}, "with transposed weights"),
    ("bias_unused", {"use_bias": False}, "without the biases"),
    ("input_added", {"add_input": True}, "plus the input"),
]
# A row that is hidden completely gives NaN, zeros, or the mean of everything.
CHANGES += [
    (name, {"mask": mask, **more}, words)
    for name, mask, words in [
        ("mask_inverted", "past and self", "that hides the past and itself"),
        ("mask_hides_itself", "future and self", "that hides the token itself"),
    ]
    for more in ({"softmax": "safe"}, {"fill": -1e9})
]
FILLS = [-1.0, -2.0, -3.0, -5.0, -8.0, -10.0, -20.0]
MASKING = {"mask", "fill", "mask_by"}

# What can go wrong where the layer does more: by the option that declares it.
BASES = (100.0, 1000.0, 5e5, 1e6, 2.0)
LAYER_CHANGES = {
    "rope": [
        ("rope_unused", {"rotated": "none"}, "without rotary positions"),
        ("rope_pairing", {"rotated": "halves"}, "with halves as pairs"),
        ("rope_pairing", {"rotated": "neighbors"}, "with neighbors as pairs"),
        (
            "rope_pairing",
            {"rotated": "halves with a table of neighbors"},
            "with halves as pairs and a table for neighbors",
        ),
        (
            "rope_pairing",
            {"rotated": "neighbors with a table of halves"},
            "with neighbors as pairs and a table for halves",
        ),
        ("rope_frequencies", {"rotated": "half steps"}, "with -i / d_head as powers"),
        ("rope_frequencies", {"rotated": "whole width"}, "with powers over d_out"),
        ("rope_offset", {"rotated": "offset"}, "with queries one step ahead"),
        ("rope_on_values", {"rotated": "values"}, "with values rotated too"),
        ("rope_on_one_side", {"rotated": "queries"}, "with queries rotated alone"),
        ("rope_on_one_side", {"rotated": "keys"}, "with keys rotated alone"),
        ("rope_directions", {"rotated": "opposite"}, "rotated in two directions"),
        ("rope_across_heads", {"rotated": "across heads"}, "rotated before the cut"),
        ("rope_twice", {"rotated": "twice"}, "rotated twice"),
        *(
            ("rope_base", {"rotated": f"base {base:g}"}, f"with the base {base:g}")
            for base in (*BASES, 10000.0)
        ),
    ],
    "window": [
        ("window_size", {"window": 1}, "with a window larger by 1"),
        ("window_size", {"window": -1}, "with a window smaller by 1"),
        ("window_unused", {"window": None}, "without a window"),
    ],
    "alibi": [
        ("alibi_sign", {"bias": "+"}, "with a bias that grows with distance"),
        ("alibi_slopes", {"bias": "steep"}, "with slopes 2^-i"),
        ("alibi_slopes", {"bias": "from 0"}, "with heads counted from 0"),
        ("alibi_unused", {"bias": "none"}, "without a bias by distance"),
    ],
    "qk_norm": [
        ("qk_norm_unused", {"norm": ""}, "without a norm of queries and keys"),
        ("qk_norm_one_side", {"norm": "q"}, "with queries normalized alone"),
        ("qk_norm_one_side", {"norm": "k"}, "with keys normalized alone"),
        ("qk_norm_axis", {"norm": "width"}, "normalized over all heads at once"),
    ],
    "softcap": [
        ("softcap_unused", {"cap": "none"}, "without a cap"),
        ("softcap_after_mask", {"cap": "masked scores"}, "capped after the mask"),
    ],
    "prenorm": [
        ("prenorm_unused", {"prenormed": ""}, "without a norm of the input"),
        ("prenorm_partly", {"prenormed": "q"}, "with queries from the norm alone"),
        ("prenorm_partly", {"prenormed": "qk"}, "with values from the bare input"),
        ("prenorm_partly", {"prenormed": "kv"}, "with queries from the bare input"),
    ],
}
# Kinds of which triples are made; within a kind one excludes the other.
KINDS = [
    ("scale", "scale_weights"),
    ("mask", "fill", "mask_by"),
    ("softmax",),
    ("split", "join", "attend", "one_head", "merge"),
    ("source", "turned"),
    ("use_bias", "use_out", "add_input", "groups"),
]


def base_recipe(causal):
    """Return what is right."""
    return RIGHT if causal else replace(RIGHT, mask="none")


def table(causal, layer):
    """Return the changes that make sense for this layer."""
    rows = [row for row in CHANGES if causal or not MASKING & set(row[1])]
    for option, changes in LAYER_CHANGES.items():
        if getattr(layer, option):
            rows += [row for row in changes if not _is_meant(row, layer)]
    return rows


def _is_meant(row, layer):
    """Whether a change only repeats what was declared."""
    how = row[1].get("rotated", "")
    meant = (layer.rope.pairing, f"base {layer.rope.base:g}") if layer.rope else ()
    return how in meant


def recipes(causal, d_head, layer):
    """Return (mistake names, recipe, words) for all single mistakes."""
    base = base_recipe(causal)
    singles = [
        ((name,), replace(base, **change), words)
        for name, change, words in table(causal, layer)
    ]
    if not causal:
        return [*singles, (("mask_unwanted",), RIGHT, "with a causal mask")]
    # The fill may come before or after the scores are scaled.
    for fill in FILLS:
        for value in (fill, fill / d_head**0.5):
            words = f"with hidden scores set to {fill:g}"
            singles.append((("mask_fill_finite",), replace(base, fill=value), words))
    # With a finite value, softmax over heads or the batch has no NaN.
    for name, axis in (("softmax_over_heads", 1), ("softmax_over_batch", 0)):
        recipe = replace(base, softmax=axis, fill=-1e9)
        singles.append(((name,), recipe, "normalized over another axis"))
    return singles


def pairs(causal, layer):
    """Yield (mistake names, recipe, words) for two mistakes at once."""
    base = base_recipe(causal)
    rows = table(causal, layer)
    for (name, change, words), (other, second, more) in combinations(rows, 2):
        if name != other and not set(change) & set(second):
            recipe = replace(base, **change, **second)
            yield (name, other), recipe, f"{words} and {more}"


def triples(causal, layer):
    """Yield three mistakes at once, of three kinds."""
    base = base_recipe(causal)
    rows = table(causal, layer)
    layered = {key for _, change, _ in rows for key in change} - {
        key for kind in KINDS for key in kind
    }
    kinds = [
        [row for row in rows if set(row[1]) <= set(kind)]
        for kind in [*KINDS, tuple(layered)]
    ]
    for three in combinations([kind for kind in kinds if kind], 3):
        for chosen in product(*three):
            names, changes, words = zip(*chosen, strict=True)
            change = changes[0] | changes[1] | changes[2]
            yield names, replace(base, **change), " and ".join(words)
