"""A figure of keys and values that travel around a ring of ranks."""

from matplotlib.patches import Rectangle

from coding_attention.figures.base import INK, SMALL, cell, new_axes, styled
from coding_attention.figures.speed import RANKS


@styled
def ring(ranks):
    """Draw which block of keys each rank holds in each step, to see causally or skip.

    Args:
        ranks: how many ranks and blocks, two to four.

    Returns:
        Axes with a row for each rank and a column for each step. A cell holds the
        number of the block that is there; it is colored where the rank uses it.
    """
    ax = new_axes(3.6, 0.5 + 0.42 * ranks)
    ax.set_position([0.15, 0.02, 0.83, 0.84 - 0.1 / ranks])
    for rank in range(ranks):
        for step in range(ranks):
            block = (rank - step) % ranks
            corner = step + 0.06, rank + 0.08
            if block <= rank:
                color = RANKS[block]
                cell(ax, *corner, 0.88, 0.84, color, f"block {block}", color)
                continue
            # Later blocks are the future.
            empty = Rectangle(corner, 0.88, 0.84, fill=False, edgecolor=INK, ls=":")
            ax.add_patch(empty)
            ax.text(
                step + 0.5, rank + 0.5, "skipped", color=INK, fontsize=SMALL,
                ha="center", va="center_baseline",
            )  # fmt: skip
    ax.set_xlim(0, ranks)
    ax.set_ylim(ranks, 0)
    ax.xaxis.tick_top()
    ax.set_xticks([s + 0.5 for s in range(ranks)], [f"step {s}" for s in range(ranks)])
    ax.set_yticks([r + 0.5 for r in range(ranks)], [f"rank {r}" for r in range(ranks)])
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    return ax
