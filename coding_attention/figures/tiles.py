"""Softmax in tiles of queries and keys, with a running maximum and a running sum."""

import torch

from coding_attention.figures.base import (
    INK,
    LIGHT,
    TEXT,
    VERMILION,
    canvas,
    cell,
    check,
    describe,
    frame,
    number,
    shade,
    styled,
)


def running(row, block):
    """Go through one row of scores tile by tile, as the fused kernel does.

    Returns:
        For each tile its scores, the factor that rescales the sum of the tiles before,
        the largest score so far, and the sum of exp(score - largest) so far.
    """
    largest, total, found = -float("inf"), 0.0, []
    for scores in row.double().split(block):
        before, largest = largest, max(largest, float(scores.max()))
        factor = float(torch.tensor(before - largest, dtype=torch.float64).exp())
        total = total * factor + float((scores - largest).exp().sum())
        found.append((scores, factor, largest, total))
    return found


@styled
def online_softmax_tiles(scores, block, query):
    """Draw scores cut into tiles, and one row's softmax done one tile after the other.

    Args:
        scores: attention scores (t_q, t_k), finite.
        block: how many queries and keys a tile has.
        query: index of the row to follow.

    Returns:
        Axes with the tiles above, the row framed, and a table below: for each tile its
        scores, the factor for the sum so far, the maximum and the sum so far.
    """
    sizes = check(scores=(scores, "t_q t_k"))
    scores = scores.detach()
    t_q, t_k = sizes["t_q"], sizes["t_k"]
    steps = running(scores[query], block)
    side = min(0.26, 2.9 / t_k, 1.6 / t_q)
    space = 0.05
    top, left = 0.3, 0.75
    down = side * t_q + space * ((t_q - 1) // block)
    table = top + down + 0.5
    ax = canvas(3.6, table + 0.27 * len(steps) + 0.05)
    across = side * t_k + space * ((t_k - 1) // block)
    colors = shade(scores, "numbers")
    for i in range(t_q):
        for j in range(t_k):
            x = left + j * side + space * (j // block)
            y = top + i * side + space * (i // block)
            cell(ax, x, y, side, side, colors[i][j])
    y = top + query * side + space * (query // block)
    frame(ax, left - 0.02, y, across + 0.04, side)
    ink = {"color": INK, "fontsize": TEXT, "va": "center"}
    ax.text(left + across / 2, top - 0.12, f"{t_k} keys", ha="center", **ink)
    ax.text(left - 0.08, top + down / 2, f"{t_q} queries", ha="right", **ink)
    beside = left + across + 0.1
    if beside < 2.75:
        ax.text(beside, y + side / 2, f"query {query}", ha="left", **ink)
    _table(ax, table, steps, block)
    return describe(ax, *_words(scores, block, query, steps))


def _table(ax, top, steps, block):
    wide = min(0.4, 1.3 / block)
    first, ink = 0.62, {"color": INK, "fontsize": TEXT, "va": "center"}
    columns = [first + block * wide + 0.1 + k * 0.62 for k in range(3)]
    ax.text(first + block * wide / 2, top - 0.13, "scores", ha="center", **ink)
    for x, head in zip(columns, ("factor", "maximum", "sum"), strict=True):
        ax.text(x + 0.26, top - 0.13, head, ha="center", **ink)
    for i, (scores, *numbers) in enumerate(steps):
        y = top + i * 0.27
        ax.text(first - 0.06, y + 0.135, f"tile {i}", ha="right", **ink)
        for j, score in enumerate(scores.tolist()):
            cell(ax, first + j * wide, y, wide, 0.27, LIGHT, number(score, 2))
        for x, value in zip(columns, numbers, strict=True):
            last = i == len(steps) - 1 and x == columns[-1]
            edge = {"edge": VERMILION} if last else {}
            cell(ax, x, y, 0.52, 0.27, LIGHT, number(value, 2), **edge)


def _words(scores, block, query, steps):
    total, largest = steps[-1][3], steps[-1][2]
    whole = float((scores[query].double() - largest).exp().sum())
    caption = (
        f"Softmax without the whole row: for query {query} the scores come in tiles of "
        f"{block} keys. Each time the maximum grows, the sum so far is multiplied by "
        f"the factor exp(old maximum - new maximum). After {len(steps)} tiles the sum "
        f"is {total:.4f}; that of the whole row is {whole:.4f}."
    )
    rows = "; ".join(
        f"tile {i}: factor {factor:.2f}, maximum {most:.2f}, sum {sum_:.2f}"
        for i, (_, factor, most, sum_) in enumerate(steps)
    )
    alt = (
        f"A grid of {scores.shape[0]} queries and {scores.shape[1]} keys, cut into "
        f"tiles of {block} by {block}, with the row of query {query} framed. A "
        f"table of its {len(steps)} tiles in turn: {rows}."
    )
    return caption, alt
