"""Words in a plane of two meanings, and where attention moves them."""

from coding_attention.figures.base import (
    BLUE,
    GRAY,
    VERMILION,
    arrow,
    check,
    new_axes,
    number,
    styled,
    told,
)
from coding_attention.figures.labels import beside


@styled
def plane(vectors, words, axes, moved=None, focus=(), title=None):
    """Draw words as points of a plane, and the way from embedding to context vector.

    Args:
        vectors: embeddings of two numbers, (t, 2).
        words: t labels.
        axes: what the two numbers mean, such as ("nature", "money").
        moved: context vectors, (t, 2), or None for points that stay.
        focus: words whose way stands out; the others are drawn in the background.
        title: short text above.

    Returns:
        Axes with a dot for each embedding and an arrow to each context vector.
    """
    given = {"vectors": (vectors, "t 2"), "words": (words, "t"), "axes": (axes, "2")}
    if moved is not None:
        given["moved"] = (moved, "t 2")
    check(**given)
    ax = new_axes(3.6, 3.2 if title is None else 3.4)
    ax.set_position([0.15, 0.14, 0.82, 0.83 if title is None else 0.76])
    starts = vectors.tolist()
    ends = starts if moved is None else moved.tolist()
    xs, ys = zip(*starts, *ends, (0.0, 0.0), strict=True)
    spans = [max(values) - min(values) or 1 for values in (xs, ys)]
    ax.set_xlim(min(xs) - 0.06 * spans[0], max(xs) + 0.16 * spans[0])
    ax.set_ylim(min(ys) - 0.06 * spans[1], max(ys) + 0.12 * spans[1])
    ax.axhline(0, color=GRAY, lw=0.6, zorder=0)
    ax.axvline(0, color=GRAY, lw=0.6, zorder=0)
    for word, start, end in zip(words, starts, ends, strict=True):
        color = VERMILION if word in focus else (GRAY if focus else BLUE)
        ax.plot(*start, "o", color=color, ms=5)
        if start != end:
            arrow(ax, tuple(start), tuple(end), color, 1.8, gap=0)
    beside(ax, words, starts, list(zip(starts, ends, strict=True)))
    ax.set_xlabel(axes[0])
    ax.set_ylabel(axes[1])
    if title is not None:
        ax.set_title(title)
    return told(ax, *_words(words, axes, starts, ends, moved, focus))


def _words(words, axes, starts, ends, moved, focus):
    def at(point):
        return f"({', '.join(number(value, 2) for value in point)})"

    caption = f"Words as points: {axes[0]} and {axes[1]}."
    if moved is None:
        places = "; ".join(
            f"{w} at {at(s)}" for w, s in zip(words, starts, strict=True)
        )
        return caption, f"A plane with the words {places}."
    ways = [
        f"{word} from {at(start)} to {at(end)}"
        for word, start, end in zip(words, starts, ends, strict=True)
        if word in focus or not focus
    ]
    caption += f" The arrows lead to the context vectors: {'; '.join(ways)}."
    places = "; ".join(
        f"{w} from {at(s)} to {at(e)}"
        for w, s, e in zip(words, starts, ends, strict=True)
    )
    return caption, f"A plane with an arrow for each word: {places}."
