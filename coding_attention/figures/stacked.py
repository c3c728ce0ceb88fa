"""Section 3.6: the projections of all heads as one, its result cut into heads."""

import torch

from coding_attention.figures.base import (
    HEADS,
    INK,
    TEXT,
    arrow,
    block,
    canvas,
    check,
    describe,
    styled,
)


@styled
def stacked_projection(x, projections):
    """Draw the projections of the heads stacked into one, and its queries cut in two.

    Args:
        x: token vectors of one sequence, (t, d_in).
        projections: the W_query of each head, (d_in, d_head) each: two heads, or more
            where they are narrow. A ``Linear`` layer holds it transposed.

    Returns:
        Axes with two rows. Above, the matrices of the heads and the one they make side
        by side; below, x times the one, and the same numbers cut by head.
    """
    for i, W in enumerate(projections):
        same = {f"projections[{i}]": (W, "d_in d_head")}
        check(x=(x, "t d_in"), first=(projections[0], "d_in d_head"), **same)
    W = torch.cat(list(projections), dim=1)  # (d_in, d_out)
    queries = x @ W  # (t, d_in) @ (d_in, d_out) -> (t, d_out)
    t, (d_in, d_out), h = len(x), W.shape, len(projections)
    d_head = d_out // h
    gap, between = 0.14, 0.42
    wide = min(0.38, (3.5 - between - gap * (h - 1)) / (2 * d_out))
    high, second = 0.24, 0.3 + 0.24 * d_in + 0.72
    ax = canvas(
        2 * d_out * wide + between + gap * (h - 1) + 0.1, second + high * t + 0.3
    )

    def heads(left, top, matrices, gap, name):
        for head, matrix in enumerate(matrices):
            x = left + head * (d_head * wide + gap)
            block(
                ax, x, top, matrix, (wide, high), f"head {head}" if gap else "",
                "shape" if gap else "", HEADS[head % len(HEADS)],
            )  # fmt: skip
        right = left + d_out * wide + gap * (h - 1)
        if not gap:
            middle, text = (left + right) / 2, {"ha": "center", "fontsize": TEXT}
            ax.text(middle, top - 0.05, name, va="bottom", color=INK, **text)
            rows = len(matrices[0])
            below = top + rows * high + 0.04
            ax.text(middle, below, f"({rows}, {d_out})", va="top", color=INK, **text)
        return right

    def step(left, top, rows, text):
        y = top + rows * high / 2
        arrow(ax, (left + 0.04, y), (left + between - 0.04, y))
        place = left + between / 2, y - 0.06
        ax.text(*place, text, ha="center", va="bottom", color=INK, fontsize=TEXT)

    cut = queries.split(d_head, dim=1)
    right = heads(0.05, 0.3, projections, gap, "")
    step(right, 0.3, d_in, "stack")
    heads(right + between, 0.3, projections, 0, "W_query")
    right = heads(0.05, second, cut, 0, "x @ W_query")
    step(right, second, t, "cut")
    heads(right + between, second, cut, gap, "")
    # From the stacked matrix down to the product that it makes.
    start = 0.05 + d_out * wide + gap * (h - 1) + between + 0.06
    arrow(ax, (start, 0.3 + high * d_in + 0.22), (right - 0.1, second - 0.2))
    return describe(ax, *_words(x, projections, queries))


def _words(x, projections, queries):
    h, (d_in, d_head) = len(projections), projections[0].shape
    worst = max(
        float((x @ W - part).abs().max())
        for W, part in zip(projections, queries.split(d_head, dim=1), strict=True)
    )
    # The last digits are each processor's own.
    close = "up to rounding" if worst < 1e-6 else f"to within {worst:.1g}"
    caption = (
        f"The W_query of {h} heads, ({d_in}, {d_head}) each, side by side are "
        f"one matrix ({d_in}, {h * d_head}). One product gives the queries of all "
        f"heads; cut by columns, they are those that each head computes alone, "
        f"{close}."
    )
    alt = (
        f"{h} small matrices in the colors of their heads become one matrix in the "
        f"same colors. The product with x, {len(x)} rows of "
        f"{h * d_head} numbers, is cut into {h} blocks of {d_head} columns in the same "
        f"colors."
    )
    return caption, alt
