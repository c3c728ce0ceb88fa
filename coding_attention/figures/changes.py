"""How far each token moves each output, as bars, as in section 3.5.3."""

from coding_attention.figures import words
from coding_attention.figures.base import (
    GRAY,
    INK,
    SMALL,
    VERMILION,
    check,
    new_axes,
    styled,
    told,
)


@styled
def changes(shares, tokens):
    """Draw, for each output, which share of its change comes from each token.

    Args:
        shares: (t, t), a row for each output, a column for each token; rows sum to one.
        tokens: t labels.

    Returns:
        Axes with one bar for each output and token, a row of bars for each output.
    """
    check(shares=(shares, "t t"), tokens=(tokens, "t"))
    shares = shares.detach().double()
    t = len(tokens)
    height = 0.3 + 0.42 * t
    ax = new_axes(3.6, height)
    ax.set_position([0.2, 0.05 / height, 0.78, 1 - 0.35 / height])
    for i, row in enumerate(shares.tolist()):
        largest = max(row)
        for j, share in enumerate(row):
            # A row of bars stands on the line y = i + 1, and 1 is 0.85 high.
            color = VERMILION if share == largest else GRAY
            ax.bar(j, -0.85 * share, 0.6, bottom=i + 1, color=color)
        ax.axhline(i + 1, color=INK, lw=0.6)
    ax.set_xlim(-0.5, t - 0.5)
    ax.set_ylim(t + 0.03, 0)
    ax.set_xticks(range(t), tokens, fontsize=SMALL)
    ax.set_yticks([i + 0.6 for i in range(t)], tokens, fontsize=SMALL)
    ax.tick_params(length=0, pad=2, top=False, labeltop=True, labelbottom=False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    return told(ax, "", words.changes(shares, tokens))
