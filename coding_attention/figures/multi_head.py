"""Figures of section 3.6: heads side by side, and how view and transpose split."""

import torch

from attention.functional import attention_weights, causal_mask
from coding_attention.figures.base import (
    DARK,
    HEADS,
    INK,
    SMALL,
    TEXT,
    TITLE,
    VALUE,
    arrow,
    canvas,
    cell,
    check,
    shade,
    styled,
)


@styled
def lanes(x, layer):
    """Draw how a multi-head layer works, one lane a head, with its matrices.

    Args:
        x: token vectors of one sequence, (t, d_in).
        layer: a ``MultiHeadAttention`` or a ``MultiHeadAttentionWrapper``, with one to
            three heads.

    Returns:
        Axes with the queries, keys and values, the weights and the result of each head
        as cells, on the color of the head; below, what the heads give side by side, and
        the output projection of a layer that has one.
    """
    with torch.no_grad():
        q, k, v = _project_by_head(x, layer)  # (h, t, d_head) each
        h, t, d_head = q.shape
        weights = attention_weights(q, k, causal_mask(t))  # (h, t, t)
        z = weights @ v  # (h, t, d_head)
        joined = z.transpose(0, 1).flatten(1)  # (t, h · d_head)
        out = layer.out_proj(joined) if hasattr(layer, "out_proj") else None
    ax = canvas(3.6, 4.7)
    high, lane = 0.6, 3.6 / h
    side = min(high / t, (lane - 0.3) / (3 * d_head + 2))
    ink = {"color": INK, "fontsize": TEXT, "ha": "center"}
    center = 1.8 if out is None else 1.05

    def heat(middle, top, matrix, ground, width=side):
        left = middle - matrix.shape[1] * width / 2
        if ground:
            wide = matrix.shape[1] * width + 0.1
            cell(ax, left - 0.05, top - 0.05, wide, high + 0.1, ground)
        for i, line in enumerate(shade(matrix)):
            for j, color in enumerate(line):
                cell(ax, left + j * width, top + i * high / t, width, high / t, color)

    for head in range(h):
        middle, color = (head + 0.5) * lane, HEADS[head % len(HEADS)]
        ax.text(middle, 0.14, f"head {head}", va="center", **ink)
        apart = d_head * side + 0.14
        for place, matrix in zip((-1, 0, 1), (q, k, v), strict=True):
            heat(middle + place * apart, 0.5, matrix[head], color)
            letter = "qkv"[place + 1]
            ax.text(middle + place * apart, 0.42, letter, va="bottom", **ink)
        arrow(ax, (middle, 1.36), (middle, 1.56), gap=0)
        heat(middle, 1.66, weights[head], None, high / t)
        arrow(ax, (middle, 2.5), (middle, 2.7), gap=0)
        heat(middle, 2.8, z[head], color)
        if h < 3 or head == 0:
            beside = middle + max(high / 2, d_head * side / 2) + 0.07
            text = {"color": INK, "fontsize": SMALL, "va": "center", "ha": "left"}
            ax.text(beside, 1.66 + high / 2, f"α\n({t}, {t})", **text)
            ax.text(beside, 2.8 + high / 2, f"z\n({t}, {d_head})", **text)
        ax.text(middle, 1.17, f"each ({t}, {d_head})", va="top", **ink)
        part = (head - (h - 1) / 2) * d_head * side
        arrow(ax, (middle, 3.48), (center + part, 3.85), gap=2)
        heat(center + part, 3.92, z[head], None)
    wide = h * d_head * side
    for head in range(h):
        left = center - wide / 2 + head * d_head * side
        cell(
            ax, left, 3.92 + high + 0.02, d_head * side, 0.06, HEADS[head % len(HEADS)]
        )
    text = {"color": INK, "fontsize": SMALL, "va": "center"}
    edge = center - wide / 2 - 0.08
    ax.text(edge, 3.92 + high / 2, f"joined\n({t}, {h * d_head})", ha="right", **text)
    if out is not None:
        half = out.shape[1] * side / 2
        heat(2.55, 3.92, out, VALUE)
        begin, end = center + wide / 2 + 0.05, 2.48 - half
        arrow(ax, (begin, 3.92 + high / 2), (end, 3.92 + high / 2), gap=0)
        middle = (begin + end) / 2
        ax.text(middle, 3.92 + high / 2 - 0.06, "out_proj", va="bottom", **ink)
        shape = f"output\n{tuple(out.shape)}"
        ax.text(2.65 + half, 3.92 + high / 2, shape, ha="left", **text)
    return ax


def _project_by_head(x, layer):
    """Give the queries, keys and values of all heads, (h, t, d_head) each."""
    heads = layer.heads if hasattr(layer, "heads") else [layer]
    h = len(heads) if hasattr(layer, "heads") else layer.num_heads
    widths = {
        f"heads[{i}]": (head.W_query.weight, "d d_in") for i, head in enumerate(heads)
    }
    check(x=(x, "t d_in"), **widths)
    for name in ("W_query", "W_key", "W_value"):
        all_heads = torch.cat([getattr(head, name)(x) for head in heads], dim=-1)
        yield all_heads.unflatten(-1, (h, -1)).transpose(0, 1)


@styled
def tagged(entries, d_out, num_heads, title, names):
    """Draw blocks of entries, each tagged with its token and its feature.

    The entries count all features of the first token, then all of the second, as
    ``torch.arange`` does: entry 5 of tokens four wide is feature 1 of token 1. The
    color of a cell is that of the head that its feature belongs to.

    Args:
        entries: whole numbers (blocks, rows, columns).
        d_out: features of a token.
        num_heads: h; each head owns d_out / h neighboring features.
        title: short text above the blocks.
        names: a label for each block.

    Returns:
        Axes with the blocks side by side.
    """
    sizes = check(entries=(entries, "blocks rows columns"), names=(names, "blocks"))
    blocks, n_rows, n_columns = sizes.values()
    wide, high, gap, top = 0.52, 0.42, 0.16, 0.46
    width = 0.1 + blocks * n_columns * wide + (blocks - 1) * gap
    ax = canvas(width, top + high * n_rows + 0.04)
    ax.text(0.05, 0.12, title, color=INK, va="center", fontsize=TITLE)
    for number, (name, lines) in enumerate(zip(names, entries.tolist(), strict=True)):
        left = 0.05 + number * (n_columns * wide + gap)
        middle = left + n_columns * wide / 2
        ax.text(middle, 0.34, name, color=INK, ha="center", va="center", fontsize=TEXT)
        for row, line in enumerate(lines):
            for column, entry in enumerate(line):
                token, feature = divmod(entry, d_out)
                x, y = left + column * wide, top + high * row
                cell(ax, x, y, wide, high, _color(entry, d_out, num_heads))
                text = {"color": DARK, "ha": "center", "va": "center"}
                ax.text(x + wide / 2, y + 0.13, str(entry), fontsize=TEXT, **text)
                tag = f"t{token} f{feature}"
                ax.text(x + wide / 2, y + 0.3, tag, fontsize=SMALL, **text)
    return ax


def _color(entry, d_out, num_heads):
    return HEADS[entry % d_out * num_heads // d_out % len(HEADS)]
