"""The cases of the page "Find the bug": which mistakes, which pictures, what to say.

    python -m coding_attention.gallery.cases      compute cases.json anew

The pictures and the lines of code come from the planted classes; only the words stand
here. ``tests/coding_attention/gallery`` holds what the words say against what the
classes do.
"""

import difflib
import json
from pathlib import Path

from coding_attention.gallery.pictures import BUGS, picture
from coding_attention.gallery.planted_bugs import BASES

STORED = Path(__file__).with_name("cases.json")
DIGITS = 3

# What was done: one of the five causes to choose from.
CAUSES = {
    "mask_forgotten": "The mask is never applied.",
    "tril_for_triu": "The mask is the wrong triangle: it hides the past.",
    "keep_taken_for_hide": "The mask is turned around: it hides what should be seen.",
    "diagonal_0": "The mask begins on the diagonal, not above it.",
    "diagonal_2": "The mask begins one place too far to the right.",
    "hidden_scores_0": "Hidden scores are set to 0 in place of minus infinity.",
    "ones_added": "The mask of ones and zeros is added to the scores.",
    "mask_after_softmax": "The mask is applied after softmax, to the weights.",
    "softmax_over_queries": "Softmax runs down the columns, not along the rows.",
    "softmax_over_everything": "One softmax runs over all cells of the grid.",
    "softmax_over_heads": "Softmax runs across the heads.",
    "softmax_over_batch": "Softmax runs across the sequences of the batch.",
    "softmax_over_batch_without_nan": "Softmax runs across the batch, and hidden "
    "scores are a large negative number.",
    "softmax_forgotten": "There is no softmax.",
    "softmax_twice": "Softmax is applied twice.",
    "scaled_after_softmax": "The weights, not the scores, are divided by the root.",
    "not_scaled": "The scores are not divided by the root of the head's width.",
    "root_forgotten": "The scores are divided by the width, without the root.",
    "keys_times_queries": "Keys are multiplied with queries, not queries with keys.",
    "weights_transposed": "The weights are transposed before they meet the values.",
    "view_without_transpose": "The heads are split in one go, without a transpose.",
    "joined_without_transpose": "The heads are joined without transposing back.",
    "heads_and_width_exchanged": "The numbers are dealt out to the heads in turn.",
    "mean_over_batch": "The weights are averaged over the batch.",
    "output_detached": "The output is detached from the graph.",
}

# What each of them looks like in a picture; said to whoever chose it by mistake.
LOOKS = {
    "weights": {
        "mask_forgotten": "Then weight would lie above the diagonal wherever the "
        "scores are high, and each row would sum to 1.",
        "tril_for_triu": "Then everything below the diagonal would be 0: each word "
        "would see itself and what comes later.",
        "keep_taken_for_hide": "Then each word would see only later words, and the "
        "last row, which has none, would be nan.",
        "diagonal_0": "Then the diagonal would be 0, and the first row, with nothing "
        "left to see, would be nan.",
        "diagonal_2": "Then only the cells right above the diagonal would be open; all "
        "beyond them would be 0.",
        "hidden_scores_0": "Then all hidden cells of a row would have the same weight, "
        "and it would not be 0.",
        "ones_added": "Then later words would get more weight than with no mask at "
        "all, and each row would sum to 1.",
        "mask_after_softmax": "Then the future would be 0, but what it had taken would "
        "be missing: rows would sum to less than 1, all but the last.",
        "softmax_over_queries": "Then the columns would sum to 1 and the rows would "
        "not.",
        "softmax_over_everything": "Then all cells together would sum to 1, and most "
        "rows would have next to nothing.",
        "softmax_forgotten": "Then the cells would be raw scores: below zero, above "
        "one, and minus infinity where hidden.",
        "softmax_twice": "Then no weight would be near 1, and hidden words would get a "
        "share, since the second softmax makes something of 0.",
        "scaled_after_softmax": "Then each row would sum to 0.354, one over the root "
        "of 8, and not to 1.",
        "not_scaled": "Then the triangle and the sums would be right, and the largest "
        "weight of each row larger than it should be.",
        "root_forgotten": "Then the triangle and the sums would be right, and the rows "
        "flatter than they should be.",
        "keys_times_queries": "Then the triangle and the sums would be right, with the "
        "weights on other words.",
    },
    "heads": {
        "mask_forgotten": "Then weight would lie above the diagonal, in both heads.",
        "softmax_over_heads": "Then the two heads would share each cell: the same cell "
        "of both would sum to 1.",
        "softmax_over_queries": "Then the columns of each head would sum to 1.",
        "view_without_transpose": "Then each row of each head would still sum to 1.",
        "heads_and_width_exchanged": "Then each row would still sum to 1, with other "
        "weights in it.",
    },
    "batch": {
        "mean_over_batch": "Then both sequences would have the same weights, though "
        "their words differ.",
        "softmax_over_batch": "Then the same cell of both would sum to 1, and hidden "
        "cells would be nan.",
        "softmax_over_batch_without_nan": "Then the same cell of both would sum to 1, "
        "and hidden cells would be 0.5 in each.",
        "softmax_over_queries": "Then the columns of each sequence would sum to 1.",
        "keys_times_queries": "Then each sequence would have weights of its own.",
    },
    "reach": {
        "mask_forgotten": "Then every output would move with every word.",
        "tril_for_triu": "Then everything below the diagonal would be 0.",
        "diagonal_2": "Then each output would move with one later word, the next, and "
        "with none beyond.",
        "weights_transposed": "Then every output would move with every word, and most "
        "with the later ones.",
        "view_without_transpose": "Then some outputs would move with a later word, and "
        "some not even with their own.",
        "joined_without_transpose": "Then the third output would move with the last "
        "word, and the fourth with the first two only.",
        "heads_and_width_exchanged": "Then no output would move with a later word: the "
        "numbers of each word stay in its row.",
    },
    "loss": {
        "mask_forgotten": "Then the loss would fall far below guessing at once: the "
        "answer stands in the next place.",
        "hidden_scores_0": "Then the loss would fall at once, and stop above 1: the "
        "future comes in, blurred by the equal shares of all that is hidden.",
        "diagonal_0": "Then the first row would be nan, and with it the loss, from the "
        "first step.",
        "softmax_over_queries": "Then the loss would sink slowly and a little: a trace "
        "of the future comes in with the sums of the columns.",
        "output_detached": "Then attention could not learn, and the loss would stay at "
        "guessing.",
    },
}

# Why the broken line does what it does, and what the mended one does instead.
WHY = {
    "mask_forgotten": "The mask was made and never used. Without it a word takes from "
    "words that come later, and a model trained like this reads the answer instead of "
    "predicting it. Fill the hidden scores with minus infinity before softmax.",
    "tril_for_triu": "`tril` keeps the lower triangle, so the ones, which mean hide, "
    "lie on the past. What is to be hidden is above the diagonal: `triu`.",
    "diagonal_0": "With `diagonal=0` the mask covers the diagonal too. The first word "
    "has nothing to look at but itself, so its row is 0 divided by 0. The first hidden "
    "place is one to the right of the diagonal: `diagonal=1`.",
    "diagonal_2": "With `diagonal=2` the place right above the diagonal stays open, "
    "and that is the word to be predicted. The first hidden place is one to the right "
    "of the diagonal: `diagonal=1`.",
    "softmax_forgotten": "Scores are no shares: they can be negative, and they sum to "
    "anything. Softmax makes each row positive with sum 1, and turns minus infinity "
    "into 0.",
    "softmax_over_queries": "The last two axes are (query, key). A query shares out "
    "its attention among the keys, so softmax runs over the last axis: `dim=-1`.",
    "mask_after_softmax": "Softmax had already shared out the weight, the future "
    "included. To set it to 0 afterwards leaves the rest too small. Hide the scores "
    "before softmax, and the weights of what is left sum to 1.",
    "hidden_scores_0": "A score of 0 is no small score: softmax makes exp(0) = 1 of "
    "it. Only minus infinity becomes 0.",
    "softmax_twice": "The second softmax takes weights for scores. They lie between 0 "
    "and 1, so all come out nearly even, and the zeros of the mask become exp(0) = 1. "
    "One softmax is enough.",
    "not_scaled": "The scores of wide heads spread further, and softmax of widely "
    "spread scores is nearly all or nothing. Divide by the root of the head's width.",
    "softmax_over_heads": "The axes are (batch, head, query, key). `dim=1` is the "
    "head, so the heads compete for each cell, and a hidden cell is minus infinity in "
    "both, which gives nan. Softmax runs over the keys: `dim=-1`.",
    "mean_over_batch": "One set of weights for all sequences: what a sentence attends "
    "to depends on who else is in the batch. Leave the batch axis alone.",
    "weights_transposed": "Row i of the weights says what word i takes. Transposed, it "
    "says who takes from word i, and that is later words. `weights @ values`, as they "
    "are.",
    "view_without_transpose": "`view` straight to (batch, head, token, width) cuts the "
    "numbers in the order in which they lie in memory, so a head gets whole words of "
    "other places. View to (batch, token, head, width), then transpose.",
    "joined_without_transpose": "The context is (batch, head, token, width). Reshaped "
    "as it lies, two places of one head become one row. Transpose heads and tokens "
    "back first.",
}

ASKED = {
    "weights": "Attention weights of one head. A row is a word that looks, a column a "
    "word that is looked at.",
    "heads": "Attention weights of two heads, on the same sentence.",
    "batch": "Attention weights of two different sentences in one batch.",
    "reach": "How far each output (row) moves when a word (column) is changed; 1 is "
    "the largest move.",
    "loss": "The loss over training on random tokens that nobody can predict. The line "
    "at 2.08 is guessing among eight.",
}

# (mistake, kind of picture, the four other causes), easy ones first.
CASES = [
    ("mask_forgotten", "weights",
     "tril_for_triu keep_taken_for_hide diagonal_0 softmax_over_queries"),
    ("tril_for_triu", "weights",
     "keep_taken_for_hide mask_forgotten diagonal_0 softmax_over_queries"),
    ("diagonal_0", "weights",
     "diagonal_2 keep_taken_for_hide mask_after_softmax softmax_over_queries"),
    ("diagonal_2", "weights",
     "diagonal_0 mask_forgotten tril_for_triu hidden_scores_0"),
    ("softmax_forgotten", "weights",
     "softmax_over_queries softmax_over_everything not_scaled softmax_twice"),
    ("softmax_over_queries", "weights",
     "softmax_over_everything mask_after_softmax softmax_twice scaled_after_softmax"),
    ("mask_after_softmax", "weights",
     "softmax_over_queries scaled_after_softmax softmax_over_everything "
     "hidden_scores_0"),
    ("hidden_scores_0", "weights",
     "mask_forgotten ones_added softmax_twice diagonal_2"),
    ("softmax_twice", "weights",
     "hidden_scores_0 root_forgotten mask_forgotten scaled_after_softmax"),
    ("not_scaled", "weights",
     "root_forgotten scaled_after_softmax softmax_twice keys_times_queries"),
    ("softmax_over_heads", "heads",
     "softmax_over_queries mask_forgotten view_without_transpose "
     "heads_and_width_exchanged"),
    ("mean_over_batch", "batch",
     "softmax_over_batch softmax_over_batch_without_nan softmax_over_queries "
     "keys_times_queries"),
    ("mask_forgotten", "loss",
     "hidden_scores_0 diagonal_0 softmax_over_queries output_detached"),
    ("weights_transposed", "reach",
     "mask_forgotten tril_for_triu diagonal_2 view_without_transpose"),
    ("view_without_transpose", "reach",
     "joined_without_transpose mask_forgotten diagonal_2 weights_transposed"),
    ("joined_without_transpose", "reach",
     "view_without_transpose heads_and_width_exchanged diagonal_2 tril_for_triu"),
]  # fmt: skip


def stored_picture(name, kind):
    """Compute a picture as nested lists of rounded numbers; nan and -inf as words."""
    return _plain(picture(name, kind).tolist())


def _plain(value):
    if isinstance(value, list):
        return [_plain(part) for part in value]
    finite = abs(value) < float("inf")
    return round(value, DIGITS) + 0.0 if finite else str(value)


def changed_lines(name):
    """Give the lines that a planted bug changes: (broken, mended), as texts."""
    wrong, right = (
        text.splitlines()
        for text in (BUGS[name].source(), BASES[BUGS[name].base])
    )  # fmt: skip
    broken, mended = [], []
    for line in difflib.ndiff(wrong, right):
        kept = line[2:].strip()
        if line.startswith("- ") and kept and not kept.startswith(("import", "from")):
            broken.append(kept)
        elif line.startswith("+ ") and kept:
            mended.append(kept)
    return "\n".join(broken), "\n".join(mended)


def everything():
    """Compute all that the page shows, as JSON holds it."""
    cases = []
    for bug, kind, others in CASES:
        names = sorted([bug, *others.split()], key=lambda name: CAUSES[name])
        broken, mended = changed_lines(bug)
        cases.append({
            "bug": bug, "kind": kind, "asked": ASKED[kind], "why": WHY[bug],
            "broken": broken, "mended": mended,
            "choices": [
                {
                    "bug": name, "cause": CAUSES[name], "looks": LOOKS[kind][name],
                    "picture": stored_picture(name, kind),
                }
                for name in names
            ],
        })  # fmt: skip
    kinds = {kind: stored_picture("right", kind) for kind in ASKED}
    return {"right": kinds, "cases": cases}


def write():
    """Store what :func:`everything` computes, for the site, which has no PyTorch."""
    text = json.dumps(everything(), ensure_ascii=False, separators=(",", ":"))
    STORED.write_text(text.replace('{"bug"', '\n{"bug"') + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
