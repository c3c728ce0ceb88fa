"""The whole way of an attention layer, drawn with the matrices themselves."""

from attention.functional import attention_weights
from coding_attention.figures.base import (
    INK,
    KEY,
    QUERY,
    TEXT,
    TOKEN,
    VALUE,
    arrow,
    canvas,
    cell,
    check,
    describe,
    shade,
    styled,
)
from coding_attention.figures.words import count

BLOCK = 0.72  # inches: the height of t rows


@styled
def flow(x, W_query, W_key, W_value):
    """Draw how inputs become context vectors, each step as the matrix that it gives.

    Args:
        x: token vectors (t, d_in).
        W_query: (d_in, d_k).
        W_key: (d_in, d_k).
        W_value: (d_in, d_out).

    Returns:
        Axes with seven matrices as cells, the shape below each. Weights have the one
        scale of the book; the others stand on the color of what they are.
    """
    check(
        x=(x, "t d_in"), W_query=(W_query, "d_in d_k"), W_key=(W_key, "d_in d_k"),
        W_value=(W_value, "d_in d_out"),
    )  # fmt: skip
    x = x.detach()
    q, k, v = (x @ W.detach() for W in (W_query, W_key, W_value))
    scores = q @ k.T / k.shape[1] ** 0.5  # (t, d_k) @ (d_k, t) -> (t, t)
    weights = attention_weights(q, k)
    z = weights @ v  # (t, t) @ (t, d_out) -> (t, d_out)
    ax = canvas(3.6, 3.75)
    rows = (0.3, 1.52, 2.74)
    side = min(BLOCK / len(x), BLOCK / max(x.shape[1], q.shape[1], v.shape[1]))
    _heat(ax, 0.3, rows[1], x, side, "inputs x", TOKEN)
    for y, matrix, name, color, above in (
        (rows[0], q, "queries q", QUERY, "W_query"),
        (rows[1], k, "keys k", KEY, "W_key"),
        (rows[2], v, "values v", VALUE, "W_value"),
    ):
        _heat(ax, 1.4, y, matrix, side, name, color)
        end = (1.4 - matrix.shape[1] * side / 2 - 0.08, y + BLOCK / 2)
        arrow(ax, (0.3 + x.shape[1] * side / 2 + 0.08, rows[1] + BLOCK / 2), end)
        lower = y > rows[1]
        x_place = 0.9 if y == rows[1] else 0.56
        ax.text(
            x_place, y + BLOCK / 2 + (0.02 if lower else -0.03), above, ha="center",
            va="top" if lower else "bottom", fontsize=TEXT, color=INK,
        )  # fmt: skip
    _heat(ax, 2.32, (rows[0] + rows[1]) / 2, scores, BLOCK / len(x), "scores ω/√d_k")
    _heat(ax, 3.2, (rows[0] + rows[1]) / 2, weights, BLOCK / len(x), "weights α")
    _heat(ax, 3.2, rows[2], z, side, "context z", VALUE)
    half = q.shape[1] * side / 2 + 0.08
    center = (rows[0] + rows[1] + BLOCK) / 2
    for y, to in ((rows[0], center - 0.15), (rows[1], center + 0.15)):
        arrow(ax, (1.4 + half, y + BLOCK / 2), (2.32 - BLOCK / 2 - 0.03, to))
    arrow(ax, (2.72, center), (2.8, center), gap=0)
    below = center + BLOCK / 2 + 0.24
    arrow(ax, (3.2, below), (3.2, rows[2] - 0.25))
    left = 3.2 - z.shape[1] * side / 2 - 0.08
    right = 1.4 + v.shape[1] * side / 2 + 0.08
    arrow(ax, (right, rows[2] + BLOCK / 2), (left, rows[2] + BLOCK / 2))
    text = {"ha": "center", "va": "bottom", "fontsize": TEXT, "color": INK}
    ax.text((left + right) / 2, rows[2] + BLOCK / 2 - 0.03, "α times v", **text)
    return describe(ax, *_words(x, q, v, weights))


def _heat(ax, center, top, matrix, side, name, ground=None):
    """Draw a matrix as cells without numbers, on a ground in the color of its role."""
    colors = shade(matrix.double())
    left = center - matrix.shape[1] * side / 2
    high = BLOCK / len(matrix)
    if ground is not None:
        wide = matrix.shape[1] * side + 0.1
        cell(ax, left - 0.05, top - 0.05, wide, BLOCK + 0.1, ground)
    for i, row in enumerate(colors):
        for j, color in enumerate(row):
            cell(ax, left + j * side, top + i * high, side, high, color)
    text = {"ha": "center", "fontsize": TEXT, "color": INK}
    ax.text(center, top - 0.08, name, va="bottom", **text)
    ax.text(center, top + BLOCK + 0.07, str(tuple(matrix.shape)), va="top", **text)


def _words(x, q, v, weights):
    t, most = len(x), float(weights.max())
    i, j = divmod(int(weights.argmax()), t)
    shapes = {
        "x": x, "q": q, "k": q, "v": v, "scores": weights, "weights": weights, "z": v
    }  # fmt: skip
    sizes = ", ".join(f"{name} {tuple(m.shape)}" for name, m in shapes.items())
    caption = (
        f"An attention layer on {t} tokens: three matrices turn x into q, k and v; "
        f"q kᵀ / √d_k gives the scores, softmax the weights, and weights times v the "
        f"context vectors."
    )
    alt = (
        f"{count(len(shapes), 'grid').capitalize()} of colored cells, joined by "
        f"arrows, with their shapes: {sizes}. The weights go up to {most:.2f}, in "
        f"row {i} and column {j}, counted from 0."
    )
    return caption, alt
