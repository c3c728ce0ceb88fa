"""Figures of section 3.6: heads side by side, and how view and transpose split."""

from matplotlib.patches import Rectangle

from attention import validate
from attention.chapter.figures import checks
from attention.chapter.figures.base import (
    DARK,
    INK,
    LIGHT,
    SKY,
    arrow,
    new_axes,
    shape_box,
    styled,
)

# One color for each head, light enough for dark text.
HEADS = (SKY, "#fbe8c4", "#cfeadf", "#f3dbe9")


@styled
def lanes(x, layer):
    """Draw how a multi-head layer works, one lane a head, with all shapes.

    Args:
        x: token vectors of one sequence, (t, d_in).
        layer: a ``MultiHeadAttention`` with one to three heads.

    Returns:
        Axes with three boxes for each head and three boxes for all.

    Raises:
        TypeError, ValueError: no such layer, more heads than lanes fit the page, or
            ``x`` is not one sequence of token vectors that the layer takes.
    """
    parts = ("num_heads", "head_dim", "d_out", "W_query")
    missing = [part for part in parts if not hasattr(layer, part)]
    if missing:
        raise TypeError(
            f"layer must be a MultiHeadAttention, but got {type(layer).__name__} "
            f"without {', '.join(missing)}. Pass a layer such as MultiHeadAttention(3, "
            f"4, 6, 0.0, num_heads=2)."
        )
    h, d_head = layer.num_heads, layer.head_dim
    checks.count("layer.num_heads", h, 1, 3, "the lanes that fit a phone")
    t, _ = checks.shape("x", x, "t d_in", d_in=layer.W_query.in_features)
    ax = _blank(new_axes(3.6, 3.75), 3.6, 3.75)
    shape_box(ax, 1.8, 0.25, 1.5, "inputs x", x.shape, LIGHT)
    lane = 3.6 / h
    for head in range(h):
        center, color = (head + 0.5) * lane, HEADS[head % len(HEADS)]
        width = min(1.5, lane - 0.15)
        name = f"q, k, v of head {head}"
        shape_box(ax, center, 1.05, width, name, (t, d_head), color, "each ")
        shape_box(ax, center, 1.77, width, "weights α", (t, t), color)
        shape_box(ax, center, 2.49, width, "weights @ v", (t, d_head), color)
        arrow(ax, (1.8 + (center - 1.8) * 0.4, 0.45), (center, 0.84))
        arrow(ax, (center, 1.25), (center, 1.56))
        arrow(ax, (center, 1.97), (center, 2.28))
        # The head's share of the joined vector, in its own color.
        part = 2.4 / h
        left = 0.6 + head * part
        ax.add_patch(Rectangle((left, 2.92), part, 0.22, facecolor=color, ec=INK))
        ax.text(
            left + part / 2, 3.03, f"({t}, {d_head})", color=DARK, ha="center",
            va="center", fontsize=8,
        )  # fmt: skip
        arrow(ax, (center, 2.69), (left + part / 2, 2.91))
    ax.text(2.78, 0.57, "W_query,\nW_key, W_value", fontsize=7, color=INK, va="center")
    arrow(ax, (1.8, 3.14), (1.8, 3.32))
    ax.text(1.9, 3.26, "out_proj", fontsize=8, color=INK)
    shape_box(ax, 1.8, 3.53, 2.4, "context vectors z", (t, layer.d_out), LIGHT)
    return ax


def _blank(ax, width, height):
    ax.set_position([0, 0, 1, 1])
    ax.set_axis_off()
    ax.set_xlim(0, width)
    ax.set_ylim(height, 0)
    return ax


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

    Raises:
        TypeError, ValueError: the entries are no whole numbers in blocks, they do not
            fit the page, or the heads, colors and names do not fit them.
    """
    blocks, n_rows, n_columns = checks.shape("entries", entries, "blocks rows columns")
    checks.whole("entries", entries)
    _check_heads(d_out, num_heads)
    checks.labels("names", names, blocks, "blocks")
    cell, gap, top = 0.5, 0.16, 0.44
    width = 0.1 + blocks * n_columns * cell + (blocks - 1) * gap
    checks.fits_page("the row of blocks", width)
    ax = _blank(new_axes(width, top + 0.4 * n_rows + 0.04), width, 1)
    ax.set_ylim(top + 0.4 * n_rows + 0.04, 0)
    ax.text(0.05, 0.12, title, color=INK, va="center", fontsize=9)
    for block, (name, lines) in enumerate(zip(names, entries.tolist(), strict=True)):
        left = 0.05 + block * (n_columns * cell + gap)
        middle = left + n_columns * cell / 2
        ax.text(middle, 0.33, name, color=INK, ha="center", va="center", fontsize=8)
        for row, line in enumerate(lines):
            for column, entry in enumerate(line):
                corner = (left + column * cell, top + 0.4 * row)
                _tagged_cell(ax, corner, cell, entry, d_out, num_heads)
    return ax


def _check_heads(d_out, num_heads):
    validate.sizes(d_out=d_out, num_heads=num_heads)
    validate.divisible(d_out, num_heads)
    checks.count("num_heads", num_heads, 1, len(HEADS), "one for each color")


def _tagged_cell(ax, corner, size, entry, d_out, num_heads):
    token, feature = divmod(entry, d_out)
    color = HEADS[feature * num_heads // d_out % len(HEADS)]
    x, y = corner
    ax.add_patch(Rectangle(corner, size, 0.4, facecolor=color, edgecolor="white"))
    middle = x + size / 2
    text = {"color": DARK, "ha": "center", "va": "center"}
    ax.text(middle, y + 0.13, str(entry), fontsize=9, **text)
    ax.text(middle, y + 0.29, f"t{token} f{feature}", fontsize=7, **text)


@styled
def memory(strips, d_out, num_heads):
    """Draw entries in the order in which they lie in memory.

    Args:
        strips: dict of name -> whole numbers (n,), counted as in :func:`tagged`.
        d_out: features of a token.
        num_heads: h; each head owns d_out / h neighboring features.

    Returns:
        Axes with one strip of cells for each entry of ``strips``.

    Raises:
        TypeError, ValueError: no strip, one that holds no whole numbers, or heads that
            do not fit the features or the colors.
    """
    checks.named("strips", strips)
    for name, strip in strips.items():
        checks.shape(f"strips[{name!r}]", strip, "n")
        checks.whole(f"strips[{name!r}]", strip)
    _check_heads(d_out, num_heads)
    longest = max(len(strip) for strip in strips.values())
    cell = 3.5 / longest
    height = 0.6 * len(strips) + 0.02
    ax = _blank(new_axes(3.6, height), 3.6, height)
    for i, (name, strip) in enumerate(strips.items()):
        top = 0.6 * i
        ax.text(0.05, top + 0.14, name, color=INK, va="center", fontsize=8)
        for position, entry in enumerate(strip.tolist()):
            corner = (0.05 + position * cell, top + 0.26)
            color = HEADS[entry % d_out * num_heads // d_out % len(HEADS)]
            ax.add_patch(
                Rectangle(corner, cell, 0.26, facecolor=color, edgecolor="white")
            )
            ax.text(
                corner[0] + cell / 2, corner[1] + 0.13, str(entry), color=DARK,
                ha="center", va="center_baseline", fontsize=8,
            )  # fmt: skip
    return ax
