"""Words in a plane of two meanings, and where attention moves them."""

from coding_attention.figures.base import (
    BLUE,
    GRAY,
    arrow,
    check,
    describe,
    new_axes,
    number,
    styled,
)
from coding_attention.figures.labels import beside


@styled
def plane(vectors, words, axes, moved):
    """Draw words as points of a plane, and the way from embedding to context vector.

    Args:
        vectors: embeddings of two numbers, (t, 2).
        words: t labels.
        axes: what the two numbers mean, such as ("nature", "money").
        moved: context vectors, (t, 2).

    Returns:
        Axes with a dot for each embedding and an arrow to each context vector.
    """
    check(
        vectors=(vectors, "t 2"), words=(words, "t"), axes=(axes, "2"),
        moved=(moved, "t 2"),
    )  # fmt: skip
    ax = new_axes(3.6, 3.2)
    ax.set_position([0.15, 0.14, 0.82, 0.83])
    starts, ends = vectors.tolist(), moved.tolist()
    xs, ys = zip(*starts, *ends, (0.0, 0.0), strict=True)
    spans = [max(values) - min(values) or 1 for values in (xs, ys)]
    ax.set_xlim(min(xs) - 0.06 * spans[0], max(xs) + 0.16 * spans[0])
    ax.set_ylim(min(ys) - 0.06 * spans[1], max(ys) + 0.12 * spans[1])
    ax.axhline(0, color=GRAY, lw=0.6, zorder=0)
    ax.axvline(0, color=GRAY, lw=0.6, zorder=0)
    for start, end in zip(starts, ends, strict=True):
        ax.plot(*start, "o", color=BLUE, ms=5)
        arrow(ax, tuple(start), tuple(end), BLUE, 1.8, gap=0)
    beside(ax, words, starts, list(zip(starts, ends, strict=True)))
    ax.set_xlabel(axes[0])
    ax.set_ylabel(axes[1])
    return describe(ax, "", _words(words, starts, ends))


def _words(words, starts, ends):
    def at(point):
        return f"({', '.join(number(value, 2) for value in point)})"

    places = "; ".join(
        f"{w} from {at(s)} to {at(e)}"
        for w, s, e in zip(words, starts, ends, strict=True)
    )
    return f"A plane with an arrow for each word: {places}."
