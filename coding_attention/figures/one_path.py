"""The path of section 3.3 for one query: x, scores ω, weights α, context vector z."""

from attention.functional import attention_weights
from coding_attention.figures.base import (
    BLUE,
    INK,
    LIGHT,
    SMALL,
    TEXT,
    TITLE,
    TOKEN,
    VALUE,
    WEIGHTS,
    canvas,
    cell,
    check,
    describe,
    frame,
    number,
    styled,
)

# In inches: a row, the tokens, a letter of the longest token, one number.
ROW, LABEL, LETTER, NARROW = 0.27, 0.56, 0.08, 0.34


@styled
def one_path(x, tokens, query):
    """Draw how one token becomes its context vector, from left to right with numbers.

    Args:
        x: embeddings of one sequence, (t, d_in).
        tokens: t labels.
        query: index of the token that looks.

    Returns:
        Axes with a row for each token: its embedding, its score, its weight and a
        line as thick as the weight to the context vector at the right.
    """
    t = check(x=(x, "t d_in"), tokens=(tokens, "t"))["t"]
    scores = x @ x[query]  # (t, d_in) @ (d_in,) -> (t,)
    weights = attention_weights(x[query], x, scale=1.0)
    z = weights @ x  # (t,) @ (t, d_in) -> (d_in,)
    height = ROW * t + 0.75
    ax = canvas(3.6, height)
    wide = 1.78 / (2 * x.shape[1])
    label = max(LABEL, LETTER * max(map(len, tokens)))
    left = {"x": label, "ω": label + x.shape[1] * wide + 0.12}
    left["α"] = left["ω"] + NARROW + 0.12
    left["z"] = 3.58 - x.shape[1] * wide
    top = 0.3
    middle = top + ROW * t / 2
    for i, (token, score, weight) in enumerate(
        zip(tokens, scores.tolist(), weights.tolist(), strict=True)
    ):
        y = top + i * ROW
        ax.text(
            label - 0.06, y + ROW / 2, token, ha="right", va="center_baseline",
            fontsize=SMALL, color=INK,
        )  # fmt: skip
        _row(ax, left["x"], y, x[i].tolist(), wide, TOKEN)
        _row(ax, left["ω"], y, [score], NARROW, LIGHT)
        _row(ax, left["α"], y, [weight], NARROW, WEIGHTS(round(weight, 3)))
        ends = [left["α"] + NARROW, left["z"]], [y + ROW / 2, middle]
        ax.plot(*ends, color=BLUE, lw=round(12 * weight, 2), zorder=0.5)
    _row(ax, left["z"], middle - ROW / 2, z.tolist(), wide, VALUE)
    frame(ax, left["x"], top + query * ROW, x.shape[1] * wide, ROW)
    spans = {"x": x.shape[1] * wide, "ω": NARROW, "α": NARROW, "z": x.shape[1] * wide}
    below = {
        "x": "embed-\nding",
        "ω": "dot\nproduct",
        "α": "soft-\nmax",
        "z": "sum of\nα times x",
    }
    for name, span in spans.items():
        center = left[name] + span / 2
        ax.text(center, 0.15, name, fontsize=TITLE, ha="center", va="center", color=INK)
        ax.text(
            center, height - 0.2, below[name], fontsize=TEXT, ha="center",
            va="center", color=INK, linespacing=1.1,
        )  # fmt: skip
    return describe(ax, *_words(tokens, query, scores, weights, z))


def _row(ax, x, y, numbers, width, color):
    for i, value in enumerate(numbers):
        cell(ax, x + i * width, y, width, ROW, color, number(value, 2))


def _words(tokens, query, scores, weights, z):
    name, best = tokens[query], int(weights.argmax())
    vector = ", ".join(number(value, 2) for value in z)
    caption = (
        f"From the embeddings x to the context vector z of {name}, whose own embedding "
        f"is framed: a dot product gives each token a score ω, softmax makes weights α "
        f"of the scores, and z is the sum of all embeddings, each times its weight."
    )
    parts = "; ".join(
        f"{token} {number(score, 2)}, {number(weight, 2)}"
        for token, score, weight in zip(tokens, scores, weights, strict=True)
    )
    alt = (
        f"{len(tokens)} rows, one for each token, with its embedding, its score and "
        f"its weight for the query {name}: {parts}. Lines as thick as the weights lead "
        f"to the context vector ({vector}); the thickest comes from {tokens[best]}."
    )
    return caption, alt
