"""Compares a class with attention that is right, or wrong in one known way.

Where the output equals a wrong way of computing it, on random numbers and to the
last digits, the mistake has a name. Nothing is read from the source code.
"""

from dataclasses import replace
from itertools import chain, combinations, product

import torch

from attention.checker.reference import RIGHT, attention

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
    ("groups_tiled", {"groups": "tiles"}, "with keys of groups tiled"),
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
TOLERANCE = 2e-5  # of the largest output; float32 is exact to about 1e-6


def recipes(causal, d_head):
    """Return (mistake names, recipe, words) for all single mistakes."""
    base = RIGHT if causal else replace(RIGHT, mask="none")
    singles = []
    for name, change, words in CHANGES:
        if causal or not {"mask", "fill", "mask_by"} & set(change):
            singles.append(((name,), replace(base, **change), words))
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


def pairs(causal):
    """Yield (mistake names, recipe, words) for two mistakes at once."""
    base = RIGHT if causal else replace(RIGHT, mask="none")
    for (name, change, words), (other, second, more) in combinations(CHANGES, 2):
        known = {"mask", "fill", "mask_by"} & (set(change) | set(second))
        if name != other and not set(change) & set(second) and (causal or not known):
            recipe = replace(base, **change, **second)
            yield (name, other), recipe, f"{words} and {more}"


def triples(causal):
    """Yield three mistakes at once: in scaling, in masking, and in softmax or heads."""
    if not causal:
        return
    kinds = [("scale",), ("mask", "fill", "mask_by"), ("softmax", "split", "join")]
    scaling, masking, others = (
        [row for row in CHANGES if set(row[1]) <= set(keys)] for keys in kinds
    )
    for rows in product(scaling, masking, others):
        names, changes, words = zip(*rows, strict=True)
        recipe = replace(RIGHT, **(changes[0] | changes[1] | changes[2]))
        yield names, recipe, " and ".join(words)


def distance(output, expected):
    """Return the largest difference, as a share of the largest expected value.

    Infinite unless shapes and non-finite entries agree and most entries are finite.
    """
    if output.shape != expected.shape:
        return float("inf")
    output, expected = output.cpu().double(), expected.cpu().double()
    finite = expected.isfinite()
    if not torch.equal(finite, output.isfinite()) or not finite.any():
        return float("inf")
    largest = expected[finite].abs().max().clamp_min(1e-12)
    return ((output - expected)[finite].abs().max() / largest).item()


def right_distance(x, output, candidates, causal):
    """Return the distance to right attention, for the best reading of the weights."""
    base = RIGHT if causal else replace(RIGHT, mask="none")
    distances = [
        distance(output, expected)
        for projections in candidates
        if (expected := _try(x, projections, base)) is not None
    ]
    return min(distances, default=float("inf"))


def name_mistake(x, output, candidates, causal):
    """Return what the output equals, or None.

    Returns:
        (mistake names, words, distance, others), where ``others`` are names of single
        mistakes that give the same numbers with these sizes.
    """
    for projections in candidates:
        matches = []
        for names, recipe, words in recipes(causal, projections.d_head):
            gap = _gap(x, output, projections, recipe)
            if gap < TOLERANCE:
                matches.append((names, words, gap))
        if matches:
            (first,), words, gap = matches[0]
            others = {names[0] for names, _, _ in matches} - {first}
            return (first,), words, gap, sorted(others)
    for projections in candidates[:1]:
        for names, recipe, words in chain(pairs(causal), triples(causal)):
            gap = _gap(x, output, projections, recipe)
            if gap < TOLERANCE:
                return names, words, gap, []
    return None


def _gap(x, output, projections, recipe):
    expected = _try(x, projections, recipe)
    return float("inf") if expected is None else distance(output, expected)


def _try(x, projections, recipe):
    """Compute the recipe, or return None where it does not fit the shapes."""
    try:
        return attention(x, projections, recipe)
    except RuntimeError:
        return None
